"""Ad placement: turn a policy's choice into the ads shown, with slot, score, propensity, price and reason."""

from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from vedette.policy import Choice
from vedette.serve.ads.auction import CENT, second_price
from vedette.serve.ads.candidates import AdCandidates, RankedPicks


class Placement(NamedTuple):
    """An ad placed in a slot (from 0): ``charge`` is the price of a click in money, never above the bid."""

    ad: int
    slot: int
    score: float
    propensity: float
    charge: Decimal
    reason: str


def place_ads(
    policy: Choice[None, Any, AdCandidates, AdCandidates],
    state: Any,  # noqa: ANN401 - the policy's own
    options: AdCandidates,
    slots: int,
    minimum: Decimal,
    now: float,
    rng: np.random.Generator,
) -> list[Placement]:
    """Place ads for one query. The score that ranks is the one that prices; ``minimum`` is the reserve."""
    picks = policy.choose(state, options, slots, now, rng)
    assert isinstance(picks, RankedPicks), "a policy of ads gives scores"
    charges = _price_clicks(options, picks, minimum)
    return [
        Placement(
            ad=int(options.ad[row]),
            slot=slot,
            score=float(picks.scores[row]),
            propensity=float(picks.propensities[slot]),
            charge=charges[slot],
            reason=policy.reason(state, options, row, now),
        )
        for slot, row in enumerate(picks.rows.tolist())
    ]


def _price_clicks(options: AdCandidates, picks: RankedPicks, minimum: Decimal) -> list[Decimal]:
    """Compute the click prices of placed ads; the best ad that is not shown counts as the last one outbid."""
    rows = [*picks.rows.tolist(), *_runner_up(picks)]
    cents, scores = options.bid[rows].tolist(), picks.scores[rows].tolist()
    bids = [int(each) * CENT for each in cents]
    # An ad shown for the first time may have an infinite score: then nothing below it counts, and it pays the minimum.
    endless = [not isfinite(score) for score in scores]
    weights = [1e9 if endless[at] else scores[at] / cents[at] for at in range(len(rows))]
    prices = second_price(bids, weights, minimum)
    least = [min(minimum, bid) for bid in bids]
    return [least[at] if endless[at] else prices[at] for at in range(len(picks.rows))]


def _runner_up(picks: RankedPicks) -> list[int]:
    left = picks.scores.copy()
    left[picks.rows] = -np.inf
    return [int(left.argmax())] if len(left) > len(picks.rows) and left.max() > 0 else []
