"""How refreshing speaks: how often a page changes, how probably it has, what a fetch is worth, in words for people."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from vedette.web.formatting import THIN, number

__all__ = ["Fact", "every", "per_cent", "refresh_facts", "worth"]

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
LONGEST_D = 20 * YEAR


def every(rate_d: float, low_d: float | None = None, high_d: float | None = None) -> str:
    """How often something happens that happens so many times a day, with the ends of what is probable.

    >>> every(1 / 3, 1 / 9, 1.0).replace(THIN, " "), every(1.0), every(24.0, 12.0, 1e9)
    ('about every 3 days (between 1 and 9)', 'about every day', 'about every hour (between 0 and 2)')
    >>> every(0.001, 0.0, 0.01).replace(THIN, " "), every(0.0)
    ('about every 2.7 years (0.27 or more)', 'hardly ever')
    """
    if not 1 / LONGEST_D < rate_d < math.inf:
        return "hardly ever"
    days = 1 / rate_d
    _, size, one, several = next(unit for unit in _UNITS if days >= unit[0])
    shown = _short(days / size)
    words = f"about every {one}" if shown == "1" else f"about every {shown}{THIN}{several}"
    return f"{words}{_between(low_d, high_d, size)}"


def _between(low_d: float | None, high_d: float | None, size: float) -> str:
    """The ends, in the unit of the middle; a rate that is low makes a time that is long."""
    if low_d is None or high_d is None or not high_d > 0 or math.isnan(low_d):
        return ""
    shortest = _short(1 / high_d / size)
    if not low_d > 1 / LONGEST_D:
        return f" ({shortest} or more)"
    longest = _short(1 / low_d / size)
    return f" (between {shortest} and {longest})" if longest != shortest else ""


def per_cent(share: float | None) -> str:
    """A chance or a share; a dash where it is not known. What is not certain is never 0 or 100 %.

    >>> [per_cent(share).replace(THIN, " ") for share in (0.404, 0.0004, 0.9999, 1.0, None)]
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


def worth(value: float | None) -> str:
    """What a fetch is worth, or must be; a dash where nobody says.

    >>> worth(0.01234), worth(12.34), worth(None), worth(0.0)
    ('0.012', '12', '—', '0')
    """
    return "\N{EM DASH}" if value is None or not math.isfinite(value) else _short(value)


def _short(value: float) -> str:
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


def refresh_facts(refresh: dict[str, Any] | None) -> Iterator[Fact]:
    """How often it changes, whether it has, what a fetch is worth and last brought; nothing where a fixed rule has it.

    >>> told = {"rate_d": 1.0, "rate_low_d": 0.5, "rate_high_d": 2.0, "chance": 0.4, "worth": 0.7, "price": 0.8}
    >>> told |= {"refetched": True, "changed": False, "gain": None, "counts": "another main text"}
    >>> [fact.words for fact in refresh_facts(told)][2:]
    ['0.7 now; it is fetched when that reaches the price, 0.8', 'found nothing new', 'another main text']
    """
    if refresh is None:
        return
    if refresh["rate_d"] is not None:
        rates = (refresh["rate_d"], refresh["rate_low_d"], refresh["rate_high_d"])
        yield Fact("Changes", every(*rates))
    if refresh["chance"] is not None:
        yield Fact("Changed by now", f"with a chance of {per_cent(refresh['chance'])}")
    if refresh.get("signal"):
        yield Fact("Said to have changed", f"by a {refresh['signal']}", at_s=refresh["signal_s"])
    if refresh["worth"] is not None:
        yield Fact("Worth of a fetch", _worth(refresh))
    yield Fact("The last fetch", _brought(refresh))
    if refresh["counts"]:
        yield Fact("What counts as a change", refresh["counts"])


def _worth(refresh: dict[str, Any]) -> str:
    now = f"{worth(refresh['worth'])} now"
    if refresh["price"] is None:
        return f"{now}; there is no price yet"
    reached = refresh["worth"] >= refresh["price"]
    when = "which is above the price" if reached else "it is fetched when that reaches the price"
    return f"{now}{', ' if reached else '; '}{when}, {worth(refresh['price'])}"


def _brought(refresh: dict[str, Any]) -> str:
    """What was measured may be nothing: a change that nobody who searches would notice."""
    if not refresh["refetched"]:
        return "was the first, so there is nothing to compare with"
    if not refresh["changed"]:
        return "found nothing new"
    if refresh["gain"] is None:
        return "found a change; what it brought to search is not measured yet"
    return f"found a change, which brought {worth(refresh['gain'])} to the quality of search"
