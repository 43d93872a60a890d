"""Do models of clicks tell what people will click, and does ranking by what was learned bring better results up?

Models are fitted to the earlier half of a log and asked about the later one: the logarithm of the probability that they
give to its clicks, per search. The yardstick is the click rate of each place, whatever stands there.

For ranking, a result is worth the usual relevance of its place, ``place^-w``, times its *lift*: clicks against those
that its places would have brought, ``(clicks + c) / (expected + c)``, the mean of a Gamma posterior that leans on 1. So
without clicks the order is the shown one. Weights w and c are chosen within the earlier half, by its second half, and
asked about the later half once. Quality of an order is NDCG@10 by the grades of the log, with gains 2^grade - 1;
searches without any grade above 0 do not count.
"""

from collections.abc import Mapping
from itertools import product

import numpy as np

from vedette.lab.core.statistics import Interval, interval
from vedette.lab.visitors.search_log import PLACES, SearchLog, halves
from vedette.learn.clicks.examination import Clicks, fit_cascade, fit_position
from vedette.learn.clicks.impressions import Bools
from vedette.policy import Floats, Ints

__all__ = ["likelihoods", "ndcg", "reranked"]

CAUTION, STEEPNESS = (1.0, 3.0, 10.0), (1.0, 2.0, 3.0, 4.0, 6.0, 8.0)


def likelihoods(log: SearchLog) -> Mapping[str, Interval]:
    """By model: how much more log-likelihood a later search has than by the click rates of places (those: absolute)."""
    first, second = halves(log)
    train, test = first.clicks(), second.clicks()
    rates = np.clip(train.clicked.mean(axis=0), 1e-6, 1.0)
    by_place = _per_search(test, np.broadcast_to(rates, test.clicked.shape))
    prior = _prior(train)
    position = fit_position(train, prior)
    found = {
        "places": _over_queries(by_place, second.query),
        "position": _over_queries(_per_search(test, position.chances(test)) - by_place, second.query),
    }
    for name, stops in (("cascade", True), ("dbn", False)):
        model = fit_cascade(train, prior, stops_at_click=stops)
        found[name] = _over_queries(model.by_search(test) - by_place, second.query)
    return found


def _per_search(log: Clicks, chance: Floats) -> Floats:
    bounded = np.clip(chance, 1e-9, 1 - 1e-9)
    return np.asarray(np.where(log.clicked, np.log(bounded), np.log1p(-bounded)).sum(axis=1))


def _prior(log: Clicks) -> Floats:
    """What is believed of each result before its clicks: the click rate of the first place, which all look at."""
    return np.full(log.results, float(log.clicked[:, 0].mean()))


def reranked(log: SearchLog) -> Mapping[str, Interval]:
    """NDCG@10 of the later half as it was shown, as it is by what was learned, the difference, and how many moved."""
    first, second = halves(log)
    shown, moved = _qualities(first, second, *_chosen(first))
    query = second.query[_is_graded(second)]
    return {
        "shown": _over_queries(shown, query),
        "learned": _over_queries(moved, query),
        "difference": _over_queries(moved - shown, query),
        "moved": _over_queries((moved != shown).astype(np.float64), query),
    }


def _over_queries(values: Floats, query: Ints) -> Interval:
    """The mean over searches, with an interval over queries: searches of one query have much in common."""
    _, group = np.unique(query, return_inverse=True)
    mean = float(values.mean()) if len(values) else 0.0
    sums = np.bincount(group, weights=values - mean)
    return interval(mean + sums * len(sums) / max(len(values), 1))


def _chosen(log: SearchLog) -> tuple[float, float]:
    """The weights that serve best in the second half of a log, learned from its first; the most careful of equals."""
    begun, ended = halves(log)

    def gain(weights: tuple[float, float]) -> float:
        shown, moved = _qualities(begun, ended, *weights)
        return float((moved - shown).mean())

    return max(product(reversed(CAUTION), reversed(STEEPNESS)), key=gain)


def _qualities(learned_from: SearchLog, asked: SearchLog, caution: float, steepness: float) -> tuple[Floats, Floats]:
    """NDCG of each search as it was shown, and by relevance of the place and lift."""
    lift = _lifts(learned_from, caution)[asked.pair]
    score = np.log(lift) - steepness * np.log(np.arange(1, PLACES + 1))
    grades = np.nan_to_num(asked.grade)[asked.pair]
    grades, score = grades[_is_graded(asked)], score[_is_graded(asked)]
    order = np.argsort(-score, axis=1, kind="stable")
    return ndcg(grades), ndcg(np.take_along_axis(grades, order, axis=1))


def _is_graded(log: SearchLog) -> Bools:
    return np.asarray(np.nan_to_num(log.grade)[log.pair].max(axis=1) > 0)


def _lifts(log: SearchLog, caution: float) -> Floats:
    expected = np.broadcast_to(log.clicked.mean(axis=0), log.pair.shape)
    sums = (
        np.bincount(log.pair.ravel(), weights=each.ravel().astype(np.float64), minlength=len(log.grade))
        for each in (log.clicked, expected)
    )
    clicks, usual = sums
    return np.asarray((clicks + caution) / (usual + caution), np.float64)


def ndcg(grades: Floats) -> Floats:
    """NDCG@10 of lists with these grades, best known order against the one at hand.

    >>> ndcg(np.array([[0.0, 3.0], [3.0, 0.0]])).round(3).tolist()
    [0.631, 1.0]
    """
    discount = 1 / np.log2(np.arange(2, min(grades.shape[1], 10) + 2))
    gains = 2.0**grades - 1
    best = np.sort(gains, axis=1)[:, ::-1]
    return np.asarray((gains[:, :10] @ discount) / np.maximum(best[:, :10] @ discount, 1e-12))
