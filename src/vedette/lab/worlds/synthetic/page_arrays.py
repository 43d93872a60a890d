"""Pages of the synthetic web as arrays: every URL by birth, and every change of each, bit for bit as served.

A URL is a page: one that moves dies, and another is born in its place with the same text. Listings (home, feed,
sections) are pages, too, with numbers below 0.

A window of a change process is determined by a hash of its number, so all windows of all pages are computed side by
side: what ``change_times.edit_state`` returns for one page at a time, ``list_changes`` returns for many for all time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from vedette.lab.worlds.history import Bools
from vedette.lab.worlds.synthetic import page_traits as traits
from vedette.lab.worlds.synthetic.change_times import EVENTS_PER_WINDOW, POISSON_CDF, RHYTHMS, START_S
from vedette.lab.worlds.synthetic.hashing import LCG_INCREMENT, LCG_MULTIPLIER, HashArray, fractions, mix_all
from vedette.lab.worlds.synthetic.page_traits import CHANGE_LAWS, ChangeProcesses
from vedette.lab.worlds.synthetic.sites import Site
from vedette.policy import Floats, Ints

HOME_NUMBER, FEED_NUMBER, SECTION_NUMBER = -1, -2, -3
"""The number of a listing; the second section's is one less than the first's, and so on."""


@dataclass(frozen=True, slots=True)
class SyntheticPages:
    """Arrays of synthetic pages, one row per URL: site, number in it, whether it is the moved URL, and so on.

    The two URLs of a page that moves have one number and one ``key``. ``moved_s`` is when a page leaves this one.
    """

    site: Ints
    number: Ints
    section: Ints
    is_moved: Bools
    born_s: Floats
    died_s: Floats
    moved_s: Floats
    law: Ints
    key: HashArray
    per_s: Floats
    paragraphs: Ints

    def __len__(self) -> int:
        return len(self.site)

    @property
    def process(self) -> ChangeProcesses:
        """Return the change processes of the page arrays."""
        return ChangeProcesses(self.law, self.key, self.per_s)

    def select(self, rows: "Ints | Bools | slice") -> "SyntheticPages":
        """Select rows of the page arrays, in this order."""
        return SyntheticPages(*(getattr(self, column.name)[rows] for column in fields(self)))


def list_pages(sites: Sequence[Site], begin_s: float, end_s: float) -> SyntheticPages:
    """List all synthetic page URLs alive at some time of a span as arrays, by birth."""
    parts = [part for index, site in enumerate(sites) for part in _site_pages(index, site, begin_s, end_s)]
    columns = ([getattr(part, one.name) for part in parts] for one in fields(SyntheticPages))
    pages = SyntheticPages(*map(np.concatenate, columns))
    return pages.select(np.argsort(pages.born_s, kind="stable"))


def _site_pages(index: int, site: Site, begin_s: float, end_s: float) -> tuple[SyntheticPages, ...]:
    texts = _article_pages(index, site, end_s)
    leaves = texts.moved_s < np.minimum(texts.died_s, end_s)
    moved = texts.select(leaves)
    moved = _replace_columns(
        moved, born_s=moved.moved_s, moved_s=np.full(len(moved), np.inf), is_moved=np.ones(len(moved), bool)
    )
    first = _replace_columns(
        texts, died_s=np.where(leaves, texts.moved_s, texts.died_s), moved_s=np.where(leaves, texts.moved_s, np.inf)
    )
    return _listing_pages(index, site), first.select(first.died_s > begin_s), moved.select(moved.died_s > begin_s)


def _replace_columns(pages: SyntheticPages, **columns: npt.NDArray[np.generic]) -> SyntheticPages:
    return SyntheticPages(**{one.name: columns.get(one.name, getattr(pages, one.name)) for one in fields(pages)})


def _article_pages(index: int, site: Site, end_s: float) -> SyntheticPages:
    """Return the ordinary (article) pages of a synthetic site as arrays, before moves are applied."""
    numbers = np.arange(site.births.count_born(end_s))
    born_s, died_s, moved_s = traits.lifetimes(site, numbers)
    process = traits.change_processes(site, numbers)
    return SyntheticPages(
        site=np.full(len(numbers), index),
        number=numbers,
        section=(traits.page_hashes(site, numbers) & np.uint64(255)).astype(np.int64) % len(site.sections),
        is_moved=np.zeros(len(numbers), bool),
        born_s=born_s,
        died_s=died_s,
        moved_s=moved_s,
        law=process.law,
        key=process.key,
        per_s=process.per_s,
        paragraphs=traits.paragraph_counts(site, numbers),
    )


def _listing_pages(index: int, site: Site) -> SyntheticPages:
    """Return the listing pages of a synthetic site (home, feed and sections) as arrays; as old as the site."""
    numbers = [HOME_NUMBER, *([FEED_NUMBER] if site.feed else [])]
    numbers += [SECTION_NUMBER - part for part in range(len(site.sections))]
    count = len(numbers)
    return SyntheticPages(
        site=np.full(count, index),
        number=np.array(numbers),
        section=np.array([max(SECTION_NUMBER - number, -1) for number in numbers]),
        is_moved=np.zeros(count, bool),
        born_s=np.full(count, site.births.birth_s(0)),
        died_s=np.full(count, np.inf),
        moved_s=np.full(count, np.inf),
        law=np.full(count, CHANGE_LAWS.index("never")),
        key=np.uint64(site.key) ^ np.array(numbers).astype(np.uint64),
        per_s=np.zeros(count),
        paragraphs=np.full(count, 1),
    )


class SyntheticUrls(Sequence[str]):
    """URLs of the page arrays, formatted on demand: a million strings would take longer than all the rest."""

    def __init__(self, sites: Sequence[Site], pages: SyntheticPages) -> None:
        self._sites = sites
        self._pages = pages

    def __len__(self) -> int:
        return len(self._pages)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        site = self._sites[self._pages.site[row]]
        return (
            f"http://{site.name}{_path(site, int(self._pages.number[row]), is_moved=bool(self._pages.is_moved[row]))}"
        )


def _path(site: Site, number: int, *, is_moved: bool) -> str:
    if number == HOME_NUMBER:
        return "/"
    if number == FEED_NUMBER:
        return "/feed.xml"
    if number < 0:
        return f"/section/{site.sections[SECTION_NUMBER - number].slug}"
    written = traits.moved_path if is_moved else traits.page_path
    return written(site, number, traits.page_hash(site, number)).decode()


POISSON, WORKING, PERIODIC = (CHANGE_LAWS.index(law) for law in ("poisson", "working", "periodic"))


class Changes(NamedTuple):
    """Change times of page arrays, unordered; ``row`` is the page's index among the given processes."""

    row: Ints
    at_s: Floats


