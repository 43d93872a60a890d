"""The server process: pages and API over a data folder. It reads beside the others, and goes on while they restart."""

from vedette.live.search_orders import key_of
from vedette.live.searching import FolderSearch
from vedette.live.settings import LiveSettings
from vedette.web.app import make_app
from vedette.web.look import Look
from vedette.web.serving import run_server as run_app

__all__ = ["run_server"]


def run_server(settings: LiveSettings) -> int:
    """The life of the server process; it ends when it is told to."""
    assert settings.listener is not None
    serve = settings.config.serve
    search = FolderSearch(settings.folder, settings.clock, demo=settings.demo)
    look = Look(
        name=serve.name,
        address=serve.address,
        embed_origins=serve.embed_origins,
        contact=settings.config.crawl.contact,
        demo=settings.demo,
    )
    app = make_app(search, serve, look, keys=lambda: [key_of(row) for row in search.reader_keys()])
    run_app(app, settings.listener)
    return 0
