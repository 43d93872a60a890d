"""Which observer gets which host, or home, by measured costs (Observe99, eq. 41-42).

A host only moves if that saves clearly, and only moves back if home is clearly faster, so that noise in the
measurements does not make it flap. A host also stays where it is for a while after each move.

Each observer can handle a limited number of requests per second. Hosts are assigned greedily, by seconds saved per
second of an observer's time. ``find_best_assignment`` tries all assignments, for comparison in small cases.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

# A host moves if the other place takes at most this part of the time, but not within this time after its last move.
SWITCH_SHARE = 0.8
MIN_STAY_S = 6 * 3600.0
HOME = ""


class HostCosts(NamedTuple):
    """A host: the seconds of an observation at each place (``HOME`` or an observer), and observations per second.

    A place that cannot reach the host is missing. The host has been at ``place`` since ``since_s``.
    """

    name: str
    seconds: Mapping[str, float]
    rate: float = 1.0
    place: str = HOME
    since_s: float = 0.0


def choose_place(host: HostCosts, now_s: float) -> str:
    """Choose the place of a host, with hysteresis.

    >>> far = HostCosts("far.test", {"": 1.0, "tokyo": 0.1})
    >>> choose_place(far, 1e6), choose_place(far._replace(since_s=1e6), 1e6)
    ('tokyo', '')
    >>> choose_place(far._replace(seconds={"": 1.0, "tokyo": 0.9}), 1e6)
    ''
    """
    best = min(host.seconds, key=lambda place: (host.seconds[place], place), default=host.place)
    current_s = host.seconds.get(host.place)
    if current_s is None:
        return best
    if now_s - host.since_s < MIN_STAY_S or host.seconds[best] > SWITCH_SHARE * current_s:
        return host.place
    return best


def assign_hosts(hosts: Sequence[HostCosts], room: Mapping[str, float], now_s: float) -> dict[str, str]:
    """Assign hosts to places greedily; ``room`` is how many seconds per second each observer can spend observing.

    >>> hosts = [HostCosts("a", {"": 1.0, "x": 0.1}), HostCosts("b", {"": 5.0, "x": 0.1})]
    >>> assign_hosts(hosts, {"x": 0.15}, 1e6)
    {'a': '', 'b': 'x'}
    """
    left = dict(room)
    places: dict[str, str] = {}
    for host in sorted(hosts, key=lambda host: (-_saving(host), host.name)):
        allowed = {
            place: cost_s
            for place, cost_s in host.seconds.items()
            if place == HOME or left.get(place, 0.0) >= cost_s * host.rate
        }
        places[host.name] = place = choose_place(host._replace(seconds=allowed), now_s) if allowed else host.place
        if place in left:
            left[place] -= host.seconds.get(place, 0.0) * host.rate
    return {host.name: places[host.name] for host in hosts}


def sum_cost_s(hosts: Sequence[HostCosts], places: Mapping[str, str]) -> float:
    """Add up the seconds per second that all observations take under an assignment."""
    return sum(host.seconds[places[host.name]] * host.rate for host in hosts)


def find_best_assignment(hosts: Sequence[HostCosts], room: Mapping[str, float]) -> dict[str, str]:
    """Find the assignment with the lowest total cost within the observers' capacity, by trying all.

    >>> hosts = [HostCosts("a", {"": 1.0, "x": 0.1}), HostCosts("b", {"": 5.0, "x": 0.1})]
    >>> find_best_assignment(hosts, {"x": 0.2})
    {'a': 'x', 'b': 'x'}
    """
    options = [sorted(host.seconds) for host in hosts]
    names = [host.name for host in hosts]
    possible = (dict(zip(names, places, strict=True)) for places in product(*options))
    return min((one for one in possible if _fits(hosts, one, room)), key=lambda one: sum_cost_s(hosts, one))


def _fits(hosts: Sequence[HostCosts], places: Mapping[str, str], room: Mapping[str, float]) -> bool:
    used = dict.fromkeys(room, 0.0)
    for host in hosts:
        if places[host.name] != HOME:
            used[places[host.name]] += host.seconds[places[host.name]] * host.rate
    return all(used[name] <= room[name] + 1e-12 for name in room)


def _saving(host: HostCosts) -> float:
    """Return the seconds that a host's best observer saves, per second that the observer spends."""
    remote = [cost_s for place, cost_s in host.seconds.items() if place != HOME]
    if not remote or HOME not in host.seconds:
        return float("inf") if remote else 0.0
    best_s = min(remote)
    return (host.seconds[HOME] - best_s) / max(best_s, 1e-9)
