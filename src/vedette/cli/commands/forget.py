"""``vedette forget``: delete recorded searches after a confirmation; other processes may keep writing."""

import argparse
import json
import re
import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vedette.adapters.event_store.store import EventStore
from vedette.cli.data_folder import crawled_folder
from vedette.cli.options import add_data_options, add_output_options
from vedette.cli.output import format_number, sanitize
from vedette.errors import UsageError
from vedette.text import split_words

DESCRIPTION = """\
Delete recorded searches: all of them, or only those for a query, by a visitor
(use the visitor hash shown on the privacy page), or before a given day. This
cannot be undone. Existing backups are not changed.

  vedette forget --query "time off"
  vedette forget --before 2026-01-31 --yes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette forget``."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--query", metavar="QUERY", help="searches with these words, ignoring case and accents")
    what.add_argument("--visitor", metavar="MARK", help="searches by the visitor with this hash")
    what.add_argument("--before", metavar="DATE", help="searches before this day, such as 2026-01-31")
    what.add_argument("--all", action="store_true", help="everything, including imported queries")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_data_options(parser)
    add_output_options(parser)


_VISITOR_HASH = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True)
class _Deletion:
    """A deletion of recorded searches: its description for people, and its arguments for the event store."""

    description: str
    arguments: dict[str, Any]


def run(options: argparse.Namespace) -> int:
    """Run ``vedette forget``: say what will be deleted, ask, delete it and print how many rows are gone."""
    wish = _parse_deletion(options)
    folder = crawled_folder(options)
    if not options.yes and not _confirm(wish, options):
        print("Nothing was deleted.")
        return 1
    with closing(EventStore(folder)) as book:
        gone = book.erase(**wish.arguments)
    forgotten = {"forgotten": wish.description, "rows": gone}
    print(json.dumps(forgotten) if options.json else f"Rows deleted: {format_number(gone)}.")
    return 0


def _parse_deletion(options: argparse.Namespace) -> _Deletion:
    if options.query is not None:
        words = " ".join(split_words(options.query))
        if not words:
            raise UsageError(f'"{sanitize(options.query, 100)}" has no words: pass a query with at least one word')
        return _Deletion(f'every search for "{sanitize(words)}", its clicks, and its counts', {"words": words})
    if options.visitor is not None:
        mark = options.visitor.strip().lower()
        if not _VISITOR_HASH.fullmatch(mark):
            raise UsageError(f'"{sanitize(mark, 100)}" is not a visitor hash; visitors find theirs on the privacy page')
        return _Deletion(f"every search and click of the visitor {mark}", {"visitor": mark})
    if options.before is not None:
        return _Deletion(
            f"all searches before {sanitize(options.before, 40)}, their clicks, and their counts",
            {"before_s": _parse_day_s(options.before)},
        )
    return _Deletion("all recorded searches and clicks, and all imported queries", {"everything": True})


def _parse_day_s(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f'"{sanitize(text, 100)}" is not a date: use YYYY-MM-DD, for example 2026-01-31') from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _confirm(wish: _Deletion, options: argparse.Namespace) -> bool:
    """Ask at the terminal whether to delete recorded searches; without a terminal, require ``--yes``."""
    if options.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"this permanently deletes {wish.description}: add --yes to confirm")
    print(f"This permanently deletes {wish.description}.")
    return input('Type "yes" to continue: ').strip().lower() == "yes"
