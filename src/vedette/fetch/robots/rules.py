"""Parse robots.txt and match URLs against its rules: RFC 9309, with the leniency of Google's published matcher.

A file is untrusted bytes: nothing here raises, and parsing takes time proportional to its size. Keys match by prefix
and in any case, common misspellings included, since a rule that was meant is better kept than lost.

Which rules apply: those of every group that names our agent, merged; if no group does, those of the groups for ``*``.
Among the rules that match a path the longest pattern wins, and Allow wins a tie.

``parse_robots`` is for the crawler: a file is parsed once and queried many times. ``is_allowed`` is the bare matcher,
in which ``/robots.txt`` is a path like any other.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

# A pattern begins at the path's first byte; ``*`` matches any run, a final ``$`` the end. Patterns and paths are
# untrusted, so a match is one walk from left to right: taking the leftmost match for each part between two stars never
# loses a match, because the rest of the path is then the longest.


_TO_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_PATH_START = re.compile(rb"[/?;]")
_ESCAPED = re.compile(rb"%[0-9A-Fa-f]{2}")
# RFC 3986, 2.3: they mean the same with and without an escape. So do letters and digits, but the published test suite
# that crawlers must pass distinguishes their escapes.
_UNRESERVED = frozenset(b"-._~")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled robots.txt pattern: ``head`` begins the path, ``middle`` parts follow in order, ``tail`` ends it.

    ``tail`` is None if the pattern has no star. ``length_bytes`` is its priority over other patterns.
    """

    head: bytes
    middle: tuple[bytes, ...]
    tail: bytes | None
    anchored: bool
    length_bytes: int

    def matches(self, path: bytes) -> bool:
        """Check whether a robots.txt pattern matches a path as ``extract_path`` writes it."""
        if not path.startswith(self.head):
            return False
        if self.tail is None:
            return not self.anchored or len(path) == len(self.head)
        at = self._match_middle(path)
        if at < 0:
            return False
        if self.anchored:
            return len(path) - len(self.tail) >= at and path.endswith(self.tail)
        return path.find(self.tail, at) >= 0

    def _match_middle(self, path: bytes) -> int:
        at = len(self.head)
        for part in self.middle:
            found = path.find(part, at)
            if found < 0:
                return -1
            at = found + len(part)
        return at


def compile_pattern(value: bytes) -> Pattern:
    """Compile the value of an Allow or Disallow line of robots.txt into a pattern.

    Escapes are normalized (RFC 9309, 2.2.2): upper-case digits, bytes outside ASCII escaped, ``-._~`` not. Escapes of
    other characters stay, so ``%2F`` is no ``/`` and ``%2A`` no star.

    >>> compile_pattern("/café*x$".encode()).matches(b"/caf%C3%A9/a/x")
    True
    """
    escaped = _TO_ESCAPE.sub(_escape, value) if b"%" in value or not value.isascii() else value
    anchored = escaped.endswith(b"$")
    head, *others = escaped.removesuffix(b"$").split(b"*")
    tail = others.pop() if others else None
    return Pattern(head, tuple(part for part in others if part), tail, anchored, len(escaped))


def extract_path(url: str) -> bytes:
    """Extract the path, parameters and query of a URL, which robots.txt patterns are matched against.

    Escapes are normalized as in patterns; nothing else is changed. An unparsable URL becomes ``/``.

    >>> extract_path("http://example.org/a;b?c#d"), extract_path("example.org?q"), extract_path("http://example.org")
    (b'/a;b?c', b'/?q', b'/')
    """
    raw = url.encode("utf-8", "surrogatepass")
    start = 2 if raw.startswith(b"//") else 0
    begin, scheme_end = _PATH_START.search(raw, start), raw.find(b"://", start)
    if begin and 0 <= scheme_end <= begin.start():
        begin = _PATH_START.search(raw, scheme_end + 3)
    fragment = raw.find(b"#", start)
    if begin is None or 0 <= fragment < begin.start():
        return b"/"
    path = raw[begin.start() : len(raw) if fragment < 0 else fragment]
    # The reference stores the path as a C string, so a NUL ends it.
    path = path.partition(b"\0")[0]
    path = _ESCAPED.sub(_escape, path) if b"%" in path else path
    return path if path.startswith(b"/") else b"/" + path


def _escape(found: re.Match[bytes]) -> bytes:
    octets = found.group()
    if len(octets) == 1:
        return b"%%%02X" % octets[0]
    code = int(octets[1:], 16)
    return bytes([code]) if code in _UNRESERVED else octets.upper()


MAX_ROBOTS_BYTES = 500 * 1024

