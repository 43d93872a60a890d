"""The operator's token: made at the first start, and by ``vedette token new``. It is printed once, and kept nowhere."""

import argparse
import json
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from vedette.cli.data_folder import ACTOR, run_command
from vedette.cli.inner_verbs import add_subcommand
from vedette.errors import UsageError
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.commands.offline import open_for_write
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.auth.tokens import create_operator_token, hash_secret
from vedette.web.commands.commands import ReplaceToken

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
The operator's token, which opens the console. It is shown once, when it is made: at the
first start, and here. Only its digest is kept. A new one replaces the one before, and
whoever is signed in is signed out.

  vedette token new
"""


def add_command(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its verb."""
    token = verbs.add_parser("token", help="what opens the console", description=DESCRIPTION)
    token.set_defaults(run=_require_subcommand, parser=token)
    inner = token.add_subparsers(metavar="VERB", parser_class=type(token))
    add_subcommand(inner, "new", "make another token, and show it this once", "tokening")


def _require_subcommand(_: argparse.Namespace) -> int:
    raise UsageError("say new; see vedette token --help")


def ensure_token(settings: RuntimeSettings) -> str:
    """A token where the folder has none yet; empty where it has."""
    with open_for_write(settings.folder, settings.clock.wall_now()) as state:
        if state.store.read_token_digest():
            return ""
        token = create_operator_token(secrets.token_bytes(32))
        execute_command(ReplaceToken(hash_secret(token)), state, settings.clock.now(), ACTOR)
        return token


def console_lines(address: str, token: str, replace: str) -> list[str]:
    """What is said of the console at a start."""
    lines = [f"Console {address.rstrip('/')}/console"]
    if token:
        return [*lines, f"Token   {token}", f"        shown this once; {replace} makes another"]
    return [*lines, f"        if the token is lost: {replace}"]


def _create_token(options: argparse.Namespace) -> int:
    token = create_operator_token(secrets.token_bytes(32))
    told = run_command(options, ReplaceToken(hash_secret(token)))
    if options.json:
        print(json.dumps({**told, "token": token}))
    else:
        print(token)
        print("This is the operator's token. The one before opens nothing, and everybody is signed out.")
        print("Keep it safe   it is shown this once, and kept nowhere")
        print("Use it at      /console of the search page")
    return 0


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {"new": _create_token}
