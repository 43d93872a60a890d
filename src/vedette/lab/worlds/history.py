"""History of a web as arrays: which pages existed, their content from when to when, and their links.

Worlds of every kind are converted to this: a git history, a synthetic web, your own crawl. A policy never sees it, but
only the result of a fetch at a time (``HistoryFetcher``), and nothing from later.
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
    """Texts of a history's page versions, by number; in a world without texts all are empty."""

    def text(self, version: int) -> str:
        """Return the text of a version in the history: its words, without markup."""
        del version
        return ""


class MemoryTexts(Texts):
    """Texts of a history's versions that are held in memory."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def text(self, version: int) -> str:
        """Return the text of a version from memory."""
        return self._texts[version]


class SelectedTexts(Texts):
    """Texts of selected versions of another history, renumbered in the given order."""

    def __init__(self, texts: Texts, versions: Ints) -> None:
        self._texts, self._versions = texts, versions

    def text(self, version: int) -> str:
        """Return the text of a selected version of another history."""
        return self._texts.text(int(self._versions[version]))


@dataclass(frozen=True, slots=True)
class History:
    """History of a web: pages numbered by birth, versions by page and then time, the first of a page at its birth.

    ``born_s`` to ``died_s`` (exclusive; infinity if it lives on) is a page's life; ``site`` is its site. ``moved_to``
    is the page that replaced it when it died, -1 for none. A page that comes back after its death is a new page with
    the same URL. Version ``v`` of page ``version_page[v]`` is current from ``version_at_s[v]`` to the next one or the
    page's death; ``digest`` is equal for equal contents; ``wave`` marks a version that came with a change of many pages
    at once. Its links are ``link_to[link_start[v]:link_start[v + 1]]``: pages, each once, including ones that are born
    later or are dead. ``missing`` counts what the record lacks.
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
        """Return the number of pages that the history ever had."""
        return len(self.born_s)

    @property
    def first_version(self) -> Ints:
        """Return the number of each page's first version in the history."""
        return np.searchsorted(self.version_page, np.arange(self.pages))

    @property
    def site_born_s(self) -> Floats:
        """Return when each site of the history had its first page."""
        born_s = np.full(max(len(self.site_names), int(self.site.max(initial=-1)) + 1), np.inf)
        np.minimum.at(born_s, self.site, self.born_s)
        return born_s

    @property
    def version_end_s(self) -> Floats:
        """Return until when each version of the history is current: its page's next version, or death."""
        ends_s = self.died_s[self.version_page]
        followed = self.version_page[:-1] == self.version_page[1:]
        ends_s[:-1][followed] = self.version_at_s[1:][followed]
        return ends_s

    def version_at(self, pages: Ints, now_s: float) -> Ints:
        """Return the version that each page of the history has at a time; -1 if it is not alive then."""
        first = np.searchsorted(self.version_page, pages)
        last = np.searchsorted(self.version_page, pages, side="right") - 1
        # All pages are bisected at once: the result is the last version that is not in the future.
        for _ in range(int((last - first).max(initial=0)).bit_length()):
            middle = (first + last + 1) >> 1
            past = self.version_at_s[middle] <= now_s
            first, last = np.where(past, middle, first), np.where(past, last, middle - 1)
            last = np.maximum(first, last)
        alive = (self.born_s[pages] <= now_s) & (now_s < self.died_s[pages])
        return np.where(alive, first, -1)

    def live_pages_at(self, now_s: float) -> Ints:
        """Return the pages of the history that are alive at a time."""
        return np.flatnonzero((self.born_s <= now_s) & (now_s < self.died_s))

    def links_of(self, version: int) -> Ints:
        """Return the pages that a version in the history links to."""
        return self.link_to[self.link_start[version] : self.link_start[version + 1]]


class FetchAnswers(NamedTuple):
    """Results of fetches from a history, one row each: the page's version (-1: gone) and its digest (0 if gone).

    ``links`` are the pages that each leads to. A link to a page that is not born yet leads nowhere yet, and is not
    among them: it would reveal the future.
    """

    pages: Ints
    version: Ints
    digest: npt.NDArray[np.uint64]
    links: tuple[Ints, ...]


class HistoryFetcher:
    """Fetcher through which a policy sees a history: it responds for the current time, which only moves forward."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._now_s = history.begin_s
        self._links_complete_s = _links_complete_s(history)
        self.fetches = 0

    def fetch(self, pages: Ints, now_s: float) -> FetchAnswers:
        """Fetch pages from the history as they are now; ``now_s`` never decreases."""
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
    """Return from when on all pages that each version of the history links to are born."""
    complete_s = np.full(len(history.version_page), -np.inf)
    some = np.flatnonzero(history.link_start[1:] > history.link_start[:-1])
    if len(some):
        complete_s[some] = np.maximum.reduceat(history.born_s[history.link_to], history.link_start[some])
    return complete_s
