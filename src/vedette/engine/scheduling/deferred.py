"""Deferred refreshes: queue of due pages that the saved-up refresh budget cannot pay for yet."""

from collections.abc import Iterable, Sequence
from itertools import islice

# Pages that cannot be paid for are checked again after this long at the earliest.
MIN_DEFER_S = 30.0
# A whole number summed from fractions may be slightly too small.
ROUNDING = 1e-6


class DeferredPages:
    """Queue of deferred page refreshes, first come first paid; an unpaid page keeps its place.

    One fetch is saved up, so the second of two pages is deferred; a third that becomes due queues behind it:

    >>> turns = DeferredPages()
    >>> turns.defer([7, 8], saved=1.0, wait_s=60.0, now_s=0.0)
    {8: 60.0}
    >>> turns.defer([9], saved=0.5, wait_s=60.0, now_s=30.0), turns.defer([8], saved=1.0, wait_s=60.0, now_s=60.0)
    ({9: 120.0}, {})

    A page due at the same moment does not overtake one that has waited:

    >>> turns.defer([7, 9], saved=1.0, wait_s=60.0, now_s=120.0)
    {7: 180.0}

    A turn is planned at the current rate; if a fetch is saved sooner, the turn comes sooner:

    >>> turns.list_early(saved=0.9, now_s=140.0), turns.list_early(saved=1.0, now_s=150.0)
    ([], [7])
    """

    def __init__(self) -> None:
        self._at_s: dict[int, float] = {}

    def is_deferred(self, id_: int, due_s: float) -> bool:
        """Check whether this due time of a page is its turn in the queue of deferred refreshes."""
        return self._at_s.get(id_) == due_s

    def list_early(self, saved: float, now_s: float) -> list[int]:
        """List deferred pages at the head of the queue that can be paid for before their planned turn."""
        return [id_ for id_, at_s in islice(self._at_s.items(), int(saved + ROUNDING)) if at_s > now_s]

    def remove(self, ids: Iterable[int]) -> None:
        """Remove pages from the queue of deferred refreshes."""
        for id_ in ids:
            self._at_s.pop(id_, None)

    def defer(self, ids: Sequence[int], saved: float, wait_s: float, now_s: float) -> dict[int, float]:
        """Defer due pages that the saved refreshes cannot pay for; return their turns, one every ``wait_s``.

        A page that misses its turn has left the queue.
        """
        come = dict.fromkeys(ids)
        earlier = [id_ for id_, at_s in self._at_s.items() if id_ in come or at_s > now_s]
        line = dict.fromkeys([*earlier, *ids])
        paid = int(saved + ROUNDING)
        turns = {
            id_: now_s + max((place - saved) * wait_s, MIN_DEFER_S)
            for place, id_ in enumerate(line, 1)
            if place > paid and id_ in come
        }
        waiting = [id_ for id_ in line if id_ in turns or id_ not in come]
        self._at_s = {id_: turns[id_] if id_ in turns else self._at_s[id_] for id_ in waiting}
        return turns
