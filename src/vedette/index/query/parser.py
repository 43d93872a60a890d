"""Parse the query language: turn user input into plain values.

    words here            pages with all of them
    "words here"          next to each other; typographic quotes do as well, and an open quote closes at the end
    this OR that, this|that   one of them (up to eight); OR in capitals only
    -word, -"words here"  pages without it
    intitle:word inurl:word   in the title, in the URL; a phrase may follow
    site:example.org/docs     of this host or domain, below this path; several mean any of them
    filetype:pdf (type:, ext:), lang:de
    version:2.8               of this release of a manual
    after:2024 after:2024-05 after:2024-05-01 after:7d, and before: the same; h, d, w, m, y count back from now

A minus works before operators too. AND and + are accepted and change nothing. Anything else with a colon is searched as
words, as is an operator without a valid value; a note says so. Parsing takes linear time and never fails.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeVar

from vedette.text import split_words

QueryField = Literal["any", "title", "url"]


class QueryPart(NamedTuple):
    """One part of a parsed query: a word, or a phrase of words next to each other.

    ``words`` are in their indexed form (``vedette.text``). A word that splits there ("3.9.0", a run of Han characters)
    is a phrase, like one in quotes.
    """

    words: tuple[str, ...]
    place: QueryField = "any"
    quoted: bool = False

    @property
    def is_phrase(self) -> bool:
        """Whether the words of this query part must be next to each other."""
        return len(self.words) > 1


class ParsedQuery(NamedTuple):
    """A parsed query. A page must match one part of each group in ``every``, and nothing in ``none``.

    Sites are host names, domains or host/path prefixes in lower case; kinds are file types ("pdf"), languages ISO 639-1
    codes, versions names of releases ("2.8"); days are seconds since 1970, ``after_s`` inclusive and ``before_s``
    exclusive. ``notes`` tell the user which parts of the query were ignored, and why.
    """

    text: str
    every: tuple[tuple[QueryPart, ...], ...] = ()
    none: tuple[QueryPart, ...] = ()
    sites: tuple[str, ...] = ()
    not_sites: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    not_kinds: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    not_languages: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    not_versions: tuple[str, ...] = ()
    after_s: float | None = None
    before_s: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the parsed query that a page must or may have, in order."""
        return tuple(word for group in self.every for part in group for word in part.words)

    @property
    def is_empty(self) -> bool:
        """Whether the parsed query has neither words nor a filter that finds something."""
        dated = self.after_s is not None or self.before_s is not None
        return not (self.every or self.sites or self.kinds or self.languages or self.versions or dated)


MAX_CHARACTERS = 512  # as typed, and as written by ``format_query``
MAX_GROUPS = 64
MAX_LISTED = 32  # parts that are excluded, and values of a filter
MAX_ALTERNATIVES = 8
MAX_NOTES = 8
MAX_MOMENT_LENGTH = len("before:2024-05-01T12:30:00")

Filter = Literal["sites", "kinds", "languages", "versions", "after_s", "before_s"]
Thing = TypeVar("Thing")
Join = Literal["|", "or", "and"]

_FILTERS: dict[str, Filter] = {
    "site": "sites",
    "filetype": "kinds",
    "ext": "kinds",
    "type": "kinds",
    "lang": "languages",
    "language": "languages",
    "version": "versions",
    "after": "after_s",
    "before": "before_s",
}
_PLACES: dict[str, QueryField] = {"intitle": "title", "inurl": "url"}
_OPERATOR_NAMES: dict[str, str] = {
    "sites": "site",
    "kinds": "filetype",
    "languages": "lang",
    "versions": "version",
    "title": "intitle",
    "url": "inurl",
}
_LISTED = tuple(f"{no}{name}" for name in ("sites", "kinds", "languages", "versions") for no in ("", "not_"))
_OPPOSITE: dict[str, Filter] = {"after_s": "before_s", "before_s": "after_s"}

