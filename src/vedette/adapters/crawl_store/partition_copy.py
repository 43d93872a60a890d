"""Copy of the hosts of some partitions from data folders into a new one, with all that is known about them.

So a one-machine folder becomes the shards of a cluster, and shards become one folder again. URLs and hosts get new ids,
without gaps; everything that refers to them follows. Archive files are linked, not rewritten: retention later drops
what no page of the new folder refers to. The index and the file of near-duplicates are built again at the first start.

What belongs to no host (settings, keys, search rules, ads, the operator's actions) comes from the first folder. Push
subscriptions are left out: the new owner subscribes again.
"""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.archive.warc_writer import locate_archive, parse_file_name
from vedette.adapters.crawl_store.data_folder import explain_errors, open_state

# Tables with a row for each URL, and their columns with ids; the first one decides whether a row is copied.
_URL_TABLES = {
    "page": ("id", "host"),
    "note": ("url_id",),
    "retry": ("url_id",),
    "content": ("id",),
    "held": ("url_id", "host"),
    "refresh": ("id",),
    "hint": ("id",),
    "find": ("url_id",),
}
_PARTITION_TABLES = ("robots", "host_state", "yield", "stranger")
_SHARED_TABLES = (
    "site",
    "life",
    "action",
    "reader_key",
    "search_rule",
    "refresh_group",
    "watch",
    "advertiser",
    "campaign",
    "ad",
)


class CopiedHosts(NamedTuple):
    """What was copied from a folder."""

    urls: int
    pages: int


def copy_partitions(sources: Sequence[Path], partitions: range, folder: Path) -> CopiedHosts:
    """Copy the hosts of these partitions from data folders that are not in use into a new one."""
    with explain_errors(folder):
        folder.mkdir(parents=True, mode=0o700)
        open_state(folder, "copy", 0.0).close(clean=False)
        with closing(sqlite3.connect(folder / "state.db", isolation_level=None, uri=True)) as db:
            for number, source in enumerate(sources):
                db.execute("ATTACH ? AS source", (f"{(source / 'state.db').resolve().as_uri()}?mode=ro",))
                db.execute("BEGIN IMMEDIATE")
                _copy_rows(db, partitions, is_first=number == 0)
                _link_archive(db, source, folder, f"s{number}-" if len(sources) > 1 else "")
                db.execute("COMMIT")
                db.execute("DETACH source")
            (urls,) = db.execute("SELECT count(*) FROM url").fetchone()
            (pages,) = db.execute("SELECT count(*) FROM page").fetchone()
    return CopiedHosts(urls, pages)


def _copy_rows(db: sqlite3.Connection, partitions: range, *, is_first: bool) -> None:
    bounds = {"first": partitions[0], "last": partitions[-1]}
    db.execute("CREATE TEMP TABLE new_host (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    db.execute("CREATE TEMP TABLE new_url (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    db.execute(
        "INSERT INTO new_host SELECT id, row_number() OVER (ORDER BY id) - 1 + (SELECT count(*) FROM main.host) "
        "FROM source.host WHERE partition BETWEEN :first AND :last",
        bounds,
    )
    db.execute(
        "INSERT INTO new_url SELECT id, row_number() OVER (ORDER BY id) + (SELECT count(*) FROM main.url) "
        "FROM source.url WHERE partition BETWEEN :first AND :last",
        bounds,
    )
    _copy_table(db, "host", {"id": "new_host"})
    _copy_table(db, "url", {"id": "new_url", "host": "new_host"})
    _copy_table(db, "fate", {"url_id": "new_url"}, renumbered="id")
    for table, columns in _URL_TABLES.items():
        _copy_table(db, table, {name: "new_host" if name == "host" else "new_url" for name in columns})
    _copy_table(db, "first_crawl", {"host": "new_host"})
    _copy_table(db, "copies", {"grp": "new_url", "canonical": "new_url"})
    # What refers to a page that is not here: a group is then named after its own page, and a source is unknown.
    db.execute(
        "UPDATE content SET grp = coalesce((SELECT new FROM new_url WHERE old = grp), id) WHERE id IN "
        "(SELECT new FROM new_url)"
    )
    db.execute(
        "UPDATE find SET source = coalesce((SELECT new FROM new_url WHERE old = source), 0) WHERE url_id IN "
        "(SELECT new FROM new_url)"
    )
    for table in _PARTITION_TABLES:
        _copy_shared(db, table, "WHERE partition BETWEEN :first AND :last", bounds)
    for table in _SHARED_TABLES if is_first else ("site", "refresh_group"):
        _copy_shared(db, table, "", {})
    db.execute("INSERT OR REPLACE INTO life VALUES ('end', 'copied')")  # so that the first start builds what is missing
    db.execute("DROP TABLE temp.new_host")
    db.execute("DROP TABLE temp.new_url")


def _copy_shared(db: sqlite3.Connection, table: str, where: str, bounds: dict[str, int]) -> None:
    """Copy rows without ids of URLs and hosts; those of an earlier folder stay, except what a new folder began with."""
    columns = ", ".join(name for name in _list_columns(db, table) if (table, name) != ("site", "id"))
    either = "REPLACE" if table == "life" else "IGNORE"
    sql = f"INSERT OR {either} INTO main.{table} ({columns}) SELECT {columns} FROM source.{table} {where}"  # noqa: S608 - our own names
    db.execute(sql, bounds)


def _copy_table(db: sqlite3.Connection, table: str, ids: dict[str, str], renumbered: str = "") -> None:
    """Copy the rows of a table whose ids are all copied, with their new ids; ``renumbered`` gets a number in order."""
    columns = [name for name in _list_columns(db, table) if name != renumbered]
    values = [f"{name}_map.new" if name in ids else f"old.{name}" for name in columns]
    joins = " ".join(f"JOIN {mapped} AS {name}_map ON {name}_map.old = old.{name}" for name, mapped in ids.items())
    order = f"ORDER BY old.{renumbered or next(iter(ids))}"
    sql = f"INSERT INTO main.{table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM source.{table} AS old"  # noqa: S608 - our own names
    db.execute(f"{sql} {joins} {order}")


def _list_columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA main.table_info({table})")]


def _link_archive(db: sqlite3.Connection, source: Path, folder: Path, mark: str) -> None:
    """Link the archive files that copied pages refer to, under names that no other folder has."""
    rows = db.execute(
        "SELECT file, length, newest_s FROM source.archive WHERE file IN (SELECT file FROM main.page)"
    ).fetchall()
    for file, length, newest_s in rows:
        name = _rename(file, mark)
        _link(locate_archive(source / "warc", file), folder / "warc" / name)
        db.execute("INSERT INTO main.archive VALUES (?, ?, ?)", (name, length, newest_s))
        if mark:
            db.execute("UPDATE main.page SET file = ? WHERE file = ?", (name, file))


def _rename(file: str, mark: str) -> str:
    """Return the name of an archive file with a mark in its series.

    >>> _rename("vedette-w0-00012.warc.gz", "s3-")
    'vedette-s3-w0-00012.warc.gz'
    """
    series = parse_file_name(file)
    assert series is not None, f"{file} is no archive file"
    return file.replace(f"vedette-{series[0]}-", f"vedette-{mark}{series[0]}-", 1)


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
