"""Refreshing a recorded web with a budget: a policy says when pages are due, and so many of them are fetched.

The rules of the game:

- Pages that live when the run begins are known, with copies of that moment. A page that is born later is known from its
  birth on, with a copy of it: finding pages is another experiment. None of this costs a fetch.
- Decisions are made in batches, one an hour. A batch may make as many fetches as the budget (fetches a day) has grown
  by so far and nobody has spent; more than a day's worth is not saved. Where more pages are due, the most overdue are
  fetched, the older page first among equals. Fetches of a batch are all made at its time.
- A fetch tells whether the page says something else than the copy. It replaces the copy. A page that is found gone is
  let go: an address lives once here.

The policy sees the world through the batches that it is told, and nothing else.
"""

from collections.abc import Callable, Iterator
from math import floor
from typing import Any, NamedTuple, Protocol

import numpy as np

from vedette.decide import Due, Floats, Ints, rng_for
from vedette.lab.freshness import Freshness
from vedette.lab.worlds.history import FEED, SITEMAP, History
from vedette.refresh.known import Bools, Known
from vedette.ring.schedule import is_source

__all__ = ["HOUR_S", "Game", "Outcome", "Plan", "RefreshPolicy", "Seer", "again", "refresh", "sources_of"]

HOUR_S, DAY_S = 3_600.0, 86_400.0

# The state of a policy is its own affair: an array with an element per page, or anything else.
RefreshPolicy = Due[None, Any, Known, Known]
Decided = Callable[[float, Ints], None]


class Seer(Protocol):
    """Chooses with the world before its eyes. No policy may; some bounds do."""

    def chosen(self, copies: Ints, now_s: float, most: int) -> Ints:
        """The pages to fetch now, ascending, each once. ``copies`` has the version that is held of each; -1: none."""


class Plan(NamedTuple):
    """Which policy decides on pages, and which on sources, where those have one of their own.

    Where there is a seer, it chooses, and nobody asks what is due.
    """

    pages: RefreshPolicy
    sources: RefreshPolicy | None = None
    seer: Seer | None = None


class Game(NamedTuple):
    """From when to when, with how many fetches a day, how often decisions are made, and the seed of lots."""

    begin_s: float
    end_s: float
    budget: float
    step_s: float = HOUR_S
    seed: int = 1


class Outcome(NamedTuple):
    """What came of it; freshness and age over time, as ``lab.freshness`` has them."""

    freshness: float
    age_d: float
    fetches: int
    changed: int


def refresh(history: History, plan: Plan, game: Game, decided: Decided = lambda _now_s, _pages: None) -> Outcome:
    """Play it. ``decided`` is told the pages that each batch fetches, for those who look for leaks."""
    run, saved = _Run(history, plan, game), 0.0
    for now_s in _batches(game):
        saved = min(saved + game.budget * game.step_s / DAY_S, game.budget)
        # A whole number that was summed up of parts may lie a hair below itself.
        pages = run.chosen(now_s, floor(saved + 1e-6))
        saved -= len(pages)
        decided(now_s, pages)
        run.fetch(pages, now_s)
    return run.outcome()


def sources_of(history: History) -> Bools:
    """Feeds, sitemaps and home pages, by the rule of the live schedule."""
    lists: Bools = (history.kind == FEED) | (history.kind == SITEMAP)
    return lists | np.array([is_source(url, "page") for url in history.urls], np.bool_)


def again(
    policy: RefreshPolicy,
    state: Any,  # noqa: ANN401 - see above
    batch: Known,
    now_s: float,
    rng: np.random.Generator,
) -> tuple[Any, Floats]:
    """What a policy remembers after these fetches, and when it wants each page again; there is no price yet."""
    after = policy.observe(state, batch, now_s)
    return after, policy.due(after, batch, now_s, 0.0, rng)


def _batches(game: Game) -> Iterator[float]:
    """The time of each batch."""
    for turn in range(1, floor((game.end_s - game.begin_s) / game.step_s) + 1):
        yield game.begin_s + turn * game.step_s


