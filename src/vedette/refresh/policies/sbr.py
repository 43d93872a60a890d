"""Staleness-based refresh (SBR): keep copies current with respect to changes of more than a share of the text."""

from dataclasses import dataclass

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats
from vedette.refresh.freshness_index import (
    add_counts,
    elapsed_days,
    index_wait_days,
    is_significant,
    shrunk_rates,
    to_due_times,
)
from vedette.refresh.known_pages import KnownPages, Memory


@dataclass(frozen=True, slots=True)
class Sbr:
    """Refresh like ``freshness`` with weight 1 per page; only changes of more than tau of the text count.

        stale    =  share of shingles that differ > tau
        worth(t) =  (1 / L) (1 - exp(-L t) (1 + L t)),      L stale copies found a day, shrunk to the mean of all pages
        due      =  last_fetch + t where worth(t) / cost = price

    The thesis fits L to the whole record and schedules fetches over weeks (as does ``lab.experiments.user_centric``).
    This form learns online. A change of unknown size counts.

    Useful as a baseline that distinguishes large changes from small ones. Not useful if a small change matters, such as
    the date of a seminar, or a large one does not, such as an advertisement.

    Reference: Pandey08, section 4.7.1, after J. Cho, H. Garcia-Molina, *Synchronizing a Database to Improve Freshness*,
    SIGMOD 2000.

    >>> from vedette.policy import rng_for
    >>> day_s, no = 86_400.0, np.zeros(2, bool)
    >>> batch = KnownPages(np.arange(2), np.full(2, 10 * day_s), ~no, no, np.full(2, np.nan), before_s=np.zeros(2),
    ...     share=np.array([0.5, 0.01]))
    >>> policy = Sbr()
    >>> memory = policy.observe(policy.start(None), batch, now=10 * day_s)
    >>> (policy.due(memory, batch, 10 * day_s, 1.0, rng_for(1, "refresh")) / day_s).round(1).tolist()
    [16.2, 20.1]
    """

    tau: float = 0.1
    name: str = "sbr"
    priced: bool = True
    wants: frozenset[str] = frozenset({"share"})

    def __post_init__(self) -> None:
        if not 0 <= self.tau <= 1:
            raise ConfigError("sbr: tau must be between 0 and 1")

    def start(self, config: None) -> Memory:
        """Return an empty SBR memory: no page was fetched yet."""
        return Memory.empty(page_width=2, group_width=2)

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Count stale copies found by these fetches, and the days in which they became stale or did not."""
        days = elapsed_days(batch)
        return add_counts(state, batch, np.stack([is_significant(batch, self.tau) & (days > 0), days], axis=1))

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return when the staleness index of each page reaches the price of a fetch."""
        waits = index_wait_days(shrunk_rates(state, batch), np.ones(len(batch)), price * batch.cost)
        return to_due_times(batch, waits)

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe how often a page changes by more than tau of its text."""
        days = 1 / shrunk_rates(state, batch)[row]
        return f"sbr: more than {self.tau:.0%} of its text changes about every {days:.1f} days"
