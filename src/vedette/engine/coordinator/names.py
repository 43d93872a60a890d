"""From names to addresses: which hosts are to be looked up, and when again where the resolver was silent.

An address holds for half an hour. A resolver that does not answer is asked again after pauses that double; its trouble
is not the host's, so nothing is given up meanwhile. A name that does not exist, or lies only at addresses that may not
be asked, closes the host: what waits for it has failed.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

from vedette.engine.coordinator.state import KeptHost, Rules
from vedette.fetch.connect_to import detour_for
from vedette.model import Failure, Origin

__all__ = ["Lookups", "detour_of"]

LOOKUP_LIFE_S = 1800.0
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0


class Lookups:
    """The names whose lookup failed for the moment."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []

    def due(self, now_s: float) -> list[str]:
        """The names to be looked up again."""
        due = []
        while self._heap and self._heap[0][0] <= now_s:
            due.append(heappop(self._heap)[1])
        return due

    def next_s(self) -> float | None:
        """When the first of them is due."""
        return self._heap[0][0] if self._heap else None

    def heard(self, host: KeptHost, allowed: Sequence[str], failure: Failure | None, now_s: float) -> None:
        """A resolver spoke; of what it said, these addresses may be asked."""
        if failure is Failure.RESOLVER:
            self._later(host, now_s)
            return
        host.resolving, host.lookups, host.lookup_trouble = False, 0, ""
        host.closed = None if allowed else failure or Failure.ADDRESS
        host.address = allowed[0] if allowed else None
        host.address_until_s = now_s + LOOKUP_LIFE_S

    def _later(self, host: KeptHost, now_s: float) -> None:
        pause_s = min(FIRST_PAUSE_S * 2.0**host.lookups, LONGEST_PAUSE_S)
        host.resolving, host.lookup_trouble = True, str(Failure.RESOLVER)
        host.lookups = min(host.lookups + 1, 16)
        host.paused_lookup_s = now_s + pause_s
        heappush(self._heap, (host.paused_lookup_s, host.name))


def detour_of(host: KeptHost, rules: Rules) -> str | None:
    """The address that stands in for a host; None where a port of it, as far as is known, has none of these."""
    ports = tuple(host.origins) or (Origin("https", host.name, 443), Origin("http", host.name, 80))
    routes = [detour_for(port, rules.detours) for port in ports]
    return routes[0].address if routes[0] and all(routes) else None
