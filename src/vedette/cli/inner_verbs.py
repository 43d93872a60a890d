"""Verbs of verbs: ``vedette sites add``, ``vedette keys revoke`` and their like are made in one way."""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add_inner"]


def add_inner(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str, module: str) -> "Parser":
    """An inner verb that ``VERBS`` of a module of this folder carries out, with what all of them have."""
    parser = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=_runner(name, module), parser=parser)
    return parser


def _runner(name: str, module: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        # Heavy libraries load only when there is something to do.
        code: int = import_module(f"vedette.cli.{module}").VERBS[name](options)
        return code

    return run
