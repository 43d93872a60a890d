"""Preview of a site before it is added: its host's addresses, its robots.txt, and warnings."""

import time
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple, Self

from vedette.adapters.clock import Clock
from vedette.adapters.net.dns import Lookup, Resolver
from vedette.adapters.net.http import ConnectionSettings, HttpClient, Limits
from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import check_scope, find_site
from vedette.engine.search.hidden import is_in_domains
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import Endpoint, find_endpoint
from vedette.fetch.request import PRODUCT, build_headers
from vedette.fetch.robots import state as robots_state
from vedette.fetch.robots.state import (
    UNKNOWN,
    RobotsFailure,
    RobotsResponse,
    RobotsState,
    RobotsStatus,
    UrlAllowed,
    UrlDisallowed,
)
from vedette.model import Failure, FetchOutcome, FetchRequest, FetchResponse, Origin, Site, origin_of
from vedette.runtime.commands.setting_commands import load_current
from vedette.runtime.processes.settings import RuntimeSettings, build_rules
from vedette.web.commands.commands import Rule
from vedette.web.console.ports.sites import RobotsPreview, RobotsVerdict

# Politeness applies here as in the crawl. A host that is or was crawled is not contacted: its robots.txt is known, or
# the coordinator fetches it at its own pace. Others are requested one after the other, with a delay between the hops of
# a redirect; results are cached for a while. The time of the last request is reported, so that the host gets its delay
# before the crawl's first request. No credentials are sent: the site is not added yet.


TIMEOUT_S = 10.0
CACHE_TTL_S = 600.0
MAX_CACHED = 1000
MAX_HOPS = 2
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NOT_ASKED = "Not fetched for this preview: the crawler knows this host and reads its robots.txt before any page."
_BUSY = "Other previews are running; try again in a moment."
_TOO_SLOW = "The request timed out. The crawler will read robots.txt before any page."
_ASKED_BEFORE = "It was requested a moment ago. The crawler will read it before any page."


class RobotsProbe(NamedTuple):
    """Result of probing a host for a site preview: its addresses and, if fetched, its robots.txt.

    ``why_not`` says why it was not fetched.
    """

    lookup: Lookup
    state: RobotsState = UNKNOWN
    asked_s: float | None = None
    why_not: str = ""


def preview_from_state(site: Site, state: RobotsState, now_s: float, asked_s: float | None = None) -> RobotsPreview:
    """Return a site preview's robots.txt verdict on the site's start, from a stored robots.txt."""
    url, words = origin_of(site.start).robots_url, robots_state.describe_state(state, now_s)
    verdict = robots_state.check_url(state, site.start, now_s)
    if isinstance(verdict, UrlDisallowed):
        return RobotsPreview(url, "disallowed", verdict.rule, words, state.crawl_delay_s, state.sitemaps, asked_s)
    if isinstance(verdict, UrlAllowed):
        return RobotsPreview(url, "allowed", verdict.rule or "", words, state.crawl_delay_s, state.sitemaps, asked_s)
    says: RobotsVerdict = "waits" if state.status is RobotsStatus.WAITING else "unasked"
    return RobotsPreview(url, says, "", words, asked_s=asked_s)


def preview_unknown(site: Site, words: str, asked_s: float | None = None) -> RobotsPreview:
    """Return a site preview's verdict for a robots.txt that is not known yet, with the reason."""
    return RobotsPreview(origin_of(site.start).robots_url, "unasked", "", words, asked_s=asked_s)


