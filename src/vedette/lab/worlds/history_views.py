"""Views of a history: a window of its time, and the same web without rebuild waves.

Most changes of built sites are rebuild waves, which are easy to detect, so experiments run with and without them. A
version that came in a wave is left out, and its page continues unchanged; births stay, whatever they came with.
"""

from dataclasses import replace

import numpy as np

from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.worlds.history import Bools, History, SelectedTexts


def cut_window(history: History, begin_s: float, end_s: float) -> History:
    """Cut a history to a time window: its pages with their versions in it.

    Pages that died before are kept, with their last version, if live pages link to them: these are broken links. Pages
    born after the end are left out.
    """
    ends_s = history.version_end_s
    lives = (ends_s > begin_s) & (history.version_at_s < end_s)
    linked = np.zeros(history.pages, np.bool_)
    now = np.flatnonzero(lives)
    linked[history.link_to[concat_ranges(history.link_start[now], history.link_start[now + 1])]] = True
    last = np.searchsorted(history.version_page, np.arange(history.pages), side="right") - 1
    dead = np.flatnonzero(linked & (history.died_s <= begin_s))
    lives[last[dead]] = True
    versions = np.flatnonzero(lives)
    pages = np.unique(history.version_page[versions])
    place = np.full(history.pages, -1)
    place[pages] = np.arange(len(pages))
    sizes = history.link_start[versions + 1] - history.link_start[versions]
    to = place[history.link_to[concat_ranges(history.link_start[versions], history.link_start[versions + 1])]]
    counts = np.bincount(np.repeat(np.arange(len(versions)), sizes)[to >= 0], minlength=len(versions))
    moved_to = history.moved_to[pages]
    return replace(
        history,
        begin_s=begin_s,
        end_s=end_s,
        urls=[history.urls[page] for page in pages.tolist()],
        site=history.site[pages],
        kind=history.kind[pages],
        born_s=history.born_s[pages],
        died_s=history.died_s[pages],
        moved_to=np.where(moved_to >= 0, place[moved_to], -1),
        version_page=place[history.version_page[versions]],
        version_at_s=history.version_at_s[versions],
        digest=history.digest[versions],
        words=history.words[versions],
        wave=history.wave[versions],
        link_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        link_to=to[to >= 0],
        texts=SelectedTexts(history.texts, versions),
    )


def has_waves(history: History) -> bool:
    """Check whether a history has versions that came in rebuild waves."""
    return bool((history.wave & ~_birth_mask(history)).any())


def remove_waves(history: History) -> History:
    """Return a view of the history without the versions that came in rebuild waves."""
    left = np.flatnonzero(~history.wave | _birth_mask(history))
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
        link_to=history.link_to[concat_ranges(starts, ends)],
        texts=SelectedTexts(history.texts, left),
    )


def _birth_mask(history: History) -> Bools:
    births = np.zeros(len(history.version_page), np.bool_)
    births[history.first_version] = True
    return births
