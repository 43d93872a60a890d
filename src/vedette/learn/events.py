"""Search and click events as they are logged: results shown with their reasons, and user actions.

Later learning depends on these records. So they contain the input of ranking (features, scores) and the probability of
each result's position (propensity), and nothing about the user but a visitor hash that means nothing the next day.

A record is one line of JSON: servers append lines to their own files, and one process merges them.
"""

import json
from math import isfinite
from typing import Any, Literal, NamedTuple

EventKind = Literal["view", "click"]
Via = Literal["page", "api", "mcp"]

MAX_QUERY_LENGTH = 2000
MAX_REASON_LENGTH = 200
MAX_SHOWN = 100

# One shared encoder: creating one per record would take a third of the time.
_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class ShownResult(NamedTuple):
    """A result as shown in a logged search: its page, its position (from 1), and its features.

    ``features`` are pairs of a feature's name and its value; those without effect are left out. If something else put
    it there, ``reason`` says so in the displayed words: pinned, or moved down.
    """

    page: int
    position: int
    score: float
    propensity: float = 1.0
    features: tuple[tuple[str, float], ...] = ()
    reason: str = ""


class SearchEvent(NamedTuple):
    """A logged search and the results it showed.

    ``id`` is 32 hexadecimal digits. ``at_s`` is world time. ``query`` is the typed text, ``words`` its normalized
    words, by which queries are counted together. ``filters`` are the filters chosen besides it, as JSON. ``policy``
    names the ranking policy. ``visitor`` is a visitor hash that is valid for one day. ``filter_reason`` says why the
    search is not counted as a person's; empty if it is.
    """

    id: str
    at_s: float
    query: str
    words: str
    total: int
    visitor: str
    via: Via = "page"
    page: int = 1
    filters: str = "{}"
    policy: str = ""
    took_ms: float = 0.0
    filter_reason: str = ""
    results: tuple[ShownResult, ...] = ()


class ClickEvent(NamedTuple):
    """A logged event: a user saw a slate (``view``; ``page`` is 0) or opened one of its results (``click``).

    ``after_s`` is the wall time in seconds after the slate was made. The same event is counted once, however often it
    is reported.
    """

    slate: str
    kind: EventKind
    page: int
    at_s: float
    after_s: float
    visitor: str
    filter_reason: str = ""


LoggedEvent = SearchEvent | ClickEvent


def encode_event(record: LoggedEvent) -> bytes:
    r"""Encode a search or click event as a line of JSON.

    >>> encode_event(ClickEvent("00", "view", 0, 5.0, 1.5, "ab"))
    b'["e","00","view",0,5.0,1.5,"ab",""]\n'
    """
    kind = "s" if isinstance(record, SearchEvent) else "e"
    return _ENCODE((kind, *record)).encode() + b"\n"


def decode_event(line: bytes) -> LoggedEvent | None:
    """Decode a search or click event from a line of JSON; None if the line is invalid.

    >>> decode_event(encode_event(ClickEvent("00", "click", 7, 5.0, 1.5, "ab")))
    ClickEvent(slate='00', kind='click', page=7, at_s=5.0, after_s=1.5, visitor='ab', filter_reason='')
    >>> decode_event(b'["e"') is None
    True
    """
    try:
        values: Any = json.loads(line)
        kind, *fields = values
        return _parse_search(fields) if kind == "s" else _parse_click(fields) if kind == "e" else None
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None


def _parse_search(fields: list[Any]) -> SearchEvent | None:
    *plain, results = fields
    if not isinstance(results, list):
        return None
    shown = tuple(_parse_shown(*each) for each in results[:MAX_SHOWN])
    id_, at_s, query, words, total, visitor, via, page, filters, policy, took_ms, doubt = plain
    texts = tuple(map(_clean_text, (id_, query, words, visitor, via, filters, policy, doubt)))
    numbers = (float(at_s), float(took_ms))
    if texts[4] not in {"page", "api", "mcp"} or not all(map(isfinite, numbers)):
        return None
    name, typed, counted, mark, way, chosen, ranked, why = texts
    return SearchEvent(
        name,
        numbers[0],
        typed[:MAX_QUERY_LENGTH],
        counted[:MAX_QUERY_LENGTH],
        int(total),
        mark,
        way,  # type: ignore[arg-type]  # one of the three, as seen above
        int(page),
        chosen[:MAX_QUERY_LENGTH],
        ranked,
        numbers[1],
        why,
        shown,
    )


def _parse_shown(page: Any, position: Any, score: Any, propensity: Any, features: Any, reason: Any = "") -> ShownResult:  # noqa: ANN401 - read from outside
    values = tuple((str(name), float(value)) for name, value in features)
    return ShownResult(
        int(page), int(position), float(score), float(propensity), values, _clean_text(reason)[:MAX_REASON_LENGTH]
    )


def _parse_click(fields: list[Any]) -> ClickEvent | None:
    slate, kind, page, at_s, after_s, visitor, doubt = fields
    times = (float(at_s), float(after_s))
    if kind not in {"view", "click"} or not all(map(isfinite, times)):
        return None
    return ClickEvent(_clean_text(slate), kind, int(page), *times, _clean_text(visitor), _clean_text(doubt))


def _clean_text(value: Any) -> str:  # noqa: ANN401 - read from outside
    """Clean text of an event so that any database accepts it: JSON may contain lone surrogates."""
    return str(value).encode("utf-8", "replace").decode()
