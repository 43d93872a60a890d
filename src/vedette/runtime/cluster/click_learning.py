"""Click learning of a gateway: page reputations from the recorded searches and clicks of all gateways.

    python -m vedette.runtime.cluster.click_learning FOLDER CLOCK

As on one machine, it runs in a low-priority process. It gets hosts and URLs of pages from the shards. The connection
string of PostgreSQL is in the environment.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.registry.database import DSN_ENV
from vedette.engine.search.gateway import join_host, join_id, split_id
from vedette.runtime.cluster.console import ConsoleShards
from vedette.runtime.cluster.gateway import ClusterDirectory
from vedette.runtime.processes.background import BackgroundJob, run_in_background
from vedette.runtime.search.click_learning import EVERY_S, get_events_mtime_ns, learn, switch_off

# Beside the gateway's record: a gateway has no index.
LEARNED_DIR = "learned"
# The setting may change without a search.
MAX_IDLE_S = 60.0


class ShardPages:
    """Hosts and URLs of the pages of all shards, for click learning."""

    def __init__(self, shards: ConsoleShards) -> None:
        self._shards = shards

    def find_hosts(self, ids: Sequence[int]) -> dict[int, int]:
        """Find the host of each page, leaving out pages of shards that do not respond."""
        own = _group_by_shard(ids)
        found = self._shards.ask("pages.find_hosts", {shard: (numbers,) for shard, numbers in own.items()})
        return {
            join_id(shard, number): join_host(shard, host)
            for shard, hosts in found.items()
            for number, host in hosts.items()
        }

    def find_url(self, id_: int) -> str:
        """Find the URL of a page; empty if its shard does not respond or has no such page."""
        shard, own = split_id(id_)
        found: dict[int, str] = self._shards.ask("pages.find_url", {shard: (own,)})
        return found.get(shard, "")


def _group_by_shard(ids: Sequence[int]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for shard, own in map(split_id, ids):
        found.setdefault(shard, []).append(own)
    return found


class ClusterLearningJob:
    """Schedule click learning in a gateway: when there are new searches, and regularly for changed settings."""

    def __init__(self, folder: Path, clock: Clock, dsn: str) -> None:
        os.environ[DSN_ENV] = dsn  # for the job: others can see the command line
        self._job = BackgroundJob("vedette.runtime.cluster.click_learning")
        self._folder, self._clock = folder, clock
        self._last_ns, self._next_s, self._idle_until_s = 0, 0.0, 0.0

    def step(self, now_s: float) -> None:
        """Start click learning when it is due."""
        if not self._job.is_ready(now_s) or now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        written_ns = get_events_mtime_ns(self._folder)
        if written_ns != self._last_ns or now_s >= self._idle_until_s:
            self._last_ns, self._idle_until_s = written_ns, now_s + MAX_IDLE_S
            self._job.start(now_s, str(self._folder), str(self._clock))

    def close(self) -> None:
        """Stop the click learning process; its work starts over next time."""
        self._job.close()


def learn_once(folder: Path, clock: Clock, dsn: str) -> None:
    """Learn from the searches recorded in a gateway's folder, unless the operator has turned learning off."""
    place = folder / LEARNED_DIR
    place.mkdir(mode=0o700, exist_ok=True)
    shards = ConsoleShards(ClusterDirectory(dsn))
    settings = shards.ask_any("monitoring.get_runtime_settings")
    if settings is None:
        return  # no shard responds
    if settings.learn:
        learn(folder, place, place, ShardPages(shards), clock.now(), clock.speed)
    else:
        switch_off(place, place, clock.now())


if __name__ == "__main__":
    with run_in_background():
        learn_once(Path(sys.argv[1]), parse_clock(sys.argv[2]), os.environ[DSN_ENV])
