"""``vedette rules list|synonym|pin|hide|remove|export|import``: what single queries should find."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.inner_verbs import add_inner
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Rules for single queries: words that mean the same, pages that a query shows first, and
pages that it does not show. Changes hold at once. A query is known by its words, so
case, accents and signs make no difference.

  vedette rules synonym k8s kubernetes
  vedette rules pin "time off" https://intranet.example.org/holidays
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    rules = verbs.add_parser("rules", help="what single queries should find", description=DESCRIPTION)
    rules.set_defaults(run=_say_what, parser=rules)
    inner = rules.add_subparsers(metavar="VERB", parser_class=type(rules))
    _verb(inner, "list", "all rules")
    synonym = _verb(inner, "synonym", "search for other words, too, and the other way round")
    synonym.add_argument("word", metavar="WORD", help="a word")
    synonym.add_argument("others", metavar="OTHER", nargs="+", help="what means the same")
    for name, purpose in (
        ("pin", "show a page first for a query, wherever it would stand"),
        ("hide", "do not show a page for a query"),
    ):
        parser = _verb(inner, name, purpose)
        parser.add_argument("query", metavar="QUERY", help="the whole query, in quotes")
        parser.add_argument("url", metavar="URL", help="the page")
    remove = _verb(inner, "remove", "take a rule back")
    remove.add_argument("kind", metavar="KIND", choices=("synonym", "pin", "hide"), help="synonym, pin or hide")
    remove.add_argument("query", metavar="QUERY", help="the query or word, as it was given")
    remove.add_argument("value", metavar="VALUE", help="the other word, or the URL")
    _verb(inner, "export", "write all rules as TOML, for import")
    _verb(inner, "import", "add the rules of a file that export wrote").add_argument(
        "file", metavar="FILE", type=Path, help="TOML with one [[rule]] table a rule; - for standard input"
    )


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "ruling")


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say list, synonym, pin, hide, remove, export or import; see vedette rules --help")
