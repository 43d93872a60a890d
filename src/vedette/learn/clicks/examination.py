"""Examination models (click models): which results users looked at, fitted to clicks.

A result that was not clicked was either not examined or not liked, and only a model can distinguish these. All are
fitted by expectation maximization over whole logs at once, in arrays: one row per search, one column per position.

- *position*: position k is examined with its own probability, whatever happened above (Richardson07).
- *DBN*: from the top; after a click the user is satisfied with probability s, otherwise continues with g (Chapelle09).
  With s = 1 and g = 1 this is the *cascade*, where everyone stops at the first click (Craswell08).

The attraction of a result is shrunk to a prior, with the weight of a few views, so that one click does not decide.
"""

from typing import NamedTuple

import numpy as np

from vedette.learn.clicks.impressions import Bools, Impressions
from vedette.policy import Floats, Ints

# Good pages rank high, so clicks by position say more about pages than about positions. But if the position of a page
# for a query was random, the same page was shown high and low for no reason of its own, and the difference is due to
# positions. clicks of result r at position k  ~  showings(r, k) examined(k) attraction(r) is fitted to these showings
# alone, alternately: one product in each row and each column, as in contingency tables. The result is relative: the
# first position is never random if the operator reserves it, so the level is left to the model of all clicks, and
# random showings correct its shape, as far as they have clicks.


STEPS = 50
# This many clicks at a position count as much as the model of all clicks.
CONFIDENCE = 50.0
_TINY = 1e-9


def correct_examination(seen: Impressions, modelled: Floats) -> Floats:
    """Correct a model's examination probability of each position by impressions at random positions.

    Nothing is corrected without such impressions, or if each result was shown at one position only.
    """
    by_lot = (seen.propensity > 0) & (seen.propensity < 1) & (seen.place < len(modelled))
    if not by_lot.any():
        return modelled
    pairs = np.column_stack([seen.group[by_lot], seen.page[by_lot]])
    _, result = np.unique(pairs, axis=0, return_inverse=True)
    shown, clicked = _count_tables(result.ravel(), seen.place[by_lot], seen.clicked[by_lot], len(modelled))
    # A result at only one position says nothing about positions.
    moved = (shown > 0).sum(axis=1) > 1
    shown, clicked = shown[moved], clicked[moved]
    clicks = clicked.sum(axis=0)
    if np.count_nonzero(clicks) < 2:
        return modelled
    examined = _fit_examination(shown, clicked, modelled)
    # The level is the model's: on average over clicks, logarithms are unchanged.
    offset = np.average(np.log(modelled / np.maximum(examined, _TINY)), weights=clicks)
    weight = clicks / (clicks + CONFIDENCE)
    mixed = (1 - weight) * np.log(modelled) + weight * (np.log(np.maximum(examined, _TINY)) + offset)
    return np.asarray(np.minimum(np.exp(mixed), 1.0))


def _count_tables(result: Ints, place: Ints, clicked: Bools, places: int) -> tuple[Floats, Floats]:
    """Count impressions and clicks, one row per result and one column per position."""
    rows = int(result.max()) + 1
    at = result * places + place
    counts = (np.bincount(at, each, rows * places) for each in (np.ones(len(at)), clicked.astype(np.float64)))
    shown, chosen = (each.reshape(rows, places).astype(np.float64) for each in counts)
    return shown, chosen


def _fit_examination(shown: Floats, clicked: Floats, start: Floats) -> Floats:
    examined = start
    for _ in range(STEPS):
        attraction = clicked.sum(axis=1) / np.maximum(shown @ examined, _TINY)
        looks = attraction @ shown
        examined = np.where(looks > _TINY, clicked.sum(axis=0) / np.maximum(looks, _TINY), examined)
    return np.asarray(examined)


EM_STEPS = 30
PRIOR_WEIGHT = 5.0  # views that the prior counts for


class ClickLog(NamedTuple):
    """Click log of searches: the results shown, by number (a page for a query), and which were clicked."""

    result: Ints
    clicked: Bools
    results: int

    @property
    def places(self) -> int:
        """The number of results on a result page."""
        return int(self.result.shape[1])


class PositionModel(NamedTuple):
    """Position click model: examination probability by position (1 for the first), and attraction by result."""

    examined: Floats
    attraction: Floats

    def predict_clicks(self, shown: ClickLog) -> Floats:
        """Predict the click probability of each result of each search by the position model."""
        return self.examined * self.attraction[shown.result]

    def log_likelihood(self, shown: ClickLog) -> float:
        """Compute the natural log likelihood per search of a log's clicks under the position model."""
        chance = np.clip(self.predict_clicks(shown), _TINY, 1 - _TINY)
        return float(np.where(shown.clicked, np.log(chance), np.log1p(-chance)).sum(axis=1).mean())


class CascadeModel(NamedTuple):
    """Cascade click model, from the top: attraction, satisfaction by a click, and continuation without it."""

    attraction: Floats
    satisfaction: float
    perseverance: float

    def log_likelihood(self, shown: ClickLog) -> float:
        """Compute the log likelihood per search of a log's clicks under the cascade model.

        That is the known path to the last click, then all ways to stop.
        """
        return float(self.log_likelihoods(shown).mean())

    def log_likelihoods(self, shown: ClickLog) -> Floats:
        """Compute the log likelihood of each search under the cascade model."""
        ways, known = _compute_stop_probabilities(self, shown)
        return np.asarray(known + np.log(np.maximum(ways.sum(axis=1), _TINY)))


