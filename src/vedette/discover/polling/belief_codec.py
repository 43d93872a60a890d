"""What is believed of sources as a text, to be kept between two runs.

Who showed which link is left out: it would be most of it, and the next looks tell it again.
"""

import json
from base64 import b85decode, b85encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from vedette.discover.polling.arrivals import Arrivals, swell_of
from vedette.discover.polling.overlap import Belief

__all__ = ["Kept", "nothing_kept", "pack", "unpack"]

_ARRIVALS = ("host", "links", "hours", "looked_s", "down_s", "filled")
_RHYTHM = ("day", "week", "pace")
_OVERLAP = ("other", "shared", "tried")
_TYPES = frozenset({"<f8", "<i8"})


class Kept(NamedTuple):
    """A belief, and what its sources are: ids and hosts, last tries, and counts (looks, finds, failures in a row)."""

    belief: Belief
    ids: Sequence[int] = ()
    hosts: Sequence[int] = ()
    tried_s: Sequence[float] = ()
    counts: Sequence[tuple[int, ...]] = ()


def nothing_kept() -> Kept:
    """No source is known."""
    return Kept(Belief.none())


def pack(kept: Kept) -> str:
    """As a text.

    >>> unpack(pack(nothing_kept())).ids, unpack("nonsense").ids, unpack(None).ids
    ((), (), ())
    """
    arrivals, overlap = kept.belief
    columns = {name: getattr(arrivals, name) for name in _ARRIVALS}
    columns |= {name: getattr(arrivals.rhythm, name) for name in _RHYTHM}
    columns |= {name: getattr(overlap, name) for name in _OVERLAP}
    columns["reckoned_s"] = np.array([arrivals.rhythm.reckoned_s])
    columns["ids"], columns["hosts"] = (np.array(each, np.int64) for each in (kept.ids, kept.hosts))
    columns["tried_s"] = np.array(kept.tried_s, np.float64)
    columns["counts"] = np.array(kept.counts, np.int64).reshape(-1, 3)
    return json.dumps({name: _text_of(column) for name, column in columns.items()})


def unpack(text: str | None) -> Kept:
    """What was packed; nothing where there is nothing, or nothing that makes sense."""
    try:
        return _kept({name: _column(*told) for name, told in json.loads(text or "").items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return nothing_kept()


def _text_of(column: Any) -> tuple[str, Sequence[int], str]:  # noqa: ANN401 - an array of any shape
    return column.dtype.str, column.shape, b85encode(column.tobytes()).decode()


def _column(kind: str, shape: Sequence[int], text: str) -> Any:  # noqa: ANN401 - an array of any shape
    if kind not in _TYPES:
        raise ValueError(f"no column of {kind}")
    return np.frombuffer(b85decode(text), kind).reshape(shape).copy()


def _kept(columns: dict[str, Any]) -> Kept:
    fresh = Belief.none()
    told = {name: columns[name] for name in _RHYTHM}
    rhythm = replace(fresh.arrivals.rhythm, **told, reckoned_s=float(columns["reckoned_s"][0]))
    own = {name: columns[name] for name in _ARRIVALS}
    overlap = replace(fresh.overlap, **{name: columns[name] for name in _OVERLAP})
    ids, hosts, tried_s = (tuple(columns[name].tolist()) for name in ("ids", "hosts", "tried_s"))
    counts = tuple(tuple(row) for row in columns["counts"].tolist())
    belief = Belief(Arrivals(rhythm=rhythm, swell=swell_of(rhythm.pace), **own), overlap.reaching(len(own["host"])))
    if not len(ids) == len(hosts) == len(tried_s) == len(counts) >= len(belief.arrivals):
        raise ValueError("columns of different lengths")
    return Kept(belief, ids, hosts, tried_s, counts)
