"""Which ads a query may show, and how a choice becomes a placement."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.ads.ad_batches import ads, drawn_ads

from vedette.policy import rng_for
from vedette.serve.ads.matching import Matcher, MatchType, Target, is_match
from vedette.serve.ads.policies.bayes_greedy import BayesGreedy
from vedette.serve.ads.policies.bmix import Bmix
from vedette.serve.ads.policies.greedy import Greedy
from vedette.serve.ads.selection import place_ads

TEXTS = st.lists(st.sampled_from(["red", "blue", "shoes", "hat"]), max_size=5).map(" ".join)
TARGETS = st.lists(
    st.builds(Target, st.integers(0, 4), st.sampled_from(MatchType), TEXTS, st.lists(TEXTS, max_size=2).map(tuple)),
    max_size=8,
)


@pytest.mark.parametrize(
    ("way", "query", "taken"),
    [
        (MatchType.EXACT, "Red  shoes!", True),
        (MatchType.EXACT, "red shoes sale", False),
        (MatchType.PHRASE, "cheap red shoes sale", True),
        (MatchType.PHRASE, "shoes red", False),
        (MatchType.BROAD, "shoes, cheap and red", True),
        (MatchType.BROAD, "red hat", False),
    ],
)
def test_the_three_ways(way: MatchType, query: str, *, taken: bool) -> None:
    """Targets match word for word, in order, or by all words."""
    assert is_match(Target(1, way, "red shoes"), query) is taken


def test_a_negative_keeps_an_ad_away() -> None:
    """All its words must be in the query; some are not enough."""
    target = Target(1, MatchType.BROAD, "shoes", ("free repair",))
    assert is_match(target, "shoes repair")
    assert not is_match(target, "repair my shoes free")


@given(TARGETS, TEXTS)
def test_the_index_finds_what_looking_at_all_finds(targets: list[Target], query: str) -> None:
    """It finds exactly the same ads, each by its closest target."""
    found = Matcher(targets).find_targets(query)
    assert [one.ad for one in found] == sorted({one.ad for one in targets if is_match(one, query)})
    order = list(MatchType)
    for one in found:
        ways = [order.index(other.match_type) for other in targets if other.ad == one.ad and is_match(other, query)]
        assert order.index(one.match_type) == min(ways)


@given(st.text(max_size=300))
def test_any_query_is_answered(query: str) -> None:
    """No query causes an error."""
    Matcher([Target(0, MatchType.BROAD, "shoes"), Target(1, MatchType.PHRASE, "")]).find_targets(query)


def test_what_is_shown_pays_the_second_price_by_the_score_that_ranked_it() -> None:
    """The lecture's table again: three slots, and the ad that is not shown determines the last price."""
    options = ads(4, bid=[400, 300, 200, 100], shown=[100] * 4, clicked=[1, 3, 6, 8], asked=[100] * 4)
    shown = place_ads(Greedy(), (), options, 3, Decimal("0.05"), 0.0, rng_for(1, "p"))
    assert [(one.ad, one.slot, str(one.charge)) for one in shown] == [(2, 0, "1.51"), (1, 1, "2.68"), (3, 2, "0.51")]
    assert all(one.propensity == 1.0 and one.reason.startswith("greedy") for one in shown)


def test_what_is_tried_out_pays_the_least() -> None:
    """An infinite score outbids everyone, so no one determines its price."""
    shown = place_ads(Bmix(), (), ads(2), 1, Decimal("0.05"), 0.0, rng_for(1, "p"))
    assert [str(one.charge) for one in shown] == ["0.05"]


@given(st.integers(0, 5_000), st.integers(1, 4))
def test_no_charge_exceeds_a_bid(seed: int, slots: int) -> None:
    """This is true whatever is estimated, explored or discounted."""
    rng = rng_for(seed, "tests/placing")
    options = drawn_ads(rng, 8)
    state = BayesGreedy().observe(BayesGreedy().start(None), options, 0.0)
    for one in place_ads(BayesGreedy(), state, options, slots, Decimal("0.05"), 0.0, rng):
        bid = options.bid[one.ad] / 100
        assert 0 < one.charge <= Decimal(str(bid))
        assert np.isfinite(one.score)
