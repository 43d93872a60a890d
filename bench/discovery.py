"""What does it cost to choose a thousand of a hundred thousand sources, and to learn from their polls?

Sources of many hosts show links that come in a rhythm and stay for a while; relatives show some of the same. The live
policy polls a part of them each hour until it knows most, then its steps are timed: CPU seconds of this process,
medians over the hours. The ceiling is the minimum for any policy: finding the largest k of that many random numbers
(``argpartition``), in the same run. The rival is ``thompson``. Then the crawler's own poller, which runs the same
policy, gets as many sources: a choice, a report of a hundred polls with learning, a save, and a hundredth of all
sources leaving. The last line is one JSON object.

    python bench/discovery.py [--sources 100000] [--looks 1000] [--hours 30]
"""

import argparse
import json
import resource
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from vedette.discover.polling.sources import PollHistory, PollResults
from vedette.engine.scheduling.polling import SOURCES_KEY, PollResult, SourcePoller
from vedette.lab.core.registry import DEFAULT, find_policy
from vedette.lab.experiments.discovery_as_live import EmptyStore
from vedette.policy import Ints, rng_for

SEED = 1
SOURCES_OF_HOST = 10
LINKS_SHOWN = 20
HOUR_S = 3_600.0
BEGIN_S = 1_700_000_000.0
# Hours in which the policy meets its sources, ten times as many an hour as later, before anything is timed.
MEETING_HOURS = 10


class Cost(NamedTuple):
    """CPU milliseconds of one step: choosing, and learning."""

    choose_ms: float
    observe_ms: float


class Web:
    """Links of a host are numbered as they come; a source shows its own latest, or its host's."""

    def __init__(self, sources: int) -> None:
        rng = rng_for(SEED, "bench/discovery")
        self.host = np.arange(sources) // SOURCES_OF_HOST
        self._rate = rng.gamma(0.5, 2.0, sources)
        self._shared = rng.random(sources) < 1 / 3
        self._known: set[int] = set()

    def look(self, places: Ints, hour: int) -> PollResults:
        """The results of polls."""
        shows = [self._shown(place, hour) for place in places.tolist()]
        start = np.concatenate([[0], np.cumsum([len(one) for one in shows])]).astype(np.int64)
        target = np.concatenate([np.zeros(0, np.int64), *shows])
        new = np.array([one not in self._known for one in target.tolist()], bool)
        self._known.update(target.tolist())
        return PollResults(places, np.ones(len(places), bool), start, target, new)

    def _shown(self, place: int, hour: int) -> Ints:
        owner = self.host[place] * SOURCES_OF_HOST if self._shared[place] else place
        latest = int(self._rate[owner] * (hour + 100))
        return np.arange(max(latest - LINKS_SHOWN, 0), latest, dtype=np.int64) + owner * 1_000_000


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Its result, and the CPU milliseconds it took."""
    begun = process_time()
    result = work()
    return result, (process_time() - begun) * 1e3


def cost_of(name: str, sources: int, looks: int, hours: int) -> Cost:
    """A policy meets its sources, and is then timed."""
    policy, web = find_policy("discover", name), Web(sources)
    book, state, costs = PollHistory(web.host), policy.start(None), []
    for hour in range(MEETING_HOURS + hours):
        meeting = hour < MEETING_HOURS
        now, rng = BEGIN_S + hour * HOUR_S, rng_for(SEED, f"{name}/{hour}")
        options, k = book.list_options(), looks * 10 if meeting else looks
        rows = np.arange(hour, sources, MEETING_HOURS)[:k]
        if not meeting:
            picks, choose_ms = timed(lambda: policy.choose(state, options, k, now, rng))  # noqa: B023 - run at once
            rows = picks.rows
        seen = book.record(web.look(rows, hour), now)
        state, observe_ms = timed(lambda: policy.observe(state, seen, now))  # noqa: B023 - run at once
        if not meeting:
            costs.append((choose_ms, observe_ms))
    return Cost(*(median(column) for column in zip(*costs, strict=True)))


def measure_live(sources: int, looks: int) -> dict[str, float]:
    """Return the CPU milliseconds of the crawler's poller, and the size of its saved state."""
    web, store = Web(sources), EmptyStore()
    poller = SourcePoller(store)

    def report(places: Ints, hour: int, *, is_refetch: bool = True) -> None:
        came = web.look(places, hour)
        links = [came.target[start:end].tolist() for start, end in pairwise(came.start.tolist())]
        polls = [
            PollResult(id_, int(web.host[id_]), ok=True, is_list=True, is_refetch=is_refetch, links=some, new=new)
            for id_, some, new in zip(places.tolist(), links, came.yields.tolist(), strict=True)
        ]
        poller.on_polls(polls, BEGIN_S + hour * HOUR_S)

    report(np.arange(sources), 0, is_refetch=False)
    report(np.arange(0, sources, 2), 1)
    chosen, choose_ms = timed(lambda: poller.choose(1e-6, looks, BEGIN_S + 2 * HOUR_S))
    _, report_ms = timed(lambda: report(np.array(chosen[:100]), 3))
    _, save_ms = timed(lambda: poller.save(BEGIN_S + 3 * HOUR_S))
    _, evict_ms = timed(lambda: poller.forget(range(sources // 100)))
    size_mb = len(store.get_value(SOURCES_KEY) or "") / 2**20
    return {"choose": choose_ms, "report": report_ms, "save": save_ms, "evict": evict_ms, "saved_mb": size_mb}


def ceiling_ms(sources: int, looks: int, times: int) -> float:
    """Find the largest of this many numbers, once they are drawn."""
    rng = rng_for(SEED, "bench/ceiling")
    return median(timed(lambda: np.argpartition(-rng.random(sources), looks)[:looks])[1] for _ in range(times))


def main() -> None:
    """Run it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("--sources", 100_000), ("--looks", 1_000), ("--hours", 30)):
        arguments.add_argument(name, type=int, default=usual)
    asked = arguments.parse_args()
    ceiling = ceiling_ms(asked.sources, asked.looks, asked.hours)
    costs = {name: cost_of(name, asked.sources, asked.looks, asked.hours) for name in (DEFAULT, "thompson")}
    print(f"{asked.looks} of {asked.sources} sources, CPU ms a step")
    print(f"{'':12}{'choose':>10}{'observe':>10}")
    print(f"{'ceiling':12}{ceiling:10.1f}{'':>10}")
    for name, cost in costs.items():
        print(f"{name:12}{cost.choose_ms:10.1f}{cost.observe_ms:10.1f}")
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told: dict[str, dict[str, float]] = {name: cost._asdict() for name, cost in costs.items()}
    told["live"] = measure_live(asked.sources, asked.looks)
    print("live", *(f"{name} {value:.1f}" for name, value in told["live"].items()), sep="  ")
    print(json.dumps({"ceiling_ms": ceiling, **told, "memory_mb": memory_mb, **vars(asked)}))


if __name__ == "__main__":
    main()
