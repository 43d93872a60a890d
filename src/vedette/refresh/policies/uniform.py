"""Uniform refresh: fetch every page equally often, in turn."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages


@dataclass(frozen=True, slots=True)
class Uniform:
    """Refresh every page equally often: a page is due again at once, and the most overdue goes first.

        due = last_fetch

    Useful as a simple baseline, and a strong one: it beats every policy that fetches in proportion to change rates. Not
    useful if the budget is larger than what is worth fetching: it spends all of it.

    Reference: J. Cho, H. Garcia-Molina, *Effective Page Refresh Policies for Web Crawlers*, ACM TODS 28(4), 2003.

    >>> from vedette.policy import rng_for
    >>> no = np.zeros(2, dtype=bool)
    >>> batch = KnownPages(np.arange(2), np.array([0.0, 90.0]), no, no, np.full(2, np.nan))
    >>> Uniform().due((), batch, now=90.0, price=0.0, rng=rng_for(1, "refresh")).tolist()
    [0.0, 90.0]
    """

    name: str = "uniform"

    def start(self, config: None) -> tuple[()]:
        """Return the empty state of the uniform policy, which learns nothing."""
        return ()

    def observe(self, state: tuple[()], batch: KnownPages, now: float) -> tuple[()]:
        """Ignore what the fetches found; uniform refresh learns nothing."""
        return state

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return the last fetch as due time, so that the page that has waited longest is the most overdue."""
        return batch.last_fetch_s.copy()

    def reason(self, state: tuple[()], batch: KnownPages, row: int, now: float) -> str:
        """Describe that it is the page's turn in uniform refresh."""
        return "uniform: pages are fetched in turn"
