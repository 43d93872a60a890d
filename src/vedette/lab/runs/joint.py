"""Simulation of a joint crawl with one budget for refreshes, polls and first fetches.

The rules of the simulation:

- The crawl is half done when the run starts. Its seeds are home pages and pages without in-links; following links from
  there, breadth first, it has fetched a share (``begun``) of the others, and has copies of that moment. Of the rest it
  knows only the URLs that its copies link to.
- A page that is published later is unknown until a page that links to it has been fetched; then its URL is known and
  may be fetched (a first fetch). A link to an unpublished page leads nowhere yet.
- A fetch of a known page returns its text and its links, whatever its kind.
- Decisions are made in batches. A batch may make as many fetches as the budget (fetches per day) has accumulated; more
  than a day's worth is not saved.
- ``Split`` gives each kind of fetch a fixed share; what a kind cannot use goes to the others. Without a split all
  compete at one price: known pages with their expected changes and expected new links, unseen ones with the gains of
  similar pages. All worths are known at a batch, so the price is computed, not approached
  (``vedette.pricing.clear_price``).

All of them observe the same, rank each kind by the same rule, and see the world only through their fetches.
"""

from collections.abc import Callable, Sequence
from math import floor
from typing import NamedTuple

import numpy as np

from vedette.discover.policies.accrual import Accrual
from vedette.discover.polling.arrivals import LIFETIMES_H, estimate_answer_chance
from vedette.discover.polling.overlap import compute_accrued
from vedette.discover.polling.poll_value import compute_urgency
from vedette.discover.polling.sources import PollHistory, PollResults
from vedette.engine.scheduling.first_fetch import list_groups
from vedette.engine.scheduling.schedule import is_source
from vedette.lab.core.experiment import step_times
from vedette.lab.quality.workload import QuerySet
from vedette.lab.runs.refresh.agents import FetchFindings, PolicyAgent
from vedette.lab.runs.refresh.gains import GainTracker
from vedette.lab.worlds.history import Bools, FetchAnswers, History, HistoryFetcher
from vedette.policy import Floats, Ints
from vedette.pricing import GAIN_LASTS_D, FirstFetchModel, clear_price, split_by_shares
from vedette.refresh.policies.expected_gain import ExpectedGain
from vedette.timeutil import DAY_S, HOUR_S

DAY_H = 24.0


class RefreshAgent(PolicyAgent):
    """The refresh policy of a joint crawl, which values fetches at each batch instead of scheduling them."""

    def __init__(self, history: History, seed: int) -> None:
        super().__init__(ExpectedGain(), history, seed)

    def on_fetches(self, pages: Ints, findings: FetchFindings, now_s: float) -> None:
        """Let the refresh policy of a joint crawl learn from fetches."""
        self.observe(pages, findings, now_s)

    def value(self, pages: Ints, since_s: Floats, now_s: float) -> Floats:
        """Return the current worth of refreshes of these pages in a joint crawl, by their expected changes."""
        none = np.zeros(len(pages), np.bool_)
        worth = self.worth(pages, FetchFindings(since_s, none, none), now_s)
        assert worth is not None, "the policy has a price"
        return worth


class PollAgent:
    """The discovery policy of a joint crawl over all pages with copies; a fetch of any of them is a poll."""

    def __init__(self, history: History) -> None:
        self._policy = Accrual()
        self._state = self._policy.start(None)
        self._book = PollHistory(history.site)

    def on_fetches(self, answers: FetchAnswers, new: Sequence[Bools], now_s: float) -> None:
        """Let the discovery policy of a joint crawl learn the links that fetches showed, and which were new."""
        start = np.concatenate([[0], np.cumsum([len(links) for links in answers.links])]).astype(np.int64)
        target, fresh = np.concatenate(answers.links), np.concatenate(new)
        brought = PollResults(answers.pages, answers.version >= 0, start, target, fresh)
        self._state = self._policy.observe(self._state, self._book.record(brought, now_s), now_s)

    def expected_page_days(self, pages: Ints, now_s: float) -> Floats:
        """Return the expected page-days by which discoveries are delayed if a page is not fetched now.

        The policy's urgency counts lost pages; no link is lost here, so it is how long new pages wait.
        """
        arrivals = self._state.arrivals
        late = compute_urgency(compute_accrued(self._state, pages, now_s), np.inf) * LIFETIMES_H / DAY_H
        waited: Floats = (arrivals.estimate_rates(pages, now_s).mean * late).sum(axis=1)
        return waited * estimate_answer_chance(arrivals.down_s[pages], arrivals.looked_s[pages], now_s)


