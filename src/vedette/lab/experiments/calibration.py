"""Calibration experiment: are the probabilities predicted by change models right?

Pages are known from their birth on, or from the start. Once a day some are fetched, as many as the budget (fetches per
day) allows, drawn uniformly: so waits of all lengths occur, and no model influences the sample. A fetch shows whether
the page differs from its last copy. A page that is gone is dropped, and not used for judging. The policies are models;
all models of a run predict the same fetches before they learn the outcome. The first fifth of the time is for learning
only.

One row has the scores over all fetches, with 95% intervals by a bootstrap over pages. The others have one ``bin``
each: a tenth of the fetches, by predicted probability, with its mean and the share that had changed; if both agree, the
model is calibrated.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import floor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.errors import UsageError
from vedette.lab.baselines.models.poisson import Poisson
from vedette.lab.baselines.models.replacement import Replacement
from vedette.lab.baselines.models.signals import SignalModel
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, resolve_span, step_times
from vedette.lab.core.registry import suggest_name
from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints, rng_for
from vedette.refresh.known_pages import Bools, KnownPages, Memory, groups_of
from vedette.refresh.models.age import Ageing
from vedette.refresh.models.base import ChangeModel
from vedette.refresh.models.mixture import Mixture
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rhythm import Rhythm
from vedette.refresh.models.two_stage import TwoStage
from vedette.refresh.models.waves import Waves
from vedette.refresh.models.young import Young
from vedette.timeutil import DAY_S

WARM_UP = 0.2
MIN_CHANCE = 1e-4
RESAMPLES = 500
BINS = 10


class Groups(NamedTuple):
    """Groups of pages in the calibration experiment: section and site, as rows of a memory; row 0 is everything."""

    section: Ints
    site: Ints

    @classmethod
    def empty(cls, pages: int) -> "Groups":
        """Return groups for the calibration experiment where all pages belong only to row 0."""
        return cls(np.zeros(pages, np.int64), np.zeros(pages, np.int64))


class FetchSampling(NamedTuple):
    """Fetch sampling of the calibration experiment: start and end, fetches per day, and the seed that draws pages."""

    begin_s: float
    end_s: float
    budget: float
    seed: int = 1


class Judgments(NamedTuple):
    """Judged fetches of the calibration experiment: pages, outcomes, and probabilities (one row per model)."""

    page: Ints
    changed: Bools
    chance: Floats


class Score(NamedTuple):
    """A mean calibration score over fetches, with a 95% bootstrap interval over pages, as fetches of one depend."""

    mean: float
    low: float
    high: float


class ReliabilityBin(NamedTuple):
    """A bin of a reliability diagram: fetches with about the same probability, its mean, and the changed share."""

    fetches: int
    chance: float
    changed: float


def run_calibration(
    history: History, models: Sequence[ChangeModel], looks: FetchSampling, groups: Groups | None = None
) -> Judgments:
    """Run the calibration experiment: query the models before each fetch, train them after it, return the judgments."""
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
    """A model of change under calibration, with its memory; it gets only the rows of the batch."""

    def __init__(self, model: ChangeModel, pages: int) -> None:
        self._model = model
        empty = Memory.empty(model.page_width, model.group_width)
        self._pages, self._groups = np.zeros((pages, model.page_width)), empty.groups

    def predict(self, pages: Ints, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the probabilities of change that the model predicts for these fetches."""
        return self._model.chance(Memory(self._pages[pages], self._groups), batch, at_s)

    def learn(self, pages: Ints, batch: KnownPages) -> None:
        """Let the model of change learn from these fetches."""
        after = self._model.learn(Memory(self._pages[pages], self._groups), batch)
        self._pages[pages], self._groups = after.pages, after.groups


def _iter_batches(
    history: History, looks: FetchSampling, groups: Groups
) -> Iterator[tuple[Ints, KnownPages | None, KnownPages]]:
    """Yield batches of pages that are first seen or fetched, with what is known before (None: nothing) and after."""
    web = _CopyTable(history, groups, looks.begin_s)
    rng, saved = rng_for(looks.seed, "lab/calibration"), 0.0
    pages = history.live_pages_at(looks.begin_s)
    if len(pages):
        yield pages, None, web.add_pages(pages, looks.begin_s)
    for now_s in step_times(looks.begin_s, looks.end_s, DAY_S):
        newborn = web.take_newborn(now_s)
        if len(newborn):
            yield newborn, None, web.add_pages(newborn, now_s)
        saved = min(saved + looks.budget, max(looks.budget, 1.0))
        copied = np.flatnonzero(web.copy >= 0)
        pages = np.sort(rng.choice(copied, min(floor(saved + 1e-6), len(copied)), replace=False))
        saved -= len(pages)
        if len(pages):
            before = web.to_known(pages)
            yield pages, before, web.refetch(pages, now_s)


