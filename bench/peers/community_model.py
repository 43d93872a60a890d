"""A community in formulas (Pandey08, 5.6): how many people know a page, how soon, and quality per click.

A page of quality q that i of m people know is visited at a rate F(q i / m), which depends on its popularity only. From
F follows how awareness is distributed (theorem 2), from that the ranks of pages, and from those F again: a fixed point.

Theorem 2 is printed without the factors (1 - a) in their places, so that it does not sum to 1 and divides by zero at
a = 1. From equations 9.2 to 9.4 follows, and is used here,

    f(a_0) = lambda / (lambda + F(0)),   f(a_i) = f(a_(i-1)) F(q a_(i-1)) (1 - a_(i-1)) / (lambda + F(q a_i) (1 - a_i))

The rate at popularity 0 is not on the curve: it is the mean over the positions of unknown pages. Mixed surfing (5.9) is
printed without v: ``V = (1 - x) F(P) + x v ((1 - c) P / sum P + c / n)``.
"""

from dataclasses import dataclass

import numpy as np

from vedette.attention import visibility, visibility_sum
from vedette.lab.worlds.community import BEST_QUALITY, Community
from vedette.policy import Floats

TELEPORT = 0.15
MAX_ITERATIONS = 400
STEP_SIZE = 0.3  # of the way: whole ones swing between a community that finds pages and one that does not
TOLERANCE = 1e-5
INDIVIDUAL_PAGES = 100  # this many of the best pages are kept separately; the rest is grouped by quality
QUALITY_GROUPS = 60


@dataclass(frozen=True, slots=True)
class VisitRate:
    """F: the visits per day of a page by its popularity. Quadratic in logarithms, with a separate number at 0."""

    at_zero: float
    curve: Floats

    def __call__(self, popularity: Floats) -> Floats:
        """Visits a day."""
        known = popularity > 0
        logs = np.log(np.where(known, popularity, 1.0))
        return np.where(known, np.exp(np.polyval(self.curve, logs)), self.at_zero)


@dataclass(frozen=True, slots=True)
class CommunityModel:
    """A solved community: pages grouped by quality, and for each group the law of awareness and the rates of visits."""

    community: Community
    quality: Floats
    count: Floats
    visits: VisitRate
    awareness_distribution: Floats
    rates: Floats
    iterations: int

    @property
    def visit_share(self) -> float:
        """All visits that the model hands out, as a share of those there are; 1 if rank were no mean but a place."""
        return float(self.count @ (self.awareness_distribution * self.rates).sum(axis=1)) / self.community.views_per_day

    @property
    def qpc(self) -> float:
        """Quality per click."""
        clicks = self.count * (self.awareness_distribution * self.rates).sum(axis=1)
        return float(clicks @ self.quality / clicks.sum())

    def tbp_days(self, group: int = 0) -> float:
        """The expected time until more than 99% know a page that does not die: the sum of the times between births."""
        return float(np.sum(1.0 / self._awareness_rates(group)))

    def tbp_within_life(self, rng: np.random.Generator, group: int = 0, draws: int = 4000) -> float:
        """The same, capped at an expected life."""
        risings = self._awareness_rates(group)
        times = (rng.standard_exponential((draws, len(risings))) / risings).sum(axis=1)
        return float(np.minimum(times, self.community.life_days).mean())

    def _awareness_rates(self, group: int) -> Floats:
        """The rates from each awareness to the next, up to the first above 99%."""
        people = self.community.monitored_users
        steps = np.arange(int(0.99 * people) + 1)
        return np.asarray(self.rates[group, steps] * (1 - steps / people))


def awareness_distribution(rates: Floats, dying: float) -> Floats:
    """Theorem 2, corrected: the law of awareness where a page is visited at ``rates`` (by how many know it) and dies.

    >>> awareness_distribution(np.array([[2.0, 2.0, 2.0]]), dying=1.0).round(4).tolist()
    [[0.3333, 0.3333, 0.3333]]
    """
    people = rates.shape[-1] - 1
    rising = rates * (1 - np.arange(people + 1) / people)
    first = dying / (dying + rising[..., :1])
    steps = rising[..., :-1] / (dying + rising[..., 1:])
    return np.concatenate([first, first * np.cumprod(steps, axis=-1)], axis=-1)


