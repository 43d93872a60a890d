"""Ad catalog: the running ads, which of them a query may show, and the counts of each.

Policies know ads, phrases and payers by numbers. Here these only grow: an ad that is removed keeps its number, so that
the memory of a policy stays with the ad it was learned from.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.ads.matching import Matcher, MatchType, Target


class RunningAd(NamedTuple):
    """A running ad that may be shown today. Money is in cents; ``payer`` owns the daily budget."""

    ad: int
    payer: str
    bid: int
    budget: int
    targets: tuple[tuple[MatchType, str], ...]
    negatives: tuple[str, ...] = ()


class AdCounts(NamedTuple):
    """Counts of impressions and clicks of an ad for a phrase; ``views`` are weighted by slot visibility."""

    ad: int
    phrase: str
    shown: float
    views: float
    clicked: float


class AdMatch(NamedTuple):
    """An ad that matches a query, with its matching phrase and its row in the catalog."""

    ad: RunningAd
    phrase: str
    row: int


class AdCatalog:
    """Catalog of running ads. ``set_ads`` sets which ads run, ``set_counts`` their counts."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], int] = {}
        self._phrases: dict[str, int] = {}
        self._payers: dict[str, int] = {}
        self._payer_of: list[int] = []
        self._running: dict[int, RunningAd] = {}
        self._matcher = Matcher(())
        self._all = self._build_candidates({}, {}, {})

    def set_ads(self, running: Sequence[RunningAd]) -> None:
        """Replace the running ads of the catalog."""
        self._running = {each.ad: each for each in running}
        targets = [Target(each.ad, way, text, each.negatives) for each in running for way, text in each.targets]
        self._matcher = Matcher(targets)
        for each in running:
            for _, phrase in each.targets:
                self._register(each, phrase)

    def set_counts(self, counted: Iterable[AdCounts], asked: Mapping[str, float], bound: Mapping[str, int]) -> None:
        """Set the counts of each ad and phrase, and how much of each payer's budget is committed until now."""
        self._all = self._build_candidates({(each.ad, each.phrase): each for each in counted}, asked, bound)

    def is_running(self, ad: int, phrase: str) -> bool:
        """Check whether an ad is running for a phrase now."""
        running = self._running.get(ad)
        return running is not None and any(text == phrase for _, text in running.targets)

    def get_row(self, ad: int, phrase: str) -> int | None:
        """Return the catalog row of an ad and one of its phrases; None where it did not run since the start."""
        return self._rows.get((ad, phrase))

    def get_phrase_numbers(self) -> Mapping[str, int]:
        """Return the number of each phrase in the ad catalog."""
        return self._phrases

    def find_ads(self, query: str) -> list[AdMatch]:
        """Find the running ads that match a query, each for the closest of its phrases."""
        targets = self._matcher.find_targets(query)
        return [AdMatch(self._running[each.ad], each.text, self._rows[each.ad, each.text]) for each in targets]

    def get_candidates(self, rows: Sequence[int]) -> AdCandidates:
        """Return the candidate batch of some ad catalog rows."""
        at = np.array(rows, np.int64)
        return AdCandidates(*(getattr(self._all, name)[at] for name in AdCandidates.__dataclass_fields__))

    def all_ads(self) -> AdCandidates:
        """Return all ads that ran since the start; those that do not run now have no budget left."""
        return self._all

    def _register(self, running: RunningAd, phrase: str) -> None:
        self._phrases.setdefault(phrase, len(self._phrases))
        payer = self._payers.setdefault(running.payer, len(self._payers))
        if (running.ad, phrase) not in self._rows:
            self._rows[running.ad, phrase] = len(self._rows)
            self._payer_of.append(payer)

    def _build_candidates(
        self, counted: Mapping[tuple[int, str], AdCounts], asked: Mapping[str, float], bound: Mapping[str, int]
    ) -> AdCandidates:
        keys = list(self._rows)
        of = [counted.get(key) or AdCounts(*key, 0.0, 0.0, 0.0) for key in keys]
        runs = [self._running[ad] if self.is_running(ad, phrase) else None for ad, phrase in keys]
        budget = _to_floats(each.budget if each else 0 for each in runs)
        spent = _to_floats(bound.get(each.payer, 0) if each else 0 for each in runs)
        remaining = np.maximum(budget - spent, 0.0)
        bid = _to_floats(each.bid if each else 1 for each in runs)
        zeros, payer = np.zeros(len(keys)), np.array(self._payer_of, np.int64)
        return AdCandidates(
            ad=np.arange(len(keys)),
            phrase=_to_ints(self._phrases[phrase] for _, phrase in keys),
            advertiser=payer,
            cluster=payer,
            # Nobody bids more than is left: so the last of a budget can be spent, and no price is above it.
            bid=np.maximum(np.minimum(bid, remaining), 1.0),
            asked=_to_floats(asked.get(phrase, 0.0) for _, phrase in keys),
            shown=_to_floats(each.shown for each in of),
            views=_to_floats(each.views for each in of),
            clicked=_to_floats(each.clicked for each in of),
            prior_clicked=zeros,
            prior_shown=zeros,
            remaining=remaining,
            budget=budget,
            asked_then=zeros,
            shown_then=zeros,
            clicked_then=zeros,
        )


def _to_floats(values: Iterable[float]) -> Floats:
    return np.array(list(values), np.float64)


def _to_ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int64)
