"""``vedette rules …``: manage rules for results: synonyms, pins, hidden URLs, blocked domains; changes are logged."""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.cli.data_folder import (
    data_folder,
    execute_and_print,
    format_command,
    open_cluster,
    read_exported_file,
)
from vedette.cli.options import add_cluster_options, add_folder_subcommand, add_subcommands, require_subcommand
from vedette.cli.output import sanitize
from vedette.errors import UsageError
from vedette.web.commands.commands import AddRules, RemoveRules, Rule, RuleKind
from vedette.web.commands.rule_text import format_rules, parse_rule, parse_rules

DESCRIPTION = """\
Manage rules for results. For a single query, you can add synonyms and choose
pages to show first or to hide. For all queries, you can block domains (so that
they are neither shown nor fetched), raise or lower their rank, and conceal
pages. Changes take effect within seconds and survive recrawls, imports and
reindexing. Rules match queries by their words, ignoring case, accents and
punctuation.

  vedette rules synonym k8s kubernetes
  vedette rules pin "time off" https://intranet.example.org/holidays
  vedette rules conceal "https://example.org/drafts/*"
"""


KINDS = ("synonym", "pin", "hide", "block", "raise", "lower", "conceal")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette rules`` and their options."""
    inner = add_subcommands(parser)
    add_folder_subcommand(inner, "list", "list all rules", _list)
    purpose = "treat words as synonyms, in both directions"
    synonym = add_folder_subcommand(inner, "synonym", purpose, _synonym)
    synonym.add_argument("word", metavar="WORD", help="a word")
    synonym.add_argument("others", metavar="OTHER", nargs="+", help="a synonym for the word")
    for_query: dict[RuleKind, str] = {
        "pin": "show a page first for a query",
        "hide": "hide a page for a query",
    }
    for kind, purpose in for_query.items():
        one = add_folder_subcommand(inner, kind, purpose, partial(_add_query_rule, kind))
        one.add_argument("query", metavar="QUERY", help="the whole query, in quotes")
        one.add_argument("url", metavar="URL", help="the page")
    of_domain: dict[RuleKind, str] = {
        "block": "exclude a domain from results and crawls",
        "raise": "rank pages from a domain higher",
        "lower": "rank pages from a domain lower",
    }
    for kind, purpose in of_domain.items():
        one = add_folder_subcommand(inner, kind, purpose, partial(_add_global_rule, kind))
        one.add_argument("value", metavar="DOMAIN", help="the domain, including its subdomains")
    purpose = "hide a page, or all pages under a prefix, for every query"
    conceal = add_folder_subcommand(inner, "conceal", purpose, partial(_add_global_rule, "conceal"))
    conceal.add_argument(
        "value", metavar="URL", help="the page's URL; end it with * to match all URLs with this prefix"
    )
    remove = add_folder_subcommand(inner, "remove", "remove a rule", _remove)
    remove.add_argument("kind", metavar="KIND", choices=KINDS, help=f"the kind of rule: {', '.join(KINDS)}")
    remove.add_argument("words", metavar="WORD", nargs="+", help="the arguments used to add the rule")
    add_folder_subcommand(inner, "export", "write all rules as TOML, for import", _export)
    load = add_folder_subcommand(inner, "import", "add rules from a file written by export", _import)
    load.add_argument(
        "file", metavar="FILE", type=Path, help="a TOML file with one [[rule]] table per rule, or - for standard input"
    )
    add_cluster_options(inner)


run = require_subcommand


def _list(options: argparse.Namespace) -> int:
    rows = _load_rules(options)
    if options.json:
        print(json.dumps({"rules": [row._asdict() for row in rows]}))
        return 0
    for row in rows:
        print(f"{row.kind:<8} {sanitize(str(_rule_from_row(row)), 4000)}")
    if not rows:
        print(f"No rules yet. To add one: {format_command('rules synonym WORD OTHER', options)}")
    return 0


def _synonym(options: argparse.Namespace) -> int:
    rules = tuple(parse_rule("synonym", options.word, other) for other in options.others)
    return execute_and_print(options, AddRules(rules), when=False)


def _add_query_rule(kind: RuleKind, options: argparse.Namespace) -> int:
    return execute_and_print(options, AddRules((parse_rule(kind, options.query, options.url),)), when=False)


def _add_global_rule(kind: RuleKind, options: argparse.Namespace) -> int:
    return execute_and_print(options, AddRules((parse_rule(kind, "", options.value),)), when=False)


def _remove(options: argparse.Namespace) -> int:
    *query, value = options.words
    return execute_and_print(options, RemoveRules((parse_rule(options.kind, " ".join(query), value),)), when=False)


def _export(options: argparse.Namespace) -> int:
    rows = _load_rules(options)
    if options.json:
        print(json.dumps({"rules": [row._asdict() for row in rows]}))
    else:
        print(format_rules(_rule_from_row(row) for row in rows), end="")
    return 0


def _import(options: argparse.Namespace) -> int:
    rules = parse_rules(read_exported_file(options.file), str(options.file))
    if not rules:
        raise UsageError(f"{options.file} contains no rules: add one [[rule]] table per rule")
    return execute_and_print(options, AddRules(rules), when=False)


def _load_rules(options: argparse.Namespace) -> list[RuleRow]:
    if (cluster := open_cluster(options)) is not None:
        stored = cluster.sites.list_rules()
        return [RuleRow(one.rule.kind, one.rule.query, one.rule.value, one.added_s) for one in stored]
    with open_state_reader(data_folder(options)) as view:
        return view.store.list_search_rules()


def _rule_from_row(row: RuleRow) -> Rule:
    kind: Any = row.kind
    return Rule(kind, row.query, row.value)
