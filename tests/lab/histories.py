"""Histories of small webs: written by hand, drawn at random, and compared."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import xxhash
from hypothesis import strategies as st

from vedette.lab.worlds.history import PAGE, History, MemoryTexts

END_S = 100
WORDS = ("one", "zwei", "три", "四", "\n")


class V(NamedTuple):
    """A version: its start time, its links, whether it came in a wave, and its text."""

    at_s: float
    links: Sequence[int] = ()
    wave: bool = False
    text: str = ""


class P(NamedTuple):
    """A page: its versions, its site, when it dies, and its URL."""

    versions: Sequence[V]
    site: int = 0
    died_s: float = np.inf
    url: str = ""


class Life(NamedTuple):
    """The versions of a page by time, and its end; infinity if it stays."""

    says: Sequence[tuple[float, str]]
    died_s: float = np.inf
    links: tuple[int, ...] = ()


class Kept(MemoryTexts):
    """Texts in memory that count how often they are read."""

    asked = 0

    def text(self, version: int) -> str:
        """Return the text of a version."""
        self.asked += 1
        return super().text(version)


def web(pages: Sequence[P], begin_s: float = 0.0, end_s: float = 1e9) -> History:
    """Return a history of these pages in order of birth; no two versions have the same digest."""
    versions = [(number, version) for number, page in enumerate(pages) for version in page.versions]
    links = [link for _, version in versions for link in version.links]
    return History(
        name="by hand",
        begin_s=begin_s,
        end_s=end_s,
        urls=[page.url or f"http://host{page.site}/{number}" for number, page in enumerate(pages)],
        site=np.array([page.site for page in pages], np.int64),
        kind=np.full(len(pages), PAGE, np.uint8),
        born_s=np.array([page.versions[0].at_s for page in pages], np.float64),
        died_s=np.array([page.died_s for page in pages], np.float64),
        moved_to=np.full(len(pages), -1, np.int64),
        version_page=np.array([number for number, _ in versions], np.int64),
        version_at_s=np.array([version.at_s for _, version in versions], np.float64),
        digest=np.arange(1, len(versions) + 1, dtype=np.uint64),
        words=np.array([len(version.text.split()) for _, version in versions], np.int64),
        wave=np.array([version.wave for _, version in versions], bool),
        link_start=np.cumsum([0, *(len(version.links) for _, version in versions)]).astype(np.int64),
        link_to=np.array(links, np.int64),
        texts=Kept([version.text for _, version in versions]),
    )


def small_history(lives: Sequence[Life], end_s: float = 1e6) -> History:
    """Return the history of these pages from time 0.

    All versions of a page have its links, equal texts have equal digests.
    """
    pages = [
        P([V(at_s, life.links, text=text) for at_s, text in life.says], 0, life.died_s, f"https://small.test/{number}")
        for number, life in enumerate(lives)
    ]
    digests = [xxhash.xxh64_intdigest(text.encode()) | 1 for life in lives for _, text in life.says]
    return replace(web(pages, end_s=end_s), name="small", digest=np.array(digests, np.uint64))


def history_of(seed: int) -> History:
    """Return a random history with versions and links between any pages; the same seed gives the same one."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 9))
    lives = sorted((np.unique(rng.integers(0, END_S, rng.integers(1, 7))).tolist() for _ in range(count)), key=min)
    mortal = [len(life) > 1 and bool(rng.integers(2)) for life in lives]
    pages = [
        P(
            [_any_version(at_s, count, rng) for at_s in (life[:-1] if dies else life)],
            number % 3,
            life[-1] if dies else np.inf,
            f"https://example.org/{number}",
        )
        for number, (life, dies) in enumerate(zip(lives, mortal, strict=True))
    ]
    history = web(pages, end_s=float(END_S))
    return replace(history, wave=np.arange(len(history.wave)) % 2 == 0, site_names=["a", "b", "c"])


def _any_version(at_s: float, pages: int, rng: np.random.Generator) -> V:
    links = rng.permutation(pages)[: rng.integers(0, 5)].tolist()
    return V(at_s, links, text=" ".join(WORDS[: rng.integers(len(WORDS))]))


def histories() -> st.SearchStrategy[History]:
    """Generate any history from a seed, because drawing each number would take most of a test's time."""
    return st.integers(0, 1 << 32).map(history_of)


def same(one: History, other: History) -> None:
    """Check that two histories agree in every column and text."""
    for field in fields(History):
        if field.name != "texts":
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name
    for version in range(len(one.version_page)):
        assert one.texts.text(version) == other.texts.text(version)
