"""PageRank: compute the importance of pages and hosts from the links of the crawled graph.

A random surfer follows links, and with probability ``1 - d`` jumps to any page instead; the importance of a page is the
share of time spent there:

    r(p) = (1 - d) / n + d * (sum over links q -> p of r(q) * w(q, p) / w(q)  +  D / n)

with ``n`` pages, ``d`` the damping, ``w(q, p)`` the weight of a link, ``w(q)`` the sum of weights of all links of
``q``, and ``D`` the importance of all pages without links, from which the surfer jumps to any page. A link counts once
however often a page repeats it, and a page's link to itself does not count. A link within one host weighs less than one
from outside (``within_host``), since it is only the site's own navigation.

The pages of one shard of a cluster are a *block* of the graph: what flows in from the pages of other shards is known
from their last computation, and what flows out is sent to them. Each block is solved by itself, again and again as the
flows change, and all of them settle at the same ranks as the whole graph (block Jacobi).

Reference: L. Page, S. Brin, R. Motwani, T. Winograd, "The PageRank citation ranking: bringing order to the web",
Stanford InfoLab, 1999.

Useful for: distinguishing hosts and pages that others vouch for, when words say little ("news", a name). Not useful
for: choosing among the pages of one site, where it reflects the navigation; nor against farms of hosts that link to
each other. It is one feature among others, by its percentile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints

DAMPING = 0.85
WITHIN_HOST = 0.25
MAX_ROUNDS = 60
TOLERANCE = 1e-9
QUANTILES = 257
MIN_WEIGHT = 1e-6  # a page that links only to its own host still links


def page_importance(
    sources: Ints,
    targets: Ints,
    pages: int,
    *,
    damping: float = DAMPING,
    hosts: Ints | None = None,
    within_host: float = WITHIN_HOST,
    rounds: int = MAX_ROUNDS,
) -> Floats:
    """Compute the PageRank of each page 0 .. pages - 1; it sums to 1.

    Links go from ``sources`` to ``targets``; one with an end that is no page (such as -1) is left out. ``hosts`` has
    the host of each page; without it all links weigh the same. Iteration ends when all pages together move by less than
    1e-9, and after n rounds they are at most 2 * damping ** n off.

    >>> home, about, news = range(3)
    >>> links = np.array([(about, home), (news, home), (home, news), (news, news)])
    >>> page_importance(links[:, 0], links[:, 1], 3).round(4).tolist()
    [0.4865, 0.05, 0.4635]
    """
    sources, targets = _deduplicate_links(sources, targets, pages)
    weights = _weigh_links(sources, targets, hosts, within_host)
    totals = np.bincount(sources, weights, minlength=pages)
    shares = damping * weights / totals[sources]
    dangling = totals == 0
    ranks = np.full(pages, 1 / max(pages, 1))
    for _ in range(rounds if pages else 0):
        jumps = 1 - damping + damping * ranks[dangling].sum()
        moved = np.bincount(targets, ranks[sources] * shares, minlength=pages) + jumps / pages
        moved /= moved.sum()  # which is 1 up to rounding
        change = np.abs(moved - ranks).sum()
        ranks = moved
        if change < TOLERANCE:
            break
    return ranks


class BlockRanks(NamedTuple):
    """Ranks of a block: of its pages, what flows out over each link to another block, and without a link of its own."""

    ranks: Floats
    outflow: Floats
    dangling: float


@dataclass(frozen=True, slots=True)
class GraphBlock:
    """A block of a graph of ``total`` pages: its own links, as for ``page_importance``, and those to other blocks.

    ``outside`` has the sources of links to pages of other blocks. ``inflow`` is what each page gets from other blocks,
    and ``dangling`` the importance of pages without links there.

    >>> here = GraphBlock(np.array([0]), np.array([1]), 2, np.array([1]), np.array([0.0, 0.0]), 3.0, 0.0)
    >>> here.solve().ranks.round(3).tolist()
    [0.05, 0.093]
    """

    sources: Ints
    targets: Ints
    pages: int
    outside: Ints
    inflow: Floats
    total: float
    dangling: float
    hosts: Ints | None = None

    def solve(self, damping: float = DAMPING, within_host: float = WITHIN_HOST, rounds: int = MAX_ROUNDS) -> BlockRanks:
        """Solve the block by power iteration, while what comes from other blocks stays the same."""
        sources, targets = _deduplicate_links(self.sources, self.targets, self.pages)
        weights = _weigh_links(sources, targets, self.hosts, within_host)
        totals = np.bincount(sources, weights, minlength=self.pages) + np.bincount(self.outside, minlength=self.pages)
        shares, is_dangling = damping * weights / totals[sources], totals == 0
        ranks = np.full(self.pages, 1 / self.total)
        for _ in range(rounds):
            jumps = 1 - damping + damping * (ranks[is_dangling].sum() + self.dangling)
            moved = np.bincount(targets, ranks[sources] * shares, minlength=self.pages) + self.inflow
            moved += jumps / self.total
            change, ranks = np.abs(moved - ranks).sum(), moved
            if change < TOLERANCE:
                break
        outflow = damping * ranks[self.outside] / totals[self.outside]
        return BlockRanks(ranks, outflow, float(ranks[is_dangling].sum()))


def host_importance(importance: Floats, hosts: Ints) -> Floats:
    """Compute the importance of each host from its pages' PageRank: log(1 + n * sum), for n pages in all.

    A host as important as one average page has log 2; the logarithm keeps one giant from dwarfing the rest.

    >>> host_importance(np.array([0.5, 0.25, 0.25]), np.array([1, 0, 1])).round(3).tolist()
    [0.56, 1.179]
    """
    return np.log1p(np.bincount(hosts, importance) * len(importance))


def percentiles(values: Floats) -> Floats:
    """Convert values to percentiles: 0 for the smallest, 1 for the largest; ties share their mean rank.

    >>> percentiles(np.array([7.0, 3.0, 3.0, 100.0, 5.0])).tolist()
    [0.75, 0.125, 0.125, 1.0, 0.5]
    >>> percentiles(np.array([2.0, 2.0])).tolist()
    [0.5, 0.5]
    """
    if len(values) < 2:
        return np.full(len(values), 0.5)
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    smaller = np.cumsum(counts) - counts
    places = (smaller + (counts - 1) / 2) / (len(values) - 1)
    return np.asarray(places[inverse], np.float64)


def sample_quantiles(values: Floats) -> Floats:
    """Sample the distribution of values, for ``merge_percentiles``."""
    return np.quantile(values, np.linspace(0.0, 1.0, QUANTILES)) if len(values) else np.zeros(0)


def merge_percentiles(values: Floats, others: Sequence[tuple[float, Floats]]) -> Floats:
    """Convert values to percentiles among those of other blocks: the number of each, and a sample of its quantiles.

    >>> merge_percentiles(np.array([1.0, 3.0]), [(2.0, sample_quantiles(np.array([4.0, 5.0])))]).tolist()
    [0.0, 0.5]
    """
    places, number = len(values) * percentiles(values), float(len(values))
    for count, quantiles in others:
        if len(quantiles):
            sides = (np.searchsorted(quantiles, values, side) for side in ("left", "right"))
            places = places + count * sum(sides) / 2 / len(quantiles)
            number += count
    return np.asarray(places / max(number, 1.0), np.float64)


def _deduplicate_links(sources: Ints, targets: Ints, pages: int) -> tuple[Ints, Ints]:
    """Deduplicate links and drop self-links; sort them by source and then by target."""
    fits = (sources >= 0) & (sources < pages) & (targets >= 0) & (targets < pages) & (sources != targets)
    pairs = sources[fits].astype(np.int64) * pages + targets[fits]
    pairs.sort()
    if len(pairs):
        pairs = pairs[np.concatenate(([True], pairs[1:] != pairs[:-1]))]
    return np.divmod(pairs, max(pages, 1))


def _weigh_links(sources: Ints, targets: Ints, hosts: Ints | None, within_host: float) -> Floats:
    if hosts is None:
        return np.ones(len(sources))
    return np.where(hosts[sources] == hosts[targets], max(within_host, MIN_WEIGHT), 1.0)
