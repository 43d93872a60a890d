"""Two nodes crawl one web; one is lost with its disk, and the other takes over from the copies in storage.

Each node has its own folder, and all shards are copied to a real S3-compatible storage.
"""

import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.cluster_runs import cluster, open_cluster
from tests.postgres_server import MISSING, Postgres, find_programs
from tests.s3_server import Storage
from tests.tree_runs import PROVE, patiently
from tests.tree_worlds import ring_town

HOSTS = 40 if PROVE else 12
SHARDS = 4 if PROVE else 2
LEASE_S = 10.0

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)


def test_a_lost_machine_is_restored_elsewhere(postgres: Postgres, storage: Storage, tmp_path: Path) -> None:
    """Every page is found through other shards' links, each has one owner, and the servers saw no violations.

    One node is lost with its disk. The other one restores its shards, and later hands all of them over to a third.
    """
    with open_cluster(postgres, tmp_path, HOSTS, SHARDS, LEASE_S, storage) as both:
        half = SHARDS // 2
        both.join("a", "--shards", str(half))
        patiently(lambda: both.owners().count("a") == half)
        both.join("b")
        patiently(lambda: both.owners().count("b") == SHARDS - half)
        wanted = ring_town(HOSTS).urls()
        patiently(lambda: both.count_pages() > len(wanted) // 3)
        patiently(lambda: all(shard.copy_age_s is not None for shard in both.shards()))
        both.lose("a")
        lost_s = time.monotonic()
        patiently(lambda: both.owners() == ["b"] * SHARDS)
        claimed_s = time.monotonic() - lost_s
        patiently(lambda: len(list((both.run.data / "b").glob("shard-*"))) == SHARDS)
        restored_s = time.monotonic() - lost_s
        both.join("c")
        patiently(lambda: both.count_nodes() == 2)
        done = cluster(both.dsn, "drain", "b")
        assert done.returncode == 0, done.stderr
        patiently(lambda: both.owners() == ["c"] * SHARDS)
        patiently(lambda: both.nodes["b"].poll() is not None)
        assert both.nodes.pop("b").returncode == 0
        shutil.rmtree(both.run.data / "b")
        patiently(lambda: set(wanted) <= both.pages().keys())
        epochs = [shard.epoch for shard in both.shards()]
        both.stop()
        assert min(epochs) >= 2
        assert both.owners() == [""] * SHARDS
        pages = both.pages()
        assert [url for url in wanted if pages[url] != 1] == []
        assert [each.detail for each in both.run.verdict().violations] == []
        asked = Counter(entry.url for entry in both.run.entries() if entry.target != "/robots.txt")
        # The figures of docs/results/cluster.md, shown with pytest -s.
        print(  # noqa: T201 - see above
            f"claimed {claimed_s:.1f} s and restored {restored_s:.1f} s after the loss; {asked.total()} requests for "
            f"{len(asked)} URLs"
        )
