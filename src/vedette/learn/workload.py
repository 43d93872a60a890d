"""Query workload: which queries and terms people search for, how often recently, and what is new among them.

Every search counts by its age, twice: with a long half-life for usual counts, with a short one for recent counts.
Memory is bounded; ``Workload.max_missed`` is the largest error that causes in a weight (see ``decaying_counts``).
``trends`` defines what counts as rising or as drift.

Useful for: estimating the worth of fresh and good pages, by how often they are searched for; showing an operator what
people want. Not useful for: single people; the order of rare queries, which is chance; an exact count of searches in a
span of time, which the event store has.
"""

from collections.abc import Iterable, Sequence
from math import isfinite, log
from typing import NamedTuple, Self

import numpy as np

from vedette.learn.decaying_counts import ForwardDecay, Numbers, SpaceSavingTally, TallySnapshot
from vedette.learn.trends import Moments, find_rising, measure_shift
from vedette.timeutil import DAY_S

HALF_LIFE_S = 14 * DAY_S
RECENT_HALF_LIFE_S = DAY_S
MAX_QUERIES = 200_000
MAX_QUERY_LENGTH = 256  # characters; only the beginning of a longer one counts
MAX_TERM_LENGTH = 64
MAX_TERMS = 32  # of one query
MAX_TIMES = 1e9
MIN_RECENT_SEARCHES = 3.0  # recent searches required for a rise
MAX_MOVERS = 10
MIN_PAST_HALF_LIVES = 2.0  # recent half-lives that must have passed before anything is usual


class QueryWeight(NamedTuple):
    """A query or term of the workload: its decaying count, and its share of all searches."""

    words: str
    weight: float
    share: float


class RisingQuery(NamedTuple):
    """A query that is searched more than usual, with its rates in searches a day."""

    words: str
    recent_per_day: float
    usual_per_day: float

    @property
    def sentence(self) -> str:
        """Describe the recent and usual rates of a rising query.

        >>> RisingQuery("low tide", 31.4, 0.3).sentence
        '31 searches a day, usually one in 3 days'
        """
        return f"{_format_rate(self.recent_per_day, 'searches ')}, usually {_format_rate(self.usual_per_day)}"


class Mover(NamedTuple):
    """A term whose share of the searches changed: its recent share, and its share before."""

    term: str
    recent_share: float
    usual_share: float


class Drift(NamedTuple):
    """Drift of the workload: how far recent searches are from usual ones; 0 the same, 1 nothing in common.

    ``is_told`` is False if there are too few searches to compare.
    """

    distance: float
    is_notable: bool
    movers: tuple[Mover, ...] = ()
    is_told: bool = True

    @property
    def sentence(self) -> str:
        """Describe the drift of the workload in a sentence.

        >>> Drift(0.31, True, (Mover("storm", 0.2, 0.01), Mover("tide", 0.05, 0.12))).sentence
        'What people search for has shifted: more "storm", less "tide".'
        """
        if not self.is_told:
            return "Too few searches yet to detect a shift in what people search for."
        if not self.is_notable:
            return "People search for much the same as before."
        more = [f'"{each.term}"' for each in self.movers if each.recent_share > each.usual_share]
        less = [f'"{each.term}"' for each in self.movers if each.recent_share <= each.usual_share]
        named = [f"{way} {', '.join(terms[:3])}" for way, terms in (("more", more), ("less", less)) if terms]
        return f"What people search for has shifted{': ' if named else ''}{', '.join(named)}."


class _Sums:
    """Sums over all searches as of the decay reference: of slow and quick weights, squares and products."""

    __slots__ = ("both", "quick", "quick_squares", "slow", "slow_squares")

    def __init__(self) -> None:
        self.slow = self.quick = self.slow_squares = self.both = self.quick_squares = 0.0

    def add(self, slow: float, quick: float, times: float) -> None:
        """Add ``times`` searches of one moment, with their total weights."""
        self.slow += slow
        self.quick += quick
        self.slow_squares += slow * slow / times
        self.both += slow * quick / times
        self.quick_squares += quick * quick / times

    def scale(self, slow: float, quick: float) -> None:
        """Scale the sums after the decay reference moved."""
        self.slow *= slow
        self.quick *= quick
        self.slow_squares *= slow * slow
        self.both *= slow * quick
        self.quick_squares *= quick * quick

    def moments(self, slow: float, quick: float) -> Moments:
        """Return the moments of the workload at a time, by its factors; usual is slow minus quick."""
        squares, both, quicks = self.slow_squares * slow**2, self.both * slow * quick, self.quick_squares * quick**2
        usual = max(self.slow * slow - self.quick * quick, 0.0)
        return Moments(self.quick * quick, usual, quicks, max(squares - 2.0 * both + quicks, 0.0), both - quicks)


