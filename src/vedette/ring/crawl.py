"""A first crawl, step by step: found, ordered, asked for, read. ``step`` is the only door.

The order of the steps is that of ``vedette/__init__``; each is one short function. Nothing here waits: what may not
happen yet is a time in the frontier, and ``next_s`` says when to come back.
"""

from collections.abc import Iterable
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from vedette.decide import rng_for
from vedette.discover.normalize import normalize, resolve
from vedette.discover.scope import site_of
from vedette.facts import Answer, Ask, Failure, NoAnswer, Origin, Outcome, Page, Refusal, fingerprint, origin_of
from vedette.fetch import robots_state
from vedette.fetch.connect import Route, detour_for
from vedette.fetch.directives import from_headers, from_meta, merge
from vedette.fetch.polite import rest_after
from vedette.fetch.request import PRODUCT, page_headers
from vedette.fetch.robots_state import RobotsState
from vedette.order.frontier import Taken
from vedette.order.policies.breadth import Breadth
from vedette.order.unseen import Unseen
from vedette.parse.html import Reading, decode_text, is_html, read_html
from vedette.ring.events import (
    Begin,
    Came,
    Command,
    Event,
    GiveUp,
    Keep,
    KeepRobots,
    Known,
    Named,
    Refuse,
    Remember,
    Resolve,
    Seen,
    Send,
    Tick,
)
from vedette.ring.state import Crawl, Errand, Host

__all__ = ["idle", "next_s", "step", "stuck"]

POLICY = Breadth()
FIRST = float("inf")
REDIRECTS = frozenset({301, 302, 303, 307, 308})
FIRST_LOOKUP_PAUSE_S = 5.0
LONGEST_LOOKUP_PAUSE_S = 300.0
HOPELESS = frozenset({Failure.TLS, Failure.TOO_LARGE, Failure.PROTOCOL})
EMPTY = Reading("", (), None, ())


def step(crawl: Crawl, event: Event, now_s: float) -> list[Command]:
    """What follows from an event; the commands are to be carried out in their order."""
    if isinstance(event, Tick):
        return _tick(crawl, event.room, now_s)
    if isinstance(event, Came):
        return _came(crawl, event.outcome)
    if isinstance(event, Named):
        return _named(crawl, event, now_s)
    return _begin(crawl, event, now_s)


def next_s(crawl: Crawl) -> float | None:
    """When a tick may bring something that it does not bring now; None if only an event can."""
    times = [crawl.retries[0][0]] if crawl.retries else []
    if not crawl.full() and (ready_s := crawl.frontier.next_s()) is not None:
        times.append(ready_s)
    return min(times, default=None)


def idle(crawl: Crawl) -> bool:
    """Whether nothing is out and nothing is left to ask for."""
    waiting = len(crawl.frontier) or any(host.unnamed for host in crawl.hosts.values())
    return not crawl.frontier.busy and (crawl.full() or not waiting)


def stuck(crawl: Crawl, now_s: float, patience_s: float) -> list[Host]:
    """The hosts in trouble, if they are all that is left and none may be asked within ``patience_s``; else nothing."""
    soonest_s = next_s(crawl)
    if crawl.frontier.busy or soonest_s is None or soonest_s <= now_s + patience_s:
        return []
    left = [host for host in crawl.hosts.values() if host.unnamed or crawl.frontier.waiting(host.name)]
    return left if all(host.trouble for host in left) else []


# 1 discover


def _begin(crawl: Crawl, event: Begin, now_s: float) -> list[Command]:
    known = event.known or Known(frozenset(), (), {})
    crawl.known.update(known.fingerprints)
    crawl.robots.update(known.robots)
    crawl.resumed_s = now_s if event.known else None
    resumed = _queue(crawl, [(seen, 0) for seen in known.waiting], now_s)
    return resumed + _found(crawl, ((site.start, 0, 0) for site in crawl.rules.sites), now_s)


def _found(crawl: Crawl, urls: Iterable[tuple[str, int, int]], now_s: float) -> list[Command]:
    """URLs with their depth and redirects so far: the unseen ones that belong to a site are remembered and queued."""
    fresh: list[tuple[Seen, int]] = []
    for url, depth, hops in urls:
        site = site_of(url, crawl.rules.sites)
        name = normalize(url, site) if site else url
        if site and (mark := fingerprint(name)) not in crawl.known:
            crawl.known.add(mark)
            fresh.append((Seen(name, depth), hops))
    if not fresh:
        return []
    crawl.tally.seen += len(fresh)
    return [Remember(tuple(seen for seen, _ in fresh)), *_queue(crawl, fresh, now_s)]


