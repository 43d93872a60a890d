"""Refresh forecast: how well a policy's predicted change chances match what refreshes found, over about a day.

Before a page is fetched again its policy predicts how probably it has changed. Of those with a chance of 30 to 40 %,
about 35 % should turn out to have changed; where they do not, its due times are unreliable.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from math import isfinite
from typing import Any

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools

BINS = 10
# What was a day ago counts half.
HALF_LIFE_S = 86_400.0
_EMPTY_BINS = (0.0,) * BINS


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast accuracy of refreshes: counts, wasted ones, and by tenths of chance the predicted and found changes.

    All of them fade. ``refreshes`` also counts those without a predicted chance.

    >>> said = Forecast().observe(np.array([0.25, 0.95]), np.array([False, True]), 0.0)
    >>> said.refreshes, said.wasted, said.expected_share, said.found_share
    (2.0, 1.0, 0.6, 0.5)
    """

    refreshes: float = 0.0
    wasted: float = 0.0
    count: tuple[float, ...] = _EMPTY_BINS
    expected: tuple[float, ...] = _EMPTY_BINS
    found: tuple[float, ...] = _EMPTY_BINS
    at_s: float = 0.0

    @property
    def wasted_share(self) -> float | None:
        """Share of refreshes that found the page unchanged."""
        return self.wasted / self.refreshes if self.refreshes > 0 else None

    @property
    def expected_share(self) -> float | None:
        """Mean predicted chance of change of the refreshes in the forecast."""
        return sum(self.expected) / sum(self.count) if sum(self.count) > 0 else None

    @property
    def found_share(self) -> float | None:
        """Share of the forecast refreshes whose page had changed."""
        return sum(self.found) / sum(self.count) if sum(self.count) > 0 else None

    def observe(self, chance: Floats | None, changed: Bools, now_s: float) -> "Forecast":
        """Add refreshes to the forecast; those without a predicted chance are only counted."""
        faded = self._decay(now_s)
        more = replace(
            faded,
            refreshes=faded.refreshes + len(changed),
            wasted=faded.wasted + float((~changed).sum()),
        )
        if chance is None or not len(chance):
            return more
        bins = np.clip((chance * BINS).astype(np.int64), 0, BINS - 1)
        return replace(
            more,
            count=_add_to_bins(faded.count, bins, np.ones(len(bins))),
            expected=_add_to_bins(faded.expected, bins, chance),
            found=_add_to_bins(faded.found, bins, changed.astype(np.float64)),
        )

    def _decay(self, now_s: float) -> "Forecast":
        part = 0.5 ** (max(now_s - self.at_s, 0.0) / HALF_LIFE_S)
        sums = {name: tuple(part * each for each in getattr(self, name)) for name in ("count", "expected", "found")}
        return Forecast(part * self.refreshes, part * self.wasted, **sums, at_s=now_s)

    def to_json(self) -> str:
        """Serialize the refresh forecast for the next run."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "Forecast":
        """Parse the refresh forecast that an earlier run saved; empty where it makes no sense.

        >>> Forecast.from_json(Forecast(refreshes=2.0).to_json()).refreshes, Forecast.from_json("[]").refreshes
        (2.0, 0.0)
        """
        try:
            read = json.loads(text or "{}")
            kept = {each.name: read[each.name] for each in fields(cls) if each.name in read}
            sums: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()}
            made = cls(**sums)
        except (TypeError, ValueError, KeyError):
            return cls()
        bins = (made.count, made.expected, made.found)
        sound = all(len(each) == BINS and all(isfinite(one) for one in each) for each in bins)
        return made if sound else cls()


@dataclass(frozen=True, slots=True)
class Freshness:
    """Estimated freshness: share of pages still as fetched, by the policy, over a round through all pages.

    ``share`` and ``judged`` are of the last whole round, or of the one that goes on where that is the first.

    >>> first = Freshness("nutch").observe(np.array([0.25, 0.75]))
    >>> first.share, first.judged, first.end_round().observe(np.array([1.0])).share
    (0.5, 2, 0.5)
    """

    policy: str
    share: float | None = None
    judged: int = 0
    is_whole: bool = False
    changed: float = 0.0
    count: int = 0

    def observe(self, chance: Floats | None) -> "Freshness":
        """Add pages to the freshness round; ``chance`` is how probably each has changed, None if unknown."""
        if chance is None or not len(chance):
            return self
        more = replace(self, changed=self.changed + float(chance.sum()), count=self.count + len(chance))
        return more if self.is_whole else replace(more, share=1.0 - more.changed / more.count, judged=more.count)

    def end_round(self) -> "Freshness":
        """End a freshness round that has gone over all pages."""
        if not self.count:
            return self
        return Freshness(self.policy, 1.0 - self.changed / self.count, self.count, is_whole=True)

    def to_json(self) -> str:
        """Serialize the estimated freshness for the console and the next run."""
        return json.dumps({"policy": self.policy, "share": self.share, "judged": self.judged})

    @classmethod
    def from_json(cls, text: str | None, policy: str) -> "Freshness":
        """Parse the saved freshness estimate; empty where it is of another policy or invalid.

        >>> kept = Freshness("nutch", 0.5, 2).to_json()
        >>> Freshness.from_json(kept, "nutch").share, Freshness.from_json("[", "nutch").share
        (0.5, None)
        """
        try:
            read = json.loads(text or "{}")
            kept = cls(str(read["policy"]), float(read["share"]), int(read["judged"]), is_whole=True)
        except (TypeError, ValueError, KeyError):
            return cls(policy)
        return kept if kept.policy == policy and isfinite(kept.share or 0.0) else cls(policy)


def _add_to_bins(sums: tuple[float, ...], bins: Ints, more: Floats) -> tuple[float, ...]:
    return tuple((np.array(sums) + np.bincount(bins, more, minlength=BINS)).tolist())
