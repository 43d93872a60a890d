"""Decaying counts of many names in bounded memory, with a slow and a quick half-life at once.

A search of age *a* counts 2^(-a / half-life). Weights are stored as of a *reference* time, not as of now: then a new
search only adds to its own name, nothing else changes as time passes, and searches may come in any order (forward
decay: Cormode, Shkapenyuk, Srivastava, Xu, 2009). The reference moves on before numbers become too large.

Memory is bounded by the Space-Saving algorithm (Metwally, Agrawal, El Abbadi, 2005), which works on decaying weights as
it does on counts. When there are too many names, the lightest are dropped, and the heaviest of those sets the *floor*.
A name that is added (or comes back) later may have lost that much, so the floor at that time counts for it when the
lightest are chosen, but never in its reported weight. With capacity for *k* names and a total weight of *W*,

    reported weight <= true weight <= reported weight + floor,    floor <= W / (k + 1).

A name that was never dropped is reported exactly. The same is true for the quick weights, as each is below its slow
one.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

MAX_HALF_LIVES = 200.0  # between moves of the reference: 2^200 squared, times many searches, is far from overflow


@dataclass(slots=True)
class ForwardDecay:
    """Forward decay of weights, slow and quick, as of one reference moment.

    Time does not run backwards: a moment before the latest search is treated as that of the latest search.

    >>> fading = ForwardDecay(slow_s=100.0, quick_s=10.0)
    >>> fading.rebase(1000.0)
    (0.0, 0.0)
    >>> fading.weights(1000.0), fading.weights(900.0)
    ((1.0, 1.0), (0.5, 0.0009765625))
    >>> fading.latest_s = 1000.0
    >>> fading.factors(1010.0)[1], fading.factors(-5.0)[1]
    (0.5, 1.0)
    """

    slow_s: float
    quick_s: float
    reference_s: float = -inf
    latest_s: float = -inf

    def __post_init__(self) -> None:
        assert 0.0 < self.quick_s < self.slow_s, "the quick half-life is the shorter one"

    def needs_rebase(self, at_s: float) -> bool:
        """Check whether the decay reference must move before a search of this moment can be weighted."""
        return at_s - self.reference_s > MAX_HALF_LIVES * self.quick_s

    def weights(self, at_s: float) -> tuple[float, float]:
        """Return the slow and quick weights of a search of this moment, as of the decay reference."""
        ahead_s = at_s - self.reference_s
        return 2.0 ** (ahead_s / self.slow_s), 2.0 ** (ahead_s / self.quick_s)

    def factors(self, now_s: float) -> tuple[float, float]:
        """Return the factors that convert weights from the decay reference to this moment; at most 1."""
        ahead_s = max(now_s, self.latest_s) - self.reference_s
        return 2.0 ** (-ahead_s / self.slow_s), 2.0 ** (-ahead_s / self.quick_s)

    def rebase(self, at_s: float) -> tuple[float, float]:
        """Make this moment the decay reference; return the factors to multiply all stored weights by."""
        ahead_s = at_s - self.reference_s
        self.reference_s = at_s
        return 2.0 ** (-ahead_s / self.slow_s), 2.0 ** (-ahead_s / self.quick_s)


class TallySnapshot(NamedTuple):
    """Snapshot of a tally: all names with their weights as of the decay reference, in order of arrival."""

    names: Sequence[str]
    slow: Numbers
    quick: Numbers


class SpaceSavingTally:
    """Space-Saving tally of names and their decaying weights, as of the owner's reference time.

    >>> tally = SpaceSavingTally(most=2)
    >>> for name, weight in (("a", 5.0), ("b", 1.0), ("c", 2.0)):
    ...     tally.add(name, weight, weight)
    >>> tally.slow_weight("a"), tally.slow_weight("b"), tally.slow_weight("c"), tally.floor
    (5.0, 0.0, 2.0, 1.0)
    """

    def __init__(self, most: int) -> None:
        assert most > 0
        self.floor = 0.0
        self._most = most
        self._slack = max(most // 4, 1)  # this many extra before the lightest are dropped, which makes dropping cheap
        self._slots: dict[str, int] = {}  # in the order of the slots
        self._slow, self._quick, self._floors = array("d"), array("d"), array("d")

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, name: str, slow: float, quick: float) -> None:
        """Add to a name's slow and quick weights in the tally."""
        slot = self._slots.get(name)
        if slot is not None:
            self._slow[slot] += slow
            self._quick[slot] += quick
            return
        self._slots[name] = len(self._slow)
        self._slow.append(slow)
        self._quick.append(quick)
        self._floors.append(self.floor)
        if len(self._slots) >= self._most + self._slack:
            self._drop_lightest()

    def slow_weight(self, name: str) -> float:
        """Return the slow weight of a name in the tally; 0 if it is missing."""
        slot = self._slots.get(name)
        return 0.0 if slot is None else self._slow[slot]

    def snapshot(self) -> TallySnapshot:
        """Return a copy of all names and weights in the tally."""
        return TallySnapshot(list(self._slots), np.array(self._slow, np.float64), np.array(self._quick, np.float64))

    def scale(self, slow: float, quick: float) -> None:
        """Multiply all weights in the tally, after the decay reference moved."""
        self._slow = _to_array(np.array(self._slow, np.float64) * slow)
        self._quick = _to_array(np.array(self._quick, np.float64) * quick)
        self._floors = _to_array(np.array(self._floors, np.float64) * slow)
        self.floor *= slow

    def _drop_lightest(self) -> None:
        slow, quick, floors = (np.array(each, np.float64) for each in (self._slow, self._quick, self._floors))
        at_most = slow + floors
        order = np.argpartition(at_most, -self._most)
        heaviest = np.sort(order[-self._most :])
        self.floor = float(at_most[order[: -self._most]].max())
        names = list(self._slots)
        self._slots = {names[old]: new for new, old in enumerate(heaviest.tolist())}
        self._slow, self._quick, self._floors = (
            _to_array(slow[heaviest]),
            _to_array(quick[heaviest]),
            _to_array(floors[heaviest]),
        )


def _to_array(numbers: Numbers) -> "array[float]":
    return array("d", numbers.tobytes())
