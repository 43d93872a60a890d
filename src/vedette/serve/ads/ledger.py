"""Ad ledger: append-only entries of holds and charges in exact decimals, and the rules for making them.

An ad that is shown *holds* its expected cost: the price of a click times the probability of one. A click is *charged*
its price, or what is left of the day's budgets if that is less: so charges of a day never exceed a budget, whatever is
open and whenever clicks come. Without a click the hold is *released* after a while. Holds only prevent an ad from being
shown to more people than its budget can be expected to pay for; they lower no bid.

Everything is keyed by the token of an impression. It is held once, and then charged, refused or released, once. A click
after midnight is charged to the day on which its ad was shown. ``adapters.ads.ledger_store`` stores a ledger on disk,
``lab.runs.ads.live_market`` in memory; both use the functions here.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import ROUND_UP, Decimal
from enum import StrEnum
from typing import NamedTuple, Protocol

from vedette.serve.ads.catalog import AdCounts
from vedette.serve.ads.click_validity import Click, ClickRejection, ClickRules, check_click

ZERO = Decimal("0.00")
# Expected costs are held to a hundredth of a cent.
_HELD_STEP = Decimal("0.0001")
# The first digits of a visitor hash are those of its network.
NETWORK_DIGITS = 8


class EntryKind(StrEnum):
    """The kind of an ad ledger entry."""

    HELD = "held"
    CHARGED = "charged"
    REFUSED = "refused"
    LET_GO = "let go"
    REFUNDED = "refunded"


class Entry(NamedTuple):
    """An ad ledger entry: impression token, payer, budget day, kind, amount, and reason of a refusal or refund.

    The amount is what was held, charged or refunded, or what a refusal released.
    """

    kind: EntryKind
    token: str
    payer: str
    day: date
    amount: Decimal
    at_s: float
    reason: str = ""


class Balance(NamedTuple):
    """The ad ledger balance of one day's budget: what was charged and what is held; ``advertiser`` owns the payer."""

    charged: Decimal = ZERO
    held: Decimal = ZERO
    advertiser: str = ""


class PayerBudget(NamedTuple):
    """The daily budget of a payer (a campaign), and that of its advertiser over all campaigns, if there is one."""

    budget: Decimal
    advertiser: str = ""
    advertiser_budget: Decimal | None = None


class BudgetLine(NamedTuple):
    """One budget of a day, and what was charged and is held of it."""

    budget: Decimal
    charged: Decimal
    held: Decimal

    @property
    def left(self) -> Decimal:
        """What may still be charged; 0 if the budget was lowered below what was already charged."""
        return max(self.budget - self.charged, ZERO)


class AdImpression(NamedTuple):
    """An ad shown in a slot (from 0); ``closed`` is its outcome, empty while a click may still come.

    ``held`` is its expected cost; ``counted`` says whether it is held and learned from (see ``ClickRules``);
    ``charged`` is what its click cost.
    """

    token: str
    at_s: float
    day: date
    payer: str
    ad: int
    phrase: str
    slot: int
    score: float
    propensity: float
    price: Decimal
    reason: str
    closed: str = ""
    said: str = ""
    held: Decimal = ZERO
    counted: bool = True
    charged: Decimal = ZERO


class ImpressionOffer(NamedTuple):
    """A proposed ad impression, its budgets, the visibility of its slot, and its estimated click rate there."""

    impression: AdImpression
    budget: PayerBudget
    seen: float
    rate: float


class LostImpression(NamedTuple):
    """An ad that a query could have shown but did not; ``to`` is the cause: budget, rank or reserve."""

    ad: int
    phrase: str
    payer: str
    to: str


class AdQuery(NamedTuple):
    """A search query that matched these ad phrases: when, by whom (a visitor hash), and which ads were not shown."""

    at_s: float
    day: date
    hour: int
    visitor: str
    phrases: Sequence[str]
    lost: Sequence[LostImpression] = ()


class ClickContext(NamedTuple):
    """An ad click to be judged: time, visitor hash, whether a bot's, whether the ad may still run, its budgets now."""

    at_s: float
    visitor: str
    is_bot: bool
    on_target: bool
    budget: PayerBudget


class ClickOutcome(NamedTuple):
    """The outcome of an ad click: its impression (None if the token is unknown), and why it was not charged."""

    impression: AdImpression | None
    objection: ClickRejection | None
    charged: Decimal = ZERO


class PastClick(NamedTuple):
    """A click on an impression before this one: its sender, and what it costs, 0 if refused or refunded."""

    token: str
    visitor: str
    charged: Decimal


class Settlement(NamedTuple):
    """What becomes of a click: why it is not charged, or how much; and the tokens of charges that are refunded."""

    objection: ClickRejection | None
    amount: Decimal
    refunds: tuple[str, ...] = ()


class SlotTally(NamedTuple):
    """How often an ad was shown for a phrase in a slot (from 0), and clicked there, as far as it counts."""

    ad: int
    phrase: str
    slot: int
    shown: int
    clicked: int