class _CopyTable:
    """Copies of pages in the calibration experiment, a column each: version, time, and what a fetch shows besides."""

    def __init__(self, history: History, groups: Groups, begin_s: float) -> None:
        self._history, self._groups, self._begin_s = history, groups, begin_s
        self.copy = np.full(history.pages, -1)
        self._last_s = np.full(history.pages, np.nan)
        self._links = np.zeros(history.pages)
        self._born = int(np.searchsorted(history.born_s, begin_s, side="right"))

    def take_newborn(self, now_s: float) -> Ints:
        """Take the live pages born since the last time; pages are numbered by birth."""
        end = int(np.searchsorted(self._history.born_s, now_s, side="right"))
        pages = np.arange(self._born, end)
        self._born = end
        return pages[self._history.died_s[pages] > now_s]

    def add_pages(self, pages: Ints, now_s: float) -> KnownPages:
        """Add pages that the calibration experiment sees for the first time."""
        self._store_copies(pages, self._history.version_at(pages, now_s), now_s)
        return self.to_known(pages, first=True)

    def refetch(self, pages: Ints, now_s: float) -> KnownPages:
        """Refetch pages in the calibration experiment and replace their copies."""
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
        """Build the known-pages batch of these pages from their copies, for models of change."""
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
        """Count the copies that link to each page, which a crawler knows without a fetch."""
        held, history = versions[versions >= 0], self._history
        linked = concat_ranges(history.link_start[held], history.link_start[held + 1])
        np.add.at(self._links, history.link_to[linked], sign)


def brier_scores(judged: Judgments) -> Floats:
    """Compute the Brier score (squared error) of every predicted probability of change; less is better."""
    error: Floats = (judged.chance - judged.changed) ** 2
    return error


def log_scores(judged: Judgments) -> Floats:
    """Compute the log score of every predicted probability of change, in nats; more is better.

    A probability is clipped to 1 / 10 000 and its complement, so that one surprise does not outweigh everything.
    """
    chance = np.clip(judged.chance, MIN_CHANCE, 1 - MIN_CHANCE)
    score: Floats = np.log(np.where(judged.changed, chance, 1 - chance))
    return score


def bootstrap_score(values: Floats, page: Ints, seed: int) -> Score:
    """Compute the mean of one model's calibration scores, with its bootstrap interval over pages.

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
    """Draw bootstrap samples of pages: how often each page occurs in each sample."""
    rng = rng_for(seed, "lab/calibration/bootstrap")
    return rng.multinomial(pages, np.full(pages, 1 / pages), RESAMPLES)


def bin_reliability(chance: Floats, changed: Bools) -> list[ReliabilityBin]:
    """Bin fetches by predicted probability for a reliability diagram, with equal numbers of fetches per bin."""
    order = np.argsort(chance, kind="stable")
    parts = [part for part in np.array_split(order, BINS) if len(part)]
    return [ReliabilityBin(len(part), float(chance[part].mean()), float(changed[part].mean())) for part in parts]


_ALL_MODELS: tuple[ChangeModel, ...] = (
    *(Mixture(), Waves(), Pooled(), Ageing(), TwoStage(), Young(), Rhythm(), Replacement(), SignalModel(), Poisson()),
)
MODELS: Mapping[str, ChangeModel] = {model.name: model for model in _ALL_MODELS}
OWN_METRICS: Mapping[str, Metric] = {
    "log_score": Metric("mean logarithm of the probability given to the outcome (at least 1e-4)", "nats", True),
    "log_score_low": Metric("lower end of its 95% confidence interval", "nats"),
    "log_score_high": Metric("upper end of its 95% confidence interval", "nats"),
    "brier": Metric("mean squared error of the probabilities", "", False),
    "brier_low": Metric("lower end of its 95% confidence interval"),
    "brier_high": Metric("upper end of its 95% confidence interval"),
    "said": Metric("mean predicted probability of a change", "share"),
    "found": Metric("share of fetches that found a change", "share"),
    "looks": Metric("fetches that were judged"),
}


def build_groups(history: History) -> Groups:
    """Build the groups of pages for the calibration experiment: their sections and sites; row 0 is everything."""
    groups = groups_of(history.urls)
    return Groups(groups.section, groups.site)


def build_rows(judged: Judgments, seed: int) -> list[Measurements]:
    """Build the calibration rows of one model, the first in the judgments."""
    chance = judged.chance[0]
    logs, squares = (
        bootstrap_score(values[0], judged.page, seed) for values in (log_scores(judged), brier_scores(judged))
    )
    summary = {
        "log_score": logs.mean,
        "log_score_low": logs.low,
        "log_score_high": logs.high,
        "brier": squares.mean,
        "brier_low": squares.low,
        "brier_high": squares.high,
        "said": float(chance.mean()),
        "found": float(judged.changed.mean()),
        "looks": float(len(chance)),
    }
    bins = bin_reliability(chance, judged.changed)
    return [
        summary,
        *(
            {"bin": float(place), "said": each.chance, "found": each.changed, "looks": float(each.fetches)}
            for place, each in enumerate(bins)
        ),
    ]


class Calibration(Experiment):
    """The calibration experiment."""

    name = "calibration"
    about = "Are the change models calibrated? (policies: models; budget: fetches per day)"
    worlds = ("git", "made", "live")
    own = OWN_METRICS
    metrics = tuple(OWN_METRICS)
    policies = tuple(MODELS)
    budgets = (20.0,)
    figures = (("found", "bin"), ("said", "bin"))

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the calibration experiment on a cell: a row of scores, and one for each tenth of the fetches."""
        if cell.policy not in MODELS:
            raise UsageError(f'"{cell.policy}" is not a change model; {suggest_name(cell.policy, MODELS)}')
        history = open_history(cell.world)
        begin_s, end_s = resolve_span(cell.span, history.begin_s, history.end_s)
        looks = FetchSampling(begin_s, end_s, cell.budget, cell.seed)
        judged = run_calibration(history, [MODELS[cell.policy]], looks, build_groups(history))
        if not len(judged.page):
            raise UsageError(f"{cell.world}: no page was fetched twice; use a longer period or a larger budget")
        return build_rows(judged, cell.seed)


EXPERIMENT = Calibration()
