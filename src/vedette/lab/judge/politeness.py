"""Politeness judge: find every violation of crawl rules in a server's access log, and nothing else.

All times are world seconds. A gap runs from the end of a response to the start of the next request, robots.txt and
redirect hops included; both ends are logged in the client's favor, so every reported violation did happen.

    host overlap       two requests at once on one host
    host gap           sooner than the delay, or than the crawl-delay of the robots.txt in force
    address overlap    more requests at once on one address than allowed
    address gap        sooner on one address than the address delay
    disallowed         a page that the robots.txt in force disallows
    no robots          a page whose origin has not answered for its robots.txt, or answered 5xx, 429 or not at all
    stale robots       a page on the word of a robots.txt older than a day
    retry-after        a request before the time that a 429 or 503 named

Only requests of one agent count (by product token, in any case), so that a person may browse the web meanwhile.
Restarts of the server or the crawler change nothing: one log is one client.
"""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import inf

from vedette.fetch.robots.rules import RobotsRules, parse_robots
from vedette.lab.judge.access_log import MAX_ROBOTS_BYTES, AccessEntry, LogHeader, resolve_redirect
from vedette.model import Origin
from vedette.timeutil import DAY_S

# RFC 9309: 2xx binds; 304 confirms the stored copy; 4xx (except 429) and more than five redirects mean that there are
# no rules; everything else, including silence and half a file, means that nothing may be requested. Redirects are
# followed through the log: the response of the last hop applies to the origin where the chain began.


MAX_REDIRECTS = 5
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class RobotsState:
    """robots.txt state of an origin for the politeness judge.

    ``rules`` apply until another file or "no file" is received, whatever fails in between.
    """

    answered_s: float
    permits: bool
    description: str
    rules: RobotsRules


@dataclass(frozen=True, slots=True)
class _RedirectChain:
    """A redirect chain of a robots.txt request: its origin, and the hops seen so far."""

    origin: Origin
    hops: int


@dataclass(slots=True)
class RobotsTracker:
    """Tracker of the robots.txt in force at each origin, from access log responses in the order in which they ended."""

    user_agent: str
    _states: dict[Origin, RobotsState] = field(default_factory=dict)
    _pending: dict[str, tuple[_RedirectChain, ...]] = field(default_factory=dict)

    def get_state(self, entry: AccessEntry) -> RobotsState | None:
        """Return the latest robots.txt state of this request's origin; None before any response."""
        return self._states.get(_origin(entry))

    def is_robots(self, entry: AccessEntry) -> bool:
        """Check whether an access log request is for a robots.txt, or for the target of its redirect."""
        return entry.target == "/robots.txt" or (bool(self._pending) and _normalize_url(entry) in self._pending)

    def observe(self, entry: AccessEntry) -> None:
        """Update the robots.txt state with a finished response from the access log."""
        if entry.method != "GET" or not self.is_robots(entry):
            return
        chains = self._pending.pop(_normalize_url(entry), ())
        if entry.target == "/robots.txt":
            chains = (*chains, _RedirectChain(_origin(entry), 0))
        for chain in chains:
            self._follow_redirect(chain, entry)

    def _follow_redirect(self, chain: _RedirectChain, entry: AccessEntry) -> None:
        following = resolve_redirect(entry.url, entry.location or "") if entry.status in REDIRECT_STATUSES else None
        if following is None or chain.hops >= MAX_REDIRECTS:
            before = self._states.get(chain.origin)
            self._states[chain.origin] = _next_state(before, entry, self.user_agent)
        else:
            self._pending[following] = (*self._pending.get(following, ()), replace(chain, hops=chain.hops + 1))


def _next_state(before: RobotsState | None, entry: AccessEntry, user_agent: str) -> RobotsState:
    status = entry.status if entry.whole or entry.status >= 300 or entry.bytes >= MAX_ROBOTS_BYTES else 0
    word = f"status {status}" if status else "no whole answer"
    rules = before.rules if before is not None else RobotsRules()
    if 200 <= status <= 299:
        text = (entry.robots or "").encode("utf-8", "surrogateescape")
        return RobotsState(entry.end_s, permits=True, description=word, rules=parse_robots(text, user_agent))
    if status == 304:
        return RobotsState(entry.end_s, permits=before is not None, description=word, rules=rules)
    if 300 <= status <= 499 and status != 429:
        return RobotsState(entry.end_s, permits=True, description=word, rules=RobotsRules())
    return RobotsState(entry.end_s, permits=False, description=word, rules=rules)


def _origin(entry: AccessEntry) -> Origin:
    return Origin(entry.scheme, entry.host, entry.port)


def _normalize_url(entry: AccessEntry) -> str:
    return resolve_redirect(entry.url, "") or entry.url


VIOLATION_KINDS = (
    "host overlap",
    "host gap",
    "address overlap",
    "address gap",
    "disallowed",
    "no robots",
    "stale robots",
    "retry-after",
)
# Unix seconds in a double are exact to a quarter of a microsecond; times the speed, that is the error of a difference.
ROUNDING_WALL_S = 1e-6
# The age of a robots.txt is the only span that the log shows longer than the client saw it: by the time of the request.
LATENCY_WALL_S = 0.25
MAX_URL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Violation:
    """One politeness violation; ``detail`` is a sentence with both requests, their times and the numbers."""

    kind: str
    host: str
    at_s: float
    detail: str