def shrink_to_prior(prior: Floats, clicks: Floats, looks: Floats) -> Floats:
    """Compute the posterior mean of a click rate after clicks in a number of examinations.

    >>> shrink_to_prior(np.array([0.2]), np.array([3.0]), np.array([5.0])).tolist()
    [0.4]
    """
    return np.asarray((clicks + PRIOR_WEIGHT * prior) / (np.maximum(looks, clicks) + PRIOR_WEIGHT))


def fit_position(log: ClickLog, prior: Floats) -> PositionModel:
    """Fit the position click model; ``prior`` is the attraction of each result before its clicks."""
    examined, attraction = 1.0 / np.arange(1.0, log.places + 1.0), prior
    clicks = _sum_by_result(log, log.clicked)
    for _ in range(EM_STEPS):
        each = attraction[log.result]
        missed = 1 - examined * each
        looked = np.where(log.clicked, 1.0, examined * (1 - each) / missed)
        attracted = np.where(log.clicked, 1.0, each * (1 - examined) / missed)
        examined = looked.mean(axis=0)
        # Attraction and examination are known up to a factor; the first position is always examined.
        examined = np.minimum(examined / examined[0], 1.0)
        attraction = shrink_to_prior(
            prior, _sum_by_result(log, attracted), _sum_by_result(log, np.ones(log.clicked.shape))
        )
    looks = _sum_by_result(log, examined * np.ones(log.clicked.shape))
    return PositionModel(examined, shrink_to_prior(prior, clicks, looks))


def fit_cascade(log: ClickLog, prior: Floats, *, stops_at_click: bool = False) -> CascadeModel:
    """Fit the DBN click model, or the pure cascade where a click ends the search."""
    model = CascadeModel(prior, 1 - 1e-6, 1 - 1e-6) if stops_at_click else CascadeModel(prior, 0.5, 0.8)
    clicks = _sum_by_result(log, log.clicked)
    for _ in range(EM_STEPS):
        ways, _known = _compute_stop_probabilities(model, log)
        ways /= np.maximum(ways.sum(axis=1, keepdims=True), _TINY)
        # A user who stopped at a depth had examined everything before it.
        looked = np.cumsum(ways[:, ::-1], axis=1)[:, ::-1]
        attraction = shrink_to_prior(prior, clicks, _sum_by_result(log, looked))
        content, going_on = _fit_stopping(model, log, ways, looked)
        model = CascadeModel(
            attraction, *((model.satisfaction, model.perseverance) if stops_at_click else (content, going_on))
        )
    return model


def _sum_by_result(log: ClickLog, values: Floats | Bools) -> Floats:
    weights = values.ravel().astype(np.float64)
    return np.bincount(log.result.ravel(), weights=weights, minlength=log.results).astype(np.float64)


def _find_last_click(log: ClickLog) -> Ints:
    """Find the position of the last click of each search; -1 if there is none."""
    last = log.places - 1 - np.argmax(log.clicked[:, ::-1], axis=1)
    return np.where(log.clicked.any(axis=1), last, -1)


def _compute_stop_probabilities(model: CascadeModel, log: ClickLog) -> tuple[Floats, Floats]:
    """Compute the probability that a search ended at each depth without another click, and the log of its path."""
    attraction = np.clip(model.attraction[log.result], _TINY, 1 - _TINY)
    last, places = _find_last_click(log)[:, None], np.arange(log.places)
    on, content = model.perseverance, model.satisfaction
    before = np.where(log.clicked, np.log(attraction), np.log1p(-attraction))
    steps = np.where(log.clicked, np.log((1 - content) * on + _TINY), np.log(on))
    known = np.where(places <= last, before, 0.0).sum(axis=1) + np.where(places < last, steps, 0.0).sum(axis=1)
    # After the last click: satisfied there, or continuing past results that did not attract, until the user leaves.
    passed = np.cumsum(np.where(places > last, np.log1p(-attraction), 0.0), axis=1)
    ends = np.where(places == log.places - 1, 1.0, 1 - on)
    unsatisfied = np.where(last < 0, 1.0, 1 - content)
    went = unsatisfied * on ** np.maximum(places - np.maximum(last, 0), 0) * np.exp(passed) * ends
    ways = np.where(places < np.maximum(last, 0), 0.0, went)
    return ways + np.where(places == last, content, 0.0), known


def _fit_stopping(model: CascadeModel, log: ClickLog, ways: Floats, looked: Floats) -> tuple[float, float]:
    """Fit how often clicks satisfied users, and how often unsatisfied users continued."""
    last = _find_last_click(log)
    rows = np.flatnonzero(last >= 0)
    at_last = ways[rows, last[rows]]
    is_end = last[rows] == log.places - 1
    left = (1 - model.satisfaction) * np.where(is_end, 1.0, 1 - model.perseverance)
    contented = float((at_last * model.satisfaction / (model.satisfaction + left)).sum())
    went = float(looked[:, 1:].sum())
    stopped = float(ways[:, :-1].sum()) - float(
        (at_last * model.satisfaction / (model.satisfaction + left))[~is_end].sum()
    )
    content = contented / max(float(log.clicked.sum()), 1.0)
    return min(max(content, 0.01), 0.99), min(max(went / max(went + stopped, _TINY), 0.01), 0.999)
