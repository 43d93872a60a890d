"""The best plan for fresh copies (Cho and Garcia-Molina, Azar and others), as an index, with rates that are learned."""

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
    """Fetch a page when what its copy has lost in freshness reaches the price.

        worth(t) = (mu / D) (1 - exp(-D t) (1 + D t))       t days after the last fetch
        D        = (c + 1/2) / (T + 1/2 / Dbar)             c changes found in T days, Dbar the rate of all pages
        due      = last_fetch + t where worth(t) / cost = price

    mu is how often people are shown the page where that is known (``views``), else 1: tell it of all pages or of none.
    A page with mu / (D cost) at or below the price is never due: it changes faster than it pays to follow. The price is
    in mu times days; the state has a row of changes and days for each page and one for all.

    Useful where copies are to be current, and rates of change differ and stay. Not useful where changes differ in what
    they mean for search, come in waves, or follow a rhythm: for it every page forgets when it changed last.

    Reference: J. Cho, H. Garcia-Molina, *Effective Page Refresh Policies for Web Crawlers*, ACM TODS 28(4), 2003;
    Y. Azar, E. Horvitz, E. Lubetzky, Y. Peres, D. Shahaf, *Tractable near-optimal policies for crawling*, PNAS 115(32),
    2018. How rates are shrunk is ours.

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
        """No page was looked at."""
        return Memory.empty(page_width=2, group_width=2)

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Another change or none, and the days in which it was or was not."""
        days = elapsed_days(batch)
        return add_counts(state, batch, np.stack([batch.changed & (days > 0), days], axis=1))

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """When the index reaches the price of a fetch."""
        rates, weights = shrunk_rates(state, batch), fill_unknown(batch.views, 1.0)
        return to_due_times(batch, index_wait_days(rates, weights, price * batch.cost))

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """How often it changes."""
        return f"freshness: changes about every {1 / shrunk_rates(state, batch)[row]:.1f} days"
