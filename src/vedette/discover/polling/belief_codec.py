"""Encode beliefs about discovery sources (the accrual state) as text, to be stored between two runs.

Which source showed which link is left out: it would be most of the text, and the next polls show it again.
"""

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from vedette.discover.polling.arrivals import ArrivalModel, compute_weekly_fill
from vedette.discover.polling.overlap import AccrualState
from vedette.discover.polling.sources import PollHistory

_ARRIVALS = ("host", "links", "hours", "looked_s", "down_s", "filled")
_RHYTHM = ("day", "week", "pace")
_OVERLAP = ("other", "shared", "tried")
_COUNTS = ("polls", "found", "failures")
# Compression level of columns: fast, since they are mostly zeros and NaN.
_PACKED, _LEVEL = "zlib", 1
_COLUMN_TYPES = frozenset({"<f8", "<i8"})
# Exceptions raised by decoding a damaged text.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, zlib.error)


class StoredAccrual(NamedTuple):
    """Stored beliefs about discovery sources, with the sources' ids and the history of their polls."""

    state: AccrualState
    ids: Sequence[int]
    history: PollHistory


def create_empty() -> StoredAccrual:
    """Return stored beliefs about no discovery source."""
    return StoredAccrual(AccrualState.empty(), (), PollHistory(np.zeros(0, np.int64), is_numbered=True))


def pack(kept: StoredAccrual) -> str:
    """Encode beliefs about discovery sources as text.

    >>> unpack(pack(create_empty())).ids, unpack("nonsense").ids, unpack(None).ids
    ((), (), ())
    """
    (arrivals, overlap), polls = kept.state, kept.history.to_columns()
    columns = {name: getattr(arrivals, name) for name in _ARRIVALS}
    columns |= {name: getattr(arrivals.rhythm, name) for name in _RHYTHM}
    columns |= {name: getattr(overlap, name) for name in _OVERLAP}
    columns["reckoned_s"] = np.array([arrivals.rhythm.computed_s])
    columns["ids"], columns["hosts"] = np.array(kept.ids, np.int64), polls["host"]
    columns["tried_s"], columns["poll_s"] = polls["last_poll_s"], polls["poll_s"]
    columns["counts"] = np.stack([polls[name] for name in _COUNTS], axis=1)
    return pack_columns(columns)


def pack_columns(columns: Mapping[str, Any]) -> str:
    """Encode arrays by name as text."""
    return json.dumps({name: _encode_column(column) for name, column in columns.items()})


def unpack_columns(text: str) -> dict[str, Any]:
    """Decode arrays by name from text; raise ``UNREADABLE`` if it is invalid."""
    return {name: _decode_column(*told) for name, told in json.loads(text).items()}


def unpack(text: str | None) -> StoredAccrual:
    """Decode beliefs about discovery sources from text; empty if it is missing or invalid."""
    try:
        return _build_stored(unpack_columns(text or ""))
    except UNREADABLE:
        return create_empty()


def _encode_column(column: Any) -> tuple[str, Sequence[int], str, str]:  # noqa: ANN401 - an array of any shape
    return column.dtype.str, column.shape, b85encode(zlib.compress(column.tobytes(), _LEVEL)).decode(), _PACKED


def _decode_column(kind: str, shape: Sequence[int], text: str, how: str = "") -> Any:  # noqa: ANN401 - of any shape
    if kind not in _COLUMN_TYPES:
        raise ValueError(f"no column of {kind}")
    raw = b85decode(text)  # until version 9 of data folders columns were not compressed
    return np.frombuffer(zlib.decompress(raw) if how == _PACKED else raw, kind).reshape(shape).copy()


def _build_stored(columns: dict[str, Any]) -> StoredAccrual:
    fresh = AccrualState.empty()
    told = {name: columns[name] for name in _RHYTHM}
    rhythm = replace(fresh.arrivals.rhythm, **told, computed_s=float(columns["reckoned_s"][0]))
    own = {name: columns[name] for name in _ARRIVALS}
    overlap = replace(fresh.overlap, **{name: columns[name] for name in _OVERLAP})
    belief = AccrualState(
        ArrivalModel(rhythm=rhythm, weekly_fill=compute_weekly_fill(rhythm.pace), **own),
        overlap.grow_copy(len(own["host"])),
    )
    ids, counts = tuple(columns["ids"].tolist()), columns["counts"]
    if not len(ids) == len(columns["hosts"]) == len(columns["tried_s"]) == len(counts) >= len(belief.arrivals):
        raise ValueError("columns of different lengths")
    polls = PollHistory(columns["hosts"], is_numbered=True).to_columns()
    polls |= {"last_poll_s": columns["tried_s"], **{name: counts[:, column] for column, name in enumerate(_COUNTS)}}
    # Older texts lack the times of polls before the last one.
    tried_s = columns["tried_s"]
    polls["poll_s"][:, 0] = np.where(np.isfinite(tried_s), tried_s, np.nan)
    return StoredAccrual(
        belief, ids, PollHistory.from_columns(polls | {"poll_s": columns.get("poll_s", polls["poll_s"])})
    )
