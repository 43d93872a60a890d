"""Store of impact estimates: expected search gain of first fetches of unseen URLs, as files beside the index.

index/expected         four bytes for each URL by its id, NaN without an estimate; memory-mapped
index/expected.places  averages of folders and branches, for URLs that are found later, and bounds of front queues
index/expected.links   an estimate of each URL by its importance alone; for display only
index/expected.json    how it was computed, for display

A background pass writes them, the coordinator reads them. Each is written atomically. A mixture of two passes does no
harm: both were correct a short time ago. A missing or damaged file counts as no estimate.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.adapters.files.atomic import replace_file, replace_text
from vedette.adapters.files.npz import UNREADABLE
from vedette.engine.ports import Ids
from vedette.frontier.impact.estimates import QUEUE_SHARES, assign_by_bounds, compute_bounds
from vedette.frontier.impact.group_means import pool_means
from vedette.frontier.impact.url_features import hash_folders
from vedette.policy import Floats, Ints

IMPACT_FILE, PLACES_FILE, LINKS_FILE, INFO_FILE = "expected", "expected.places", "expected.links", "expected.json"
MAX_PLACES = 200_000
Float32s = npt.NDArray[np.float32]


class PlaceAverages(NamedTuple):
    """Average impact estimates of URL folders and branches by ascending hash, of all, and front queue bounds."""

    folder: Ints
    of_folder: Floats
    branch: Ints
    of_branch: Floats
    usual: float
    bounds: Floats

    def estimate_gains(self, urls: Sequence[str]) -> Floats:
        """Estimate the impact of each URL: the average of its folder, else of its branch, else of all."""
        folder, branch = hash_folders(urls)
        by_branch = _look_up(self.branch, self.of_branch, branch, np.full(len(urls), self.usual))
        return _look_up(self.folder, self.of_folder, folder, by_branch)


def _look_up(keys: Ints, values: Floats, wanted: Ints, otherwise: Floats) -> Floats:
    if not len(keys):
        return otherwise
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], otherwise)


def average_places(folder: Ints, branch: Ints, gains: Floats, unseen: Floats) -> PlaceAverages:
    """Average impact by folder and branch, shrunk toward the mean of all; ``unseen`` gains set the queue bounds."""
    usual = float(gains.mean()) if len(gains) else 0.0
    return PlaceAverages(*_average(folder, gains), *_average(branch, gains), usual, compute_bounds(unseen))


def _average(number: Ints, gains: Floats) -> tuple[Ints, Floats]:
    """Average the impact of the folders or branches with the most URLs."""
    means = pool_means(number, gains)
    key = means.key[np.sort(np.argsort(-means.times, kind="stable")[:MAX_PLACES])]
    return key, means.lookup(key)


class ImpactEstimates:
    """The latest stored impact estimates, for the coordinator; ``refresh`` loads newer ones."""

    def __init__(self, index: Path) -> None:
        self._index = index
        self._written_ns = 0
        self._gains: Float32s = np.zeros(0, np.float32)
        self._places: PlaceAverages | None = None
        self.version = 0
        self.refresh()

    def refresh(self) -> bool:
        """Load newer impact estimates and return whether there were any."""
        written_ns = _file_version(self._index / IMPACT_FILE)
        if written_ns == self._written_ns:
            return False
        self._written_ns = written_ns
        self._gains, self._places = _read_gains(self._index / IMPACT_FILE), _read_places(self._index / PLACES_FILE)
        self.version = self.version + 1 if len(self._gains) else 0
        return True

    def get_known(self, ids: Ids) -> Floats:
        """Return the stored impact estimate of each URL; NaN if there is none."""
        gains = np.full(len(ids), np.nan)
        inside = np.flatnonzero(ids < len(self._gains))
        gains[inside] = self._gains[ids[inside]]
        gains[~(np.isfinite(gains) & (gains >= 0))] = np.nan
        return gains

    def get_gains(self, ids: Ids, urls: Sequence[str]) -> Floats:
        """Return the stored impact estimate of each URL, or else the average of its folder."""
        gains = self.get_known(ids)
        rest = np.flatnonzero(np.isnan(gains))
        if len(rest) and self._places is not None:
            gains[rest] = self._places.estimate_gains([urls[place] for place in rest.tolist()])
        return gains

    def get_front_queues(self, gains: Floats) -> Ints:
        """Assign front queues to impact estimates, by the bounds of the latest impact pass."""
        bounds = np.full(len(QUEUE_SHARES), np.inf) if self._places is None else self._places.bounds
        return assign_by_bounds(gains, bounds)


def write_estimates(index: Path, gains: Float32s, places: PlaceAverages, links: Float32s | None = None) -> None:
    """Write all impact estimates; the file that announces the pass (the array of gains) comes last."""
    if links is not None:
        with replace_file(index / LINKS_FILE) as file:
            np.save(file, links)
    with replace_file(index / PLACES_FILE) as file:
        np.savez(file, allow_pickle=False, **places._asdict())
    with replace_file(index / IMPACT_FILE) as file:
        np.save(file, gains)


def write_info(index: Path, info: Mapping[str, object]) -> None:
    """Write how the impact estimates were computed."""
    replace_text(index / INFO_FILE, json.dumps(info))


def read_info(index: Path) -> dict[str, Any] | None:
    """Read how the latest impact estimates were computed."""
    with suppress(OSError, ValueError):
        info = json.loads((index / INFO_FILE).read_text("utf-8"))
        return info if isinstance(info, dict) else None
    return None


def read_link_impact(index: Path, id_: int) -> float | None:
    """Read the impact estimate of a URL by its importance alone."""
    values = _read_gains(index / LINKS_FILE)
    return float(values[id_]) if id_ < len(values) and isfinite(values[id_]) else None


def delete_estimates(index: Path) -> None:
    """Delete all stored impact estimates."""
    for name in (IMPACT_FILE, PLACES_FILE, LINKS_FILE):
        (index / name).unlink(missing_ok=True)


def _file_version(path: Path) -> int:
    with suppress(OSError):
        about = path.stat()
        return about.st_mtime_ns ^ about.st_ino
    return 0


def _read_gains(path: Path) -> Float32s:
    with suppress(*UNREADABLE):
        mapped = np.lib.format.open_memmap(path, mode="r")
        if mapped.dtype == np.float32 and mapped.ndim == 1:
            return np.asarray(mapped.view(np.ndarray))
    return np.zeros(0, np.float32)


def _read_places(path: Path) -> PlaceAverages | None:
    with suppress(*UNREADABLE), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        folder, of_folder, branch, of_branch = (arrays[name] for name in PlaceAverages._fields[:4])
        places = PlaceAverages(folder, of_folder, branch, of_branch, float(arrays["usual"]), arrays["bounds"])
        is_sound = len(folder) == len(of_folder) and len(branch) == len(of_branch) and isfinite(places.usual)
        return places if is_sound and places.bounds.shape == QUEUE_SHARES.shape else None
    return None
