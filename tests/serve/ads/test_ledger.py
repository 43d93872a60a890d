"""Money: append-only entries, budgets that are never exceeded, and clicks that are not charged."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.ads.click_validity import Click, ClickRejection, ClickRules, check_click
from vedette.serve.ads.ledger import (
    NETWORK_DIGITS,
    ZERO,
    AdImpression,
    Balance,
    BudgetLine,
    ClickContext,
    Entry,
    EntryKind,
    ImpressionOffer,
    PastClick,
    PayerBudget,
    budget_lines,
    compute_hold,
    settle_click,
    sum_balances,
)

DAY = date(2024, 5, 1)
GOOD = Click(known_token=True, clicked_before=False, waited_s=3.0, is_bot=False, clicks_from_address=0, on_target=True)
CENTS = st.decimals("0.00", "5.00", places=2)


def impression(price: str = "0.40") -> AdImpression:
    """Return an impression."""
    return AdImpression("t", 100.0, DAY, "spring", 1, "red shoes", 0, 1.0, 1.0, Decimal(price), "because")


def offered(price: str = "0.40", rate: float = 0.05) -> ImpressionOffer:
    """Return a requested impression."""
    return ImpressionOffer(impression(price), PayerBudget(Decimal("1.00")), 1.0, rate)


def line(budget: str, charged: str = "0.00", held: str = "0.00") -> BudgetLine:
    """Return a budget and its spending."""
    return BudgetLine(Decimal(budget), Decimal(charged), Decimal(held))


def test_what_is_held_is_what_is_expected() -> None:
    """The hold is the price times the probability of a click; impressions that don't count hold nothing."""
    assert compute_hold(offered("0.40", 0.05), [line("1.00")], counted=True) == Decimal("0.0200")
    assert compute_hold(offered("0.40", 0.05), [line("1.00")], counted=False) == ZERO
    assert compute_hold(offered("0.40", 7.0), [line("1.00")], counted=True) == Decimal("0.40")


def test_holds_reach_as_far_as_the_least_of_the_budgets() -> None:
    """An impression that could not be paid is not shown; one that doesn't count is not affected by holds."""
    tight = [line("9.00"), line("1.00", "0.50", "0.49")]
    assert compute_hold(offered("0.40", 0.05), tight, counted=True) is None
    assert compute_hold(offered("0.40", 0.02), tight, counted=True) == Decimal("0.0080")
    assert compute_hold(offered("0.40", 0.05), tight, counted=False) == ZERO
    assert compute_hold(offered(), [line("1.00", "1.00")], counted=False) is None
    for price in ("0", "-1", "NaN", "Infinity"):
        assert compute_hold(offered(price), [line("1.00")], counted=True) is None


@given(CENTS, CENTS, CENTS, CENTS, CENTS)
def test_a_click_never_costs_more_than_is_left(
    price: Decimal, budget: Decimal, charged: Decimal, more: Decimal, other: Decimal
) -> None:
    """It never costs more than its price, either; if nothing is left, it is free, with the reason."""
    lines = [BudgetLine(budget, charged, ZERO), BudgetLine(more, other, ZERO)]
    clicking = ClickContext(110.0, "ab", is_bot=False, on_target=True, budget=PayerBudget(budget))
    why_not, amount, _ = settle_click(impression(str(price)), clicking, (), lines, ClickRules())
    assert 0 <= amount <= price
    if amount:
        assert all(one.charged + amount <= one.budget for one in lines)
    else:
        assert why_not is ClickRejection.SPENT


def test_an_advertiser_has_a_budget_over_all_campaigns() -> None:
    """Charges of other campaigns count, whichever campaign was charged."""
    balances = {"spring": Balance(Decimal("1.00")), "fall": Balance(Decimal("2.00"), ZERO, "ann"), "x": Balance(ZERO)}
    own, all_ = budget_lines(PayerBudget(Decimal("9.00"), "ann", Decimal("4.00")), "spring", balances)
    assert (own.left, all_.left) == (Decimal("8.00"), Decimal("1.00"))
    assert len(budget_lines(PayerBudget(Decimal("9.00"), "ann"), "spring", balances)) == 1


def test_balances_follow_from_entries() -> None:
    """A charge releases the hold, which may be less or more than it; so does a refusal; a refund reverses a charge."""

    def entry(kind: EntryKind, token: str, amount: str) -> Entry:
        return Entry(kind, token, "spring", DAY, Decimal(amount), 1.0)

    entries = [
        entry(EntryKind.HELD, "a", "0.0200"),
        entry(EntryKind.HELD, "b", "0.0200"),
        entry(EntryKind.HELD, "c", "0.0100"),
        entry(EntryKind.CHARGED, "a", "0.40"),
        entry(EntryKind.REFUSED, "b", "0.0200"),
        entry(EntryKind.HELD, "d", "0.0200"),
        entry(EntryKind.CHARGED, "d", "0.30"),
        entry(EntryKind.REFUNDED, "d", "0.30"),
    ]
    assert sum_balances(entries) == {("spring", DAY): Balance(Decimal("0.40"), Decimal("0.0100"))}


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
        (GOOD._replace(clicks_from_address=1, network_share=Decimal("0.5")), ClickRejection.SAME_NETWORK),
        (GOOD._replace(on_target=False), ClickRejection.OFF_TARGET),
        (GOOD._replace(is_spent=True), ClickRejection.SPENT),
    ],
)
def test_each_invalid_click_has_its_reason(click: Click, reason: ClickRejection | None) -> None:
    """A valid click has none."""
    assert check_click(click) == reason


def test_an_address_that_clicks_too_often_is_refunded() -> None:
    """A third click in a day shows that the first two were not a customer's; clicks of others stay charged."""
    clicking = ClickContext(110.0, "ab", is_bot=False, on_target=True, budget=PayerBudget(Decimal(1000)))
    before = [PastClick("x", "cd", Decimal(1)), PastClick("a", "ab", Decimal(1))]
    assert settle_click(impression("1.00"), clicking, before, [line("1000.00")], ClickRules()) == (None, Decimal(1), ())
    before += [PastClick("b", "ab", Decimal(1))]
    found = settle_click(impression("1.00"), clicking, before, [line("1000.00")], ClickRules())
    assert found == (ClickRejection.SAME_ADDRESS, ZERO, ("a", "b"))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.decimals("0.01", "2.00", places=2)), max_size=40),
    st.decimals("0.50", "9.00", places=2),
)
def test_networks_take_a_click_or_a_fifth_of_a_budget_each(
    clicks: list[tuple[int, int, Decimal]], budget: Decimal
) -> None:
    """This is true for any number of addresses, in any order."""
    before: dict[str, PastClick] = {}
    for number, (network, address, price) in enumerate(clicks):
        visitor = f"{network:0{NETWORK_DIGITS}}{address}"
        clicking = ClickContext(110.0, visitor, is_bot=False, on_target=True, budget=PayerBudget(budget))
        left = BudgetLine(budget, sum((one.charged for one in before.values()), ZERO), ZERO)
        found = settle_click(impression(str(price)), clicking, list(before.values()), [left], ClickRules())
        before |= {token: before[token]._replace(charged=ZERO) for token in found.refunds}
        before[str(number)] = PastClick(str(number), visitor, found.amount)
        for each in range(3):
            taken = [one.charged for one in before.values() if int(one.visitor[:NETWORK_DIGITS]) == each]
            assert sum(taken) <= max([budget / 5, *(amount for amount in taken)])