class _Mind:
    """A policy with what it remembers: of an array only the elements of the pages in question are handed over."""

    def __init__(self, policy: RefreshPolicy, pages: int) -> None:
        self._policy = policy
        self._state = policy.start(None)
        if isinstance(self._state, np.ndarray):
            self._state = np.zeros((pages, *self._state.shape[1:]), self._state.dtype)

    def due(self, pages: Ints, batch: Known, now_s: float, rng: np.random.Generator) -> Floats:
        """When these pages are due again after what their fetches found."""
        if isinstance(self._state, np.ndarray):
            self._state[pages], due_s = again(self._policy, self._state[pages], batch, now_s, rng)
            return due_s
        known = Known(pages, batch.last_fetch_s, batch.changed, batch.first_fetch, batch.modified_s)
        self._state, due_s = again(self._policy, self._state, known, now_s, rng)
        return due_s


class _Run:
    """Copies, due times and what the policy remembers, a column each; pages are numbered by birth."""

    def __init__(self, history: History, plan: Plan, game: Game) -> None:
        self._history, self._game = history, game
        policies = (plan.pages, plan.sources)
        self._minds = [_Mind(policy, history.pages) for policy in policies if policy is not None]
        self._seer = plan.seer
        self._is_source = sources_of(history) if plan.sources else None
        self._freshness = Freshness(history, game.begin_s, game.end_s)
        self._copy = np.full(history.pages, -1)
        self._since_s = np.zeros(history.pages)
        self._due_s = np.full(history.pages, np.inf)
        self._born = int(np.searchsorted(history.born_s, game.begin_s, side="right"))
        self._fetches = self._changed = 0
        known = history.alive_at(game.begin_s)
        self._meet(known, history.version_at(known, game.begin_s), np.full(len(known), game.begin_s), game.begin_s)

    def chosen(self, now_s: float, most: int) -> Ints:
        """The pages to fetch now: those that are due, the most overdue if there are too many."""
        self._meet_newborn(now_s)
        if self._seer is not None:
            return self._seer.chosen(self._copy, now_s, most)
        due = np.flatnonzero(self._due_s[: self._born] <= now_s)
        if len(due) <= most:
            return due
        if most == 0:
            return due[:0]
        due_s = self._due_s[due]
        last_s = np.partition(due_s, most - 1)[most - 1]
        before = due[due_s < last_s]
        # Among equals the older page; a partial sort would leave that to the machine.
        return np.sort(np.concatenate([before, due[due_s == last_s][: most - len(before)]]))

    def fetch(self, pages: Ints, now_s: float) -> None:
        """Ask for pages, compare, and let the policy say when they are due again."""
        if not len(pages):
            return
        version, copy = self._history.version_at(pages, now_s), self._copy[pages]
        gone = version < 0
        changed = gone | (self._history.digest[version] != self._history.digest[copy])
        self._freshness.held(copy, self._since_s[pages], now_s)
        self._fetches += len(pages)
        self._changed += int(changed.sum())
        self._copy[pages], self._since_s[pages] = version, now_s
        self._decide(pages, changed, now_s, first=False)
        self._due_s[pages[gone]] = np.inf

    def outcome(self) -> Outcome:
        """The numbers, once time is up."""
        self._meet_newborn(self._game.end_s)
        held = np.flatnonzero(self._copy >= 0)
        self._freshness.held(self._copy[held], self._since_s[held], self._game.end_s)
        fresh = self._freshness.result()
        return Outcome(fresh.freshness, fresh.age_d, self._fetches, self._changed)

    def _meet_newborn(self, now_s: float) -> None:
        """Pages that were born since the last batch; pages are numbered by birth."""
        end = int(np.searchsorted(self._history.born_s, now_s, side="right"))
        pages = np.arange(self._born, end)
        self._born = end
        if len(pages):
            first = np.searchsorted(self._history.version_page, pages)
            self._meet(pages, first, self._history.born_s[pages], now_s)

    def _meet(self, pages: Ints, version: Ints, since_s: Floats, now_s: float) -> None:
        self._copy[pages], self._since_s[pages] = version, since_s
        self._decide(pages, np.zeros(len(pages), bool), now_s, first=True)

    def _decide(self, pages: Ints, changed: Bools, now_s: float, *, first: bool) -> None:
        count = len(pages)
        batch = Known(np.arange(count), self._since_s[pages], changed, np.full(count, first), np.full(count, np.nan))
        rng = rng_for(self._game.seed, f"refresh/{now_s}/{first}")
        due_s = [mind.due(pages, batch, now_s, rng) for mind in self._minds]
        self._due_s[pages] = due_s[0] if self._is_source is None else np.where(self._is_source[pages], *due_s[::-1])
