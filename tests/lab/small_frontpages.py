"""Small recordings of front pages: written by hand, and drawn."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from vedette.lab.worlds.frontpages import Frontpages

HOUR_S = 3_600
BEGIN_S = 1_650_000_000
Row = tuple[int, int, int, int]


def front(
    rows: Sequence[Row],
    snapshots: int,
    hosts: Sequence[int],
    failed: Sequence[tuple[int, int]] = (),
) -> Frontpages:
    """Return hourly snapshots of sources with these hosts; a row is source, target, start, stop.

    ``failed`` are scrapes.
    """
    source, target, start, stop = np.array(rows, np.int64).reshape(-1, 4).T
    ok = np.ones((snapshots, len(hosts)), bool)
    for snapshot, one in failed:
        ok[snapshot, one] = False
    return Frontpages(
        name="by hand",
        times=BEGIN_S + HOUR_S * np.arange(snapshots),
        source=source,
        target=target,
        start=start,
        stop=stop,
        ok=ok,
        host=np.array(hosts, np.int64),
        source_names=tuple(f"host{host}/{place}" for place, host in enumerate(hosts)),
        host_names=tuple(f"host{host}" for host in range(max(hosts) + 1)),
        targets=int(target.max(initial=-1)) + 1,
    )


def _numbered(rows: dict[tuple[int, int], tuple[int, int]]) -> list[Row]:
    """Number targets from 0 without gaps, as in files."""
    number: dict[int, int] = {}
    return [(source, number.setdefault(target, len(number)), *times) for (source, target), times in rows.items()]


@st.composite
def fronts(draw: st.DrawFn, *, snapshots: int = 40, sources: int = 5, fails: bool = True) -> Frontpages:
    """Generate recordings longer than a block, in which sources overlap; each pair is shown at most once."""
    pairs = st.tuples(st.integers(0, sources - 1), st.integers(0, 12))
    times = st.tuples(st.integers(0, snapshots - 1), st.integers(1, snapshots)).map(
        lambda each: (each[0], min(each[0] + each[1], snapshots))
    )
    rows = draw(st.dictionaries(pairs, times, min_size=1, max_size=12))
    scrapes = st.tuples(st.integers(0, snapshots - 1), st.integers(0, sources - 1))
    failed = draw(st.lists(scrapes, max_size=5)) if fails else []
    return front(_numbered(rows), snapshots, [place % 2 for place in range(sources)], failed)
