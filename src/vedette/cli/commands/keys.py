"""``vedette keys …``: manage keys of users and programs. A secret is printed once, and neither stored nor logged."""

import argparse
import json
import secrets
from typing import Any

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.cli.data_folder import data_folder, execute, execute_and_print, format_command
from vedette.cli.options import add_folder_subcommand, add_subcommands, require_subcommand
from vedette.cli.output import sanitize
from vedette.config import format_rate, parse_rate
from vedette.errors import UsageError
from vedette.runtime.commands.search_commands import key_from_row, row_from_key
from vedette.web.api.responses import format_iso_time
from vedette.web.auth.keys import SECRET_BYTES, Key, create_key
from vedette.web.commands.commands import CreateKey, RevokeKey

DESCRIPTION = """\
Manage keys for users and programs. A key is only shown once, when you create
it; only its digest is stored. A running "vedette up" applies changes
immediately.

  vedette keys create wiki --scope search,private --rate 60/min
  vedette keys create shop --site shop.example.org/help/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette keys`` and their options."""
    inner = add_subcommands(parser)
    create = add_folder_subcommand(inner, "create", "create a key and show it once", _create)
    create.add_argument(
        "name",
        metavar="NAME",
        help="the name of the person or program that uses the key; to grant "
        "access to a private site, add this name to the site's readers",
    )
    create.add_argument(
        "--scope",
        metavar="SCOPES",
        default="search",
        help="comma-separated scopes: search, private, admin (default: search)",
    )
    create.add_argument("--rate", metavar="RATE", help="the key's rate limit, such as 60/min; 0 for no limit")
    create.add_argument(
        "--site",
        metavar="HOST/PATH",
        action="append",
        default=[],
        help="limit the key to pages under this prefix, such as docs.example.org/api/ (may be repeated)",
    )
    add_folder_subcommand(inner, "list", "list all keys, including revoked ones", _list)
    revoke = add_folder_subcommand(inner, "revoke", "revoke a key", _revoke)
    revoke.add_argument("name", metavar="NAME", help="the name of the key")


run = require_subcommand


def _create(options: argparse.Namespace) -> int:
    if "," in options.name:
        raise UsageError("a key name cannot contain a comma, because commas separate names: choose another name")
    scopes = list(dict.fromkeys(scope.strip() for scope in options.scope.split(",")))
    rate = parse_rate(options.rate) if options.rate is not None else None
    secret, key = create_key(options.name, scopes, rate, options.site, secrets.token_bytes(SECRET_BYTES))
    done = execute(options, CreateKey(row_from_key(key)))
    if options.json:
        print(json.dumps({**done, "name": key.name, "secret": secret}))
    else:
        print(secret)
        print(f"This is the key of {key.name}, for {_describe_key(key)}.")
        print("Keep it safe   it is not stored and will not be shown again")
        print("Send it as     Authorization: Bearer vk_…")
        print(f"Revoke it      {format_command(f'keys revoke {key.name}', options)}")
    return 0


def _list(options: argparse.Namespace) -> int:
    with open_state_reader(data_folder(options)) as view:
        keys = [key_from_row(row) for row in view.store.list_user_keys()]
    if options.json:
        print(json.dumps({"keys": [_key_to_dict(key) for key in keys]}))
        return 0
    for key in keys:
        revoked = f", revoked {format_iso_time(key.revoked_s)[:10]}" if key.revoked_s is not None else ""
        print(f"{sanitize(key.name)}   {_describe_key(key)}, created {format_iso_time(key.created_s)[:10]}{revoked}")
    if not keys:
        print(f"No keys yet. To create one: {format_command('keys create NAME', options)}")
    return 0


def _revoke(options: argparse.Namespace) -> int:
    return execute_and_print(options, RevokeKey(options.name), when=False)


def _describe_key(key: Key) -> str:
    rate = f", {format_rate(key.rate) if key.rate.requests else 'no limit'}" if key.rate is not None else ""
    sites = f", only {' '.join(key.sites)}" if key.sites else ""
    return f"{' and '.join(key.scopes)}{rate}{sites}"


def _key_to_dict(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "scopes": key.scopes,
        "rate": None if key.rate is None else format_rate(key.rate),
        "sites": key.sites,
        "created_s": key.created_s,
        "revoked_s": key.revoked_s,
    }
