"""The port of the search service for pages and API; the runtime implements it over a data folder."""

from typing import NamedTuple, Protocol

from vedette.adapters.crawl_store.status_file import FailingProcess
from vedette.model import Site
from vedette.serve.slate import SearchRequest, SearchResult, Slate


class FacetCount(NamedTuple):
    """A filter value of search results, and its number of pages."""

    value: str
    pages: int


class IndexOverview(NamedTuple):
    """An overview of the index for the start page and filters: pages, sites and freshness.

    ``sites`` are hosts, the largest first, at most a hundred; private ones are not counted unless the user may see
    them. ``newest_s`` is the time of the latest fetch; half of all pages are at most ``median_age_s`` old. ``waiting``
    sites were added and have no page yet. ``newest_pages`` are the newest pages, newest first.
    """

    pages: int = 0
    sites: tuple[FacetCount, ...] = ()
    kinds: tuple[FacetCount, ...] = ()
    languages: tuple[FacetCount, ...] = ()
    newest_s: float = 0.0
    median_age_s: float = 0.0
    waiting: int = 0
    newest_pages: tuple[SearchResult, ...] = ()


class CachedCopy(NamedTuple):
    """A cached copy of a page: decoded bytes and their type. ``text`` is its extracted text if it is not HTML."""

    url: str
    title: str
    fetched_s: float
    content_type: str
    body: bytes
    charset: str
    text: str


class SearchService(Protocol):
    """The search service over one data folder: quick (milliseconds) and safe to call from an event loop.

    ``allowed`` are the private sites (by their start) that the user may see; others are never revealed, neither in
    results nor in suggestions, counts or copies.
    """

    def search(self, wish: SearchRequest) -> Slate:
        """Search and return the results; never raises, whatever the query."""

    def suggest(self, typed: str, most: int, site: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Suggest completions of a query being typed, best first; ``site`` limits it to a host or host/path."""

    def get_overview(self, allowed: tuple[str, ...]) -> IndexOverview:
        """Return the numbers of the index for the start page and the filters."""

    def find_copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """Find the cached copy of a page; None if there is none, or its owner or site do not want it shown."""

    def find_page(self, url: str, allowed: tuple[str, ...]) -> int | None:
        """Find the page at a URL normalized by ``resolve``; None if none may be found."""

    def find_similar(self, id_: int, allowed: tuple[str, ...]) -> tuple[SearchResult, ...]:
        """Return the similar pages that are folded under a search result."""

    def list_sites(self) -> tuple[Site, ...]:
        """Return the operator's sites, with private ones: for access decisions, never for display."""

    def get_incomplete_reason(self) -> str:
        """Return why search results may be incomplete ("the index is being built"), or an empty text."""

    def list_failing(self) -> tuple[FailingProcess, ...]:
        """List the processes of the running tree that keep failing."""

    def count_exceeded(self) -> int:
        """Count the addresses and domains that reached the daily limit of requests."""

    def now_s(self) -> float:
        """Return the time of the crawled world, which may run faster than the wall clock."""
