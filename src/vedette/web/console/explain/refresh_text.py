"""How refreshing speaks: how often a page changes, how probably it has, what a fetch is worth, in words for people."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from vedette.web.formatting import THIN, number

DAY, HOUR, MINUTE = 1.0, 1.0 / 24, 1.0 / 1440
MONTH, YEAR = 30.44, 365.25
# (from so many days on, of so many days each, one of them, several)
_UNITS = (
    (2 * YEAR, YEAR, "year", "years"),
    (90.0, MONTH, "month", "months"),
    (DAY, DAY, "day", "days"),
    (HOUR, HOUR, "hour", "hours"),
    (0.0, MINUTE, "minute", "minutes"),
)
# Whoever says more of a page has not watched it that long.
MAX_INTERVAL_D = 20 * YEAR


def format_interval(rate_d: float, low_d: float | None = None, high_d: float | None = None) -> str:
    """How often something happens that happens so many times a day, with the ends of what is probable.

    >>> format_interval(1 / 3, 1 / 9, 1.0).replace(THIN, " "), format_interval(1.0), format_interval(24.0, 12.0, 1e9)
    ('about every 3 days (between 1 and 9)', 'about every day', 'about every hour (between 0 and 2)')
    >>> format_interval(0.001, 0.0, 0.01).replace(THIN, " "), format_interval(0.0)
    ('about every 2.7 years (0.27 or more)', 'hardly ever')
    """
    if not 1 / MAX_INTERVAL_D < rate_d < math.inf:
        return "hardly ever"
    days = 1 / rate_d
    _, size, one, several = next(unit for unit in _UNITS if days >= unit[0])
    shown = _format_short(days / size)
    words = f"about every {one}" if shown == "1" else f"about every {shown}{THIN}{several}"
    return f"{words}{_format_bounds(low_d, high_d, size)}"


def _format_bounds(low_d: float | None, high_d: float | None, size: float) -> str:
    """The ends, in the unit of the middle; a rate that is low makes a time that is long."""
    if low_d is None or high_d is None or not high_d > 0 or math.isnan(low_d):
        return ""
    shortest = _format_short(1 / high_d / size)
    if not low_d > 1 / MAX_INTERVAL_D:
        return f" ({shortest} or more)"
    longest = _format_short(1 / low_d / size)
    return f" (between {shortest} and {longest})" if longest != shortest else ""


def format_percent(share: float | None) -> str:
    """A chance or a share; a dash where it is not known. What is not certain is never 0 or 100 %.

    >>> [format_percent(share).replace(THIN, " ") for share in (0.404, 0.0004, 0.9999, 1.0, None)]
    ['40 %', 'below 1 %', 'above 99 %', '100 %', '—']
    """
    if share is None or not math.isfinite(share):
        return "\N{EM DASH}"
    share = min(max(share, 0.0), 1.0)
    if 0 < share < 0.005:
        return f"below 1{THIN}%"
    if 0.995 <= share < 1:
        return f"above 99{THIN}%"
    return f"{round(100 * share)}{THIN}%"


def format_worth(value: float | None) -> str:
    """What a fetch is worth, or must be; a dash where nobody says.

    >>> format_worth(0.01234), format_worth(12.34), format_worth(None), format_worth(0.0)
    ('0.012', '12', '—', '0')
    """
    return "\N{EM DASH}" if value is None or not math.isfinite(value) else _format_short(value)


def _format_short(value: float) -> str:
    """Two digits that count; whole from ten on."""
    if abs(value) >= 10:
        return number(round(min(value, 1e18)))
    if abs(value) >= 1:
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.2g}" if abs(value) >= 1e-4 else "0"


class Fact(NamedTuple):
    """A line of a section; ``url`` is a URL that it names, ``at_s`` the time that it tells."""

    name: str
    words: str
    url: str = ""
    at_s: float | None = None


def describe_refresh(refresh: dict[str, Any] | None) -> Iterator[Fact]:
    """How often it changes, whether it has, what a fetch is worth and last brought; nothing where a fixed rule has it.

    >>> told = {"rate_d": 1.0, "rate_low_d": 0.5, "rate_high_d": 2.0, "chance": 0.4, "worth": 0.7, "price": 0.8}
    >>> told |= {"refetched": True, "changed": False, "gain": None, "counts": "another main text"}
    >>> [fact.words for fact in describe_refresh(told)][2:]
    ['0.7 now; it is fetched when that reaches the price, 0.8', 'found nothing new', 'another main text']
    """
    if refresh is None:
        return
    if refresh["rate_d"] is not None:
        rates = (refresh["rate_d"], refresh["rate_low_d"], refresh["rate_high_d"])
        yield Fact("Changes", format_interval(*rates))
    if refresh["chance"] is not None:
        yield Fact("Changed by now", f"with a chance of {format_percent(refresh['chance'])}")
    if refresh.get("signal"):
        yield Fact("Said to have changed", f"by a {refresh['signal']}", at_s=refresh["signal_s"])
    if refresh["worth"] is not None:
        yield Fact("Worth of a fetch", _describe_worth(refresh))
    yield Fact("The last fetch", _describe_last_fetch(refresh))
    if refresh["counts"]:
        yield Fact("What counts as a change", refresh["counts"])


def _describe_worth(refresh: dict[str, Any]) -> str:
    now = f"{format_worth(refresh['worth'])} now"
    if refresh["price"] is None:
        return f"{now}; there is no price yet"
    reached = refresh["worth"] >= refresh["price"]
    when = "which is above the price" if reached else "it is fetched when that reaches the price"
    return f"{now}{', ' if reached else '; '}{when}, {format_worth(refresh['price'])}"


def _describe_last_fetch(refresh: dict[str, Any]) -> str:
    """What was measured may be nothing: a change that nobody who searches would notice."""
    if not refresh["refetched"]:
        return "was the first, so there is nothing to compare with"
    if not refresh["changed"]:
        return "found nothing new"
    if refresh["gain"] is None:
        return "found a change; what it brought to search is not measured yet"
    return f"found a change, which brought {format_worth(refresh['gain'])} to the quality of search"
