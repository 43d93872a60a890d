"""Click validity of ads: which clicks are not charged, and why, in words that an advertiser can be shown."""

from collections.abc import Sequence
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
    OFF_TARGET = "the ad may no longer be shown for what was asked"


class ClickRules(NamedTuple):
    """Rules for valid ad clicks: earliest and latest time, and the daily limit per address and advertiser."""

    min_delay_s: float = 0.5
    max_delay_s: float = 3_600.0
    max_per_address: int = 5


DEFAULT_RULES = ClickRules()


class Click(NamedTuple):
    """Facts about an ad click: its impression, its sender, and the clicks before it."""

    known_token: bool
    clicked_before: bool
    waited_s: float
    is_bot: bool
    clicks_from_address: int
    on_target: bool


def check_click(click: Click, rules: ClickRules = DEFAULT_RULES) -> ClickRejection | None:
    """Check an ad click; return the first reason not to charge it, None for a valid one.

    >>> check_click(Click(True, False, 0.05, False, 0, True)).value
    'it came sooner than anybody can read'
    """
    speaks: Sequence[tuple[bool, ClickRejection]] = (
        (not click.known_token, ClickRejection.FORGED),
        (click.clicked_before, ClickRejection.DUPLICATE),
        (click.waited_s > rules.max_delay_s, ClickRejection.LATE),
        # A time that is no number is no sign of a person.
        (not click.waited_s >= rules.min_delay_s, ClickRejection.TOO_FAST),
        (click.is_bot, ClickRejection.BOT),
        (click.clicks_from_address >= rules.max_per_address, ClickRejection.SAME_ADDRESS),
        (not click.on_target, ClickRejection.OFF_TARGET),
    )
    return next((reason for applies, reason in speaks if applies), None)
