"""Assignments by costs: who observes the hosts that no operator assigned, by eq. 41-42 with what was measured.

An observer is assumed to be next to a host that it has not observed yet. So each ``--auto`` observer tries a host that
it could be clearly faster for, a few at a time; then the measured costs decide, and go on deciding as they drift.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vedette.adapters.observers.registry import ObservedHostRow
from vedette.fetch.observers.assignment import HOME, HostCosts, choose_place
from vedette.fetch.observers.costs import LinkMeter, compute_direct_s
from vedette.runtime.observers.desk import LEASE_S, ErrandDesk

JUDGE_EVERY_S = 600.0
MAX_TRIALS = 4
TRIAL = "on trial, at best "

Request = dict[str, Any]


class Candidate(NamedTuple):
    """A host at home that an observer may get, with what fetches from home take; home has it since ``since_s``."""

    meter: LinkMeter
    since_s: float = 0.0


def judge_hosts(desk: ErrandDesk, candidates: Mapping[str, Candidate], now_s: float) -> list[Request]:
    """Choose who observes the hosts that are judged by costs, and try some of the candidates at home."""
    groups = dict.fromkeys(desk.list_neighbors(row.host, row.observer) for row in desk.assigned.values())
    moved = [one for hosts in groups for one in _judge(desk, [desk.assigned[host] for host in sorted(hosts)], now_s)]
    room = {
        name: MAX_TRIALS - sum(row.observer == name and row.why.startswith(TRIAL) for row in desk.assigned.values())
        for name in _list_heard(desk, now_s)
    }
    for host, one in candidates.items():
        costs = find_costs(desk, {host: one.meter}, [name for name in room if room[name] > 0])
        place = choose_place(HostCosts(host, costs, since_s=one.since_s), now_s)
        if place != HOME:
            room[place] -= 1
            desk.get_facts(place).direct[host] = one.meter
            is_known = desk.get_facts(place).find_costs(host) is not None
            moved.append(_move([host], place, ("" if is_known else TRIAL) + _describe(place, costs)))
    return moved


def find_costs(desk: ErrandDesk, meters: Mapping[str, LinkMeter], observers: Sequence[str]) -> dict[str, float]:
    """Find the seconds of an observation of each host, summed up: from home, and by observers, measured or at best.

    Observers that a host refuses are missing; so are all before fetches from home were measured.
    """
    links = {host: link for host, meter in meters.items() if (link := meter.fit()) is not None}
    if not links:
        return {}
    costs = {HOME: sum(compute_direct_s(1.0, link, meters[host].mean_bytes) for host, link in links.items())}
    for name in observers:
        facts = desk.get_facts(name)
        known = {host: facts.find_costs(host) for host in links}
        best = {host: facts.estimate_best(meters[host].mean_bytes) for host in links}
        seconds = [one.remote_s if one is not None else best[host] for host, one in known.items()]
        if not any(map(facts.is_refused, meters)) and None not in seconds:
            costs[name] = sum(filter(None, seconds))
    return costs


def _judge(desk: ErrandDesk, rows: Sequence[ObservedHostRow], now_s: float) -> Iterator[Request]:
    """Judge who should observe the hosts that an observer has at one address; they stay together."""
    hosts, name = [row.host for row in rows], rows[0].observer
    facts, since_s = desk.get_facts(name), max(row.since_s for row in rows)
    if any(row.by_hand or row.next is not None for row in rows):
        return
    if any(map(facts.is_refused, hosts)):
        yield _move(hosts, HOME, f"most requests of {name} are refused or fail")
    elif now_s - max(desk.store.get_contact(name).heard_s, since_s) > LEASE_S:
        yield _move(hosts, HOME, f"{name} has not reported for {LEASE_S / 3600:.0f} hours")
    elif known := {host: one for host in hosts if (one := facts.find_costs(host)) is not None}:
        others = [one for one in _list_heard(desk, now_s) if one != name]
        costs = find_costs(desk, {host: facts.direct[host] for host in known}, others)
        costs |= {
            HOME: sum(one.direct_s for one in known.values()),
            name: sum(one.remote_s for one in known.values()),
        }
        place = choose_place(HostCosts(hosts[0], costs, place=name, since_s=since_s), now_s)
        if place != name:
            is_trial = place != HOME and any(desk.get_facts(place).find_costs(host) is None for host in known)
            words = _describe(place, costs) if is_trial else _describe(name, costs)
            yield _move(hosts, place, (TRIAL if is_trial else "") + words)
        elif any(row.why.startswith(TRIAL) for row in rows):
            yield _move(hosts, name, _describe(name, costs))


def _list_heard(desk: ErrandDesk, now_s: float) -> list[str]:
    """List the observers that get hosts by costs, and have reported lately."""
    return [
        name
        for name, row in desk.observers.items()
        if row.is_auto and name in desk.held_hosts and now_s - desk.held_hosts[name][0] < JUDGE_EVERY_S
    ]


def _describe(observer: str, costs: Mapping[str, float]) -> str:
    return f"{costs[observer]:.3f} s by {observer}, {costs[HOME]:.3f} s from home when judged (eq. 41, 42)"


def _move(hosts: Sequence[str], observer: str, why: str) -> Request:
    return {"what": "assign", "hosts": list(hosts), "observer": observer, "why": why}
