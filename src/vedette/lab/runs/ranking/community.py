"""Simulation of a community: pages are ranked, users visit and like them, pages die and are replaced.

Pandey08's simulator (5.7.2). Popularity is measured at the end of each interval, which is a day, or a 250th of a life
if that is longer. Each visit is to a separate list: a position is drawn by eq. 5.5, and the policy's plan says which
page is there. A visitor new to the page likes it with the probability of its quality. A policy sees likes, views,
awareness, ages, and how many pages were born.

Numbers that do not depend on a policy (deaths, positions, visitors) have their own random streams, so that policies
with one seed see the same days.

After the days in which quality per click is measured, time to become popular is: the best page is replaced by a new one
of the same quality, which lives until more than 99% of the monitored people have seen it, or for one expected life;
then the next one is born. Finally one such page is followed through one expected life (figures 5.1 and 5.3).
"""

from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from vedette.lab.worlds.community import Community, draw_qualities, ideal_qpc, view_shares
from vedette.policy import Floats, Ints, rng_for
from vedette.serve.rank.explore.candidates import Candidates, UserPopulation

TELEPORT = 0.15  # the c of 5.9
LEARN_EVERY = 10  # intervals
INTERVALS_PER_LIFE = 250
EVOLUTION_POINTS = 20
# The prior of lifetimes before any page has died, and its weight in observed days.
PRIOR_LIFE_DAYS, PRIOR_WEIGHT = 365.0, 10.0


class Phases(NamedTuple):
    """Phases of a community simulation: warm-up intervals, then quality per click, then time to become popular."""

    settle: int
    measure: int
    probe: int

    @classmethod
    def for_community(cls, community: Community, lives: float) -> "Phases":
        """Build the phases of a community: some expected lives to settle, as many to measure, half a life after."""
        life = community.life_days / interval_days(community)
        return cls(round(lives * life), round(lives * life), round(life / 2))


def interval_days(community: Community) -> int:
    """Return how many days pass between two measurements of popularity in a community.

    >>> interval_days(Community()), interval_days(Community(life_days=100.0))
    (2, 1)
    """
    return max(1, round(community.life_days / INTERVALS_PER_LIFE))


class PopularityPoint(NamedTuple):
    """Mean popularity (awareness times quality) and share of all visits of the best page, at ages up to ``age``.

    An age is a share of the expected life.
    """

    age: float
    popularity: float
    visit_share: float


class CommunityResult(NamedTuple):
    """Result of a community simulation; times to become popular are in days, at most one expected life.

    ``awareness`` counts intervals by how many people knew the best page, ``unseen_share`` is the share of pages that no
    one has seen at the end, ``exploration_share`` the share of views that went to such pages.
    """

    qpc: float
    ideal: float
    tbp_days: Floats
    became_popular: int
    awareness: Ints
    unseen_share: float
    exploration_share: float
    evolution: tuple[PopularityPoint, ...]


@dataclass(slots=True)
class _Pages:
    """State of the pages of a community since their birth."""

    likes: Floats
    aware: Ints
    views: Ints
    born: Ints

    @classmethod
    def create(cls, pages: int) -> "_Pages":
        return cls(np.zeros(pages), *(np.zeros(pages, np.int64) for _ in range(3)))

    def reset(self, rows: Ints, day: int) -> None:
        for column in (self.likes, self.aware, self.views):
            column[rows] = 0
        self.born[rows] = day


class _RandomStreams(NamedTuple):
    """Random streams of a community simulation, one for each purpose."""

    deaths: np.random.Generator
    visits: np.random.Generator
    people: np.random.Generator
    policy: np.random.Generator

    @classmethod
    def from_seed(cls, seed: int) -> "_RandomStreams":
        return cls(*(rng_for(seed, f"community/{name}") for name in cls._fields))


