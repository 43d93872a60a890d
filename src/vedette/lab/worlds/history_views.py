"""A web without its waves: as if nobody had ever changed more than a few pages at once.

Most changes of built sites are rebuild waves, and whoever notices a wave has an easy game. So experiments are played on
both. A version that came in a wave is left out, and its page goes on as it was; births stay, whatever they came with.
"""

from dataclasses import replace

import numpy as np

from vedette.lab.quality.corpus import ranges
from vedette.lab.worlds.history import Bools, History, Texts
from vedette.policy import Ints

__all__ = ["has_waves", "without_waves"]


class _Some(Texts):
    """The texts of those versions that are left."""

    def __init__(self, texts: Texts, versions: Ints) -> None:
        self._texts, self._versions = texts, versions

    def text(self, version: int) -> str:
        """What a version says."""
        return self._texts.text(int(self._versions[version]))


def has_waves(history: History) -> bool:
    """Whether anything would be left out."""
    return bool((history.wave & ~_births(history)).any())


def without_waves(history: History) -> History:
    """The same web without the versions that came in waves."""
    left = np.flatnonzero(~history.wave | _births(history))
    starts, ends = history.link_start[left], history.link_start[left + 1]
    return replace(
        history,
        name=f"{history.name} without waves",
        version_page=history.version_page[left],
        version_at_s=history.version_at_s[left],
        digest=history.digest[left],
        words=history.words[left],
        wave=history.wave[left],
        link_start=np.append(0, np.cumsum(ends - starts)),
        link_to=history.link_to[ranges(starts, ends)],
        texts=_Some(history.texts, left),
    )


def _births(history: History) -> Bools:
    births = np.zeros(len(history.version_page), np.bool_)
    births[history.first_version] = True
    return births
