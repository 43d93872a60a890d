"""Discovery in cycles on the history of a site: at each snapshot, which known pages lead to new ones?

The setting of Pandey08, chapter 3. Known pages are those of the previous snapshot, whether or not they were found; a
poll of one finds the new pages it leads to, also through new pages (``arrivals``). One that died since then fails.
Pages that are new at a snapshot are known at the next. Hosts are separate, orphans left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from vedette.discover.polling.sources import PollHistory, PollResults, Sources
from vedette.lab.baselines.greedy_cover import compute_greedy_cover
from vedette.lab.core.experiment import Measurements, Metric
from vedette.lab.metrics.discovery import overhead, overhead_mean
from vedette.lab.runs.discovery.arrivals import Backlinks, CoverSets, compute_cover_sets, number_hosts, split_intervals
from vedette.lab.runs.discovery.frontpage_run import DiscoveryPolicy
from vedette.lab.worlds.history import PAGE, History
from vedette.policy import Ints, rng_for


@dataclass(frozen=True, slots=True)
class Cycle:
    """A discovery cycle: a host at a snapshot.

    ``known`` are its pages, by their numbers, and ``alive`` says which still respond. ``link_bits`` has those that lead
    to anything new, with a bit for each new page, ``new`` counts these pages, and ``first_number`` is the number of the
    first: no two cycles share one.
    """

    now_s: float
    known: Ints
    alive: np.ndarray[tuple[int], np.dtype[np.bool_]]
    link_bits: dict[int, int]
    new: int
    first_number: int

    def count_found(self, pages: Ints) -> list[int]:
        """Count the new pages that the first 1, 2, … of these known pages lead to in a discovery cycle."""
        found = 0
        counts = []
        for page in pages.tolist():
            found |= self.link_bits.get(page, 0)
            counts.append(found.bit_count())
        return counts

    def poll(self, pages: Ints) -> PollResults:
        """Poll these known pages in a discovery cycle; everything they lead to is new."""
        leading = np.flatnonzero(np.isin(pages, list(self.link_bits)))
        targets = {bits: _bit_positions(bits) + self.first_number for bits in dict.fromkeys(self.link_bits.values())}
        shown = [targets[self.link_bits[page]] for page in pages[leading].tolist()]
        many = np.zeros(len(pages), np.int64)
        many[leading] = [len(each) for each in shown]
        start = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
        target = np.concatenate([np.zeros(0, np.int64), *shown])
        ok = self.alive[np.searchsorted(self.known, pages)]
        return PollResults(pages, ok, start, target, np.ones(len(target), bool))


def _bit_positions(bits: int) -> Ints:
    """Return the positions of the bits that are set in a cycle's link bit set.

    >>> _bit_positions(0b1010).tolist()
    [1, 3]
    """
    raw = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


def build_cycles(history: History, begin_s: float, end_s: float, every_s: float) -> list[list[Cycle]]:
    """Build the discovery cycles of each host in which new pages can ever be found, with or without new pages."""
    backlinks, host = Backlinks.from_history(history), number_hosts(history)
    hosts: dict[int, list[Cycle]] = {number: [] for number in range(int(host.max(initial=-1)) + 1)}
    by_host = [np.flatnonzero((host == number) & (history.kind == PAGE)) for number in hosts]
    first = 0
    for step in split_intervals(begin_s, end_s, every_s):
        arrivals = backlinks.find_arrivals(step)
        found = {reach.group: reach for reach in compute_cover_sets(arrivals, np.arange(len(arrivals.new)), host)}
        for number, pages in enumerate(by_host):
            known_pages = pages[(history.born_s[pages] <= step.before_s) & (step.before_s < history.died_s[pages])]
            leads = _select_links(found[number], known_pages) if number in found else {}
            new = _union_bits(leads).bit_count()
            hosts[number].append(
                Cycle(step.now_s, known_pages, step.now_s < history.died_s[known_pages], leads, new, first)
            )
            first += len(arrivals.new)
    return [cycles for cycles in hosts.values() if any(cycle.new for cycle in cycles)]


def _select_links(reach: CoverSets, known_pages: Ints) -> dict[int, int]:
    """Select the link bit sets of known pages; one that was gone at the last snapshot and is back is not known."""
    rows = np.flatnonzero(np.isin(reach.old_pages, known_pages))
    return {int(reach.old_pages[row]): reach.cover_bits[row] for row in rows.tolist()}


def _union_bits(leads: dict[int, int]) -> int:
    found = 0
    for bits in leads.values():
        found |= bits
    return found


class CyclePolls:
    """Poll history of the pages of one host in cycles, which builds the batches of discovery policies."""

    def __init__(self, cycles: Sequence[Cycle]) -> None:
        pages = max((int(cycle.known.max(initial=-1)) for cycle in cycles), default=-1) + 1
        self._book = PollHistory(np.zeros(pages, np.int64))

    def options(self, cycle: Cycle) -> Sources:
        """Return the known pages of a discovery cycle as sources to choose from."""
        return _select_rows(self._book.list_options(), cycle.known)

    def record_polls(self, cycle: Cycle, pages: Ints) -> Sources:
        """Record polls of these pages in a discovery cycle and return the batch to learn from."""
        return self._book.record(cycle.poll(pages), cycle.now_s)


def _select_rows(every: Sources, rows: Ints) -> Sources:
    columns = {
        name: getattr(every, name)[rows]
        for name in ("place", "host", "last_poll_s", "failures", "polls", "found", "links", "poll_s", "yields")
    }
    return replace(every, **columns, shown_start=np.zeros(len(rows) + 1, np.int64))


# Policies that learn from full crawls (section 3.6) see one in ``recrawl`` cycles, 1, 2 or 4, and choose at the cycles
# in between (at all of them if it is 1). Every phase is run, and all count together. Their picks for k are the first k
# of those for any larger budget, so one run gives all sizes up to the budget. All others learn from their own polls,
# and choose at every cycle; their rows have ``recrawl`` = 0. The default has both kinds of rows: in the first it knows
# what its rivals know, in the other it pays for everything it knows. ``ceiling`` is what all pages would find that led
# to something new at an earlier full crawl: 74, 64 and 59% in the paper for 1, 2 and 4. ``overhead_full`` counts full
# crawls too, with what they find; the paper does not. Coverage is of the pages that some known page leads to, from the
# first cycle after a full crawl on. Its interval is over cycles, drawn with replacement: a cycle used in several phases
# is one.


# Policies that learn from full crawls.
FULL_CRAWL_POLICIES = ("od-1", "od-win", "cliq-1", "cliq-win", "cliq-win-strict", "cov")
# A policy that learns from either, and also from a crawl without new pages: then nothing was published in that time.
MIXED_POLICIES = ("accrual",)
RECRAWL_INTERVALS = (1, 2, 4)
SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_RESAMPLES = 1_000
CYCLE_METRICS: Mapping[str, Metric] = {
    "coverage_low": Metric("lower end of the 95% confidence interval of coverage, over cycles", "share"),
    "coverage_high": Metric("upper end of it", "share"),
    "depth": Metric("pages polled in a cycle with something new", "pages", False),
    "overhead_full": Metric("overhead with the cost of full crawls, and with what they find", "", False),
    "ceiling": Metric("share found from all pages that led to something new in an earlier full crawl", "share", True),
    "cases": Metric("hosts and cycles with something new to find"),
}


@dataclass(slots=True)
class _Tally:
    """Tally of polls, finds and new pages over discovery cycles, for one number of polls per cycle."""

    polls: list[int] = field(default_factory=list)
    finds: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    cycle: list[int] = field(default_factory=list)

    def add(self, cycle: Cycle, found: Sequence[int], most: int) -> None:
        """Add a discovery cycle to the tally: what its polls found, one after the other; the first ``most`` count."""
        counted = found[:most]
        self.polls.append(len(counted))
        self.finds.append(counted[-1] if counted else 0)
        self.new.append(cycle.new)
        self.cycle.append(cycle.first_number)


def build_policy_rows(
    policy: DiscoveryPolicy, hosts: Sequence[Sequence[Cycle]], k: int, seed: int
) -> list[Measurements]:
    """Run a discovery policy in cycles and build all of its rows."""
    rows: list[Measurements] = []
    if policy.name in (*FULL_CRAWL_POLICIES, *MIXED_POLICIES):
        rows = [row for every in RECRAWL_INTERVALS for row in _run_full_crawls(policy, hosts, k, seed, every)]
    return rows if policy.name in FULL_CRAWL_POLICIES else [*rows, _run_own_polls(policy, hosts, k, seed)]


def build_bound_rows(hosts: Sequence[Sequence[Cycle]], k: int) -> list[Measurements]:
    """Build the rows of GREEDY, which knows where every page leads, at the cycles of policies with full crawls."""
    tallies = {size: _Tally() for size in _budget_sizes(k)}
    for cycle in (cycle for cycles in hosts for cycle in _select_productive(cycles)[1:]):
        found = np.cumsum(compute_greedy_cover(list(cycle.link_bits.values()), most=k).gains).tolist()
        for size, tally in tallies.items():
            tally.add(cycle, found, size)
    return [{"recrawl": 1.0, "k": float(size), **_compute_metrics(tally)} for size, tally in tallies.items()]


def _select_productive(cycles: Sequence[Cycle]) -> list[Cycle]:
    return [cycle for cycle in cycles if cycle.new]


def _budget_sizes(k: int) -> list[int]:
    return [size for size in SIZES if size < k] + [k]


def _run_full_crawls(
    policy: DiscoveryPolicy, hosts: Sequence[Sequence[Cycle]], k: int, seed: int, every: int
) -> Iterator[Measurements]:
    tallies = {size: _Tally() for size in _budget_sizes(k)}
    new = reachable = crawled = found_by_crawls = 0
    for cycles in hosts:
        for phase in range(every):
            run = _FullCrawlRun(policy, cycles, seed)
            for number, cycle in enumerate(cycles):
                full = number % every == phase
                if cycle.new and run.has_evidence and (every == 1 or not full):
                    found = cycle.count_found(run.choose(cycle, k))
                    for size, tally in tallies.items():
                        tally.add(cycle, found, size)
                    new += cycle.new
                    reachable += run.count_reachable(cycle)
                if full:
                    crawled += len(cycle.known)
                    found_by_crawls += cycle.new
                    run.crawl(cycle)
    for size, tally in tallies.items():
        whole = overhead(sum(tally.polls) + crawled, found_by_crawls + sum(tally.finds) * (every > 1))
        metrics = {**_compute_metrics(tally), "ceiling": reachable / max(new, 1), "overhead_full": whole}
        yield {"recrawl": float(every), "k": float(size), **metrics}


class _FullCrawlRun:
    """A run in cycles of a discovery policy that learns from full crawls, and the pages that ever led to new ones."""

    def __init__(self, policy: DiscoveryPolicy, cycles: Sequence[Cycle], seed: int) -> None:
        self._policy, self._seed = policy, seed
        self._state = policy.start(None)
        self._looks = CyclePolls(cycles)
        self._led: dict[int, None] = {}

    @property
    def has_evidence(self) -> bool:
        """Check whether a full crawl has found anything new yet."""
        return bool(self._led)

    def choose(self, cycle: Cycle, k: int) -> Ints:
        """Choose the pages that the discovery policy polls between full crawls."""
        rng = rng_for(self._seed, f"discover/{self._policy.name}/{cycle.now_s:.0f}")
        rows = self._policy.choose(self._state, self._looks.options(cycle), k, cycle.now_s, rng).rows
        return cycle.known[rows]

    def count_reachable(self, cycle: Cycle) -> int:
        """Count the new pages of a cycle that are reachable from pages that ever led to new ones."""
        pages = [page for page in cycle.link_bits if page in self._led]
        return [0, *cycle.count_found(np.array(pages, np.int64))][-1]

    def crawl(self, cycle: Cycle) -> None:
        """Let the discovery policy learn from a full crawl of every known page; skip one without new pages."""
        self._led.update(dict.fromkeys(cycle.link_bits))
        if cycle.new or self._policy.name in MIXED_POLICIES:
            self._state = self._policy.observe(self._state, self._looks.record_polls(cycle, cycle.known), cycle.now_s)


def _run_own_polls(policy: DiscoveryPolicy, hosts: Sequence[Sequence[Cycle]], k: int, seed: int) -> Measurements:
    """Run a discovery policy that learns from its own polls through every cycle, with or without new pages."""
    tally = _Tally()
    wasted = 0
    for cycles in hosts:
        state, looks = policy.start(None), CyclePolls(cycles)
        first = cycles.index(_select_productive(cycles)[0])
        for number, cycle in enumerate(cycles):
            rng = rng_for(seed, f"discover/{policy.name}/{cycle.now_s:.0f}")
            chosen = cycle.known[policy.choose(state, looks.options(cycle), k, cycle.now_s, rng).rows]
            if number > first and cycle.new:
                tally.add(cycle, cycle.count_found(chosen), k)
            elif number > first:
                wasted += len(chosen)
            state = policy.observe(state, looks.record_polls(cycle, chosen), cycle.now_s)
    whole = overhead(sum(tally.polls) + wasted, sum(tally.finds))
    return {"recrawl": 0.0, "k": float(k), **_compute_metrics(tally), "overhead_full": whole}


def _compute_metrics(tally: _Tally) -> dict[str, float]:
    looks, finds, new = np.array(tally.polls), np.array(tally.finds), sum(tally.new)
    low, high = _bootstrap_coverage(tally)
    return {
        "coverage": float(finds.sum() / max(new, 1)),
        "coverage_low": low,
        "coverage_high": high,
        "depth": float(looks.mean()) if len(looks) else 0.0,
        "overhead": overhead(looks, finds),
        "overhead_mean": overhead_mean(looks, finds),
        "fetches": float(looks.sum()),
        "new": float(new),
        "cases": float(len(looks)),
    }


def _bootstrap_coverage(tally: _Tally) -> tuple[float, float]:
    """Compute the bootstrap interval of discovery coverage, total finds by total new pages, over cycles."""
    place = np.unique(np.array(tally.cycle, np.int64), return_inverse=True)[1]
    finds, new = (np.bincount(place, weights=np.array(values)) for values in (tally.finds, tally.new))
    if not len(new):
        return float("nan"), float("nan")
    drawn = rng_for(1, "lab/cycles/interval").integers(0, len(new), (_RESAMPLES, len(new)))
    low, high = np.percentile(finds[drawn].sum(axis=1) / new[drawn].sum(axis=1), [2.5, 97.5])
    return float(low), float(high)
