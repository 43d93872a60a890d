"""Fit the ranking weights for questions to judged collections, each judged by the others.

Only features that fire for questions are fitted. Whole phrases and titles keep the weights of known items: a long query
may still be the name of a page.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from bench.peers.judged import NOW_S, Collection

from vedette.engine.search import search
from vedette.engine.search.scoring import ALL_FEATURES, ScoredCandidates, score_candidates
from vedette.engine.search.search import Searcher
from vedette.index.query.planner import QueryWord
from vedette.policy import Floats, Ints, rng_for
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.serve.rank.weights import QUESTION_WEIGHTS
from vedette.serve.slate import SearchRequest

KEYS = tuple(feature.key for feature in ALL_FEATURES)
FITTED_KEYS = (
    "title_bm25",
    "body_bm25",
    "title_pairs",
    "body_pairs",
    "body_near",
    "anywhere",
    "outside",
    "feedback",
)
FITTED = [KEYS.index(key) for key in FITTED_KEYS]
PAIRS = 30
RIDGE = 1e-3

Metric = Callable[[Sequence[int], Mapping[int, float]], float]


class Candidates(NamedTuple):
    """The candidates of a query, their features, and the grades of the right ones."""

    places: Ints
    features: Floats
    grades: Mapping[int, float]
    words: int


def record_candidates(shelf: LiveIndexSnapshot, collection: Collection) -> list[Candidates]:
    """Search every question of a collection, and keep the inputs of ranking."""
    return [_record(shelf, each.text, each.grades) for each in collection.questions]


def _record(shelf: LiveIndexSnapshot, text: str, grades: Mapping[int, float]) -> Candidates:
    with _watched() as seen:
        Searcher(shelf).search(SearchRequest(text, n=1), NOW_S)
    scored, words = seen[0] if seen else (None, 0)
    if scored is None:
        return Candidates(np.zeros(0, np.int64), np.zeros((0, len(KEYS))), grades, 0)
    return Candidates(scored.ids - 1, scored.features, grades, words)


@contextmanager
def _watched() -> Iterator[list[tuple[ScoredCandidates, int]]]:
    seen: list[tuple[ScoredCandidates, int]] = []

    def watched(ids: Ints, wanted: Sequence[QueryWord], *more: Any) -> ScoredCandidates:  # noqa: ANN401 -- passed on
        scored = score_candidates(ids, wanted, *more, is_full=True)
        seen.append((scored, len(wanted)))
        return scored

    with patch.object(search, "score_candidates", watched):
        yield seen


def fit_weights(collections: Mapping[str, Sequence[Candidates]], metric: Metric) -> None:
    """Print what each collection scores by weights of the others, and the weights of all together."""
    pairs = {name: _differences(rows) for name, rows in collections.items()}
    print()
    for name, rows in collections.items():
        others = [one for other, one in pairs.items() if other != name]
        if others:
            weights = _fit(others)
            scores = [metric(_ranked(each, weights), each.grades) for each in rows]
            print(f"{name}: nDCG@10 {np.mean(scores):.3f} by weights that were fitted to the others")
    weights = _fit([*pairs.values()])
    print({key: round(float(weights[column]), 1) for key, column in zip(FITTED_KEYS, FITTED, strict=True)})


def _differences(rows: Sequence[Candidates]) -> tuple[Floats, Floats]:
    """Features of right candidates less those of wrong ones, some of each query, and the weight of each pair."""
    chance = rng_for(1, "bench/question_weights")
    found: list[tuple[Floats, Floats]] = []
    for each in rows:
        right = np.array([place in each.grades for place in each.places.tolist()], bool)
        rights, wrongs = np.flatnonzero(right)[:PAIRS], np.flatnonzero(~right)
        for place in rights if len(wrongs) else ():
            others = chance.choice(wrongs, min(PAIRS, len(wrongs)), replace=False)
            share = np.full(len(others), 1 / (len(rights) * len(others)))
            features = each.features[:, FITTED]
            found.append((features[place] - features[others], share))
    return np.concatenate([pair for pair, _ in found]), np.concatenate([share for _, share in found])


def _fit(sets: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Weights of a pairwise logistic model, none below zero, each collection counting the same; others stay."""
    minimize = import_module("scipy.optimize").minimize
    pairs = np.concatenate([pair for pair, _ in sets])
    heft = np.concatenate([share / share.sum() for _, share in sets])

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = pairs @ weights
        slope = -(pairs.T @ (heft / (1 + np.exp(np.clip(margin, -500, 500))))) + 2 * RIDGE * weights
        return float(heft @ np.logaddexp(0, -margin) + RIDGE * weights @ weights), slope

    start = np.full(len(FITTED), 0.1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(FITTED))
    weights = np.array([QUESTION_WEIGHTS.get(key, 0.0) for key in KEYS])
    weights[FITTED] = found.x
    return weights


def _ranked(each: Candidates, weights: Floats) -> list[int]:
    order = np.argsort(-(each.features @ weights), kind="stable")
    return [int(place) for place in each.places[order]]