class FirstFetchAgent:
    """Values of first fetches in a joint crawl, learned by section, by folder depth and by in-links."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._inlinks = np.zeros(len(urls), np.int64)
        self._firsts = FirstFetchModel()

    def on_changes(self, gains: Floats) -> None:
        """Learn the gains of the changes that refreshes found in a joint crawl."""
        self._firsts = self._firsts.add_changes(gains)

    def on_fetches(self, first: Ints, gains: Floats, links: Sequence[Ints]) -> None:
        """Learn the gains of first fetches, by the in-links known before the batch; then count the links it found."""
        self._firsts = self._firsts.add_first_fetches(self._find_groups(first), gains)
        for targets in links:
            self._inlinks[targets] += 1

    def worth(self, pages: Ints) -> Floats:
        """Return the worth of first fetches of these pages in a joint crawl."""
        return self._firsts.worth(self._find_groups(pages)) * GAIN_LASTS_D

    @property
    def page_worth(self) -> float:
        """Return the worth in a joint crawl of knowing a page a day sooner."""
        return self._firsts.page_worth

    def _find_groups(self, pages: Ints) -> list[tuple[str, str, str]]:
        return [list_groups(self._urls[page], int(self._inlinks[page])) for page in pages.tolist()]


KINDS = ("refresh", "look", "first")


class Split(NamedTuple):
    """Split of a joint budget: the share of fetches that each kind gets."""

    refresh: float
    poll: float
    first: float


class JointGame(NamedTuple):
    """Rules of a joint crawl: start and end, fetches per day, decision interval, and the initial progress."""

    begin_s: float
    end_s: float
    budget: float
    step_s: float = 12 * HOUR_S
    seed: int = 1
    crawled_share: float = 0.5


class Batch(NamedTuple):
    """A batch of a joint crawl: its pages, the fetched versions (-1: gone), the price, and the count of each kind.

    Without a split a known page counts as a poll if its links were worth more than its changes.
    """

    now_s: float
    pages: Ints
    versions: Ints
    price: float
    kinds: tuple[int, int, int]


class _Worths(NamedTuple):
    """Current worths of fetches in a joint crawl: known pages by changes and by links, and unseen pages."""

    known: Ints
    changes: Floats
    links: Floats
    unseen: Ints
    first: Floats


def run_joint(
    history: History, asking: QuerySet, game: JointGame, split: Split | None, decided: Callable[[Batch], None]
) -> None:
    """Run the joint crawl simulation of refreshes, polls and first fetches; ``decided`` is called with each batch."""
    run, saved = _JointRun(history, asking, game, split), 0.0
    for now_s in step_times(game.begin_s, game.end_s, game.step_s):
        saved = min(saved + game.budget * game.step_s / DAY_S, game.budget)
        # A whole number summed from fractions may be slightly too small.
        batch = run.run_batch(now_s, floor(saved + 1e-6))
        saved -= len(batch.pages)
        decided(batch)


def find_crawled(history: History, begin_s: float, part: float) -> Ints:
    """Find the pages that a joint crawl has fetched when the run starts, ascending."""
    alive = history.live_pages_at(begin_s)
    version = history.version_at(np.arange(history.pages), begin_s)
    roots = _find_roots(history, alive, version)
    line, reached = roots.tolist(), np.zeros(history.pages, np.bool_)
    reached[roots] = True
    for page in line:
        links = history.links_of(int(version[page]))
        new = links[(version[links] >= 0) & ~reached[links]]
        reached[new] = True
        line += new.tolist()
    found = np.array(line[len(roots) :], np.int64)
    return np.sort(np.concatenate([roots, found[: round(part * len(found))], alive[~reached[alive]]]))


def _find_roots(history: History, alive: Ints, version: Ints) -> Ints:
    """Find the crawl's roots: home pages, and pages that no other page links to."""
    linked = np.zeros(history.pages, np.bool_)
    for page in alive.tolist():
        links = history.links_of(int(version[page]))
        linked[links[links != page]] = True
    is_home = np.array([is_source(history.urls[page], "page") for page in alive.tolist()], np.bool_)
    return alive[is_home | ~linked[alive]]


