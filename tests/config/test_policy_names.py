"""Settings accept exactly the policies that can run."""

from vedette.config import policy_names as names
from vedette.discover import live_policies as discovery
from vedette.engine.scheduling import refresh_policies as refresh
from vedette.serve.ads import live_policies as ads
from vedette.serve.rank import reranking


def test_settings_name_exactly_the_policies_that_can_run() -> None:
    """The names are written in two places, so that reading a configuration imports no policies."""
    assert tuple(refresh.POLICIES) == names.REFRESH_POLICIES
    assert set(names.DISCOVERY_POLICIES) == {
        discovery.DEFAULT_DISCOVERY_POLICY,
        *discovery.PUBLISHED_SETTINGS.values(),
    }
    assert tuple(ads.AD_POLICIES) == names.AD_POLICIES
    assert tuple(reranking.PROMOTIONS) == names.PROMOTIONS


def test_the_first_is_the_default() -> None:
    """It is used without a setting, and for an unknown name."""
    defaults = (refresh.DEFAULT_POLICY, discovery.DEFAULT_DISCOVERY_POLICY, ads.DEFAULT_AD_POLICY)
    first = (names.REFRESH_POLICIES[0], names.DISCOVERY_POLICIES[0], names.AD_POLICIES[0], names.PROMOTIONS[0])
    assert first == (*defaults, reranking.DEFAULT_PROMOTION)
