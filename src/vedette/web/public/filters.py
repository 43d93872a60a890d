"""What the address of a results page asks for, and the addresses of its neighbours.

Everything in the address may have been typed by anybody: what makes no sense counts as not said.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from vedette.serve.slate import Wish
from vedette.web.formatting import DAY, kind_name, language_name, number
from vedette.web.ports import Count, Overview

__all__ = ["PAGE_SIZE", "Choice", "Option", "View", "choices", "view_of", "window"]

PAGE_SIZE: Final = 10
MOST_PAGES: Final = 100
LONGEST_QUERY: Final = 1_000
LONGEST_FILTER: Final = 300
AROUND: Final = 3
TIMES: Final = {
    "day": ("Past 24 hours", DAY),
    "week": ("Past week", 7 * DAY),
    "month": ("Past month", 31 * DAY),
    "year": ("Past year", 366 * DAY),
}


@dataclass(frozen=True, slots=True)
class View:
    """A results page as its address describes it."""

    query: str
    page: int = 1
    site: str = ""
    time: str = ""
    kind: str = ""
    language: str = ""
    folded: bool = True

    def wish(self, now_s: float, allowed: tuple[str, ...]) -> Wish:
        """What the search is asked for."""
        after_s = now_s - TIMES[self.time][1] if self.time else None
        return Wish(
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
        """Whether something was chosen beside the query."""
        return bool(self.site or self.time or self.kind or self.language)

    @property
    def address(self) -> str:
        """Where this page is; what is as usual is left out.

        >>> View("a&b", page=2, kind="pdf").address
        '/search?q=a%26b&page=2&type=pdf'
        """
        said = {
            "q": self.query,
            "page": str(self.page) if self.page > 1 else "",
            "site": self.site,
            "time": self.time,
            "type": self.kind,
            "lang": self.language,
            "similar": "" if self.folded else "0",
        }
        return "/search?" + urlencode({name: value for name, value in said.items() if value}, errors="replace")

    def at(self, page: int) -> str:
        """The address of another page of the same results."""
        return replace(self, page=page).address

    def asking(self, query: str) -> str:
        """The address of another query with the same filters."""
        return replace(self, query=query, page=1).address

    @property
    def unfiltered(self) -> str:
        """The address of the same query with nothing chosen beside it."""
        return View(self.query).address

    @property
    def one_by_one(self) -> str:
        """The address of the same query with copies folded where they are not, and not where they are."""
        return replace(self, page=1, folded=not self.folded).address


def view_of(params: QueryParams) -> View:
    """What an address asks for.

    >>> view_of(QueryParams("q=+lag+&page=-3&time=fortnight&type=PDF"))
    View(query='lag', page=1, site='', time='', kind='pdf', language='', folded=True)
    """
    time = params.get("time", "")
    return View(
        query=_clean(params.get("q", ""), LONGEST_QUERY),
        page=_page(params.get("page", "")),
        site=_clean(params.get("site", ""), LONGEST_FILTER).lower(),
        time=time if time in TIMES else "",
        kind=_clean(params.get("type", ""), LONGEST_FILTER).lower(),
        language=_clean(params.get("lang", ""), LONGEST_FILTER).lower(),
        folded=params.get("similar", "") != "0",
    )


def _clean(text: str, most: int) -> str:
    """One line of bounded length that any file and any page can hold."""
    whole = text[: 4 * most].encode(errors="replace").decode().replace("\0", " ")
    return " ".join(whole.split())[:most]


def _page(text: str) -> int:
    number_ = int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else 1
    return min(max(number_, 1), MOST_PAGES)


def window(page: int, total: int, shown: int) -> list[int]:
    """The numbers of the pages that are offered around this one; none where one page is all.

    >>> window(1, 128, 10), window(9, 128, 10), window(1, 4, 4), window(9, 5, 0)
    ([1, 2, 3, 4], [6, 7, 8, 9, 10, 11, 12], [], [])
    """
    last = min(-(-total // PAGE_SIZE), MOST_PAGES) if shown else 0
    numbers = list(range(max(1, page - AROUND), min(last, page + AROUND) + 1))
    return numbers if numbers and numbers != [page] else []


# --- what can be chosen ---


class Option(NamedTuple):
    """A value that can be chosen, and what people call it."""

    value: str
    words: str
    chosen: bool


class Choice(NamedTuple):
    """Something to choose: its name in the address, what it is called, and what there is."""

    name: str
    label: str
    options: tuple[Option, ...]


def choices(view: View, known: Overview) -> tuple[Choice, ...]:
    """The four filters of a results page. What was chosen is always among the options, known or not."""
    times = tuple(Option(value, words, value == view.time) for value, (words, _) in TIMES.items())
    return (
        Choice("time", "Time", (Option("", "Any time", not view.time), *times)),
        _choice("site", "Site", "All sites", view.site, known.sites, str),
        _choice("type", "Type", "Any type", view.kind, known.kinds, kind_name),
        _choice("lang", "Language", "Any language", view.language, known.languages, language_name),
    )


def _choice(
    name: str, label: str, every: str, chosen: str, counts: tuple[Count, ...], said: Callable[[str], str]
) -> Choice:
    options = [Option("", every, not chosen)]
    options += [Option(value, f"{said(value)} ({number(pages)})", value == chosen) for value, pages in counts if value]
    if not any(option.chosen for option in options):
        options.insert(1, Option(chosen, said(chosen), chosen=True))
    return Choice(name, label, tuple(options))