_JOINS: dict[str, Join] = {"|": "|", "OR": "or", "AND": "and"}
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»\uff02", '"'))
_TOKEN = re.compile(
    rf"""\| | (?P<minus>(?<!\S)-(?![-\s]))? (?:[+(](?=\S))*
    (?: (?P<operator>(?ai:{"|".join([*_FILTERS, *_PLACES])})): )?
    (?: "(?P<phrase>[^"]*)"? | (?P<word>[^\s"|]+) )?""",
    re.VERBOSE,
)
_SITE_START = re.compile(r"(?:[*.]|[a-z][a-z0-9+.-]*://)*")
_SITE = re.compile(r"(?=.*\w)[\w.:-]+(?:/[^\s|]*)?")
_KIND = re.compile(r"[a-z0-9]{1,8}")
_KIND_NAMES = {"htm": "html", "xhtml": "html", "text": "txt", "markdown": "md"}  # one name for each
_LANGUAGE = re.compile(r"([a-z]{2})(?:[-_][a-z0-9]{2,8})*")
_VERSION = re.compile(r"v?([0-9][a-z0-9._-]{0,39})|([a-z][a-z0-9._-]{0,39})")
_MOMENT = re.compile(
    r"([0-9]{4})(?:[-/.]([0-9]{1,2})(?:[-/.]([0-9]{1,2})(?:t([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]))?)?)?"
)
_SPAN = re.compile(r"([0-9]{1,6})([hdwmy])")
_SPAN_S = {"h": 3_600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# type: is also an ordinary word in programming, so it is an operator only before these.
_TYPE = re.compile("pdf|x?html?|te?xt|md|markdown|csv|json|xml|rss|atom|docx?|xlsx?|pptx?|od[tsp]|rtf|ps|tex|epub")


class _PartItem(NamedTuple):
    """A query part with whether it is negated."""

    part: QueryPart
    minus: bool = False


class _FilterItem(NamedTuple):
    """A query filter, such as ``site:`` or ``lang:``, with one value."""

    name: Filter
    value: str | float
    minus: bool = False


_Item = _PartItem | _FilterItem


def parse_query(text: str, now_s: float = 0.0) -> ParsedQuery:
    """Parse the text of a search query; relative dates such as "7d" count back from ``now_s``.

    >>> asked = parse_query('wild "sea birds" OR gulls -plastic site:https://Example.org/Docs/')
    >>> [[" ".join(part.words) for part in group] for group in asked.every]
    [['wild'], ['sea birds', 'gulls']]
    >>> asked.none[0].words, asked.sites
    (('plastic',), ('example.org/docs',))
    >>> parse_query("site: map").notes
    ('“site:” needs a value, so it is searched as words.',)
    """
    notes: list[str] = []
    if len(text) > MAX_CHARACTERS:
        notes.append(f"Only the first {MAX_CHARACTERS} characters of the query are used.")
    text = text[:MAX_CHARACTERS]
    items = _normalize_joins(list(_iter_items(text, now_s, notes)))
    gathered = _QueryBuilder(notes)
    for at, item in enumerate(items):
        if not isinstance(item, str):
            gathered.add(item, alternative=_is_alternative(items, at, notes))
    return gathered.build(text)


def unquote(asked: ParsedQuery) -> ParsedQuery:
    """Return a query for the words of its quoted phrases, in any order.

    >>> [[part.words for part in group] for group in unquote(parse_query('gulls "sea birds"')).every]
    [[('gulls',)], [('sea',)], [('birds',)]]
    """
    every = [
        unquoted
        for group in asked.every
        for unquoted in (
            ((QueryPart((word,)),) for word in group[0].words)
            if len(group) == 1 and group[0].quoted and group[0].place == "any"
            else [tuple(part._replace(quoted=False) for part in group)]
        )
    ]
    return asked._replace(every=tuple(every[:MAX_GROUPS]))


def format_query(asked: ParsedQuery) -> str:
    """Format a parsed query as one would type it, in canonical form; parsing the result gives the same query.

    >>> format_query(parse_query('INTITLE:Gulls +v1.2 | “sea bird  -boat -type:PDF'))
    'intitle:gulls v1-2 OR "sea bird boat type pdf"'
    """
    groups = [" OR ".join(map(_format_part, group)) for group in asked.every]
    nots = ["-" + _format_part(part) for part in asked.none]
    values = [_format_value(name, value) for name in _LISTED for value in getattr(asked, name)]
    moments = [
        f"{name}:{_format_moment(moment_s)}"
        for name, moment_s in (("after", asked.after_s), ("before", asked.before_s))
        if moment_s is not None
    ]
    return " ".join([*groups, *nots, *values, *moments])


def _iter_items(text: str, now_s: float, notes: list[str]) -> Iterator[_Item | Join]:
    """Yield the parts, filters and joins of a query text, from left to right."""
    for token in _TOKEN.finditer(text.translate(_QUOTES)):
        if join := _JOINS.get(token[0]):
            yield join
        else:
            yield from _parse_token(token, now_s, notes)


def _parse_token(token: re.Match[str], now_s: float, notes: list[str]) -> Iterator[_Item]:
    operator = (token["operator"] or "").lower()
    value = token["phrase"] if token["phrase"] is not None else token["word"] or ""
    minus, quoted = bool(token["minus"]), token["phrase"] is not None
    if operator in _FILTERS:
        name, read = _FILTERS[operator], _parse_filter_value(operator, value, now_s)
        if read is not None:
            opposite = minus and name in _OPPOSITE
            yield _FilterItem(_OPPOSITE[name] if opposite else name, read, minus and not opposite)
            return
    elif words := tuple(split_words(value)):
        yield _PartItem(QueryPart(words, _PLACES.get(operator, "any"), quoted), minus)
        return
    if operator:
        notes.append(_describe_bad_value(operator, value))
        if words := tuple(split_words(f"{operator} {value}")):
            yield _PartItem(QueryPart(words, "any", quoted), minus)


def _describe_bad_value(operator: str, value: str) -> str:
    if not value:
        return f"“{operator}:” needs a value, so it is searched as words."
    return f"“{operator}:{value[:40]}” is not a valid value for “{operator}:”, so it is searched as words."


def _normalize_joins(items: list[_Item | Join]) -> list[_Item | Join]:
    """Keep OR and AND only between two items; a second one is dropped, and at either end they are words."""
    kept: list[_Item | Join] = []
    for item in items:
        if not (isinstance(item, str) and kept and isinstance(kept[-1], str)):
            kept.append(item)
    for end in (0, -1):
        if kept and isinstance(join := kept[end], str):
            kept[end : end + 1 or None] = [] if join == "|" else [_PartItem(QueryPart((join,)))]
    return kept


def _is_alternative(items: list[_Item | Join], at: int, notes: list[str]) -> bool:
    """Check whether a query item is an OR alternative to the item before it."""
    if at < 2 or items[at - 1] not in {"or", "|"}:
        return False
    before, item = items[at - 2], items[at]
    if isinstance(before, _PartItem) and isinstance(item, _PartItem) and not (before.minus or item.minus):
        return True
    if not (isinstance(before, _FilterItem) and isinstance(item, _FilterItem) and before.name == item.name):
        notes.append("OR only works between two terms; here it has no effect.")
    return False


class _QueryBuilder:
    """Build a parsed query within its size limits; anything beyond them is dropped with a note."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.every: list[list[QueryPart]] = []
        self.none: list[QueryPart] = []
        self.listed: dict[str, list[str]] = {}
        self.moments: dict[str, float] = {}
        self.room = MAX_CHARACTERS + 1  # no space after the last
        self.is_open = False  # whether the last group was accepted, so that it may have alternatives

    def add(self, item: _Item, *, alternative: bool) -> None:
        """Add a parsed item to the query."""
        if isinstance(item, _FilterItem):
            self._add_filter(item)
        elif item.minus:
            self._append(self.none, item.part, MAX_LISTED, f"-{_format_part(item.part)}")
        elif not alternative:
            self.is_open = self._append(self.every, [item.part], MAX_GROUPS, _format_part(item.part))
        elif self.is_open:
            self._append(self.every[-1], item.part, MAX_ALTERNATIVES, f"OR {_format_part(item.part)}")

    def _add_filter(self, item: _FilterItem) -> None:
        name = f"not_{item.name}" if item.minus else item.name
        if isinstance(item.value, str):
            self._append(self.listed.setdefault(name, []), item.value, MAX_LISTED, _format_value(name, item.value))
        elif name in self.moments:
            self.moments[name] = (max if name == "after_s" else min)(self.moments[name], item.value)
        elif self._has_room(MAX_MOMENT_LENGTH):
            self.moments[name] = item.value

    def _append(self, things: list[Thing], thing: Thing, most: int, written: str) -> bool:
        if thing in things and not isinstance(thing, list):
            return True  # a repeated word makes two groups; elsewhere, once is enough
        if len(things) == most:
            self.notes.append(f"Only the first {most} of a kind are used; the rest is ignored.")
            return False
        if self._has_room(len(written)):
            things.append(thing)
            return True
        return False

    def _has_room(self, size: int) -> bool:
        """Check whether ``size`` more characters fit in the formatted query, whose length is limited."""
        if size + 1 > self.room:
            self.notes.append("The query is too long; the rest is ignored.")
            return False
        self.room -= size + 1
        return True

    def build(self, text: str) -> ParsedQuery:
        """Build the ``ParsedQuery`` from the items added."""
        listed = {name: tuple(values) for name, values in self.listed.items() if values}
        asked = ParsedQuery(text, tuple(map(tuple, self.every)), tuple(self.none), **listed, **self.moments)  # type: ignore[arg-type]  # names are those of ParsedQuery
        notes = dict.fromkeys([*self.notes, *_build_notes(asked)])
        return asked._replace(notes=tuple(notes)[:MAX_NOTES])


def _build_notes(asked: ParsedQuery) -> Iterator[str]:
    """Yield the notes about a parsed query as a whole."""
    if asked.after_s is not None and asked.before_s is not None and asked.after_s >= asked.before_s:
        yield "No date is both after the first and before the second one."
    if not asked.is_empty:
        return
    if any((asked.none, asked.not_sites, asked.not_kinds, asked.not_languages, asked.not_versions)):
        yield "Add something to search for."
    elif asked.text.strip():
        yield "This query has no words."


def _parse_filter_value(operator: str, value: str, now_s: float) -> str | float | None:
    """Parse the value of a query filter; None if it is invalid."""
    value = value.strip().lower()
    if operator == "site":
        return _parse_site(value)
    value = value.rstrip(".,;)")
    if operator in {"after", "before"}:
        return _parse_moment(value, now_s)
    if operator in {"lang", "language"}:
        found = _LANGUAGE.fullmatch(value)
        return found[1] if found else None
    if operator == "version":
        return _parse_version(value)
    value = value.lstrip(".")
    known = (_TYPE if operator == "type" else _KIND).fullmatch(value)
    return _KIND_NAMES.get(value, value) if known else None


def _parse_version(value: str) -> str | None:
    """Parse the name of a release; "v2.8" is the same as "2.8"."""
    found = _VERSION.fullmatch(value)
    return found[1] or found[2] if found else None


def _parse_site(value: str) -> str | None:
    """Parse the value of a ``site:`` filter: a host or URL prefix, without scheme, query string or fragment."""
    start = _SITE_START.match(value)
    value = re.split(r"[?#]", value[start.end() if start else 0 :], maxsplit=1)[0].rstrip("/.,;")
    if "(" not in value:
        value = value.rstrip("/.,;)")
    return value if _SITE.fullmatch(value) else None


def _parse_moment(value: str, now_s: float) -> float | None:
    """Parse the value of an ``after:`` or ``before:`` filter to seconds since 1970: a date, timestamp or age."""
    if value in {"today", "yesterday"}:
        return float((now_s // 86_400 - (value == "yesterday")) * 86_400)
    if span := _SPAN.fullmatch(value):
        moment_s = float(int(now_s) - int(span[1]) * _SPAN_S[span[2]])
        return moment_s if _to_datetime(moment_s) else None
    found = _MOMENT.fullmatch(value)
    if not found:
        return None
    year, month, day = (int(number or 1) for number in found.groups()[:3])
    hours, minutes, seconds = (int(number or 0) for number in found.groups()[3:])
    try:
        start = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    return (start - _EPOCH).total_seconds() + hours * 3_600 + minutes * 60 + seconds


def _to_datetime(moment_s: float) -> datetime | None:
    try:
        return _EPOCH + timedelta(seconds=moment_s)
    except OverflowError:
        return None


def _format_moment(moment_s: float) -> str:
    moment = _to_datetime(moment_s) or _EPOCH
    written = moment.isoformat(timespec="seconds")[:19]
    return written.removesuffix("T00:00:00")


def _format_value(name: str, value: str) -> str:
    return f"-{_OPERATOR_NAMES[name[4:]]}:{value}" if name.startswith("not_") else f"{_OPERATOR_NAMES[name]}:{value}"


def _format_part(part: QueryPart) -> str:
    operator = f"{_OPERATOR_NAMES[part.place]}:" if part.place in _OPERATOR_NAMES else ""
    return f'{operator}"{" ".join(part.words)}"' if part.quoted else operator + "-".join(part.words)
