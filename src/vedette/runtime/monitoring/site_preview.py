"""What an operator should know of a site before it is one: where its host lies, and what to think of first."""

import time
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple, Self

from vedette.adapters.clock import Clock
from vedette.adapters.net.dns import Lookup, Resolver
from vedette.adapters.net.http import Client, Limits, Way
from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import in_scope, site_of
from vedette.engine.search.hidden import lies_in
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import Route, detour_for
from vedette.fetch.request import PRODUCT, page_headers
from vedette.fetch.robots import state as robots_state
from vedette.fetch.robots.state import UNKNOWN, Allowed, Disallowed, RobotsAnswered, RobotsSilent, RobotsState, Standing
from vedette.model import Answer, Ask, Failure, Origin, Outcome, Site, origin_of
from vedette.runtime.processes.settings import LiveSettings, rules_for
from vedette.web.commands.commands import Rule
from vedette.web.console.ports.sites import RobotsLook, RobotsSays

__all__ = ["Scout", "Seen", "addresses_in_words", "from_state", "unasked", "warnings_of"]

# Politeness holds here as in the crawl. A host that is crawled, or was, is not asked: its robots.txt is known, or the
# keeper asks for it in its own time. Others are asked one after the other, with a rest between the hops of a
# redirect; what they said is remembered for a while. When the last request ended is told, so that the host can have
# its rest before the crawl asks for anything. No secrets are sent: the site is not one yet.


LONGEST_S = 10.0
REMEMBERED_S = 600.0
MOST_REMEMBERED = 1000
MOST_HOPS = 2
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LEFT_ALONE = "Its host is known to the crawl, which reads robots.txt before any page; it was not asked for this."
_ASKED_BEFORE = "It was asked for a moment ago; the crawl reads it before any page."


class Seen(NamedTuple):
    """What asking brought: the addresses of the host, and its robots.txt as far as it was had.

    ``why_not`` says why nothing was asked.
    """

    lookup: Lookup
    state: RobotsState = UNKNOWN
    asked_s: float | None = None
    why_not: str = ""


def from_state(site: Site, state: RobotsState, now_s: float) -> RobotsLook:
    """What a copy says that is at hand already."""
    return _look(site, state, now_s, robots_state.explain(state, now_s))


def unasked(site: Site, words: str, asked_s: float | None = None) -> RobotsLook:
    """Nothing is known of it yet, and why."""
    return RobotsLook(origin_of(site.start).robots_url, "unasked", "", words, asked_s=asked_s)


def _look(site: Site, state: RobotsState, now_s: float, words: str, asked_s: float | None = None) -> RobotsLook:
    url = origin_of(site.start).robots_url
    verdict = robots_state.verdict(state, site.start, now_s)
    if isinstance(verdict, Disallowed):
        return RobotsLook(url, "disallowed", verdict.rule, words, state.crawl_delay_s, state.sitemaps, asked_s)
    if isinstance(verdict, Allowed):
        return RobotsLook(url, "allowed", verdict.rule or "", words, state.crawl_delay_s, state.sitemaps, asked_s)
    says: RobotsSays = "waits" if state.standing is Standing.WAITING else "unasked"
    return RobotsLook(url, says, "", words, asked_s=asked_s)


