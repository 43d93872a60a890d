"""Numbers of charts as people read them: round ticks, and values with their units (``edges.series.SeriesInfo``)."""

import math
from collections.abc import Sequence

from vedette.timeutil import DAY_S, HOUR_S, MINUTE_S
from vedette.web.formatting import THIN, number

MAX_VALUE = 1e18  # what is larger is no measurement
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TIME_STEPS = (*(1, 5, 15, 30), *(MINUTE_S * n for n in (1, 5, 15, 30)), *(HOUR_S * n for n in (1, 3, 6, 12)))
_BYTES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_TIMES = (("days", DAY_S), ("h", HOUR_S), ("min", MINUTE_S))
_RATES = {"1/s": "/s", "1/h": "/h", "1/d": "/day"}


def format_value(value: float, unit: str) -> str:
    """A value as people say it.

    >>> [format_value(value, unit).replace(THIN, " ") for value, unit in ((0.834, "share"), (1.5e9, "bytes"), (12345, "n"))]
    ['83 %', '1.5 GB', '12 345']
    >>> [format_value(value, unit).replace(THIN, " ") for value, unit in ((5400, "s"), (2.5, "1/s"), (3.1, "money"))]
    ['1.5 h', '2.5 /s', '3.10']
    """
    if not math.isfinite(value):
        return "\N{EM DASH}"
    value = max(-MAX_VALUE, min(value, MAX_VALUE))
    if unit == "share":
        return f"{_format_short(100 * value)}{THIN}%"
    if unit == "bytes":
        return _format_scaled(value, _BYTES, "B")
    if unit == "s":
        return _format_scaled(value, _TIMES, "s")
    if unit in _RATES:
        return f"{_format_short(value)}{THIN}{_RATES[unit]}"
    return f"{value:.2f}" if unit == "money" else _format_short(value)


def round_axis_top(values: Sequence[float], unit: str, ticks: int = 4) -> float:
    """The end of an axis that begins at zero, of which each tick is a round number.

    >>> round_axis_top([0.3, 0.7], "share"), round_axis_top([7.0], "n"), round_axis_top([], "n"), round_axis_top([5000.0], "s")
    (1.0, 8.0, 4.0, 7200.0)
    >>> round_axis_top([0.03], "n"), round_axis_top([1.0], "n")
    (0.04, 4.0)
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
    # What is counted has whole ticks; what stays below 1 was not counted.
    least = 1.0 if unit == "n" and most >= 1 else 0.01 if unit == "money" else 0.0
    return ticks * max(least, round_up(most / ticks))


def build_time_ticks(span_s: float) -> list[tuple[float, str]]:
    """Where on a time axis that ends now something is written, from 0 to 1, and what.

    >>> [words.replace(THIN, " ") for _, words in build_time_ticks(3600)]
    ['1 h ago', '45 min ago', '30 min ago', '15 min ago', 'now']
    """
    parts = 3 if span_s >= 3 * DAY_S else 4
    back = [(place / parts, span_s * (parts - place) / parts) for place in range(parts)]
    return [*((place, f"{_format_scaled(ago_s, _TIMES, 's')} ago") for place, ago_s in back), (1.0, "now")]


def round_up(value: float) -> float:
    """The next number that is round; a little above is taken for it, since floats are."""
    size = 10.0 ** math.floor(math.log10(max(value, 1e-300)))
    return next((step * size for step in _STEPS if value <= step * size * (1 + 1e-9)), 10.0 * size)


def _format_scaled(value: float, units: Sequence[tuple[str, float]], smallest: str) -> str:
    name, size = next(((name, size) for name, size in units if abs(value) >= size), (smallest, 1.0))
    shown = _format_short(value / size)
    return f"{shown}{THIN}{'day' if name == 'days' and shown == '1' else name}"


def _format_short(value: float) -> str:
    """Whole from ten on; two digits that count below."""
    if abs(value) >= 10 or value == round(value):
        return number(round(value))
    return f"{value:.1f}".removesuffix(".0") if abs(value) >= 1 else f"{value:.2g}"
