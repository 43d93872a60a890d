"""A web's whole past as arrays: which pages there were, what they said from when to when, and where they led.

Worlds of every kind become this: a git history, a made web, one's own crawl. It is for those who run experiments.
A policy never sees it: it is told what a fetch at a time would have brought (``Asked``), and nothing of what comes
later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.decide import Floats, Ints

__all__ = ["FEED", "PAGE", "SITEMAP", "Answers", "Asked", "History", "Texts"]

PAGE, FEED, SITEMAP = 0, 1, 2
Bools = npt.NDArray[np.bool_]


class Texts:
    """The texts of versions, by number; a world without texts has none (every text is empty)."""

    def text(self, version: int) -> str:
        """What a version says: its words, without markup."""
        del version
        return ""


@dataclass(frozen=True, slots=True)
class History:
    """Pages are numbered by birth. Versions are numbered by page, then by time; the first of a page is its birth.

    ``born_s`` to ``died_s`` (exclusive; infinity where it lives on) is a page's life; ``site`` is the site that it
    belongs to, and ``site_born_s`` when that had its first page. ``moved_to`` is the page that took its place when it
    died, -1 where none did. Version ``v`` of page ``version_page[v]`` holds from ``version_at_s[v]`` to the next one or
    the page's death; ``digest`` is equal for equal contents; ``wave`` marks a version that came with a change of many
    pages at once. Its links are ``link_to[link_start[v]:link_start[v + 1]]``: pages, each once, also such as are born
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
        """How many there ever were."""
        return len(self.born_s)

    @property
    def first_version(self) -> Ints:
        """The number of each page's first version."""
        return np.searchsorted(self.version_page, np.arange(self.pages))

    def version_at(self, pages: Ints, now_s: float) -> Ints:
        """The version that each page has at a time; -1 where it does not live then."""
        # One sorted key: versions are sorted by page and time, so a page's own are a slice.
        starts = np.searchsorted(self.version_page, pages)
        ends = np.searchsorted(self.version_page, pages, side="right")
        found = np.full(len(pages), -1, np.int64)
        alive = (self.born_s[pages] <= now_s) & (now_s < self.died_s[pages])
        for row in np.flatnonzero(alive):
            at = starts[row] + np.searchsorted(self.version_at_s[starts[row] : ends[row]], now_s, side="right") - 1
            found[row] = at if at >= starts[row] else -1
        return found

    def alive_at(self, now_s: float) -> Ints:
        """The pages that live at a time."""
        return np.flatnonzero((self.born_s <= now_s) & (now_s < self.died_s))

    def links_of(self, version: int) -> Ints:
        """Where a version leads."""
        return self.link_to[self.link_start[version] : self.link_start[version + 1]]


class Answers(NamedTuple):
    """What fetches of some pages brought, a row each: the version (-1: gone), and its digest (0 where it is gone).

    ``links`` are the pages that each leads to.
    """

    pages: Ints
    version: Ints
    digest: npt.NDArray[np.uint64]
    links: tuple[Ints, ...]


class Asked:
    """The only door through which a policy's fetches reach a world: it answers for now, and time goes forward only."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._now_s = history.begin_s
        self.fetches = 0

    def fetch(self, pages: Ints, now_s: float) -> Answers:
        """What these pages answer now. Whoever asks for an earlier time than before is wrong, not early."""
        assert now_s >= self._now_s, "a fetch in the past"
        self._now_s = now_s
        self.fetches += len(pages)
        history = self._history
        version = history.version_at(pages, now_s)
        digest = np.where(version >= 0, history.digest[np.maximum(version, 0)], np.uint64(0))
        links = tuple(history.links_of(int(one)) if one >= 0 else np.zeros(0, np.int64) for one in version)
        return Answers(pages, version, digest, links)
