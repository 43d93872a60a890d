"""Verbs of verbs: ``vedette sites add``, ``vedette keys revoke`` and their like are made in one way."""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from vedette.cli.options import add_data_options, add_output_options

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


def add_subcommand(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str, module: str) -> "Parser":
    """An inner verb that ``VERBS`` of a module of this folder carries out, with what all of them have."""
    parser = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    add_data_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=_lazy_runner(name, module), parser=parser)
    return parser


def _lazy_runner(name: str, module: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        # Heavy libraries load only when there is something to do.
        code: int = import_module(f"vedette.cli.{module}").VERBS[name](options)
        return code

    return run
