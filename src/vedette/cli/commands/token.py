"""``vedette token new``: replace the operator's token, which is created at the first start and printed only once."""

import argparse
import json
import secrets

from vedette.adapters.crawl_store.data_folder import open_for_write
from vedette.cli.data_folder import ACTOR, execute
from vedette.cli.options import add_folder_subcommand, add_subcommands, require_subcommand
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.auth.tokens import create_operator_token, hash_secret
from vedette.web.commands.commands import ReplaceToken

DESCRIPTION = """\
Manage the operator's token, which lets you sign in to the console. It is only
shown when it is created, on first start or with this command. Only its digest
is stored. A new token replaces the old one and signs everyone out.

  vedette token new
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette token`` and their options."""
    inner = add_subcommands(parser)
    add_folder_subcommand(inner, "new", "replace the token and show the new one once", _create_token)


run = require_subcommand


def ensure_token(settings: RuntimeSettings) -> str:
    """Create the operator's token if the data folder has none; return it, or an empty text if there is one."""
    with open_for_write(settings.folder, settings.clock.wall_now()) as state:
        if state.store.read_token_digest():
            return ""
        token = create_operator_token(secrets.token_bytes(32))
        execute_command(ReplaceToken(hash_secret(token)), state, settings.clock.now(), ACTOR)
        return token


def console_lines(address: str, token: str, replace: str) -> list[str]:
    """Return the lines printed at startup about the console's address and the operator's token."""
    lines = [f"Console {address.rstrip('/')}/console"]
    if token:
        return [*lines, f"Token   {token}", f"        not shown again; to replace it: {replace}"]
    return [*lines, f"        lost the token? {replace}"]


def _create_token(options: argparse.Namespace) -> int:
    token = create_operator_token(secrets.token_bytes(32))
    done = execute(options, ReplaceToken(hash_secret(token)))
    if options.json:
        print(json.dumps({**done, "token": token}))
    else:
        print(token)
        print("This is the operator's new token. The old one no longer works, and everyone has been signed out.")
        print("Keep it safe   it is not stored and will not be shown again")
        print("Use it at      /console on the search server")
    return 0
