"""``vedette cluster …``: crawl on several machines, each running some shards of the web."""

import argparse
import json
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import check_format
from vedette.adapters.crawl_store.partition_copy import CopiedHosts
from vedette.adapters.crawl_store.store import SiteRow
from vedette.cli.data_folder import crawl_settings, data_folder, load_config, print_note, read_sites
from vedette.cli.options import (
    add_data_options,
    add_fetch_options,
    add_listen_options,
    add_output_options,
    add_scope_options,
    add_subcommand,
    add_subcommands,
    require_subcommand,
)
from vedette.cli.output import format_count, format_number
from vedette.errors import UsageError
from vedette.fetch.request import PRODUCT
from vedette.version import __version__
from vedette.web.commands.commands import AddSite, command_to_json

DEFAULT_SHARDS = 16
DEFAULT_LEASE_S = 15.0
MIN_LEASE_S = 3.0

DESCRIPTION = """\
Crawl on several machines. The web is divided into shards, and each machine runs
some of them. PostgreSQL records which machine runs which shard. For current
limits, see docs/cluster.md.

  vedette cluster init --postgres postgresql://vedette@db/vedette --shards 16 \
    --storage s3://BUCKET/PREFIX
  vedette cluster add --postgres ... https://example.org/
  vedette cluster join --postgres ... --shards 4     (on each machine)
  vedette cluster status --postgres ...
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette cluster`` and their options."""
    inner = add_subcommands(parser)
    init = add_subcommand(inner, "init", "create a cluster in an empty PostgreSQL database", _init)
    init.add_argument(
        "--shards", metavar="N", type=_parse_count, default=DEFAULT_SHARDS, help="number of shards (default: 16)"
    )
    init.add_argument(
        "--lease",
        metavar="SECONDS",
        type=_parse_lease,
        default=DEFAULT_LEASE_S,
        help="seconds without a heartbeat before other nodes take over a node's shards (default: 15)",
    )
    init.add_argument(
        "--storage",
        metavar="URL",
        default="",
        help="copy all shards to object storage: s3://BUCKET/PREFIX, or file:///FOLDER (default: no copies)",
    )
    join = add_subcommand(inner, "join", "run shards on this machine until you press Ctrl-C", _join)
    join.add_argument("--name", default=socket.gethostname(), help="the name of this node (default: the host name)")
    join.add_argument(
        "--shards", metavar="N", type=_parse_count, default=0, help="run at most N shards (default: all that are free)"
    )
    join.add_argument(
        "--address",
        metavar="HOST",
        default="127.0.0.1",
        help="this machine's address on the cluster's private network (default: 127.0.0.1, for a single machine)",
    )
    add_listen_options(
        join, "serve the whole cluster's search page, API and console at this address (default: not served)"
    )
    add_fetch_options(join)
    add_data_options(join)
    add = add_subcommand(inner, "add", "add sites to all shards, even while the cluster is running", _add)
    add.add_argument("sites", metavar="SITE", nargs="+", help="a site to add: an http(s) URL or a host name")
    add_scope_options(add)
    status = add_subcommand(
        inner, "status", "list the shards with their owners, leases and waiting links", _show_status
    )
    import_ = add_subcommand(
        inner, "import", "split a single-machine data folder into shards for a new cluster", _import
    )
    import_.add_argument("source", metavar="FOLDER", type=Path, help="a data folder that is not in use")
    export = add_subcommand(
        inner, "export", "merge a stopped cluster's shards into a single-machine data folder", _export
    )
    export.add_argument("target", metavar="FOLDER", type=Path, help="a new folder")
    for each in (import_, export):
        add_data_options(each)
    drain = add_subcommand(inner, "drain", "hand over all of a node's shards to the other nodes and stop it", _drain)
    drain.add_argument("node", metavar="NODE", help="the name of a running node")
    split = add_subcommand(inner, "split", "split a shard in two; it pauses during the split", _split)
    split.add_argument("shard", metavar="SHARD", type=_parse_shard, help="the shard's number, as shown by status")
    rebalance = add_subcommand(inner, "rebalance", "move shards from nodes with many to nodes with few", _rebalance)
    for each in (init, join, add, import_, export, status, drain, split, rebalance):
        each.add_argument(
            "--postgres", metavar="DSN", help="the cluster's PostgreSQL database (default: VEDETTE_POSTGRES)"
        )
        add_output_options(each)


run = require_subcommand


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1024):
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of shards: use 1 to 1024')
    return int(text)


def _parse_shard(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1024):
        raise argparse.ArgumentTypeError(f'"{text}" is not a shard: use its number in vedette cluster status')
    return int(text)


def _parse_lease(text: str) -> float:
    try:
        lease_s = float(text)
    except ValueError:
        lease_s = 0.0
    if not MIN_LEASE_S <= lease_s <= 3600.0:
        raise argparse.ArgumentTypeError(f'"{text}" is not a lease: use {MIN_LEASE_S:g} to 3600 seconds')
    return lease_s


