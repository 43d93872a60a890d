"""Simulation of refreshing a recorded web under a budget: a policy decides when pages are due for a fetch.

The rules of the simulation:

- Pages that exist when the run starts are known, with copies of that moment. A page that is published later is known
  from then on, with a copy of it: finding pages is another experiment. None of this costs a fetch.
- Decisions are made in batches, one an hour. A batch may make as many fetches as the budget (fetches per day) has
  accumulated so far; more than a day's worth is not saved. If more pages are due, the most overdue are fetched, the
  older page first among equals. Fetches of a batch are all made at its time.
- A policy with a price (``priced``) says when pages are worth it. The price starts where half of the pages would be due
  within a round; the crawler's own controller moves it by what becomes due. Pages are rescheduled repeatedly, some in
  each batch, since the price and the beliefs about them move.
- A fetch shows whether the page differs from the copy. It replaces the copy. A page that is found gone is dropped: a
  URL lives once here.
- No page is due within an hour of its last fetch, as in a crawl.
- The first part of the time (``warm_up``) is for learning, and is not measured.

The policy sees the world through the batches it observes, and nothing else. Search gains, views and the share of new
text are computed from copies alone (``Measures``).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor
from typing import NamedTuple, Protocol

import numpy as np

from vedette.engine.scheduling.forecast import ChangeLoss, Freshness, estimate_quality
from vedette.engine.scheduling.price_controller import PriceController
from vedette.engine.scheduling.schedule import is_source
from vedette.lab.core.experiment import step_times
from vedette.lab.metrics.freshness import FreshnessByPeriod
from vedette.lab.runs.refresh.agents import FetchFindings, PolicyAgent, RefreshPolicy
from vedette.lab.worlds.history import FEED, SITEMAP, History
from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools
from vedette.timeutil import DAY_S, HOUR_S

# Pages are reviewed this often, in batches; if there are very many, some at a time, in turn.
REQUERY_INTERVAL = 6
REQUERY_BATCH = 20_000
# If more pages than this are due, the most overdue are fetched: scoring all of them would take too long.
MAX_WEIGHED = 5_000
BatchListener = Callable[[float, Ints], None]


class Oracle(Protocol):
    """Oracle that chooses pages to refresh by the true state of the world; only bounds may use it."""

    def choose(self, copies: Ints, now_s: float, most: int) -> Ints:
        """Choose the pages to refresh now, ascending, each once; ``copies`` has each page's version, -1 for none."""


class Measures(Protocol):
    """Measures of copies for refresh policies that want them."""

    def add_copies(self, pages: Ints, versions: Ints) -> dict[str, Floats]:
        """Add first copies; return their measures as columns of ``KnownPages``."""

    def replace_copies(self, pages: Ints, before: Ints, after: Ints) -> dict[str, Floats]:
        """Replace copies; return the measures of these fetches as columns of ``KnownPages``."""

    def compute_per_view(self) -> float:
        """Return the value of a view of any copy, in the unit of gains."""


class Announcer(Protocol):
    """Announcer of changes, like sitemaps, feeds and pings; pages it names are rescheduled at once."""

    def announce(self, pages: Ints, now_s: float) -> dict[str, Floats]:
        """Return what is announced about these pages by a time: ``signal_s`` and ``heard_s`` of ``KnownPages``."""


class RefreshSetup(NamedTuple):
    """Setup of a refresh run: the policy for pages, and the one for sources, if those have their own.

    If there is an oracle, it chooses, and due times are not used. Without an announcer nothing is announced.
    """

    pages: RefreshPolicy
    sources: RefreshPolicy | None = None
    oracle: Oracle | None = None
    measures: Measures | None = None
    announcer: Announcer | None = None


