"""What does the keeper pay for an order by impact: for each URL that is found, for each that leaves, for a new making?

A million unseen URLs of one host wait. Gains of all of them are in a file, folders beside. Measured is processor time:
to weigh what a page names (batches of 20 URLs), to look up those that leave (batches of 10), and to let the whole host
stand in line anew. The last line is one JSON object.

    python bench/foresight.py [--urls N]
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from vedette.decide import rng_for
from vedette.edges.expected_file import Expected, places_of, write_expected
from vedette.edges.url_queues import HostQueues
from vedette.order.foreseen import fronts_by_rank
from vedette.order.impact.described import folders_of

FOUND, LEAVING, TIMES = 20, 10, 2000
FOLDERS = 5000


def spent_s(work: Callable[[int], object], times: int) -> float:
    """Processor seconds for each time."""
    began_s = time.process_time()
    for turn in range(times):
        work(turn)
    return (time.process_time() - began_s) / times


def main() -> None:
    """Make them, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    options = parser.parse_args()
    rng = rng_for(1, "bench/foresight")
    gains = rng.random(options.urls + 1).astype(np.float32)
    urls = [f"https://a.test/{number % 50}/{number % FOLDERS}/page-{number}.html" for number in range(FOUND * TIMES)]
    folder, branch = folders_of(urls)
    some = gains[: len(urls)].astype(np.float64)
    queues, ids = HostQueues(), np.arange(1, options.urls + 1, dtype=np.uint32)
    queues.append(ids, np.zeros(options.urls, np.int64), np.full(options.urls, 3, np.uint8))
    with tempfile.TemporaryDirectory() as place:
        write_expected(Path(place), gains, places_of(folder, branch, some, some))
        expected = Expected(Path(place))

        def find(turn: int) -> object:
            new = urls[FOUND * turn : FOUND * (turn + 1)]
            return expected.fronts(expected.gains(np.zeros(FOUND, np.uint32), new))

        def leave(turn: int) -> object:
            return expected.gains(ids[LEAVING * turn : LEAVING * (turn + 1)], urls[:LEAVING])

        def line_up(_: int) -> None:
            waiting, before = queues.lined_up(0)
            foreseen = expected.known(waiting)
            fronts = fronts_by_rank(foreseen)
            order = np.argsort(-foreseen, kind="stable")
            queues.line_up(0, waiting[order], fronts[order].astype(before.dtype))

        told = {
            "found_us": 1e6 * spent_s(find, TIMES) / FOUND,
            "leaving_us": 1e6 * spent_s(leave, TIMES) / LEAVING,
            "line_up_s": spent_s(line_up, 3),
        }
    print(f"a URL that is found      {told['found_us']:8.1f} us")
    print(f"a URL that leaves        {told['leaving_us']:8.1f} us")
    print(f"{options.urls} stand in line {told['line_up_s']:8.2f} s")
    print(json.dumps({key: round(value, 3) for key, value in told.items()} | {"urls": options.urls}))


if __name__ == "__main__":
    main()
