"""Embarrassment-based refresh (EBR): avoid showing pages that no longer match the query they are shown for."""

from dataclasses import dataclass

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats
from vedette.refresh.freshness_index import (
    add_counts,
    elapsed_days,
    fill_unknown,
    index_wait_days,
    is_significant,
    select_rows,
    shrunk_rates,
    to_due_times,
)
from vedette.refresh.known_pages import KnownPages, Memory


@dataclass(frozen=True, slots=True)
class Ebr:
    """Refresh like ``freshness``, weighted by views and by how often a change makes the page a wrong result.

        d(p)     =  share of its changes that replaced at least tau of its text
        worth(t) =  (d v / D) (1 - exp(-D t) (1 + D t)),      v its views, D changes found a day
        due      =  last_fetch + t where worth(t) / cost = price

    Both d and D are shrunk to the mean of all pages, d as if one more change had been seen. Unknown views are 1; a
    change of unknown size counts as large. The price is in views times days. A page that is never shown is never due.

    Useful as a baseline that considers what people see. Not useful for pages that *should* be shown but are not: a
    missing good result causes no embarrassment.

    Reference: J. L. Wolf, M. S. Squillante, P. S. Yu, J. Sethuraman, L. Ozsen, *Optimal Crawling Strategies for Web
    Search Engines*, WWW 2002, with d(p) as in S. Pandey's thesis (2008), 4.7.1. Learning it online is ours.

    >>> from vedette.policy import rng_for
    >>> day_s, no = 86_400.0, np.zeros(2, bool)
    >>> batch = KnownPages(np.arange(2), np.full(2, 10 * day_s), ~no, no, np.full(2, np.nan), before_s=np.zeros(2),
    ...     share=np.array([0.5, 0.01]), views=np.full(2, 0.5))
    >>> policy = Ebr()
    >>> memory = policy.observe(policy.start(None), batch, now=10 * day_s)
    >>> (policy.due(memory, batch, 10 * day_s, 1.0, rng_for(1, "refresh")) / day_s).round(1).tolist()
    [19.7, 30.1]
    """

    tau: float = 0.1
    name: str = "ebr"
    priced: bool = True
    wants: frozenset[str] = frozenset({"share", "views"})

    def __post_init__(self) -> None:
        if not 0 <= self.tau <= 1:
            raise ConfigError("ebr: tau must be between 0 and 1")

    def start(self, config: None) -> Memory:
        """Return an empty EBR memory: no page was fetched yet."""
        return Memory.empty(page_width=3, group_width=3)

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Count changes, the days observed, and whether each change was large."""
        days = elapsed_days(batch)
        observed = days > 0
        columns = [batch.changed & observed, days, is_significant(batch, np.nextafter(self.tau, -1)) & observed]
        return add_counts(state, batch, np.stack(columns, axis=1))

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return when the embarrassment index of each page reaches the price of a fetch."""
        weights = self._irrelevance(state, batch) * fill_unknown(batch.views, 1.0)
        return to_due_times(batch, index_wait_days(shrunk_rates(state, batch), weights, price * batch.cost))

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe how often a page changes, and what share of the changes are large."""
        part, days = self._irrelevance(state, batch)[row], 1 / shrunk_rates(state, batch)[row]
        return f"ebr: changes about every {days:.1f} days, {part:.0%} of it by {self.tau:.0%} of its text or more"

    def _irrelevance(self, state: Memory, batch: KnownPages) -> Floats:
        """Return d(p), the share of large changes; over all pages as if one large change had been seen."""
        changes, _, large = state.groups[0].tolist()
        own = select_rows(state.pages, batch.place)
        parts: Floats = (own[:, 2] + (large + 1) / (changes + 1)) / (own[:, 0] + 1)
        return parts
