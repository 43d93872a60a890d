"""What looks at sources came to: how many there were, what they found, and how many were in vain.

A look is a fetch of a source that had been fetched before: at a first fetch everything is unknown, which says nothing
of what is new. One that names nothing unknown, or is not answered, was in vain.
"""

import json
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from vedette.engine.scheduling.forecast import HALF_LIFE_S

__all__ = ["LookCounts", "SourceCount"]


class SourceCount(NamedTuple):
    """Looks at a source, URLs that they found, and looks in vain; since it is known."""

    looks: int = 0
    found: int = 0
    wasted: int = 0

    def after(self, new: int) -> "SourceCount":
        """With a look that found so many."""
        return SourceCount(self.looks + 1, self.found + new, self.wasted + (new == 0))


NONE = SourceCount()


@dataclass(slots=True)
class LookCounts:
    """By source for ever; and in all as sums that fade, so that they speak of about the last day.

    >>> counts = LookCounts()
    >>> counts.add(7, new=2, now_s=0.0), counts.add(7, new=0, now_s=0.0)
    (None, None)
    >>> counts.of(7), counts.looks, counts.wasted_share
    (SourceCount(looks=2, found=2, wasted=1), 2.0, 0.5)
    """

    looks: float = 0.0
    found: float = 0.0
    wasted: float = 0.0
    at_s: float = 0.0
    _by_source: dict[int, SourceCount] = field(default_factory=dict)

    @property
    def wasted_share(self) -> float | None:
        """The part of looks that found nothing."""
        return self.wasted / self.looks if self.looks > 0 else None

    def of(self, id_: int) -> SourceCount:
        """Of one source."""
        return self._by_source.get(id_, NONE)

    def add(self, id_: int, *, new: int, now_s: float) -> None:
        """A look at a source found so many URLs that nobody knew."""
        part = 0.5 ** (max(now_s - self.at_s, 0.0) / HALF_LIFE_S)
        self.looks = part * self.looks + 1.0
        self.found = part * self.found + new
        self.wasted = part * self.wasted + (new == 0)
        self.at_s = max(now_s, self.at_s)
        self._by_source[id_] = self.of(id_).after(new)

    def to_json(self) -> str:
        """For the next run."""
        sums = [self.looks, self.found, self.wasted, self.at_s]
        return json.dumps({"sums": sums, "sources": {str(id_): row for id_, row in self._by_source.items()}})

    @classmethod
    def from_json(cls, text: str | None) -> "LookCounts":
        """What an earlier run wrote; nothing where that makes no sense.

        >>> counts = LookCounts()
        >>> counts.add(7, new=2, now_s=0.0)
        >>> LookCounts.from_json(counts.to_json()).of(7).found, LookCounts.from_json("[]").looks
        (2, 0.0)
        """
        try:
            told: Any = json.loads(text or "{}")
            looks, found, wasted, at_s = (float(each) for each in told["sums"])
            rows = {int(id_): SourceCount(*map(int, row)) for id_, row in told["sources"].items()}
        except (TypeError, ValueError, KeyError, AttributeError):
            return cls()
        sound = all(isfinite(each) and each >= 0.0 for each in (looks, found, wasted)) and isfinite(at_s)
        return cls(looks, found, wasted, at_s, rows) if sound else cls()