class Workload:
    """The decaying workload of queries and terms, in the words of ``vedette.text`` separated by one space.

    Searches may come in any order. For a moment before the latest search, results are as of that search.

    >>> workload = Workload.create()
    >>> for day in range(3):
    ...     workload.add("low tide", day * DAY_S)
    >>> workload.add("tide table", 2 * DAY_S, times=4.0)
    >>> [(asked.words, round(asked.share, 2)) for asked in workload.top_queries(2 * DAY_S, 2)]
    [('tide table', 0.58), ('low tide', 0.42)]
    >>> workload.frequency("tide table", 16 * DAY_S), round(workload.term_frequency("tide", 2 * DAY_S), 2)
    (2.0, 6.86)
    """

    def __init__(self, fading: ForwardDecay, most: int) -> None:
        self._fading = fading
        self._queries, self._terms = SpaceSavingTally(most), SpaceSavingTally(most)
        self._sums = _Sums()
        self._first_s = 0.0

    @classmethod
    def create(
        cls,
        half_life_s: float = HALF_LIFE_S,
        recent_half_life_s: float = RECENT_HALF_LIFE_S,
        most: int = MAX_QUERIES,
    ) -> Self:
        """Create an empty workload with capacity for ``most`` queries and as many terms."""
        return cls(ForwardDecay(half_life_s, recent_half_life_s), most)

    def __len__(self) -> int:
        return len(self._queries)

    def add(self, words: str, at_s: float, times: float = 1.0) -> None:
        """Add ``times`` searches of one query at one moment to the workload; invalid input is ignored."""
        if not (words and isfinite(at_s) and times > 0.0):
            return
        fading, times = self._fading, min(times, MAX_TIMES)
        if fading.needs_rebase(at_s):
            self._rebase(at_s)
        self._first_s = min(self._first_s, at_s) if self._sums.slow else at_s
        fading.latest_s = max(fading.latest_s, at_s)
        slow, quick = (weight * times for weight in fading.weights(at_s))
        self._sums.add(slow, quick, times)
        self._queries.add(words[:MAX_QUERY_LENGTH], slow, quick)
        for term in dict.fromkeys(words.split(None, MAX_TERMS)[:MAX_TERMS]):
            self._terms.add(term[:MAX_TERM_LENGTH], slow, quick)

    def frequency(self, words: str, now_s: float) -> float:
        """Return the decaying count of a query in the workload."""
        return self._queries.slow_weight(words[:MAX_QUERY_LENGTH]) * self._fading.factors(now_s)[0]

    def term_frequency(self, term: str, now_s: float) -> float:
        """Return the decaying count of searches with this term."""
        return self._terms.slow_weight(term[:MAX_TERM_LENGTH]) * self._fading.factors(now_s)[0]

    def count_searches(self, now_s: float) -> float:
        """Return the decaying count of all searches in the workload."""
        return self._sums.slow * self._fading.factors(now_s)[0]

    def max_missed(self, now_s: float) -> float:
        """Return the maximum error of a workload count: 0 while there was capacity for all names."""
        return max(self._queries.floor, self._terms.floor) * self._fading.factors(now_s)[0]

    def top_queries(self, now_s: float, most: int) -> list[QueryWeight]:
        """Return the most frequent queries of the workload."""
        return self._heaviest(self._queries.snapshot(), now_s, most)

    def top_terms(self, now_s: float, most: int) -> list[QueryWeight]:
        """Return the most frequent terms of the workload."""
        return self._heaviest(self._terms.snapshot(), now_s, most)

    def to_arrays(self, now_s: float) -> tuple[list[str], Numbers]:
        """Return all queries of the workload, most frequent first, and their shares, which sum to 1.

        Shares do not depend on the moment, unless it is so late that everything has decayed: then there are none.
        """
        held = self._queries.snapshot()
        weights = held.slow * self._fading.factors(now_s)[0]
        order = [place for place in np.argsort(-weights, kind="stable").tolist() if weights[place] > 0.0]
        shares: Numbers = held.slow[order] / max(float(held.slow[order].sum()), np.finfo(np.float64).tiny)
        return [held.names[place] for place in order], shares

    def find_rising(self, now_s: float, most: int, least: float = MIN_RECENT_SEARCHES) -> list[RisingQuery]:
        """Find queries that are certainly searched more than usual, those with the largest increase first."""
        names, recent, usual = self._split_weights(self._queries.snapshot(), now_s)
        found = find_rising(recent, usual, self._compute_moments(now_s)) & (recent >= least)
        recent_days, usual_days = self._compute_days(now_s)
        each = [
            RisingQuery(names[place], float(recent[place]) / recent_days, float(usual[place]) / usual_days)
            for place in found.nonzero()[0].tolist()
        ]
        return sorted(each, key=lambda one: (one.usual_per_day - one.recent_per_day, one.words))[:most]

    def measure_drift(self, now_s: float) -> Drift:
        """Measure how far recent search terms of the workload drifted from usual ones, and which moved."""
        if now_s - self._first_s < MIN_PAST_HALF_LIVES * self._fading.quick_s:
            return Drift(0.0, is_notable=False, is_told=False)  # nothing is usual yet
        names, recent, usual = self._split_weights(self._terms.snapshot(), now_s)
        every = self._compute_moments(now_s)
        found = measure_shift(recent, usual, every)
        movers = tuple(
            Mover(names[place], float(recent[place]) / every.recent, float(usual[place]) / every.usual)
            for place in found.movers[:MAX_MOVERS]
        )
        return Drift(found.distance, found.is_notable, movers, found.has_enough_data)

    def _rebase(self, at_s: float) -> None:
        factors = self._fading.rebase(at_s)
        for tally in (self._queries, self._terms, self._sums):
            tally.scale(*factors)

    def _heaviest(self, held: TallySnapshot, now_s: float, most: int) -> list[QueryWeight]:
        factor = self._fading.factors(now_s)[0]
        places = np.argsort(-held.slow, kind="stable")[: max(most, 0)].tolist()
        weighed = [(held.names[place], float(held.slow[place])) for place in places]
        return [
            QueryWeight(name, slow * factor, slow / self._sums.slow) for name, slow in weighed if slow * factor > 0.0
        ]

    def _split_weights(self, held: TallySnapshot, now_s: float) -> tuple[Sequence[str], Numbers, Numbers]:
        """Return the names of a tally with their recent and usual weights."""
        slow, quick = self._fading.factors(now_s)
        recent = held.quick * quick
        return held.names, recent, np.maximum(held.slow * slow - recent, 0.0)

    def _compute_moments(self, now_s: float) -> Moments:
        return self._sums.moments(*self._fading.factors(now_s))

    def _compute_days(self, now_s: float) -> tuple[float, float]:
        """Return how many whole days the recent and usual decaying windows amount to; an hour at least."""
        fading = self._fading
        age_s = max(now_s - self._first_s, fading.latest_s - self._first_s, 0.0)
        slow, quick = (
            half_s / log(2.0) * (1.0 - 2.0 ** (-age_s / half_s)) / DAY_S for half_s in (fading.slow_s, fading.quick_s)
        )
        return max(quick, 1 / 24), max(slow - quick, 1 / 24)


def build_workload(rows: Iterable[tuple[float, str, float]], most: int = MAX_QUERIES) -> Workload:
    """Build the workload from logged searches: rows of time, words and count.

    >>> build_workload([(0.0, "tide", 2.0), (5.0, "tide", 1)]).top_queries(5.0, 1)[0].words
    'tide'
    """
    workload = Workload.create(most=most)
    for at_s, words, times in rows:
        workload.add(words, at_s, times)
    return workload


def _format_rate(per_day: float, of_what: str = "") -> str:
    """Format a search rate per day in words.

    >>> [_format_rate(rate) for rate in (120.4, 2.34, 0.3, 0.0)]
    ['120 a day', '2.3 a day', 'one in 3 days', 'none']
    """
    if per_day < 1 / 365:
        return "none"
    if per_day < 0.95:
        return f"one in {max(round(1 / per_day), 2)} days"
    return f"{per_day:.{0 if per_day >= 9.95 else 1}f} {of_what}a day"
