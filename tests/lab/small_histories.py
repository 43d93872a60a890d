"""Small webs that are written by hand, as histories."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vedette.lab.worlds.history import PAGE, History, Texts

END_S = 1e9


class V(NamedTuple):
    """A version: from when on it holds, where it leads, whether it came in a wave, what it says."""

    at_s: float
    links: tuple[int, ...] = ()
    wave: bool = False
    text: str = ""


class P(NamedTuple):
    """A page: its versions, its site, when it dies, its URL."""

    versions: Sequence[V]
    site: int = 0
    died_s: float = np.inf
    url: str = ""


class Spoken(Texts):
    """Texts that are simply there."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def text(self, version: int) -> str:
        """What a version says."""
        return self._texts[version]


def web(pages: Sequence[P], begin_s: float = 0.0, end_s: float = END_S) -> History:
    """A history of these pages, which stand in the order of their births."""
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
        texts=Spoken([version.text for _, version in versions]),
    )
