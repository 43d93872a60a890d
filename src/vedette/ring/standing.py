"""How a crawl stands, in words: whether it is over, and why hosts are not being asked."""

from collections import Counter
from math import inf

from vedette.ring.hosts import Hosts
from vedette.ring.kept import KeptHost

__all__ = ["ending", "waits", "why"]


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
    return "being asked" if host.busy else "resting" if host.ready_s > now_s else "waiting for a worker"