def _init(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import read_dsn
    from vedette.adapters.registry.registry import create_cluster

    dsn = read_dsn(options.postgres)
    id_ = create_cluster(dsn, options.shards, options.lease, options.storage)
    if options.json:
        print(json.dumps({"cluster": id_, "shards": options.shards}))
    else:
        print(
            f"Created cluster {id_} with {format_count(options.shards, 'shard')}. On each machine: vedette cluster join"
        )
    return 0


def _add(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import connect, read_dsn
    from vedette.adapters.registry.registry import add_site

    sites = read_sites(options)
    with connect(read_dsn(options.postgres)) as connection:
        new = [site.start for site in sites if add_site(connection, site.start, command_to_json(AddSite(site)))]
    if options.json:
        print(json.dumps({"added": new}))
    else:
        known = [site.start for site in sites if site.start not in new]
        print("\n".join([*(f"added {start}" for start in new), *(f"{start} was already added" for start in known)]))
    return 0


def _join(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import connect, read_dsn
    from vedette.adapters.registry.registry import list_sites
    from vedette.cli.commands.token import console_lines, ensure_token
    from vedette.cli.commands.up import search_address
    from vedette.runtime.cluster.node import Node
    from vedette.runtime.processes.run import catch_signals, check_serving, find_blocked_sites
    from vedette.web.commands.commands import command_from_json
    from vedette.web.server import bind

    dsn, settings = read_dsn(options.postgres), crawl_settings(options)
    if not options.name or len(options.name) > 100 or not options.name.isprintable():
        raise UsageError("--name: use at most 100 characters")
    if options.listen:
        check_serving(settings.config)
        settings = replace(settings, listener=bind(options.listen))
    with catch_signals() as is_stopped:
        node = Node(settings, dsn, options.name, options.shards or 1024, print_note, options.address)
        with connect(dsn) as connection:
            commands = [command_from_json(command) for _, command in list_sites(connection)]
        rows = [SiteRow(one.site, paused=False, added_s=0.0) for one in commands if isinstance(one, AddSite)]
        for words in find_blocked_sites(replace(settings, forever=True), rows):
            print_note(words)
        if not options.json:
            print(
                f"Node {options.name} of cluster {node.cluster.id}; data in {settings.folder}; Ctrl-C to stop",
                flush=True,
            )
        if options.listen:
            folder = node.prepare_gateway()
            token = ensure_token(replace(settings, folder=folder))
            if not options.json:
                replace_with = f"vedette token new --data {folder}"
                print("\n".join(console_lines(search_address(settings), token, replace_with)), flush=True)
        node.run(is_stopped)
    return 0


def _import(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import read_dsn
    from vedette.runtime.cluster.transfer import import_folder

    if check_format(options.source) is None:
        raise UsageError(f"{options.source} is not a data folder: pass the one that vedette up used")
    copied = import_folder(read_dsn(options.postgres), options.source, data_folder(options))
    return _print_copied(copied, f"into the shards in {data_folder(options)}", options)


def _export(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import read_dsn
    from vedette.runtime.cluster.transfer import export_folder

    dsn, limit_bytes = read_dsn(options.postgres), load_config(options).crawl.max_page_bytes
    copied = export_folder(dsn, data_folder(options), options.target, f"{PRODUCT}/{__version__}", limit_bytes)
    return _print_copied(copied, f"into {options.target}", options)


def _print_copied(copied: CopiedHosts, where: str, options: argparse.Namespace) -> int:
    if options.json:
        print(json.dumps(copied._asdict()))
    else:
        print(f"Copied {format_count(copied.urls, 'URL')} and {format_count(copied.pages, 'page')} {where}")
    return 0


def _drain(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import connect, read_dsn
    from vedette.adapters.registry.registry import drain_node

    with connect(read_dsn(options.postgres)) as connection:
        drain_node(connection, options.node)
    if options.json:
        print(json.dumps({"draining": options.node}))
    else:
        print(f"{options.node} is handing over its shards and will then stop; see vedette cluster status")
    return 0


def _split(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import connect, read_dsn
    from vedette.adapters.registry.resharding import request_split

    with connect(read_dsn(options.postgres)) as connection:
        request_split(connection, options.shard)
    if options.json:
        print(json.dumps({"splitting": options.shard}))
    else:
        print(f"Shard {options.shard} will be split; see vedette cluster status")
    return 0


def _rebalance(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import connect, read_dsn
    from vedette.adapters.registry.resharding import rebalance

    with connect(read_dsn(options.postgres)) as connection:
        moves = rebalance(connection)
    if options.json:
        print(json.dumps({"moving": [{"shard": shard, "node": node} for shard, node in moves]}))
    elif moves:
        print("\n".join(f"{node} will hand over shard {shard}" for shard, node in moves))
    else:
        print("No shards need to move: they are spread evenly, or the other nodes are full")
    return 0


def _show_status(options: argparse.Namespace) -> int:
    from vedette.adapters.registry.database import connect, read_dsn
    from vedette.adapters.registry.registry import ShardStatus, list_shards

    with connect(read_dsn(options.postgres)) as connection:
        shards = list_shards(connection)
    if options.json:
        rows = [{**shard._asdict(), "partitions": [shard.partitions[0], shard.partitions[-1]]} for shard in shards]
        print(json.dumps({"shards": rows}))
        return 0

    def describe(shard: ShardStatus) -> Sequence[str]:
        numbers = [
            format_number(int(shard.numbers.get(name, 0))) for name in ("urls_known", "urls_waiting", "requests")
        ]
        owner = shard.owner or ("not started" if shard.epoch == 0 else "NO OWNER")
        age = "none" if shard.copy_age_s is None else f"{shard.copy_age_s:.0f} s"
        return str(shard.number), owner, str(shard.epoch), f"{shard.lease_s:.0f} s", *numbers, str(shard.waiting), age

    head = ("shard", "owner", "epoch", "lease", "known", "waiting", "requests", "links in", "copy age")
    table = [head, *map(describe, shards)]
    widths = [max(len(row[place]) for row in table) for place in range(len(head))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0
