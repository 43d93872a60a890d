"""What ``vedette rules …`` does: through the keeper where one runs, else on the held folder; each action is logged."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.cli.data_folder import folder_of, hint, ordered, sentence
from vedette.cli.inner_verbs import add_inner
from vedette.cli.output import plain
from vedette.errors import UsageError
from vedette.web.commands.commands import AddRules, Order, RemoveRules, Rule, RuleKind
from vedette.web.commands.rule_text import read_rules_text, rule_of, write_rules

__all__ = ["VERBS", "add"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


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


def _list(options: argparse.Namespace) -> int:
    rows = _kept(options)
    if options.json:
        print(json.dumps({"rules": [row._asdict() for row in rows]}))
        return 0
    for row in rows:
        print(f"{row.kind:<8} {plain(str(_rule(row)), 4000)}")
    if not rows:
        print(f"No rules yet: {hint('rules synonym WORD OTHER', options)} makes one.")
    return 0


def _synonym(options: argparse.Namespace) -> int:
    rules = tuple(rule_of("synonym", options.word, other) for other in options.others)
    return _said(options, AddRules(rules))


def _pin(options: argparse.Namespace) -> int:
    return _said(options, AddRules((rule_of("pin", options.query, options.url),)))


def _hide(options: argparse.Namespace) -> int:
    return _said(options, AddRules((rule_of("hide", options.query, options.url),)))


def _of_all(kind: RuleKind, options: argparse.Namespace) -> int:
    return _said(options, AddRules((rule_of(kind, "", options.value),)))


def _remove(options: argparse.Namespace) -> int:
    *query, value = options.words
    return _said(options, RemoveRules((rule_of(options.kind, " ".join(query), value),)))


def _export(options: argparse.Namespace) -> int:
    rows = _kept(options)
    if options.json:
        print(json.dumps({"rules": [row._asdict() for row in rows]}))
    else:
        print(write_rules(_rule(row) for row in rows), end="")
    return 0


def _import(options: argparse.Namespace) -> int:
    rules = read_rules_text(_read(options.file), str(options.file))
    if not rules:
        raise UsageError(f"{options.file}: holds no rule: write one [[rule]] table a rule")
    return _said(options, AddRules(rules))


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise UsageError(f"{file}: cannot be read ({reason}); name a file that export wrote") from None


def _kept(options: argparse.Namespace) -> list[RuleRow]:
    with open_view(folder_of(options)) as view:
        return view.book.search_rules()


def _rule(row: RuleRow) -> Rule:
    kind: Any = row.kind
    return Rule(kind, row.query, row.value)


def _said(options: argparse.Namespace, order: Order) -> int:
    told = ordered(options, order)
    print(json.dumps(told) if options.json else sentence(told))
    return 0


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": _list,
    "synonym": _synonym,
    "pin": _pin,
    "hide": _hide,
    "block": partial(_of_all, "block"),
    "raise": partial(_of_all, "raise"),
    "lower": partial(_of_all, "lower"),
    "conceal": partial(_of_all, "conceal"),
    "remove": _remove,
    "export": _export,
    "import": _import,
}