def list_changes(process: ChangeProcesses, after_s: Floats, until_s: Floats) -> Changes:
    """List the changes of each page of the arrays after its own start time, up to its own end time."""
    parts = [
        _poisson_changes(process, np.flatnonzero(process.law == POISSON), after_s, until_s),
        _working_changes(process, np.flatnonzero(process.law == WORKING), after_s, until_s),
        _periodic_changes(process, np.flatnonzero(process.law == PERIODIC), after_s, until_s),
    ]
    return Changes(np.concatenate([part.row for part in parts]), np.concatenate([part.at_s for part in parts]))


def expand_ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Expand number ranges, ends included, into arrays: the range of each number, and the number.

    >>> ranges, numbers = expand_ranges(np.array([3, 7, 0]), np.array([4, 6, 0]))
    >>> ranges.tolist(), numbers.tolist()
    ([0, 0, 2], [3, 4, 0])
    """
    counts = np.maximum(last - first + 1, 0)
    ranges = np.repeat(np.arange(len(first)), counts)
    starts = np.cumsum(counts) - counts
    return ranges, first[ranges] + np.arange(len(ranges)) - starts[ranges]


def _poisson_changes(process: ChangeProcesses, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    found = _clock_changes(process, rows, after_s - START_S, until_s - START_S)
    return Changes(found.row, START_S + found.at_s)


def _working_changes(process: ChangeProcesses, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    """Return page changes by the working-hours Poisson process as arrays."""
    office = RHYTHMS["office"]
    low, high = np.zeros(len(after_s)), np.zeros(len(after_s))
    low[rows], high[rows] = office.clocks_at(after_s[rows] - START_S), office.clocks_at(until_s[rows] - START_S)
    found = _clock_changes(process, rows, low, high)
    return Changes(found.row, START_S + office.offsets_s(found.at_s))


def _clock_changes(process: ChangeProcesses, rows: Ints, low: Floats, high: Floats) -> Changes:
    """Return Poisson page changes between two readings of a clock as arrays, in that clock's readings."""
    width = EVENTS_PER_WINDOW / process.per_s[rows]
    first, last = np.floor(low[rows] / width).astype(np.int64), np.floor(high[rows] / width).astype(np.int64)
    place, window = expand_ranges(first, np.where(high[rows] > low[rows], last, first - 1))
    owner, events = _window_events(process.key[rows][place], window)
    row, at = rows[place[owner]], events * width[place[owner]]
    inside = (low[row] < at) & (at <= high[row])
    return Changes(row[inside], at[inside])


def _window_events(keys: HashArray, window: Ints) -> tuple[Ints, Floats]:
    """Return the change events of many windows as arrays: the window of each, and its position in windows."""
    state = mix_all(keys ^ window.astype(np.uint64))
    left = np.searchsorted(POISSON_CDF, fractions(state), side="right")
    owners, places = [], []
    open_ = np.arange(len(window))
    while len(open_ := open_[left[open_] > 0]):
        state[open_] = state[open_] * np.uint64(LCG_MULTIPLIER) + np.uint64(LCG_INCREMENT)
        left[open_] -= 1
        owners.append(open_)
        places.append(window[open_] + fractions(state[open_]))
    none: list[Ints] = [np.zeros(0, np.int64)]
    return np.concatenate(owners or none), np.concatenate(places or [np.zeros(0)])


def _periodic_changes(process: ChangeProcesses, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    per_s = process.per_s[rows]
    phase_s = START_S + fractions(process.key[rows]) / per_s
    first = np.floor((after_s[rows] - phase_s) * per_s).astype(np.int64) + 1
    last = np.floor((until_s[rows] - phase_s) * per_s).astype(np.int64)
    place, turn = expand_ranges(first, last)
    return Changes(rows[place], phase_s[place] + turn / per_s[place])
