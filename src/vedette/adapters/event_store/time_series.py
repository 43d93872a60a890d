"""Time series for the console's charts: the meaning of each number, how it is measured and downsampled.

A day is kept in full, a month every ten minutes, older points every six hours.
"""

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.event_store.schema import DAY_S, EVENTS_FILE, EVENTS_NAME, HOUR_S, hour_start
from vedette.adapters.event_store.search_log import LOG_DIR
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.model import Refusal

# Some numbers cost almost nothing; others scan all pages and should be measured rarely.
_REFUSED = "SELECT count(*) FROM note WHERE " + " OR ".join(["substr(why, 1, ?) = ?"] * len(Refusal))  # noqa: S608 - question marks only
_REFUSALS = tuple(value for each in Refusal for value in (len(each), str(each)))
_HOUR = "SELECT searches, empty, opened FROM hour WHERE hour_s = ?"


def measure_sizes(folder: Path) -> dict[str, float]:
    """Measure the disk usage of a data folder's parts and the free space, for time series; empty without a crawl."""
    if not (folder / "state.db").exists():
        return {}
    with read_state(folder) as db:
        (archive_bytes,) = db.execute("SELECT coalesce(sum(length), 0) FROM archive").fetchone()
    return {
        "archive_bytes": archive_bytes,
        "index_bytes": _folder_bytes(folder / "index"),
        "state_bytes": _database_bytes(folder, "state.db"),
        "record_bytes": _database_bytes(folder, EVENTS_NAME) + _folder_bytes(folder / LOG_DIR),
        "disk_free_bytes": shutil.disk_usage(folder).free,
    }


def measure_crawl(folder: Path, now_s: float) -> dict[str, float]:
    """Measure stored pages, coverage of known URLs and overdue pages, for time series; scans every page."""
    if not (folder / "state.db").exists():
        return {}
    with read_state(folder) as db:

        def number(sql: str, *values: float | str) -> int:
            return int(db.execute(sql, values).fetchone()[0])

        pages = number("SELECT count(*) FROM page WHERE status BETWEEN 200 AND 299")
        urls = number("SELECT coalesce(max(id), 0) FROM url")
        allowed = urls - number(_REFUSED, *_REFUSALS)
        fetched = number("SELECT count(*) FROM page")
        overdue = number("SELECT count(*) FROM page WHERE due_s < ?", now_s)
    found: dict[str, float] = {"pages": pages, "known": urls}
    if allowed > 0:
        found["coverage"] = min(pages / allowed, 1.0)
    if fetched:
        found["checked_in_time"] = 1.0 - overdue / fetched
    return found | measure_page_age(folder, now_s)


def measure_page_age(folder: Path, now_s: float) -> dict[str, float]:
    """Measure the median time since indexed pages were fetched, for time series."""
    generation = Generations(folder).current()
    if generation is None:
        return {}
    table = PageTable(generation)
    fetched_s = table.rows["fetched_s"][table.indexed]
    return {"median_age_s": max(now_s - float(np.median(fetched_s)), 0.0)} if len(fetched_s) else {}


def measure_searches(folder: Path, now_s: float) -> dict[str, float]:
    """Measure searches, empty share and click share of the last hour, for time series.

    Counts are by clock hours, so the missing part is taken from the hour before.
    """
    with EVENTS_FILE.read(folder) as db:
        if db is None:
            return {}
        begun_s = hour_start(now_s)
        missing = 1.0 - (now_s - begun_s) / HOUR_S
        this = db.execute(_HOUR, (begun_s,)).fetchone() or (0, 0, 0)
        last = db.execute(_HOUR, (begun_s - HOUR_S,)).fetchone() or (0, 0, 0)
    searches, empty, opened = (new + missing * old for new, old in zip(this, last, strict=True))
    shares = {"empty_share": empty / searches, "click_share": opened / searches} if searches else {}
    return {"searches_per_h": searches, **shares}


def _database_bytes(folder: Path, name: str) -> int:
    """Return the size of a database file with its write-ahead log, for time series."""
    total = 0
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            total += (folder / f"{name}{end}").stat().st_size
    return total


def _folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # it is in use
            total += path.stat().st_size
    return total


