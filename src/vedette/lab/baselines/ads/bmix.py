"""BMIX: MIX among the ads whose advertisers can still pay."""

from dataclasses import dataclass

from vedette.lab.baselines.ads.mix import Mix


@dataclass(frozen=True, slots=True)
class Bmix(Mix):
    """BMIX: the priority of MIX; an ad takes part while what its advertiser has left is no less than the bid.

    MIX counts by ad, so it goes on where an ad drops out, and nothing is restarted. It earns at least half of what
    could be earned, less O(ln N). The ad statistics decide which ads can pay, so here it is MIX by another name.

    Useful as the printed policy with a promise. Not useful with rates of a few per cent, like MIX.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix"
