"""A web's whole past as arrays: which pages there were, what they said from when to when, and where they led.

Worlds of every kind become this: a git history, a made web, one's own crawl. It is for those who run experiments.
A policy never sees it: it is told what a fetch at a time would have brought (``HistoryFetcher``), and nothing of what
comes later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints

PAGE, FEED, SITEMAP = 0, 1, 2
Bools = npt.NDArray[np.bool_]
_NO_LINKS: Ints = np.zeros(0, np.int64)


class Texts:
    """The texts of versions, by number; a world without texts has none (every text is empty)."""

    def text(self, version: int) -> str:
        """What a version says: its words, without markup."""
        del version
        return ""


class MemoryTexts(Texts):
    """Texts that are held in memory."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def text(self, version: int) -> str:
        """Return the text of a version."""
        return self._texts[version]


class SelectedTexts(Texts):
    """The texts of some versions of another history, numbered in the given order."""

    def __init__(self, texts: Texts, versions: Ints) -> None:
        self._texts, self._versions = texts, versions

    def text(self, version: int) -> str:
        """Return the text of a version."""
        return self._texts.text(int(self._versions[version]))


@dataclass(frozen=True, slots=True)
class History:
    """Pages are numbered by birth. Versions are numbered by page, then by time; the first of a page is its birth.

    ``born_s`` to ``died_s`` (exclusive; infinity where it lives on) is a page's life; ``site`` is the site that it
    belongs to. ``moved_to`` is the page that took its place when it died, -1 where none did. A page that comes back
    after its death is a new page with the same URL. Version ``v`` of page ``version_page[v]`` holds from
    ``version_at_s[v]`` to the next one or the page's death; ``digest`` is equal for equal contents; ``wave`` marks a
    version that came with a change of many pages at once. Its links are ``link_to[link_start[v]:link_start[v + 1]]``:
    pages, each once, also such as are born later or are dead. ``missing`` counts what the record lacks.
    """

    name: str
    begin_s: float
    end_s: float
    urls: Sequence[str]
    site: Ints
    kind: npt.NDArray[np.uint8]
    born_s: Floats
    died_s: Floats
    moved_to: Ints
    version_page: Ints
    version_at_s: Floats
    digest: npt.NDArray[np.uint64]
    words: Ints
    wave: Bools
    link_start: Ints
    link_to: Ints
    site_names: Sequence[str] = ()
    missing: int = 0
    texts: Texts = field(default_factory=Texts)

    @property
    def pages(self) -> int:
        """How many there ever were."""
        return len(self.born_s)

    @property
    def first_version(self) -> Ints:
        """The number of each page's first version."""
        return np.searchsorted(self.version_page, np.arange(self.pages))

    @property
    def site_born_s(self) -> Floats:
        """When each site had its first page."""
        born_s = np.full(max(len(self.site_names), int(self.site.max(initial=-1)) + 1), np.inf)
        np.minimum.at(born_s, self.site, self.born_s)
        return born_s

    @property
    def version_end_s(self) -> Floats:
        """Until when each version holds: the time of the next one of its page, or the page's death."""
        ends_s = self.died_s[self.version_page]
        followed = self.version_page[:-1] == self.version_page[1:]
        ends_s[:-1][followed] = self.version_at_s[1:][followed]
        return ends_s

    def version_at(self, pages: Ints, now_s: float) -> Ints:
        """The version that each page has at a time; -1 where it does not live then."""
        first = np.searchsorted(self.version_page, pages)
        last = np.searchsorted(self.version_page, pages, side="right") - 1
        # All pages are bisected at once: between first and last lies the last version that is not of the future.
        for _ in range(int((last - first).max(initial=0)).bit_length()):
            middle = (first + last + 1) >> 1
            past = self.version_at_s[middle] <= now_s
            first, last = np.where(past, middle, first), np.where(past, last, middle - 1)
            last = np.maximum(first, last)
        alive = (self.born_s[pages] <= now_s) & (now_s < self.died_s[pages])
        return np.where(alive, first, -1)

    def live_pages_at(self, now_s: float) -> Ints:
        """The pages that live at a time."""
        return np.flatnonzero((self.born_s <= now_s) & (now_s < self.died_s))

    def links_of(self, version: int) -> Ints:
        """Where a version leads."""
        return self.link_to[self.link_start[version] : self.link_start[version + 1]]


class FetchAnswers(NamedTuple):
    """What fetches of some pages brought, a row each: the version (-1: gone), and its digest (0 where it is gone).

    ``links`` are the pages that each leads to. A link to a page that is not born yet leads nowhere yet, and is not
    among them: that there will be a page is news of the future.
    """

    pages: Ints
    version: Ints
    digest: npt.NDArray[np.uint64]
    links: tuple[Ints, ...]


class HistoryFetcher:
    """The only door through which a policy's fetches reach a world: it answers for now, and time goes forward only."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._now_s = history.begin_s
        self._links_complete_s = _links_complete_s(history)
        self.fetches = 0

    def fetch(self, pages: Ints, now_s: float) -> FetchAnswers:
        """What these pages answer now. Whoever asks for an earlier time than before is wrong, not early."""
        assert now_s >= self._now_s, "a fetch in the past"
        self._now_s = now_s
        self.fetches += len(pages)
        history = self._history
        version = history.version_at(pages, now_s)
        if not len(history.digest):
            return FetchAnswers(pages, version, np.zeros(len(pages), np.uint64), (_NO_LINKS,) * len(pages))
        digest = np.where(version >= 0, history.digest[np.maximum(version, 0)], np.uint64(0))
        return FetchAnswers(pages, version, digest, tuple(self._links(one, now_s) for one in version.tolist()))

    def _links(self, version: int, now_s: float) -> Ints:
        if version < 0:
            return _NO_LINKS
        links = self._history.links_of(version)
        return links if self._links_complete_s[version] <= now_s else links[self._history.born_s[links] <= now_s]


def _links_complete_s(history: History) -> Floats:
    """From when on all the pages that a version leads to were born."""
    complete_s = np.full(len(history.version_page), -np.inf)
    some = np.flatnonzero(history.link_start[1:] > history.link_start[:-1])
    if len(some):
        complete_s[some] = np.maximum.reduceat(history.born_s[history.link_to], history.link_start[some])
    return complete_s
