"""A web's past by hand: for each page what it says from when on, when it dies, and where it leads."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from vedette.lab.worlds.history import History, Texts


class Life(NamedTuple):
    """What a page says from when on (in the order of time); infinity where it lives on."""

    says: Sequence[tuple[float, str]]
    died_s: float = np.inf
    links: tuple[int, ...] = ()


class Kept(Texts):
    """Texts in memory, which counts how often it is asked."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = tuple(texts)
        self.asked = 0

    def text(self, version: int) -> str:
        """What a version says."""
        self.asked += 1
        return self._texts[version]


def small_history(lives: Sequence[Life], end_s: float = 1e6) -> History:
    """The history of these pages, from time 0; all versions of a page have its links."""
    texts = [text for life in lives for _, text in life.says]
    page = np.repeat(np.arange(len(lives)), [len(life.says) for life in lives])
    links = [lives[one].links for one in page.tolist()]
    nothing = np.zeros(len(lives), np.int64)
    return History(
        name="small",
        begin_s=0.0,
        end_s=end_s,
        urls=[f"https://small.test/{at}" for at in range(len(lives))],
        site=nothing,
        kind=nothing.astype(np.uint8),
        born_s=np.array([life.says[0][0] for life in lives], np.float64),
        died_s=np.array([life.died_s for life in lives], np.float64),
        moved_to=nothing - 1,
        version_page=page,
        version_at_s=np.array([at_s for life in lives for at_s, _ in life.says], np.float64),
        digest=np.array([xxhash.xxh64_intdigest(text.encode()) | 1 for text in texts], np.uint64),
        words=np.array([len(text.split()) for text in texts], np.int64),
        wave=np.zeros(len(texts), bool),
        link_start=np.append(0, np.cumsum([len(to) for to in links], dtype=np.int64)),
        link_to=np.array([one for to in links for one in to], np.int64),
        texts=Kept(texts),
    )
