"""The command line's grammar: verbs, options, and errors in one line that name the nearest right word."""

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

from vedette import __version__
from vedette.cli.commands import backup, export, import_, reindex, restore
from vedette.cli.commands import crawl_part as crawl
from vedette.cli.commands import explain_part as explain
from vedette.cli.commands import fetch_part as fetch
from vedette.cli.commands import forget_part as forget
from vedette.cli.commands import keys_part as keys
from vedette.cli.commands import new_part as new
from vedette.cli.commands import queries_part as queries
from vedette.cli.commands import rules_part as rules
from vedette.cli.commands import search_part as search
from vedette.cli.commands import set__part as set_
from vedette.cli.commands import sites_part as sites
from vedette.cli.commands import sponsor_part as sponsor
from vedette.cli.commands import status_part as status
from vedette.cli.commands import token_part as token
from vedette.cli.commands import up_part as up
from vedette.cli.commands import watch_part as watch
from vedette.cli.demo import demo
from vedette.cli.lab import command as lab
from vedette.errors import UsageError

__all__ = ["Parser", "parse"]


class Parser(argparse.ArgumentParser):
    """Raises ``UsageError`` instead of ending the program, and takes no abbreviations."""

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)  # type: ignore[arg-type]  # argparse's own keywords, passed on

    def error(self, message: str) -> NoReturn:
        """What argparse found wrong, and where to look."""
        wrong = re.fullmatch(r"argument VERB: invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL)
        if wrong:
            near = difflib.get_close_matches(wrong[1], re.findall(r"[a-z-]+", wrong[2]), 1)
            advice = f"did you mean {near[0]}?" if near else f"say {wrong[2]}"
            message = f'unknown verb "{wrong[1]}": {advice}'
        raise UsageError(f"{message}; see {self.prog} --help")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, with ``run`` set to what carries them out."""
    parser = _parser()
    options, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        raise UsageError(_unknown(unknown[0], getattr(options, "parser", parser)))
    if not hasattr(options, "run"):
        raise UsageError('say what to do, such as "vedette up https://example.org/"; see vedette --help')
    return options


def _parser() -> Parser:
    parser = Parser(prog="vedette", description="A search engine in a box: crawl, keep fresh, find, explain.")
    parser.add_argument("--version", action="version", version=f"vedette {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", parser_class=Parser)
    for verb in (up, crawl, fetch, search, sites, keys, rules, set_, queries, forget, token, status, explain, demo):
        verb.add(verbs)
    for verb in (new, watch, sponsor, lab, export, import_, reindex, backup, restore):
        verb.add(verbs)
    return parser


def _unknown(word: str, parser: argparse.ArgumentParser) -> str:
    known = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001 - argparse has no other list of them
    near = difflib.get_close_matches(word.partition("=")[0], known, 1)
    advice = f"did you mean {near[0]}?" if near else f"see {parser.prog} --help"
    kind = "option" if word.startswith("-") else "argument"
    return f"unknown {kind} {word}; {advice}"