class RobotsPreviewer:
    """Fetcher of robots.txt for site previews, from hosts that are not crawled yet, one at a time."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._cache: dict[tuple[Origin, bool], tuple[float, RobotsProbe]] = {}

    def look_up(self, origin: Origin) -> Lookup:
        """Look up a previewed host's addresses in DNS, without contacting the host."""
        with self._open_session() as walk:
            return walk.look_up(origin)

    def preview(
        self, site: Site, asked_s: float | None = None, *, may_ask: bool = True
    ) -> tuple[Lookup, RobotsPreview]:
        """Look up a previewed site's host and fetch its robots.txt; takes about ten seconds at most.

        ``asked_s`` is when it was fetched before, possibly by another process.
        """
        origin = origin_of(site.start)
        seen = self._get_cached(origin, site, may_ask=may_ask)
        if seen is None:
            words = _NOT_ASKED if asked_s is None else _ASKED_BEFORE
            return self.look_up(origin), preview_unknown(site, words, asked_s)
        if seen.state.status is RobotsStatus.UNKNOWN:
            return seen.lookup, preview_unknown(site, seen.why_not, seen.asked_s)
        return seen.lookup, preview_from_state(site, seen.state, self._settings.clock.now(), seen.asked_s)

    def _get_cached(self, origin: Origin, site: Site, *, may_ask: bool) -> RobotsProbe | None:
        """Return the cached robots.txt probe of a host or make one; None if none is cached and none is allowed."""
        key = origin, site.allow_private
        if not self._lock.acquire(timeout=TIMEOUT_S):
            return RobotsProbe(Lookup(origin.host, ()), why_not=_BUSY)
        try:
            until_s, seen = self._cache.get(key, (0.0, None))
            if seen is not None and time.monotonic() < until_s:
                return seen
            return self._fetch(*key) if may_ask else None
        finally:
            self._lock.release()

    def _save_cached(self, key: tuple[Origin, bool], seen: RobotsProbe) -> None:
        """Cache a robots.txt probe for later previews; one without a request is not cached, so it can be retried."""
        if seen.asked_s is None:
            return
        if len(self._cache) >= MAX_CACHED:
            del self._cache[next(iter(self._cache))]
        self._cache[key] = time.monotonic() + CACHE_TTL_S, seen

    def _fetch(self, origin: Origin, private: bool) -> RobotsProbe:  # noqa: FBT001 - part of the cache key
        rules = build_rules(load_current(self._settings), [])
        with self._open_session() as walk:
            lookup = walk.look_up(origin)
            allowed = [each for each in lookup.addresses if rules.can_fetch_address(each, private=private)]
            refused = RobotsProbe(lookup, why_not=_describe_refusal(lookup))
            seen = walk.fetch(origin, lookup, allowed[0]) if allowed else refused
        self._save_cached((origin, private), seen)
        return seen

    def _open_session(self) -> "_PreviewSession":
        crawl = self._settings.config.crawl
        limits = Limits(min(crawl.connect_timeout_s, TIMEOUT_S), min(crawl.timeout_s, TIMEOUT_S))
        client = HttpClient(self._settings.clock, limits, ConnectionSettings(crawl.proxy, crawl.ca_file))
        return _PreviewSession(load_current(self._settings), client)


class _PreviewSession:
    """A time-limited session that looks up one host and fetches its robots.txt, for a site preview."""

    def __init__(self, settings: RuntimeSettings, client: HttpClient) -> None:
        self._settings = settings
        self._client = client
        self._resolver = Resolver(1)
        self._until_s = time.monotonic() + TIMEOUT_S
        client.watch_fd(self._resolver.fd, self._resolver.drain)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._resolver.close()

    @property
    def _remaining_s(self) -> float:
        return self._until_s - time.monotonic()

    def look_up(self, origin: Origin) -> Lookup:
        """Look up the addresses of a previewed host, without waiting for a slow resolver."""
        detour = find_endpoint(origin, self._settings.detours)
        if detour is not None:
            return Lookup(origin.host, (detour.address,))
        self._resolver.submit(origin.host)
        while self._remaining_s > 0:
            self._client.wait(min(self._remaining_s, 0.1))
            for answer in self._resolver.take_answers():
                return answer
        return Lookup(origin.host, (), Failure.RESOLVER)

    def fetch(self, origin: Origin, lookup: Lookup, address: str) -> RobotsProbe:
        """Fetch a previewed site's robots.txt, over a few redirects within its host, with a delay before each."""
        clock: Clock = self._settings.clock
        url, hops = origin.robots_url, 0
        while True:
            outcome = self._fetch_once(url, address)
            asked_s = clock.now()
            if outcome is None:
                return RobotsProbe(lookup, UNKNOWN, asked_s, _TOO_SLOW)
            target = _find_redirect(outcome)
            if target is None:
                return RobotsProbe(lookup, _parse_state(outcome, hops, asked_s), asked_s)
            rest_s = clock.to_wall_s(self._settings.config.crawl.delay_s)
            if hops == MAX_HOPS or rest_s > self._remaining_s or not self._is_same_place(origin_of(target), origin):
                elsewhere = f"robots.txt redirects to {target}; the crawler will follow that."
                return RobotsProbe(lookup, UNKNOWN, asked_s, elsewhere)
            time.sleep(rest_s)  # politeness: the host has just responded
            url, hops = target, hops + 1

    def _is_same_place(self, target: Origin, origin: Origin) -> bool:
        """Check whether a robots.txt redirect stays on the previewed host, and on its override if it has one."""
        detours = [find_endpoint(each, self._settings.detours) for each in (target, origin)]
        return target.host == origin.host and (detours[0] is None) == (detours[1] is None)

    def _fetch_once(self, url: str, address: str) -> FetchOutcome | None:
        origin = origin_of(url)
        route = find_endpoint(origin, self._settings.detours) or Endpoint(address, origin.port)
        self._client.submit(FetchRequest(url, "robots", build_headers("robots", self._settings.agent)), route)
        while self._remaining_s > 0:
            for outcome in self._client.wait(min(self._remaining_s, 0.5)):
                return outcome
        return None


