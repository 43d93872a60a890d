"""The hosts in play by the earliest time at which there may be something to ask of them.

A heap whose entries are never taken out of its middle: an entry counts only while it says what its host says
(``queued_s``). Whoever comes to a host before its time simply puts it back.
"""

from heapq import heappop, heappush

from vedette.engine.coordinator.state import KeptHost

__all__ = ["Calendar"]


class Calendar:
    """Hosts to come back to, each at most once."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, KeptHost]] = []
        self._number = 0

    def put(self, host: KeptHost, at_s: float) -> None:
        """Come back to this host then, unless it is to be come back to earlier."""
        if host.queued_s is None or at_s < host.queued_s:
            host.queued_s = at_s
            self._number += 1
            heappush(self._heap, (at_s, self._number, host))

    def take(self, until_s: float) -> KeptHost | None:
        """The first host whose time comes until then; it is no longer in the calendar."""
        self._skip()
        if not self._heap or self._heap[0][0] > until_s:
            return None
        host = heappop(self._heap)[2]
        host.queued_s = None
        return host

    def next_s(self) -> float | None:
        """The time of the first host."""
        self._skip()
        return self._heap[0][0] if self._heap else None

    def _skip(self) -> None:
        while self._heap and self._heap[0][2].queued_s != self._heap[0][0]:
            heappop(self._heap)
