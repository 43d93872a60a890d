"""A running shard is split, and shards are moved to a new node; nothing is lost or crawled twice."""

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
LEASE_S = 10.0

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)


def test_a_running_shard_is_split_and_shards_are_moved(postgres: Postgres, storage: Storage, tmp_path: Path) -> None:
    """Links sent to the whole shard reach the half that owns them, and a lost half is restored."""
    with open_cluster(postgres, tmp_path, HOSTS, 2, LEASE_S, storage) as one:
        wanted = ring_town(HOSTS).urls()
        one.join("a", "--shards", "4")
        patiently(lambda: one.count_pages() > len(wanted) // 4)
        assert "there is no shard 7" in cluster(one.dsn, "split", "7").stderr
        assert "requires at least two running nodes" in cluster(one.dsn, "rebalance").stderr
        split = cluster(one.dsn, "split", "0")
        assert split.returncode == 0, split.stderr
        asked_s = time.monotonic()
        patiently(lambda: one.owners() == ["a"] * 3)
        split_s = time.monotonic() - asked_s
        spans = [list(shard.partitions) for shard in one.shards()]
        assert sorted(partition for span in spans for partition in span) == list(range(1024))
        one.join("b", "--shards", "4")
        patiently(lambda: one.count_nodes() == 2)
        moved = cluster(one.dsn, "rebalance")
        assert moved.stdout.startswith("a will hand over shard"), moved.stderr
        patiently(lambda: sorted(one.owners()) == ["a", "a", "b"])
        patiently(lambda: set(wanted) <= one.pages().keys())
        one.stop()
        pages = one.pages()
        assert [url for url in wanted if pages[url] != 1] == []
        assert [each.detail for each in one.run.verdict().violations] == []
        asked = Counter(entry.url for entry in one.run.entries() if entry.target != "/robots.txt")
        pause = next(line for line in one.messages().splitlines() if "split in" in line)
        # The figures of docs/results/cluster.md, shown with pytest -s.
        print(f"{pause}; both run {split_s:.1f} s after the request; {asked.total()} requests for {len(asked)} URLs")  # noqa: T201 - see above
