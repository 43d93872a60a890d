"""Formatting for HTML pages: ages, dates, numbers, URLs, snippets and score tables.

Everything here accepts whatever a foreign page or a broken clock may contain, and never fails. Values returned as
``Markup`` are already escaped; everything else is escaped by the templates.
"""

import math
import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote

from markupsafe import Markup, escape

from vedette.serve.slate import Reason, Snippet

__all__ = [
    "age",
    "ago",
    "counted",
    "crumbs",
    "day",
    "exact",
    "host_name",
    "is_made_up",
    "kind_name",
    "language_name",
    "linkable",
    "marked",
    "number",
    "real",
    "sentence",
    "stamp",
]


THIN = "\N{NARROW NO-BREAK SPACE}"
MINUTE, HOUR, DAY = 60, 3_600, 86_400
MONTH, YEAR = 30.44 * DAY, 365.25 * DAY
EARLIEST_S, LATEST_S = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, which calendars have
MAX_CRUMBS = 4
MAX_CRUMB_LENGTH = 60
BAR_WIDTH = 100.0

# (maximum seconds, seconds per unit, name)
_AGE_UNITS = (
    (HOUR, MINUTE, "min"),
    (2 * DAY, HOUR, "h"),
    (60 * DAY, DAY, "days"),
    (2 * YEAR, MONTH, "months"),
    (math.inf, YEAR, "years"),
)
# Characters without a width, and those that change the direction of text: in a URL they can only deceive.
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
_KINDS = {"html": "Web page", "txt": "Text", "text": "Text", "md": "Markdown"}
_LANGUAGE_CODES = """
    ar=Arabic bg=Bulgarian bn=Bengali ca=Catalan cs=Czech da=Danish de=German el=Greek en=English es=Spanish
    et=Estonian eu=Basque fa=Persian fi=Finnish fr=French ga=Irish gl=Galician he=Hebrew hi=Hindi hr=Croatian
    hu=Hungarian hy=Armenian id=Indonesian is=Icelandic it=Italian ja=Japanese ka=Georgian ko=Korean lt=Lithuanian
    lv=Latvian mk=Macedonian ms=Malay nl=Dutch no=Norwegian pl=Polish pt=Portuguese ro=Romanian ru=Russian sk=Slovak
    sl=Slovenian sq=Albanian sr=Serbian sv=Swedish ta=Tamil th=Thai tr=Turkish uk=Ukrainian ur=Urdu vi=Vietnamese
    zh=Chinese
"""
_LANGUAGES = dict(pair.split("=") for pair in _LANGUAGE_CODES.split())


# --- times ---


def age(seconds: float, *, is_precise: bool = False) -> str:
    """Format a duration or age for a page, in the unit that people would use; less than a minute if ``is_precise``.

    >>> [age(seconds).replace(THIN, " ") for seconds in (250, 7_300, 86_400 * 10, -5)]
    ['4 min', '2 h', '10 days', 'less than a minute']
    >>> age(12.4, is_precise=True).replace(THIN, " ")
    '12 s'
    """
    if is_precise and 0 <= seconds < MINUTE:
        return f"{int(seconds)}{THIN}s"
    if not MINUTE <= seconds < math.inf:
        return "less than a minute"
    unit_s, name = next((unit_s, name) for up_to, unit_s, name in _AGE_UNITS if seconds < up_to)
    return f"{number(int(seconds // unit_s))}{THIN}{name}"


def ago(now_s: float, then_s: float) -> str:
    """Format how long ago something was for a page; a time in the future, by a wrong clock, is "just now".

    >>> ago(1000, 760).replace(THIN, " "), ago(1000, 990), ago(1000, 2000)
    ('4 min ago', 'just now', 'just now')
    """
    return f"{age(now_s - then_s)} ago" if MINUTE <= now_s - then_s < math.inf else "just now"


def exact(then_s: float) -> str:
    """Format the full time in UTC for a tooltip; empty if it is outside the calendar.

    >>> exact(1_700_000_000)
    '2023-11-14 22:13:20 UTC'
    """
    when = _to_datetime(then_s)
    return "" if when is None else f"{when:%Y-%m-%d %H:%M:%S} UTC".rjust(23, "0")