@dataclass(frozen=True, slots=True)
class ShortestGap:
    """The shortest gap between requests on one host or address; negative if they overlapped."""

    kind: str
    name: str
    gap_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of the politeness judge; ``violations`` are the first ones, ``counts`` counts all of them by kind."""

    requests: int
    hosts: int
    left_out: int
    counts: tuple[tuple[str, int], ...]
    violations: tuple[Violation, ...]
    closest: tuple[ShortestGap, ...]

    @property
    def total(self) -> int:
        """Return the total number of politeness violations."""
        return sum(count for _, count in self.counts)


def judge_log(
    entries: Iterable[AccessEntry],
    header: LogHeader,
    *,
    delay_s: float,
    address_delay_s: float,
    user_agent: str = "vedette",
    per_address: int = 1,
    tolerance_s: float = 0.0,
    most: int = 1000,
) -> Verdict:
    """Judge the politeness of a crawler by its access log; describe the first ``most`` violations in words.

    ``tolerance_s`` is forgiven in every gap, besides rounding.
    """
    token = parse_product_token(user_agent)
    everything = list(entries)
    judged = [entry for entry in everything if parse_product_token(entry.agent) == token]
    judged.sort(key=lambda entry: (entry.start_s, entry.end_s, entry.host, entry.target))
    rule = _Limits(delay_s, address_delay_s, per_address, tolerance_s + ROUNDING_WALL_S * header.speed)
    hearing = _Judge(rule, header, RobotsTracker(token), most)
    for entry in judged:
        hearing.judge(entry)
    return hearing.build_verdict(left_out=len(everything) - len(judged))


def parse_product_token(agent: str) -> str:
    """Parse the product token that a User-Agent begins with, in lower case, to judge one crawler's requests.

    >>> parse_product_token("Vedette/0.1 (+https://example.org/bot)")
    'vedette'
    """
    return agent.strip().lower().partition("/")[0].partition(" ")[0]


def format_verdict(verdict: Verdict, sentences: int = 10) -> str:
    """Format the politeness verdict for a terminal: what was judged, a line per rule, and the first violations."""
    agents = f", {verdict.left_out:,} by other agents ignored" if verdict.left_out else ""
    lines = [f"{verdict.requests:,} requests to {verdict.hosts:,} hosts{agents}: {verdict.total:,} violations", ""]
    closest = {found.kind: f"closest {found.gap_s:.3f} s, {found.name}" for found in verdict.closest}
    lines += [f"  {kind:<16}{count:>9,}   {closest.get(kind, '')}".rstrip() for kind, count in verdict.counts]
    lines += ["", *(violation.detail for violation in verdict.violations[:sentences])] if verdict.violations else []
    unsaid = verdict.total - min(sentences, len(verdict.violations))
    lines += [f"... and {unsaid:,} more"] if unsaid else []
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Politeness limits that the crawler must keep; ``slack_s`` is forgiven in every gap."""

    delay_s: float
    address_delay_s: float
    per_address: int
    slack_s: float


class _RecentAnswers:
    """Latest responses of one host or address for the politeness judge, as many as may be in flight at once.

    With n slots a request is too early exactly if the n-th latest end is less than the delay ago.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._latest: list[tuple[float, int, AccessEntry]] = []

    def previous(self) -> AccessEntry | None:
        """Return the earlier request whose slot the next one takes, to measure the gap; None if the slot is unused."""
        return self._latest[0][2] if len(self._latest) == self._size else None

    def add(self, entry: AccessEntry, number: int) -> None:
        """Record a request's end for the next gap; ``number`` only breaks ties between equal ends."""
        heapq.heappush(self._latest, (entry.end_s, number, entry))
        if len(self._latest) > self._size:
            heapq.heappop(self._latest)


