"""For whom results are ordered: who sees what was learned, and how many unproven results a person is shown in a day.

One visitor in ten gets the order without anything learned, by the mark of the day, and one gets it without anything
tried: others are held against them (``learn.reader_groups``).
"""

from dataclasses import dataclass, field

from vedette.learn.clicks.experiment_groups import ALL, PLAIN, group_of
from vedette.serve.rank.reranking import UNPROVEN
from vedette.serve.slate import ANYBODY, Audience, Slate

__all__ = ["MOST_A_DAY", "Trials"]

MOST_A_DAY = 20  # unproven results for one person
MOST_PEOPLE = 20_000
BEFORE, BEHIND = 1, 2  # the first place that is open to the unproven


@dataclass(frozen=True, slots=True)
class Trials:
    """What the operator allows, and what each visitor of today has been shown; those seen first are forgotten first.

    ``most`` is how many of a page of ten may be unproven. Marks are of one day, so counts begin anew each day.
    """

    most: int = 0
    first_place: bool = False
    _shown: dict[str, int] = field(default_factory=dict, init=False)

    def audience(self, mark: str, doubt: str = "") -> Audience:
        """How results are ordered for a visitor; who has no mark or may be no person teaches nothing, so tries nothing.

        >>> Trials(most=2).audience("0123456789abcdef").unproven, Trials(most=2).audience("").unproven
        (2, 0)
        """
        if not mark:
            return ANYBODY
        group = group_of(mark)
        left = MOST_A_DAY - self._shown.get(mark, 0)
        most = max(min(self.most, left), 0) if group == ALL and not doubt else 0
        return Audience(group != PLAIN, most, BEFORE if self.first_place else BEHIND, int(mark, 16))

    def saw(self, mark: str, slate: Slate) -> None:
        """Count what was shown to be tried."""
        tried = sum(result.note == UNPROVEN for result in slate.results)
        if mark and tried:
            self._shown[mark] = self._shown.pop(mark, 0) + tried
            if len(self._shown) > MOST_PEOPLE:
                del self._shown[next(iter(self._shown))]
