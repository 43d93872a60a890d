"""What does it cost to put a thousand results into order, and to learn what pages are like?

Results have relevance, likes and awareness as a community has after a while: most were seen by a few, some by many. CPU
milliseconds of this process, medians over the rounds, for each policy: making a plan and dealing ten results of it with
their propensities, and learning from all. The ceiling is one sort of as many numbers. The last line is one JSON object.

    python bench/rank.py [--results 1000] [--rounds 200]
"""

import argparse
import json
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from vedette.lab.experiments.ranking import find_policy
from vedette.policy import rng_for
from vedette.serve.rank.explore.candidates import Candidates, UserPopulation

SHOWN = 10
POLICIES = ("default", "popularity", "selective", "uniform", "bayesian-mean", "ucb", "thompson", "damped-thompson")


def main() -> None:
    """Time each policy on the same results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=200)
    asked = parser.parse_args()
    batch, rng = _results(asked.results), rng_for(1, "bench/rank/lots")
    told = {"sort": _cpu_ms(lambda: np.argsort(batch.relevance, kind="stable"), asked.rounds)}
    for name in POLICIES:
        policy = find_policy(name)
        state = policy.observe(policy.observe(policy.start(None), batch, 0.0), batch, 0.0)

        def choose(policy=policy, state=state) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - any policy
            policy.choose(state, batch, SHOWN, 0.0, rng)

        def learn(policy=policy, state=state) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - any policy
            policy.observe(state, batch, 0.0)

        told[name] = _cpu_ms(choose, asked.rounds)
        told[f"{name}, learning"] = _cpu_ms(learn, max(asked.rounds // 10, 3))
    for name, cpu_ms in told.items():
        print(f"{name:28}{cpu_ms:8.3f} ms")
    print(json.dumps({"results": asked.results, "cpu_ms": told}))


def _results(count: int) -> Candidates:
    rng = rng_for(1, "bench/rank/results")
    quality = rng.permutation(0.4 * np.arange(1.0, count + 1) ** -(2 / 3))
    aware = np.where(rng.random(count) < 0.1, rng.integers(10, 100, count), rng.integers(0, 5, count))
    likes = rng.binomial(aware, quality)
    columns = (likes.astype(np.float64), aware.astype(np.float64), aware.astype(np.float64))
    return Candidates(
        rng.uniform(0.5, 1.0, count), *columns, rng.uniform(0, 500, count), UserPopulation(100.0, 100.0, 500.0)
    )


def _cpu_ms(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begun = process_time()
        work()
        times.append(1000 * (process_time() - begun))
    return median(times)


if __name__ == "__main__":
    main()
