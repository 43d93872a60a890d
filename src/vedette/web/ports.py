"""The search service that pages and API call; the runtime implements it over a data folder."""

from typing import NamedTuple, Protocol

from vedette.model import Site
from vedette.serve.slate import SearchRequest, SearchResult, Slate


class FacetCount(NamedTuple):
    """A value by which results can be filtered, and how many pages have it."""

    value: str
    pages: int


class IndexOverview(NamedTuple):
    """What the first page says: how many pages of which sites, how fresh; and by what results can be filtered.

    ``sites`` are hosts, the largest first, at most a hundred; private ones are not counted unless the reader may see
    them. ``newest_s`` is when the latest fetch was; ``median_age_s`` how old half of all pages are at most.
    ``waiting`` sites have been named and have no page yet. ``newest_pages`` are the newest pages, the newest first.
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
    """A page as it was fetched: decoded bytes and their type. ``text`` is what was read of it, where it is no HTML."""

    url: str
    title: str
    fetched_s: float
    content_type: str
    body: bytes
    charset: str
    text: str


class SearchService(Protocol):
    """Searching one data folder. All of it is quick (milliseconds) and safe to call from an event loop.

    ``allowed`` are the private sites (by their start) that the reader may see; what belongs to others is never told,
    neither in results nor in suggestions, counts or copies.
    """

    def search(self, wish: SearchRequest) -> Slate:
        """Results; never an error, whatever the query."""

    def suggest(self, typed: str, most: int, site: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """How what is being typed may go on, the best first; ``site`` limits it to a host or host/path."""

    def get_overview(self, allowed: tuple[str, ...]) -> IndexOverview:
        """Numbers for the first page and the filters."""

    def find_copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """The cached copy of a page; None where there is none, or its owner or its site do not want it shown."""

    def find_page(self, url: str, allowed: tuple[str, ...]) -> int | None:
        """The page at a URL, written as ``discover.normalize.resolve`` does; None where none is to be found."""

    def find_similar(self, id_: int, allowed: tuple[str, ...]) -> tuple[SearchResult, ...]:
        """The pages that are folded under a result."""

    def list_sites(self) -> tuple[Site, ...]:
        """The operator's sites, private ones too: for deciding who may see what, never for showing."""

    def get_incomplete_reason(self) -> str:
        """Why what is shown may be incomplete ("the index is being built"); empty where it is not."""

    def now_s(self) -> float:
        """The time, which may run faster than the wall's."""
