"""Thompson sampling for discovery: draw a rate for each source and hour of the day, poll the k highest."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.discover.polling.sources import Sources, get_latest_yields, grow_rows, hour_of_week
from vedette.policy import Floats, Ints, Picks

HOURS = 24
# Both hyperparameters of the prior, which the paper leaves untuned.
ALPHA = BETA = 1.0
# Extra draws for estimating propensities: there is no closed form for the best k.
REDRAWS = 15


class ThompsonState(NamedTuple):
    """State of Thompson sampling for discovery: summed yields and poll counts, by source and hour of the day."""

    found: Floats
    polls: Floats


@dataclass(frozen=True, slots=True)
class Thompson:
    """Thompson sampling: a poll's yield is Poisson, with a Gamma prior on the rate of each source and hour (UTC).

        draw ~ Gamma(alpha + sum of yields at this hour, rate = beta + polls at this hour);  poll the k highest

    alpha = beta = 1, and no source learns from another or from a neighboring hour. A failed poll counts as one with
    yield 0. The propensity is the share of 16 draws, this one included, in which the source is chosen.

    Useful as the rival that any adaptive policy has to beat, and if polls are independent. Not useful if links stay for
    hours: the yield of a poll then depends on the time of the last one, which this ignores, and it may poll two pages
    that show the same links.

    Reference: Thompson23, section 2.4 and figure 1.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, both, start = PollHistory(np.zeros(2, np.int64)), np.ones(2, bool), np.array([0, 0, 9])
    >>> came = PollResults(np.array([0, 1]), both, start, np.arange(9), np.ones(9, bool))
    >>> policy = Thompson()
    >>> state = policy.observe(policy.start(None), book.record(came, 60.0), 60.0)
    >>> policy.choose(state, book.list_options(), k=1, now=90.0, rng=rng_for(1, "discover")).rows.tolist()
    [1]
    """

    name: str = "thompson"

    def start(self, config: None) -> ThompsonState:
        """Return the empty state of Thompson sampling over discovery sources."""
        return ThompsonState(np.zeros((0, HOURS)), np.zeros((0, HOURS)))

    def observe(self, state: ThompsonState, batch: Sources, now: float) -> ThompsonState:
        """Count polls and their yields at the hour of the day, for Thompson sampling of sources."""
        hour = _get_hour(now)
        found, looks = grow_rows(state.found, batch.place), grow_rows(state.polls, batch.place)
        found[batch.place, hour] += get_latest_yields(batch)
        looks[batch.place, hour] += 1
        return ThompsonState(found, looks)

    def select(self, state: ThompsonState, places: Ints) -> ThompsonState:
        """Return the counts of some sources, in this order."""
        return ThompsonState(*(grow_rows(rows, places)[places] for rows in state))

    def choose(self, state: ThompsonState, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose the k discovery sources with the highest Thompson draws, highest first."""
        shape, rate = _compute_posterior(state, options.place, _get_hour(now))
        draws = rng.gamma(shape, size=(1 + REDRAWS, len(options))) / rate
        chosen = np.argsort(-draws, axis=1, kind="stable")[:, :k]
        rows = chosen[0].astype(np.int64)
        times = np.bincount(chosen.ravel(), minlength=len(options))
        return Picks(rows, times[rows] / (1 + REDRAWS))

    def reason(self, state: ThompsonState, batch: Sources, row: int, now: float) -> str:
        """Describe the expected yield of a discovery source at this hour of the day."""
        hour = _get_hour(now)
        shape, rate = _compute_posterior(state, batch.place[row : row + 1], hour)
        return f"thompson: {shape[0] / rate[0]:.1f} new links expected at {hour} h UTC, from {rate[0] - BETA:.0f} polls"


def _get_hour(now: float) -> int:
    return int(hour_of_week(now)) % HOURS


def _compute_posterior(state: ThompsonState, place: Ints, hour: int) -> tuple[Floats, Floats]:
    """Compute the Gamma posterior (shape and rate) of each source's yield at an hour, for Thompson sampling."""
    found, looks = (grow_rows(rows[:, hour], place)[place] for rows in state)
    return found + ALPHA, looks + BETA