def _find_redirect(outcome: FetchOutcome) -> str | None:
    if not isinstance(outcome, FetchResponse) or outcome.status not in REDIRECTS:
        return None
    return resolve(outcome.header("location") or "", outcome.url)


def _parse_state(outcome: FetchOutcome, hops: int, now_s: float) -> RobotsState:
    if isinstance(outcome, FetchResponse):
        event = RobotsResponse(now_s, outcome.status, outcome.body, hops, outcome.headers)
        return robots_state.apply_event(UNKNOWN, event, PRODUCT)
    return robots_state.apply_event(UNKNOWN, RobotsFailure(now_s, str(outcome.failure)), PRODUCT)


def _describe_refusal(lookup: Lookup) -> str:
    """Describe why a site preview did not fetch robots.txt from a host, and what to do about it."""
    if lookup.failure is Failure.NAME:
        return "The host name does not resolve: check the spelling."
    if not lookup.addresses:
        return "robots.txt was not fetched because the DNS resolver does not respond. The crawler will try again."
    if any(map(is_public, lookup.addresses)):
        return "Not fetched: no contact is set, and operators of public hosts must be able to reach you."
    return "Not fetched: its address is private, and private addresses are not allowed."


MAX_NAMED = 3


def describe_addresses(lookup: Lookup) -> str:
    """Describe a previewed host's DNS addresses, or why there are none."""
    if lookup.failure is Failure.NAME:
        return "host name does not resolve"
    return ", ".join(lookup.addresses) or "the DNS resolver does not respond"


def collect_warnings(
    site: Site,
    others: Sequence[Site],
    rules: Sequence[Rule],
    found: tuple[Lookup, RobotsPreview],
    settings: RuntimeSettings,
) -> tuple[str, ...]:
    """Collect warnings about a site for its preview, most severe first: address, robots.txt, overlap, block."""
    lookup, robots = found
    return (
        *_warn_address(site, lookup, settings),
        *_warn_robots(site, robots),
        *_warn_overlap(site, others),
        *_warn_blocked(site, rules),
    )


def _warn_address(site: Site, lookup: Lookup, settings: RuntimeSettings) -> Iterator[str]:
    if lookup.failure is Failure.NAME:
        yield f"The host name {lookup.host} does not resolve. Check the spelling."
        return
    public = [address for address in lookup.addresses if is_public(address)]
    if public and not settings.config.crawl.contact:
        yield (
            "No contact is set. Vedette will not fetch anything from public hosts until you set one, because their "
            "operators must be able to reach you. "
            "Set it under Contact on the Sites page."
        )
    if lookup.addresses and not public and not (site.allow_private or settings.allow_private):
        yield (
            f"{lookup.host} has the private address {lookup.addresses[0]}, so nothing is fetched from it. "
            "If that is intended, allow private addresses under “More” below."
        )


def _warn_robots(site: Site, robots: RobotsPreview) -> Iterator[str]:
    if robots.says == "disallowed" and not site.ignore_robots:
        yield (
            f"robots.txt disallows {site.start} with the line “{robots.line}”, so the crawl cannot start there. "
            "Start at a page that is allowed."
        )


def _warn_overlap(site: Site, others: Sequence[Site]) -> Iterator[str]:
    existing = find_site(site.start, others)
    if existing is not None and existing.start == site.start:
        yield f"{site.start} is already a site."
        return
    if existing is not None:
        yield f"{existing.start} already covers this URL (scope {existing.scope}); its settings apply to URLs in both."
    inside = [other.start for other in others if check_scope(other.start, site) is None]
    if inside:
        more = f" and {len(inside) - MAX_NAMED} more" if len(inside) > MAX_NAMED else ""
        yield f"It covers the start URL of {', '.join(inside[:MAX_NAMED])}{more}, whose settings apply to URLs in both."


def _warn_blocked(site: Site, rules: Sequence[Rule]) -> Iterator[str]:
    blocked = frozenset(rule.value for rule in rules if rule.kind == "block")
    host = origin_of(site.start).host
    if is_in_domains(host, blocked):
        yield f"{host} belongs to a blocked domain: nothing is fetched until you unblock it on the Rules page."
