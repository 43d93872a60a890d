"""``vedette keys create|list|revoke``: who may search where a key is needed, and who may find private pages."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.inner_verbs import add_inner
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Keys of readers and programs. A key is shown once, when it is made; only its digest is
kept. Changes hold at once where "vedette up" runs.

  vedette keys create wiki --scope search,private --rate 60/min
  vedette keys create shop --site shop.example.org/help/
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    keys = verbs.add_parser("keys", help="who may search", description=DESCRIPTION)
    keys.set_defaults(run=_say_what, parser=keys)
    inner = keys.add_subparsers(metavar="VERB", parser_class=type(keys))
    create = _verb(inner, "create", "make a key, and show it this once")
    create.add_argument("name", metavar="NAME", help="whose it is; sites name their readers by it")
    create.add_argument("--scope", metavar="SCOPES", default="search", help="search, private, admin (default: search)")
    create.add_argument("--rate", metavar="RATE", help="no more requests than this, such as 60/min; 0 for no limit")
    create.add_argument(
        "--site",
        metavar="HOST/PATH",
        action="append",
        default=[],
        help="only for what lies there, such as docs.example.org/api/ (may be repeated)",
    )
    _verb(inner, "list", "all keys and what they are for, revoked ones too")
    revoke = _verb(inner, "revoke", "let a key open nothing from now on")
    revoke.add_argument("name", metavar="NAME", help="the name of the key")


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "keying")


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say create, list or revoke; see vedette keys --help")
