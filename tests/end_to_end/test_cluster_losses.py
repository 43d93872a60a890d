"""Four nodes with 16 shards lose machines, networks and PostgreSQL; no page is lost, and crawling stays polite.

Only ``make prove`` runs it, because it takes minutes of CPU time.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cluster_runs import Cluster, Line, open_cluster
from tests.postgres_server import MISSING, find_programs, run_postgres
from tests.s3_server import MISSING as NO_WEED
from tests.s3_server import find_weed, run_s3
from tests.tree_runs import PROVE, patiently
from tests.tree_worlds import ring_town

from vedette.engine.coordinator.shard import split_evenly
from vedette.model import origin_of, partition_of

HOSTS, SHARDS, LEASE_S = 200, 16, 15.0
MOST = "6"
LONG_S = 7200.0
# Of the URLs, outside of takeovers.
MOST_REPEATED = 0.05

pytestmark = [
    pytest.mark.skipif(not PROVE, reason="takes minutes of CPU time: make prove"),
    pytest.mark.skipif(find_programs() is None, reason=MISSING),
    pytest.mark.skipif(find_weed() is None, reason=NO_WEED),
]


class Move(NamedTuple):
    """A takeover of shards, from the loss of their owner until all are restored."""

    shards: frozenset[int]
    begin_s: float
    end_s: float


def find_shards(cluster: Cluster, node: str) -> frozenset[int]:
    """Find the shards that a node owns."""
    return frozenset(shard.number for shard in cluster.shards() if shard.owner == node)


def count_repeats(asked: Sequence[tuple[float, str]], moves: Sequence[Move]) -> tuple[int, int]:
    """Count requests for URLs that were requested before: those that a takeover explains, and the others."""
    shards, seen = split_evenly(SHARDS), dict[str, float]()
    inside = outside = 0
    for at_s, url in sorted(asked):
        before_s, seen[url] = seen.get(url), at_s
        if before_s is not None:
            shard = shards.find(partition_of(origin_of(url).host))
            is_explained = any(shard in one.shards and before_s < one.end_s and at_s > one.begin_s for one in moves)
            inside, outside = inside + is_explained, outside + (not is_explained)
    return inside, outside


def has_owners(cluster: Cluster) -> bool:
    """Check whether each shard has an owner, and its folder is there."""
    return all(cluster.owners()) and len(cluster.folders()) == SHARDS


def is_copied(cluster: Cluster) -> bool:
    """Check whether each shard has a recent copy."""
    return all(shard.copy_age_s is not None and shard.copy_age_s < 60.0 for shard in cluster.shards())


def test_machines_networks_and_postgres_are_lost(tmp_path: Path) -> None:
    """In the end, every page is fetched and searchable, in one shard each, and the servers saw no violations."""
    with (
        run_postgres() as postgres,
        run_s3() as storage,
        open_cluster(postgres, tmp_path, HOSTS, SHARDS, LEASE_S, storage) as four,
    ):
        lines = {name: Line(postgres.port) for name in "cd"}
        for name in "abcd":
            port = lines[name].port if name in lines else postgres.port
            four.join(name, "--shards", MOST, dsn=four.dsn.replace(str(postgres.port), str(port)))
        wanted = ring_town(HOSTS).urls()
        moves: list[Move] = []

        def reach(eighth: int) -> None:
            patiently(lambda: four.count_pages() > len(wanted) * eighth / 8, LONG_S)
            patiently(lambda: has_owners(four) and is_copied(four), LONG_S)

        def note(figure: str) -> None:
            print(figure, flush=True)  # noqa: T201 - the figures of docs/results/cluster.md, shown with pytest -s

        for eighth, name in enumerate(("a", "b", "new a"), 1):
            reach(eighth)
            lost, begin_s = find_shards(four, name), four.run.web.clock.now()
            four.lose(name)
            since_s = time.monotonic()
            patiently(lambda name=name: name not in four.owners() and all(four.owners()), LONG_S)  # type: ignore[misc]  # the default binds it
            claimed_s = time.monotonic() - since_s
            patiently(lambda: has_owners(four), LONG_S)
            restored_s = time.monotonic() - since_s
            moves.append(Move(lost, begin_s, four.run.web.clock.now()))
            note(f"lost {name}: {len(lost)} shards claimed in {claimed_s:.1f} s, restored in {restored_s:.1f} s")
            four.join(f"new {name}", "--shards", MOST)
        for eighth, name in enumerate(("c", "d"), 4):
            reach(eighth)
            cut, begin_s = find_shards(four, name), four.run.web.clock.now()
            lines[name].cut()
            since_s = time.monotonic()
            patiently(lambda name=name: name not in four.owners() and all(four.owners()), LONG_S)  # type: ignore[misc]  # the default binds it
            note(f"cut off {name}: {len(cut)} shards claimed in {time.monotonic() - since_s:.1f} s")
            lines[name].mend()
            patiently(lambda: has_owners(four), LONG_S)
            moves.append(Move(cut, begin_s, four.run.web.clock.now()))
        reach(6)
        postgres.stop()
        postgres.start()
        patiently(lambda: set(wanted) <= four.pages().keys(), LONG_S)
        patiently(lambda: four.searchable() >= len(wanted), LONG_S)
        four.stop()
        pages = four.pages()
        assert [url for url in wanted if pages[url] != 1] == []
        assert [each.detail for each in four.run.verdict().violations] == []
        asked = [(entry.start_s, entry.url) for entry in four.run.entries() if entry.target != "/robots.txt"]
        inside, outside = count_repeats(asked, moves)
        urls = len(asked) - inside - outside
        note(f"{len(asked)} requests for {urls} URLs, {len(wanted)} of them pages")
        note(f"repeated: {inside} of shards that another node took over, {outside} others ({outside / urls:.1%})")
        assert outside < MOST_REPEATED * urls
