"""What ``vedette queries …`` does: it reads the record of searches beside whoever writes it."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.event_store.reader import QueryCount, RecordView
from vedette.adapters.event_store.writer import RecordBook
from vedette.cli.data_folder import ask, folder_of, hint
from vedette.cli.inner_verbs import add_inner
from vedette.cli.output import amount, counted, plain
from vedette.cli.progress import Gauge
from vedette.errors import UsageError
from vedette.learn.query_logs import Noted, Wrong, read_queries
from vedette.learn.workload import Workload, learned_from
from vedette.runtime.commands.rpc import Call

__all__ = ["VERBS", "add", "recorded_folder"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
What people search for, as far as it is recorded (serve.keep_slates_days), and queries
that you bring along. What programs asked is left out.

  vedette queries list --days 30
  vedette queries import queries.tsv
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    queries = verbs.add_parser("queries", help="what people search for", description=DESCRIPTION)
    queries.set_defaults(run=_say_what, parser=queries)
    inner = queries.add_subparsers(metavar="VERB", parser_class=type(queries))
    for name, purpose in (("list", "what is asked most often"), ("empty", "what is asked and finds nothing")):
        counted = _verb(inner, name, purpose)
        _add_most(counted)
        counted.add_argument("--days", metavar="N", type=_whole, default=7, help="of the last N days (default: 7)")
    _add_most(_verb(inner, "rising", "what is asked more than usual, beyond chance"))
    _verb(inner, "drift", "whether what people ask for has shifted")
    _verb(inner, "import", "bring queries from elsewhere, one a line").add_argument(
        "file", metavar="FILE", type=Path, help="queries, each with a count and a date behind tabs, or as JSON lines"
    )
    _verb(inner, "drop-imported", "forget the queries that were imported")


def _add_most(parser: "Parser") -> None:
    parser.add_argument("--n", metavar="N", type=_whole, default=20, help="how many at most (default: 20)")


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "querying")


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= 100_000 and len(text) < 9):
        raise argparse.ArgumentTypeError(f'"{text[:40]}" is no number from 1 to 100000')
    return int(text)


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say list, rising, empty, drift, import or drop-imported; see vedette queries --help")


DAY_S = 86_400.0
LEARNED_DAYS = 90  # after which a search counts next to nothing
MOST_WRONG_SHOWN = 5
STANDARD_INPUT = Path("-")


def recorded_folder(options: argparse.Namespace) -> Path:
    """The data folder; one without a crawl is told in words, and none is made."""
    folder = folder_of(options)
    with open_view(folder):
        return folder


def _list(options: argparse.Namespace) -> int:
    return _counts(options, RecordView.top)


def _empty(options: argparse.Namespace) -> int:
    return _counts(options, RecordView.without_result)


def _counts(options: argparse.Namespace, asked: Callable[[RecordView, float, int], list[QueryCount]]) -> int:
    folder = recorded_folder(options)
    since_s = _now_s(folder) - options.days * DAY_S
    rows = asked(RecordView(folder), since_s, options.n)
    if options.json:
        print(json.dumps({"since_s": since_s, "queries": [row._asdict() for row in rows]}))
        return 0
    if not rows:
        print(f"Nothing of the kind in the last {counted(options.days, 'day')}.")
        return 0
    print("searches  clicks  without result  query")
    for row in rows:
        print(f"{amount(row.searches):>8}  {amount(row.clicks):>6}  {amount(row.empty):>14}  {plain(row.query)}")
    return 0


def _rising(options: argparse.Namespace) -> int:
    workload, now_s = _workload(options)
    rising = workload.rising(now_s, options.n)
    if options.json:
        print(json.dumps({"queries": [{**each._asdict(), "sentence": each.sentence} for each in rising]}))
        return 0
    for each in rising:
        print(f"{plain(each.words)}   {each.sentence}")
    if not rising:
        print("No query is asked more than usual, beyond what chance does.")
    return 0


def _drift(options: argparse.Namespace) -> int:
    workload, now_s = _workload(options)
    drift = workload.drift(now_s)
    if options.json:
        told = {**drift._asdict(), "movers": [mover._asdict() for mover in drift.movers], "sentence": drift.sentence}
        print(json.dumps(told))
        return 0
    print(plain(drift.sentence, 1000))
    if drift.is_told:
        print(f"Distance {drift.distance:.2f}: 0 is the same as usual, 1 has nothing in common with it.")
    for mover in drift.movers:
        print(f"  {plain(mover.term)}   in {mover.recent_share:.1%} of searches, before in {mover.usual_share:.1%}")
    return 0


def _workload(options: argparse.Namespace) -> tuple[Workload, float]:
    """What people asked here. Imported queries are left out: they came all at once."""
    folder = recorded_folder(options)
    now_s = _now_s(folder)
    return learned_from(RecordView(folder).counts(now_s - LEARNED_DAYS * DAY_S)), now_s


def _now_s(folder: Path) -> float:
    """The time of the world that is crawled, where something runs that knows it."""
    reply = ask(folder, Call("status"))
    return float(reply["now_s"]) if reply else time.time()


@dataclass(slots=True)
class _Reading:
    """The usable lines of a file as rows; what was wrong with the others stays here."""

    now_s: float
    searches: int = 0
    wrong: int = 0
    first_wrong: list[Wrong] = field(default_factory=list)

    def rows(self, lines: Iterator[str]) -> Iterator[tuple[str, float, int]]:
        for line in read_queries(lines, self.now_s):
            if isinstance(line, Noted):
                self.searches += line.times
                yield line.words, line.at_s, line.times
                continue
            self.wrong += 1
            if len(self.first_wrong) < MOST_WRONG_SHOWN:
                self.first_wrong.append(line)


def _import(options: argparse.Namespace) -> int:
    folder = recorded_folder(options)
    reading = _Reading(_now_s(folder))
    gauge = Gauge("queries", quiet=options.json)
    with _opened(options.file) as file, gauge, closing(RecordBook(folder)) as book:
        kept = book.import_queries(reading.rows(_lines(file, options.file, gauge)))
    _say_import(options, reading, kept)
    return 1 if reading.wrong and not kept else 0


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    if path == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a file that can be read") from None


def _lines(file: BinaryIO, path: Path, gauge: Gauge) -> Iterator[str]:
    size = 0 if path == STANDARD_INPUT else path.stat().st_size
    done = 0
    for line in file:
        done += len(line)
        gauge.look(done, max(size, done))
        yield line.decode("utf-8", "replace")


def _say_import(options: argparse.Namespace, reading: _Reading, kept: int) -> None:
    for wrong in reading.first_wrong:
        print(f"line {wrong.number}: {plain(wrong.why)}", file=sys.stderr)
    if reading.wrong > len(reading.first_wrong):
        print(f"and {amount(reading.wrong - len(reading.first_wrong))} more that could not be used", file=sys.stderr)
    if options.json:
        told = {"queries": kept, "searches": reading.searches, "wrong": reading.wrong}
        print(json.dumps({**told, "first_wrong": [wrong._asdict() for wrong in reading.first_wrong]}))
        return
    left_out = f" {counted(reading.wrong, 'line')} left out." if reading.wrong else ""
    print(f"Rows taken in: {amount(kept)}, for searches: {amount(reading.searches)}.{left_out}")
    print(f"Undo with    {hint('queries drop-imported', options)}")


def _drop_imported(options: argparse.Namespace) -> int:
    with closing(RecordBook(recorded_folder(options))) as book:
        dropped = book.drop_imported()
    print(json.dumps({"dropped": dropped}) if options.json else f"Imported rows dropped: {amount(dropped)}.")
    return 0


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": _list,
    "rising": _rising,
    "empty": _empty,
    "drift": _drift,
    "import": _import,
    "drop-imported": _drop_imported,
}
