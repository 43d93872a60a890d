"""Find the dates of a page: when it was published and last changed, according to the page itself.

Sources are tried from the most to the least deliberate:

1. ``linked data``  JSON-LD: datePublished and dateModified of the page or article itself, never of its reviews
2. ``meta``         meta elements, those made for articles before general ones
3. ``time``         a time element that says what it dates; or a bare one, if all bare ones agree
4. ``url``          ``/2026/11/15/`` in the path (published only)
5. ``text``         a date in a short line next to the first heading, as readers see it
6. ``header``       Last-Modified (modified only): often the time of the response, or of a rebuild, which
                    ``RebuildDetector`` distinguishes from changes

A date names at least a day, and is UTC without a zone. With a zone, the day stays as written: the evening of May 4 in
New York is May 5 in UTC, and is moved back to the last second of May 4. A date more than a day in the future, or before
the web, is a mistake, and the next source is tried; so is a change before the publication. ``03/04/2026`` is ambiguous,
so it is no date. All input is untrusted: what cannot be parsed is ignored.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from vedette.timeutil import parse_written_date

Source = Literal["linked data", "meta", "time", "url", "text", "header", ""]
Candidate = tuple[Source, str]

EARLIEST_S = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
MAX_AHEAD_S = 86_400.0
MAX_STAMPS = 100
MAX_ITEMS = 100
MAX_DATE_LENGTH = 64
# A deploy takes minutes; a host is judged by its latest pages, once there are enough.
_REBUILD_S, _REBUILD_SHARE, _MIN_PAGES, _RECENT_PAGES, _MAX_HOSTS = 1_800.0, 0.5, 10, 200, 1_000
_ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class PageDates:
    """The publication and modification dates of a page in Unix seconds, None if unknown, and their source."""

    published_s: float | None
    modified_s: float | None
    source: Source


def find_dates(
    stamps: Sequence[tuple[str, str]],
    linked_data: Sequence[str],
    url: str,
    last_modified: str,
    now_s: float,
    lines: Sequence[str] = (),
) -> PageDates:
    """Find the dates of a page from its (key, value) stamps, JSON-LD texts, URL, header, and lines next to its heading.

    >>> find_dates([("article:published_time", "2026-11-15T10:00:00Z")], [], "https://example.org/", "", 1.8e9)
    PageDates(published_s=1794736800.0, modified_s=None, source='meta')
    """
    if not (stamps or linked_data or last_modified or lines) and _IN_URL.match(url, 0, MAX_URL_LENGTH) is None:
        return _UNKNOWN
    articles = [item for text in linked_data for item in _parse_items(text)]
    published, published_by = _pick_first(_list_published(stamps, articles, url, lines), EARLIEST_S, now_s)
    earliest_s = EARLIEST_S if published is None else published
    modified, modified_by = _pick_first(_list_modified(stamps, articles, last_modified, lines), earliest_s, now_s)
    return PageDates(published, modified, published_by or modified_by)


def _pick_first(candidates: Iterator[Candidate], earliest_s: float, now_s: float) -> tuple[float | None, Source]:
    """Pick the first candidate for a page's date that can be parsed and is plausible."""
    for source, text in candidates:
        seconds = _parse_date(text)
        if seconds is not None and earliest_s <= seconds <= now_s + MAX_AHEAD_S:
            return seconds, source
    return None, ""


_UNKNOWN = PageDates(None, None, "")


class RebuildDetector:
    """Distinguish dates that a whole host shares from those of its pages.

    A deploy writes every file again, and some servers date each response with the current time: such a Last-Modified
    says nothing about a page. So a date is doubted if it is the time of the response, or if most of the host's latest
    pages have about the same.

    >>> detector = RebuildDetector()
    >>> [detector.is_rebuild("example.org", 1e9 + number, 2e9) for number in range(12)].index(True)
    10
    """

    def __init__(self) -> None:
        self._recent: dict[str, deque[float]] = {}

    def is_rebuild(self, host: str, modified_s: float, now_s: float) -> bool:
        """Add the Last-Modified of one more page of a host; return whether it is uninformative."""
        recent = self._recent.pop(host, None) or deque[float](maxlen=_RECENT_PAGES)
        self._recent[host] = recent  # the most recent hosts are kept
        if len(self._recent) > _MAX_HOSTS:
            del self._recent[next(iter(self._recent))]
        alike = sum(abs(modified_s - other_s) <= _REBUILD_S for other_s in recent)
        is_shared = len(recent) >= _MIN_PAGES and alike >= _REBUILD_SHARE * len(recent)
        recent.append(modified_s)
        return is_shared or abs(now_s - modified_s) <= _ANSWER_S


# --- Sources ---

_PUBLISHED_KEYS = (
    "article:published_time datepublished og:published_time citation_publication_date citation_online_date "
    "parsely-pub-date dcterms.issued dc.date.issued dcterms.created dc.date.created pubdate publishdate "
    "publish-date publication_date dcterms.date dc.date date"
)
_MODIFIED_KEYS = (
    "article:modified_time datemodified og:updated_time dcterms.modified dc.date.modified last-modified lastmod revised"
)
_PUBLISHED = {key: rank for rank, key in enumerate(_PUBLISHED_KEYS.split())}
_MODIFIED = {key: rank for rank, key in enumerate(_MODIFIED_KEYS.split())}


