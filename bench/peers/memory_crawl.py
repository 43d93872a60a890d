"""Crawl a site tree with the live coordinator and fetchers, on a web in memory and a simulated clock."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.peers.site_server import Request
from bench.peers.site_trees import SiteTree
from tests.engine.memory_web import Drive, MemoryWeb, Named, Reply, Served, rules_for

from vedette.model import Failure

__all__ = ["MemoryCrawl", "crawl_in_memory"]

ADDRESS = ("93.184.216.34",)
TOOK_S = 0.02


class MemoryCrawl(NamedTuple):
    """Every request of a crawl, and its data on each URL as ``vedette export urls`` has them."""

    log: Sequence[Request]
    states: Sequence[dict[str, Any]]


class _TreeWeb(MemoryWeb):
    """A web of one host, which answers from its tree; other names do not exist."""

    def __init__(self, tree: SiteTree) -> None:
        super().__init__()
        self._tree = tree
        self.requests: list[Request] = []

    def reply(self, url: str, now_s: float) -> Served:  # noqa: ARG002 - a tree does not change
        reply = self._tree.answer(url)
        self.requests.append(Request(self._tree.site.host, url, reply.status, reply.file, reply.is_page))
        location = (("location", reply.location),) if reply.location else ()
        return Reply(reply.status, (("content-type", reply.content_type), *location), reply.body, TOOK_S)

    def look_up(self, host: str, now_s: float) -> Named:  # noqa: ARG002 - nor do names
        return ADDRESS if host == self._tree.site.host else Failure.NAME


def crawl_in_memory(tree: SiteTree) -> MemoryCrawl:
    """Crawl a site to the end with default settings, without a delay."""
    web = _TreeWeb(tree)
    drive = Drive(web, rules_for(tree.site.start, delay_s=0.0, address_delay_s=0.0), room=8).begin().run()
    notes, pages = dict(drive.db.execute("SELECT url, why FROM note JOIN url ON id = url_id")), drive.pages()
    urls = [url for (url,) in drive.db.execute("SELECT url FROM url ORDER BY id")]
    states = [
        {"url": url, "state": "fetched" if url in pages else "not fetched", "note": notes.get(url)} for url in urls
    ]
    return MemoryCrawl(web.requests, states)
