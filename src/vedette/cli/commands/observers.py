"""``vedette observers …``: manage remote observers and their hosts."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.observers.registry import ObserverRegistry
from vedette.adapters.observers.wire import derive_key
from vedette.cli.data_folder import crawled_folder, execute, execute_and_print, format_command
from vedette.cli.options import add_folder_subcommand, add_subcommands, require_subcommand
from vedette.cli.output import format_count, sanitize
from vedette.discover.urls.scope import read_site
from vedette.model import origin_of
from vedette.runtime.observers.keys import ObserverKey, check_name, format_key
from vedette.runtime.observers.service import FolderObserverService
from vedette.web.api.responses import format_iso_time
from vedette.web.commands.commands import AddObserver, AssignHosts, RevokeObserver
from vedette.web.observers.ports import ObservedHostView, ObserverView

DESCRIPTION = """\
Manage remote observers: processes elsewhere that fetch from nearby hosts and
report changes. A running "vedette up" applies these commands immediately.

  vedette observers add tokyo --write tokyo.key
  vedette observers assign tokyo www.example.jp docs.example.jp
"""
HOME_WORD = "home"
WIDTH = 72


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette observers`` and their options."""
    inner = add_subcommands(parser)
    add_folder_subcommand(inner, "list", "list observers, their hosts and how long observations take", _list)
    add = add_folder_subcommand(inner, "add", "add an observer and show its key", _add)
    add.add_argument("name", metavar="NAME", help="a name: lower-case letters, digits and hyphens")
    add.add_argument("--write", metavar="FILE", type=Path, help="write the key to this file instead of showing it")
    add.add_argument(
        "--secrets-of",
        metavar="SITE",
        action="append",
        default=[],
        help="a private site whose credentials are sent to the observer (may be repeated)",
    )
    add.add_argument("--auto", action="store_true", help="also assign hosts to it that are clearly faster from there")
    revoke = add_folder_subcommand(inner, "revoke", "revoke an observer; home takes over its hosts", _revoke)
    revoke.add_argument("name", metavar="NAME", help="the name of the observer")
    assign = add_folder_subcommand(inner, "assign", "assign hosts to an observer, or back to home", _assign)
    assign.add_argument("name", metavar="NAME", help=f'the name of the observer, or "{HOME_WORD}"')
    assign.add_argument("hosts", metavar="HOST", nargs="+", help="a host name or a URL on it")


run = require_subcommand


def _add(options: argparse.Namespace) -> int:
    name = check_name(options.name)
    done = execute(
        options, AddObserver(name, tuple(read_site(text).start for text in options.secrets_of), options.auto)
    )
    with read_state(crawled_folder(options)) as db:
        row, secret = ObserverRegistry(db).find_observer(name), CrawlStore(db).read_secret()
    assert row is not None, f"{name} was just added"
    line = format_key(ObserverKey(name, derive_key(secret, name, row.generation)))
    if options.write is not None:
        options.write.touch(mode=0o600)
        options.write.write_text(f"{line}\n", encoding="utf-8")
    if options.json:
        print(json.dumps({**done, "name": name, "key": None if options.write else line}))
        return 0
    file = options.write or Path(f"{name}.key")
    print(f"Wrote the key of {name} to {file}." if options.write else line)
    if not options.write:
        print(f"This is the key of {name}. Save it as {file} on the observer's machine, readable only by its user.")
    print(f"Start it there  vedette observe --home URL --key {file.name}")
    print(f"Assign hosts    {format_command(f'observers assign {name} HOST', options)}")
    print(f"Revoke it       {format_command(f'observers revoke {name}', options)}")
    return 0


def _revoke(options: argparse.Namespace) -> int:
    return execute_and_print(options, RevokeObserver(options.name), when=False)


def _assign(options: argparse.Namespace) -> int:
    hosts = tuple(dict.fromkeys(origin_of(read_site(text).start).host for text in options.hosts))
    observer = "" if options.name == HOME_WORD else options.name
    return execute_and_print(options, AssignHosts(hosts, observer))


def _list(options: argparse.Namespace) -> int:
    service = FolderObserverService(crawled_folder(options))
    observers, hosts, kept = service.list_observers(), service.list_hosts(), service.list_kept()
    if options.json:
        found = {
            "observers": [one._asdict() for one in observers],
            "hosts": [one._asdict() for one in hosts],
            "kept": kept,
        }
        print(json.dumps(found))
        return 0
    for one in observers:
        print(f"{one.name}   {_describe(one)}")
        for host in hosts:
            if host.observer == one.name:
                print(f"    {host.host}", *(f"        {line}" for line in _describe_host(host)), sep="\n")
    if kept:
        print(f"{HOME_WORD}   keeps {', '.join(kept)} (by hand)")
    if not observers:
        print(f"No observers yet. To add one: {format_command('observers add NAME', options)}")
    return 0


def _describe(one: ObserverView) -> str:
    if one.revoked_s is not None:
        return f"revoked {format_iso_time(one.revoked_s)[:16]} ({one.trouble})"
    if one.heard_s is None:
        return "no reports yet"
    speed = f", {one.latency_s * 1000:.0f} ms away" if one.latency_s is not None else ""
    return f"last report {format_iso_time(one.heard_s)[:16]}{speed}, {format_count(one.held, 'errand')}"


def _describe_host(host: ObservedHostView) -> Iterator[str]:
    """Describe in one line each why an observer has a host, what it saw, and what that takes."""
    going = "" if host.next is None else f"; moves to {host.next or HOME_WORD} once released"
    yield from wrap(f"{sanitize(host.why)}{going}", WIDTH)
    if host.looks:
        yield f"{format_count(host.looks, 'observation')}, {host.change_share or 0.0:.0%} changed"
    if host.remote_s is not None and host.direct_s is not None:
        yield f"{host.remote_s:.3f} s each, {host.direct_s:.3f} s from home"
