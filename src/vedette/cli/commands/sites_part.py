"""``vedette sites list|add|set|pause|resume|remove|export|import|offered``: what is crawled, changed while it runs."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.inner_verbs import add_inner
from vedette.cli.options import add_scope
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

OWNED = "I-OWN-THIS-SITE"  # as ``config.site_text`` reads it, which is too heavy to load for a help text
MOST_OFFERED = 1000

DESCRIPTION = """\
The sites of a data folder and their settings. Changes hold at once where "vedette up"
runs, and from the next start on where nothing does.

  vedette sites add https://example.org/docs/ --scope prefix --delay 2s
  vedette sites set https://example.org/docs/ delay=5s hours=22:00-06:00
  vedette sites set https://example.org/docs/ change=text overrule=trap,spam
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    sites = verbs.add_parser("sites", help="what is crawled, and how", description=DESCRIPTION)
    sites.set_defaults(run=_say_what, parser=sites)
    inner = sites.add_subparsers(metavar="VERB", parser_class=type(sites))
    _verb(inner, "list", "all sites, with the pages known and kept")
    _add_add(inner)
    _add_set(inner)
    for name, purpose in (
        ("pause", "ask nothing more of a site, until it is resumed"),
        ("resume", "go on with a paused site"),
    ):
        _named(_verb(inner, name, purpose))
    remove = _verb(inner, "remove", "crawl a site no more; its pages stay")
    _named(remove)
    remove.add_argument("--with-pages", action="store_true", help="forget its pages, too")
    _verb(inner, "export", "write all sites as TOML, for import")
    _verb(inner, "import", "add or change sites from a file that export wrote").add_argument(
        "file", metavar="FILE", type=Path, help="TOML with one [[site]] table a site; - for standard input"
    )
    add_inner(inner, "offered", "hosts that pages link to and that no site takes", "offering").add_argument(
        "--limit", metavar="N", type=_limit, default=20, help="how many (default: 20)"
    )


def _add_add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "add", "crawl one more site")
    _named(parser)
    add_scope(parser)
    parser.add_argument("--delay", metavar="TIME", help="pause after each answer of its host, such as 2s")
    parser.add_argument("--hours", metavar="SPANS", help="only at these times (UTC), such as 22:00-06:00")
    parser.add_argument("--bytes-per-s", metavar="SIZE", help="no more than this on average, such as 100kB")
    parser.add_argument("--allow-private", action="store_true", help="its hosts may lie at private addresses")
    parser.add_argument(
        "--ignore-robots", metavar=OWNED, help=f"do not obey its robots.txt; you confirm it by writing {OWNED}"
    )
    parser.add_argument(
        "--secrets", metavar="PLACE", help="env:NAME or file:PATH with headers that are sent to this site only"
    )
    parser.add_argument(
        "--change",
        metavar="RULE",
        help="what counts as a change of a page: bytes, text, main (its main text, the default) or links",
    )
    parser.add_argument(
        "--overrule",
        metavar="NAMES",
        help="judgements that you do not share: some of trap, copy, missing, script, empty, thin, spam, with commas",
    )
    parser.add_argument(
        "--readers",
        metavar="NAMES",
        help="who may find its pages where they are fetched with secrets: names of keys or users, with commas; * for "
        "everybody who has a name",
    )
    parser.add_argument(
        "--share", metavar="PART", help="its part of crawl.budget, such as 20%%; more only where nobody else takes it"
    )
    parser.add_argument(
        "--promise",
        metavar="PLACE=TIME",
        action="append",
        help="fetch this source at least so often, whatever it costs, such as /news=15min (may be repeated)",
    )


def _add_set(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "set", "change settings of a site")
    _named(parser)
    parser.add_argument(
        "changes",
        metavar="KEY=VALUE",
        nargs="+",
        help="such as delay=5s; nothing after = takes a setting back; include, exclude, drop_parameters and promise "
        "may be repeated",
    )


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "siting")


def _named(parser: "Parser") -> None:
    parser.add_argument("site", metavar="SITE", help="an http(s) URL or a host name, as it was added")


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MOST_OFFERED):
        raise argparse.ArgumentTypeError(f"write a whole number from 1 to {MOST_OFFERED}")
    return int(text)


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say list, add, set, pause, resume, remove, export, import or offered; see vedette sites --help")
