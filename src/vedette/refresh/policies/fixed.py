"""Fixed refresh interval for all pages: the rule for discovery sources, which are polled for their links."""

from dataclasses import dataclass

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages


@dataclass(frozen=True, slots=True)
class Fixed:
    """Refresh each page a fixed interval after its last fetch.

        due = last_fetch + interval

    Ten minutes by default: enough to miss no link of a busy news feed in its busiest hours.

    Useful for sources (feeds, sitemaps, home pages) while there are few of them and a conditional request costs almost
    nothing, and as the baseline that an adaptive policy has to beat at equal budget. Not useful for large numbers of
    pages: most fetches would find nothing.

    Reference: the uniform policy of J. Cho, H. Garcia-Molina, *Effective Page Refresh Policies for Web Crawlers*,
    ACM TODS 28(4), 2003; the ten minutes: commoncrawl/news-crawl, issue 15.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> no = np.zeros(2, dtype=bool)
    >>> batch = KnownPages(np.arange(2), np.array([0.0, 90.0]), no, no, np.full(2, np.nan))
    >>> policy = Fixed()
    >>> policy.due(policy.start(None), batch, now=90.0, price=0.0, rng=rng_for(1, "refresh")).tolist()
    [600.0, 690.0]
    """

    name: str = "fixed"
    interval_s: float = 600.0

    def __post_init__(self) -> None:
        if not 0 < self.interval_s < np.inf:
            raise ConfigError("fixed: interval must be positive and finite")

    def start(self, config: None) -> tuple[()]:
        """Return the empty state of the fixed interval policy, which learns nothing."""
        return ()

    def observe(self, state: tuple[()], batch: KnownPages, now: float) -> tuple[()]:
        """Ignore what the fetches found; the fixed interval does not change."""
        return state

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return last fetch plus the fixed interval."""
        due: Floats = batch.last_fetch_s + self.interval_s
        return due

    def reason(self, state: tuple[()], batch: KnownPages, row: int, now: float) -> str:
        """Describe the fixed refresh interval."""
        return f"fixed: again {self.interval_s / 60:.1f} min after the last fetch"
