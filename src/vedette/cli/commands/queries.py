"""``vedette queries …``: list and import recorded queries, also while the event recorder runs."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from vedette.adapters.crawl_store.status_file import read_live_status
from vedette.adapters.event_store.reader import EventReader, QueryCount
from vedette.adapters.event_store.store import EventStore
from vedette.cli.data_folder import crawled_folder, format_command
from vedette.cli.options import add_folder_subcommand, add_subcommands, require_subcommand
from vedette.cli.output import format_count, format_number, sanitize
from vedette.cli.progress import ProgressLine
from vedette.errors import UsageError
from vedette.learn.query_logs import ImportedQuery, InvalidLine, parse_queries
from vedette.learn.workload import Workload, build_workload
from vedette.timeutil import DAY_S

DESCRIPTION = """\
See what people search for, and import queries. Searches are kept for
serve.keep_slates_days days. Searches by bots are excluded.

  vedette queries list --days 30
  vedette queries import queries.tsv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette queries`` and their options."""
    inner = add_subcommands(parser)
    for name, purpose, list_counts in (
        ("list", "list the most frequent queries", EventReader.list_top_queries),
        ("empty", "list the most frequent queries that had no results", EventReader.list_empty_queries),
    ):
        counted = add_folder_subcommand(inner, name, purpose, partial(_print_counts, list_counts))
        _add_limit(counted)
        counted.add_argument(
            "--days", metavar="N", type=_parse_whole, default=7, help="cover the last N days (default: 7)"
        )
    _add_limit(
        add_folder_subcommand(
            inner, "rising", "list queries that are significantly more frequent than usual", _list_rising
        )
    )
    add_folder_subcommand(inner, "drift", "show whether the mix of queries has shifted", _show_drift)
    load = add_folder_subcommand(inner, "import", "import queries from another system, one per line", _import)
    load.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="a file with one query per line, with an optional tab-separated count and date, or JSON lines",
    )
    add_folder_subcommand(inner, "drop-imported", "delete all imported queries", _drop_imported)


run = require_subcommand


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", metavar="N", type=_parse_whole, default=20, help="list at most N entries (default: 20)")


def _parse_whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= 100_000 and len(text) < 9):
        raise argparse.ArgumentTypeError(f'"{text[:40]}" is not a number from 1 to 100000')
    return int(text)


WORKLOAD_DAYS = 90  # after which a search counts for almost nothing
MAX_ERRORS_SHOWN = 5
STANDARD_INPUT = Path("-")


def _print_counts(
    list_counts: Callable[[EventReader, float, int], list[QueryCount]], options: argparse.Namespace
) -> int:
    folder = crawled_folder(options)
    since_s = _world_now_s(folder) - options.days * DAY_S
    rows = list_counts(EventReader(folder), since_s, options.n)
    if options.json:
        print(json.dumps({"since_s": since_s, "queries": [row._asdict() for row in rows]}))
        return 0
    if not rows:
        print(f"No such queries in the last {format_count(options.days, 'day')}.")
        return 0
    print("searches  clicks      no results  query")
    for row in rows:
        counts = f"{format_number(row.searches):>8}  {format_number(row.clicks):>6}  {format_number(row.empty):>14}"
        print(f"{counts}  {sanitize(row.query)}")
    return 0


def _list_rising(options: argparse.Namespace) -> int:
    workload, now_s = _load_workload(options)
    rising = workload.find_rising(now_s, options.n)
    if options.json:
        print(json.dumps({"queries": [{**each._asdict(), "sentence": each.sentence} for each in rising]}))
        return 0
    for each in rising:
        print(f"{sanitize(each.words)}   {each.sentence}")
    if not rising:
        print("No query is significantly more frequent than usual.")
    return 0


def _show_drift(options: argparse.Namespace) -> int:
    workload, now_s = _load_workload(options)
    drift = workload.measure_drift(now_s)
    if options.json:
        data = {**drift._asdict(), "movers": [mover._asdict() for mover in drift.movers], "sentence": drift.sentence}
        print(json.dumps(data))
        return 0
    print(sanitize(drift.sentence, 1000))
    if drift.is_told:
        print(f"Distance {drift.distance:.2f}: 0 is the same as usual, 1 has nothing in common.")
    for mover in drift.movers:
        print(f"  {sanitize(mover.term)}   in {mover.recent_share:.1%} of searches, before in {mover.usual_share:.1%}")
    return 0


def _load_workload(options: argparse.Namespace) -> tuple[Workload, float]:
    """Load the query workload that was recorded here, and the time.

    Imported queries are left out: they arrived all at once.
    """
    folder = crawled_folder(options)
    now_s = _world_now_s(folder)
    return build_workload(EventReader(folder).iter_counts(now_s - WORKLOAD_DAYS * DAY_S)), now_s


def _world_now_s(folder: Path) -> float:
    """Return the crawled world's time from the running coordinator, else the wall time, for ``vedette queries``."""
    live = read_live_status(folder)
    return float(live.numbers["now_s"]) if live and live.numbers else time.time()


