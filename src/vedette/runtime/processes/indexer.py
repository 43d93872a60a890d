"""The indexer process: the only writer of the index that serves.

A new generation that somebody built meanwhile (``vedette reindex``, or ``renewal``) is taken over where it is.
"""

import os
import signal
import sys
import time

from vedette.adapters.index_store.generations import Generations
from vedette.errors import StoreError
from vedette.runtime.indexing.impact import ImpactJob
from vedette.runtime.indexing.indexer import RebuildJob, open_indexer
from vedette.runtime.indexing.pagerank import ImportanceJob
from vedette.runtime.indexing.term_curves import CurvesJob
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.search.click_learning import LearningJob

CHECK_EVERY_S = 0.2
# How long what is known already may take to become findable at the end.
DRAIN_S = 2.0
NICENESS = 5


def run_indexer(settings: RuntimeSettings) -> int:
    """The life of the indexer process; it ends when it is told to, with everything durable."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    os.nice(NICENESS)
    generations = Generations(settings.folder)
    while not (settings.folder / "format").exists() and not stopping:
        time.sleep(CHECK_EVERY_S)  # the keeper is about to make the folder
    try:
        indexer = open_indexer(settings.folder, settings.clock)
    except StoreError as error:
        sys.stderr.write(f"vedette: {error}\n")
        return 1
    ranking, renewal = ImportanceJob(), RebuildJob(settings.folder, settings.clock)
    curving = CurvesJob(settings.folder, settings.clock)
    learning = LearningJob(settings.folder, settings.clock, configured=settings.config.serve.learn)
    impacting = ImpactJob(settings.folder, settings.clock, is_on=settings.config.crawl.order == "impact")
    try:
        while not stopping:
            if generations.current() != indexer.builder.generation:
                indexer.close()
                indexer = open_indexer(settings.folder, settings.clock)
            if indexer.builder.hidden_changed and not indexer.builder.pending:
                indexer.builder.hidden_changed = False
                ranking.request_run()
            ranking.step(indexer.builder.table, time.monotonic())
            renewal.step(indexer.builder.table, time.monotonic())
            curving.step(indexer.builder.table, indexer.builder.gain_meter.changes, time.monotonic())
            learning.step(indexer.builder.generation, time.monotonic())
            impacting.step(indexer.builder.table, indexer.builder.gain_meter.changes, time.monotonic())
            if not indexer.step():
                time.sleep(CHECK_EVERY_S)  # nothing is new; this is how often we look
        until_s = time.monotonic() + DRAIN_S
        while indexer.step() and time.monotonic() < until_s:
            pass
    finally:
        ranking.close()
        renewal.close()
        curving.close()
        learning.close()
        impacting.close()
        indexer.close()
    return 0
