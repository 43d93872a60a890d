"""Money: entries that are only added, budgets that hold at every moment, clicks that are not charged."""

from datetime import UTC, date, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.ads.click_validity import Click, ClickRejection, ClickRules, check_click
from vedette.serve.ads.ledger import Balance, Entry, EntryKind, Ledger, day_of, sum_balances

DAY = date(2024, 5, 1)
BUDGET = Decimal("1.00")
GOOD = Click(known_token=True, clicked_before=False, waited_s=3.0, is_bot=False, clicks_from_address=0, on_target=True)
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "charge", "refuse", "let go"]),
        st.integers(0, 6),
        st.decimals("0.01", "0.60", places=2),
        st.integers(0, 1),
    ),
    max_size=40,
)


def do(ledger: Ledger, deed: str, token: int, price: Decimal, days: int, at_s: float) -> Entry | None:
    """Something happens to a token."""
    if deed == "hold":
        return ledger.hold(str(token), "ann", DAY + timedelta(days=days), price, BUDGET, at_s)
    if deed == "charge":
        return ledger.charge(str(token), at_s)
    if deed == "refuse":
        return ledger.refuse(str(token), "bot", at_s)
    ledger.expire_holds(at_s - 3, at_s)
    return None


@given(DEEDS)
def test_no_order_of_events_exceeds_a_budget(deeds: list[tuple[str, int, Decimal, int]]) -> None:
    """What is charged and held of a day stays within its budget, and the books balance at every step."""
    ledger = Ledger()
    for at_s, deed in enumerate(deeds):
        do(ledger, *deed, float(at_s))
        added_up = sum_balances(ledger.entries)
        for (advertiser, day), balance in added_up.items():
            assert 0 <= balance.charged <= balance.committed <= BUDGET
            assert ledger.get_balance(advertiser, day) == balance


@given(DEEDS, st.integers(0, 80))
def test_a_ledger_made_anew_stands_where_it_stood(deeds: list[tuple[str, int, Decimal, int]], cut: int) -> None:
    """From its entries alone, also when lines come twice, as after a crash."""
    ledger = Ledger()
    for at_s, deed in enumerate(deeds):
        do(ledger, *deed, float(at_s))
    twice = [*ledger.entries[:cut], *ledger.entries]
    assert Ledger(twice).entries == ledger.entries


@given(DEEDS)
def test_a_showing_is_charged_once_or_not_at_all(deeds: list[tuple[str, int, Decimal, int]]) -> None:
    """However often a click is sent; the first answer is the answer."""
    ledger = Ledger()
    for at_s, deed in enumerate(deeds):
        do(ledger, *deed, float(at_s))
    closed = [entry.token for entry in ledger.entries if entry.kind is not EntryKind.HELD]
    assert len(closed) == len(set(closed))


def test_a_click_is_charged_to_the_day_of_its_showing() -> None:
    """Where the money was held; so a click after midnight takes nothing from the new day."""
    ledger = Ledger()
    ledger.hold("t", "ann", DAY, Decimal("0.40"), BUDGET, 1.0)
    assert ledger.get_balance("ann", DAY) == Balance(Decimal("0.00"), Decimal("0.40"))
    charged = ledger.charge("t", 100_000.0)
    assert charged is not None
    assert charged.day == DAY
    assert ledger.get_balance("ann", DAY) == Balance(Decimal("0.40"), Decimal("0.00"))
    assert ledger.charge("t", 100_001.0) == charged


def test_the_last_cent_is_held_once() -> None:
    """Of two showings at the price of what is left, the second is refused; what is let go can be had again."""
    ledger = Ledger()
    assert ledger.hold("a", "ann", DAY, BUDGET, BUDGET, 1.0)
    assert ledger.hold("b", "ann", DAY, Decimal("0.01"), BUDGET, 2.0) is None
    ledger.expire_holds(5.0, 6.0)
    assert ledger.hold("b", "ann", DAY, Decimal("0.01"), BUDGET, 7.0)
    late = ledger.charge("a", 8.0)
    assert late is not None
    assert late.kind is EntryKind.LET_GO


def test_unknown_tokens_and_odd_prices_are_nothing() -> None:
    """Nothing is entered, and nothing goes wrong."""
    ledger = Ledger()
    assert ledger.charge("forged", 1.0) is None
    for price in ("0", "-1", "NaN", "Infinity"):
        assert ledger.hold("t", "ann", DAY, Decimal(price), None, 1.0) is None
    assert ledger.entries == ()


def test_days_are_those_of_the_operator() -> None:
    """At one moment it is another day elsewhere."""
    moment_s = 1_700_000_000.0
    assert day_of(moment_s, UTC) == date(2023, 11, 14)
    assert day_of(moment_s, timezone(timedelta(hours=3))) == date(2023, 11, 15)


@pytest.mark.parametrize(
    ("click", "reason"),
    [
        (GOOD, None),
        (GOOD._replace(known_token=False), ClickRejection.FORGED),
        (GOOD._replace(clicked_before=True), ClickRejection.DUPLICATE),
        (GOOD._replace(waited_s=0.01), ClickRejection.TOO_FAST),
        (GOOD._replace(waited_s=float("nan")), ClickRejection.TOO_FAST),
        (GOOD._replace(waited_s=1e9), ClickRejection.LATE),
        (GOOD._replace(is_bot=True), ClickRejection.BOT),
        (GOOD._replace(clicks_from_address=ClickRules().max_per_address), ClickRejection.SAME_ADDRESS),
        (GOOD._replace(on_target=False), ClickRejection.OFF_TARGET),
    ],
)
def test_each_invalid_click_has_its_reason(click: Click, reason: ClickRejection | None) -> None:
    """And a good one has none."""
    assert check_click(click) == reason