def stamp(then_s: float) -> str:
    """Format a time for the ``datetime`` attribute of an HTML time element."""
    return exact(then_s)[:19].replace(" ", "T") + "Z" if exact(then_s) else ""


def day(then_s: float) -> str:
    """Format a day for a page, such as "14 Nov 2023".

    >>> day(1_700_000_000)
    '14 Nov 2023'
    """
    when = _to_datetime(then_s)
    return "" if when is None else f"{when.day} {when:%b} {when.year}"


def _to_datetime(then_s: float) -> datetime | None:
    return datetime.fromtimestamp(then_s, UTC) if EARLIEST_S <= then_s <= LATEST_S else None


# --- numbers ---


def number(count: int) -> str:
    """Format a whole number for a page with thin spaces between its thousands.

    >>> number(1234567).replace(THIN, " "), number(-1200).replace(THIN, " ")
    ('1 234 567', '-1 200')
    """
    return f"{count:,}".replace(",", THIN)


def counted(count: int, thing: str) -> str:
    """Format a count with its noun in singular or plural for a page.

    >>> counted(1, "page"), counted(12, "page")
    ('1 page', '12 pages')
    """
    return f"{number(count)} {thing if count == 1 else thing + 's'}"


def real(value: float) -> str:
    """Format a feature's number for a page with three significant digits.

    >>> real(0.123456), real(2.0), real(1234.5).replace(THIN, " "), real(-0.00001)
    ('0.123', '2', '1 234', '0')
    """
    if not math.isfinite(value):
        return "\N{EM DASH}"
    if abs(value) >= 1000:
        return number(int(value)) if abs(value) < 1e15 else f"{value:.0e}"
    digits = 2 if abs(value) >= 10 else 3
    shown = f"{round(value, digits) + 0.0:.{digits}f}".rstrip("0").rstrip(".")
    return shown.replace("-", "\N{MINUS SIGN}")


# --- addresses ---


def linkable(url: str) -> str:
    """Return the URL if a page may link to it (http or https), else an empty text.

    >>> linkable("https://example.org/"), linkable("javascript:alert(1)")
    ('https://example.org/', '')
    """
    return url if url.lower().startswith(("http://", "https://")) else ""


def is_made_up(url: str) -> bool:
    """Check whether a URL is of the demo's synthetic web, whose hosts end in ``.test`` (RFC 6761).

    >>> is_made_up("http://a.test/x"), is_made_up("http://docs.localhost:8000/x.test")
    (True, False)
    """
    return url.partition("://")[2].partition("/")[0].endswith(".test")


def crumbs(url: str) -> list[str]:
    """Return the host and folders of a URL as breadcrumbs, decoded, for a page; those left out become "…".

    The host stays as it is written in the URL, because a decoded one may resemble another.

    >>> crumbs("https://kafka.apache.org/documentation/ops/?x=1#lag")
    ['kafka.apache.org', 'documentation', 'ops']
    >>> crumbs("https://example.org/a/b/c/d%C3%A9/e.html")
    ['example.org', 'a', '…', 'dé', 'e.html']
    """
    scheme, _, rest = url.partition("://")
    host, _, rest = (rest or scheme).partition("/")
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    parts = [part for part in path.split("/") if part]
    if len(parts) > MAX_CRUMBS - 1:
        parts = [parts[0], "…", *parts[-2:]]
    return [host_name(host.rpartition("@")[2]), *(_shorten(unquote(part[: MAX_CRUMB_LENGTH * 12])) for part in parts)]


def host_name(text: str) -> str:
    """Format a host name for a page. Its end says who owns it, so a long one loses its beginning.

    >>> host_name("a" * 80 + ".example.org")[:3], len(host_name("a" * 80 + ".example.org"))
    ('…aa', 60)
    """
    seen = _INVISIBLE.sub("", text[-2 * MAX_CRUMB_LENGTH :])
    return seen if len(seen) <= MAX_CRUMB_LENGTH else "…" + seen[1 - MAX_CRUMB_LENGTH :]


