"""How long does the lab take for a million pages over a hundred days, one decision batch an hour, and how much memory?

One process and one thread. Generating the world and refreshing it are timed separately, in CPU seconds, so that a
busy machine matters little. Memory is the peak of the process, including the world. The benchmark fails if a
refresh run takes ten minutes or more. The last line is one JSON object.

    python bench/lab.py [--world NAME] [--budget FETCHES_A_DAY] [--policies NAME ...]
"""

import argparse
import json
import resource
import sys
from time import process_time

from vedette.lab.experiments.refresh import build_setup
from vedette.lab.runs.refresh.run import RefreshGame, run_refresh
from vedette.lab.worlds.synthetic.history import build_synthetic_history

LONGEST_S = 600.0


def main() -> int:
    """Make the world once, then one run for each policy."""
    asked = _asked()
    started = process_time()
    history = build_synthetic_history(asked.world, seed=1)
    made_s = process_time() - started
    pages, versions = history.pages, len(history.version_page)
    print(f"made:{asked.world}: {pages:,} pages, {versions:,} versions in {made_s:.1f} s, {_peak_mb():,.0f} MB")
    print(f"{'policy':12} {'seconds':>8} {'freshness':>10} {'age d':>8} {'fetches':>12} {'peak MB':>8}")
    runs_s = {}
    game = RefreshGame(history.begin_s, history.end_s, asked.budget)
    for policy in asked.policies:
        started = process_time()
        outcome = run_refresh(history, build_setup(policy, history, game), game)
        runs_s[policy] = round(process_time() - started, 1)
        numbers = f"{outcome.freshness:10.4f} {outcome.age_d:8.3f} {outcome.fetches:12,}"
        print(f"{policy:12} {runs_s[policy]:8.1f} {numbers} {_peak_mb():8,.0f}", flush=True)
    told = {"pages": pages, "versions": versions, "made_s": round(made_s, 1), "runs_s": runs_s, "peak_mb": _peak_mb()}
    print(json.dumps(told))
    return int(max(runs_s.values()) >= LONGEST_S)


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--world", default="1m")
    parser.add_argument("--budget", type=float, default=200_000.0)
    parser.add_argument("--policies", nargs="+", default=["uniform", "nutch", "default", "bound-known"])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
