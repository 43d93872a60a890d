"""The query string of a results page: parsing, filters, and links to neighboring pages.

Anything in the URL may have been typed by anyone: invalid values count as missing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from vedette.serve.slate import SearchRequest
from vedette.web.formatting import DAY, kind_name, language_name, number
from vedette.web.ports import FacetCount, IndexOverview

PAGE_SIZE: Final = 10
MAX_PAGES: Final = 100
MAX_QUERY: Final = 1_000
MAX_FILTER: Final = 300
PAGE_LINKS_AROUND: Final = 3
TIME_FILTERS: Final = {
    "day": ("Past 24 hours", DAY),
    "week": ("Past week", 7 * DAY),
    "month": ("Past month", 31 * DAY),
    "year": ("Past year", 366 * DAY),
}


@dataclass(frozen=True, slots=True)
class ResultsQuery:
    """The query, filters and page number of a results page, as its URL describes it."""

    query: str
    page: int = 1
    site: str = ""
    time: str = ""
    kind: str = ""
    language: str = ""
    folded: bool = True

    def to_search_request(self, now_s: float, allowed: tuple[str, ...]) -> SearchRequest:
        """Return the search request of this results page."""
        after_s = now_s - TIME_FILTERS[self.time][1] if self.time else None
        return SearchRequest(
            self.query,
            n=PAGE_SIZE,
            page=self.page,
            site=self.site,
            kind=self.kind,
            language=self.language,
            after_s=after_s,
            allowed=allowed,
            folded=self.folded,
        )

    @property
    def is_filtered(self) -> bool:
        """Check whether a filter was chosen besides the query."""
        return bool(self.site or self.time or self.kind or self.language)

    @property
    def address(self) -> str:
        """Return the URL of this results page; default values are left out.

        >>> ResultsQuery("a&b", page=2, kind="pdf").address
        '/search?q=a%26b&page=2&type=pdf'
        """
        params = {
            "q": self.query,
            "page": str(self.page) if self.page > 1 else "",
            "site": self.site,
            "time": self.time,
            "type": self.kind,
            "lang": self.language,
            "similar": "" if self.folded else "0",
        }
        return "/search?" + urlencode({name: value for name, value in params.items() if value}, errors="replace")

    def at(self, page: int) -> str:
        """Return the URL of another page of the same results."""
        return replace(self, page=page).address

    def with_query(self, query: str) -> str:
        """Return the results page URL of another query with the same filters."""
        return replace(self, query=query, page=1).address

    @property
    def unfiltered(self) -> str:
        """Return the results page URL of the same query without filters."""
        return ResultsQuery(self.query).address

    @property
    def one_by_one(self) -> str:
        """Return the results page URL of the same query with the folding of similar pages toggled."""
        return replace(self, page=1, folded=not self.folded).address


def parse_results_query(params: QueryParams) -> ResultsQuery:
    """Parse the query string of a results page; invalid values count as missing.

    >>> parse_results_query(QueryParams("q=+lag+&page=-3&time=fortnight&type=PDF"))
    ResultsQuery(query='lag', page=1, site='', time='', kind='pdf', language='', folded=True)
    """
    time = params.get("time", "")
    return ResultsQuery(
        query=_clean_text(params.get("q", ""), MAX_QUERY),
        page=_parse_page(params.get("page", "")),
        site=_clean_text(params.get("site", ""), MAX_FILTER).lower(),
        time=time if time in TIME_FILTERS else "",
        kind=_clean_text(params.get("type", ""), MAX_FILTER).lower(),
        language=_clean_text(params.get("lang", ""), MAX_FILTER).lower(),
        folded=params.get("similar", "") != "0",
    )


def _clean_text(text: str, most: int) -> str:
    """Clean a query string value of a results page: one line of bounded length without invalid characters."""
    whole = text[: 4 * most].encode(errors="replace").decode().replace("\0", " ")
    return " ".join(whole.split())[:most]


def _parse_page(text: str) -> int:
    number_ = int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else 1
    return min(max(number_, 1), MAX_PAGES)


def list_page_numbers(page: int, total: int, shown: int) -> list[int]:
    """Return the page numbers to link to around a results page; none if there is only one page.

    >>> list_page_numbers(1, 128, 10), list_page_numbers(9, 128, 10)
    ([1, 2, 3, 4], [6, 7, 8, 9, 10, 11, 12])
    >>> list_page_numbers(1, 4, 4), list_page_numbers(9, 5, 0)
    ([], [])
    """
    last = min(-(-total // PAGE_SIZE), MAX_PAGES) if shown else 0
    numbers = list(range(max(1, page - PAGE_LINKS_AROUND), min(last, page + PAGE_LINKS_AROUND) + 1))
    return numbers if numbers and numbers != [page] else []


# --- what can be chosen ---


class FilterOption(NamedTuple):
    """An option of a results page filter: its value and its label."""

    value: str
    words: str
    chosen: bool


class FilterChoice(NamedTuple):
    """A filter of the results page: its query parameter, its label and its options."""

    name: str
    label: str
    options: tuple[FilterOption, ...]


def build_choices(view: ResultsQuery, overview: IndexOverview) -> tuple[FilterChoice, ...]:
    """Build the four filters of a results page; the chosen value is always among the options."""
    times = tuple(FilterOption(value, words, value == view.time) for value, (words, _) in TIME_FILTERS.items())
    return (
        FilterChoice("time", "Time", (FilterOption("", "Any time", not view.time), *times)),
        _build_choice("site", "Site", "All sites", view.site, overview.sites, str),
        _build_choice("type", "Type", "Any type", view.kind, overview.kinds, kind_name),
        _build_choice("lang", "Language", "Any language", view.language, overview.languages, language_name),
    )


def _build_choice(
    name: str, label: str, every: str, chosen: str, counts: tuple[FacetCount, ...], describe: Callable[[str], str]
) -> FilterChoice:
    options = [FilterOption("", every, not chosen)]
    options += [
        FilterOption(value, f"{describe(value)} ({number(pages)})", value == chosen) for value, pages in counts if value
    ]
    if not any(option.chosen for option in options):
        options.insert(1, FilterOption(chosen, describe(chosen), chosen=True))
    return FilterChoice(name, label, tuple(options))
