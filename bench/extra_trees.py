"""Do our extremely randomized trees predict as well as scikit-learn's, and how fast are they grown?

Rows and targets are drawn; half of the rows are held out. Error is the mean squared error of held-out rows as a share
of their variance, over several seeds; CPU seconds are those of growing alone (importing scikit-learn takes another
second or two). The last line is one JSON object.

    python bench/extra_trees.py [--rows 300,2000,8000] [--seeds 10]
"""

import argparse
import json
from statistics import mean, stdev
from time import process_time
from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.extra_trees import FEATURE_SHARE, MIN_LEAF_ROWS, TREES, fit_forest
from vedette.lab.core.extras import import_extra
from vedette.policy import Floats, rng_for

FEATURES = 12


class Sample(NamedTuple):
    """Rows of features and a target of each: the first half is learned from, the second held out."""

    rows: Floats
    targets: Floats


class Score(NamedTuple):
    """How one forest did: its error on held-out rows, CPU seconds to grow it, its nodes."""

    error: float
    cpu_s: float
    nodes: int


def draw_sample(rows: int, seed: int) -> Sample:
    """Draw features as the scorer has them (shares, small counts, logarithms) and a noisy target."""
    rng = rng_for(seed, "bench/extra-trees")
    table = rng.random((2 * rows, FEATURES))
    table[:, 1] = np.log1p(rng.integers(0, 50, 2 * rows))
    table[:, 2] = rng.integers(0, 3, 2 * rows)
    targets = 3 * table[:, 0] + (table[:, 1] > 2) * table[:, 3] + 0.5 * table[:, 2] + rng.gamma(0.3, 1.0, 2 * rows)
    return Sample(table, targets)


def score_ours(sample: Sample, seed: int) -> Score:
    """Grow our forest, and measure it."""
    half, begin = len(sample.rows) // 2, process_time()
    forest = fit_forest(sample.rows[:half], sample.targets[:half], seed)
    cpu_s = process_time() - begin
    return Score(measure_error(forest.predict_means(sample.rows[half:]), sample), cpu_s, len(forest.feature))


def score_library(sample: Sample, seed: int) -> Score:
    """Grow scikit-learn's forest with the same settings, and measure it."""
    (ensemble,) = import_extra("our trees are compared with those of", "sklearn.ensemble")
    half, begin = len(sample.rows) // 2, process_time()
    forest = ensemble.ExtraTreesRegressor(
        n_estimators=TREES, min_samples_leaf=MIN_LEAF_ROWS, max_features=FEATURE_SHARE, random_state=seed, n_jobs=1
    ).fit(sample.rows[:half], sample.targets[:half])
    cpu_s = process_time() - begin
    nodes = sum(each.tree_.node_count for each in forest.estimators_)
    return Score(measure_error(forest.predict(sample.rows[half:]), sample), cpu_s, nodes)


def measure_error(predicted: Floats, sample: Sample) -> float:
    """Return the squared error of held-out rows as a share of their variance."""
    held = sample.targets[len(sample.targets) // 2 :]
    return float(((predicted - held) ** 2).mean() / held.var())


def main() -> None:
    """Print a table and a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="300,2000,8000")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    score_library(draw_sample(100, 0), 0)
    results = []
    print(f"{'rows':>6} {'by':<13} {'error':>7} {'CPU s':>7} {'nodes':>8}")
    for rows in map(int, options.rows.split(",")):
        samples = [(draw_sample(rows, seed), seed) for seed in range(1, options.seeds + 1)]
        ours, theirs = ([score(*each) for each in samples] for score in (score_ours, score_library))
        for name, scores in (("vedette", ours), ("scikit-learn", theirs)):
            error, cpu_s, nodes = (mean(column) for column in zip(*scores, strict=True))
            print(f"{rows:>6} {name:<13} {error:>7.4f} {cpu_s:>7.3f} {nodes:>8.0f}")
            results.append({"rows": rows, "by": name, "error": error, "cpu_s": cpu_s, "nodes": nodes})
        gaps = [one.error - other.error for one, other in zip(ours, theirs, strict=True)]
        print(f"{'':>6} difference of errors {mean(gaps):+.4f}, standard deviation over seeds {stdev(gaps):.4f}")
    print(json.dumps({"seeds": options.seeds, "results": results}))


if __name__ == "__main__":
    main()
