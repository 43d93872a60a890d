"""What ``vedette rules …`` does: through the keeper where one runs, else on the held folder; each action is logged."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.cli.data_folder import folder_of, hint
from vedette.cli.ordering import ordered, sentence
from vedette.cli.output import plain
from vedette.errors import UsageError
from vedette.web.commands.commands import AddRules, Order, RemoveRules, Rule, RuleKind
from vedette.web.commands.rule_text import read_rules_text, rule_of, write_rules

__all__ = ["VERBS"]


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
