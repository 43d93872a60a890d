"""Are our confidence intervals as good as those of scipy, and as fast? BCa bootstrap intervals of few values.

For each number of values: the share of samples of an exponential distribution whose 95% interval holds the mean, and
the milliseconds of one interval (the least of several). The last line is one JSON object.

    python bench/intervals.py [--samples 1000]
"""

import argparse
import json
from collections.abc import Callable
from time import perf_counter

import numpy as np

from vedette.lab.core.extras import import_extra
from vedette.lab.core.statistics import RESAMPLES, bootstrap_interval
from vedette.policy import Floats, rng_for

SIZES = (5, 10, 20)
Ends = tuple[float, float]


def main() -> None:
    """Print a line for each number of values and each of both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1000)
    samples = parser.parse_args().samples
    (stats,) = import_extra("intervals are compared with those of", "scipy.stats")

    def by_scipy(values: Floats) -> Ends:
        found = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=RESAMPLES, rng=1).confidence_interval
        return float(found.low), float(found.high)

    rows = []
    for size in SIZES:
        for name, interval in (("vedette", _by_vedette), ("scipy", by_scipy)):
            drawn = rng_for(size, "bench/intervals").standard_exponential((samples, size))
            ends = [interval(values) for values in drawn]
            coverage = float(np.mean([low <= 1.0 <= high for low, high in ends]))
            rows.append({"values": size, "by": name, "coverage": coverage, "ms": _time_ms(interval, drawn[0])})
            print(f"{size:4} values  {name:8} coverage {coverage:.3f}  {rows[-1]['ms']:.2f} ms")
    print(json.dumps(rows))


def _by_vedette(values: Floats) -> Ends:
    found = bootstrap_interval(values)
    return found.low, found.high


def _time_ms(interval: Callable[[Floats], Ends], values: Floats) -> float:
    times = []
    for _ in range(9):
        begin = perf_counter()
        interval(values)
        times.append(perf_counter() - begin)
    return 1e3 * min(times)


if __name__ == "__main__":
    main()
