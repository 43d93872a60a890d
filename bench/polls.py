"""How many requests of a crawl without settings are polls of lists, and how soon are new pages found?

    python bench/polls.py [--days 2] [--seed 1] [--worlds births,month]

A coordinator and two fetchers run over a synthetic web in memory, at virtual times: no network, no sleeping. There is
no budget and no setting. Lists are feeds, sitemaps and home pages; a poll is any fetch of one but the first. A page is
found when its URL is first known, and counts when it was born after the first six hours and two hours before the end
at the latest. ``least_mean_min`` and ``least_median_min`` are bounds: no rule can beat them if it polls one complete
list of each site, at most every ten minutes, with 30% of the requests. The first polls each site at a rate proportional
to the square root of its birth rate, the second only when most pages are born. Both know the birth rate of each site at
each minute of the day, but no births. The last line is one JSON object.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, rules_for

from vedette.engine.scheduling.poll_counts import EARNED
from vedette.engine.scheduling.schedule import Schedule, is_source
from vedette.lab.worlds.synthetic import SyntheticWorld
from vedette.lab.worlds.synthetic.change_times import START_S
from vedette.lab.worlds.synthetic.presets import births_world, month_world
from vedette.lab.worlds.world import WorldRequest
from vedette.model import Site, origin_of
from vedette.refresh.policies.fixed import Fixed
from vedette.timeutil import DAY_S, HOUR_S, MINUTE_S

WORLDS = {"births": births_world, "month": month_world}
SOURCE_INTERVAL_S = 600.0
BEGIN_S, TAIL_S = 6 * HOUR_S, 2 * HOUR_S


@dataclass(slots=True)
class WorldWeb(MemoryWeb):
    """A synthetic world as a web in memory."""

    world: SyntheticWorld | None = None

    def reply(self, url: str, now_s: float) -> Served:
        """Return the world's responses, without the time that servers take."""
        assert self.world is not None
        origin = origin_of(url)
        told = self.world.reply(WorldRequest(origin.host, url.removeprefix(str(origin))), now_s)
        return Reply(told.status, told.headers, told.body)


def main() -> int:
    """Run each world and print a line for each day."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--days", type=int, default=2)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--worlds", default=",".join(WORLDS))
    arguments.add_argument("--policy", default="expected-gain")
    asked = arguments.parse_args()
    told = {}
    for name in asked.worlds.split(","):
        for row in _measure(WORLDS[name](asked.seed), asked.days, asked.policy):
            day = row.pop("day")
            told[f"{name} day {day}"] = row
            print(f"{name} day {day}", *(f"{key} {value}" for key, value in row.items()), sep="  ")
    print(json.dumps(told))
    return 0


def _measure(world: SyntheticWorld, days: int, policy: str) -> Iterator[dict[str, float]]:
    starts = [Site(f"http://{host}/", exclude=("*?*",)) for host in world.sites]
    rules = rules_for(*starts, recrawl=True, refresh=policy, idle_share=0.1)
    schedule = Schedule(recrawl=True, sources=Fixed(interval_s=SOURCE_INTERVAL_S))
    drive = Drive(WorldWeb(world=world), rules, start_s=world.start_s, schedule=schedule).begin()
    found_s = _run(drive, days)
    lists = {url for url, row in drive.pages().items() if is_source(url, row.kind)}
    times = Counter[str]()
    polls, others = list[float](), list[float]()
    for asked in drive.log:
        times[asked.url] += 1
        (polls if asked.url in lists and times[asked.url] > 1 else others).append(asked.sent_s)
    births = _list_births(world, world.start_s + days * DAY_S)
    for day in range(days):
        begin_s, end_s = world.start_s + day * DAY_S, world.start_s + (day + 1) * DAY_S
        looked, rest = (sum(begin_s <= at_s < end_s for at_s in some) for some in (polls, others))
        since_s = max(begin_s, world.start_s + BEGIN_S)
        until_s = end_s if day + 1 < days else end_s - TAIL_S
        born = {url: at_s for url, at_s in births.items() if since_s <= at_s < until_s}
        delays = np.array([max(found_s.get(url, np.inf) - at_s, 0.0) for url, at_s in born.items()])
        middle, late = np.quantile(delays, [0.5, 0.9], method="lower") / MINUTE_S if len(delays) else (np.nan, np.nan)
        yield {
            "day": day + 1,
            "lists": len(lists),
            "requests": looked + rest,
            "polls": looked,
            "share": round(looked / max(looked + rest, 1), 3),
            "born": len(born),
            "found": int(np.isfinite(delays).sum()),
            "median_min": round(float(middle), 1),
            "p90_min": round(float(late), 1),
            "mean_min": round(float(delays.mean()) / MINUTE_S, 1) if len(delays) else np.nan,
            **_find_least_delays(world, begin_s, rest * EARNED),
        }


def _find_least_delays(world: SyntheticWorld, begin_s: float, polls: float) -> dict[str, float]:
    """Find the least mean and median delay in minutes, by expectation, of a day with this many polls."""
    offsets_s = begin_s - START_S + np.arange(0.0, DAY_S + 1.0, MINUTE_S)
    sites = [site.births for site in world.sites.values()]
    born = np.array([np.diff(births.rhythm.clocks_at(offsets_s)) * births.per_s for births in sites])
    most, low, high = MINUTE_S / SOURCE_INTERVAL_S, 0.0, 1.0
    while np.minimum(high * np.sqrt(born), most).sum() < min(polls, 0.99 * most * born.size):
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        is_less = np.minimum(middle * np.sqrt(born), most).sum() < polls
        low, high = (middle, high) if is_less else (low, middle)
    rate = np.minimum(high * np.sqrt(born), most)
    busiest = np.sort(born.ravel())[::-1][: int(polls / most)].sum() / born.sum()
    return {
        "least_mean_min": round(float((born / (2.0 * rate)).sum() / born.sum()), 1),
        "least_median_min": round(float(0.5 / (most * busiest)), 1),
    }


def _run(drive: Drive, days: int) -> dict[str, float]:
    """Run some days and return when each URL was first known."""
    found_s: dict[str, float] = {}

    def note() -> bool:
        new = drive.db.execute("SELECT url FROM url WHERE id > ?", (len(found_s),)).fetchall()
        found_s.update((url, drive.now_s) for (url,) in new)
        return False

    for _ in range(round(days * DAY_S / MINUTE_S)):
        drive.run(MINUTE_S, note)
    return found_s


def _list_births(world: SyntheticWorld, end_s: float) -> dict[str, float]:
    urls = [url for host in world.sites for url in world.live_pages(host, end_s)]
    truths = [(url, truth) for url in urls if (truth := world.truth(url)) is not None]
    return {url: truth.born_s for url, truth in truths if truth.indexable and truth.born_s > world.start_s}


if __name__ == "__main__":
    sys.exit(main())