class _JointRun:
    """State of a joint crawl: copies, known URLs, and the agents' beliefs; pages are numbered by birth."""

    def __init__(self, history: History, asking: QuerySet, game: JointGame, split: Split | None) -> None:
        self._split = split
        self._web = HistoryFetcher(history)
        self._gains = GainTracker(history, asking.workload)
        self._refresher = RefreshAgent(history, game.seed)
        self._poller, self._unseen = PollAgent(history), FirstFetchAgent(history.urls)
        self._copy = np.full(history.pages, -1)
        self._since_s = np.zeros(history.pages)
        self._linked = np.zeros(history.pages, np.bool_)
        self._gone = np.zeros(history.pages, np.bool_)
        self._digest = np.zeros(history.pages, np.uint64)
        self._owed = [0.0, 0.0, 0.0]
        self._fetch(find_crawled(history, game.begin_s, game.crawled_share), game.begin_s, is_begin=True)

    def run_batch(self, now_s: float, most: int) -> Batch:
        """Run one batch of a joint crawl: choose, fetch, and learn."""
        worths = self._compute_worths(now_s)
        pages, kinds, price = (
            self._choose_at_price(worths, most) if self._split is None else self._choose_by_split(worths, most)
        )
        versions = self._fetch(pages, now_s) if len(pages) else pages
        return Batch(now_s, pages, versions, price, kinds)

    def _compute_worths(self, now_s: float) -> _Worths:
        held = np.flatnonzero(self._copy >= 0)
        unseen = np.flatnonzero(self._linked & (self._copy < 0) & ~self._gone)
        changes = self._refresher.value(held, self._since_s[held], now_s)
        links = self._poller.expected_page_days(held, now_s) * self._unseen.page_worth
        return _Worths(held, changes, links, unseen, self._unseen.worth(unseen))

    def _choose_at_price(self, worths: _Worths, most: int) -> tuple[Ints, tuple[int, int, int], float]:
        """Choose fetches of all kinds at one price; a fetch of a known page returns its changes and its links."""
        pages = np.concatenate([worths.known, worths.unseen])
        found = clear_price(np.concatenate([worths.changes + worths.links, worths.first]), most)
        rows = found.rows[found.rows < len(worths.known)]
        looks = int((worths.links[rows] > worths.changes[rows]).sum())
        kinds = len(rows) - looks, looks, len(found.rows) - len(rows)
        return np.sort(pages[found.rows]), kinds, found.price

    def _choose_by_split(self, worths: _Worths, most: int) -> tuple[Ints, tuple[int, int, int], float]:
        """Choose fetches by fixed shares of the budget; unused shares go to other kinds, refreshes before polls."""
        assert self._split is not None
        parts, self._owed = split_by_shares(most, self._split, self._owed)
        first = worths.unseen[clear_price(worths.first, parts[2] if self._split.first else 0).rows]
        looked = clear_price(worths.links, parts[1]).rows
        changes = worths.changes.copy()
        changes[looked] = -np.inf
        spare = most - len(first) - len(looked)
        refreshed = clear_price(changes, spare if self._split.refresh else 0).rows
        refreshed = refreshed[np.isfinite(changes[refreshed])]
        if not self._split.refresh and self._split.poll:
            looked = clear_price(worths.links, most - len(first)).rows
        pages = np.concatenate([worths.known[np.concatenate([looked, refreshed])], first])
        return np.sort(pages), (len(refreshed), len(looked), len(first)), 0.0

    def _fetch(self, pages: Ints, now_s: float, *, is_begin: bool = False) -> Ints:
        """Fetch pages in a joint crawl and learn from them; return the fetched versions."""
        answers = self._web.fetch(pages, now_s)
        before, is_first = self._copy[pages], self._copy[pages] < 0
        gone = answers.version < 0
        gain = self._measure_gains(pages, before, answers.version, is_begin=is_begin)
        self._poller.on_fetches(answers, self._add_links(answers), now_s)
        learned = is_first & (not is_begin)
        self._unseen.on_fetches(pages[learned], gain[learned], answers.links)
        changed = ~is_first & (answers.digest != self._digest[pages])
        self._unseen.on_changes(gain[changed & ~gone])
        old_s, self._since_s[pages], self._copy[pages] = self._since_s[pages], now_s, answers.version
        self._gone[pages[gone]], self._digest[pages] = True, answers.digest
        for rows, first in ((is_first & ~gone, True), (~is_first, False)):
            if rows.any():
                more = {"gain": gain[rows], "views": self._gains.compute_views()[pages[rows]]}
                findings = FetchFindings(
                    self._since_s[pages[rows]], changed[rows], gone[rows], first, old_s[rows], more
                )
                self._refresher.on_fetches(pages[rows], findings, now_s)
        return answers.version

    def _measure_gains(self, pages: Ints, before: Ints, after: Ints, *, is_begin: bool) -> Floats:
        """Measure the search gain of each fetch of a joint crawl; copies at the start are not measured."""
        if is_begin:
            self._gains.add_copies(pages, after)
            return np.zeros(len(pages))
        return self._gains.replace_copies(pages, before, after)

    def _add_links(self, answers: FetchAnswers) -> list[Bools]:
        """Add the linked URLs of fetched versions; return which of each version's links were new."""
        new = [~self._linked[links] & (self._copy[links] < 0) & ~self._gone[links] for links in answers.links]
        for links in answers.links:
            self._linked[links] = True
        self._linked[answers.pages] = True
        return new
