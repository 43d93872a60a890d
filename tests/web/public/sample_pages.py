"""A search over pages in memory, and a real server for it, for tests of the pages alone."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from selectolax.lexbor import LexborHTMLParser, LexborNode
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from vedette.adapters.crawl_store.status_file import FailingProcess
from vedette.model import Site
from vedette.serve.slate import Reason, SearchRequest, SearchResult, Slate, Snippet
from vedette.web.ports import CachedCopy, FacetCount, IndexOverview
from vedette.web.public.pages import page_routes
from vedette.web.rendering import Branding, error_page

NOW_S = 1_790_000_000.0
WHY = (
    Reason("words in the title", 2.0, 1.5, 3.0),
    Reason("words in linking pages", 4.0, 0.5, 2.0),
    Reason("likely spam", 0.2, -2.0, -0.4),
)
SENTENCE = "High because the title and four linking pages say consumer lag."


def result(id_: int, title: str, **more: Any) -> SearchResult:
    """Return a result with the usual fields; ``more`` sets other fields."""
    made = SearchResult(
        id=id_,
        url=f"https://kafka.example.org/documentation/ops/{id_}",
        title=title,
        snippet=Snippet("the lag of each consumer group", ((4, 7),)),
        site="kafka.example.org",
        kind="html",
        language="en",
        fetched_s=NOW_S - 240,
        born_s=NOW_S - 90_000,
        date_s=NOW_S - 86_400 * 40,
        score=4.6,
        why=WHY,
        sentence=SENTENCE,
        has_copy=True,
    )
    return made._replace(**more)


def copy(body: str, content_type: str = "text/html", text: str = "") -> CachedCopy:
    """Return a cached copy of a page."""
    url = "https://kafka.example.org/documentation/ops/1"
    return CachedCopy(url, "Monitoring", NOW_S - 240, content_type, body.encode(), "utf-8", text)


@dataclass
class HeldPages:
    """Finds every page whose title has a word of the query, in the order in which they are stored.

    ``says`` replaces fields of each result list. Copies of the ``private`` start are only for those who may see it.
    """

    results: tuple[SearchResult, ...] = ()
    copies: dict[int, CachedCopy] = field(default_factory=dict)
    likes: dict[int, tuple[SearchResult, ...]] = field(default_factory=dict)
    known: IndexOverview | None = None
    says: dict[str, Any] = field(default_factory=dict)
    behind: str = ""
    failing: tuple[FailingProcess, ...] = ()
    exceeded: int = 0
    completions: tuple[str, ...] = ()
    private: str = ""
    wishes: list[SearchRequest] = field(default_factory=list)

    def search(self, wish: SearchRequest) -> Slate:
        """Return results, and record the request."""
        self.wishes.append(wish)
        words = wish.query.lower().split()
        found = [one for one in self.results if any(word in one.title.lower() for word in words)]
        shown = tuple(found[(wish.page - 1) * wish.n : wish.page * wish.n])
        return Slate(wish, len(found), shown)._replace(**self.says)

    def suggest(self, typed: str, most: int, site: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Return the completions with this prefix."""
        del site, allowed
        return tuple(text for text in self.completions if text.startswith(typed.lower()))[:most]

    def get_overview(self, allowed: tuple[str, ...]) -> IndexOverview:
        """Count the pages, unless the test sets the overview."""
        del allowed
        sites = (FacetCount("kafka.example.org", len(self.results)),) if self.results else ()
        report = IndexOverview(len(self.results), sites, (FacetCount("html", len(self.results)),), newest_s=NOW_S - 240)
        return self.known or report

    def find_copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """Return the copy; those of the private site only for its users."""
        found = self.copies.get(id_)
        hidden = found is not None and self.private and found.url.startswith(self.private)
        return None if hidden and self.private not in allowed else found

    def find_page(self, url: str, allowed: tuple[str, ...]) -> int | None:
        """Return the page with this URL."""
        del allowed
        return next((one.id for one in self.results if one.url == url), None)

    def find_similar(self, id_: int, allowed: tuple[str, ...]) -> tuple[SearchResult, ...]:
        """Return the pages folded under a page."""
        del allowed
        return self.likes.get(id_, ())

    def list_sites(self) -> tuple[Site, ...]:
        """Return the only site."""
        return (Site("https://kafka.example.org/"),)

    def list_failing(self) -> tuple[FailingProcess, ...]:
        """Return no failing process, unless the test sets one."""
        return self.failing

    def count_exceeded(self) -> int:
        """Return addresses and domains over their limit."""
        return self.exceeded

    def get_incomplete_reason(self) -> str:
        """Return the test's value."""
        return self.behind

    def now_s(self) -> float:
        """Return a fixed time."""
        return NOW_S


def application(search: HeldPages, look: Branding, *more: BaseRoute) -> Starlette:
    """Return the pages as in a whole server: with results while typing, and a page for every problem."""

    async def search_instantly(asked: Request) -> Response:
        typed, site = asked.query_params.get("q", ""), asked.query_params.get("site", "")
        found = search.search(SearchRequest(typed, 2, site=site)).results
        shown = [{"url": each.url, "title": each.title, "heading": "", "site": each.site} for each in found]
        report = {"suggestions": search.suggest(typed, 8, site, ()), "results": shown}
        return JSONResponse(report, headers={"access-control-allow-origin": "*"})

    async def problem(_asked: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return error_page(error.status_code, look=look)

    routes = [*page_routes(search, look), Route("/api/v1/instant", search_instantly), *more]
    return Starlette(routes=routes, exception_handlers={HTTPException: problem})


def first(tree: LexborHTMLParser | LexborNode, selector: str) -> LexborNode:
    """Return the first matching element of a page, or fail the test."""
    found = tree.css_first(selector)
    assert found is not None, f"there is no {selector}"
    return found


@contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """Run a real server on loopback during the block, and yield its address."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)  # who comes before the server is ready waits for it
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
