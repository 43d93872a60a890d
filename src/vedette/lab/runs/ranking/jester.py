"""Simulation of the joke study (Jester): people come, read some positions of their own list, and vote.

As in Pandey08 (5.10.1): 45 days, 481 people (half of 962, one of two groups), items that live 30 days (the first ones 1
to 30) and are followed by others of the same quality; the last 15 days are measured: funny votes among all. How many
items a person reads is not stated; here it is 20, at positions drawn by rank^-3/2, each item once.

An item is *popular* when 30 people have read it, about as many as come in three days. Times are those of the best ten
items that follow the first ones, and count as 15 days if it takes longer.
"""

from typing import Any, NamedTuple

import numpy as np

from vedette.lab.worlds.community import view_shares
from vedette.lab.worlds.jester import ITEMS, JesterItems, JesterVotes, draw_items
from vedette.policy import Floats, Ints, rng_for
from vedette.serve.rank.explore.candidates import Candidates, UserPopulation

DAYS, MEASURED_DAYS, LIFE_DAYS = 45, 15, 30
PEOPLE, ITEMS_READ = 481, 20
POPULAR_READERS, MAX_DAYS, BEST_ITEMS = 30, 15.0, 10
PRIOR_LIFE_DAYS, PRIOR_WEIGHT = 365.0, 10.0
LEARN_EVERY = 10  # people


class StudyResult(NamedTuple):
    """Result of the joke study: share of funny votes in the last days, in all days, at best, and times in days."""

    qpc: float
    overall: float
    ideal: float
    tbp_days: Floats
    became_popular: int


class _Items:
    """State of the joke study's items: reads, votes, and when each dies."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.likes, self.aware = np.zeros(ITEMS), np.zeros(ITEMS)
        self.born_days = np.zeros(ITEMS)
        self.dies_days = rng.integers(1, LIFE_DAYS + 1, ITEMS).astype(np.float64)
        self.popular_days = np.full(ITEMS, np.nan)
        self.deaths, self.item_days = PRIOR_WEIGHT, PRIOR_WEIGHT * PRIOR_LIFE_DAYS

    def replace_dead(self, day: float) -> None:
        gone = self.dies_days <= day
        self.likes[gone] = self.aware[gone] = 0.0
        self.born_days[gone], self.dies_days[gone] = day, day + LIFE_DAYS
        self.popular_days[gone] = np.nan
        self.deaths += float(gone.sum())
        self.item_days += ITEMS

    def to_candidates(self, now: float) -> Candidates:
        crowd = UserPopulation(float(PEOPLE), PEOPLE * ITEMS_READ / DAYS, self.item_days / self.deaths, DAYS / PEOPLE)
        likes, aware = self.likes.copy(), self.aware.copy()
        return Candidates(np.ones(ITEMS), likes, aware, aware.copy(), now - self.born_days, crowd)

    def vote(self, items: Ints, funny: Floats, now: float) -> None:
        self.likes[items] += funny
        self.aware[items] += 1
        reached = items[(self.aware[items] >= POPULAR_READERS) & np.isnan(self.popular_days[items])]
        self.popular_days[reached] = now


def run_study(jokes: JesterVotes, policy: Any, seed: int) -> StudyResult:  # noqa: ANN401 - any rank policy
    """Run the Jester joke study under one ranking policy."""
    shelf, rng = draw_items(jokes, seed), rng_for(seed, "jester/people")
    items, state = _Items(rng), policy.start(None)
    lots = rng_for(seed, "jester/policy")
    best = np.argsort(-shelf.quality, kind="stable")[:BEST_ITEMS]
    times: list[float] = []
    votes = np.zeros((DAYS, 2))
    for person in range(PEOPLE):
        now = person * DAYS / PEOPLE
        day = int(now)
        if person == 0 or day > int((person - 1) * DAYS / PEOPLE):
            times += _popularity_times(items, best, float(day))
            items.replace_dead(float(day))
        batch = items.to_candidates(now)
        if person % LEARN_EVERY == 0:
            state = policy.observe(state, batch, now)
        read = np.unique(policy.plan(state, batch, now).draw_at_ranks(_draw_places(rng), lots))
        funny = _draw_votes(jokes, shelf, read, rng)
        items.vote(read, funny, now)
        votes[day] += (funny.sum(), len(read))
    followed = np.array([*times, *_popularity_times(items, best, float(DAYS), last=True)])
    last = votes[-MEASURED_DAYS:].sum(axis=0)
    ideal = _ideal_quality(shelf)
    became = int(np.count_nonzero(followed < MAX_DAYS))
    return StudyResult(last[0] / last[1], float(votes[:, 0].sum() / votes[:, 1].sum()), ideal, followed, became)


def _draw_places(rng: np.random.Generator) -> Ints:
    """Draw distinct list positions for a reader of jokes: the largest log(u) / share (Efraimidis and Spirakis)."""
    keys = np.log(rng.random(ITEMS)) / view_shares(ITEMS)
    return np.sort(np.argsort(-keys, kind="stable")[:ITEMS_READ]).astype(np.int64) + 1


def _draw_votes(jokes: JesterVotes, shelf: JesterItems, read: Ints, rng: np.random.Generator) -> Floats:
    person = int(rng.integers(0, len(jokes.votes)))
    # As many draws for everyone, so that policies with one seed see the same people.
    opinion, stands = rng.random(ITEMS)[read], rng.random(ITEMS)[read]
    joke = shelf.joke[read]
    vote = jokes.votes[person, joke]
    funny = np.where(vote >= 0, vote == 1, opinion < jokes.share[joke])
    return np.asarray(funny & (stands < shelf.accept_rate[read]), np.float64)


def _popularity_times(items: _Items, best: Ints, now: float, *, last: bool = False) -> list[float]:
    """Return the times to popularity of the best items that end now or with the study; the first ones do not count."""
    ending = best if last else best[items.dies_days[best] <= now]
    ending = ending[(items.born_days[ending] > 0) & (now - items.born_days[ending] >= MAX_DAYS)]
    took = items.popular_days[ending] - items.born_days[ending]
    return [float(days) for days in np.where(np.isnan(took), MAX_DAYS, np.minimum(took, MAX_DAYS))]


def _ideal_quality(shelf: JesterItems) -> float:
    """Estimate the quality that a person reads if items are ranked by quality, by a long run of draws."""
    rng = rng_for(1, "jester/ideal")
    ordered = np.sort(shelf.quality)[::-1]
    return float(np.mean([ordered[_draw_places(rng) - 1].mean() for _ in range(300)]))
