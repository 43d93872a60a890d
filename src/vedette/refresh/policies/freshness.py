"""Optimal freshness refresh (Cho and Garcia-Molina; Azar et al.) as an index, with learned change rates."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.freshness_index import (
    add_counts,
    elapsed_days,
    fill_unknown,
    index_wait_days,
    shrunk_rates,
    to_due_times,
)
from vedette.refresh.known_pages import KnownPages, Memory


@dataclass(frozen=True, slots=True)
class Freshness:
    """Refresh a page when the freshness lost by its copy reaches the price.

        worth(t) = (mu / D) (1 - exp(-D t) (1 + D t))       t days after the last fetch
        D        = (c + 1/2) / (T + 1/2 / Dbar)             c changes found in T days, Dbar the rate of all pages
        due      = last_fetch + t where worth(t) / cost = price

    mu is how often people see the page if that is known (``views``), else 1: pass views for all pages or for none. A
    page with mu / (D cost) at or below the price is never due: it changes faster than it pays to follow. The price is
    in mu times days; the state has a row of changes and days for each page and one for all.

    Useful if copies should be current, and change rates differ and stay. Not useful if changes differ in their effect
    on search, come in waves, or follow a rhythm: pages are assumed to be memoryless.

    Reference: J. Cho, H. Garcia-Molina, *Effective Page Refresh Policies for Web Crawlers*, ACM TODS 28(4), 2003;
    Y. Azar, E. Horvitz, E. Lubetzky, Y. Peres, D. Shahaf, *Tractable near-optimal policies for crawling*, PNAS 115(32),
    2018. The shrinkage of rates is ours.

    >>> from vedette.policy import rng_for
    >>> day_s, no = 86_400.0, np.zeros(2, bool)
    >>> batch = KnownPages(np.arange(2), np.full(2, 10 * day_s), np.array([True, False]), no, np.full(2, np.nan),
    ...     before_s=np.zeros(2))
    >>> policy = Freshness()
    >>> memory = policy.observe(policy.start(None), batch, now=10 * day_s)
    >>> (policy.due(memory, batch, 10 * day_s, 1.0, rng_for(1, "refresh")) / day_s).round(1).tolist()
    [16.2, 20.1]
    """

    name: str = "freshness"
    priced: bool = True

    def start(self, config: None) -> Memory:
        """Return an empty freshness memory: no page was fetched yet."""
        return Memory.empty(page_width=2, group_width=2)

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Count changes found by these fetches, and the days in which they happened or did not."""
        days = elapsed_days(batch)
        return add_counts(state, batch, np.stack([batch.changed & (days > 0), days], axis=1))

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return when the freshness index of each page reaches the price of a fetch."""
        rates, weights = shrunk_rates(state, batch), fill_unknown(batch.views, 1.0)
        return to_due_times(batch, index_wait_days(rates, weights, price * batch.cost))

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe how often a page changes, as the freshness policy estimates it."""
        return f"freshness: changes about every {1 / shrunk_rates(state, batch)[row]:.1f} days"
