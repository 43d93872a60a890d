"""``vedette rules …``: what queries should find, and what nobody should."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.inner_verbs import add_inner
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Rules for results. For single queries: words that mean the same, pages that a query shows
first, and pages that it does not show. For all queries: domains that are blocked (neither
shown nor fetched), raised or lowered, and pages that are concealed. Changes hold within
seconds, and through every recrawl, import and reindex. A query is known by its words, so
case, accents and signs make no difference.

  vedette rules synonym k8s kubernetes
  vedette rules pin "time off" https://intranet.example.org/holidays
  vedette rules conceal "https://example.org/drafts/*"
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    rules = verbs.add_parser("rules", help="what queries should find, and what not", description=DESCRIPTION)
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
    for name, purpose in (
        ("block", "show and fetch nothing of a domain"),
        ("raise", "let pages of a domain stand higher"),
        ("lower", "let pages of a domain stand lower"),
    ):
        _verb(inner, name, purpose).add_argument("value", metavar="DOMAIN", help="it, and all names that end with it")
    _verb(inner, "conceal", "show a page, or all that begin alike, to nobody").add_argument(
        "value", metavar="URL", help="the page; with a * at its end all that begin so"
    )
    remove = _verb(inner, "remove", "take a rule back")
    remove.add_argument("kind", metavar="KIND", choices=_KINDS, help=", ".join(_KINDS))
    remove.add_argument("words", metavar="WORD", nargs="+", help="what it was given: the query, if any, and the value")
    _verb(inner, "export", "write all rules as TOML, for import")
    _verb(inner, "import", "add the rules of a file that export wrote").add_argument(
        "file", metavar="FILE", type=Path, help="TOML with one [[rule]] table a rule; - for standard input"
    )


_KINDS = ("synonym", "pin", "hide", "block", "raise", "lower", "conceal")


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "ruling")


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError(
        "say list, synonym, pin, hide, block, raise, lower, conceal, remove, export or import; see vedette rules --help"
    )
