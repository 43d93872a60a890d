"""``vedette queries list|rising|empty|drift|import|drop-imported``: what people search for."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.inner_verbs import add_inner
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

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
