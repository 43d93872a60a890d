"""``vedette watch add|list|remove|test``: who wants to hear of which new pages."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.inner_verbs import add_inner
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Watches: each has a feed (/new.atom?watch=NAME), and may have a webhook, which is sent
every new page that fits, signed. "vedette new --watch NAME" shows the same here.

  vedette watch add harbour --site news.example.org/local --query "harbour OR port"
  vedette watch add all --site "*" --webhook https://example.org/hooks/new-pages
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    watch = verbs.add_parser("watch", help="who is told of new pages", description=DESCRIPTION)
    watch.set_defaults(run=_say_what, parser=watch)
    inner = watch.add_subparsers(metavar="VERB", parser_class=type(watch))
    more = _verb(inner, "add", "watch a site, a path on it, or a query")
    more.add_argument("name", metavar="NAME", help="by which it is known, also in addresses")
    more.add_argument("--site", metavar="PLACE", default="", help="a host, or a path on one; * for everywhere")
    more.add_argument("--query", metavar="QUERY", default="", help="what a search for new pages would say")
    more.add_argument("--webhook", metavar="URL", default="", help="a URL that is sent each new page, signed")
    more.add_argument("--reader", metavar="NAME", default="", help="whose private pages may go to the webhook")
    _verb(inner, "list", "all watches, and what became of their latest messages")
    for name, purpose in (
        ("remove", "watch for it no more"),
        ("test", "send a message without pages to a webhook, and say what came of it"),
    ):
        _verb(inner, name, purpose).add_argument("name", metavar="NAME", help="the name of the watch")


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "watch_keeping")


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say add, list, remove or test; see vedette watch --help")