class _Simulation:
    """State of a community simulation, and the effect of one interval on it."""

    def __init__(self, community: Community, policy: Any, seed: int) -> None:  # noqa: ANN401 - any rank policy
        self.community, self.policy, self.streams = community, policy, _RandomStreams.from_seed(seed)
        self.days = interval_days(community)
        self.quality = draw_qualities(community, seed)
        self.pages = _Pages.create(community.pages)
        self.state = policy.start(None)
        self._rank_cdf = np.cumsum(view_shares(community.pages))
        self._rank_cdf[-1] = 1.0
        self._deaths, self._page_days = PRIOR_WEIGHT, PRIOR_WEIGHT * PRIOR_LIFE_DAYS
        self.views = community.views_per_day * self.days
        self.immortal = -1

    def run_interval(self, step: int) -> Ints:
        """Run one interval of the community: rank, visit, like, die; return the visited pages."""
        batch = self.to_candidates(step)
        if step % LEARN_EVERY == 0:
            self.state = self.policy.observe(self.state, batch, float(step * self.days))
        visited = self._draw_visits(batch, step)
        self._apply_visits(visited)
        self._replace_dead_pages(step)
        return visited

    def to_candidates(self, step: int) -> Candidates:
        """Return the community's pages as ranking candidates, with everything a policy may know."""
        people, views = float(self.community.monitored_users), float(self.community.views_per_day)
        pages = self.pages
        return Candidates(
            np.ones(self.community.pages),
            pages.aware * self.quality if self.community.exact else pages.likes.copy(),
            pages.aware.astype(np.float64),
            pages.views.astype(np.float64),
            (step - pages.born).astype(np.float64) * self.days,
            UserPopulation(people, views, self._page_days / self._deaths, float(self.days)),
        )

    def _draw_visits(self, batch: Candidates, step: int) -> Ints:
        rng = self.streams.visits
        ranks = np.searchsorted(self._rank_cdf, rng.random(self.views)) + 1
        surfs = rng.random(self.views) < self.community.surf_share
        plan = self.policy.plan(self.state, batch, float(step * self.days))
        visited: Ints = plan.draw_at_ranks(ranks, self.streams.policy)
        if surfs.any():
            visited[surfs] = self._draw_surf_visits(batch.likes, int(surfs.sum()))
        return visited

    def _draw_surf_visits(self, popularity: Floats, visits: int) -> Ints:
        """Draw the pages that random surfers visit: by popularity, or any (5.9, with the v that the paper lacks)."""
        rng, total = self.streams.policy, float(popularity.sum())
        anywhere = rng.integers(0, len(popularity), visits)
        if total <= 0:
            return anywhere
        by_links = np.searchsorted(np.cumsum(popularity), rng.random(visits) * total, side="right")
        return np.where(rng.random(visits) < TELEPORT, anywhere, np.minimum(by_links, len(popularity) - 1))

    def _apply_visits(self, visited: Ints) -> None:
        """Apply visits to the community's pages: count newly aware people, of any identity, and their likes."""
        people, rng = self.community.monitored_users, self.streams.people
        pairs = np.unique(visited * people + rng.integers(0, people, len(visited)))
        rows, visitors = np.unique(pairs // people, return_counts=True)
        fresh = rng.hypergeometric(people - self.pages.aware[rows], self.pages.aware[rows], visitors)
        self.pages.likes[rows] += rng.binomial(fresh, self.quality[rows])
        self.pages.aware[rows] += fresh
        self.pages.views += np.bincount(visited, minlength=len(self.quality))

    def _replace_dead_pages(self, step: int) -> None:
        chance = -np.expm1(-self.days / self.community.life_days)
        gone = np.flatnonzero(self.streams.deaths.random(len(self.quality)) < chance)
        gone = gone[gone != self.immortal]
        self.pages.reset(gone, step + 1)
        self._deaths += len(gone)
        self._page_days += len(self.quality) * self.days


def simulate_community(community: Community, policy: Any, phases: Phases, seed: int) -> CommunityResult:  # noqa: ANN401 - any rank policy
    """Simulate a community of users and pages under a ranking policy."""
    course = _Simulation(community, policy, seed)
    for step in range(phases.settle):
        course.run_interval(step)
    measured = range(phases.settle, phases.settle + phases.measure)
    top = int(np.argmax(course.quality))
    clicked = unseen = 0.0
    awareness = np.zeros(community.monitored_users + 1, np.int64)
    for step in measured:
        before = course.pages.aware == 0
        visited = course.run_interval(step)
        clicked += float(course.quality[visited].sum())
        unseen += float(np.count_nonzero(before[visited]))
        awareness[course.pages.aware[top]] += 1
    views = max(len(measured) * course.views, 1)
    pool = float(np.mean(course.pages.aware == 0))
    times, became = _measure_popularity_times(course, top, range(measured.stop, measured.stop + phases.probe))
    evolution = _follow_popularity(course, top)
    qualities = clicked / views, ideal_qpc(course.quality)
    return CommunityResult(*qualities, times, became, awareness, pool, unseen / views, evolution)


def _measure_popularity_times(course: _Simulation, top: int, span: range) -> tuple[Floats, int]:
    """Measure the times to popularity of rebirths of the best page: the days of each, and how many became popular."""
    life = course.community.life_days
    course.immortal = top
    course.pages.reset(np.array([top]), span.start)
    times: list[float] = []
    became = 0
    # Births are within the span; the last one is followed to its end, otherwise slow ones would be left out.
    for step in count(span.start):
        if course.pages.born[top] >= span.stop:
            break
        course.run_interval(step)
        age_days = float((step + 1 - course.pages.born[top]) * course.days)
        popular = bool(course.pages.aware[top] > 0.99 * course.community.monitored_users)
        if popular or age_days >= life:
            times.append(min(age_days, life))
            became += popular
            course.pages.reset(np.array([top]), step + 1)
    return np.array(times), became


def _follow_popularity(course: _Simulation, top: int) -> tuple[PopularityPoint, ...]:
    """Follow a rebirth of the best page, which was just born, through one expected life."""
    begin, people = int(course.pages.born[top]), course.community.monitored_users
    aware, visits = [], []
    for step in range(begin, begin + round(course.community.life_days / course.days)):
        visited = course.run_interval(step)
        aware.append(course.pages.aware[top] / people)
        visits.append(np.count_nonzero(visited == top) / max(course.views, 1))
    awareness, seen = (np.array_split(values, EVOLUTION_POINTS) for values in (aware, visits))
    return tuple(
        PopularityPoint((at + 1) / EVOLUTION_POINTS, float(course.quality[top] * each.mean()), float(share.mean()))
        for at, (each, share) in enumerate(zip(awareness, seen, strict=True))
        if len(each)
    )
