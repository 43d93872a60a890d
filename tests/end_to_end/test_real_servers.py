"""The real program with real web servers: responses of nginx, Apache, lighttpd and Caddy are read correctly."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.tree_runs import PATIENCE_S
from tests.web_servers import PAGES, SERVERS, find_server, serve_all

from vedette.adapters.clock import real_clock
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.net.http import HttpClient, Limits
from vedette.engine.ports import PageRow
from vedette.fetch.connect_to import Endpoint
from vedette.fetch.request import build_conditional_headers, build_headers
from vedette.model import FetchRequest, FetchResponse

SETTINGS = '[crawl]\ndelay = "10ms"\naddress_delay = "1ms"\n'
EACH = pytest.mark.parametrize("name", SERVERS)


@dataclass(frozen=True, slots=True)
class Crawled:
    """The servers that were found, by name with their ports, and the result of a crawl of all of them."""

    ports: dict[str, int]
    pages: dict[str, PageRow]
    notes: dict[str, str]

    def need(self, name: str) -> int:
        """Return the port of a server; skip the test if it is not installed."""
        if name not in self.ports:
            pytest.skip(f"{name} is not installed: what it sends is not tried")
        return self.ports[name]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """Crawl all servers at once, as a user would."""
    folder = tmp_path_factory.mktemp("servers")
    found = [name for name in SERVERS if find_server(name)]
    if not found:
        pytest.skip(f"none of {', '.join(SERVERS)} is installed: what real servers send is not tried")
    (folder / "vedette.toml").write_text(SETTINGS, encoding="utf-8")
    with serve_all(folder, found) as ports:
        ways = [part for name, port in ports.items() for part in ("--connect-to", f"{name}.test:80=127.0.0.1:{port}")]
        sites = [f"http://{name}.test/" for name in ports]
        command = [sys.executable, "-m", "vedette", "crawl", *sites, *ways, "--allow-private", "--quiet"]
        command += ["--config", str(folder / "vedette.toml"), "--data", str(folder / "data")]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
        yield Crawled(ports, *_read_state(folder / "data"))


def _read_state(data: Path) -> tuple[dict[str, PageRow], dict[str, str]]:
    with closing(sqlite3.connect(data / "state.db", isolation_level=None)) as db:
        pages = dict(CrawlStore(db).iter_pages())
        notes = dict(db.execute("SELECT url, why FROM note JOIN url ON id = url_id").fetchall())
    return pages, notes


@EACH
def test_every_page_is_read(crawled: Crawled, name: str) -> None:
    """This includes compressed pages, cookies, raw redirects, plain text, and pages only in a guessed sitemap."""
    crawled.need(name)
    own = {url.removeprefix(f"http://{name}.test/"): page for url, page in crawled.pages.items() if name in url}
    assert {path: (own[path].status, own[path].kind) for path in PAGES if path in own} == dict.fromkeys(
        PAGES, (200, "page")
    )
    assert (own["notes.txt"].title, own["caf%C3%A9.html"].title) == ("About the notes.txt", "Café")
    assert {own["raw"].location, own["docs"].location} == {
        f"http://{name}.test/{path}" for path in ("docs/", "caf%C3%A9.html")
    }
    assert {url: why for url, why in crawled.notes.items() if name in url} == {}


@EACH
def test_unchanged_pages_are_not_sent_again(crawled: Crawled, name: str) -> None:
    """Each server accepts its own validators, even for compressed pages, and responds without a body."""
    port = crawled.need(name)
    client = HttpClient(real_clock(), Limits())
    for path in ("", "notes.txt"):
        first = ask(client, port, path, ("", ""))
        assert first.header("content-encoding") in {"gzip", "br", "zstd"}
        again = ask(client, port, path, (first.header("etag") or "", first.header("last-modified") or ""))
        assert (again.status, again.body) == (304, b"")
        third = ask(client, port, path, (again.header("etag") or "", ""))
        assert third.status == 304
    client.close()


def ask(client: HttpClient, port: int, path: str, validators: tuple[str, str]) -> FetchResponse:
    """Return the response to a request with these validators, sent like by the fetcher."""
    headers = build_headers("page", "vedette/test") + build_conditional_headers(*validators)
    client.submit(FetchRequest(f"http://one.test/{path}", "page", headers), Endpoint("127.0.0.1", port))
    while not (found := client.wait(1.0)):
        pass
    assert isinstance(found[0], FetchResponse), found[0]
    return found[0]
