"""Which part of a world is meant: the ends of a span, as typed, become times."""

from datetime import UTC, datetime

from vedette.errors import UsageError
from vedette.lab.core.experiment import Span
from vedette.timeutil import DAY_S


def resolve_span(span: Span, begin_s: float, end_s: float) -> tuple[float, float]:
    """From when to when, within a world's own begin and end. A number counts days from its begin; dates are UTC.

    >>> resolve_span(Span("1970-01-02", "3"), 0.0, 1e6)
    (86400.0, 259200.0)
    """
    first = _parse_time(span.begin, begin_s, begin_s)
    last = _parse_time(span.end, begin_s, end_s)
    first, last = max(first, begin_s), min(last, end_s)
    if first >= last:
        raise UsageError(
            f"nothing lies from {span.begin or 'the begin'} to {span.end or 'the end'}; {_describe_range(begin_s, end_s)}"
        )
    return first, last


def _parse_time(typed: str, begin_s: float, default_s: float) -> float:
    if not typed:
        return default_s
    if typed.isascii() and typed.isdecimal():
        return begin_s + int(typed[:9]) * DAY_S
    try:
        read = datetime.fromisoformat(typed)
    except ValueError:
        raise UsageError(f'"{typed}" is no date and no number of days; write 2023-05-01, say, or 30') from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def _describe_range(begin_s: float, end_s: float) -> str:
    first, last = (datetime.fromtimestamp(at_s, UTC).date().isoformat() for at_s in (begin_s, end_s))
    return f"the world goes from {first} to {last}"