class RefreshGame(NamedTuple):
    """Rules of a refresh run: start and end, fetches per day, decision interval, and random seed.

    ``warm_up`` is the share of the time that is not measured; the rest is measured in ``parts`` parts.
    """

    begin_s: float
    end_s: float
    budget: float
    step_s: float = HOUR_S
    seed: int = 1
    warm_up: float = 0.0
    parts: int = 1

    @property
    def measured_s(self) -> float:
        """Return the time from which a refresh run is measured."""
        return self.begin_s + self.warm_up * (self.end_s - self.begin_s)


class RefreshOutcome(NamedTuple):
    """Outcome of a refresh run: freshness and age (``lab.metrics.freshness``), and fetches after the warm-up.

    ``estimates`` is the search quality at the end of each day, as estimated by the crawler itself; empty if it cannot.
    """

    freshness: float
    age_d: float
    fetches: int
    changed: int
    parts: tuple["RefreshOutcome", ...] = ()
    estimates: tuple[float, ...] = ()


def run_refresh(
    history: History, plan: RefreshSetup, game: RefreshGame, decided: BatchListener = lambda _now_s, _pages: None
) -> RefreshOutcome:
    """Run the refresh simulation; ``decided`` is called with the time and the pages of each batch."""
    run, saved = _RefreshRun(history, plan, game), 0.0
    for now_s in step_times(game.begin_s, game.end_s, game.step_s):
        saved = min(saved + game.budget * game.step_s / DAY_S, game.budget)
        # A whole number summed from fractions may be slightly too small.
        pages = run.choose(now_s, floor(saved + 1e-6))
        saved -= len(pages)
        decided(now_s, pages)
        run.fetch(pages, now_s)
        if now_s > game.measured_s and (now_s - game.begin_s) % DAY_S == 0:
            run.estimate_quality(now_s)
    return run.compute_outcome()


def find_sources(history: History) -> Bools:
    """Find the sources of a history (feeds, sitemaps and home pages), by the rule of the live refresh schedule."""
    lists: Bools = (history.kind == FEED) | (history.kind == SITEMAP)
    return lists | np.array([is_source(url, "page") for url in history.urls], np.bool_)


