"""GREEDY: the ads of the highest expected revenue, by the click rates estimated now."""

from dataclasses import dataclass

from vedette.lab.baselines.bases import CountScore


@dataclass(frozen=True, slots=True)
class Greedy(CountScore):
    """GREEDY: show the ads with the largest c b, where c is clicks by showings and b the bid.

    An ad that was never shown comes first, so each is shown once; after that nothing is tried. With known rates and no
    budgets it is optimal, with budgets it earns at least half of what could be earned (cells I to IV).

    Useful as the rival of whatever explores. Not useful with rates of a few per cent: most ads are given up after one
    showing without a click.

    Reference: Pandey08, sections 6.1 and 6.7.
    """

    name: str = "greedy"
