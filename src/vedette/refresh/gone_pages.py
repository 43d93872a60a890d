"""Gone or moved pages: how likely they are to come back, and when another fetch pays off."""

import json
from dataclasses import asdict, dataclass
from math import inf, isfinite, sqrt

import numpy as np

from vedette.policy import Floats
from vedette.timeutil import DAY_S

# Prior: one return in retries that span twenty times their time gone, as logarithms.
FIRST_RETURNS, FIRST_EXPOSED = 1.0, 20.0
MIN_S, MAX_S = DAY_S, 90 * DAY_S
# No retry before the time gone has grown by this fraction; by the smaller one if the page has a new link.
GROWTH, GROWTH_RELINKED = 1.0, 0.25
GIVEN_UP_S = 180 * DAY_S


@dataclass(frozen=True, slots=True)
class ReturnModel:
    """Model of gone pages that return: after g days gone, a page comes back with hazard rate / (g + 1) a day.

    A retry after w more days is worth about hazard w^2 / 2 (the index of ``freshness_index`` for small probabilities),
    so at a price the wait is

        w = sqrt(2 price (g + 1) / rate)

    The rate is learned from all retries: returns, divided by the sum of log((g' + 1) / (g + 1)) over retries g' days
    after a page went and after a previous retry at g. Whatever the price, the time gone doubles from retry to retry.
    After half a year the page is given up, until a new link to it is found.

    Useful for 404, 410 and redirects. Not useful for hosts that do not respond: they say nothing about a page.

    >>> young = ReturnModel()
    >>> [round(young.wait_s(days * DAY_S, price=1.0) / DAY_S, 1) for days in (0, 10, 100, 181)]
    [6.3, 21.0, 90.0, inf]
    >>> asked = young.observe(np.zeros(50), np.full(50, 7 * DAY_S), np.zeros(50, bool))
    >>> asked.wait_s(0.0, price=1.0) > young.wait_s(0.0, price=1.0)
    True
    """

    returns: float = 0.0
    exposed: float = 0.0

    @property
    def rate(self) -> float:
        """The learned return hazard of a gone page on the first day."""
        return (self.returns + FIRST_RETURNS) / (self.exposed + FIRST_EXPOSED)

    def observe(self, gone_s: Floats, asked_s: Floats, back: Floats) -> "ReturnModel":
        """Learn from retries of gone pages: time gone at the previous retry and at this one, and returns."""
        grown = np.log((np.maximum(asked_s, gone_s) + DAY_S) / (np.maximum(gone_s, 0.0) + DAY_S))
        return ReturnModel(self.returns + float(np.sum(back)), self.exposed + float(grown.sum()))

    def wait_s(self, gone_s: float, price: float) -> float:
        """Return how long to wait before retrying a page gone for ``gone_s``; infinite if it is given up."""
        gone_s = max(gone_s, 0.0)
        if gone_s >= GIVEN_UP_S:
            return inf
        days = sqrt(2.0 * max(price, 0.0) * (gone_s / DAY_S + 1.0) / self.rate)
        return min(max(days * DAY_S, MIN_S + GROWTH * gone_s), MAX_S)

    @staticmethod
    def wait_after_link_s(gone_s: float) -> float:
        """Return how long to wait before retrying a gone page to which a new link was found."""
        return MIN_S + GROWTH_RELINKED * gone_s

    @staticmethod
    def reason(gone_s: float, wait_s: float) -> str:
        """Describe why a gone page is retried when it is.

        >>> ReturnModel.reason(10 * DAY_S, 21 * DAY_S), ReturnModel.reason(200 * DAY_S, inf)
        ('returning: gone or moved for 10.0 days, next check 21.0 days after the last one',\
 'returning: gone or moved for 200.0 days, so it is given up until something links to it again')
        """
        gone = f"returning: gone or moved for {gone_s / DAY_S:.1f} days"
        if not isfinite(wait_s):
            return f"{gone}, so it is given up until something links to it again"
        return f"{gone}, next check {wait_s / DAY_S:.1f} days after the last one"

    def to_json(self) -> str:
        """Serialize the return model of gone pages to JSON for the next run."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "ReturnModel":
        """Load the return model of gone pages from JSON; an untrained one if the text is invalid.

        >>> ReturnModel.from_json(ReturnModel(2.0, 9.0).to_json()), ReturnModel.from_json("[]").returns
        (ReturnModel(returns=2.0, exposed=9.0), 0.0)
        """
        try:
            model = cls(**json.loads(text or "{}"))
            sound = all(isfinite(value) and value >= 0 for value in (model.returns, model.exposed))
        except (TypeError, ValueError):
            return cls()
        return model if sound else cls()