# 2 order


def _queue(crawl: Crawl, fresh: list[tuple[Seen, int]], now_s: float) -> list[Command]:
    commands: list[Command] = []
    for (seen, hops), worth in zip(fresh, _worth(crawl, fresh, now_s), strict=True):
        commands += _enqueue(crawl, Errand(seen.url, "page", worth, seen.depth, hops), now_s)
    return commands


def _worth(crawl: Crawl, fresh: list[tuple[Seen, int]], now_s: float) -> list[float]:
    first = len(crawl.known) - len(fresh)
    batch = Unseen(
        depth=np.array([seen.depth for seen, _ in fresh], dtype=np.int64),
        found=np.arange(first, first + len(fresh), dtype=np.int64),
    )
    rng = rng_for(crawl.rules.seed, f"order/{POLICY.name}/{first}")
    worth: list[float] = POLICY.worth(POLICY.start(None), batch, now_s, rng).tolist()
    return worth


def _enqueue(crawl: Crawl, errand: Errand, now_s: float) -> list[Command]:
    """To the queue of the errand's host; an unknown host is looked up first."""
    host = _host_of(crawl, origin_of(errand.url))
    if host.closed:
        return _fail(crawl, errand, host.closed, now_s)
    if host.name in crawl.frontier:
        crawl.frontier.add(host.name, errand, errand.worth)
        return []
    host.unnamed.append(errand)
    if host.detour:
        return _named(crawl, Named(host.name, (host.detour,)), now_s)
    return [Resolve(host.name)] if len(host.unnamed) == 1 else []


def _host_of(crawl: Crawl, origin: Origin) -> Host:
    """The host that answers for an origin: a port that the operator sent elsewhere is another server."""
    if origin not in crawl.host_of:
        detour = detour_for(origin, crawl.rules.detours)
        address = detour.address if detour else None
        name = f"{origin.host} at {address}" if address else origin.host
        crawl.host_of[origin] = crawl.hosts.setdefault(name, Host(name, address))
    return crawl.host_of[origin]


def _named(crawl: Crawl, event: Named, now_s: float) -> list[Command]:
    host = crawl.hosts[event.host]
    if event.failure is Failure.RESOLVER:
        return _look_up_later(crawl, host, now_s)
    allowed = [address for address in event.addresses if crawl.rules.may_ask(address)]
    errands, host.unnamed = host.unnamed, []
    if not allowed:
        host.closed = event.failure or Failure.ADDRESS
        return [command for errand in errands for command in _fail(crawl, errand, host.closed, now_s)]
    host.address, host.rest_trouble = allowed[0], ""
    crawl.frontier.open(host.name, host.address, max(now_s, _rested_s(crawl, errands)))
    for errand in errands:
        crawl.frontier.add(host.name, errand, errand.worth)
    return []


def _rested_s(crawl: Crawl, errands: list[Errand]) -> float:
    """When a host of a resumed crawl has had its full rest: the earlier run may have asked it at its very end."""
    if crawl.resumed_s is None:
        return 0.0
    own_s = max(_delay_s(crawl, errand.url) for errand in errands)
    told_s = max(crawl.robots_of(origin_of(errand.url)).crawl_delay_s or 0.0 for errand in errands)
    return crawl.resumed_s + max(crawl.rules.address_delay_s, own_s, told_s)


def _look_up_later(crawl: Crawl, host: Host, now_s: float) -> list[Command]:
    pause_s = min(FIRST_LOOKUP_PAUSE_S * 2.0**host.lookups, LONGEST_LOOKUP_PAUSE_S)
    host.lookups = min(host.lookups + 1, 16)
    host.rest_trouble = Failure.RESOLVER
    heappush(crawl.retries, (now_s + pause_s, host.name))
    return []


# 3 fetch


def _tick(crawl: Crawl, room: int, now_s: float) -> list[Command]:
    commands: list[Command] = []
    while crawl.retries and crawl.retries[0][0] <= now_s:
        commands.append(Resolve(heappop(crawl.retries)[1]))
    while room > 0 and not crawl.full() and (taken := crawl.frontier.take(now_s)):
        sent = _ask(crawl, taken, now_s)
        commands += sent
        room -= sum(isinstance(command, Send) for command in sent)
    return commands


