"""Click validity of ads: which clicks are not charged, and why, in words for the advertiser."""

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple


class ClickRejection(StrEnum):
    """The reason why a click on an ad is not charged."""

    FORGED = "its token is not one of ours"
    DUPLICATE = "this showing was clicked before"
    LATE = "it came after the time in which clicks count"
    TOO_FAST = "it came sooner than anybody can read"
    BOT = "its sender says that it is a program"
    SAME_ADDRESS = "too many clicks from one address"
    SAME_NETWORK = "its network has used its share of the budget"
    OFF_TARGET = "the ad may no longer be shown for what was asked"
    SPENT = "the budget of its day was spent"


class ClickRules(NamedTuple):
    """Rules for ads: when a click counts, and limits for a campaign on one day.

    An address is charged for ``max_per_address`` clicks at most. If it clicks more often it is taken for hostile, and
    all its clicks are refunded. A network is charged for one click, or for ``max_network_share`` of the budget if that
    is more, however many addresses it has. Only ``max_showings`` impressions of an address hold money and are learned
    from, and as many of its searches for a phrase: further ones are answered but not counted.
    """

    min_delay_s: float = 0.5
    max_delay_s: float = 600.0
    max_per_address: int = 2
    max_network_share: Decimal = Decimal("0.2")
    max_showings: int = 3


DEFAULT_RULES = ClickRules()


class Click(NamedTuple):
    """Facts about an ad click: its impression, its sender, and the clicks before it.

    ``clicks_from_address`` counts all earlier clicks of its address on the campaign that day. ``network_share`` is the
    share of the day's budget charged to its network, including this click, 0 if nothing was charged before.
    """

    known_token: bool
    clicked_before: bool
    waited_s: float
    is_bot: bool
    clicks_from_address: int
    on_target: bool
    network_share: Decimal = Decimal(0)
    is_spent: bool = False


def check_click(click: Click, rules: ClickRules = DEFAULT_RULES) -> ClickRejection | None:
    """Check an ad click; return the first reason not to charge it, None for a valid one.

    >>> check_click(Click(True, False, 0.05, False, 0, True)).value
    'it came sooner than anybody can read'
    """
    speaks: Sequence[tuple[bool, ClickRejection]] = (
        (not click.known_token, ClickRejection.FORGED),
        (click.clicked_before, ClickRejection.DUPLICATE),
        (click.waited_s > rules.max_delay_s, ClickRejection.LATE),
        # A time that is NaN is not from a person.
        (not click.waited_s >= rules.min_delay_s, ClickRejection.TOO_FAST),
        (click.is_bot, ClickRejection.BOT),
        (click.clicks_from_address >= rules.max_per_address, ClickRejection.SAME_ADDRESS),
        (click.network_share > rules.max_network_share, ClickRejection.SAME_NETWORK),
        (not click.on_target, ClickRejection.OFF_TARGET),
        (click.is_spent, ClickRejection.SPENT),
    )
    return next((reason for applies, reason in speaks if applies), None)
