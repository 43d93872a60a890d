"""Data folders of shards on a node: find existing ones, and prepare one for a claimed shard."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import SHARD_FILE, explain_errors, lock_folder
from vedette.adapters.files.atomic import replace_file, sync_folder
from vedette.adapters.registry.registry import Claim, Cluster
from vedette.errors import ClusterError


def find_folders(data: Path, cluster: Cluster) -> Mapping[str, Path]:
    """Find the data folders of shards in a node's folder, by the ids inside them; refuse folders of another cluster."""
    found = {}
    for file in sorted(data.glob(f"shard-*/{SHARD_FILE}")):
        with explain_errors(data):
            text = file.read_text("utf-8", "replace")
        try:
            about = json.loads(text)
            id_, name = str(about["cluster"]), str(about["name"])
        except (ValueError, LookupError, TypeError):
            raise ClusterError(f"cannot read {file}: restore it from a backup of the folder") from None
        if id_ != cluster.id:
            raise ClusterError(
                f"{file.parent} belongs to cluster {id_}, but this PostgreSQL has cluster {cluster.id}: check "
                "--postgres, or use another --data"
            )
        found[name] = file.parent
    return found


def check_storage(cluster: Cluster) -> None:
    """Check that this node can use the cluster's storage, and has Litestream."""
    from vedette.adapters.durability.litestream import find_program  # only a cluster with storage needs it
    from vedette.adapters.durability.object_storage import claim_storage

    find_program()
    claim_storage(cluster.storage, cluster.id)


def prepare_folder(data: Path, cluster: Cluster, claim: Claim) -> Path:
    """Create the data folder of a shard that was claimed without one, from its copy if there is one."""

    def fill(partial: Path) -> None:
        if claim.copy:
            from vedette.adapters.durability.shard_copy import restore_copy  # only a cluster with storage needs it

            restore_copy(cluster.storage, claim.shard, claim.copy, partial)

    return create_folder(data, cluster, claim, fill)


def create_folder(data: Path, cluster: Cluster, claim: Claim, fill: Callable[[Path], object]) -> Path:
    """Create the data folder of a shard; it gets its final name once ``fill`` has completed it.

    This deletes an older folder of the shard, because other nodes have since continued the shard.
    """
    folder = data / f"shard-{claim.shard:03}"
    partial = data / f".shard-{claim.shard:03}"
    with explain_errors(data):
        shutil.rmtree(partial, ignore_errors=True)
        fill(partial)
        partial.mkdir(parents=True, exist_ok=True, mode=0o700)
        sign_folder(partial, cluster, claim.shard, claim.folder)
        if folder.exists():
            with lock_folder(folder, in_cluster=True):  # its processes have ended
                shutil.rmtree(folder)
        partial.rename(folder)
        sync_folder(data)
    return folder


def sign_folder(folder: Path, cluster: Cluster, shard: int, name: str) -> None:
    """Mark a data folder as belonging to a shard."""
    with replace_file(folder / SHARD_FILE) as file:
        file.write(json.dumps({"cluster": cluster.id, "shard": shard, "name": name}).encode())
