"""Do chances come true? Models of change are asked before each look at a page, and told after it what was found.

The game: pages are known from their birth on, or from the begin. Once a day some are looked at, as many as the budget
(looks a day) allows, drawn evenly whatever is known of them: so waits of all lengths occur, and no model has a say in
what it is asked. A look tells whether the page says something else than the copy from the last one. One that is found
gone is let go, and no chance is judged by it.

All models of a run are asked about the same looks. Those of the first fifth of the time are for learning only.
"""

from collections.abc import Iterator, Sequence
from math import floor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints, rng_for
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.base import ChangeModel
from vedette.timeutil import DAY_S

WARM_UP = 0.2
MIN_CHANCE = 1e-4
RESAMPLES = 500
BINS = 10


class Groups(NamedTuple):
    """The section and the site of each page, as rows of a memory's groups; row 0 is everything."""

    section: Ints
    site: Ints

    @classmethod
    def empty(cls, pages: int) -> "Groups":
        """All pages belong to everything, and to nothing else."""
        return cls(np.zeros(pages, np.int64), np.zeros(pages, np.int64))


class FetchSampling(NamedTuple):
    """From when to when, how many looks a day, and the seed by which pages are drawn."""

    begin_s: float
    end_s: float
    budget: float
    seed: int = 1


class Judgments(NamedTuple):
    """Every look that counts: at which page, what was found, and the chance that each model gave it (a row a model)."""

    page: Ints
    changed: Bools
    chance: Floats


class Score(NamedTuple):
    """A mean over looks, with a 95 % interval by pages drawn anew: looks at one page are not independent."""

    mean: float
    low: float
    high: float


class ReliabilityBin(NamedTuple):
    """Looks of which a model said about the same: how many, the mean chance, and the share that had changed."""

    fetches: int
    chance: float
    changed: float


def run_calibration(
    history: History, models: Sequence[ChangeModel], looks: FetchSampling, groups: Groups | None = None
) -> Judgments:
    """Play it."""
    minds = [_ModelRunner(model, history.pages) for model in models]
    counts_s = looks.begin_s + WARM_UP * (looks.end_s - looks.begin_s)
    rows: list[tuple[Ints, Bools, Floats]] = []
    for pages, before, after in _iter_batches(history, looks, groups or Groups.empty(history.pages)):
        if before is not None and after.last_fetch_s[0] >= counts_s:
            there = ~after.gone
            chances = np.array([mind.predict(pages, before, after.last_fetch_s) for mind in minds])
            rows.append((pages[there], after.changed[there], chances.reshape(len(minds), -1)[:, there]))
        for mind in minds:
            mind.learn(pages, after)
    if not rows:
        return Judgments(np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros((len(minds), 0)))
    page, changed, chance = zip(*rows, strict=True)
    return Judgments(np.concatenate(page), np.concatenate(changed), np.concatenate(chance, axis=1))


class _ModelRunner:
    """A model with what it remembers; it is handed the rows of the pages in question only."""

    def __init__(self, model: ChangeModel, pages: int) -> None:
        self._model = model
        empty = Memory.empty(model.page_width, model.group_width)
        self._pages, self._groups = np.zeros((pages, model.page_width)), empty.groups

    def predict(self, pages: Ints, batch: KnownPages, at_s: Floats) -> Floats:
        """What it says."""
        return self._model.chance(Memory(self._pages[pages], self._groups), batch, at_s)

    def learn(self, pages: Ints, batch: KnownPages) -> None:
        """What it makes of it."""
        after = self._model.learn(Memory(self._pages[pages], self._groups), batch)
        self._pages[pages], self._groups = after.pages, after.groups


def _iter_batches(
    history: History, looks: FetchSampling, groups: Groups
) -> Iterator[tuple[Ints, KnownPages | None, KnownPages]]:
    """Pages that are met or looked at; what is known of them before (None: nothing) and after."""
    web = _CopyTable(history, groups, looks.begin_s)
    rng, saved = rng_for(looks.seed, "lab/calibration"), 0.0
    pages = history.live_pages_at(looks.begin_s)
    if len(pages):
        yield pages, None, web.add_pages(pages, looks.begin_s)
    for day in range(1, floor((looks.end_s - looks.begin_s) / DAY_S) + 1):
        now_s = looks.begin_s + day * DAY_S
        newborn = web.take_newborn(now_s)
        if len(newborn):
            yield newborn, None, web.add_pages(newborn, now_s)
        saved = min(saved + looks.budget, max(looks.budget, 1.0))
        known = np.flatnonzero(web.copy >= 0)
        pages = np.sort(rng.choice(known, min(floor(saved + 1e-6), len(known)), replace=False))
        saved -= len(pages)
        if len(pages):
            before = web.to_known(pages)
            yield pages, before, web.refetch(pages, now_s)


