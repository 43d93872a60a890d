"""Do click models predict clicks, and does ranking by what was learned improve results?

A recorded log (``clara2-search-log.tsv``) and its grades (``clara2-relevance.tsv``), in the folder clicks of the one
that VEDETTE_DATA names. Means over the searches of the later half, with 95% intervals over its queries.

Models are fitted to the earlier half of a log and evaluated on the later one: the log probability of its clicks, per
search. The yardstick is the click rate of each position, whatever result is there.

For ranking, a result is worth the usual relevance of its position, ``place^-w``, times its *lift*: clicks against those
expected at its positions, ``(clicks + c) / (expected + c)``, the mean of a Gamma posterior shrunk to 1. So without
clicks the order is the shown one. Weights w and c are chosen within the earlier half, by its second half, and evaluated
on the later half once. Quality of an order is NDCG@10 by the grades of the log, with gains 2^grade - 1; searches
without any grade above 0 do not count.

    python bench/clicks.py
"""

import os
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np

from vedette.lab.core.statistics import Interval, bootstrap_interval
from vedette.lab.visitors.recorded_clicks import RESULTS_PER_PAGE, SearchLog, read_grades, read_log, split_halves
from vedette.learn.clicks.examination import ClickLog, fit_cascade, fit_position
from vedette.learn.clicks.impressions import Bools
from vedette.policy import Floats, Ints

PRIOR_COUNTS, DECAY_EXPONENTS = (1.0, 3.0, 10.0), (1.0, 2.0, 3.0, 4.0, 6.0, 8.0)


def compare_likelihoods(log: SearchLog) -> Mapping[str, Interval]:
    """By model: how much more log-likelihood a later search has than by the click rates of places (those: absolute)."""
    first, second = split_halves(log)
    train, test = first.to_clicks(), second.to_clicks()
    rates = np.clip(train.clicked.mean(axis=0), 1e-6, 1.0)
    by_place = _log_likelihoods(test, np.broadcast_to(rates, test.clicked.shape))
    prior = _first_place_prior(train)
    position = fit_position(train, prior)
    found = {
        "places": _interval_by_query(by_place, second.query),
        "position": _interval_by_query(_log_likelihoods(test, position.predict_clicks(test)) - by_place, second.query),
    }
    for name, stops in (("cascade", True), ("dbn", False)):
        model = fit_cascade(train, prior, stops_at_click=stops)
        found[name] = _interval_by_query(model.log_likelihoods(test) - by_place, second.query)
    return found


def _log_likelihoods(log: ClickLog, chance: Floats) -> Floats:
    bounded = np.clip(chance, 1e-9, 1 - 1e-9)
    return np.asarray(np.where(log.clicked, np.log(bounded), np.log1p(-bounded)).sum(axis=1))


def _first_place_prior(log: ClickLog) -> Floats:
    """The prior of each result before its clicks: the click rate of the first position, which everyone sees."""
    return np.full(log.results, float(log.clicked[:, 0].mean()))


def evaluate_reranking(log: SearchLog) -> Mapping[str, Interval]:
    """NDCG@10 of the later half as shown, as reranked, the difference, and how many moved."""
    first, second = split_halves(log)
    shown, moved = _compute_ndcg(first, second, *_choose_weights(first))
    query = second.query[_has_grades(second)]
    return {
        "shown": _interval_by_query(shown, query),
        "learned": _interval_by_query(moved, query),
        "difference": _interval_by_query(moved - shown, query),
        "moved": _interval_by_query((moved != shown).astype(np.float64), query),
    }


def _interval_by_query(values: Floats, query: Ints) -> Interval:
    """The mean over searches, with an interval over queries: searches of one query have much in common."""
    _, group = np.unique(query, return_inverse=True)
    mean = float(values.mean()) if len(values) else 0.0
    sums = np.bincount(group, weights=values - mean)
    return bootstrap_interval(mean + sums * len(sums) / max(len(values), 1))


def _choose_weights(log: SearchLog) -> tuple[float, float]:
    """The weights that serve best in the second half of a log, learned from its first; the most careful of equals."""
    begun, ended = split_halves(log)

    def gain(weights: tuple[float, float]) -> float:
        shown, moved = _compute_ndcg(begun, ended, *weights)
        return float((moved - shown).mean())

    return max(product(reversed(PRIOR_COUNTS), reversed(DECAY_EXPONENTS)), key=gain)


def _compute_ndcg(learned_from: SearchLog, asked: SearchLog, caution: float, steepness: float) -> tuple[Floats, Floats]:
    """NDCG of each search as it was shown, and by relevance of the place and lift."""
    lift = _compute_lifts(learned_from, caution)[asked.pair]
    score = np.log(lift) - steepness * np.log(np.arange(1, RESULTS_PER_PAGE + 1))
    grades = np.nan_to_num(asked.grade)[asked.pair]
    grades, score = grades[_has_grades(asked)], score[_has_grades(asked)]
    order = np.argsort(-score, axis=1, kind="stable")
    return ndcg(grades), ndcg(np.take_along_axis(grades, order, axis=1))


def _has_grades(log: SearchLog) -> Bools:
    return np.asarray(np.nan_to_num(log.grade)[log.pair].max(axis=1) > 0)


def _compute_lifts(log: SearchLog, caution: float) -> Floats:
    expected = np.broadcast_to(log.clicked.mean(axis=0), log.pair.shape)
    sums = (
        np.bincount(log.pair.ravel(), weights=each.ravel().astype(np.float64), minlength=len(log.grade))
        for each in (log.clicked, expected)
    )
    clicks, usual = sums
    return np.asarray((clicks + caution) / (usual + caution), np.float64)


def ndcg(grades: Floats) -> Floats:
    """NDCG@10 of lists with these grades, best known order against the given one.

    >>> ndcg(np.array([[0.0, 3.0], [3.0, 0.0]])).round(3).tolist()
    [0.631, 1.0]
    """
    discount = 1 / np.log2(np.arange(2, min(grades.shape[1], 10) + 2))
    gains = 2.0**grades - 1
    best = np.sort(gains, axis=1)[:, ::-1]
    return np.asarray((gains[:, :10] @ discount) / np.maximum(best[:, :10] @ discount, 1e-12))


def main() -> None:
    """Fit to the earlier half, evaluate on the later one."""
    folder = Path(os.environ.get("VEDETTE_DATA", "")) / "clicks"
    log_path, grades_path = folder / "clara2-search-log.tsv", folder / "clara2-relevance.tsv"
    if not (log_path.is_file() and grades_path.is_file()):
        sys.exit("the log is not here: set VEDETTE_DATA to a folder that contains clicks/clara2-search-log.tsv")
    with grades_path.open(encoding="utf-8") as lines:
        log = read_log(log_path, read_grades(lines))
    print(f"{len(log.query)} searches, {len(log.grade)} results")
    for title, found in (("log-likelihood", compare_likelihoods(log)), ("NDCG@10", evaluate_reranking(log))):
        for name, each in found.items():
            print(f"{title:16}{name:12}{each.mean:+.5f} [{each.low:+.5f}, {each.high:+.5f}] n = {each.n}")


if __name__ == "__main__":
    main()