class _RefreshRun:
    """State of a refresh run: copies, due times and policy memory, a column each; pages are numbered by birth."""

    def __init__(self, history: History, plan: RefreshSetup, game: RefreshGame) -> None:
        self._history, self._game = history, game
        policies = (plan.pages, plan.sources)
        self._agents = [PolicyAgent(policy, history, game.seed) for policy in policies if policy is not None]
        self._oracle, self._measures, self._announcer = plan.oracle, plan.measures, plan.announcer
        self._priced = plan.oracle is None and self._agents[0].priced
        self._is_source = find_sources(history) if plan.sources else None
        self._freshness = FreshnessByPeriod(history, game.measured_s, game.end_s, game.parts)
        self._copy = np.full(history.pages, -1)
        self._since_s = np.zeros(history.pages)
        self._due_s = np.full(history.pages, np.inf)
        self._gone = np.zeros(history.pages, np.bool_)
        self._views = np.full(history.pages, np.nan)
        self._loss, self._estimates = ChangeLoss(), list[float]()
        self._born = int(np.searchsorted(history.born_s, game.begin_s, side="right"))
        self._fetches, self._changed = (np.zeros(game.parts, np.int64) for _ in range(2))
        pages = history.live_pages_at(game.begin_s)
        self._add_pages(pages, history.version_at(pages, game.begin_s), np.full(len(pages), game.begin_s), game.begin_s)
        self._batch_number, self._announced_s = 0, game.begin_s
        self._is_counted = np.zeros(history.pages, np.bool_)
        self._price = PriceController(plan.pages.name).advance(game.begin_s)
        if self._priced:
            self._price = self._price.with_price(self._find_first_price(pages), settled=True)
            self._requery(pages, game.begin_s)

    def choose(self, now_s: float, most: int) -> Ints:
        """Choose the pages to refresh now: those due; if too many, those worth most, or most overdue."""
        self._add_newborn(now_s)
        self._batch_number += 1
        if self._priced and self._batch_number % REQUERY_INTERVAL == 0:
            self._requery(self._next_requeried(), now_s)
        if self._priced and self._announcer is not None:
            self._requery(self._find_announced(now_s), now_s)
        if self._oracle is not None:
            return self._oracle.choose(self._copy, now_s, most)
        due = np.flatnonzero(self._due_s[: self._born] <= now_s)
        self._update_price(due, now_s)
        if len(due) <= most:
            return due
        if most == 0:
            return due[:0]
        if (
            self._priced
            and len(due) <= MAX_WEIGHED
            and (worth := self._agents[0].worth(due, self._build_findings(due, now_s), now_s)) is not None
        ):
            return np.sort(due[np.argsort(-worth, kind="stable")[:most]])
        due_s = self._due_s[due]
        last_s = np.partition(due_s, most - 1)[most - 1]
        before = due[due_s < last_s]
        # Among equals the older page; a partial sort would leave that to the machine.
        return np.sort(np.concatenate([before, due[due_s == last_s][: most - len(before)]]))

    def fetch(self, pages: Ints, now_s: float) -> None:
        """Refetch pages, compare them with the copies, and let the refresh policy schedule them again."""
        if not len(pages):
            return
        version, copy = self._history.version_at(pages, now_s), self._copy[pages]
        gone = version < 0
        changed = gone | (self._history.digest[version] != self._history.digest[copy])
        self._freshness.add_held_copies(copy, self._since_s[pages], now_s)
        if now_s > self._game.measured_s:
            part = int(np.searchsorted(self._freshness.ends_s[1:-1], now_s, side="right"))
            self._fetches[part] += len(pages)
            self._changed[part] += int(changed.sum())
        before_s = self._since_s[pages]
        self._copy[pages], self._since_s[pages], self._is_counted[pages] = version, now_s, False
        measured = self._measures.replace_copies(pages, copy, version) if self._measures else {}
        self._learn_loss(pages, changed & ~gone, measured)
        measured |= self._announce(pages, now_s)
        self._decide(pages, FetchFindings(self._since_s[pages], changed, gone, before_s=before_s, more=measured), now_s)
        self._gone[pages[gone]] = True
        self._due_s[pages[gone]] = np.inf

    def compute_outcome(self) -> RefreshOutcome:
        """Compute the outcome of the refresh run once its time is up."""
        self._add_newborn(self._game.end_s)
        held = np.flatnonzero(self._copy >= 0)
        self._freshness.add_held_copies(self._copy[held], self._since_s[held], self._game.end_s)
        counts = zip(self._fetches.tolist(), self._changed.tolist(), strict=True)
        parts = tuple(
            RefreshOutcome(*fresh, *tally) for fresh, tally in zip(self._freshness.result(), counts, strict=True)
        )
        freshness, age_d = (float(np.mean([part[column] for part in parts])) for column in range(2))
        fetches, changed = int(self._fetches.sum()), int(self._changed.sum())
        return RefreshOutcome(freshness, age_d, fetches, changed, parts, tuple(self._estimates))

    def estimate_quality(self, now_s: float) -> None:
        """Estimate the current search quality as the live crawler does, from its fetches and its index."""
        pages = np.flatnonzero((self._copy >= 0) & ~self._gone)
        chance = self._agents[0].chance(pages, self._build_findings(pages, now_s), now_s) if self._measures else None
        if self._measures is None or chance is None or self._oracle is not None:
            return
        loss = replace(self._loss, per_view=self._measures.compute_per_view())
        quality = estimate_quality(Freshness("").observe(chance, self._views[pages]), loss)
        self._estimates += [] if quality is None else [quality]

    def _learn_loss(self, pages: Ints, changed: Bools, measured: Mapping[str, Floats]) -> None:
        if "gain" in measured and "views" in measured:
            self._views[pages] = measured["views"]
            self._loss = self._loss.observe(measured["gain"][changed], measured["views"][changed])

    def _add_newborn(self, now_s: float) -> None:
        """Add the pages born since the last batch of the refresh run; pages are numbered by birth."""
        end = int(np.searchsorted(self._history.born_s, now_s, side="right"))
        pages = np.arange(self._born, end)
        self._born = end
        if len(pages):
            first = np.searchsorted(self._history.version_page, pages)
            self._add_pages(pages, first, self._history.born_s[pages], now_s)

    def _add_pages(self, pages: Ints, version: Ints, since_s: Floats, now_s: float) -> None:
        self._copy[pages], self._since_s[pages] = version, since_s
        measured = self._measures.add_copies(pages, version) if self._measures else {}
        self._views[pages] = measured.get("views", np.nan)
        none = np.zeros(len(pages), np.bool_)
        born_s = np.where(self._history.born_s[pages] > self._game.begin_s, self._history.born_s[pages], np.nan)
        self._decide(pages, FetchFindings(since_s, none, none, first=True, more={"born_s": born_s, **measured}), now_s)

    def _decide(self, pages: Ints, findings: FetchFindings, now_s: float) -> None:
        price = self._price.value if self._priced and not findings.first else 1.0
        due_s = [mind.learn(pages, findings, now_s, price) for mind in self._agents]
        self._due_s[pages] = due_s[0] if self._is_source is None else np.where(self._is_source[pages], *due_s[::-1])

    # the price

    def _build_findings(self, pages: Ints, now_s: float) -> FetchFindings:
        """Build the findings of pages between two fetches, for the refresh policy."""
        none = np.zeros(len(pages), np.bool_)
        return FetchFindings(self._since_s[pages], none, none, more=self._announce(pages, now_s))

    def _announce(self, pages: Ints, now_s: float) -> dict[str, Floats]:
        return self._announcer.announce(pages, now_s) if self._announcer is not None else {}

    def _find_announced(self, now_s: float) -> Ints:
        """Find the known pages for which a change was announced since the last batch."""
        pages = np.flatnonzero(~self._gone[: self._born] & (self._copy[: self._born] >= 0))
        signal_s, since_s = self._announce(pages, now_s)["signal_s"], self._announced_s
        self._announced_s = now_s
        return pages[(signal_s > since_s) & (signal_s <= now_s)]

    def _find_first_price(self, pages: Ints) -> float:
        """Find the refresh run's starting price, at which half of the pages are due within one round of the budget."""
        some = pages[:: max(len(pages) // 1000, 1)]
        round_s = max(len(pages), 1) / self._game.budget * DAY_S
        return self._agents[0].find_starting_price(
            some, self._build_findings(some, self._game.begin_s), self._game.begin_s, round_s
        )

    def _next_requeried(self) -> Ints:
        """Return the next known pages to reschedule, in turn, as the price moves."""
        parts = self._born // REQUERY_BATCH + 1
        pages = np.arange(self._batch_number // REQUERY_INTERVAL % parts, self._born, parts)
        return pages[~self._gone[pages] & (self._copy[pages] >= 0)]

    def _requery(self, pages: Ints, now_s: float) -> None:
        if self._is_source is not None:
            pages = pages[~self._is_source[pages]]
        if len(pages):
            findings = self._build_findings(pages, now_s)
            self._due_s[pages] = self._agents[0].due(pages, findings, now_s, self._price.value)

    def _update_price(self, due: Ints, now_s: float) -> None:
        """Count pages that became due, each once until it is fetched, and move the price if it is time."""
        if not self._priced:
            return
        new = due[~self._is_counted[due]]
        self._is_counted[new] = True
        self._price = self._price.advance(now_s).add_spent(refreshes=len(new))
        if self._price.should_move(self._game.budget / DAY_S, self._born):
            self._price = self._price.move_price(self._game.budget / DAY_S, self._born)