def _ask(crawl: Crawl, taken: Taken[Errand], now_s: float) -> list[Command]:
    """A host may be asked: for this errand, for its robots.txt first, or not yet."""
    errand = taken.item
    if errand.purpose == "robots":
        return _send(crawl, taken.host, errand)
    origin = origin_of(errand.url)
    verdict = robots_state.verdict(crawl.robots_of(origin), errand.url, now_s)
    if isinstance(verdict, robots_state.Allowed):
        return _send(crawl, taken.host, errand)
    if isinstance(verdict, robots_state.Disallowed):
        crawl.frontier.drop(taken)
        crawl.tally.refusals[Refusal.ROBOTS] += 1
        return [Refuse(errand.url, Refusal.ROBOTS, verdict.rule)]
    if isinstance(verdict, robots_state.Wait):
        crawl.hosts[taken.host].robots_trouble = f"robots.txt: {verdict.why}"
        crawl.frontier.put_back(taken, errand.worth, verdict.until_s)
        return []
    crawl.frontier.add(taken.host, errand, errand.worth)
    return _send(crawl, taken.host, Errand(origin.robots_url, "robots", FIRST, robots_of=origin))


def _send(crawl: Crawl, name: str, errand: Errand) -> list[Command]:
    host = crawl.hosts[name]
    assert host.out is None, f"{name} has something out already"
    assert host.address is not None, f"{name} has no address"
    host.out = errand
    crawl.tally.requests += 1
    crawl.pages_out += errand.purpose == "page"
    origin = origin_of(errand.url)
    route = detour_for(origin, crawl.rules.detours) or Route(host.address, origin.port)
    headers = page_headers(errand.purpose, crawl.rules.agent)
    if errand.robots_of is not None and not errand.hops:
        headers += robots_state.conditional_headers(crawl.robots_of(errand.robots_of))
    return [Send(Ask(errand.url, errand.purpose, headers), route)]


def _came(crawl: Crawl, outcome: Outcome) -> list[Command]:
    """An answer, or none: the host rests, and what came is read."""
    origin = origin_of(outcome.url)
    host = _host_of(crawl, origin)
    errand, host.out = host.out, None
    assert errand is not None, f"{host.name} had nothing out"
    host.answered_s = outcome.ended_s
    crawl.pages_out -= errand.purpose == "page"
    if errand.robots_of is not None:
        commands = _robots_came(crawl, errand, outcome)
    else:
        commands = _page_came(crawl, errand, outcome)
    rest = rest_after(
        outcome,
        host.strain,
        delay_s=_delay_s(crawl, outcome.url),
        crawl_delay_s=crawl.robots_of(origin).crawl_delay_s,
        address_delay_s=crawl.rules.address_delay_s,
    )
    host.strain = rest.strain
    host.rest_trouble = rest.why if rest.strain.in_a_row else ""
    crawl.frontier.done(host.name, rest.host_ready_s, rest.address_ready_s, hold=host.robots_away)
    return commands


def _delay_s(crawl: Crawl, url: str) -> float:
    """The site's own delay, for its robots.txt too, which may lie outside its scope; else the operator's."""
    host = origin_of(url).host
    site = site_of(url, crawl.rules.sites) or next(
        (s for s in crawl.rules.sites if origin_of(s.start).host == host), None
    )
    own_s = site.delay_s if site else None
    return crawl.rules.delay_s if own_s is None else own_s


# robots.txt


def _robots_came(crawl: Crawl, errand: Errand, outcome: Outcome) -> list[Command]:
    crawl.tally.robots += 1
    if isinstance(outcome, NoAnswer):
        return _robots_known(crawl, errand, robots_state.RobotsSilent(outcome.ended_s, str(outcome.failure)))
    target = _redirect_of(outcome)
    if target and errand.hops < robots_state.REDIRECTS_MAX:
        return _robots_hop(crawl, errand, target, outcome.ended_s)
    hops = errand.hops + (target is not None)
    answered = robots_state.RobotsAnswered(outcome.ended_s, outcome.status, outcome.body, hops, outcome.headers)
    return _robots_known(crawl, errand, answered)


def _robots_hop(crawl: Crawl, errand: Errand, target: str, now_s: float) -> list[Command]:
    """One redirect further; while the answer lies with another host, the host that it is for is held."""
    assert errand.robots_of is not None
    there, owner = _host_of(crawl, origin_of(target)), _host_of(crawl, errand.robots_of)
    owner.robots_away = there is not owner
    owner.robots_trouble = f"its robots.txt is asked of {there.name}" if owner.robots_away else ""
    commands = _enqueue(crawl, replace(errand, url=target, hops=errand.hops + 1), now_s)
    if not owner.robots_away:
        crawl.frontier.release(owner.name, now_s)
    return commands


