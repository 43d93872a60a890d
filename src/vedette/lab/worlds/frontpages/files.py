"""Files of recorded front pages: load them with every check that experiments rely on, and save them.

A file is a numpy archive (.npz) of ``times`` (unix seconds), ``source``, ``target``, ``start``, ``stop`` (a row for
each time that a source showed a target; snapshot numbers, stop exclusive), ``observed`` (rows of snapshot, source and
links seen; 0 or no row at all: that scrape failed), ``source_host`` and ``source_name``.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vedette.errors import UsageError
from vedette.lab.worlds.frontpages.arrays import Frontpages
from vedette.policy import Ints

_NUMBERS = ("times", "source", "target", "start", "stop")
_NAMES = ("source_host", "source_name")
_EXPECTED = ", ".join((*_NUMBERS, "observed", *_NAMES))


def load_frontpages(path: Path, name: str) -> Frontpages:
    """Load recorded front pages from a .npz file; an invalid file is refused with what was expected."""
    try:
        return _parse_arrays(_read_arrays(path), name)
    except _FormatError as wrong:
        raise UsageError(
            f"{path.name} is not a recording of front pages: {wrong} (expected: an .npz file with {_EXPECTED})"
        ) from None


def save_frontpages(world: Frontpages, path: Path) -> None:
    """Save recorded front pages to a .npz file that ``load_frontpages`` reads back as the same world."""
    snapshot, source = np.nonzero(world.ok)
    seen = _count_links(world.source, world.start, world.stop, world.ok.shape)[snapshot, source]
    hosts = [world.host_names[each] for each in world.host]
    columns = {each: getattr(world, each).astype(np.int32) for each in _NUMBERS[1:]}
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            times=world.times,
            observed=np.column_stack([snapshot, source, seen]).astype(np.int32),
            source_host=np.array(hosts, dtype=np.str_),
            source_name=np.array(world.source_names, dtype=np.str_),
            **columns,
        )


class _FormatError(Exception):
    """Error: what is wrong with a file of recorded front pages, in words."""


def _read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {each: archive[each] for each in archive.files}
    except FileNotFoundError:
        raise _FormatError("no such file") from None
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise _FormatError("cannot be read") from error


def _parse_arrays(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> Frontpages:
    times, source, target, start, stop = (_integer_column(arrays, each, 1) for each in _NUMBERS)
    observed = _integer_column(arrays, "observed", 2)
    host_of, names = (_string_column(arrays, each) for each in _NAMES)
    _require(len(names) == len(host_of), "source_host and source_name differ in length")
    _require(len(times) > 0 and bool(np.all(np.diff(times) > 0)), "times do not increase")
    _check_rows(source, target, start, stop, (len(times), len(names)))
    ok = _parse_observed(observed, _count_links(source, start, stop, (len(times), len(names))))
    hosts = tuple(dict.fromkeys(host_of))
    host = np.array([hosts.index(each) for each in host_of], np.int64)
    targets = int(target.max(initial=-1)) + 1
    return Frontpages(name, times, source, target, start, stop, ok, host, names, hosts, targets)


def _check_rows(source: Ints, target: Ints, start: Ints, stop: Ints, shape: tuple[int, int]) -> None:
    snapshots, sources = shape
    _require(len({len(each) for each in (source, target, start, stop)}) == 1, "rows differ in length")
    _require(bool(np.all((source >= 0) & (source < sources))), "a row has a source that does not exist")
    # Every target has a row, so there are no more of them: a file cannot claim more memory than its size.
    _require(bool(np.all((target >= 0) & (target < len(target)))), "targets are not numbered from 0 without gaps")
    _require(bool(np.all((start >= 0) & (start < stop) & (stop <= snapshots))), "a row ends before it starts")
    order = np.lexsort((start, target, source))
    same = (np.diff(source[order]) == 0) & (np.diff(target[order]) == 0)
    _require(not np.any(same & (start[order][1:] < stop[order][:-1])), "a source shows a target twice at the same time")


def _parse_observed(observed: Ints, seen: Ints) -> npt.NDArray[np.bool_]:
    """Parse which front page scrapes succeeded, checked against the counts of links shown."""
    _require(observed.shape[1] == 3, "observed does not have three columns")
    _require(
        bool(np.all((observed[:, :2] >= 0) & (observed[:, :2] < seen.shape))),
        "observed has a source or snapshot that does not exist",
    )
    values = np.full(seen.shape, -1, np.int64)
    values[observed[:, 0], observed[:, 1]] = observed[:, 2]
    _require(int(np.count_nonzero(values >= 0)) == len(observed), "observed has duplicate or negative values")
    ok: npt.NDArray[np.bool_] = values > 0
    _require(bool(np.all(values[ok] == seen[ok])), "observed does not match the links of the rows")
    return ok


def _count_links(source: Ints, start: Ints, stop: Ints, shape: tuple[int, ...]) -> Ints:
    """Count how many targets each front page source shows at each snapshot, to check a file."""
    steps = np.zeros((shape[0] + 1, shape[1]), np.int64)
    np.add.at(steps, (start, source), 1)
    np.subtract.at(steps, (stop, source), 1)
    return np.cumsum(steps, axis=0)[:-1]


def _integer_column(arrays: Mapping[str, npt.NDArray[Any]], name: str, dimensions: int) -> Ints:
    _require(name in arrays, f"{name} is missing")
    column = arrays[name]
    _require(column.dtype.kind in "iu" and column.ndim == dimensions, f"{name} has the wrong shape or type")
    return column.astype(np.int64)


def _string_column(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> tuple[str, ...]:
    _require(name in arrays, f"{name} is missing")
    _require(arrays[name].dtype.kind == "U" and arrays[name].ndim == 1, f"{name} has the wrong shape or type")
    return tuple(arrays[name].tolist())


def _require(fits: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
    if not fits:
        raise _FormatError(otherwise)
