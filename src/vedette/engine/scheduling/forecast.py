"""Refresh forecast: how well a policy's predicted change probabilities match what refreshes found, over about a day.

Before a page is fetched again its policy predicts the probability that it changed. Of the pages with 30 to 40%, about
35% should have changed; if not, the due times are unreliable.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools

BINS = 10
# Half-life of the counts: one day.
HALF_LIFE_S = 86_400.0
# This many measured changes are enough to tell what an outdated copy loses; older ones decay.
MAX_CHANGES = 5_000.0
_EMPTY_BINS = (0.0,) * BINS


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast accuracy of refreshes: counts, wasted ones, and predicted and found changes by tenths of probability.

    All counts decay. ``refreshes`` also counts those without a prediction.

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
        """Mean predicted probability of change of the refreshes in the forecast."""
        return sum(self.expected) / sum(self.count) if sum(self.count) > 0 else None

    @property
    def found_share(self) -> float | None:
        """Share of the forecast refreshes whose page had changed."""
        return sum(self.found) / sum(self.count) if sum(self.count) > 0 else None

    def observe(self, chance: Floats | None, changed: Bools, now_s: float) -> "Forecast":
        """Add refreshes to the forecast; those without a prediction are only counted."""
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
        """Parse the refresh forecast that an earlier run saved; empty if invalid.

        >>> Forecast.from_json(Forecast(refreshes=2.0).to_json()).refreshes, Forecast.from_json("[]").refreshes
        (2.0, 0.0)
        """
        try:
            read = json.loads(text or "{}")
            values = {each.name: read[each.name] for each in fields(cls) if each.name in read}
            sums: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
            forecast = cls(**sums)
        except (TypeError, ValueError, KeyError):
            return cls()
        bins = (forecast.count, forecast.expected, forecast.found)
        sound = all(len(each) == BINS and all(isfinite(one) for one in each) for each in bins)
        return forecast if sound else cls()


@dataclass(frozen=True, slots=True)
class Freshness:
    """Estimated freshness over one round through all pages, by the policy: of pages, and of page views.

    ``share`` is the share of pages that are unchanged since their fetch, ``viewed`` the share of views that go to such
    pages; both are equal if no page was viewed. These and ``judged`` describe the last complete round, or the current
    one if it is the first.

    >>> first = Freshness("nutch").observe(np.array([0.25, 0.75]), np.array([0.9, 0.3]))
    >>> first.share, round(first.viewed, 3), first.judged, first.end_round().observe(np.ones(1), np.zeros(1)).share
    (0.5, 0.625, 2, 0.5)
    """

    policy: str
    share: float | None = None
    viewed: float | None = None
    judged: int = 0
    is_whole: bool = False
    changed: float = 0.0
    count: int = 0
    changed_views: float = 0.0
    views: float = 0.0

    def observe(self, chance: Floats | None, views: Floats) -> "Freshness":
        """Add pages to the round: the probability that each changed (None: unknown), and its views (NaN: unknown)."""
        if chance is None or not len(chance):
            return self
        views = np.maximum(np.nan_to_num(views), 0.0)
        more = replace(
            self,
            changed=self.changed + float(chance.sum()),
            count=self.count + len(chance),
            changed_views=self.changed_views + float((chance * views).sum()),
            views=self.views + float(views.sum()),
        )
        return more if self.is_whole else more.compute_shares()

    def end_round(self) -> "Freshness":
        """End a freshness round over all pages."""
        if not self.count:
            return self
        done = self.compute_shares()
        return Freshness(self.policy, done.share, done.viewed, done.judged, is_whole=True)

    def compute_shares(self) -> "Freshness":
        """Return the freshness with shares computed from the current round."""
        share = 1.0 - self.changed / self.count
        viewed = 1.0 - self.changed_views / self.views if self.views > 0 else share
        return replace(self, share=share, viewed=viewed, judged=self.count)

    def to_json(self) -> str:
        """Serialize the estimated freshness for the console and the next run."""
        names = ("policy", "share", "viewed", "judged")
        return json.dumps({name: getattr(self, name) for name in names})

    @classmethod
    def from_json(cls, text: str | None, policy: str) -> "Freshness":
        """Parse the saved freshness estimate; empty if it is invalid or from another policy.

        >>> kept = Freshness("nutch", 0.5, 2).to_json()
        >>> Freshness.from_json(kept, "nutch").share, Freshness.from_json("[", "nutch").share
        (0.5, None)
        """
        try:
            read = json.loads(text or "{}")
            share = float(read["share"])
            viewed = float(read.get("viewed", share))  # an earlier version did not weight by views
            freshness = cls(str(read["policy"]), share, viewed, int(read["judged"]), is_whole=True)
        except (AttributeError, TypeError, ValueError, KeyError):
            return cls(policy)
        return freshness if freshness.policy == policy and isfinite(share) and isfinite(viewed) else cls(policy)


@dataclass(frozen=True, slots=True)
class ChangeLoss:
    """Loss when a user views an outdated copy, as a share of the value of viewing a current one.

        share = (gains of changes / views of the pages that changed) / value of a view

    ``gained`` and ``viewed`` are sums over measured changes; ``per_view`` is the value of a view of any result, by the
    same scores. Until enough was measured, part of the loss is assumed to be total, so quality is underestimated rather
    than overestimated.

    >>> known = ChangeLoss(per_view=2.0).observe(np.full(99, 0.004), np.full(99, 0.01))
    >>> ChangeLoss().share, round(known.share, 2)
    (1.0, 0.21)
    """

    changes: float = 0.0
    gained: float = 0.0
    viewed: float = 0.0
    per_view: float = 0.0

    @property
    def share(self) -> float:
        """Share of a view's value that is lost when the copy has missed a change; 1 if unknown."""
        if not (self.viewed > 0 and self.per_view > 0):
            return 1.0
        measured = min(self.gained / (self.viewed * self.per_view), 1.0)
        return (self.changes * measured + 1.0) / (self.changes + 1.0)

    def observe(self, gains: Floats, views: Floats) -> "ChangeLoss":
        """Add measured changes: the gain of each, and its page's view rate; NaN if unknown."""
        is_known = np.isfinite(gains) & np.isfinite(views)
        part = min(MAX_CHANGES / (self.changes + is_known.sum() + 1e-9), 1.0)  # older measurements decay
        return replace(
            self,
            changes=part * (self.changes + float(is_known.sum())),
            gained=part * (self.gained + float(np.maximum(gains[is_known], 0.0).sum())),
            viewed=part * (self.viewed + float(np.maximum(views[is_known], 0.0).sum())),
        )

    def to_json(self) -> str:
        """Serialize the loss due to outdated copies for the next run."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "ChangeLoss":
        """Parse the saved loss due to outdated copies; empty if invalid.

        >>> ChangeLoss.from_json('{"gained": 2.0}').gained, ChangeLoss.from_json('{"gained": "x"}').gained
        (2.0, 0.0)
        """
        try:
            read = json.loads(text or "{}")
            loss = cls(**{each.name: float(read[each.name]) for each in fields(cls) if each.name in read})
        except (TypeError, ValueError):
            return cls()
        return loss if all(0.0 <= each < inf for each in asdict(loss).values()) else cls()


def estimate_quality(freshness: Freshness, loss: ChangeLoss) -> float | None:
    """Estimate repository quality Q (Pandey08, eq. 4.5) of this index; None before any page was judged.

        Q = 1 - sum over pages of (share of views) (probability that the copy is outdated) (share lost in such a view)

    >>> estimate_quality(Freshness("nutch", 0.5, 0.75, 2), ChangeLoss(99.0, 0.5, 1.0, 2.0))
    0.935625
    """
    return None if freshness.viewed is None else 1.0 - (1.0 - freshness.viewed) * loss.share


def _add_to_bins(sums: tuple[float, ...], bins: Ints, more: Floats) -> tuple[float, ...]:
    return tuple((np.array(sums) + np.bincount(bins, more, minlength=BINS)).tolist())