def _shorten(text: str) -> str:
    seen = _INVISIBLE.sub("", text)
    return seen if len(seen) <= MAX_CRUMB_LENGTH else seen[: MAX_CRUMB_LENGTH - 1] + "…"


# --- quotations and names ---


def marked(snippet: Snippet) -> Markup:
    """Format a snippet as HTML with its matches in ``<mark>``; spans may overlap or be outside the text.

    >>> str(marked(Snippet("a <b> lag", ((6, 9),))))
    'a &lt;b&gt; <mark>lag</mark>'
    """
    text, marks = snippet
    spans = _merge_spans(marks, len(text))
    edges = [0, *(place for span in spans for place in span), len(text)]
    pieces = [escape(text[start:end]) for start, end in pairwise(edges)]
    return Markup().join(
        Markup("<mark>{}</mark>").format(piece) if place % 2 else piece for place, piece in enumerate(pieces)
    )


def _merge_spans(marks: tuple[tuple[int, int], ...], length: int) -> list[tuple[int, int]]:
    """Merge a snippet's overlapping spans, in order and clipped to the text."""
    spans: list[tuple[int, int]] = []
    reached = 0
    for start, end in sorted(marks):
        first, last = max(start, reached), min(end, length)
        if first < last:
            spans.append((first, last))
            reached = last
    return spans


def kind_name(kind: str) -> str:
    """Return the display name of a file type, such as "PDF".

    >>> kind_name("pdf"), kind_name("odt")
    ('PDF', 'ODT')
    """
    return _KINDS.get(kind, kind.upper())


def language_name(code: str) -> str:
    """Return the English name of a language code; the code itself if it is unknown.

    >>> language_name("de"), language_name("xx")
    ('German', 'xx')
    """
    return _LANGUAGES.get(code, code)


def sentence(words: str) -> str:
    """Format words as a sentence for a page: add capital and period; a URL or a name stays as it is.

    >>> sentence("the site was paused"), sentence("https://example.org/ was added.")
    ('The site was paused.', 'https://example.org/ was added.')
    """
    first = words.partition(" ")[0].rstrip(":,")
    begun = words[:1].upper() + words[1:] if first.isalpha() else words
    return begun if begun.endswith((".", "?", "…")) else f"{begun}."


# --- scores ---


class ScoreRow(NamedTuple):
    """A row of the score table: a feature with its bar's start and width in percent, and whether it is negative."""

    reason: Reason
    start: float
    width: float
    down: bool


def build_score_rows(why: tuple[Reason, ...]) -> list[ScoreRow]:
    """Build the score table of a result, the largest contribution first.

    Negative bars are left of the origin of the others.

    >>> [(row.start, row.width) for row in build_score_rows((Reason("title", 1, 3, 3), Reason("spam", 1, -1, -1)))]
    [(25.0, 75.0), (0.0, 25.0)]
    """
    ordered = sorted(why, key=lambda reason: -abs(_finite_contribution(reason)))
    up = max((_finite_contribution(reason) for reason in ordered), default=0.0)
    down = max((-_finite_contribution(reason) for reason in ordered), default=0.0)
    whole = (max(up, 0.0) + max(down, 0.0)) or 1.0
    zero = BAR_WIDTH * max(down, 0.0) / whole
    return [_build_row(reason, zero, BAR_WIDTH / whole) for reason in ordered]


def _build_row(reason: Reason, zero: float, scale: float) -> ScoreRow:
    width = abs(_finite_contribution(reason)) * scale
    down = _finite_contribution(reason) < 0
    return ScoreRow(reason, round(zero - width if down else zero, 2), round(width, 2), down)


def _finite_contribution(reason: Reason) -> float:
    """Return a feature's contribution to the score table if it is a finite number, else 0."""
    return reason.contribution if math.isfinite(reason.contribution) and abs(reason.contribution) < 1e100 else 0.0
