"""Registry of the refresh policies that may run live, by their published names."""

from collections.abc import Callable, Mapping
from typing import Any

from vedette.policy import Due
from vedette.refresh.known_pages import KnownPages
from vedette.refresh.policies.ebr import Ebr
from vedette.refresh.policies.expected_gain import ExpectedGain
from vedette.refresh.policies.freshness import Freshness
from vedette.refresh.policies.greedy_c1 import GreedyC1
from vedette.refresh.policies.greedy_c2 import GreedyC2
from vedette.refresh.policies.lambdacrawl import LambdaCrawl
from vedette.refresh.policies.n_day import NDay
from vedette.refresh.policies.nutch import Nutch
from vedette.refresh.policies.proportional import Proportional
from vedette.refresh.policies.sbr import Sbr
from vedette.refresh.policies.stormcrawler import StormCrawler
from vedette.refresh.policies.uniform import Uniform
from vedette.refresh.policies.user_centric import UserCentric

# Each policy has its own kind of state; ``policy_runner`` handles all kinds.
RefreshPolicy = Due[None, Any, KnownPages, KnownPages]

DEFAULT_POLICY = "expected-gain"
_POLICY_CLASSES: tuple[Callable[[], RefreshPolicy], ...] = (
    *(ExpectedGain, Nutch, Uniform, StormCrawler, Freshness, LambdaCrawl, UserCentric, Sbr, Ebr),
    *(GreedyC1, GreedyC2, NDay, Proportional),
)
POLICIES: Mapping[str, Callable[[], RefreshPolicy]] = {kind().name: kind for kind in _POLICY_CLASSES}


def create_policy(name: str) -> RefreshPolicy:
    """Create the live refresh policy of this name; the default if it is unknown, as after a downgrade.

    >>> create_policy("nutch").name, create_policy("of tomorrow").name
    ('nutch', 'expected-gain')
    """
    return POLICIES.get(name, POLICIES[DEFAULT_POLICY])()