def _list_published(
    stamps: Sequence[tuple[str, str]], articles: list[dict[str, object]], url: str, lines: Sequence[str]
) -> Iterator[Candidate]:
    yield from _list_stated(articles, "datePublished")
    yield from _rank_stamps(stamps, _PUBLISHED)
    yield from (("time", value) for value in _select_stamps(stamps, "time:published"))
    bare = dict.fromkeys(_select_stamps(stamps, "time"))
    if len(bare) == 1:
        yield "time", next(iter(bare))
    found = _IN_URL.match(url, 0, MAX_URL_LENGTH)
    if found:
        yield "url", found[1]
    yield from (("text", date) for line in lines for date in _list_dates(_UPDATED.split(line)[0]))


def _list_modified(
    stamps: Sequence[tuple[str, str]], articles: list[dict[str, object]], last_modified: str, lines: Sequence[str]
) -> Iterator[Candidate]:
    yield from _list_stated(articles, "dateModified")
    yield from _rank_stamps(stamps, _MODIFIED)
    yield from (("time", value) for value in _select_stamps(stamps, "time:modified"))
    yield from (("text", date) for line in lines for part in _UPDATED.split(line)[1:] for date in _list_dates(part))
    if last_modified:
        yield "header", last_modified


def _rank_stamps(stamps: Sequence[tuple[str, str]], ranks: dict[str, int]) -> Iterator[Candidate]:
    found = [(ranks[key], value) for key, value in stamps[:MAX_STAMPS] if key in ranks]
    # Of equals the first written comes first: sorting is stable.
    for _, value in sorted(found, key=_get_rank):
        yield "meta", value


def _get_rank(found: tuple[int, str]) -> int:
    return found[0]


def _select_stamps(stamps: Sequence[tuple[str, str]], wanted: str) -> list[str]:
    return [value for key, value in stamps[:MAX_STAMPS] if key == wanted]


# A day of the calendar as part of a path: /2026/11/15/, /2026-11-15-title, /2026/nov/15/.
MAX_URL_LENGTH = 2048
_IN_URL = re.compile(r"[^?#]*?/((?:19|20)[0-9]{2}([/-])(?:[01]?[0-9]|[a-z]{3})\2[0-3]?[0-9])(?=[/._?#-]|$)")


# A date in a line of text: 2026-11-15, 15.11.2026, 15/11/2026, 15 November 2026, November 15, 2026.
_DATE = re.compile(
    r"(?<![0-9])(?:(?:19|20)[0-9]{2}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}(?:\.\s?[0-9]{1,2}\.\s?|/[0-9]{1,2}/)"
    r"(?:19|20)[0-9]{2}|[0-9]{1,2}(?:st|nd|rd|th|\.)?\s+(?:de\s+)?[^\W\d_]{3,10}\.?,?\s+(?:de\s+)?(?:19|20)[0-9]{2}"
    r"|(?<!\w)[^\W\d_]{3,10}\.?\s+[0-9]{1,2}(?:st|nd|rd|th)?,?\s+(?:19|20)[0-9]{2})(?![0-9])"
)
# What follows one of these words is the date of a change.
_UPDATED = re.compile("updat|modif|chang|revis|aktualis|actualiz|mis à jour|aggiornat|atualiz", re.IGNORECASE)


def _list_dates(line: str) -> list[str]:
    return [found[0] for found in _DATE.finditer(line)]


# --- JSON-LD ---


def _parse_items(text: str) -> list[dict[str, object]]:
    """Parse the top-level items of a JSON-LD text for page dates, articles first."""
    if '"datePublished"' not in text and '"dateModified"' not in text:
        return []
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError):  # broken, or nested beyond what honest pages do
        return []
    return sorted(_list_top_items(found), key=_is_not_article)


def _list_top_items(found: object) -> list[dict[str, object]]:
    top = _filter_objects(found)
    return top + [item for each in top for key in ("@graph", "mainEntity") for item in _filter_objects(each.get(key))]


def _filter_objects(found: object) -> list[dict[str, object]]:
    several = found[:MAX_ITEMS] if isinstance(found, list) else [found]
    return [each for each in several if isinstance(each, dict)]


def _is_not_article(item: dict[str, object]) -> bool:
    kind = item.get("@type")
    kinds = kind if isinstance(kind, list) else [kind]
    return not any(isinstance(each, str) and each.endswith(("Article", "Posting", "Report")) for each in kinds[:9])


def _list_stated(items: list[dict[str, object]], key: str) -> Iterator[Candidate]:
    for item in items:
        value = item.get(key)
        if isinstance(value, str):
            yield "linked data", value


# --- Reading one date ---


def _parse_date(text: str) -> float | None:
    """Parse a date of a page, as people and programs write it, into Unix seconds; None if it is none."""
    trimmed = text.strip()
    if not 6 <= len(trimmed) <= MAX_DATE_LENGTH:
        return None
    try:
        moment = datetime.fromisoformat(trimmed)
    except ValueError:
        return parse_written_date(trimmed)
    return (_keep_day(moment) if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _keep_day(moment: datetime) -> datetime:
    """Move the moment of a page's date to the nearest one in UTC that is on the day as written.

    >>> _keep_day(datetime.fromisoformat("2026-05-04T22:00:00-05:00")).isoformat()
    '2026-05-04T23:59:59+00:00'
    """
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    return min(max(moment.astimezone(UTC), day), day + timedelta(seconds=86_399))
