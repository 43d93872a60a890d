"""What ``vedette keys …`` does. The secret of a key is printed once, and neither kept nor logged."""

import argparse
import json
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vedette.adapters.crawl_store.reader import open_view
from vedette.cli.data_folder import folder_of, hint, ordered, sentence
from vedette.cli.inner_verbs import add_inner
from vedette.cli.output import plain
from vedette.config import format_rate, parse_rate
from vedette.errors import UsageError
from vedette.runtime.commands.search_commands import key_of, row_of
from vedette.web.api.responses import iso_time
from vedette.web.auth.keys import RANDOM_BYTES, Key, new_key
from vedette.web.commands.commands import NewKey, RevokeKey

__all__ = ["VERBS", "add"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Keys of readers and programs. A key is shown once, when it is made; only its digest is
kept. Changes hold at once where "vedette up" runs.

  vedette keys create wiki --scope search,private --rate 60/min
  vedette keys create shop --site shop.example.org/help/
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    keys = verbs.add_parser("keys", help="who may search", description=DESCRIPTION)
    keys.set_defaults(run=_say_what, parser=keys)
    inner = keys.add_subparsers(metavar="VERB", parser_class=type(keys))
    create = _verb(inner, "create", "make a key, and show it this once")
    create.add_argument("name", metavar="NAME", help="whose it is; sites name their readers by it")
    create.add_argument("--scope", metavar="SCOPES", default="search", help="search, private, admin (default: search)")
    create.add_argument("--rate", metavar="RATE", help="no more requests than this, such as 60/min; 0 for no limit")
    create.add_argument(
        "--site",
        metavar="HOST/PATH",
        action="append",
        default=[],
        help="only for what lies there, such as docs.example.org/api/ (may be repeated)",
    )
    _verb(inner, "list", "all keys and what they are for, revoked ones too")
    revoke = _verb(inner, "revoke", "let a key open nothing from now on")
    revoke.add_argument("name", metavar="NAME", help="the name of the key")


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "keying")


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say create, list or revoke; see vedette keys --help")


def _create(options: argparse.Namespace) -> int:
    if "," in options.name:
        raise UsageError("a name of a key has no comma, since commas stand between names: take another name")
    scopes = list(dict.fromkeys(scope.strip() for scope in options.scope.split(",")))
    rate = parse_rate(options.rate) if options.rate is not None else None
    secret, key = new_key(options.name, scopes, rate, options.site, secrets.token_bytes(RANDOM_BYTES))
    told = ordered(options, NewKey(row_of(key)))
    if options.json:
        print(json.dumps({**told, "name": key.name, "secret": secret}))
    else:
        print(secret)
        print(f"This is the key of {key.name}, for {_purpose(key)}.")
        print("Keep it safe   it is shown this once, and kept nowhere")
        print("Send it as     Authorization: Bearer vk_…")
        print(f"Take it back   {hint(f'keys revoke {key.name}', options)}")
    return 0


def _list(options: argparse.Namespace) -> int:
    with open_view(folder_of(options)) as view:
        keys = [key_of(row) for row in view.book.reader_keys()]
    if options.json:
        print(json.dumps({"keys": [_as_json(key) for key in keys]}))
        return 0
    for key in keys:
        revoked = f", revoked {iso_time(key.revoked_s)[:10]}" if key.revoked_s is not None else ""
        print(f"{plain(key.name)}   {_purpose(key)}, made {iso_time(key.created_s)[:10]}{revoked}")
    if not keys:
        print(f"No keys yet: {hint('keys create NAME', options)} makes one.")
    return 0


def _revoke(options: argparse.Namespace) -> int:
    told = ordered(options, RevokeKey(options.name))
    print(json.dumps(told) if options.json else sentence(told))
    return 0


def _purpose(key: Key) -> str:
    rate = f", {format_rate(key.rate) if key.rate.requests else 'no limit'}" if key.rate is not None else ""
    sites = f", only {' '.join(key.sites)}" if key.sites else ""
    return f"{' and '.join(key.scopes)}{rate}{sites}"


def _as_json(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "scopes": key.scopes,
        "rate": None if key.rate is None else format_rate(key.rate),
        "sites": key.sites,
        "created_s": key.created_s,
        "revoked_s": key.revoked_s,
    }


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {"create": _create, "list": _list, "revoke": _revoke}
