"""Indexer process: the only writer of the serving index generation.

A new generation that was built meanwhile (``vedette reindex``, or ``RebuildJob``) is adopted in place.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from vedette.adapters.index_store.generations import Generations
from vedette.errors import StoreError
from vedette.runtime.indexing.embedding import EmbeddingJob
from vedette.runtime.indexing.impact import ImpactJob
from vedette.runtime.indexing.indexer import Indexer, RebuildJob, find_damage, is_corruption, open_indexer, put_aside
from vedette.runtime.indexing.pagerank import ImportanceJob
from vedette.runtime.indexing.query_curves import CurvesJob
from vedette.runtime.processes.background import is_disk_full
from vedette.runtime.processes.loop import StepLoop, print_error
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.search.click_learning import LearningJob

CHECK_EVERY_S = 0.2
# How long indexing of queued pages may take at the end.
DRAIN_S = 2.0


class _IndexReported(Exception):
    """A reader has found the indexer's generation damaged."""


class IndexerProcess:
    """The indexer process: the indexer of the current generation, and the background jobs beside it."""

    def __init__(self, settings: RuntimeSettings, indexer: Indexer) -> None:
        folder, clock, config = settings.folder, settings.clock, settings.config
        self._folder, self._clock = folder, clock
        self._generations = Generations(folder)
        self._indexer = indexer
        self._importance = ImportanceJob()
        self._rebuild = RebuildJob(folder, clock)
        self._curves = CurvesJob(folder, clock)
        self._learning = LearningJob(folder, clock, configured=config.serve.learn)
        self._impact = ImpactJob(folder, clock, is_on=config.crawl.order == "impact")
        self._embedding = EmbeddingJob(self._generations.folder, config.serve.embedding_model)

    def step(self) -> bool:
        """Start due background jobs and index the next pages; return whether there were any.

        If that fails because the index is damaged, it is put aside and built again.
        """
        try:
            return self._step()
        except BaseException as error:
            if is_disk_full(error) or not self._repair(error):
                raise
            return True

    def _repair(self, error: BaseException) -> bool:
        """Replace the index generation if an error came from its damage; return whether it did."""
        generation = self._indexer.builder.generation
        damage = str(error) if isinstance(error, _IndexReported) else find_damage(generation)
        if not damage and is_corruption(error):
            damage = " ".join(str(error).split())[:200]
        if not damage:
            return False
        self._indexer.builder.abandon()
        put_aside(self._generations, generation, damage)
        self._indexer = open_indexer(self._folder, self._clock)
        return True

    def _step(self) -> bool:
        if self._generations.current() != self._indexer.builder.generation:
            self._indexer.close()
            self._indexer = open_indexer(self._folder, self._clock)
        builder, now_s = self._indexer.builder, time.monotonic()
        if report := self._generations.read_report(builder.generation):
            raise _IndexReported(report)
        if builder.hidden_changed and not builder.pending:
            builder.hidden_changed = False
            self._importance.request_run()
        self._importance.step(builder.table, now_s)
        self._rebuild.step(builder.table, now_s)
        self._curves.step(builder.table, builder.gain_meter.changes, now_s)
        self._learning.step(builder.generation, now_s)
        self._impact.step(builder.table, builder.gain_meter.changes, now_s)
        self._embedding.step(builder.table, now_s)
        return self._indexer.step()

    def drain(self) -> None:
        """Index what is already queued, briefly, before the indexer process exits."""
        until_s = time.monotonic() + DRAIN_S
        while self._indexer.step() and time.monotonic() < until_s:
            pass

    def close(self) -> None:
        """End the background jobs and commit the index."""
        jobs = (self._importance, self._rebuild, self._curves, self._learning, self._impact, self._embedding)
        for job in jobs:
            job.close()
        self._indexer.close()


def run_indexer(settings: RuntimeSettings) -> int:
    """Run the indexer process until SIGTERM; everything indexed is durable when it exits."""
    loop = StepLoop(CHECK_EVERY_S)
    loop.wait_for_folder(settings.folder)
    with _explain_errors(settings.folder / "index"):
        try:
            indexer = open_indexer(settings.folder, settings.clock)
        except StoreError as error:
            print_error(str(error))
            return 1
        with closing(IndexerProcess(settings, indexer)) as process:
            loop.run(process.step)
            process.drain()
    return 0


@contextmanager
def _explain_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not isinstance(error, (sqlite3.OperationalError, OSError)) and not is_disk_full(error):
            raise
        raise StoreError(
            f"{folder}: {error}. Nothing was lost; the index can be rebuilt. Free up disk space or check permissions."
        ) from error
