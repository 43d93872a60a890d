"""Import a single-machine folder into a new cluster, or export a stopped cluster to such a folder.

Both claim all shards, so that no node can run one in the meantime.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import lock_folder, open_for_write, read_state
from vedette.adapters.crawl_store.partition_copy import CopiedHosts, copy_partitions
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.exchange.link_store import LinkStore, decode_links
from vedette.adapters.exchange.mailbox import list_unapplied_links
from vedette.adapters.registry.database import check_clock, connect
from vedette.adapters.registry.registry import (
    Claim,
    Cluster,
    add_site,
    claim_shard,
    list_shards,
    load_cluster,
    release_shard,
)
from vedette.errors import ClusterError, UsageError
from vedette.model import PARTITIONS
from vedette.runtime.cluster.folders import create_folder, find_folders, prepare_folder
from vedette.runtime.commands.importer import Importer
from vedette.web.commands.commands import AddSite, command_to_json

LEASE_S = 3600.0
NODE = "import or export"


def import_folder(dsn: str, source: Path, data: Path) -> CopiedHosts:
    """Divide a single-machine folder among the shards of a cluster that has never run; create their folders."""
    with open_for_write(source, time.time()) as state:  # so that it has the newest format
        sites = [row.site for row in CrawlStore(state.db).list_sites()]
    urls = pages = 0
    with lock_folder(source), _claim_all(dsn, data) as (cluster, claims):
        started = [claim.shard for claim in claims if claim.is_local or claim.epoch > 1]
        if started:
            raise ClusterError(f"shard {started[0]} has already run: import into a new cluster with an empty database")
        for claim in claims:
            copied = create_folder(
                data,
                cluster,
                claim,
                lambda folder, shard=claim.shard: copy_partitions([source], cluster.shards.partitions(shard), folder),  # type: ignore[misc]  # the default binds it
            )
            with closing(sqlite3.connect(copied / "state.db")) as db:
                urls += db.execute("SELECT count(*) FROM url").fetchone()[0]
                pages += db.execute("SELECT count(*) FROM page").fetchone()[0]
        with connect(dsn) as connection:
            for site in sites:
                add_site(connection, site.start, command_to_json(AddSite(site)))
    return CopiedHosts(urls, pages)


def export_folder(dsn: str, data: Path, target: Path, software: str, limit_bytes: int) -> CopiedHosts:
    """Combine all shards in a new single-machine folder; shards that are not in ``data`` are restored there first."""
    if target.exists():
        raise UsageError(f"{target} already exists: choose a new folder")
    with ExitStack() as stack:
        cluster, claims = stack.enter_context(_claim_all(dsn, data))
        found = find_folders(data, cluster)
        folders = [
            found[claim.folder] if claim.is_local else prepare_folder(data, cluster, claim) for claim in sorted(claims)
        ]
        for folder in folders:
            stack.enter_context(lock_folder(folder, in_cluster=True))
        partial = target.with_name(f"{target.name}.partial")
        copied = copy_partitions(folders, range(PARTITIONS), partial)
        if urls := _list_links(dsn, folders):
            with open_for_write(partial, time.time()) as state:
                importer = Importer(state, software, time.time(), limit_bytes)
                importer.import_urls(urls)
                importer.close()
            copied = copied._replace(urls=copied.urls + importer.summary.urls)
        partial.rename(target)
        return copied


@contextmanager
def _claim_all(dsn: str, data: Path) -> Iterator[tuple[Cluster, list[Claim]]]:
    """Claim all shards; fail if a node is running one, or if one has neither a folder here nor a copy."""
    with connect(dsn) as connection:
        check_clock(connection)
        cluster = load_cluster(connection)
        owners = sorted({shard.owner for shard in list_shards(connection) if shard.owner})
        if owners:
            raise ClusterError(f"{', '.join(owners)} still run shards: stop all nodes first")
        folders, claims = find_folders(data, cluster).keys(), list[Claim]()
        for _ in cluster.shards.firsts:
            claim = claim_shard(connection, NODE, folders, LEASE_S, can_restore=bool(cluster.storage))
            if claim is None:
                raise ClusterError(f"{data} does not contain folders for all shards: use the nodes' --data folder")
            claims.append(claim)
    try:
        yield cluster, claims
    finally:
        with connect(dsn) as connection:
            for claim in claims:
                release_shard(connection, claim)


def _list_links(dsn: str, folders: Sequence[Path]) -> list[str]:
    """List the URLs of links in transit between shards."""
    urls: list[str] = []
    for number, folder in enumerate(folders):
        with read_state(folder) as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'outbox'").fetchone():
                continue
            packed = [links for (links,) in db.execute("SELECT links FROM outbox")]
            positions = LinkStore(db).get_positions()
        with connect(dsn) as connection:
            packed += list_unapplied_links(connection, number, positions)
        urls += [url for links in packed for one in decode_links(links) or () for url in one.urls]
    return urls