class _CopyTable:
    """What is held of each page, a column each: the copy, when it was made, and what a fetch tells besides."""

    def __init__(self, history: History, groups: Groups, begin_s: float) -> None:
        self._history, self._groups, self._begin_s = history, groups, begin_s
        self.copy = np.full(history.pages, -1)
        self._last_s = np.full(history.pages, np.nan)
        self._links = np.zeros(history.pages)
        self._born = int(np.searchsorted(history.born_s, begin_s, side="right"))

    def take_newborn(self, now_s: float) -> Ints:
        """Pages that were born since the last time, and live; pages are numbered by birth."""
        end = int(np.searchsorted(self._history.born_s, now_s, side="right"))
        pages = np.arange(self._born, end)
        self._born = end
        return pages[self._history.died_s[pages] > now_s]

    def add_pages(self, pages: Ints, now_s: float) -> KnownPages:
        """Pages are seen for the first time."""
        self._store_copies(pages, self._history.version_at(pages, now_s), now_s)
        return self.to_known(pages, first=True)

    def refetch(self, pages: Ints, now_s: float) -> KnownPages:
        """Pages are looked at again: the copies are replaced."""
        digest, before_s = self._history.digest, self._last_s[pages]
        version, copy = self._history.version_at(pages, now_s), self.copy[pages]
        gone = version < 0
        changed = gone | (digest[version] != digest[copy])
        self._store_copies(pages, version, now_s)
        return self.to_known(pages, changed=changed, gone=gone, before_s=before_s)

    def to_known(
        self,
        pages: Ints,
        *,
        first: bool = False,
        changed: Bools | None = None,
        gone: Bools | None = None,
        before_s: Floats | None = None,
    ) -> KnownPages:
        """What is known of pages by their copies."""
        count, history = len(pages), self._history
        copy = self.copy[pages]
        return KnownPages(
            np.arange(count),
            self._last_s[pages],
            np.zeros(count, np.bool_) if changed is None else changed,
            np.full(count, first),
            np.full(count, np.nan),
            before_s=np.full(count, np.nan) if before_s is None else before_s,
            section=self._groups.section[pages],
            site=self._groups.site[pages],
            gone=np.zeros(count, np.bool_) if gone is None else gone,
            born_s=np.maximum(history.born_s[pages], self._begin_s),
            words=np.where(copy >= 0, history.words[copy], np.nan),
            links=self._links[pages],
        )

    def _store_copies(self, pages: Ints, version: Ints, now_s: float) -> None:
        self._count_links(self.copy[pages], -1.0)
        self.copy[pages], self._last_s[pages] = version, now_s
        self._count_links(version, 1.0)

    def _count_links(self, versions: Ints, sign: float) -> None:
        """How many copies link to each page: what a crawler knows of it without asking."""
        held, history = versions[versions >= 0], self._history
        linked = concat_ranges(history.link_start[held], history.link_start[held + 1])
        np.add.at(self._links, history.link_to[linked], sign)


def brier_scores(judged: Judgments) -> Floats:
    """The squared error of every chance; less is better."""
    error: Floats = (judged.chance - judged.changed) ** 2
    return error


def log_scores(judged: Judgments) -> Floats:
    """The logarithm of the chance that was given to what was found, in nats; more is better.

    A chance is held between 1 / 10 000 and its opposite, so that one surprise does not outweigh everything.
    """
    chance = np.clip(judged.chance, MIN_CHANCE, 1 - MIN_CHANCE)
    score: Floats = np.log(np.where(judged.changed, chance, 1 - chance))
    return score


def bootstrap_score(values: Floats, page: Ints, seed: int) -> Score:
    """The mean of one model's values, and its interval.

    >>> bootstrap_score(np.array([1.0, 1.0, 1.0]), np.array([0, 0, 1]), 1)
    Score(mean=1.0, low=1.0, high=1.0)
    """
    if not len(values):
        return Score(np.nan, np.nan, np.nan)
    _, place = np.unique(page, return_inverse=True)
    looks = np.bincount(place)
    sums = np.bincount(place, values)
    drawn = _resample_pages(len(looks), seed)
    low, high = np.quantile((drawn @ sums) / (drawn @ looks), (0.025, 0.975))
    return Score(float(values.mean()), float(low), float(high))


def _resample_pages(pages: int, seed: int) -> npt.NDArray[np.int64]:
    """How often each page is drawn in each of many draws with replacement."""
    rng = rng_for(seed, "lab/calibration/bootstrap")
    return rng.multinomial(pages, np.full(pages, 1 / pages), RESAMPLES)


def bin_reliability(chance: Floats, changed: Bools) -> list[ReliabilityBin]:
    """Looks by what was said of them, in bins of equal numbers of looks; where chances are true, both means agree."""
    order = np.argsort(chance, kind="stable")
    parts = [part for part in np.array_split(order, BINS) if len(part)]
    return [ReliabilityBin(len(part), float(chance[part].mean()), float(changed[part].mean())) for part in parts]
