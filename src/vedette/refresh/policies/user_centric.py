"""User-centric refresh: fetch pages whose past fetches improved search most, once enough gain has built up."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.freshness_index import add_counts, elapsed_days, fill_unknown, select_rows, to_due_times
from vedette.refresh.known_pages import Bools, KnownPages, Memory


@dataclass(frozen=True, slots=True)
class UserCentric:
    """Refresh a page when its mean search-quality gain per day, times the days waited, reaches the price.

        dQ_A(p)  =  mean over past fetches of  gain / days since the fetch before
        P(p, t)  =  dQ_A(p) (t - last fetch)
        due      =  last_fetch + t where P / cost = price

    The mean is shrunk to that of all pages, as if one more fetch had been made with it: a page without history has the
    mean of all, and one without gains so far is fetched at growing intervals, but never given up. A fetch that finds
    nothing new has no gain; the gain of a change may be measured later (``learn_gains``). As long as no gain is known,
    all pages are due at once. A page that died is ignored. The price is in search quality.

    Useful if the gain of a fetch is measured (``KnownPages.gain``). Not useful if it is not, or if gains come in
    bursts: the worth of a fetch grows linearly here without limit, while that of a page which has already changed does
    not.

    Reference: Pandey08, sections 4.5.2 and 4.7.1; S. Pandey, C. Olston, *User-Centric Web Crawling*, WWW 2005. The
    shrinkage of the mean is ours.

    >>> from vedette.policy import rng_for
    >>> day_s, no = 86_400.0, np.zeros(2, bool)
    >>> batch = KnownPages(np.arange(2), np.full(2, 10 * day_s), ~no, no, np.full(2, np.nan), before_s=np.zeros(2),
    ...     gain=np.array([6.0, 0.0]))
    >>> policy = UserCentric()
    >>> memory = policy.observe(policy.start(None), batch, now=10 * day_s)
    >>> (policy.due(memory, batch, 10 * day_s, 4.5, rng_for(1, "refresh")) / day_s).round(1).tolist()
    [20.0, 40.0]
    """

    name: str = "user-centric"
    priced: bool = True
    wants: frozenset[str] = frozenset({"gain"})

    def start(self, config: None) -> Memory:
        """Return an empty user-centric memory: no gain is known yet."""
        return Memory.empty(page_width=2, group_width=2)

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Count the fetches whose search-quality gain is known, and their gain per day."""
        return add_counts(state, batch, _count_gains(batch, ~batch.changed | np.isfinite(batch.gain)))

    def learn_gains(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Count changes whose search-quality gain was measured after they were found."""
        return add_counts(state, batch, _count_gains(batch, batch.changed & np.isfinite(batch.gain)))

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return when the expected gain of each page reaches the cost of a fetch; never if it has none."""
        per_day = self._per_day(state, batch)
        waits = np.divide(price * batch.cost, per_day, out=np.full(len(batch), np.inf), where=per_day > 0)
        return to_due_times(batch, waits)

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe the search-quality gain that a fetch of the page is expected to bring."""
        per_day, fetches = self._per_day(state, batch)[row], select_rows(state.pages, batch.place)[row, 0]
        if np.isinf(per_day):
            return "user-centric: no gain is known yet, so every page is due"
        return f"user-centric: brings about {per_day:.2g} of search quality a day, by {fetches:.0f} past fetches"

    def _per_day(self, state: Memory, batch: KnownPages) -> Floats:
        fetches, total = state.groups[0].tolist()
        if not total > 0:
            return np.full(len(batch), np.inf)
        own = select_rows(state.pages, batch.place)
        per_day: Floats = np.maximum(own[:, 1] + total / fetches, 0.0) / (own[:, 0] + 1)
        return per_day


def _count_gains(batch: KnownPages, measured: Bools) -> Floats:
    """Return a row for each page: 1 if a fetch shows its gain, and that gain per day."""
    days = elapsed_days(batch)
    measured = measured & (days > 0)
    per_day = np.divide(fill_unknown(batch.gain, 0.0), days, out=np.zeros(len(batch)), where=measured)
    return np.stack([measured, per_day], axis=1)
