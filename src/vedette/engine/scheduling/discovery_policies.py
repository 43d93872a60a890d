"""Registry of the discovery policies that may run live, by their published names: they need no full crawls."""

from collections.abc import Callable, Mapping
from typing import Any

from vedette.discover.policies.accrual import Accrual
from vedette.discover.policies.round_robin import RoundRobin
from vedette.discover.policies.thompson import Thompson
from vedette.discover.polling.sources import Sources
from vedette.policy import Choice

# The state of a policy is its own affair.
DiscoveryPolicy = Choice[None, Any, Sources, Sources]

DEFAULT_POLICY = "accrual"
POLICIES: Mapping[str, Callable[[], DiscoveryPolicy]] = {kind().name: kind for kind in (Accrual, Thompson, RoundRobin)}


def create_policy(name: str) -> DiscoveryPolicy:
    """Create the live discovery policy of this name; the default where it is unknown, as after a downgrade.

    >>> create_policy("thompson").name, create_policy("of tomorrow").name
    ('thompson', 'accrual')
    """
    return POLICIES.get(name, POLICIES[DEFAULT_POLICY])()
