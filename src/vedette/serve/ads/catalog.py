"""The ads that run, ready for queries: which of them a query may show, with what is known of each.

Ads, phrases and payers are known to policies by numbers. Here these only grow: an ad that goes keeps its number, so
that what a policy remembers stays with what it was learned of.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.ads.candidates import Candidates
from vedette.serve.ads.matching import Matcher, Target, Way

__all__ = ["Counted", "Found", "Running", "Stall"]


class Running(NamedTuple):
    """An ad that may be shown today. Money is in cents; ``payer`` is whose budget of a day it is."""

    ad: int
    payer: str
    bid: int
    budget: int
    targets: tuple[tuple[Way, str], ...]
    negatives: tuple[str, ...] = ()


class Counted(NamedTuple):
    """How often an ad was shown and clicked for a phrase; ``views`` count by how much a slot is seen."""

    ad: int
    phrase: str
    shown: float
    views: float
    clicked: float


class Found(NamedTuple):
    """An ad that a query may show, for which of its phrases, and its row."""

    running: Running
    phrase: str
    row: int


class Stall:
    """What is offered now. ``stock`` says what runs, ``count`` what is known of it."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], int] = {}
        self._phrases: dict[str, int] = {}
        self._payers: dict[str, int] = {}
        self._payer_of: list[int] = []
        self._running: dict[int, Running] = {}
        self._matcher = Matcher(())
        self._all = self._made({}, {}, {})

    def stock(self, running: Sequence[Running]) -> None:
        """These run from now on, and no others."""
        self._running = {each.ad: each for each in running}
        targets = [Target(each.ad, way, text, each.negatives) for each in running for way, text in each.targets]
        self._matcher = Matcher(targets)
        for each in running:
            for _, phrase in each.targets:
                self._number(each, phrase)

    def count(self, counted: Iterable[Counted], asked: Mapping[str, float], bound: Mapping[str, int]) -> None:
        """What was counted of each ad and phrase, and what is bound of each payer's budget, until now."""
        self._all = self._made({(each.ad, each.phrase): each for each in counted}, asked, bound)

    def runs(self, ad: int, phrase: str) -> bool:
        """Whether an ad may be shown for a phrase now."""
        running = self._running.get(ad)
        return running is not None and any(text == phrase for _, text in running.targets)

    def row_of(self, ad: int, phrase: str) -> int | None:
        """The row of an ad and one of its phrases; None where it did not run since the start."""
        return self._rows.get((ad, phrase))

    def phrase_numbers(self) -> Mapping[str, int]:
        """By which each phrase is known."""
        return self._phrases

    def found(self, query: str) -> list[Found]:
        """The ads that a query may show, each for the closest of its phrases."""
        targets = self._matcher.candidates(query)
        return [Found(self._running[each.ad], each.text, self._rows[each.ad, each.text]) for each in targets]

    def rows(self, rows: Sequence[int]) -> Candidates:
        """What is known of some of them."""
        at = np.array(rows, np.int64)
        return Candidates(*(getattr(self._all, name)[at] for name in Candidates.__dataclass_fields__))

    def all_ads(self) -> Candidates:
        """Of every ad that ran since the start; those that do not run now have no money."""
        return self._all

    def _number(self, running: Running, phrase: str) -> None:
        self._phrases.setdefault(phrase, len(self._phrases))
        payer = self._payers.setdefault(running.payer, len(self._payers))
        if (running.ad, phrase) not in self._rows:
            self._rows[running.ad, phrase] = len(self._rows)
            self._payer_of.append(payer)

    def _made(
        self, counted: Mapping[tuple[int, str], Counted], asked: Mapping[str, float], bound: Mapping[str, int]
    ) -> Candidates:
        keys = list(self._rows)
        of = [counted.get(key) or Counted(*key, 0.0, 0.0, 0.0) for key in keys]
        runs = [self._running[ad] if self.runs(ad, phrase) else None for ad, phrase in keys]
        budget = _floats(each.budget if each else 0 for each in runs)
        spent = _floats(bound.get(each.payer, 0) if each else 0 for each in runs)
        remaining = np.maximum(budget - spent, 0.0)
        bid = _floats(each.bid if each else 1 for each in runs)
        zeros, payer = np.zeros(len(keys)), np.array(self._payer_of, np.int64)
        return Candidates(
            ad=np.arange(len(keys)),
            phrase=_ints(self._phrases[phrase] for _, phrase in keys),
            advertiser=payer,
            cluster=payer,
            # Nobody bids more than is left: so the last of a budget can be spent, and no price is above it.
            bid=np.maximum(np.minimum(bid, remaining), 1.0),
            asked=_floats(asked.get(phrase, 0.0) for _, phrase in keys),
            shown=_floats(each.shown for each in of),
            views=_floats(each.views for each in of),
            clicked=_floats(each.clicked for each in of),
            prior_clicked=zeros,
            prior_shown=zeros,
            remaining=remaining,
            budget=budget,
            asked_then=zeros,
            shown_then=zeros,
            clicked_then=zeros,
        )


def _floats(values: Iterable[float]) -> Floats:
    return np.array(list(values), np.float64)


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int64)
