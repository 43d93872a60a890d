"""Random pasts of small webs, and what it means that two are the same."""

from dataclasses import fields

import numpy as np
from hypothesis import strategies as st

from vedette.lab.worlds.history import History, Texts

END_S = 100
WORDS = ("one", "zwei", "три", "四", "\n")


class Told(Texts):
    """Texts in memory."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def text(self, version: int) -> str:
        """The text as it is."""
        return self.texts[version]


def history_of(seed: int) -> History:
    """Some history: lives with versions in them, links to any pages; the same for the same seed."""
    rng = np.random.default_rng(seed)
    pages = int(rng.integers(1, 9))
    lives = sorted((np.unique(rng.integers(0, END_S, rng.integers(1, 7))).tolist() for _ in range(pages)), key=min)
    mortal = [len(life) > 1 and bool(rng.integers(2)) for life in lives]
    shown = [life[:-1] if dies else life for life, dies in zip(lives, mortal, strict=True)]
    count = sum(map(len, shown))
    links = [rng.permutation(pages)[: rng.integers(0, 5)] for _ in range(count)]
    words = [" ".join(WORDS[: rng.integers(len(WORDS))]) for _ in range(count)]
    return History(
        name="any",
        begin_s=0.0,
        end_s=float(END_S),
        urls=[f"https://example.org/{page}" for page in range(pages)],
        site=np.arange(pages) % 3,
        kind=np.zeros(pages, np.uint8),
        born_s=np.array([life[0] for life in lives], np.float64),
        died_s=np.array([life[-1] if dies else np.inf for life, dies in zip(lives, mortal, strict=True)], np.float64),
        moved_to=np.full(pages, -1),
        version_page=np.repeat(np.arange(pages), [len(life) for life in shown]),
        version_at_s=np.array([at for life in shown for at in life], np.float64),
        digest=np.arange(1, count + 1).astype(np.uint64),
        words=np.array([len(one.split()) for one in words], np.int64),
        wave=np.arange(count) % 2 == 0,
        link_start=np.cumsum([0, *map(len, links)]),
        link_to=np.concatenate(links),
        site_names=["a", "b", "c"],
        texts=Told(words),
    )


def histories() -> st.SearchStrategy[History]:
    """Any history. Drawn as a seed: to draw each number would take most of the time of a test."""
    return st.integers(0, 1 << 32).map(history_of)


def same(one: History, other: History) -> None:
    """Two histories agree in every column and text."""
    for field in fields(History):
        if field.name != "texts":
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name
    for version in range(len(one.version_page)):
        assert one.texts.text(version) == other.texts.text(version)
