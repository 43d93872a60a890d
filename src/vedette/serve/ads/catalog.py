"""Ad catalog: the running ads, which of them a query may show, and the counts of each.

Policies identify ads, phrases and payers by numbers. These only grow: an ad that is removed keeps its number, so that
the memory of a policy stays with the ad it was learned from.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.ads.matching import Matcher, MatchType, Target


class RunningAd(NamedTuple):
    """A running ad that may be shown today; ``payer`` owns the daily budget. Each target has its bid, in cents."""

    ad: int
    payer: str
    targets: tuple[tuple[MatchType, str, int], ...]
    negatives: tuple[str, ...] = ()


class AdCounts(NamedTuple):
    """Counts of impressions and clicks of an ad for a phrase; ``views`` are weighted by slot visibility."""

    shown: float
    views: float
    clicked: float


class PayerMoney(NamedTuple):
    """What a payer may spend on a day, and what is left of it, in cents. Held amounts count as left."""

    budget: int
    left: int


class AdMatch(NamedTuple):
    """An ad that matches a query, with its matching phrase, its bid for it in cents, and its row in the catalog."""

    ad: int
    payer: str
    phrase: str
    bid: int
    row: int


class AdCatalog:
    """Catalog of running ads. ``set_ads`` sets which ads run, ``set_counts`` their counts and money."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], int] = {}
        self._phrases: dict[str, int] = {}
        self._payers: dict[str, int] = {}
        self._pairs: list[tuple[int, int]] = []  # the phrase and the payer of each row
        self._phrase_of, self._payer_of = np.zeros((2, 0), np.int64)
        self._runs, self._bid = np.zeros(0, bool), np.ones(0)
        self._running: Sequence[RunningAd] = ()
        self._bids: dict[int, int] = {}
        self._matcher = Matcher(())
        self._all: AdCandidates
        self.set_counts({}, {}, {})

    def set_ads(self, running: Sequence[RunningAd]) -> None:
        """Replace the running ads of the catalog."""
        if running == self._running:
            return
        self._running = running
        targets = [Target(each.ad, way, text, each.negatives) for each in running for way, text, _ in each.targets]
        self._matcher = Matcher(targets)
        self._bids = {self._register(each, phrase): bid for each in running for _, phrase, bid in each.targets}
        self._phrase_of, self._payer_of = np.array(self._pairs, np.int64).reshape(-1, 2).T
        self._runs, self._bid = np.zeros(len(self._rows), bool), np.ones(len(self._rows))
        at = np.array(list(self._bids), np.int64)
        self._runs[at], self._bid[at] = True, np.array(list(self._bids.values()), np.float64)

    def set_counts(
        self,
        counted: Mapping[tuple[int, str], AdCounts],
        asked: Mapping[str, float],
        money: Mapping[str, PayerMoney],
    ) -> None:
        """Set the counts of each ad and phrase, and what each payer may spend."""
        size = len(self._rows)
        shown, views, clicked = np.zeros((3, size))
        for key, (times, seen, clicks) in counted.items():
            if (row := self._rows.get(key)) is not None:
                shown[row], views[row], clicked[row] = times, seen, clicks
        queries = np.zeros(len(self._phrases))
        for phrase, times in asked.items():
            if (number := self._phrases.get(phrase)) is not None:
                queries[number] = times
        budget, left = np.zeros((2, len(self._payers)))
        for payer, (whole, rest) in money.items():
            if (number := self._payers.get(payer)) is not None:
                budget[number], left[number] = whole, rest
        payer_of, phrase_of = self._payer_of, self._phrase_of
        remaining, zeros = np.where(self._runs, left[payer_of], 0.0), np.zeros(size)
        self._all = AdCandidates(
            ad=np.arange(size),
            phrase=phrase_of,
            advertiser=payer_of,
            cluster=payer_of,
            # No bid exceeds what is left: so the last of a budget can be spent, and no price is above it.
            bid=np.maximum(np.minimum(self._bid, remaining), 1.0),
            asked=queries[phrase_of],
            shown=shown,
            views=views,
            clicked=clicked,
            prior_clicked=zeros,
            prior_shown=zeros,
            remaining=remaining,
            budget=np.where(self._runs, budget[payer_of], 0.0),
            asked_then=zeros,
            shown_then=zeros,
            clicked_then=zeros,
        )

    def is_running(self, ad: int, phrase: str) -> bool:
        """Check whether an ad is running for a phrase now."""
        return self._rows.get((ad, phrase), -1) in self._bids

    def get_row(self, ad: int, phrase: str) -> int | None:
        """Return the catalog row of an ad and one of its phrases; None if it did not run since the start."""
        return self._rows.get((ad, phrase))

    def get_phrase_numbers(self) -> Mapping[str, int]:
        """Return the number of each phrase in the ad catalog."""
        return self._phrases

    def find_ads(self, query: str) -> list[AdMatch]:
        """Find the running ads that match a query, each for the closest of its phrases."""
        payers = list(self._payers)
        found = []
        for target in self._matcher.find_targets(query):
            row = self._rows[target.ad, target.text]
            found.append(AdMatch(target.ad, payers[self._pairs[row][1]], target.text, self._bids[row], row))
        return found

    def get_candidates(self, rows: Sequence[int]) -> AdCandidates:
        """Return the candidate batch of some ad catalog rows."""
        at = np.array(rows, np.int64)
        return AdCandidates(*(getattr(self._all, name)[at] for name in AdCandidates.__dataclass_fields__))

    def all_ads(self) -> AdCandidates:
        """Return all ads that ran since the start; those not running now have no budget left."""
        return self._all

    def _register(self, running: RunningAd, phrase: str) -> int:
        number = self._phrases.setdefault(phrase, len(self._phrases))
        payer = self._payers.setdefault(running.payer, len(self._payers))
        row = self._rows.setdefault((running.ad, phrase), len(self._rows))
        if row == len(self._pairs):
            self._pairs.append((number, payer))
        return row
