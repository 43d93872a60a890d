"""Ad statistics: how often each ad was requested, shown and clicked, and its advertiser's remaining budget today.

A query is answered by one pass over the ads of its phrase: they are stored together, with the eligible ones separated,
and this is rebuilt only when money or the ads have changed.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints
from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.ads.pacing import is_resting

Bools = npt.NDArray[np.bool_]


class AdOffers(NamedTuple):
    """Ad offers, one row each: phrase, advertiser, cluster, bid, and the prior click rate."""

    phrase: Ints
    advertiser: Ints
    cluster: Ints
    bid: Floats
    prior_clicked: Floats
    prior_shown: Floats


_COUNTED = ("shown", "views", "clicked")
_COUNTS = (*_COUNTED, "shown_then", "clicked_then")


class AdStats:
    """Ad statistics: counts by phrase and money by advertiser; ``factors`` is the visibility of slots, the first 1."""

    def __init__(self, offers: AdOffers, budget: Floats, factors: Floats, reserve: float = 0.0) -> None:
        self._offers, self._factors, self._reserve = offers, factors, reserve
        self._counts: Mapping[str, Floats] = {name: np.zeros(len(offers.bid)) for name in _COUNTS}
        phrases = int(offers.phrase.max(initial=-1)) + 1
        self._asked, self._asked_then = np.zeros(phrases), np.zeros(phrases)
        self._budget, self._remaining = budget, budget.copy()
        self._allowed = np.inf
        self._ads = _group_rows(offers.phrase)
        self._phrases_of = _phrases_by_advertiser(offers)
        self._ready: dict[int, AdCandidates] = {}
        self._may: dict[int, Ints] = {}

    @property
    def remaining(self) -> Floats:
        """Return the ad budget that each advertiser has left today."""
        return self._remaining

    def set_slot_factors(self, factors: Floats) -> None:
        """Set the estimated visibility of ad slots from now on."""
        self._factors = factors

    def set_spend_limit(self, share: float) -> None:
        """Set the share of the day's ad budget after which an advertiser pauses."""
        if share != self._allowed:
            self._flush_all()
            self._allowed = share

    def begin_day(self, budget: Floats) -> None:
        """Begin a new day in the ad statistics: budgets are full again."""
        self._flush_all()
        self._budget, self._remaining = budget, budget.copy()

    def replace_ads(self, ads: Ints, offers: AdOffers) -> None:
        """Replace some ads by new offers, with empty ad statistics."""
        self._flush_all()
        self._offers = offers
        for column in self._counts.values():
            column[ads] = 0.0

    def get_options(self, phrase: int) -> AdCandidates:
        """Return the ads that may be shown for a phrase, valid until the next update: counts change in place."""
        found = self._ready.get(phrase)
        if found is None:
            found = self._ready[phrase] = self._select_options(phrase)
        return found

    def record_query(self, phrase: int, rows: Ints, clicked: Bools, charged: Floats) -> None:
        """Record in the ad statistics which options a query showed, which were clicked, and what was charged."""
        options = self.get_options(phrase)
        options.asked[:] += 1.0
        self._asked[phrase] += 1.0
        for slot, row in enumerate(rows.tolist()):
            options.shown[row] += 1.0
            options.views[row] += self._factors[slot]
        for slot in clicked.nonzero()[0].tolist():
            options.clicked[rows[slot]] += 1.0
        # Last: a charged advertiser may no longer be eligible, and the options are rebuilt.
        for slot in clicked.nonzero()[0].tolist():
            self._charge(int(options.advertiser[rows[slot]]), float(charged[slot]))

    def all_ads(self) -> AdCandidates:
        """Return the statistics of every ad, eligible or not."""
        for found in self._ready.values():
            self._write_back(found)
        return self._build_candidates(np.arange(len(self._offers.bid)))

    def _charge(self, advertiser: int, amount: float) -> None:
        if np.isfinite(self._remaining[advertiser]):
            self._remaining[advertiser] -= amount
            for phrase in self._phrases_of.get(advertiser, ()):
                self._flush(phrase)

    def _select_options(self, phrase: int) -> AdCandidates:
        ads = self._ads.get(phrase, np.zeros(0, np.int64))
        bid = self._offers.bid[ads]
        payer = self._offers.advertiser[ads]
        resting = is_resting(self._remaining, self._budget, self._allowed)
        may = ads[(self._remaining[payer] >= bid) & (bid >= self._reserve) & ~resting[payer]]
        if not np.array_equal(may, self._may.get(phrase, may[:0])):
            self._may[phrase] = may
            self._asked_then[phrase] = self._asked[phrase]
            for name in ("shown", "clicked"):
                self._counts[f"{name}_then"][ads] = self._counts[name][ads]
        return self._build_candidates(may)

    def _build_candidates(self, ads: Ints) -> AdCandidates:
        offers = self._offers
        advertiser, phrase = offers.advertiser[ads], offers.phrase[ads]
        counts = {name: column[ads] for name, column in self._counts.items()}
        return AdCandidates(
            ad=ads,
            phrase=phrase,
            advertiser=advertiser,
            cluster=offers.cluster[ads],
            bid=offers.bid[ads],
            prior_clicked=offers.prior_clicked[ads],
            prior_shown=offers.prior_shown[ads],
            asked=self._asked[phrase],
            asked_then=self._asked_then[phrase],
            remaining=self._remaining[advertiser],
            budget=self._budget[advertiser],
            **counts,
        )

    def _flush_all(self) -> None:
        for phrase in list(self._ready):
            self._flush(phrase)

    def _flush(self, phrase: int) -> None:
        found = self._ready.pop(phrase, None)
        if found is not None:
            self._write_back(found)

    def _write_back(self, found: AdCandidates) -> None:
        """Write the counts of a phrase's options back to the table of all ad statistics."""
        for name in _COUNTED:
            self._counts[name][found.ad] = getattr(found, name)


def _group_rows(keys: Ints) -> dict[int, Ints]:
    return {int(key): np.flatnonzero(keys == key) for key in np.unique(keys)}


def _phrases_by_advertiser(offers: AdOffers) -> dict[int, list[int]]:
    groups = _group_rows(offers.advertiser)
    return {advertiser: np.unique(offers.phrase[ads]).tolist() for advertiser, ads in groups.items()}
