"""Pham: a yield predictor picks most sources, staleness the others, and a bandit decides the split."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.discover.polling.sources import Sources, grow_rows, hour_of_week
from vedette.policy import Floats, Ints, Picks
from vedette.timeutil import HOUR_S

# Thirty-five features: mean and standard deviation of the yields of the last 24 hours (0 without a poll), hours since
# the last try, mean times hours, and an indicator for each hour of the day and each day of the week. With an intercept
# the indicators are collinear, so the fit is a ridge with a penalty too small to matter otherwise. Reference: Pham18 as
# described in Thompson23, sections 2.3 and 3.2.2.


WINDOW_S = 24 * HOUR_S
# Cap on waiting time: a source that was never polled has no last poll to count from.
MAX_WAIT_H = 168.0
_HOURS, _DAYS = 24, 7
_PENALTY = 1.0


class YieldInputs(NamedTuple):
    """Inputs of Pham's yield predictor: mean and deviation of a source's recent yields, hours since the last try."""

    at_s: Floats
    mean: Floats
    deviation: Floats
    waited_h: Floats


def summarize_yields(look_s: Floats, yields: Floats, now: float) -> tuple[Floats, Floats]:
    """Summarize the poll yields of a day for Pham's predictor: mean and standard deviation; 0 if there was no poll.

    >>> look_s, yields = np.array([[50.0, 40.0], [np.nan] * 2]), np.array([[2.0, 4.0], [0.0, 0.0]])
    >>> mean, deviation = summarize_yields(look_s, yields, 60.0)
    >>> mean.tolist(), deviation.tolist()
    ([3.0, 0.0], [1.0, 0.0])
    """
    within = look_s > now - WINDOW_S
    count = np.maximum(within.sum(axis=1), 1)
    mean = (yields * within).sum(axis=1) / count
    square = (yields**2 * within).sum(axis=1) / count
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def build_features(inputs: YieldInputs) -> Floats:
    """Build the features of Pham's yield predictor: 35 and an intercept for each source."""
    hours = hour_of_week(inputs.at_s)
    waited_h = np.minimum(inputs.waited_h, MAX_WAIT_H)
    summary = np.column_stack([inputs.mean, inputs.deviation, waited_h, inputs.mean * waited_h, np.ones(len(hours))])
    return np.hstack([summary, np.eye(_HOURS)[hours % _HOURS], np.eye(_DAYS)[hours // _HOURS]])


def fit_ridge(rows: Floats, yields: Floats) -> Floats:
    """Fit the ridge regression of Pham's yield predictor; return its weights."""
    return np.linalg.solve(rows.T @ rows + _PENALTY * np.eye(rows.shape[1]), rows.T @ yields).astype(np.float64)


SHARES = np.array([0.6, 0.7, 0.8, 0.9, 1.0])  # of the budget, for the highest predictions
RETRAIN_S = 3 * HOUR_S
MEMORY_S = 7 * 24 * HOUR_S


class PhamState(NamedTuple):
    """State of the Pham discovery policy.

    ``last_try_s`` has the last try of each position, 0 for never; ``examples`` the inputs before each poll of the last
    week, as columns, with its yield as the last; ``weights`` the predictor and ``trained_s`` its training time;
    ``plays`` and ``reward`` how often each share was used and its total reward, ``max_yield`` the largest yield of any
    step.
    """

    last_try_s: Floats
    examples: Floats
    weights: Floats
    trained_s: float
    plays: Floats
    reward: Floats
    max_yield: float


@dataclass(frozen=True, slots=True)
class Pham:
    """Pham: UCB1 over the share of polls that goes to the best predictions; the rest goes to the stalest sources.

        share = arg max (mean combined yield + sqrt(2 log(steps) / plays)),  of .6, .7, .8, .9, 1; each once at first
        floor(k share + 1/2) sources of the highest predicted yield, then the stalest of the others

    The predictor (``fit_ridge``) is trained again every 3 hours on the polls of 7 days. The combined yield of a step
    counts each target once. Before the first poll all predictions are equal, and ties go by staleness: it starts as
    round-robin. Failed polls have no yield, but they end a wait. A source that was never polled has waited longest.

    Useful as the rival of Thompson23. Not useful as it is: the bandit's rewards are dozens of pages, against which its
    bonus is negligible, so it hardly explores (``pham-scaled`` does), and it picks sources that show the same links.

    Reference: Pham18 as described in Thompson23, sections 2.3 and 3.2.2.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, both, start = PollHistory(np.zeros(3, np.int64)), np.ones(2, bool), np.array([0, 0, 9])
    >>> came = PollResults(np.array([0, 1]), both, start, np.arange(9), np.ones(9, bool))
    >>> policy = Pham()
    >>> state = policy.observe(policy.start(None), book.record(came, 3600.0), 3600.0)
    >>> policy.choose(state, book.list_options(), k=2, now=7200.0, rng=rng_for(1, "discover")).rows.tolist()
    [2, 0]
    """

    name: str = "pham"
    scaled: bool = False

    def start(self, config: None) -> PhamState:
        """Return the empty state of Pham: no source was polled, and no share of predictions was tried."""
        width = len(YieldInputs._fields) + 1
        nothing = np.zeros(len(SHARES))
        weights = np.zeros(build_features(YieldInputs(*np.zeros((len(YieldInputs._fields), 1)))).shape[1])
        return PhamState(np.zeros(0), np.zeros((0, width)), weights, -np.inf, nothing, nothing, 1.0)

    def observe(self, state: PhamState, batch: Sources, now: float) -> PhamState:
        """Let Pham learn yields from each poll, and credit the share used, which follows from the state alone."""
        tried_s = grow_rows(state.last_try_s, batch.place)
        looks = np.vstack(
            [state.examples[state.examples[:, 0] >= now - MEMORY_S], _build_examples(batch, tried_s, now)]
        )
        tried_s[batch.place] = now
        combined = float(len(np.unique(batch.shown[batch.shown_new])))
        used = np.arange(len(SHARES)) == self._choose_share(state)
        played = state._replace(
            last_try_s=tried_s,
            examples=looks,
            plays=state.plays + used,
            reward=state.reward + used * combined,
            max_yield=max(state.max_yield, combined),
        )
        return _train(played, now) if now - state.trained_s >= RETRAIN_S and len(looks) else played

    def select(self, state: PhamState, places: Ints) -> PhamState:
        """Return the last tries of some sources, in this order; what polls taught stays."""
        return state._replace(last_try_s=grow_rows(state.last_try_s, places)[places])

    def choose(self, state: PhamState, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose the sources with the best yield predictions of Pham, then the stalest of the others."""
        best = np.lexsort((options.place, options.last_poll_s, -_predict_yields(state, options, now)))
        exploited = best[: int(k * SHARES[self._choose_share(state)] + 0.5)]
        others = np.setdiff1d(best, exploited)
        stalest = others[np.lexsort((options.place[others], options.last_poll_s[others]))]
        rows = np.concatenate([exploited, stalest])[:k].astype(np.int64)
        return Picks(rows, np.ones(len(rows)))

    def reason(self, state: PhamState, batch: Sources, row: int, now: float) -> str:
        """Describe Pham's yield prediction of a source, and the share of polls that follows predictions."""
        predicted, share = _predict_yields(state, batch, now)[row], SHARES[self._choose_share(state)]
        return f"{self.name}: {predicted:.1f} new links predicted; {share:.0%} of the polls follow predictions"

    def _choose_share(self, state: PhamState) -> int:
        if not state.plays.all():
            return int(np.argmin(state.plays > 0))
        mean = state.reward / state.plays / (state.max_yield if self.scaled else 1.0)
        return int(np.argmax(mean + np.sqrt(2 * np.log(state.plays.sum()) / state.plays)))


def _predict_yields(state: PhamState, options: Sources, now: float) -> Floats:
    mean, deviation = summarize_yields(options.poll_s, options.yields.astype(np.float64), now)
    waited_h = (now - options.last_poll_s) / HOUR_S
    predicted: Floats = (
        build_features(YieldInputs(np.full(len(options), now), mean, deviation, waited_h)) @ state.weights
    )
    return predicted


def _build_examples(batch: Sources, tried_s: Floats, now: float) -> Floats:
    """Build training examples of Pham's yield predictor: inputs before each poll, and its yield."""
    good: npt.NDArray[np.bool_] = (batch.failures == 0) & (batch.polls > 0)
    place: Ints = batch.place[good]
    yields = batch.yields[good].astype(np.float64)
    mean, deviation = summarize_yields(batch.poll_s[good, 1:], yields[:, 1:], now)
    waited_h = np.where(tried_s[place] > 0, now - tried_s[place], np.inf) / HOUR_S
    return np.column_stack([np.full(len(place), now), mean, deviation, waited_h, yields[:, 0]])


def _train(state: PhamState, now: float) -> PhamState:
    rows = build_features(YieldInputs(*state.examples.T[:-1]))
    return state._replace(weights=fit_ridge(rows, state.examples[:, -1]), trained_s=now)
