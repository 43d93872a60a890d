"""What does an order by impact cost the coordinator: per found URL, per fetched URL, and per impact pass?

A million unseen URLs of one host wait. Gains of all of them are in a file, with folder averages. Measured is CPU time:
to score the links of a page (batches of 20 URLs), to look up URLs that are fetched (batches of 10), and to reorder the
whole host. Then the same without estimates while a price binds: by the gains of first fetches of each section
(``engine.scheduling.url_order``); how long one turn of the host takes at most, and how much memory a sort takes. The
last line is one JSON object.

    python bench/foresight.py [--urls N]
"""

import argparse
import json
import sqlite3
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from vedette.adapters.crawl_store.store import CrawlStore, create_tables
from vedette.adapters.index_store.impact_store import ImpactEstimates, average_places, write_estimates
from vedette.adapters.url_store.queues import HostQueues
from vedette.adapters.url_store.rows import create_url_tables
from vedette.adapters.url_store.store import UrlStore
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import CrawlRules, FoundUrl
from vedette.engine.ports import LinkBatch
from vedette.engine.scheduling.first_fetch import FIRSTS_KEY, FirstFetches, list_groups
from vedette.engine.scheduling.url_order import NO_IMPACT, ImpactLookup, WorthSorter
from vedette.frontier.impact.estimates import assign_by_rank
from vedette.frontier.impact.url_features import hash_folders
from vedette.policy import rng_for
from vedette.pricing import FirstFetchModel

FOUND, LEAVING, TIMES = 20, 10, 2000
FOLDERS = 5000


def spent_s(work: Callable[[int], object], times: int) -> float:
    """Processor seconds for each time."""
    began_s = time.process_time()
    for turn in range(times):
        work(turn)
    return (time.process_time() - began_s) / times


def sifted(urls: int) -> dict[str, float]:
    """A million URLs in fifty sections of a hundred folders, every other one with gains, at a price."""
    rng, priced = rng_for(1, "bench/sifted"), CrawlRules(budget_per_s=1.0)
    db = sqlite3.connect(":memory:", isolation_level=None)
    create_url_tables(db)
    create_tables(db)
    store, book = UrlStore(db, 1), CrawlStore(db)
    names = [f"https://a.test/{number % 50}/{number % FOLDERS}/page-{number}.html" for number in range(urls)]
    store.intern_hosts(["a.test"])
    for begin in range(0, urls, 10_000):
        some = names[begin : begin + 10_000]
        store.add(LinkBatch(some, [0] * len(some), [1] * len(some), [2] * len(some)), 0.0)
    tried = [names[number] for number in rng.integers(0, urls, 5_000).tolist()]
    gains = np.array([9.0 * (int(url.split("/")[3]) % 2) for url in tried])
    came = FirstFetchModel().add_changes(np.ones(100)).add_first_fetches([list_groups(url, 1) for url in tried], gains)
    book.set_value(FIRSTS_KEY, json.dumps(asdict(came)))
    firsts = FirstFetches(priced, book, SimpleNamespace(price=600.0))
    firsts.below_price.add(names[0], 1.0, 600.0, 0.0)
    hosts = HostTable(priced, store, 1)
    by_worth, host = (
        WorthSorter(hosts, store, book, firsts, ImpactLookup(hosts, store, NO_IMPACT)),
        hosts.get_or_add("a.test", 0),
    )
    turns_s: list[float] = []

    def turn(now: int) -> None:
        began_s = time.process_time()
        by_worth.step(host, float(now)) if turns_s else by_worth.should_sort(host, 10, 10, float(now))
        turns_s.append(time.process_time() - began_s)

    tracemalloc.start(1)
    turn(0)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    while host.sort_state is None:
        turn(len(turns_s))
    found = [FoundUrl(url, 1) for url in names[: FOUND * TIMES]]
    found_s = spent_s(lambda turn: by_worth.get_front_queues(found[FOUND * turn : FOUND * (turn + 1)], 600.0), TIMES)
    good = sum(int(book.get_urls([id_])[id_].split("/")[3]) % 2 for id_ in store.get_queue(0)[0][:1000].tolist())
    return {
        "sift_url_us": 1e6 * sum(turns_s) / urls,
        "sift_turn_ms": 1e3 * float(np.median(turns_s)),
        "sift_longest_s": max(turns_s),
        "sift_bytes_a_url": held / urls,
        "sift_found_us": 1e6 * found_s / FOUND,
        "good_in_front": good / 1000,
    }


def main() -> None:
    """Make them, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    options = parser.parse_args()
    rng = rng_for(1, "bench/foresight")
    gains = rng.random(options.urls + 1).astype(np.float32)
    urls = [f"https://a.test/{number % 50}/{number % FOLDERS}/page-{number}.html" for number in range(FOUND * TIMES)]
    folder, branch = hash_folders(urls)
    some = gains[: len(urls)].astype(np.float64)
    queues, ids = HostQueues(), np.arange(1, options.urls + 1, dtype=np.uint32)
    queues.append(ids, np.zeros(options.urls, np.int64), np.full(options.urls, 3, np.uint8))
    with tempfile.TemporaryDirectory() as place:
        write_estimates(Path(place), gains, average_places(folder, branch, some, some))
        expected = ImpactEstimates(Path(place))

        def find(turn: int) -> object:
            new = urls[FOUND * turn : FOUND * (turn + 1)]
            return expected.get_front_queues(expected.get_gains(np.zeros(FOUND, np.uint32), new))

        def leave(turn: int) -> object:
            return expected.get_gains(ids[LEAVING * turn : LEAVING * (turn + 1)], urls[:LEAVING])

        def line_up(_: int) -> None:
            waiting, before = queues.list_waiting(0)
            foreseen = expected.get_known(waiting)
            fronts = assign_by_rank(foreseen)
            order = np.argsort(-foreseen, kind="stable")
            queues.reorder(0, waiting[order], fronts[order].astype(before.dtype))

        told = {
            "found_us": 1e6 * spent_s(find, TIMES) / FOUND,
            "leaving_us": 1e6 * spent_s(leave, TIMES) / LEAVING,
            "line_up_s": spent_s(line_up, 3),
        }
    print(f"a URL that is found      {told['found_us']:8.1f} us")
    print(f"a URL that leaves        {told['leaving_us']:8.1f} us")
    print(f"{options.urls} stand in line {told['line_up_s']:8.2f} s")
    told |= sifted(options.urls)
    print(f"by worth, a URL found    {told['sift_found_us']:8.1f} us")
    print(f"by worth, a URL sifted   {told['sift_url_us']:8.1f} us, {told['sift_bytes_a_url']:.0f} bytes meanwhile")
    print(f"by worth, a turn         {told['sift_turn_ms']:8.1f} ms, the longest {told['sift_longest_s']:.2f} s")
    print(f"of the first thousand in line {100 * told['good_in_front']:.0f} % are of good sections")
    print(json.dumps({key: round(value, 3) for key, value in told.items()} | {"urls": options.urls}))


if __name__ == "__main__":
    main()
