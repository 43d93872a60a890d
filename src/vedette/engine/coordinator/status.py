"""How a crawl stands, in words: whether it is over, and why hosts are not being asked."""

from collections import Counter
from heapq import nsmallest
from math import inf
from typing import NamedTuple

from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.state import KeptHost

__all__ = ["HostStanding", "ending", "listed", "waits", "why"]


class HostStanding(NamedTuple):
    """A host with something to do: how many URLs wait, why it is not asked for more, and what is on its way.

    ``ready_s`` is when it may be asked, None where that depends on others; ``trouble`` is empty where there is none.
    """

    name: str
    waiting: int
    why: str
    ready_s: float | None
    out: int
    trouble: str


def ending(hosts: Hosts, now_s: float, patience_s: float) -> str | None:
    """With no page out: ``done`` when nothing is left, ``stuck`` when only hosts in trouble are; else None."""
    left = hosts.left()
    if not left:
        return "done"
    far_s = now_s + patience_s
    stuck = all(not host.busy and host.trouble and hosts.soonest_s(host) > far_s for host in left)
    return "stuck" if stuck else None


def waits(hosts: Hosts, now_s: float) -> dict[str, int]:
    """Why hosts are not being asked, and how many for each reason."""
    waiting = (host for host in hosts.by_name.values() if host.busy or host.errands or hosts.waiting_for(host))
    return dict(sorted(Counter(why(host, now_s) for host in waiting).items()))


def listed(hosts: Hosts, now_s: float, most: int) -> tuple[list[HostStanding], int]:
    """The hosts with something to do, those in trouble first and then the longest queues; and how many there are."""
    busy = [
        (not host.trouble, -waiting, host.name)
        for host in hosts.by_name.values()
        if (waiting := hosts.waiting(host)) or host.busy or host.errands
    ]
    first = nsmallest(max(most, 0), busy)
    return [_standing(hosts, hosts.by_name[name], now_s) for _, _, name in first], len(busy)


def _standing(hosts: Hosts, host: KeptHost, now_s: float) -> HostStanding:
    ready_s = hosts.soonest_s(host)
    return HostStanding(
        host.name,
        hosts.waiting(host),
        why(host, now_s),
        ready_s if ready_s < inf else None,
        len(host.out) + len(host.asked),
        host.trouble,
    )


def why(host: KeptHost, now_s: float) -> str:
    """Why a host is not being asked for more."""
    if host.trouble:
        return host.trouble
    if host.paused_s == inf:
        return "its site is paused"
    if host.robots_wait:
        return "waiting for its robots.txt"
    if host.resolving:
        return "being looked up"
    if host.short_of:
        return host.short_of
    return "being asked" if host.busy else "resting" if host.ready_s > now_s else "waiting for a worker"
