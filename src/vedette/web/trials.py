"""For whom results are ordered: who sees what was learned, and how many unproven results a person is shown in a day.

One visitor in ten gets the order without anything learned, by the mark of the day: others are held against them. What
the search needs to know of its asker travels with the request, not in the wish, since it is no part of what is asked.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from vedette.ring.learned_order import ANYBODY, Asker
from vedette.serve.rank.reordering import UNPROVEN
from vedette.serve.slate import Slate

__all__ = ["MOST_A_DAY", "Trials", "asker_now", "asking"]

MOST_A_DAY = 20  # unproven results for one person
ONE_IN = 10
MOST_PEOPLE = 20_000
BEFORE, BEHIND = 1, 2  # the first place that is open to the unproven

_ASKER: ContextVar[Asker] = ContextVar("asker", default=ANYBODY)


def asker_now() -> Asker:
    """For whom the search under way is made."""
    return _ASKER.get()


@contextmanager
def asking(asker: Asker) -> Iterator[None]:
    """Searches within are for this one."""
    before = _ASKER.set(asker)
    try:
        yield
    finally:
        _ASKER.reset(before)


@dataclass(frozen=True, slots=True)
class Trials:
    """What the operator allows, and what each visitor of today has been shown; those seen first are forgotten first.

    ``most`` is how many of a page of ten may be unproven. Marks are of one day, so counts begin anew each day.
    """

    most: int = 0
    first_place: bool = False
    is_on: bool = True
    _shown: dict[str, int] = field(default_factory=dict, init=False)

    def asker(self, mark: str, doubt: str = "") -> Asker:
        """How results are ordered for a visitor; who has no mark or may be no person teaches nothing, so tries nothing.

        >>> Trials(most=2).asker("0123456789abcdef").unproven, Trials(most=2).asker("").unproven
        (2, 0)
        """
        if not self.is_on:
            return Asker(is_learned=False)
        if not mark:
            return ANYBODY
        number = int(mark, 16)
        left = MOST_A_DAY - self._shown.get(mark, 0)
        most = 0 if doubt else max(min(self.most, left), 0)
        return Asker(number % ONE_IN > 0, most, BEFORE if self.first_place else BEHIND, number)

    def saw(self, mark: str, slate: Slate) -> None:
        """Count what was shown to be tried."""
        tried = sum(result.note == UNPROVEN for result in slate.results)
        if mark and tried:
            self._shown[mark] = self._shown.pop(mark, 0) + tried
            if len(self._shown) > MOST_PEOPLE:
                del self._shown[next(iter(self._shown))]
