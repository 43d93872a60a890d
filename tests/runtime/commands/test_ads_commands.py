"""Commands on ads are executed as a whole, logged, and undone as a whole."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data_folders import NOW_S, opened

from vedette.adapters.ads.campaign_store import AdRow, AdTarget, AdvertiserRow, CampaignRow, CampaignStore
from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.errors import StoreCorrupt, UsageError
from vedette.runtime.commands.executor import execute_command
from vedette.web.commands.ads_commands import (
    AdCommand,
    PauseCampaign,
    RemoveAdvertiser,
    RemoveCampaign,
    ReviewAd,
    SaveAd,
    SaveAdvertiser,
    SaveCampaign,
)
from vedette.web.commands.ads_text import check_landing_url, parse_ad, parse_advertiser, parse_campaign
from vedette.web.commands.commands import Undo, command_from_json, command_to_json

SHOES = AdTarget("broad", "Red Shoes")
AD = parse_ad("spring", "Shoes", "Red ones", "https://shop.example.org/", "0.40", [SHOES], ["free"])
ANN = SaveAdvertiser(parse_advertiser("ann"))
SPRING = SaveCampaign(parse_campaign("spring", "ann", "5"))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """An empty state."""
    with opened(tmp_path / "data") as state:
        yield state


def ordered(state: State, *orders: AdCommand | Undo) -> int:
    """Run a command and return the number of the action."""
    return [execute_command(order, state, NOW_S, "a test").action for order in orders][-1]


def market(state: State) -> tuple[list[AdvertiserRow], list[CampaignRow], list[AdRow]]:
    """Return all of it."""
    book = CampaignStore(state.db)
    return book.list_advertisers(), book.list_campaigns(), book.list_ads()


def test_an_ad_goes_from_submitted_to_approved_to_revoked(state: State) -> None:
    """Each step can be undone; an edit needs approval again, and undoing it restores the approved version."""
    ordered(state, ANN, SPRING, SaveAd(AD))
    ordered(state, ReviewAd(1, "approved"))
    approved = market(state)[2]
    assert [ad.standing for ad in approved] == ["approved"]
    edit = ordered(state, SaveAd(approved[0]._replace(title="Other shoes")))
    assert [(ad.title, ad.standing) for ad in market(state)[2]] == [("Other shoes", "submitted")]
    ordered(state, Undo(edit))
    assert market(state)[2] == approved
    revoked = ordered(state, ReviewAd(1, "revoked"))
    ordered(state, Undo(revoked))
    assert market(state)[2] == approved


def test_impossible_changes_are_refused_with_a_reason(state: State) -> None:
    """Nothing changes."""
    with pytest.raises(UsageError, match="no advertiser"):
        ordered(state, SPRING)
    ordered(state, ANN, SPRING, SaveAd(AD))
    before = market(state)
    for order, why in (
        (RemoveAdvertiser("ann"), "has campaigns"),
        (RemoveCampaign("spring"), "has ads"),
        (RemoveCampaign("sprin"), 'did you mean "spring"'),
        (ReviewAd(1, "submitted"), "is already submitted"),
        (ReviewAd(9, "approved"), "no ad 9"),
        (PauseCampaign("spring", paused=False), "is not paused"),
        (SaveAdvertiser(parse_advertiser("bob", "nokey")), "no key"),
        (SaveAd(AD._replace(campaign="autumn")), "no campaign"),
    ):
        with pytest.raises(UsageError, match=why):
            ordered(state, order)
    assert market(state) == before


def test_an_advertisers_key_is_known_by_its_digest(state: State) -> None:
    """So a key created later under the same name has no access."""
    state.store.save_user_key(UserKeyRow("annkey", "ab" * 32, {"scopes": ["search"], "rate": None, "sites": []}, NOW_S))
    ordered(state, SaveAdvertiser(parse_advertiser("ann", "annkey")))
    assert market(state)[0][0][:3] == ("ann", "annkey", "ab" * 32)


_ORDERS: st.SearchStrategy[AdCommand] = st.one_of(
    st.sampled_from(["ann", "bob"]).map(lambda name: SaveAdvertiser(parse_advertiser(name))),
    st.sampled_from(["ann", "bob"]).map(RemoveAdvertiser),
    st.builds(
        lambda name, payer, budget: SaveCampaign(parse_campaign(name, payer, str(budget))),
        *(st.sampled_from(["spring", "fall"]), st.sampled_from(["ann", "bob"]), st.integers(1, 9)),
    ),
    st.sampled_from(["spring", "fall"]).map(RemoveCampaign),
    st.builds(PauseCampaign, st.sampled_from(["spring", "fall"]), st.booleans()),
    st.builds(lambda number, name: SaveAd(AD._replace(id=number, campaign=name)), st.integers(0, 3), st.just("spring")),
    st.builds(ReviewAd, st.integers(1, 3), st.sampled_from(["submitted", "approved", "revoked"])),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(orders=st.lists(_ORDERS, max_size=8), last=_ORDERS)
def test_every_command_can_be_undone(
    tmp_path_factory: pytest.TempPathFactory, orders: list[AdCommand], last: AdCommand
) -> None:
    """Everything is as before, except that a new ad stays revoked, because its number is never reused."""
    with opened(tmp_path_factory.mktemp("market") / "data") as state:
        for order in (ANN, SPRING, *orders):
            try:
                ordered(state, order)
            except UsageError:
                continue
        before = market(state)
        try:
            done = ordered(state, last)
        except UsageError:
            assert market(state) == before
            return
        ordered(state, Undo(done))
        advertisers, campaigns, ads = market(state)
        assert (advertisers, campaigns, ads[: len(before[2])]) == before
        assert all(ad.standing == "revoked" for ad in ads[len(before[2]) :])


@given(order=_ORDERS)
def test_orders_are_kept_as_json(order: AdCommand) -> None:
    """They are the same after saving and loading."""
    assert command_from_json(command_to_json(order)) == order


def test_a_damaged_command_is_reported() -> None:
    """An invalid stored command is reported."""
    with pytest.raises(StoreCorrupt):
        command_from_json({"order": "judge_ad", "nobody": 1})


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://10.1.2.3:8080/",
        "http://169.254.169.254/latest/meta-data",
        "http://localhost/",
        "http://intranet/",
        "http://printer.local./",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://example.org/",
        "https://user:word@example.org/",
        "https://",
        "",
        "x" * 3000,
    ],
)
def test_an_ad_leads_to_public_pages_only(url: str) -> None:
    """This is true however an address is spelled."""
    with pytest.raises(UsageError):
        parse_ad("spring", "Shoes", "Red ones", url, "0.40", [AdTarget("broad", "shoes")])


@given(url=st.text(max_size=80))
def test_any_text_is_judged(url: str) -> None:
    """Every error is a message."""
    try:
        ad = parse_ad("spring", "Shoes", "Red ones", url, "0.40", [AdTarget("broad", "shoes")])
    except UsageError:
        return
    assert not check_landing_url(ad.url)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"title": "<script>alert(1)</script>"}, "plain text"),
        ({"text": "see\u202emoc.elpmaxe"}, "invisible character"),
        ({"title": "x" * 81}, "1 to 80"),
        ({"text": " "}, "1 to 200"),
        ({"bid": "0"}, "a bid must be between"),
        ({"bid": "0.001"}, "a bid must be between"),
        ({"bid": "1e9"}, "a bid must be between"),
        ({"targets": []}, "at least one phrase"),
        ({"targets": [AdTarget("broad", "!!")]}, "at least one word"),
        ({"targets": [AdTarget("broad", f"w{n}") for n in range(101)]}, "100 phrases"),
        ({"campaign": "a b"}, "advertiser and campaign names can have"),
    ],
)
def test_an_ad_is_read_strictly(change: dict[str, object], why: str) -> None:
    """Each error says what is valid."""
    given_: dict[str, object] = {
        "campaign": "spring",
        "title": "Shoes",
        "text": "Red ones",
        "url": "https://shop.example.org/",
        "bid": "0.40",
        "targets": [AdTarget("broad", "shoes")],
    }
    with pytest.raises(UsageError, match=why):
        parse_ad(**{**given_, **change})  # type: ignore[arg-type]  # whatever was typed


def test_days_of_a_campaign() -> None:
    """Both days are included; a wrong date is reported."""
    with pytest.raises(UsageError, match="before it starts"):
        parse_campaign("spring", "ann", "5", "2026-03-02", "2026-03-01")
    with pytest.raises(UsageError, match="not a date"):
        parse_campaign("spring", "ann", "5", "tomorrow")
