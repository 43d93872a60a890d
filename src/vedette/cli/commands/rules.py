"""What ``vedette rules …`` does: through the keeper where one runs, else on the held folder; each action is logged."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.cli.data_folder import data_folder, format_command, format_done, run_command
from vedette.cli.inner_verbs import add_subcommand
from vedette.cli.output import sanitize
from vedette.errors import UsageError
from vedette.web.commands.commands import AddRules, Command, RemoveRules, Rule, RuleKind
from vedette.web.commands.rule_text import format_rules, parse_rule, parse_rules

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


def add_command(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    rules = verbs.add_parser("rules", help="what queries should find, and what not", description=DESCRIPTION)
    rules.set_defaults(run=_require_subcommand, parser=rules)
    inner = rules.add_subparsers(metavar="VERB", parser_class=type(rules))
    _add_subcommand(inner, "list", "all rules")
    synonym = _add_subcommand(inner, "synonym", "search for other words, too, and the other way round")
    synonym.add_argument("word", metavar="WORD", help="a word")
    synonym.add_argument("others", metavar="OTHER", nargs="+", help="what means the same")
    for name, purpose in (
        ("pin", "show a page first for a query, wherever it would stand"),
        ("hide", "do not show a page for a query"),
    ):
        parser = _add_subcommand(inner, name, purpose)
        parser.add_argument("query", metavar="QUERY", help="the whole query, in quotes")
        parser.add_argument("url", metavar="URL", help="the page")
    for name, purpose in (
        ("block", "show and fetch nothing of a domain"),
        ("raise", "let pages of a domain stand higher"),
        ("lower", "let pages of a domain stand lower"),
    ):
        _add_subcommand(inner, name, purpose).add_argument(
            "value", metavar="DOMAIN", help="it, and all names that end with it"
        )
    _add_subcommand(inner, "conceal", "show a page, or all that begin alike, to nobody").add_argument(
        "value", metavar="URL", help="the page; with a * at its end all that begin so"
    )
    remove = _add_subcommand(inner, "remove", "take a rule back")
    remove.add_argument("kind", metavar="KIND", choices=_KINDS, help=", ".join(_KINDS))
    remove.add_argument("words", metavar="WORD", nargs="+", help="what it was given: the query, if any, and the value")
    _add_subcommand(inner, "export", "write all rules as TOML, for import")
    _add_subcommand(inner, "import", "add the rules of a file that export wrote").add_argument(
        "file", metavar="FILE", type=Path, help="TOML with one [[rule]] table a rule; - for standard input"
    )


_KINDS = ("synonym", "pin", "hide", "block", "raise", "lower", "conceal")


def _add_subcommand(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_subcommand(verbs, name, purpose, "ruling")


def _require_subcommand(_: argparse.Namespace) -> int:
    raise UsageError(
        "say list, synonym, pin, hide, block, raise, lower, conceal, remove, export or import; see vedette rules --help"
    )


def _list(options: argparse.Namespace) -> int:
    rows = _load_rules(options)
    if options.json:
        print(json.dumps({"rules": [row._asdict() for row in rows]}))
        return 0
    for row in rows:
        print(f"{row.kind:<8} {sanitize(str(_rule_from_row(row)), 4000)}")
    if not rows:
        print(f"No rules yet: {format_command('rules synonym WORD OTHER', options)} makes one.")
    return 0


def _synonym(options: argparse.Namespace) -> int:
    rules = tuple(parse_rule("synonym", options.word, other) for other in options.others)
    return _run_and_print(options, AddRules(rules))


def _pin(options: argparse.Namespace) -> int:
    return _run_and_print(options, AddRules((parse_rule("pin", options.query, options.url),)))


def _hide(options: argparse.Namespace) -> int:
    return _run_and_print(options, AddRules((parse_rule("hide", options.query, options.url),)))


def _add_global_rule(kind: RuleKind, options: argparse.Namespace) -> int:
    return _run_and_print(options, AddRules((parse_rule(kind, "", options.value),)))


def _remove(options: argparse.Namespace) -> int:
    *query, value = options.words
    return _run_and_print(options, RemoveRules((parse_rule(options.kind, " ".join(query), value),)))


def _export(options: argparse.Namespace) -> int:
    rows = _load_rules(options)
    if options.json:
        print(json.dumps({"rules": [row._asdict() for row in rows]}))
    else:
        print(format_rules(_rule_from_row(row) for row in rows), end="")
    return 0


def _import(options: argparse.Namespace) -> int:
    rules = parse_rules(_read_file(options.file), str(options.file))
    if not rules:
        raise UsageError(f"{options.file}: holds no rule: write one [[rule]] table a rule")
    return _run_and_print(options, AddRules(rules))


def _read_file(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise UsageError(f"{file}: cannot be read ({reason}); name a file that export wrote") from None


def _load_rules(options: argparse.Namespace) -> list[RuleRow]:
    with open_state_reader(data_folder(options)) as view:
        return view.store.list_search_rules()


def _rule_from_row(row: RuleRow) -> Rule:
    kind: Any = row.kind
    return Rule(kind, row.query, row.value)


def _run_and_print(options: argparse.Namespace, order: Command) -> int:
    told = run_command(options, order)
    print(json.dumps(told) if options.json else format_done(told))
    return 0


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": _list,
    "synonym": _synonym,
    "pin": _pin,
    "hide": _hide,
    "block": partial(_add_global_rule, "block"),
    "raise": partial(_add_global_rule, "raise"),
    "lower": partial(_add_global_rule, "lower"),
    "conceal": partial(_add_global_rule, "conceal"),
    "remove": _remove,
    "export": _export,
    "import": _import,
}