@dataclass(slots=True)
class _Judge:
    """State of the politeness judge as it goes through an access log by start; responses count from their end."""

    rule: _Limits
    header: LogHeader
    robots: RobotsTracker
    most: int
    judged: int = 0
    hosts: dict[str, _RecentAnswers] = field(default_factory=dict)
    addresses: dict[str, _RecentAnswers] = field(default_factory=dict)
    retry_after: dict[str, tuple[float, AccessEntry]] = field(default_factory=dict)
    pending: list[tuple[float, int, AccessEntry]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    shortest_gaps: dict[str, ShortestGap] = field(default_factory=dict)

    def judge(self, entry: AccessEntry) -> None:
        """Judge the politeness of one access log request, and remember it."""
        while self.pending and self.pending[0][0] <= entry.start_s:
            self._apply_answer(heapq.heappop(self.pending)[2])
        self.judged += 1
        self._judge_host(entry)
        self._judge_address(entry)
        self._judge_retry(entry)
        if not self.robots.is_robots(entry):
            self._judge_page(entry)
        heapq.heappush(self.pending, (entry.end_s, self.judged, entry))

    def build_verdict(self, *, left_out: int) -> Verdict:
        """Build the politeness verdict on the whole access log."""
        counts = tuple((kind, self.counts[kind]) for kind in VIOLATION_KINDS)
        closest = tuple(self.shortest_gaps[kind] for kind in VIOLATION_KINDS if kind in self.shortest_gaps)
        return Verdict(self.judged, len(self.hosts), left_out, counts, tuple(self.violations), closest)

    def _apply_answer(self, entry: AccessEntry) -> None:
        self.robots.observe(entry)
        until_s = _parse_retry_after(entry)
        if until_s is not None and until_s > self.retry_after.get(entry.host, (-inf,))[0]:
            self.retry_after[entry.host] = (until_s, entry)

    def _judge_host(self, entry: AccessEntry) -> None:
        standing = self.robots.get_state(entry)
        crawl_delay_s = (standing.rules.crawl_delay_s if standing else None) or 0.0
        due_s, why = max((self.rule.delay_s, "the delay"), (crawl_delay_s, "its crawl-delay"))
        slots = self.hosts.setdefault(entry.host, _RecentAnswers(1))
        self._judge_gap("host", entry.host, entry, slots, due_s, why)

    def _judge_address(self, entry: AccessEntry) -> None:
        slots = self.addresses.setdefault(entry.address, _RecentAnswers(self.rule.per_address))
        self._judge_gap("address", entry.address, entry, slots, self.rule.address_delay_s, "the address delay")

    def _judge_gap(
        self, what: str, name: str, entry: AccessEntry, slots: _RecentAnswers, due_s: float, why: str
    ) -> None:
        before = slots.previous()
        slots.add(entry, self.judged)
        if before is None:
            return
        gap_s = entry.start_s - before.end_s
        shortest = self.shortest_gaps.get(f"{what} gap")
        if shortest is None or gap_s < shortest.gap_s:
            self.shortest_gaps[f"{what} gap"] = ShortestGap(f"{what} gap", name, gap_s)
        if gap_s < -self.rule.slack_s:
            detail = f"{-gap_s:.6f} s before {self._format_url(before)} had ended at {self._format_time(before.end_s)}"
            self._add_violation(f"{what} overlap", entry, f"at {name} {detail}.")
        elif gap_s < due_s - self.rule.slack_s:
            detail = f"{gap_s:.6f} s after {self._format_url(before)} had ended at {self._format_time(before.end_s)}"
            self._add_violation(f"{what} gap", entry, f"at {name} {detail}; {why} is {due_s:g} s.")

    def _judge_retry(self, entry: AccessEntry) -> None:
        until_s, cause = self.retry_after.get(entry.host, (-inf, entry))
        if entry.start_s < until_s - self.rule.slack_s:
            detail = f"{self._format_url(cause)} was answered {cause.status} at {self._format_time(cause.end_s)}"
            self._add_violation(
                "retry-after",
                entry,
                f"though {detail} with Retry-After: {cause.retry_after}, until {self._format_time(until_s)}.",
            )

    def _judge_page(self, entry: AccessEntry) -> None:
        standing = self.robots.get_state(entry)
        if standing is None:
            self._add_violation("no robots", entry, "before robots.txt of this origin had been answered.")
            return
        if not standing.permits:
            detail = f"{standing.description} at {self._format_time(standing.answered_s)}"
            self._add_violation("no robots", entry, f"although its robots.txt had last returned {detail}.")
        age_s = entry.start_s - standing.answered_s
        if age_s > DAY_S + LATENCY_WALL_S * self.header.speed:
            detail = f"{age_s / 3600:.2f} h old, answered at {self._format_time(standing.answered_s)}"
            self._add_violation("stale robots", entry, f"based on a robots.txt that was {detail}.")
        found = standing.rules.check(entry.url)
        if not found.allowed:
            self._add_violation("disallowed", entry, f"although its robots.txt says {found.line}.")

    def _add_violation(self, kind: str, entry: AccessEntry, how: str) -> None:
        self.counts[kind] += 1
        if len(self.violations) < self.most:
            detail = f"{kind}: {self._format_url(entry)} was requested at {self._format_time(entry.start_s)}, {how}"
            self.violations.append(Violation(kind, entry.host, entry.start_s, detail))

    def _format_time(self, world_s: float) -> str:
        return f"{world_s - self.header.world_start:.3f} s"

    def _format_url(self, entry: AccessEntry) -> str:
        url = entry.url if len(entry.url) <= MAX_URL_CHARS else entry.url[:MAX_URL_CHARS] + "..."
        return url if entry.method == "GET" else f"{entry.method} {url}"


def _parse_retry_after(entry: AccessEntry) -> float | None:
    """Parse until when a 429 or 503 response's Retry-After forbids its host, in world time; a day at most."""
    text = (entry.retry_after or "").strip()
    if entry.status not in {429, 503} or not text:
        return None
    if text.isascii() and text.isdigit():
        return entry.end_s + min(float(text[:9]), DAY_S)
    try:
        until = parsedate_to_datetime(text)
        until_s = (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(until_s, entry.end_s + DAY_S)
