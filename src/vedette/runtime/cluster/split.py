"""Split a stopped shard into two folders, each with half of its URLs.

The whole shard is not changed until both halves are complete and, if the cluster has storage, copied. Then one
transaction replaces it. If the node fails before that, the next owner still has the whole shard, splits it again, and
deletes what the interrupted split has left.
"""

import secrets
import shutil
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import explain_errors
from vedette.adapters.crawl_store.partition_copy import copy_partitions
from vedette.adapters.exchange.link_store import copy_exchange
from vedette.adapters.files.atomic import sync_folder
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.registry import Claim, Cluster, load_shards
from vedette.adapters.registry.resharding import Half, save_split
from vedette.errors import ClusterError
from vedette.runtime.cluster.folders import sign_folder
from vedette.runtime.processes.settings import RuntimeSettings

# Files besides state and archive that do not belong to single pages: they stay with the lower half.
KEPT_FILES = ("watch.db", "record.db")


def split_shard(settings: RuntimeSettings, cluster: Cluster, claim: Claim) -> None:
    """Split a shard that this node owns, and whose process tree has stopped."""
    assert settings.shard is not None, "only a shard is split"
    whole, dsn = settings.folder, settings.shard.dsn
    with connect(dsn) as connection:
        shards = load_shards(connection)
    middle = find_middle(whole, shards.partitions(claim.shard))
    if middle is None:
        raise ClusterError("all its URLs are in one partition, which cannot be split")
    lower = Half(claim.shard, shards.partitions(claim.shard)[0], secrets.token_hex(8), bool(cluster.storage))
    upper = Half(max(shards.numbers) + 1, middle, secrets.token_hex(8), bool(cluster.storage))
    ends = {lower: middle, upper: shards.partitions(claim.shard)[-1] + 1}
    folders = {half: whole.with_name(f"shard-{half.number:03}-half") for half in ends}
    with explain_errors(whole):
        for half, end in ends.items():
            shutil.rmtree(folders[half], ignore_errors=True)
            partitions = range(half.first, end)
            copy_partitions([whole], partitions, folders[half])
            copy_exchange(whole, folders[half], partitions, is_successor=half is lower)
            sign_folder(folders[half], cluster, half.number, half.folder)
        for name in KEPT_FILES:
            if (whole / name).exists():
                shutil.copy2(whole / name, folders[lower] / name)
        if cluster.storage:
            _copy(cluster, folders[lower], claim.shard, claim.epoch + 1, claim.epoch)
            _copy(cluster, folders[upper], upper.number, 1, 0)
        with connect(dsn) as connection:
            save_split(connection, claim.shard, claim.epoch, lower, upper)
        # The halves are found by the names inside them; from here on, only the folders' own names change.
        shutil.rmtree(whole)
        for half, folder in folders.items():
            shutil.rmtree(whole.with_name(f"shard-{half.number:03}"), ignore_errors=True)
            folder.rename(whole.with_name(f"shard-{half.number:03}"))
        sync_folder(whole.parent)


def find_middle(folder: Path, partitions: range) -> int | None:
    """Find the first partition of the upper half of a shard's URLs; None if all URLs are in one partition."""
    with closing(sqlite3.connect(f"{(folder / 'state.db').resolve().as_uri()}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT partition, count(*) FROM url GROUP BY partition ORDER BY partition").fetchall()
    if len(partitions) < 2:
        return None
    if len(rows) < 2:
        return partitions[len(partitions) // 2] if not rows else None
    total, below = sum(count for _, count in rows), 0
    found: list[tuple[int, int]] = []
    for (_, count), (after, _) in pairwise(rows):
        below += count
        found.append((abs(2 * below - total), after))
    return min(found)[1]


def _copy(cluster: Cluster, folder: Path, shard: int, epoch: int, earlier: int) -> None:
    """Copy a half to object storage before it replaces part of the whole shard."""
    from vedette.adapters.durability.shard_copy import ShardCopy  # only a cluster with storage needs it

    with closing(ShardCopy(cluster.storage, folder, shard, epoch, earlier)) as copy:
        copy.step()
