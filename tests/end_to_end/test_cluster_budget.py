"""One budget and one daily limit for all shards of a cluster, on real processes."""

import time
from collections import Counter
from pathlib import Path

import pytest
from tests.cluster_runs import SPEED, Cluster, open_cluster
from tests.postgres_server import MISSING, Postgres, find_programs
from tests.tree_runs import PROVE, patiently

from vedette.adapters.crawl_store.request_budget import read_exceeded

HOSTS = 24 if PROVE else 12
SHARDS, LEASE_S = 4, 10.0
PER_S, LIMIT = 0.3, 50
SPAN_S = 40.0 if PROVE else 20.0

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)


def configure(cluster: Cluster, setting: str) -> None:
    """Add a crawl setting for nodes that start from now on."""
    file = cluster.run.folder / "vedette.toml"
    file.write_text(file.read_text().replace("[crawl]", f"[crawl]\n{setting}", 1))


def find_exceeded(cluster: Cluster) -> set[str]:
    """Return the addresses whose daily limit is used up."""
    found = (one for folder in cluster.folders() for one in read_exceeded(folder))
    return {one.name for one in found if one.kind == "address"}


def test_all_shards_together_spend_one_budget(postgres: Postgres, tmp_path: Path) -> None:
    """Two nodes with two shards each never exceed the crawl's budget, and a shard that wants more gets more."""
    with open_cluster(postgres, tmp_path, HOSTS, SHARDS, LEASE_S) as both:
        configure(both, f'budget = "{60 * PER_S:.0f}/min"')
        for name in "ab":
            both.join(name, "--shards", "2")
        patiently(lambda: len(both.run.entries()) > HOSTS)
        time.sleep(SPAN_S)  # while the budget is spent
        both.stop()
        verdict, times = both.run.verdict(), sorted(entry.start_s for entry in both.run.entries())
        assert [each.detail for each in verdict.violations] == []
        begin_s = times[HOSTS]
        for end_s in times[HOSTS + 10 :: 10]:
            spent = sum(begin_s < at_s <= end_s for at_s in times)
            # A burst of each shard, and one page of each that is paid later.
            assert spent <= PER_S * (end_s - begin_s) * 1.03 + 2 * SHARDS
        span_s = times[-1] - begin_s
        share = sum(at_s > begin_s for at_s in times) / (PER_S * span_s)
        # The figure of docs/results/cluster.md, shown with pytest -s.
        print(f"spent {share:.3f} of the budget in {span_s / SPEED:.0f} s")  # noqa: T201 - see above


def test_no_address_gets_more_requests_a_day_than_the_limit(postgres: Postgres, tmp_path: Path) -> None:
    """Hosts of several shards at one address share its daily limit, even after one of two nodes was killed."""
    with open_cluster(postgres, tmp_path, HOSTS, SHARDS, LEASE_S) as both:
        configure(both, f"daily_limit = {LIMIT}")
        both.join("a", "--shards", "4")
        patiently(lambda: all(both.owners()))
        addresses = HOSTS // 4
        patiently(lambda: len(both.run.entries()) > LIMIT * addresses // 2)
        both.kill("a")
        (both.run.data / "a").rename(both.run.data / "b")
        both.join("b")
        patiently(lambda: "b" in both.owners())
        patiently(lambda: len(find_exceeded(both)) == addresses)
        both.stop()
        verdict = both.run.verdict()
        assert [each.detail for each in verdict.violations] == []
        asked = Counter(entry.address for entry in both.run.entries())
        assert max(asked.values()) <= LIMIT
        print(f"requests to each address: {sorted(asked.values())}, with a limit of {LIMIT}")  # noqa: T201 - see above
