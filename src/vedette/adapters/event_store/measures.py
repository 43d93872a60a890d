"""How it stands, in numbers by the names of ``series``: read off files and databases, with nothing held.

Some cost next to nothing; others go over all pages, and are for whoever can wait between two of them.
"""

import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.event_store.slate_log import LOGS
from vedette.adapters.event_store.store import HOUR_S, RECORD, RECORD_FILE, hour_of
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.model import Refusal

__all__ = ["age_of_pages", "crawl_in_full", "search_numbers", "sizes"]

_REFUSED = "SELECT count(*) FROM note WHERE " + " OR ".join(["substr(why, 1, ?) = ?"] * len(Refusal))  # noqa: S608 - question marks only
_REFUSALS = tuple(value for each in Refusal for value in (len(each), str(each)))
_HOUR = "SELECT searches, empty, opened FROM hour WHERE hour_s = ?"


def sizes(folder: Path) -> dict[str, float]:
    """What the parts of a data folder take, and what is left on its disk; nothing before there is a crawl."""
    if not (folder / "state.db").exists():
        return {}
    with read_state(folder) as db:
        (archive_bytes,) = db.execute("SELECT coalesce(sum(length), 0) FROM archive").fetchone()
    return {
        "archive_bytes": archive_bytes,
        "index_bytes": _bytes_below(folder / "index"),
        "state_bytes": _bytes_of(folder, "state.db"),
        "record_bytes": _bytes_of(folder, RECORD) + _bytes_below(folder / LOGS),
        "disk_free_bytes": shutil.disk_usage(folder).free,
    }


def crawl_in_full(folder: Path, now_s: float) -> dict[str, float]:
    """What has to look at every page: how many are kept, how much that is of what is known, and what is overdue."""
    if not (folder / "state.db").exists():
        return {}
    with read_state(folder) as db:

        def number(sql: str, *values: float | str) -> int:
            return int(db.execute(sql, values).fetchone()[0])

        pages = number("SELECT count(*) FROM page WHERE status BETWEEN 200 AND 299")
        known = number("SELECT coalesce(max(id), 0) FROM url")
        allowed = known - number(_REFUSED, *_REFUSALS)
        fetched = number("SELECT count(*) FROM page")
        overdue = number("SELECT count(*) FROM page WHERE due_s < ?", now_s)
    found: dict[str, float] = {"pages": pages, "known": known}
    if allowed > 0:
        found["coverage"] = min(pages / allowed, 1.0)
    if fetched:
        found["checked_in_time"] = 1.0 - overdue / fetched
    return found | age_of_pages(folder, now_s)


def age_of_pages(folder: Path, now_s: float) -> dict[str, float]:
    """How long ago the pages were fetched that can be found, the middle one of them."""
    generation = Generations(folder).current()
    if generation is None:
        return {}
    table = PageTable(generation)
    fetched_s = table.rows["fetched_s"][table.indexed]
    return {"median_age_s": max(now_s - float(np.median(fetched_s)), 0.0)} if len(fetched_s) else {}


def search_numbers(folder: Path, now_s: float) -> dict[str, float]:
    """The last hour of searches. Counts are by the clock's hours, so of the one before as much counts as is missing."""
    with RECORD_FILE.read(folder) as db:
        if db is None:
            return {}
        begun_s = hour_of(now_s)
        missing = 1.0 - (now_s - begun_s) / HOUR_S
        this = db.execute(_HOUR, (begun_s,)).fetchone() or (0, 0, 0)
        last = db.execute(_HOUR, (begun_s - HOUR_S,)).fetchone() or (0, 0, 0)
    searches, empty, opened = (new + missing * old for new, old in zip(this, last, strict=True))
    shares = {"empty_share": empty / searches, "click_share": opened / searches} if searches else {}
    return {"searches_per_h": searches, **shares}


def _bytes_of(folder: Path, name: str) -> int:
    """A database with what stands beside it."""
    total = 0
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            total += (folder / f"{name}{end}").stat().st_size
    return total


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # it is in use
            total += path.stat().st_size
    return total
