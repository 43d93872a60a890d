"""``vedette check``: verify every file of a data folder, and repair what can be rebuilt."""

import argparse
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.ads.ledger_store import LEDGER_FILE
from vedette.adapters.alerts.alert_store import ALERTS_FILE
from vedette.adapters.archive.warc_reader import Damage, scan_warc
from vedette.adapters.archive.warc_writer import locate_archive
from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import lock_folder, read_state
from vedette.adapters.crawl_store.status_file import read_live_status
from vedette.adapters.event_store.schema import EVENTS_FILE
from vedette.adapters.files.sqlite_file import SqliteFile
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.vector_store import find_vector_damage, remove_vectors
from vedette.adapters.sandbox import find_sandbox
from vedette.cli.data_folder import crawled_folder
from vedette.cli.options import add_data_options, add_output_options
from vedette.errors import StoreCorrupt, StoreError
from vedette.runtime.indexing.indexer import catch_up, find_damage

DESCRIPTION = """\
Verify every file in a data folder: databases, archived pages (using their
digests) and the index (using its checksums). Nothing is changed, and "vedette
up" can keep running. The last line shows how document parsers are sandboxed on
this machine.

  vedette check
  vedette check --repair    rebuild what can be rebuilt
"""
ALL_TEXTS = 1 << 40


class Finding(NamedTuple):
    """What ``vedette check`` found in one part of a data folder; ``damage`` is empty where it is sound."""

    part: str
    damage: str
    advice: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``vedette check``."""
    parser.add_argument(
        "--repair", action="store_true", help="rebuild a damaged index and move damaged databases aside"
    )
    add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``vedette check``: print what was found in each part; the exit code is 1 if anything is still damaged."""
    folder = crawled_folder(options)
    found = list(check_folder(folder))
    if options.repair:
        found = [_repair(folder, one) if one.damage else one for one in found]
    parsers = Finding("parsers", "", f"{find_sandbox()}")
    if options.json:
        print(json.dumps([one._asdict() for one in (*found, parsers)]))
    else:
        for one in found:
            print(f"{one.part:<9} {f'damaged: {one.damage}' if one.damage else 'sound'}{_format_advice(one)}")
        print(f"{parsers.part:<9} {parsers.advice}")
    return int(any(one.damage for one in found))


def check_folder(folder: Path) -> Iterator[Finding]:
    """Check each part of a data folder, the one that the others rest on first."""
    yield Finding("state", _check_state(folder), "restore a backup: vedette restore")
    yield Finding("archive", _check_archive(folder), "fetch its pages again: vedette fetch URL")
    generation = Generations(folder).current()
    yield Finding("index", find_damage(generation, ALL_TEXTS) if generation else "", "run vedette check --repair")
    yield Finding("vectors", find_vector_damage(folder / "index"), "run vedette check --repair to make them again")
    yield Finding("ledger", _check_database(folder, LEDGER_FILE), "restore a backup: its amounts cannot be recreated")
    yield Finding("searches", _check_database(folder, EVENTS_FILE), "run vedette check --repair to start another")
    yield Finding("alerts", _check_database(folder, ALERTS_FILE), "run vedette check --repair to start another")


def _check_state(folder: Path) -> str:
    with read_state(folder) as db:
        return _check_pages(db)


def _check_database(folder: Path, file: SqliteFile) -> str:
    try:
        with file.read(folder) as db:
            return _check_pages(db) if db else ""
    except StoreCorrupt as error:
        return str(error)


def _check_pages(db: sqlite3.Connection) -> str:
    (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    return "" if verdict == "ok" else " ".join(str(verdict).split())[:200]


def _check_archive(folder: Path) -> str:
    """Check all archive files of a data folder: they are as long as the state says, and every digest agrees."""
    with read_state(folder) as db:
        lengths = dict(db.execute("SELECT file, length FROM archive ORDER BY file"))
    for name, length in lengths.items():
        path = locate_archive(folder / "warc", name)
        size = path.stat().st_size if path.exists() else 0
        if size < length:
            return f"{name} has {size} of {length} bytes"
        damage = next((one for one in scan_warc(path) if isinstance(one, Damage) and one.offset < length), None)
        if damage is not None:
            return f"{name}: {damage.why} at byte {damage.offset}"
    return ""


def _repair(folder: Path, found: Finding) -> Finding:
    """Repair one damaged part of a data folder where that loses nothing that can be kept."""
    repair = {
        "index": _repair_index,
        "vectors": _repair_vectors,
        "searches": _move_aside(EVENTS_FILE),
        "alerts": _move_aside(ALERTS_FILE),
    }.get(found.part)
    return repair(folder, found) if repair else found


def _repair_index(folder: Path, found: Finding) -> Finding:
    generations = Generations(folder)
    generation = generations.current()
    assert generation is not None
    generations.report_damage(generation, found.damage)
    if read_live_status(folder) is not None:
        return found._replace(advice="reported to the running vedette, which rebuilds it now")
    with lock_folder(folder):
        pages = catch_up(folder, start_clock(time.time(), 1.0))
    return Finding("index", "", f"rebuilt with {pages} pages ({found.damage})")


def _repair_vectors(folder: Path, found: Finding) -> Finding:
    try:
        with lock_folder(folder):
            remove_vectors(folder / "index")
    except StoreError as error:
        return found._replace(advice=str(error))
    return found._replace(damage="", advice=f"removed; the indexer makes them again ({found.damage})")


def _move_aside(file: SqliteFile) -> Callable[[Path, Finding], Finding]:
    def repair(folder: Path, found: Finding) -> Finding:
        try:
            with lock_folder(folder):
                return Finding(found.part, "", f"put aside as {file.move_aside(folder).name} ({found.damage})")
        except StoreError as error:
            return found._replace(advice=str(error))

    return repair


def _format_advice(one: Finding) -> str:
    return f"; {one.advice}" if one.advice and (one.damage or "(" in one.advice) else ""
