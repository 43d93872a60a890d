"""MIX: an upper confidence bound on the click-through rate, times the bid; budgets do not count."""

from dataclasses import dataclass

from vedette.lab.baselines.ads.estimates import mix_bonus
from vedette.lab.baselines.bases import CountScore


@dataclass(frozen=True, slots=True)
class Mix(CountScore):
    """MIX: priority (c + sqrt(2 ln n_j / n_ij)) b, infinite for an ad that was never shown.

    n_j counts the queries of the phrase and is carried over the days with n_ij. It makes at most
    8 ln N b^2 / gap^2 + 1 + pi^2 / 3 mistakes with each ad in N queries, on average (theorem 4).

    Useful where no budget is set and rates are large. Not useful where rates are a few per cent: the bonus is on the
    scale from 0 to 1, and outweighs the rate for thousands of showings.

    Reference: Pandey08, section 6.5 and appendix 9.4.
    """

    name: str = "mix"

    bonus = staticmethod(mix_bonus)