@dataclass(slots=True)
class _QueryImport:
    """The import of a file of queries: yield its usable lines as rows, and count and keep the bad ones."""

    now_s: float
    searches: int = 0
    bad_lines: int = 0
    first_errors: list[InvalidLine] = field(default_factory=list)

    def rows(self, lines: Iterator[str]) -> Iterator[tuple[str, float, int]]:
        for line in parse_queries(lines, self.now_s):
            if isinstance(line, ImportedQuery):
                self.searches += line.times
                yield line.words, line.at_s, line.times
                continue
            self.bad_lines += 1
            if len(self.first_errors) < MAX_ERRORS_SHOWN:
                self.first_errors.append(line)


def _import(options: argparse.Namespace) -> int:
    folder = crawled_folder(options)
    reading = _QueryImport(_world_now_s(folder))
    gauge = ProgressLine("queries", quiet=options.json)
    with _open_input(options.file) as file, gauge, closing(EventStore(folder)) as book:
        imported = book.import_queries(reading.rows(_read_lines(file, options.file, gauge)))
    _print_import(options, reading, imported)
    return 1 if reading.bad_lines and not imported else 0


def _open_input(path: Path) -> AbstractContextManager[BinaryIO]:
    if path == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; choose a readable file") from None


def _read_lines(file: BinaryIO, path: Path, gauge: ProgressLine) -> Iterator[str]:
    size = 0 if path == STANDARD_INPUT else path.stat().st_size
    done = 0
    for line in file:
        done += len(line)
        gauge.update(done, max(size, done))
        yield line.decode("utf-8", "replace")


def _print_import(options: argparse.Namespace, reading: _QueryImport, imported: int) -> None:
    for wrong in reading.first_errors:
        print(f"line {wrong.number}: {sanitize(wrong.why)}", file=sys.stderr)
    if reading.bad_lines > len(reading.first_errors):
        print(
            f"and {format_number(reading.bad_lines - len(reading.first_errors))} more unusable lines",
            file=sys.stderr,
        )
    if options.json:
        counts = {"queries": imported, "searches": reading.searches, "wrong": reading.bad_lines}
        print(json.dumps({**counts, "first_wrong": [wrong._asdict() for wrong in reading.first_errors]}))
        return
    skipped = f" Lines skipped: {format_number(reading.bad_lines)}." if reading.bad_lines else ""
    print(f"Rows imported: {format_number(imported)}, searches: {format_number(reading.searches)}.{skipped}")
    print(f"Undo with    {format_command('queries drop-imported', options)}")


def _drop_imported(options: argparse.Namespace) -> int:
    with closing(EventStore(crawled_folder(options))) as book:
        dropped = book.delete_imported()
    print(json.dumps({"dropped": dropped}) if options.json else f"Imported rows deleted: {format_number(dropped)}.")
    return 0
