"""Who waits for a turn: pages whose time has come, and for which no fetch is saved up."""

from collections.abc import Sequence

__all__ = ["Turns"]

# What cannot be paid now is asked about again after so long at the earliest.
PUT_OFF_S = 30.0


class Turns:
    """The times at which pages may be asked for that could not be paid. What is saved is first for who has waited.

    One fetch is saved up, so the second of two has a turn; a third that is due meanwhile stands back:

    >>> turns = Turns()
    >>> turns.lined_up([7, 8], saved=1, wait_s=60.0, now_s=0.0)
    {8: 60.0}
    >>> turns.lined_up([9], saved=1, wait_s=60.0, now_s=50.0), turns.lined_up([8, 9], saved=1, wait_s=60.0, now_s=110.0)
    ({9: 110.0}, {9: 170.0})
    """

    def __init__(self) -> None:
        self._at_s: dict[int, float] = {}

    def holds(self, id_: int, due_s: float) -> bool:
        """Whether this time of a page is its turn."""
        return self._at_s.get(id_) == due_s

    def lined_up(self, ids: Sequence[int], saved: int, wait_s: float, now_s: float) -> dict[int, float]:
        """When those of these have a turn that cannot be paid with what is saved; a fetch is saved every ``wait_s``."""
        waiting = {id_: at_s for id_, at_s in self._at_s.items() if at_s > now_s}
        come, new = [id_ for id_ in ids if id_ in self._at_s], [id_ for id_ in ids if id_ not in self._at_s]
        left = max(saved - len(come) - len(waiting), 0)
        behind = enumerate([*come[saved:], *new[left:]], 1)
        turns = {id_: now_s + max(turn * wait_s, PUT_OFF_S) for turn, id_ in behind}
        self._at_s = waiting | turns
        return turns