Key = Literal["user-agent", "allow", "disallow", "sitemap", "crawl-delay"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Eight times the longest URL that browsers accepted when the reference was written, less its closing NUL.
_MAX_LINE_BYTES = 8 * 2083 - 1
_UTF16_SAMPLE_BYTES = 16
_SPACE = b" \t\n\v\f\r"
_MAX_SITEMAPS = 1000
_MAX_SITEMAP_BYTES = 2048

_LINE = re.compile(rb"[^\r\n]+")
_TWO_WORDS = re.compile(rb"([^ \t]+)[ \t]+([^ \t]+)")
_AGENT_NAME = re.compile(rb"[A-Za-z_-]*")
_SECONDS = re.compile(rb"\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}")

_KEYS: tuple[tuple[Key, tuple[bytes, ...]], ...] = (
    ("user-agent", (b"user-agent", b"useragent", b"user agent")),
    ("allow", (b"allow",)),
    ("disallow", (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw")),
    ("sitemap", (b"sitemap", b"site-map")),
    ("crawl-delay", (b"crawl-delay",)),
)


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """Whether robots.txt rules allow a URL, and the rule that decided; None if no rule matches."""

    allowed: bool
    line: str | None


@dataclass(frozen=True, slots=True)
class RobotsRule:
    """One Allow or Disallow line of robots.txt; ``value`` is as written, ``pattern`` what is matched."""

    allows: bool
    value: bytes
    pattern: Pattern

    def __str__(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {self.value.decode('utf-8', 'replace')}"


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The robots.txt rules for one agent, sorted so that the first match decides.

    ``crawl_delay_s`` is the longest in the agent's groups, since merging must not make a crawler less polite.
    """

    rules: tuple[RobotsRule, ...] = ()
    crawl_delay_s: float | None = None
    sitemaps: tuple[str, ...] = ()

    def is_allowed(self, url: str) -> bool:
        """Check whether the robots.txt rules allow this URL."""
        return self.check(url).allowed

    def check(self, url: str) -> RuleVerdict:
        r"""Check whether the robots.txt rules allow this URL, and by which rule.

        >>> parse_robots(b"User-agent: *\nDisallow: /private/", "vedette").check("https://example.org/private/a")
        RuleVerdict(allowed=False, line='Disallow: /private/')
        """
        path = extract_path(url)
        for rule in self.rules:
            if rule.pattern.matches(path):
                return RuleVerdict(rule.allows, str(rule))
        return RuleVerdict(allowed=True, line=None)


def is_allowed(robots: bytes, user_agent: str, url: str, limit_bytes: int | None = None) -> bool:
    r"""Check whether a robots.txt lets an agent fetch a URL, as the reference matcher does.

    The whole body counts, whatever its size, as in the reference; with ``limit_bytes`` only what ``clip_lines``
    returns.

    >>> is_allowed(b"User-agent: *\nDisallow: /a", "vedette", "https://example.org/ab")
    False
    """
    return parse_robots(robots, user_agent, limit_bytes).is_allowed(url)


def parse_robots(robots: bytes, user_agent: str, limit_bytes: int | None = MAX_ROBOTS_BYTES) -> RobotsRules:
    """Parse the rules of a robots.txt for an agent; by default only the first 500 KiB of it count."""
    body = robots if limit_bytes is None else clip_lines(robots, limit_bytes)
    reading = _RobotsParser(user_agent.encode("utf-8", "surrogatepass").lower())
    for key, value in _parse_lines(_decode_utf16(body)):
        reading.feed(key, value)
    return reading.build_rules()


def clip_lines(robots: bytes, limit_bytes: int = MAX_ROBOTS_BYTES) -> bytes:
    r"""Clip a robots.txt to the whole lines within the limit: half a rule could mean the opposite.

    >>> clip_lines(b"Allow: /a\nAllow: /b/c", 18)
    b'Allow: /a'
    """
    if len(robots) <= limit_bytes:
        return robots
    last_line_end = max(robots.rfind(b"\n", 0, limit_bytes + 1), robots.rfind(b"\r", 0, limit_bytes + 1))
    return robots[: max(last_line_end, 0)]


@dataclass(slots=True)
class _RuleGroup:
    """The merged robots.txt groups of one kind; dictionaries hold each rule once, in order."""

    patterns: dict[tuple[bool, bytes], bytes] = field(default_factory=dict)
    crawl_delay_s: float | None = None

    def add_rule(self, value: bytes, *, allows: bool) -> None:
        self.patterns.setdefault((allows, value), value)
        folder = _expand_index(value) if allows else None
        if folder is not None:
            self.patterns.setdefault((allows, folder), value)

    def add_delay(self, value: bytes) -> None:
        if _SECONDS.fullmatch(value):
            self.crawl_delay_s = max(self.crawl_delay_s or 0.0, float(value))

    def build_rules(self) -> tuple[RobotsRule, ...]:
        found = (
            RobotsRule(allows, value, compile_pattern(raw)) for (allows, raw), value in self.patterns.items() if raw
        )
        return tuple(sorted(found, key=lambda rule: (-rule.pattern.length_bytes, not rule.allows)))


@dataclass(slots=True)
class _RobotsParser:
    """The state of parsing a robots.txt: the agents of the current group, and the rules so far."""

    agent: bytes
    own: _RuleGroup = field(default_factory=_RuleGroup)
    everyone: _RuleGroup = field(default_factory=_RuleGroup)
    sitemaps: dict[str, None] = field(default_factory=dict)
    is_named: bool = False
    in_own: bool = False
    in_everyone: bool = False
    rules_begun: bool = False

    def feed(self, key: Key, value: bytes) -> None:
        if key == "user-agent":
            self._add_agent(value)
        elif key == "sitemap":
            self._add_sitemap(value)
        elif key == "crawl-delay":
            self._add_delay(value)
        else:
            self._add_rule(value, allows=key == "allow")

    def build_rules(self) -> RobotsRules:
        section = self.own if self.is_named else self.everyone
        return RobotsRules(section.build_rules(), section.crawl_delay_s, tuple(self.sitemaps))

    def _add_agent(self, value: bytes) -> None:
        if self.rules_begun:
            self.in_own = self.in_everyone = self.rules_begun = False
        if value[:1] == b"*" and not value[1:2].strip(_SPACE):
            self.in_everyone = True
        elif _parse_agent(value) == self.agent:
            self.in_own = self.is_named = True

    def _add_rule(self, value: bytes, *, allows: bool) -> None:
        section = self._get_group()
        if section is not None:
            self.rules_begun = True
            section.add_rule(value, allows=allows)

    def _add_delay(self, value: bytes) -> None:
        section = self._get_group()
        if section is not None:
            section.add_delay(value)

    def _add_sitemap(self, value: bytes) -> None:
        if value and len(value) <= _MAX_SITEMAP_BYTES and len(self.sitemaps) < _MAX_SITEMAPS:
            self.sitemaps.setdefault(value.decode("utf-8", "replace"))

    def _get_group(self) -> _RuleGroup | None:
        if self.in_own:
            return self.own
        return self.everyone if self.in_everyone else None


def _parse_lines(body: bytes) -> Iterator[tuple[Key, bytes]]:
    for found in _LINE.finditer(body, _measure_bom(body)):
        start = found.start()
        parted = _split_line(body[start : min(found.end(), start + _MAX_LINE_BYTES)])
        key = _match_key(parted[0]) if parted else None
        if parted and key:
            yield key, parted[1]


def _decode_utf16(body: bytes) -> bytes:
    """Convert a robots.txt in UTF-16, which some editors write, to UTF-8; return any other unchanged."""
    little, big = body.startswith(b"\xff\xfe"), body.startswith(b"\xfe\xff")
    head = body[:_UTF16_SAMPLE_BYTES]
    if len(head) >= _UTF16_SAMPLE_BYTES and not (little or big):  # without a mark: ASCII has a NUL in every second byte
        little, big = not any(head[1::2]) and all(head[::2]), not any(head[::2]) and all(head[1::2])
    if not (little or big):
        return body
    return body.decode("utf-16-le" if little else "utf-16-be", "replace").lstrip("\ufeff").encode("utf-8", "replace")


def _measure_bom(body: bytes) -> int:
    """Return how many bytes of a byte order mark, whole or partial, to skip at the start of a robots.txt."""
    agreeing = (length for length in (3, 2, 1) if body.startswith(_BYTE_ORDER_MARK[:length]))
    return next(agreeing, 0)


def _split_line(line: bytes) -> tuple[bytes, bytes] | None:
    """Split a robots.txt line into key and value; people forget the colon, so two words alone will do."""
    seen = line.partition(b"\0")[0].partition(b"#")[0].strip(_SPACE)
    key, colon, value = seen.partition(b":")
    if colon:
        return key.strip(_SPACE), value.strip(_SPACE)
    words = _TWO_WORDS.fullmatch(seen)
    return (words[1].strip(_SPACE), words[2].strip(_SPACE)) if words else None


def _match_key(written: bytes) -> Key | None:
    return _find_key(written[:16].lower())


@lru_cache(maxsize=256)  # a file has a handful of different ones
def _find_key(lowered: bytes) -> Key | None:
    return next((key for key, spellings in _KEYS if lowered.startswith(spellings)), None)


def _parse_agent(value: bytes) -> bytes:
    found = _AGENT_NAME.match(value)
    return found.group().lower() if found else b""


def _expand_index(value: bytes) -> bytes | None:
    """Return the extra robots.txt pattern of an allowed index page: ``/a/index.html`` also allows ``/a/$``."""
    folder, slash, name = value.rpartition(b"/")
    return folder + b"/$" if slash and name.startswith(b"index.htm") else None
