"""Which pages the made web ever has, as arrays: addresses by birth, with how each changes and where it stands.

An address is a page: one that moves dies, and another is born in its place with the same text. Listings (home, feed,
sections) are pages, too, with numbers below 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import overload

import numpy as np
import numpy.typing as npt

from vedette.lab.worlds.synthetic import addresses
from vedette.lab.worlds.synthetic import page_traits as traits
from vedette.lab.worlds.synthetic.hashing import HashArray
from vedette.lab.worlds.synthetic.page_traits import CHANGE_LAWS, ChangeProcesses
from vedette.lab.worlds.synthetic.sites import Site
from vedette.policy import Floats, Ints

Bools = npt.NDArray[np.bool_]

HOME_NUMBER, FEED_NUMBER, SECTION_NUMBER = -1, -2, -3
"""The number of a listing; the second section's is one less than the first's, and so on."""


@dataclass(frozen=True, slots=True)
class SyntheticPages:
    """Columns of equal length: the site and the number in it, whether this is where it moved to, and so on.

    The two addresses of a page that moves have one number and one ``key``. ``moved_s`` is when a page leaves this one.
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
        """How each changes."""
        return ChangeProcesses(self.law, self.key, self.per_s)

    def select(self, rows: "Ints | Bools | slice") -> "SyntheticPages":
        """Some of them, in this order."""
        return SyntheticPages(*(getattr(self, column.name)[rows] for column in fields(self)))


def list_pages(sites: Sequence[Site], begin_s: float, end_s: float) -> SyntheticPages:
    """All addresses that live at some time of a span, by birth."""
    parts = [part for index, site in enumerate(sites) for part in _site_pages(index, site, begin_s, end_s)]
    pages = _concatenate(parts)
    return pages.select(np.argsort(pages.born_s, kind="stable"))


def _concatenate(parts: Sequence[SyntheticPages]) -> SyntheticPages:
    return SyntheticPages(
        *(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(SyntheticPages))
    )


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
    """The ordinary pages of a site, whatever their addresses."""
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
    """Home, feed and sections: as old as the site."""
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
    """The URL of each page, written when it is asked for: a million strings would take longer than all the rest."""

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
    written = addresses.moved_path if is_moved else addresses.page_path
    return written(site, number, traits.page_hash(site, number)).decode()