class LedgerView(Protocol):
    """Read side of a ledger, for ad selection."""

    def read_counts(self) -> Mapping[tuple[int, str], AdCounts]:
        """Return the counted impressions, views and clicks of each ad and phrase, over all days."""

    def count_queries(self) -> Mapping[str, float]:
        """Return the counted queries for each phrase, over all days."""

    def read_hourly_queries(self, since: date) -> list[tuple[date, int, str, int]]:
        """Return the counted queries by day, hour and phrase, in this order."""

    def read_balances(self, day: date) -> Mapping[str, Balance]:
        """Return the balance of each payer on a day."""

    def tally_by_slot(self, after_s: float, until_s: float) -> list[SlotTally]:
        """Return counted impressions and clicks by ad, phrase and slot, between two times."""


class AdLedger(Protocol):
    """Write side of a ledger, for ad selection; each call is atomic."""

    def record_impressions(
        self, offered: Sequence[ImpressionOffer], asked: AdQuery, rules: ClickRules
    ) -> list[AdImpression]:
        """Release expired holds, record a query, and hold its impressions; return those within budget."""

    def record_click(self, token: str, clicking: ClickContext, rules: ClickRules) -> ClickOutcome:
        """Charge a click or say why it is free; only an impression's first click counts."""


def budget_lines(of: PayerBudget, payer: str, balances: Mapping[str, Balance]) -> list[BudgetLine]:
    """Return the budgets that limit a payer, by the balances of all payers on a day: its own, and its advertiser's.

    >>> kept = {"spring": Balance(Decimal(1)), "fall": Balance(Decimal(2), ZERO, "ann")}
    >>> [line.left for line in budget_lines(PayerBudget(Decimal(5), "ann", Decimal(4)), "spring", kept)]
    [Decimal('4'), Decimal('1.00')]
    """
    own = balances.get(payer, Balance())
    lines = [BudgetLine(of.budget, own.charged, own.held)]
    if of.advertiser_budget is not None:
        # Its own balance always counts, even if an older ledger did not record the owner.
        all_ = [own, *(each for name, each in balances.items() if name != payer and each.advertiser == of.advertiser)]
        charged, held = sum((each.charged for each in all_), ZERO), sum((each.held for each in all_), ZERO)
        lines.append(BudgetLine(of.advertiser_budget, charged, held))
    return lines


def compute_hold(offered: ImpressionOffer, lines: Sequence[BudgetLine], *, counted: bool) -> Decimal | None:
    """Compute what an impression holds: its expected cost, nothing if it does not count; None if it is not allowed."""
    price = offered.impression.price
    if not (price.is_finite() and price > 0) or any(line.left <= 0 for line in lines):
        return None
    if not counted:
        return ZERO
    chance = Decimal(repr(min(max(offered.rate, 0.0), 1.0)))
    held = (price * chance).quantize(_HELD_STEP, ROUND_UP)
    return held if all(line.held + held <= line.left for line in lines) else None


def settle_click(
    showing: AdImpression,
    clicking: ClickContext,
    before: Sequence[PastClick],
    lines: Sequence[BudgetLine],
    rules: ClickRules,
) -> Settlement:
    """Judge a click on an impression: charge its price, capped at what is left, or refuse it, and refund others."""
    amount = min(showing.price, *(line.left for line in lines))
    budget = clicking.budget.budget
    own = [one for one in before if one.visitor == clicking.visitor] if clicking.visitor else []
    of_network = sum((one.charged for one in before if _is_same_network(one.visitor, clicking.visitor)), ZERO)
    click = Click(
        known_token=True,
        clicked_before=showing.closed not in {"", EntryKind.LET_GO},
        # A released hold was late, whatever the clock says now.
        waited_s=float("inf") if showing.closed else clicking.at_s - showing.at_s,
        is_bot=clicking.is_bot,
        clicks_from_address=len(own),
        on_target=clicking.on_target,
        network_share=(of_network + amount) / budget if of_network and budget > 0 else ZERO,
        is_spent=amount <= 0,
    )
    why_not = check_click(click, rules)
    refunds = tuple(one.token for one in own if why_not is ClickRejection.SAME_ADDRESS and one.charged)
    return Settlement(why_not, ZERO if why_not else amount, refunds)


def _is_same_network(one: str, other: str) -> bool:
    return bool(one) and one[:NETWORK_DIGITS] == other[:NETWORK_DIGITS]


def apply_entry(balance: Balance, entry: Entry, released: Decimal) -> Balance:
    """Apply an entry to a balance; ``released`` is what its impression had held until then."""
    if entry.kind is EntryKind.HELD:
        return balance._replace(held=balance.held + entry.amount)
    if entry.kind is EntryKind.REFUNDED:
        return balance._replace(charged=balance.charged - entry.amount)
    charged = entry.amount if entry.kind is EntryKind.CHARGED else ZERO
    return balance._replace(charged=balance.charged + charged, held=balance.held - released)


def sum_balances(entries: Iterable[Entry]) -> dict[tuple[str, date], Balance]:
    """Sum ad ledger balances by payer and day from entries alone, to check a ledger against."""
    found: dict[tuple[str, date], Balance] = {}
    held: dict[str, Decimal] = {}
    for entry in entries:
        key = entry.payer, entry.day
        if entry.kind is EntryKind.HELD:
            held[entry.token] = entry.amount
        released = ZERO if entry.kind is EntryKind.HELD else held.pop(entry.token, ZERO)
        found[key] = apply_entry(found.get(key, Balance()), entry, released)
    return found
