"""Crawl status: whether a crawl has finished, and why hosts are not being fetched from, in words."""

from collections import Counter
from heapq import nsmallest
from math import inf
from typing import NamedTuple

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import HostState


class HostStatus(NamedTuple):
    """Status of a host with work: how many URLs wait, why none is requested, what is in flight.

    ``ready_s`` is when it may be requested, None if that depends on others; ``trouble`` is empty if there is none.
    """

    name: str
    waiting: int
    why: str
    ready_s: float | None
    out: int
    trouble: str


def find_ending(hosts: HostTable, now_s: float, patience_s: float) -> str | None:
    """Return ``done`` when no URL is left, ``stuck`` when only hosts in trouble are; else None."""
    left = hosts.list_unfinished()
    if not left:
        return "done"
    far_s = now_s + patience_s
    stuck = all(not host.busy and host.trouble and hosts.soonest_s(host) > far_s for host in left)
    return "stuck" if stuck else None


def find_next_try_s(hosts: HostTable) -> float:
    """Return when the first troubled host may be requested again; infinity if there is none."""
    troubled = (host for host in hosts.by_name.values() if host.trouble and hosts.has_waiting(host))
    return min(map(hosts.soonest_s, troubled), default=inf)


def count_waits(hosts: HostTable, now_s: float) -> dict[str, int]:
    """Count hosts by the reason why they are not being fetched from."""
    waiting = (host for host in hosts.by_name.values() if host.busy or host.robots_tasks or hosts.has_waiting(host))
    return dict(sorted(Counter(explain_wait(host, now_s) for host in waiting).items()))


def list_hosts(hosts: HostTable, now_s: float, most: int) -> tuple[list[HostStatus], int]:
    """List the status of hosts with work, troubled ones first, then the longest queues; and their number."""
    busy = [
        (not host.trouble, -waiting, host.name)
        for host in hosts.by_name.values()
        if (waiting := hosts.count_waiting(host)) or host.busy or host.robots_tasks
    ]
    first = nsmallest(max(most, 0), busy)
    return [_build_status(hosts, hosts.by_name[name], now_s) for _, _, name in first], len(busy)


def _build_status(hosts: HostTable, host: HostState, now_s: float) -> HostStatus:
    ready_s = hosts.soonest_s(host)
    return HostStatus(
        host.name,
        hosts.count_waiting(host),
        explain_wait(host, now_s),
        ready_s if ready_s < inf else None,
        len(host.in_flight) + len(host.robots_in_flight),
        host.trouble,
    )


def explain_host(hosts: HostTable, name: str, now_s: float) -> tuple[str, float]:
    """Explain why a host is not being fetched from, and when it may be."""
    host = hosts.by_name.get(name)
    return (explain_wait(host, now_s), hosts.soonest_s(host)) if host else ("no URLs to fetch", now_s)


def explain_wait(host: HostState, now_s: float) -> str:
    """Explain in words why a host waits in the crawl status."""
    if host.trouble:
        return host.trouble
    if host.paused_until_s == inf:
        return "its site is paused"
    if host.robots_pending:
        return "waiting for its robots.txt"
    if host.budget_wait and not host.resolving:
        return host.budget_wait
    if host.resolving or host.awaits_turn:
        awaited = "DNS" if host.resolving else "its address, which another shard is requesting"
    else:
        awaited = "a response" if host.busy else "its delay" if host.ready_s > now_s else "a worker"
    return f"waiting for {awaited}"
