"""Numbers over time, for charts: what each means, and how old ones are thinned out.

A day is kept in full, a month every ten minutes, what is older every six hours.
"""

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["SERIES", "Measure", "note", "thin_out"]

DAY_S = 86_400


class Measure(NamedTuple):
    """What a number says, in words, and its unit: ``n``, ``share`` (0 to 1), ``s``, ``bytes``, ``1/s`` or ``1/h``."""

    words: str
    unit: str


SERIES: Mapping[str, Measure] = {
    "pages": Measure("pages kept: the last answer was good (status 2xx)", "n"),
    "known": Measure("URLs known", "n"),
    "waiting": Measure("URLs that wait to be fetched", "n"),
    "coverage": Measure("coverage: pages kept, as a share of the known URLs that nothing refuses", "share"),
    "current_share": Measure("current: share of pages that are still as they were fetched, by estimate", "share"),
    "checked_in_time": Measure("checked in time: share of fetched URLs whose next fetch is not overdue", "share"),
    "median_age_s": Measure("median time since the pages in the index were last fetched", "s"),
    "price": Measure("price: what a fetch of a known page must be worth; 1 is an ordinary change had for a day", "n"),
    "refreshes": Measure("known pages fetched again, of late: what was a day ago counts half", "n"),
    "wasted_share": Measure("share of these that found the page as it was", "share"),
    "change_expected": Measure("share of these that were expected to have changed", "share"),
    "change_found": Measure("share of these that had changed", "share"),
    "looks": Measure("looks at sources for new pages, of late: what was a day ago counts half", "n"),
    "looks_wasted_share": Measure("share of these that found nothing new", "share"),
    "budget_per_s": Measure("fetch budget: fetches a second at most, in the time of the web that is crawled", "1/s"),
    "budget_spent_per_s": Measure("fetches of all kinds a second, in the time of the web that is crawled", "1/s"),
    "budget_held_back": Measure("URLs that were looked at in the last hour and not worth the price", "n"),
    "fetches_per_s": Measure("requests a second of wall time", "1/s"),
    "archive_bytes": Measure("size of the archive", "bytes"),
    "index_bytes": Measure("size of the index", "bytes"),
    "state_bytes": Measure("size of the crawl's state", "bytes"),
    "record_bytes": Measure("size of what is recorded of searches", "bytes"),
    "disk_free_bytes": Measure("room left on the disk", "bytes"),
    "searches_per_h": Measure("searches in the last hour", "1/h"),
    "empty_share": Measure("share of the last hour's searches that found nothing", "share"),
    "click_share": Measure("share of the last hour's searches of which a result was opened", "share"),
}

# Older than so many days, one point of each series in so many seconds.
_STEPS = ((1, 600), (30, 21_600))
_THIN = (
    "DELETE FROM series WHERE at_s >= :start AND at_s < :end AND EXISTS (SELECT 1 FROM series AS other "
    "WHERE other.name = series.name AND other.at_s < series.at_s "
    "AND other.at_s >= cast(series.at_s / :step AS INTEGER) * :step)"
)


def note(db: sqlite3.Connection, at_s: float, values: Mapping[str, float]) -> None:
    """Keep the numbers of a moment; the caller commits."""
    rows = ((name, at_s, float(value)) for name, value in values.items())
    db.executemany("INSERT OR REPLACE INTO series VALUES (?, ?, ?)", rows)


def thin_out(db: sqlite3.Connection, now_s: float) -> None:
    """Let go of what is too dense for its age. Each stretch of time is gone over once, so it costs little."""
    for days, step in _STEPS:
        mark = f"series thinned to {step} s"
        end = int(now_s - days * DAY_S) // step * step
        start = (db.execute("SELECT value FROM life WHERE what = ?", (mark,)).fetchone() or (0,))[0]
        if start < end:
            db.execute(_THIN, {"start": start, "end": end, "step": step})
            db.execute("INSERT OR REPLACE INTO life VALUES (?, ?)", (mark, end))
