"""Query logs from elsewhere, parsed line by line: import what people search for before anyone searches here.

A line is a query; or a query, a tab and how often it was searched; or these, a tab and when, as an ISO date; or a JSON
object with ``query`` and, optionally, ``count`` and ``at``. Blank lines and lines that begin with ``#`` are skipped.
The default date is now. An invalid line is reported with its number, and the others are read.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Any, NamedTuple

from vedette.learn.events import MAX_QUERY_LENGTH
from vedette.text import split_words

MAX_LINE_LENGTH = 20_000
MAX_TIMES = 1_000_000_000
SKEW_S = 86_400.0  # dates are days, and the day may have started elsewhere


class ImportedQuery(NamedTuple):
    """A query imported from a query log: its words, when it was searched, and how often."""

    at_s: float
    words: str
    times: int


class InvalidLine(NamedTuple):
    """An invalid line of a query log, counted from 1, and why."""

    number: int
    why: str


QueryLine = ImportedQuery | InvalidLine


def parse_queries(lines: Iterable[str], now_s: float) -> Iterator[QueryLine]:
    r"""Parse the lines of an imported query log, skipping comments and blank lines.

    >>> for line in parse_queries(["# ours", "Low tide\t12\t1970-01-02", '{"query": "Café"}', "?!"], 1e6):
    ...     print(line)
    ImportedQuery(at_s=86400.0, words='low tide', times=12)
    ImportedQuery(at_s=1000000.0, words='cafe', times=1)
    InvalidLine(number=4, why='no words')
    """
    for number, line in enumerate(lines, 1):
        text = line.lstrip("\ufeff").strip() if number == 1 else line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            yield _parse_line(text, now_s)
        except _InvalidLineError as error:
            yield InvalidLine(number, str(error))


class _InvalidLineError(Exception):
    """The reason why a query log line is invalid."""


def _parse_line(text: str, now_s: float) -> ImportedQuery:
    if len(text) > MAX_LINE_LENGTH:
        raise _InvalidLineError(f"longer than {MAX_LINE_LENGTH} characters")
    query, count, at = _parse_json(text) if text.startswith("{") else _parse_columns(text)
    words = " ".join(split_words(query[:MAX_QUERY_LENGTH]))
    if not words:
        raise _InvalidLineError("no words")
    return ImportedQuery(_parse_moment(at, now_s), words, _parse_times(count))


def _parse_columns(text: str) -> tuple[str, Any, Any]:
    query, *more = (part.strip() for part in text.split("\t"))
    if len(more) > 2:
        raise _InvalidLineError("too many columns; expected a tab-separated query, count and date")
    count, at = [*more, "", ""][:2]
    return query, count or None, at or None


def _parse_json(text: str) -> tuple[str, Any, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise _InvalidLineError("not valid JSON") from None
    if not isinstance(fields.get("query"), str):
        raise _InvalidLineError('"query" is not a string')
    return fields["query"], fields.get("count"), fields.get("at")


def _parse_times(count: Any) -> int:  # noqa: ANN401 - read from outside
    if count is None:
        return 1
    times = _parse_number(count)
    if times is None or not 1 <= times <= MAX_TIMES or times != int(times):
        raise _InvalidLineError(f'"{str(count)[:40]}" is not a count; use a whole number, such as 12')
    return int(times)


def _parse_moment(at: Any, now_s: float) -> float:  # noqa: ANN401 - read from outside
    if at is None:
        return now_s
    at_s = _parse_date(at) if isinstance(at, str) else _parse_number(at)
    if at_s is None:
        raise _InvalidLineError(f'"{str(at)[:40]}" is not a date: use YYYY-MM-DD, for example 2026-01-31')
    if not 0.0 <= at_s <= now_s + SKEW_S:
        raise _InvalidLineError(f"{str(at)[:40]} is in the future" if at_s > 0.0 else f"{str(at)[:40]} is before 1970")
    return min(at_s, now_s)


def _parse_date(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text[:40])
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _parse_number(value: Any) -> float | None:  # noqa: ANN401 - read from outside
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
