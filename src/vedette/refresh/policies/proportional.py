"""Proportional refresh: fetch pages as often as they change, in proportion."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.freshness_index import add_counts, elapsed_days, shrunk_rates, to_due_times
from vedette.refresh.known_pages import KnownPages, Memory


@dataclass(frozen=True, slots=True)
class Proportional:
    """Refresh a page when the changes expected since its last fetch reach the price, equal for all pages.

        due = last_fetch + price cost / D
        D   = (c + 1/2) / (T + 1/2 / Dbar)             c changes found in T days, Dbar the rate of all pages

    So a page that changes twice as often is fetched twice as often.

    Useful as the intuitive baseline: Cho and Garcia-Molina prove that it is never fresher than fetching all pages
    equally often, whatever their rates. Not useful for anything else.

    Reference: J. Cho, H. Garcia-Molina, *Effective Page Refresh Policies for Web Crawlers*, ACM TODS 28(4), 2003,
    section 4; the baseline of Pandey08, 4.7. The shrinkage of rates is ours.

    >>> from vedette.policy import rng_for
    >>> day_s, no = 86_400.0, np.zeros(2, bool)
    >>> batch = KnownPages(np.arange(2), np.full(2, 10 * day_s), np.array([True, False]), no, np.full(2, np.nan),
    ...     before_s=np.zeros(2))
    >>> policy = Proportional()
    >>> memory = policy.observe(policy.start(None), batch, now=10 * day_s)
    >>> (policy.due(memory, batch, 10 * day_s, 1.0, rng_for(1, "refresh")) / day_s).round(1).tolist()
    [24.4, 53.3]
    """

    name: str = "proportional"
    priced: bool = True

    def start(self, config: None) -> Memory:
        """Return an empty proportional memory: no page was fetched yet."""
        return Memory.empty(page_width=2, group_width=2)

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Count changes found by these fetches, and the days in which they happened or did not."""
        days = elapsed_days(batch)
        return add_counts(state, batch, np.stack([batch.changed & (days > 0), days], axis=1))

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return when as many changes of each page are expected as a fetch costs."""
        return to_due_times(batch, price * batch.cost / shrunk_rates(state, batch))

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe how often a page changes, as the proportional policy estimates it."""
        return f"proportional: changes about every {1 / shrunk_rates(state, batch)[row]:.1f} days"
