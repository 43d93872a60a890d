"""A crawl in which the price binds: some hosts have URLs worth it, some have none, some have both.

python -m tests.engine.weighted_hosts     prints how long each kind of host waited, and what it got of the budget

What first fetches bring is taught by measured gains, as the indexer tells them; then a price is set between the worth
of the good section and that of the poor one, as days of refreshes would, and the crawl goes on.
"""

import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from tests.engine.memory_web import Drive, MemoryWeb, page, rules_for
from tests.engine.shocks import START_S, BusyDrive, origin, site

from vedette.engine.ports import FetchGain
from vedette.engine.scheduling.price_controller import PRICE_KEY, PriceController

__all__ = ["Waited", "weighed"]

MINUTE_S, HOUR_S = 60.0, 3_600.0
TAUGHT_MIN, SETTLING_MIN, END_MIN = 4, 6, 12
# This many pages of each section are linked first; on a host with both, all other poor ones come before the good.
TRIED = 20
GAINS = {"good": 9.0, "poor": 0.0}
KINDS: Mapping[str, tuple[str, ...]] = {"good": ("good",), "poor": ("poor",), "both": ("poor", "good")}


class Waited(NamedTuple):
    """For one kind of host: the longest time without a request, pages per second, and their gain.

    ``price`` is what a fetch had to be worth at the end, and ``worths`` what first fetches of the sections were worth.
    """

    longest_s: Mapping[str, float]
    per_s: Mapping[str, float]
    sections: Mapping[str, float]
    price: float
    worths: Mapping[str, float]


def weighed(hosts: Mapping[str, int], per_s: float, price: float = 700.0, pages: int = 1_800) -> Waited:
    """Load history, set a price, run, and evaluate the last six minutes; ``hosts`` gives the number of each kind."""
    kinds = [kind for kind, count in hosts.items() for _ in range(count)]
    web = _web(kinds, pages)
    sites = [site(host) for host in range(len(kinds))]
    rules = rules_for(*sites, recrawl=True, budget_per_s=per_s, delay_s=1.0, address_delay_s=0.0)
    taught = BusyDrive(web, rules, workers=1, start_s=START_S).begin().run(TAUGHT_MIN * MINUTE_S)
    _teach(taught)
    taught.book.set_value(PRICE_KEY, PriceController("expected-gain", price=price, is_settled=True).to_json())
    drive = BusyDrive(web, rules, workers=1, start_s=taught.now_s, db=taught.db).begin()
    drive.run(END_MIN * MINUTE_S)
    return _waited(drive, kinds)


def _web(kinds: list[str], pages: int) -> MemoryWeb:
    web = MemoryWeb()
    for host, kind in enumerate(kinds):
        paths = [f"/{part}/{n}" for n in range(TRIED) for part in KINDS[kind]]
        paths += [f"/{part}/{n}" for part in KINDS[kind] for n in range(TRIED, pages)]
        web.replies |= {f"{origin(host)}{path}": page(title=f"{path} of {host}") for path in paths}
        web.replies[f"{origin(host)}/start"] = page(*paths)
        web.names[f"h{host}.test"] = (f"93.184.1.{host + 1}",)
    return web


def _teach(drive: Drive) -> None:
    """Teach that changes gain a little, first fetches of the good section much, and those of the poor one nothing."""
    drive._report()
    rows = [(url.split("/")[3], row) for url, row in drive.pages().items() if not url.endswith("/start")]
    drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, 1.0, None) for _, row in rows[:40]], drive.now_s)
    firsts = [FetchGain(row.id, row.fetched_s, GAINS[part], None) for part, row in rows]
    drive.keeper.on_gains((), drive.now_s + HOUR_S, firsts)


def _waited(drive: Drive, kinds: list[str]) -> Waited:
    begin_s, end_s = drive.now_s - (END_MIN - SETTLING_MIN) * MINUTE_S, drive.now_s
    span_s = end_s - begin_s
    pages = [asked for asked in drive.log if asked.purpose == "page" and asked.sent_s >= begin_s]
    longest_s, counts = dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0.0)
    for host, kind in enumerate(kinds):
        times = [asked.sent_s for asked in pages if asked.host == f"h{host}.test"]
        waits = [after - before for before, after in pairwise([begin_s, *times, end_s])]
        longest_s[kind] = max(longest_s[kind], *waits)
        counts[kind] += len(times) / span_s
    parts = [asked.url.split("/")[3] for asked in pages]
    firsts = drive.keeper.first_fetches
    worths = {part: firsts.estimate_worth(f"{origin(kinds.index(part))}/{part}/new", 1) for part in GAINS}
    sections = {part: parts.count(part) / span_s for part in GAINS}
    return Waited(longest_s, counts, sections, drive.keeper.refresher.price or 0.0, worths)


def main() -> None:
    """Print a row for each case."""
    cases: dict[str, tuple[dict[str, int], float]] = {
        "more work than budget": ({"good": 6, "poor": 6}, 2.0),
        "more budget than work": ({"good": 2, "poor": 6}, 5.0),
        "both on one host": ({"good": 2, "poor": 2, "both": 2}, 2.0),
    }
    for name, (hosts, per_s) in cases.items():
        sys.stdout.write(f"{name}: {weighed(hosts, per_s)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
