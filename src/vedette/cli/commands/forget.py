"""What ``vedette forget`` does: it says what will go, asks, and has it deleted while others may go on writing."""

import argparse
import json
import re
import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vedette.adapters.event_store.writer import RecordBook
from vedette.cli.commands.queries import recorded_folder
from vedette.cli.options import add_folder, add_output
from vedette.cli.output import amount, plain
from vedette.errors import UsageError
from vedette.text import words_of

__all__ = ["add", "forget"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Delete what was recorded of searches: of one query, of one visitor by the mark that the
privacy page shows, of all time before a day, or everything. It cannot be undone.
Backups that you made keep what is in them.

  vedette forget --query "time off"
  vedette forget --before 2026-01-31 --yes
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("forget", help="delete what was recorded of searches", description=DESCRIPTION)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--query", metavar="QUERY", help="every search with these words; case and accents do not matter")
    what.add_argument("--visitor", metavar="MARK", help="every search of the visitor with this mark")
    what.add_argument("--before", metavar="DATE", help="everything from before this day, such as 2026-01-31")
    what.add_argument("--all", action="store_true", help="everything; imported queries, too")
    parser.add_argument("--yes", action="store_true", help="do not ask whether it is meant")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    # Heavy libraries load only when there is something to do.

    return forget(options)


_MARK = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be forgotten, in words, and as the record is told it."""

    what: str
    told: dict[str, Any]


def forget(options: argparse.Namespace) -> int:
    """Say, ask, delete, and say how much that was."""
    wish = _wish(options)
    folder = recorded_folder(options)
    if not options.yes and not _is_meant(wish, options):
        print("Nothing was deleted.")
        return 1
    with closing(RecordBook(folder)) as book:
        gone = book.forget(**wish.told)
    print(json.dumps({"forgotten": wish.what, "rows": gone}) if options.json else f"Rows deleted: {amount(gone)}.")
    return 0


def _wish(options: argparse.Namespace) -> _Wish:
    if options.query is not None:
        words = " ".join(words_of(options.query))
        if not words:
            raise UsageError(
                f'"{plain(options.query, 100)}" has no word in it: name the query that should be forgotten'
            )
        return _Wish(f'every search for "{plain(words)}", what was opened from it, and its counts', {"words": words})
    if options.visitor is not None:
        mark = options.visitor.strip().lower()
        if not _MARK.fullmatch(mark):
            raise UsageError(
                f'"{plain(mark, 100)}" is no mark of a visitor: the privacy page shows each visitor theirs'
            )
        return _Wish(f"every search of the visitor {mark}, and what they opened", {"visitor": mark})
    if options.before is not None:
        return _Wish(
            f"all searches from before {plain(options.before, 40)}, what was opened from them, and their counts",
            {"before_s": _day_s(options.before)},
        )
    return _Wish("everything that was recorded of searches, and all imported queries", {"everything": True})


def _day_s(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f'"{plain(text, 100)}" is no date: write one such as 2026-01-31') from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _is_meant(wish: _Wish, options: argparse.Namespace) -> bool:
    """Whether the person at the terminal says so; where nobody sits, it must have been said before."""
    if options.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"this deletes {wish.what}, for good: say --yes if that is meant")
    print(f"This deletes {wish.what}, for good.")
    return input('Type "yes" to do it: ').strip().lower() == "yes"
