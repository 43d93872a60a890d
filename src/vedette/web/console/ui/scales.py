"""Number scales for the console: values with units, shares, intervals, and round axis ticks of charts."""

import math
from collections.abc import Sequence

from vedette.timeutil import DAY_S, HOUR_S, MINUTE_S
from vedette.web.formatting import THIN, number

MAX_VALUE = 1e18  # anything larger is no measurement
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TIME_STEPS = (*(1, 5, 15, 30), *(MINUTE_S * n for n in (1, 5, 15, 30)), *(HOUR_S * n for n in (1, 3, 6, 12)))
_BYTES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_TIMES = (("days", DAY_S), ("h", HOUR_S), ("min", MINUTE_S))
_YEAR_D = 365.25
# (minimum days, days per unit, singular, plural)
_INTERVALS = (
    (2 * _YEAR_D, _YEAR_D, "year", "years"),
    (90.0, 30.44, "month", "months"),
    (1.0, 1.0, "day", "days"),
    (1 / 24, 1 / 24, "hour", "hours"),
    (0.0, 1 / 1440, "minute", "minutes"),
)
MAX_INTERVAL_D = 20 * _YEAR_D  # no page was observed for longer
_RATES = {"1/s": "/s", "1/h": "/h", "1/d": "/day"}


def format_value(value: float, unit: str) -> str:
    """Format a number with its unit for display on a console page.

    >>> values = ((0.834, "share"), (1.5e9, "bytes"), (12345, "n"), (5400, "s"), (2.5, "1/s"), (3.1, "money"))
    >>> [format_value(value, unit).replace(THIN, " ") for value, unit in values]
    ['83%', '1.5 GB', '12 345', '1.5 h', '2.5 /s', '3.10']
    """
    if not math.isfinite(value):
        return "\N{EM DASH}"
    value = max(-MAX_VALUE, min(value, MAX_VALUE))
    if unit == "share":
        return f"{_format_short(100 * value)}%"
    if unit == "bytes":
        return _format_scaled(value, _BYTES, "B")
    if unit == "s":
        return _format_scaled(value, _TIMES, "s")
    if unit in _RATES:
        return f"{_format_short(value)}{THIN}{_RATES[unit]}"
    return f"{value:.2f}" if unit == "money" else _format_short(value)


def format_percent(share: float | None) -> str:
    """Format a probability or share as a percentage; a dash if unknown, and never 0 or 100% if uncertain.

    >>> [format_percent(share) for share in (0.404, 0.0004, 0.9999, 1.0, None)]
    ['40%', 'less than 1%', 'more than 99%', '100%', '—']
    """
    if share is None or not math.isfinite(share):
        return "\N{EM DASH}"
    share = min(max(share, 0.0), 1.0)
    if 0 < share < 0.005:
        return "less than 1%"
    if 0.995 <= share < 1:
        return "more than 99%"
    return f"{round(100 * share)}%"


def format_worth(value: float | None) -> str:
    """Format the worth of a fetch, or its price, with two significant digits; a dash if unknown.

    >>> format_worth(0.01234), format_worth(12.34), format_worth(None), format_worth(0.0)
    ('0.012', '12', '—', '0')
    """
    if value is None or not math.isfinite(value):
        return "\N{EM DASH}"
    return format_value(value, "n") if abs(value) >= 1e-4 else "0"


def format_interval(rate_d: float, low_d: float | None = None, high_d: float | None = None) -> str:
    """Format a daily rate as "about every ...", with the bounds of its interval.

    >>> format_interval(1 / 3, 1 / 9, 1.0).replace(THIN, " "), format_interval(1.0), format_interval(24.0, 12.0, 1e9)
    ('about every 3 days (between 1 and 9)', 'about every day', 'about every hour (between 0 and 2)')
    >>> format_interval(0.001, 0.0, 0.01).replace(THIN, " "), format_interval(0.0)
    ('about every 2.7 years (0.27 or more)', 'hardly ever')
    """
    if not 1 / MAX_INTERVAL_D < rate_d < math.inf:
        return "hardly ever"
    days = 1 / rate_d
    _, size, one, several = next(unit for unit in _INTERVALS if days >= unit[0])
    shown = format_worth(days / size)
    words = f"about every {one}" if shown == "1" else f"about every {shown}{THIN}{several}"
    return f"{words}{_format_bounds(low_d, high_d, size)}"


def _format_bounds(low_d: float | None, high_d: float | None, size: float) -> str:
    """Format the bounds of a rate's interval in the unit of the mean; a low rate is a long time."""
    if low_d is None or high_d is None or not high_d > 0 or math.isnan(low_d):
        return ""
    shortest = format_worth(1 / high_d / size)
    if not low_d > 1 / MAX_INTERVAL_D:
        return f" ({shortest} or more)"
    longest = format_worth(1 / low_d / size)
    return f" (between {shortest} and {longest})" if longest != shortest else ""


def round_axis_top(values: Sequence[float], unit: str, ticks: int = 4) -> float:
    """Return the top of a chart axis that starts at zero and has round ticks.

    >>> round_axis_top([0.3, 0.7], "share"), round_axis_top([5000.0], "s"), round_axis_top([], "n")
    (1.0, 7200.0, 4.0)
    >>> round_axis_top([7.0], "n"), round_axis_top([0.03], "n"), round_axis_top([1.0], "n")
    (8.0, 0.04, 4.0)
    """
    most = max((min(value, MAX_VALUE) for value in values if math.isfinite(value)), default=0.0)
    if unit == "share":
        return 1.0 if most > 0.4 or most <= 0 else min(1.0, ticks * round_up(most / ticks))
    if most <= 0:
        return float(ticks)
    if unit == "s" and most <= ticks * _TIME_STEPS[-1]:
        return ticks * next(step for step in _TIME_STEPS if most <= ticks * step)
    if unit == "s":
        return ticks * DAY_S * max(1.0, round_up(most / ticks / DAY_S))
    # Counts have whole ticks; values below 1 are no counts.
    least = 1.0 if unit == "n" and most >= 1 else 0.01 if unit == "money" else 0.0
    return ticks * max(least, round_up(most / ticks))


def build_time_ticks(span_s: float) -> list[tuple[float, str]]:
    """Return the ticks of a time axis that ends now: position from 0 to 1, and label.

    >>> [words.replace(THIN, " ") for _, words in build_time_ticks(3600)]
    ['1 h ago', '45 min ago', '30 min ago', '15 min ago', 'now']
    """
    parts = 3 if span_s >= 3 * DAY_S else 4
    back = [(place / parts, span_s * (parts - place) / parts) for place in range(parts)]
    return [*((place, f"{_format_scaled(ago_s, _TIMES, 's')} ago") for place, ago_s in back), (1.0, "now")]


def round_up(value: float) -> float:
    """Round up to the next round number of an axis scale, with a tolerance for float error."""
    size = 10.0 ** math.floor(math.log10(max(value, 1e-300)))
    return next((step * size for step in _STEPS if value <= step * size * (1 + 1e-9)), 10.0 * size)


def _format_scaled(value: float, units: Sequence[tuple[str, float]], smallest: str) -> str:
    name, size = next(((name, size) for name, size in units if abs(value) >= size), (smallest, 1.0))
    shown = _format_short(value / size)
    return f"{shown}{THIN}{'day' if name == 'days' and shown == '1' else name}"


def _format_short(value: float) -> str:
    """Format a number in short form: whole from ten on, two significant digits below."""
    if abs(value) >= 10 or value == round(value):
        return number(round(value))
    return f"{value:.1f}".removesuffix(".0") if abs(value) >= 1 else f"{value:.2g}"