class SeriesInfo(NamedTuple):
    """Meaning and unit of a time series: ``n``, ``share`` (0 to 1), ``s``, ``bytes``, ``1/s`` or ``1/h``."""

    words: str
    unit: str


SERIES: Mapping[str, SeriesInfo] = {
    "pages": SeriesInfo("stored pages: the last response had status 2xx", "n"),
    "known": SeriesInfo("known URLs", "n"),
    "waiting": SeriesInfo("URLs waiting to be fetched", "n"),
    "coverage": SeriesInfo("coverage: stored pages, as a share of the known URLs that may be fetched", "share"),
    "current_share": SeriesInfo(
        "current: estimated share of pages that have not changed since they were fetched", "share"
    ),
    "quality": SeriesInfo("quality: estimated search quality, as a share of that with only current copies", "share"),
    "views_current_share": SeriesInfo("estimated share of result views that go to current pages", "share"),
    "change_loss": SeriesInfo("measured share of a view that is lost if the copy has missed a change", "share"),
    "checked_in_time": SeriesInfo("checked in time: share of fetched URLs whose next fetch is not overdue", "share"),
    "median_age_s": SeriesInfo("median time since the pages in the index were last fetched", "s"),
    "price": SeriesInfo(
        "price: what a fetch of a known page must be worth; 1 is an ordinary change seen a day earlier", "n"
    ),
    "refreshes": SeriesInfo("recent refreshes; those from a day ago count half as much", "n"),
    "wasted_share": SeriesInfo("share of these that found the page unchanged", "share"),
    "change_expected": SeriesInfo("share of these that were expected to have changed", "share"),
    "change_found": SeriesInfo("share of these that had changed", "share"),
    "looks": SeriesInfo("recent polls of sources; those from a day ago count half as much", "n"),
    "looks_wasted_share": SeriesInfo("share of these that found nothing new", "share"),
    "budget_per_s": SeriesInfo("fetch budget: maximum fetches per second of world time", "1/s"),
    "budget_spent_per_s": SeriesInfo("fetches of all kinds per second of world time", "1/s"),
    "budget_held_back": SeriesInfo("URLs found not worth the price in the last hour", "n"),
    "fetches_per_s": SeriesInfo("requests per second of wall time", "1/s"),
    "archive_bytes": SeriesInfo("size of the archive", "bytes"),
    "index_bytes": SeriesInfo("size of the index", "bytes"),
    "state_bytes": SeriesInfo("size of the crawl's state", "bytes"),
    "record_bytes": SeriesInfo("size of the recorded searches", "bytes"),
    "disk_free_bytes": SeriesInfo("free disk space", "bytes"),
    "searches_per_h": SeriesInfo("searches in the last hour", "1/h"),
    "empty_share": SeriesInfo("share of the last hour's searches without results", "share"),
    "click_share": SeriesInfo("share of the last hour's searches with a click", "share"),
}

# Beyond this many days, one point of each series per this many seconds.
_STEPS = ((1, 600), (30, 21_600))
_THIN = (
    "DELETE FROM series WHERE at_s >= :start AND at_s < :end AND EXISTS (SELECT 1 FROM series AS other "
    "WHERE other.name = series.name AND other.at_s < series.at_s "
    "AND other.at_s >= cast(series.at_s / :step AS INTEGER) * :step)"
)


def add_points(db: sqlite3.Connection, at_s: float, values: Mapping[str, float]) -> None:
    """Save a point of each time series; the caller commits."""
    rows = ((name, at_s, float(value)) for name, value in values.items())
    db.executemany("INSERT OR REPLACE INTO series VALUES (?, ?, ?)", rows)


def downsample(db: sqlite3.Connection, now_s: float) -> None:
    """Delete time series points that are too dense for their age; each interval is processed once."""
    for days, step in _STEPS:
        mark = f"series thinned to {step} s"
        end = int(now_s - days * DAY_S) // step * step
        start = (db.execute("SELECT value FROM life WHERE what = ?", (mark,)).fetchone() or (0,))[0]
        if start < end:
            db.execute(_THIN, {"start": start, "end": end, "step": step})
            db.execute("INSERT OR REPLACE INTO life VALUES (?, ?)", (mark, end))