def solve_community(community: Community, degree: float = 0.0, first: int = 1) -> CommunityModel:
    """The fixed point under selective promotion; a degree of 0 is nonrandomised ranking."""
    quality, count = _group_by_quality(community)
    popularity = quality[:, None] * np.arange(community.monitored_users + 1) / community.monitored_users
    visits = VisitRate(community.views_per_day / community.pages, np.array([0.0, 0.0, _log_mean_views(community)]))
    dying = 1 / community.life_days
    law = awareness_distribution(np.full(popularity.shape, community.views_per_day / community.pages), dying)
    rounds = 0
    for rounds in range(1, MAX_ITERATIONS + 1):  # noqa: B007 - the number of steps is reported
        before, law = law, awareness_distribution(_mix_visits(community, visits, popularity, count, law), dying)
        found = _fit_visit_rate(community, popularity, count, law, degree, first)
        moved = float(np.max(np.abs(found.curve - visits.curve))) + abs(np.log(found.at_zero / visits.at_zero))
        visits = VisitRate(
            visits.at_zero * (found.at_zero / visits.at_zero) ** STEP_SIZE,
            visits.curve + STEP_SIZE * (found.curve - visits.curve),
        )
        if moved + float(np.max(np.abs(law - before))) < TOLERANCE:
            break
    rates = _mix_visits(community, visits, popularity, count, law)
    return CommunityModel(community, quality, count, visits, awareness_distribution(rates, dying), rates, rounds)


def _log_mean_views(community: Community) -> float:
    return float(np.log(community.views_per_day / community.pages))


def _group_by_quality(community: Community) -> tuple[Floats, Floats]:
    """The best pages one by one, the others in groups of like quality."""
    ranks = np.arange(1, community.pages + 1, dtype=np.float64)
    quality = BEST_QUALITY * ranks**-community.exponent
    edges = (
        np.geomspace(INDIVIDUAL_PAGES, community.pages, QUALITY_GROUPS + 1)[:-1]
        if community.pages > INDIVIDUAL_PAGES
        else np.zeros(0)
    )
    begins = np.unique(np.append(np.arange(min(INDIVIDUAL_PAGES, community.pages)), edges.astype(np.int64)))
    count = np.diff(np.append(begins, community.pages)).astype(np.float64)
    return np.add.reduceat(quality, begins) / count, count


def _mix_visits(community: Community, visits: VisitRate, popularity: Floats, count: Floats, law: Floats) -> Floats:
    """Visits by search and by surfing."""
    searched = visits(popularity)
    if not community.surf_share:
        return searched
    by_links = popularity / max(float(count @ (law * popularity).sum(axis=1)), 1e-12)
    surfed = community.views_per_day * ((1 - TELEPORT) * by_links + TELEPORT / community.pages)
    return np.asarray((1 - community.surf_share) * searched + community.surf_share * surfed)


def _fit_visit_rate(
    community: Community, popularity: Floats, count: Floats, law: Floats, degree: float, first: int
) -> VisitRate:
    """F by the expected ranks (eq. 5.6 and the one after it), fitted by a quadratic in logarithms."""
    scale = community.views_per_day / float(visibility_sum(np.array([1]), np.array([community.pages]))[0])
    unknown = max(float(count @ law[:, 0]), 1e-9)
    points = np.geomspace(popularity[popularity > 0].min(), BEST_QUALITY, 80)
    rank = 1 + _count_more_popular(popularity, count[:, None] * law, points)
    if degree:
        moved = np.minimum(degree * (rank - first + 1) / max(1 - degree, 1e-9), unknown)
        rank = np.where(rank < first, rank, rank + moved)
    # The ends count most: there are the best page, and those that just became known.
    weight = np.ones(len(points))
    weight[[0, -1]] = 10.0
    curve = np.polyfit(np.log(points), np.log(scale * visibility(rank)), 2, w=weight)
    return VisitRate(scale * _mean_visibility_unknown(community, unknown, degree, first), curve)


def _count_more_popular(popularity: Floats, pages: Floats, points: Floats) -> Floats:
    """How many pages are expected to be more popular than each point."""
    order = np.argsort(popularity, axis=None, kind="stable")
    above = np.append(np.cumsum(pages.ravel()[order][::-1])[::-1], 0.0)
    return np.asarray(above[np.searchsorted(popularity.ravel()[order], points, side="right")])


def _mean_visibility_unknown(community: Community, unknown: float, degree: float, first: int) -> float:
    """The mean visibility of a page that no one knows: of the pool, or of the end of the list."""
    pages = community.pages
    if not degree:
        return float(visibility_sum(np.array([max(pages - unknown + 1, 1.0)]), np.array([pages]))[0]) / unknown
    # The coin gives a share of the places from the first on to the pool, until it is used up.
    last = min(first + unknown / degree, pages)
    promoted = degree * float(visibility_sum(np.array([first]), np.array([last]))[0])
    return promoted / unknown
