"""Queries that somebody wrote down elsewhere, read line by line: what people ask for before anybody has asked here.

A line is a query; or a query, a tab and how often it was asked; or these, a tab and when, as an ISO date; or a JSON
object with ``query`` and, as one likes, ``count`` and ``at``. Blank lines and lines that begin with ``#`` are passed
over. Where there is no date, it is now. A line that cannot be used is told with its number, and the others are read.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Any, NamedTuple

from vedette.learn.events import LONGEST_QUERY
from vedette.text import words_of

__all__ = ["Line", "Noted", "Wrong", "read_queries"]

LONGEST_LINE = 20_000
MOST_TIMES = 1_000_000_000
SKEW_S = 86_400.0  # dates are days, and the day may have begun elsewhere


class Noted(NamedTuple):
    """A query in its words, when it was asked, and how often."""

    at_s: float
    words: str
    times: int


class Wrong(NamedTuple):
    """A line that cannot be used, counted from 1, and why."""

    number: int
    why: str


Line = Noted | Wrong


def read_queries(lines: Iterable[str], now_s: float) -> Iterator[Line]:
    r"""What each line says, but for comments and blank lines.

    >>> for line in read_queries(["# ours", "Low tide\t12\t1970-01-02", '{"query": "Café"}', "?!"], 1e6):
    ...     print(line)
    Noted(at_s=86400.0, words='low tide', times=12)
    Noted(at_s=1000000.0, words='cafe', times=1)
    Wrong(number=4, why='there is no word in it')
    """
    for number, line in enumerate(lines, 1):
        text = line.lstrip("\ufeff").strip() if number == 1 else line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            yield _noted(text, now_s)
        except _Unusable as error:
            yield Wrong(number, str(error))


class _Unusable(Exception):
    """Why a line cannot be used."""


def _noted(text: str, now_s: float) -> Noted:
    if len(text) > LONGEST_LINE:
        raise _Unusable(f"it is longer than {LONGEST_LINE} characters")
    query, count, at = _from_json(text) if text.startswith("{") else _from_columns(text)
    words = " ".join(words_of(query[:LONGEST_QUERY]))
    if not words:
        raise _Unusable("there is no word in it")
    return Noted(_moment(at, now_s), words, _times(count))


def _from_columns(text: str) -> tuple[str, Any, Any]:
    query, *more = (part.strip() for part in text.split("\t"))
    if len(more) > 2:
        raise _Unusable("it has more than a query, a number and a date between its tabs")
    count, at = [*more, "", ""][:2]
    return query, count or None, at or None


def _from_json(text: str) -> tuple[str, Any, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise _Unusable("it begins as JSON and is none") from None
    if not isinstance(told.get("query"), str):
        raise _Unusable('its "query" is no text')
    return told["query"], told.get("count"), told.get("at")


def _times(count: Any) -> int:  # noqa: ANN401 - read from outside
    if count is None:
        return 1
    times = _number(count)
    if times is None or not 1 <= times <= MOST_TIMES or times != int(times):
        raise _Unusable(f'"{str(count)[:40]}" is no number of searches')
    return int(times)


def _moment(at: Any, now_s: float) -> float:  # noqa: ANN401 - read from outside
    if at is None:
        return now_s
    at_s = _date(at) if isinstance(at, str) else _number(at)
    if at_s is None:
        raise _Unusable(f'"{str(at)[:40]}" is no date such as 2026-01-31')
    if not 0.0 <= at_s <= now_s + SKEW_S:
        raise _Unusable(f"{str(at)[:40]} lies in the future" if at_s > 0.0 else f"{str(at)[:40]} lies before 1970")
    return min(at_s, now_s)


def _date(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text[:40])
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(value: Any) -> float | None:  # noqa: ANN401 - read from outside
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
