"""Gain reader: read the search gains that the indexer measured into the coordinator, once each, in batches."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.index_store.gain_store import Gain, read_gains_since, read_scale
from vedette.engine.ports import FetchGain

LAST_READ_KEY = "gains read"
BATCH_SIZE = 1_000


class NewGains(NamedTuple):
    """New search gains for the coordinator: of refetches of known pages, and of first fetches.

    ``per_view`` is the value of a view of any result, in the same unit; None if there is nothing new.
    """

    refetches: list[FetchGain]
    first_fetches: list[FetchGain]
    per_view: float | None = None


def read_new_gains(book: CrawlStore, folder: Path) -> NewGains:
    """Read the next search gains for the coordinator; the position is saved with what is learned from them.

    So nothing counts twice.
    """
    rows = read_gains_since(folder / "index", int(book.get_value(LAST_READ_KEY) or 0), BATCH_SIZE)
    if rows:
        book.set_value(LAST_READ_KEY, str(rows[-1].seq))
    first = [FetchGain(row.page, row.fetched_s, row.gain, row.views) for row in rows if row.what == "first"]
    per_view = read_scale(folder / "index") if rows else None
    return NewGains(sum_by_page(rows), [one for one in first if isfinite(one.gain or 0.0)], per_view)


def sum_by_page(rows: Sequence[Gain]) -> list[FetchGain]:
    """Sum search gains by page: each page once, with its latest fetch, total gain and latest views.

    A first fetch adds nothing to an existing copy, and a page with a new anchor text was not fetched.

    >>> sum_by_page([Gain(1, 7, 50.0, "again", 0.25, 0.0, 0.5), Gain(2, 7, 50.0, "names", 0.5, 0.0, None)])
    [FetchGain(page=7, fetched_s=50.0, gain=0.75, views=0.5)]
    >>> sum_by_page([Gain(3, 7, 50.0, "first", 0.25, 0.0, 0.5), Gain(4, 7, 50.0, "names", 0.0, 0.0, 0.75)])
    [FetchGain(page=7, fetched_s=50.0, gain=None, views=0.75)]
    """
    found: dict[int, FetchGain] = {}
    for row in rows:
        before = found.get(row.page)
        if before is None or before.fetched_s < row.fetched_s:
            before = FetchGain(row.page, row.fetched_s, None, before.views if before else None)
        gain = _get_counted_gain(row)
        found[row.page] = before._replace(
            gain=before.gain if gain is None else gain + (before.gain or 0.0),
            views=before.views if row.views is None else row.views,
        )
    return list(found.values())


def _get_counted_gain(row: Gain) -> float | None:
    counts = row.what in {"again", "gone"} or (row.what == "names" and row.views is None)
    return row.gain if counts and isfinite(row.gain) else None
