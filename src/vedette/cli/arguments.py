"""The command line's grammar: verbs, options, and errors in one line that name the nearest right word."""

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

from vedette import __version__
from vedette.cli.commands import (
    backup,
    crawl,
    explain,
    export,
    fetch,
    forget,
    import_,
    keys,
    new,
    queries,
    reindex,
    restore,
    rules,
    search,
    set_,
    sites,
    sponsor,
    status,
    token,
    up,
    watch,
)
from vedette.cli.demo import command as demo
from vedette.cli.lab import command as lab
from vedette.errors import UsageError


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


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, with ``run`` set to what carries them out."""
    parser = _build_parser()
    options, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        raise UsageError(_describe_unknown(unknown[0], getattr(options, "parser", parser)))
    if not hasattr(options, "run"):
        raise UsageError('say what to do, such as "vedette up https://example.org/"; see vedette --help')
    return options


def _build_parser() -> Parser:
    parser = Parser(prog="vedette", description="A search engine in a box: crawl, keep fresh, find, explain.")
    parser.add_argument("--version", action="version", version=f"vedette {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", parser_class=Parser)
    for verb in (up, crawl, fetch, search, sites, keys, rules, set_, queries, forget, token, status, explain, demo):
        verb.add(verbs)
    for verb in (new, watch, sponsor, lab, export, import_, reindex, backup, restore):
        verb.add(verbs)
    return parser


def _describe_unknown(word: str, parser: argparse.ArgumentParser) -> str:
    known = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001 - argparse has no other list of them
    near = difflib.get_close_matches(word.partition("=")[0], known, 1)
    advice = f"did you mean {near[0]}?" if near else f"see {parser.prog} --help"
    kind = "option" if word.startswith("-") else "argument"
    return f"unknown {kind} {word}; {advice}"
