"""Snapshot of a web at one moment: the live pages, each in its current version, and the links between them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.worlds.history import PAGE, History, SelectedTexts
from vedette.policy import Ints


class WebSnapshot(NamedTuple):
    """A web snapshot: a history of one version per page, and the links between the pages."""

    web: History
    source: Ints
    target: Ints


def take_snapshot(history: History, now_s: float) -> WebSnapshot:
    """Take a snapshot of a history's web: the pages alive at a moment, each in its current version."""
    alive = history.live_pages_at(now_s)
    alive = alive[history.kind[alive] == PAGE]
    version = history.version_at(alive, now_s)
    place = np.full(history.pages, -1, np.int64)
    place[alive] = np.arange(len(alive))
    starts, ends = history.link_start[version], history.link_start[version + 1]
    source, target = (
        np.repeat(np.arange(len(alive)), ends - starts),
        place[history.link_to[concat_ranges(starts, ends)]],
    )
    web = replace(
        history,
        urls=[history.urls[page] for page in alive.tolist()],
        **{name: getattr(history, name)[alive] for name in ("site", "kind", "born_s", "died_s")},
        moved_to=np.full(len(alive), -1, np.int64),
        version_page=np.arange(len(alive)),
        **{name: getattr(history, name)[version] for name in ("version_at_s", "digest", "words", "wave")},
        link_start=np.zeros(len(alive) + 1, np.int64),
        link_to=np.zeros(0, np.int64),
        texts=SelectedTexts(history.texts, version),
    )
    inside = (target >= 0) & (target != source)
    return WebSnapshot(web, source[inside], target[inside])
