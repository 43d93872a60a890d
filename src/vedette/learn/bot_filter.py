"""Bot filter: why a search or event does not count as a person's (programs, prefetches, inhuman rates).

Filtered requests are stored with their reason but not counted. Only two signals are used: what a program declares about
itself, and what no person can do. So a program that pretends to be a browser at a person's pace is counted; anyone who
wants to manipulate a search engine can. That is why no single visitor should count for much.

Useful for: counts of searches and clicks that are mostly from people. Not useful for: blocking anyone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, NamedTuple

from vedette.learn.events import EventKind
from vedette.timeutil import MINUTE_S

RateKind = Literal["search", "view", "click"]

MIN_CLICK_S = 0.3  # a result must be seen and pointed at first
MAX_DELAY_S = 86_400.0
MAX_SEARCHES_PER_HOUR = 300  # per hour and visitor hash: a class of thirty behind one address stays below
MAX_CLICKS_PER_HOUR = 300
MAX_PER_MINUTE: Mapping[RateKind, int] = {"search": 60, "view": 60, "click": 60}
MAX_COOLDOWN_MINUTES = 10  # minutes until the fastest pace is forgiven
MAX_VISITORS = 20_000
MAX_AGENT_LENGTH = 1000  # browsers send less; the rest is not read

# What programs call themselves. "Cubot" is a brand of phones; "bot" inside a longer word does not count.
_PROGRAM = re.compile(
    r"(?<!cu)bots?(?![a-z])|crawl|spider|slurp|scrap(?:y|er|ing)|archiver|httrack|heritrix|nutch"
    r"|headless|phantomjs|selenium|webdriver|puppeteer|playwright|lighthouse"
    r"|\bcurl\b|\bwget\b|\bpython\b|aiohttp|httpx|\bperl\b|\bruby\b|\bphp\b|\bjava/|okhttp|go-http"
    r"|http-?client|node-fetch|\bnode\.js|\bundici\b|\baxios/|guzzle|postman|insomnia/|powershell|\bdart/"
    r"|externalhit|feedfetcher|link ?(?:checker|preview)|web preview|uptime|pingdom|monitoring"
    r"|\+https?:|(?:gpt|claude|perplexity)-user"
)
_PREFETCH_HEADERS = (
    ("sec-purpose", "prefetch"),
    ("purpose", "prefetch"),
    ("x-moz", "prefetch"),
    ("x-purpose", "preview"),
)


def check_request(user_agent: str, headers: Mapping[str, str]) -> str:
    """Check whether a request comes from a bot; return the filter reason or "". Header names are lower case.

    >>> check_request("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", {})
    ''
    >>> check_request("curl/8.5.0", {})
    'says it is a program'
    >>> check_request("Mozilla/5.0 (Macintosh) Safari/605.1", {"sec-purpose": "prefetch;prerender"})
    'fetched ahead by a browser'
    """
    if not user_agent.strip():
        return "no browser named"
    if _PROGRAM.search(user_agent[:MAX_AGENT_LENGTH].lower()):
        return "says it is a program"
    if any(word in headers.get(name, "")[:100].lower() for name, word in _PREFETCH_HEADERS):
        return "fetched ahead by a browser"
    return ""


def check_event(kind: EventKind, after_s: float) -> str:
    """Check whether an event ``after_s`` seconds after its slate is a bot's; return the filter reason or "".

    >>> [check_event("click", after_s) for after_s in (0.05, 4.0, 100_000.0)]
    ['too quick', '', 'too late']
    >>> check_event("view", 0.05)
    ''
    """
    if not isfinite(after_s) or after_s > MAX_DELAY_S:
        return "too late"
    if after_s < (MIN_CLICK_S if kind == "click" else 0.0):
        return "too quick"
    return ""


def check_hourly_rate(searches: int, clicks: int) -> str:
    """Check a visitor's searches and clicks in the same hour; return the filter reason for one more, or "".

    The caller stores these counts. In both, an hour is one of world time.

    >>> check_hourly_rate(MAX_SEARCHES_PER_HOUR, 12)
    ''
    >>> check_hourly_rate(MAX_SEARCHES_PER_HOUR + 1, 12)
    'more than 300 searches in an hour'
    """
    if searches > MAX_SEARCHES_PER_HOUR:
        return f"more than {MAX_SEARCHES_PER_HOUR} searches in an hour"
    return f"more than {MAX_CLICKS_PER_HOUR} clicks in an hour" if clicks > MAX_CLICKS_PER_HOUR else ""


class _Level(NamedTuple):
    """A leaky-bucket level of recent events: each minute drains as many as the limit allows."""

    many: float
    at_s: float


@dataclass(slots=True)
class RateMeter:
    """Meter the search and click rate of each visitor for the bot filter; the least recent are dropped.

    A level falls by the limit each minute, so a visitor who stays below is never filtered, and one who was above
    recovers after a while. Seconds are wall time, since visitors are people.

    >>> pace = RateMeter()
    >>> [pace.count("ab", "search", 5.0) for _ in range(61)][59:]
    ['', 'more than 60 searches in a minute']
    >>> pace.count("cd", "search", 5.0), pace.count("ab", "search", 70.0)
    ('', '')
    """

    most_visitors: int = MAX_VISITORS
    _levels: dict[tuple[str, RateKind], _Level] = field(default_factory=dict)

    def count(self, visitor: str, kind: RateKind, at_s: float) -> str:
        """Count one more event of a visitor; return the bot filter reason, or "" for a person."""
        most = MAX_PER_MINUTE[kind]
        before = self._levels.pop((visitor, kind), _Level(0.0, at_s))
        rested = max(at_s - before.at_s, 0.0) / MINUTE_S * most
        level = min(max(before.many - rested, 0.0) + 1.0, most * MAX_COOLDOWN_MINUTES)
        self._levels[visitor, kind] = _Level(level, max(at_s, before.at_s))
        if len(self._levels) > self.most_visitors:
            del self._levels[next(iter(self._levels))]
        return f"more than {most} {kind}{'es' if kind == 'search' else 's'} in a minute" if level > most else ""
