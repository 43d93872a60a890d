"""Encode beliefs about discovery sources (the accrual state) as text, to be stored between two runs.

Which source showed which link is left out: it would be most of the text, and the next polls say it again.
"""

import json
from base64 import b85decode, b85encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from vedette.discover.polling.arrivals import ArrivalModel, compute_weekly_fill
from vedette.discover.polling.overlap import AccrualState

_ARRIVALS = ("host", "links", "hours", "looked_s", "down_s", "filled")
_RHYTHM = ("day", "week", "pace")
_OVERLAP = ("other", "shared", "tried")
_COLUMN_TYPES = frozenset({"<f8", "<i8"})


class StoredAccrual(NamedTuple):
    """Stored beliefs about discovery sources.

    With the sources' ids and hosts, last tries, and counts (polls, finds, failures in a row).
    """

    state: AccrualState
    ids: Sequence[int] = ()
    hosts: Sequence[int] = ()
    last_try_s: Sequence[float] = ()
    counts: Sequence[tuple[int, ...]] = ()


def create_empty() -> StoredAccrual:
    """Return stored beliefs about no discovery source."""
    return StoredAccrual(AccrualState.empty())


def pack(kept: StoredAccrual) -> str:
    """Encode beliefs about discovery sources as text.

    >>> unpack(pack(create_empty())).ids, unpack("nonsense").ids, unpack(None).ids
    ((), (), ())
    """
    arrivals, overlap = kept.state
    columns = {name: getattr(arrivals, name) for name in _ARRIVALS}
    columns |= {name: getattr(arrivals.rhythm, name) for name in _RHYTHM}
    columns |= {name: getattr(overlap, name) for name in _OVERLAP}
    columns["reckoned_s"] = np.array([arrivals.rhythm.computed_s])
    columns["ids"], columns["hosts"] = (np.array(each, np.int64) for each in (kept.ids, kept.hosts))
    columns["tried_s"] = np.array(kept.last_try_s, np.float64)
    columns["counts"] = np.array(kept.counts, np.int64).reshape(-1, 3)
    return json.dumps({name: _encode_column(column) for name, column in columns.items()})


def unpack(text: str | None) -> StoredAccrual:
    """Decode beliefs about discovery sources from text; empty where there is none, or it makes no sense."""
    try:
        return _build_stored({name: _decode_column(*told) for name, told in json.loads(text or "").items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return create_empty()


def _encode_column(column: Any) -> tuple[str, Sequence[int], str]:  # noqa: ANN401 - an array of any shape
    return column.dtype.str, column.shape, b85encode(column.tobytes()).decode()


def _decode_column(kind: str, shape: Sequence[int], text: str) -> Any:  # noqa: ANN401 - an array of any shape
    if kind not in _COLUMN_TYPES:
        raise ValueError(f"no column of {kind}")
    return np.frombuffer(b85decode(text), kind).reshape(shape).copy()


def _build_stored(columns: dict[str, Any]) -> StoredAccrual:
    fresh = AccrualState.empty()
    told = {name: columns[name] for name in _RHYTHM}
    rhythm = replace(fresh.arrivals.rhythm, **told, computed_s=float(columns["reckoned_s"][0]))
    own = {name: columns[name] for name in _ARRIVALS}
    overlap = replace(fresh.overlap, **{name: columns[name] for name in _OVERLAP})
    ids, hosts, tried_s = (tuple(columns[name].tolist()) for name in ("ids", "hosts", "tried_s"))
    counts = tuple(tuple(row) for row in columns["counts"].tolist())
    belief = AccrualState(
        ArrivalModel(rhythm=rhythm, weekly_fill=compute_weekly_fill(rhythm.pace), **own),
        overlap.grow_copy(len(own["host"])),
    )
    if not len(ids) == len(hosts) == len(tried_s) == len(counts) >= len(belief.arrivals):
        raise ValueError("columns of different lengths")
    return StoredAccrual(belief, ids, hosts, tried_s, counts)
