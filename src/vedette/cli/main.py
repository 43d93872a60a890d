"""The ``vedette`` program: its table of commands, argument parsing, and one-line errors with suggestions.

A command's module is imported only when that command is typed. It has ``DESCRIPTION`` (its ``--help``),
``add_arguments(parser)`` and ``run(options)``; subcommands set ``run`` by their own defaults. Exit codes: 0 done, 1
failed, 2 wrong usage.
"""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn, Protocol, cast

from vedette.compiled import get_form
from vedette.errors import UsageError, VedetteError
from vedette.version import __version__

# Before numpy is imported, which reads it. Each job has its own process: threads for products of small matrices would
# only interfere.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class Command(NamedTuple):
    """An entry in the table of commands: name, line in ``vedette --help``, and the module imported on use."""

    name: str
    help: str
    module: str


COMMANDS = (
    Command("up", "crawl sites and keep them fresh until you press Ctrl-C", "vedette.cli.commands.up"),
    Command("crawl", "crawl sites once", "vedette.cli.commands.crawl"),
    Command("fetch", "fetch specific pages now", "vedette.cli.commands.fetch"),
    Command("retry", "retry failed pages now", "vedette.cli.commands.retry"),
    Command("search", "search the index", "vedette.cli.commands.search"),
    Command("sites", "add, change and remove sites", "vedette.cli.commands.sites"),
    Command("keys", "manage keys for users and programs", "vedette.cli.commands.keys"),
    Command("rules", "define synonyms; pin, hide or block results", "vedette.cli.commands.rules"),
    Command("set", "change a setting without a restart", "vedette.cli.commands.set_"),
    Command("queries", "see what people search for", "vedette.cli.commands.queries"),
    Command("forget", "delete recorded searches", "vedette.cli.commands.forget"),
    Command("token", "replace the console token", "vedette.cli.commands.token"),
    Command("status", "show the state of a crawl", "vedette.cli.commands.status"),
    Command("explain", "explain what was decided about a URL", "vedette.cli.commands.explain"),
    Command("demo", "crawl and search a synthetic web on this machine", "vedette.cli.demo.command"),
    Command("new", "list new pages", "vedette.cli.commands.new"),
    Command("watch", "manage watches, which report new pages", "vedette.cli.commands.watch"),
    Command("sponsor", "manage sponsored results: campaigns, ads, reports", "vedette.cli.commands.sponsor"),
    Command("cluster", "crawl on several machines", "vedette.cli.commands.cluster"),
    Command("observers", "manage remote observers", "vedette.cli.commands.observers"),
    Command("observe", "fetch from nearby sites for a Vedette elsewhere", "vedette.cli.commands.observe"),
    Command("lab", "run experiments on recorded and synthetic webs; evaluate crawlers", "vedette.cli.lab.command"),
    Command("export", "export URLs or pages", "vedette.cli.commands.export"),
    Command("import", "import URLs or pages from files", "vedette.cli.commands.import_"),
    Command("check", "verify and repair the files in a data folder", "vedette.cli.commands.check"),
    Command("reindex", "rebuild the index", "vedette.cli.commands.reindex"),
    Command("backup", "copy the data folder, even while it is in use", "vedette.cli.commands.backup"),
    Command("restore", "create a data folder from a backup", "vedette.cli.commands.restore"),
)


class CommandModule(Protocol):
    """The interface of a command's module: its description, ``add_arguments`` and ``run``."""

    DESCRIPTION: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments and options, or its subcommands, to the parser."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the command; return its exit code."""


class Parser(argparse.ArgumentParser):
    """The ``vedette`` argument parser: raises ``UsageError`` instead of exiting, and takes no abbreviations."""

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)  # type: ignore[arg-type]  # argparse's own keywords, passed on

    def error(self, message: str) -> NoReturn:
        """Raise a ``UsageError`` with argparse's message and which help to read."""
        wrong = re.fullmatch(r"argument COMMAND: invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL)
        if wrong:
            near = difflib.get_close_matches(wrong[1], re.findall(r"[a-z-]+", wrong[2]), 1)
            advice = f"did you mean {near[0]}?" if near else f"choose from {wrong[2]}"
            message = f'unknown command "{wrong[1]}": {advice}'
            if near:
                raise UsageError(message)
        raise UsageError(f"{message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``vedette`` command line; errors are one line on what to do (``--debug`` shows the traceback).

    Files with pages, searches and digests of keys must be readable only by their owner.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    before = os.umask(0o077)
    try:
        options = parse_arguments(arguments)
        code: int = options.run(options)
    except VedetteError as error:
        if "--debug" in arguments:
            raise
        _print_error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has closed it; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        os.umask(before)
    return code


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a ``vedette`` command line into options, with ``run`` set to the function that executes it."""
    typed = [command for command in COMMANDS if command.name == next(iter(arguments), "")]
    parser = build_parser(typed)
    options, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        raise UsageError(_describe_unknown(unknown[0], getattr(options, "parser", parser)))
    if not hasattr(options, "run"):
        raise UsageError('missing command: try "vedette up https://example.org/", or see vedette --help')
    return options


def build_parser(loaded: Sequence[Command] = COMMANDS) -> Parser:
    """Build the parser of all ``vedette`` commands; only loaded ones are imported and get their arguments."""
    parser = Parser(
        prog="vedette",
        description="A self-hosted search engine that crawls sites, keeps them fresh, makes them\n"
        "searchable and explains its decisions.",
    )
    parser.add_argument("--version", action="version", version=f"vedette {__version__} ({get_form()})")
    subparsers = parser.add_subparsers(metavar="COMMAND")
    for command in COMMANDS:
        inner = subparsers.add_parser(command.name, help=command.help)
        if command in loaded:
            module = cast("CommandModule", import_module(command.module))
            inner.description = module.DESCRIPTION
            inner.set_defaults(run=module.run, parser=inner)
            module.add_arguments(inner)
    return parser


def _describe_unknown(word: str, parser: argparse.ArgumentParser) -> str:
    options = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001 - argparse has no other list of them
    near = difflib.get_close_matches(word.partition("=")[0], options, 1)
    advice = f"did you mean {near[0]}?" if near else f"see {parser.prog} --help"
    kind = "option" if word.startswith("-") else "argument"
    return f"unknown {kind} {word}; {advice}"


def _print_error(message: str) -> None:
    red, plain = ("\x1b[31m", "\x1b[0m") if sys.stderr.isatty() and "NO_COLOR" not in os.environ else ("", "")
    print(f"{red}vedette: {message}{plain}", file=sys.stderr)