class Scout:
    """Goes ahead to hosts that nobody crawls, one at a time."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._rules = rules_for(settings, [])
        self._one_at_a_time = Lock()
        self._seen: dict[tuple[Origin, bool], tuple[float, Seen]] = {}

    def lookup(self, origin: Origin) -> Lookup:
        """Where a host lies; the host itself is not asked."""
        with self._walk() as walk:
            return walk.find(origin)

    def look(self, site: Site, asked_s: float | None = None, *, may_ask: bool = True) -> tuple[Lookup, RobotsLook]:
        """Where a site's host lies and what its robots.txt says; takes at most ten seconds or so.

        ``asked_s`` is when it was asked before, perhaps by another process.
        """
        origin = origin_of(site.start)
        seen = self._remembered(origin, site, may_ask=may_ask)
        if seen is None:
            return self.lookup(origin), unasked(site, _LEFT_ALONE if asked_s is None else _ASKED_BEFORE, asked_s)
        if seen.state.standing is Standing.UNKNOWN:
            return seen.lookup, unasked(site, seen.why_not, seen.asked_s)
        now_s = self._settings.clock.now()
        return seen.lookup, _look(site, seen.state, now_s, robots_state.explain(seen.state, now_s), seen.asked_s)

    def _remembered(self, origin: Origin, site: Site, *, may_ask: bool) -> Seen | None:
        """What was seen there; None where nothing was, and it may not be asked."""
        key = origin, site.allow_private
        if not self._one_at_a_time.acquire(timeout=LONGEST_S):
            return Seen(Lookup(origin.host, ()), why_not="Others are being asked just now; try again in a moment.")
        try:
            until_s, seen = self._seen.get(key, (0.0, None))
            if seen is not None and time.monotonic() < until_s:
                return seen
            return self._sent(*key) if may_ask else None
        finally:
            self._one_at_a_time.release()

    def _keep(self, key: tuple[Origin, bool], seen: Seen) -> None:
        """What was not asked can be tried again at once."""
        if seen.asked_s is None:
            return
        if len(self._seen) >= MOST_REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = time.monotonic() + REMEMBERED_S, seen

    def _sent(self, origin: Origin, private: bool) -> Seen:  # noqa: FBT001 - half of what is remembered by
        with self._walk() as walk:
            lookup = walk.find(origin)
            allowed = [each for each in lookup.addresses if self._rules.may_ask(each, private=private)]
            seen = walk.ask(origin, lookup, allowed[0]) if allowed else Seen(lookup, why_not=_why_not(lookup))
        self._keep((origin, private), seen)
        return seen

    def _walk(self) -> "_Walk":
        crawl = self._settings.config.crawl
        limits = Limits(min(crawl.connect_timeout_s, LONGEST_S), min(crawl.timeout_s, LONGEST_S))
        return _Walk(self._settings, Client(self._settings.clock, limits, Way(crawl.proxy, crawl.ca_file)))


class _Walk:
    """The way to one robots.txt, with an end."""

    def __init__(self, settings: LiveSettings, client: Client) -> None:
        self._settings = settings
        self._client = client
        self._resolver = Resolver(1)
        self._until_s = time.monotonic() + LONGEST_S
        client.watch(self._resolver.fd, self._resolver.drain)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._resolver.close()

    @property
    def _left_s(self) -> float:
        return self._until_s - time.monotonic()

    def find(self, origin: Origin) -> Lookup:
        """The addresses of a host; a resolver that is slow is not waited for."""
        detour = detour_for(origin, self._settings.detours)
        if detour is not None:
            return Lookup(origin.host, (detour.address,))
        self._resolver.ask(origin.host)
        while self._left_s > 0:
            self._client.wait(min(self._left_s, 0.1))
            for answer in self._resolver.answers():
                return answer
        return Lookup(origin.host, (), Failure.RESOLVER)

    def ask(self, origin: Origin, lookup: Lookup, address: str) -> Seen:
        """The file itself, over a few hops within its host; each hop has its rest before it."""
        clock: Clock = self._settings.clock
        url, hops = origin.robots_url, 0
        while True:
            outcome = self._outcome(url, address)
            asked_s = clock.now()
            if outcome is None:
                return Seen(lookup, UNKNOWN, asked_s, "It took too long to come. The crawl reads it before any page.")
            target = _redirect(outcome)
            if target is None:
                return Seen(lookup, _state(outcome, hops, asked_s), asked_s)
            rest_s = clock.wall_delay(self._settings.config.crawl.delay_s)
            if hops == MOST_HOPS or rest_s > self._left_s or not self._is_as_near(origin_of(target), origin):
                return Seen(
                    lookup, UNKNOWN, asked_s, f"robots.txt is said to be at {target}: the crawl will ask there."
                )
            time.sleep(rest_s)  # politeness: the host has just answered
            url, hops = target, hops + 1

    def _is_as_near(self, target: Origin, origin: Origin) -> bool:
        """Whether a redirect stays with its host; where a detour stands in for that, also with the detour."""
        detours = [detour_for(each, self._settings.detours) for each in (target, origin)]
        return target.host == origin.host and (detours[0] is None) == (detours[1] is None)

    def _outcome(self, url: str, address: str) -> Outcome | None:
        origin = origin_of(url)
        route = detour_for(origin, self._settings.detours) or Route(address, origin.port)
        self._client.submit(Ask(url, "robots", page_headers("robots", self._settings.agent)), route)
        while self._left_s > 0:
            for outcome in self._client.wait(min(self._left_s, 0.5)):
                return outcome
        return None


def _redirect(outcome: Outcome) -> str | None:
    if not isinstance(outcome, Answer) or outcome.status not in REDIRECTS:
        return None
    return resolve(outcome.header("location") or "", outcome.url)


def _state(outcome: Outcome, hops: int, now_s: float) -> RobotsState:
    if isinstance(outcome, Answer):
        event = RobotsAnswered(now_s, outcome.status, outcome.body, hops, outcome.headers)
        return robots_state.observe(UNKNOWN, event, PRODUCT)
    return robots_state.observe(UNKNOWN, RobotsSilent(now_s, str(outcome.failure)), PRODUCT)


def _why_not(lookup: Lookup) -> str:
    """Why a host is not asked, and what to do about it."""
    if lookup.failure is Failure.NAME:
        return "The name does not exist, as far as the resolver knows: check the spelling."
    if not lookup.addresses:
        return "The resolver does not answer, so robots.txt was not asked for. The crawl will ask by itself."
    if _some_public(lookup.addresses):
        return "It was not asked for: no contact is set, and a public host must be able to reach you."
    return "It was not asked for: its address is private, and private addresses are not allowed."


def _some_public(addresses: Sequence[str]) -> bool:
    return any(map(is_public, addresses))


MOST_NAMED = 3


def addresses_in_words(lookup: Lookup) -> str:
    """Where a host lies."""
    if lookup.failure is Failure.NAME:
        return "no such name, as far as the resolver knows"
    return ", ".join(lookup.addresses) or "the resolver does not answer"


def warnings_of(
    site: Site,
    others: Sequence[Site],
    rules: Sequence[Rule],
    found: tuple[Lookup, RobotsLook],
    settings: LiveSettings,
) -> tuple[str, ...]:
    """What an operator should think of before a site is added, the gravest first."""
    lookup, robots = found
    return (
        *_of_address(site, lookup, settings),
        *_of_robots(site, robots),
        *_of_others(site, others),
        *_of_rules(site, rules),
    )


def _of_address(site: Site, lookup: Lookup, settings: LiveSettings) -> Iterator[str]:
    if lookup.failure is Failure.NAME:
        yield f"{lookup.host} does not exist, as far as the resolver knows. Check the spelling."
        return
    public = [address for address in lookup.addresses if is_public(address)]
    if public and not settings.config.crawl.contact:
        yield (
            "No contact is set, so nothing is fetched from public hosts: whoever runs them must be able to reach you. "
            "Set crawl.contact in vedette.toml and start again."
        )
    if lookup.addresses and not public and not (site.allow_private or settings.allow_private):
        yield (
            f"{lookup.host} lies at the private address {lookup.addresses[0]}, where nothing is fetched. "
            "Allow private addresses under “More” below if you mean it."
        )


def _of_robots(site: Site, robots: RobotsLook) -> Iterator[str]:
    if robots.says == "disallowed" and not site.ignore_robots:
        yield (
            f"robots.txt disallows {site.start} by the line “{robots.line}”, so it is not fetched and no link is found "
            "there. Begin at a page that is allowed."
        )


def _of_others(site: Site, others: Sequence[Site]) -> Iterator[str]:
    taken = site_of(site.start, others)
    if taken is not None and taken.start == site.start:
        yield f"{site.start} is a site already."
        return
    if taken is not None:
        yield f"{taken.start} takes this start already (scope {taken.scope}); its settings hold for what both take."
    inside = [other.start for other in others if in_scope(other.start, site) is None]
    if inside:
        more = f" and {len(inside) - MOST_NAMED} more" if len(inside) > MOST_NAMED else ""
        yield f"It takes the start of {', '.join(inside[:MOST_NAMED])}{more}, whose settings hold for what both take."


def _of_rules(site: Site, rules: Sequence[Rule]) -> Iterator[str]:
    blocked = frozenset(rule.value for rule in rules if rule.kind == "block")
    host = origin_of(site.start).host
    if lies_in(host, blocked):
        yield f"{host} is on a domain that you blocked: nothing of it is fetched unless you unblock it under Rules."