def _robots_known(
    crawl: Crawl, errand: Errand, event: robots_state.RobotsAnswered | robots_state.RobotsSilent
) -> list[Command]:
    origin = errand.robots_of
    assert origin is not None
    state = robots_state.observe(crawl.robots_of(origin), event, PRODUCT, crawl.rules.robots_most_s)
    state = _outlasting(state, _delay_s(crawl, origin.robots_url), event.now_s)
    crawl.robots[origin] = state
    owner = _host_of(crawl, origin)
    owner.robots_away = False
    owner.robots_trouble = f"robots.txt: {state.why}" if state.standing is robots_state.Standing.WAITING else ""
    # A crawl-delay that another host told us counts from the owner's own last answer.
    crawl.frontier.release(owner.name, max(event.now_s, owner.answered_s + (state.crawl_delay_s or 0.0)))
    return [KeepRobots(origin, state)]


def _outlasting(state: RobotsState, delay_s: float, now_s: float) -> RobotsState:
    """Were a file stale after every rest, no page could ever be asked for: it holds for two rests, a day at most."""
    if state.standing not in {robots_state.Standing.READ, robots_state.Standing.UNAVAILABLE}:
        return state
    rests_s = 2 * max(delay_s, state.crawl_delay_s or 0.0)
    return replace(state, until_s=max(state.until_s, now_s + min(rests_s, robots_state.LIFETIME_MOST_S)))


# 4 parse


def _page_came(crawl: Crawl, errand: Errand, outcome: Outcome) -> list[Command]:
    if isinstance(outcome, NoAnswer):
        return _again_or_fail(crawl, errand, outcome.failure, outcome.ended_s)
    if outcome.status == 429 or outcome.status >= 500:
        return _again_or_fail(crawl, errand, f"status {outcome.status}", outcome.ended_s)
    crawl.tally.statuses[outcome.status] += 1
    target = _redirect_of(outcome)
    if target is not None:
        return _redirected(crawl, errand, outcome, target)
    reading, links = _read(outcome)
    crawl.tally.pages += outcome.status < 300
    crawl.tally.bytes += len(outcome.body)
    page = _page(errand, outcome, reading.title, links)
    return [Keep(page), *_found(crawl, ((url, errand.depth + 1, 0) for url in links), outcome.ended_s)]


def _again_or_fail(crawl: Crawl, errand: Errand, failure: str, now_s: float) -> list[Command]:
    tried = replace(errand, attempts=errand.attempts + 1)
    if tried.attempts < crawl.rules.most_attempts and failure not in HOPELESS:
        return _enqueue(crawl, tried, now_s)
    return _fail(crawl, tried, failure, now_s)


def _fail(crawl: Crawl, errand: Errand, failure: str, now_s: float) -> list[Command]:
    if errand.robots_of is not None:
        return _robots_known(crawl, errand, robots_state.RobotsSilent(now_s, failure))
    crawl.tally.failures[failure] += 1
    return [GiveUp(errand.url, failure, now_s)]


def _redirected(crawl: Crawl, errand: Errand, answer: Answer, target: str) -> list[Command]:
    """The target is a URL like any other: scope, robots.txt and address are checked when its turn comes."""
    crawl.tally.redirects += 1
    if errand.hops >= crawl.rules.most_redirects:
        return _fail(crawl, errand, f"more than {crawl.rules.most_redirects} redirects", answer.ended_s)
    page = replace(_page(errand, answer, "", ()), location=target)
    return [Keep(page), *_found(crawl, [(target, errand.depth, errand.hops + 1)], answer.ended_s)]


def _redirect_of(answer: Answer) -> str | None:
    location = answer.header("location")
    return resolve(location, answer.url) if location and answer.status in REDIRECTS else None


def _read(answer: Answer) -> tuple[Reading, tuple[str, ...]]:
    """What the page says, and where its links lead; none where it asks not to be followed."""
    content_type = answer.header("content-type") or ""
    if answer.status >= 300 or not is_html(content_type, answer.body):
        return EMPTY, ()
    reading = read_html(decode_text(answer.body, content_type))
    if not merge(from_headers(answer.headers, PRODUCT), from_meta(reading.robots_meta, PRODUCT)).follow:
        return reading, ()
    base = resolve(reading.base, answer.url) if reading.base else answer.url
    resolved = (resolve(href, base or answer.url) for href in reading.links)
    return reading, tuple(dict.fromkeys(url for url in resolved if url is not None))


def _page(errand: Errand, answer: Answer, title: str, links: tuple[str, ...]) -> Page:
    return Page(
        url=errand.url,
        depth=errand.depth,
        status=answer.status,
        fetched_s=answer.ended_s,
        title=title,
        links=links,
        body=answer.body,
        content_type=answer.header("content-type") or "",
        etag=answer.header("etag") or "",
        last_modified=answer.header("last-modified") or "",
    )
