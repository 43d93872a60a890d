"""Registry of the ad policies that may run live: three for general use, published ones for research."""

from collections.abc import Callable, Mapping

from vedette.serve.ads.by_score import ScorePolicy
from vedette.serve.ads.policies.bayes_greedy import BayesGreedy, PacedGreedy
from vedette.serve.ads.policies.bmix import Bmix, BmixE, BmixEt, BmixT, Mix
from vedette.serve.ads.policies.greedy import Greedy, Msvv
from vedette.serve.ads.policies.linear import LinearRates
from vedette.serve.ads.policies.two_level import TwoLevel

DEFAULT_AD_POLICY = "paced"
RESEARCH_PREFIX = "research:"
_NAMED: tuple[Callable[[], ScorePolicy], ...] = (PacedGreedy, BayesGreedy, BmixE)
_RESEARCH: tuple[Callable[[], ScorePolicy], ...] = (Greedy, Msvv, Mix, Bmix, BmixT, BmixEt, LinearRates, TwoLevel)

AD_POLICIES: Mapping[str, Callable[[], ScorePolicy]] = {
    **{kind().name: kind for kind in _NAMED},
    **{f"{RESEARCH_PREFIX}{kind().name}": kind for kind in _RESEARCH},
}


def create_ad_policy(name: str, exploration: float) -> ScorePolicy:
    """Create the configured live ad policy; the default if it is unknown, as after a downgrade.

    ``exploration`` is the amount of exploration, for policies in which it can be set.

    >>> create_ad_policy("research:msvv", 1.0).name, create_ad_policy("of tomorrow", 0.5).exploration
    ('msvv', 0.5)
    """
    kind = AD_POLICIES.get(name, AD_POLICIES[DEFAULT_AD_POLICY])
    return kind(exploration=exploration) if hasattr(kind, "exploration") else kind()  # type: ignore[call-arg]
