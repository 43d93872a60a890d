"""One budget for several shards, in virtual time: coordinators as they run, and the controller between them.

python -m tests.engine.shared_budget     prints what one shard and four spent of the budget, and how good copies were

Pages change at very different rates, and the shards have different parts of them: the first one has half of the hosts,
and the last one those that change most. The quality is the share of pages whose copy is current, over time.
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tests.engine.memory_web import Drive, MemoryWeb, Served, Server, page, rules_for

from vedette.engine.scheduling import refresh
from vedette.engine.scheduling.cluster_budget import ClusterBudget, FetchPool, ShardBudget, size_pool
from vedette.engine.scheduling.price_controller import PriceController
from vedette.model import Site

__all__ = ["Outcome", "spend"]

DAY_S = 86_400.0
HOSTS, PAGES = 16, 16
STEP_S = 60.0
START_S = 1000.0
# The hosts of each of four shards.
PER_DAY = 400.0
PARTS = (range(8), range(8, 11), range(11, 14), range(14, 16))


class Outcome(NamedTuple):
    """The share of the budget spent after the first days, the most in a day, and the share of current pages."""

    spent: float
    most: float
    quality: float
    prices: Sequence[float]


def period_s(host: int, number: int) -> float:
    """Return how often a page changes: from every three hours to every two months, most often on the last hosts."""
    rank = (number * 7 + host * 3) % PAGES
    slowness: float = 500.0 ** (rank / (PAGES - 1))
    return DAY_S / 8 * slowness * (0.3 if host >= 14 else 1.0)


def _phase_s(host: int, number: int) -> float:
    return (host * 977 + number * 131) * 61.0


def version(host: int, number: int, now_s: float) -> int:
    """Return which version of a page exists at a time."""
    return int((now_s + _phase_s(host, number)) / period_s(host, number))


def _serve(host: int, number: int) -> Server:
    def reply(now_s: float) -> Served:
        text = "".join(chr(ord("a") + int(digit)) for digit in str(version(host, number, now_s)))
        return page(title=f"{text} of page {number} on {host}")

    return reply


def _begin(hosts: Sequence[int], per_s: float) -> Drive:
    web = MemoryWeb()
    for host in hosts:
        paths = [f"/p/{number}" for number in range(PAGES)]
        web.replies[f"https://h{host}.test/start"] = page(*paths)
        web.replies |= {f"https://h{host}.test{path}": _serve(host, number) for number, path in enumerate(paths)}
        web.names[f"h{host}.test"] = (f"93.184.1.{host + 1}",)
    sites = [Site(f"https://h{host}.test/start", scope="host", overrule=("trap",)) for host in hosts]
    rules = rules_for(*sites, recrawl=True, budget_per_s=per_s, delay_s=1.0, address_delay_s=0.0)
    return Drive(web, rules, workers=1, start_s=START_S).begin()


def spend(parts: Sequence[Sequence[int]], per_day: float, days: int, settling: int) -> Outcome:
    """Crawl for some days, each part of the hosts as a shard."""
    refresh.MIN_REVIEWS_PER_S = 0.0  # each page once an hour, as where there are many: the rest only takes time
    per_s = per_day / DAY_S
    drives = [_begin(hosts, per_s) for hosts in parts]
    many = drives if len(parts) > 1 else []
    shards = [
        ShardBudget(drive.keeper.refresher, drive.keeper.first_fetches, drive.keeper.host_table, len(parts))
        for drive in many
    ]
    budget = ClusterBudget(PriceController(drives[0].keeper.refresher.policy), per_s)
    samples: list[float] = []
    pool = FetchPool(size_pool(per_s, STEP_S))
    for step in range(int(days * DAY_S / STEP_S)):
        now_s = START_S + step * STEP_S
        if len(parts) > 1:
            reports = {number: shard.report() for number, shard in enumerate(shards)}
            budget = budget.step(reports, per_s, STEP_S if step else 0.0)
            for number, shard in enumerate(shards):
                drawn, pool = pool.draw(number, reports[number].lacking, per_s * STEP_S / len(shards))
                shard.follow(budget.price, drawn, has_spare=pool.has_spare)
        for drive in drives:
            drive.expect(now_s + 2 * STEP_S)  # a grant of the pool
            drive.run(now_s + STEP_S - drive.now_s)
        if step * STEP_S >= settling * DAY_S and step % 180 == 0:
            samples.append(_measure(drives, now_s + STEP_S))
    sent = np.array(
        [asked.sent_s for drive in drives for asked in drive.log if asked.sent_s >= START_S + settling * DAY_S]
    )
    by_day = np.bincount(((sent - START_S) / DAY_S).astype(int) - settling, minlength=days - settling) / per_day
    prices = [drive.keeper.refresher.price or 0.0 for drive in drives]
    return Outcome(float(by_day.mean()), float(by_day.max()), sum(samples) / len(samples), prices)


def _measure(drives: Sequence[Drive], now_s: float) -> float:
    current = total = 0
    for drive in drives:
        for url, row in drive.pages().items():
            if "/p/" in url:
                host, number = int(url.split(".")[0].rpartition("h")[2]), int(url.rpartition("/")[2])
                current += version(host, number, row.fetched_s - 0.2) == version(host, number, now_s)
                total += 1
    return current / (HOSTS * PAGES) if total else 0.0


def main() -> None:
    """Print a row for one shard, and one for four."""
    rows = {"one": ("one shard", (range(HOSTS),)), "four": ("four shards", PARTS)}
    for name, parts in (rows[each] for each in sys.argv[1:] or rows):
        got = spend(parts, PER_DAY, days=6, settling=2)
        words = f"spent {got.spent:.3f} of the budget (most in a day {got.most:.3f}), current {got.quality:.4f}"
        print(f"{name}: {words}, prices {got.prices}", flush=True)  # noqa: T201 - what it is for


if __name__ == "__main__":
    main()
