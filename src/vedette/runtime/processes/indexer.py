"""The indexer process: the only writer of the index that serves.

A new generation that somebody built meanwhile (``vedette reindex``, or ``renewal``) is taken over where it is.
"""

import os
import signal
import sys
import time

from vedette.adapters.index_store.generations import Generations
from vedette.errors import StoreError
from vedette.runtime.indexing.impact import Impacting
from vedette.runtime.indexing.indexer import open_indexer
from vedette.runtime.indexing.pagerank import Ranking
from vedette.runtime.indexing.rebuild import Renewal
from vedette.runtime.indexing.term_curves import Curving
from vedette.runtime.processes.settings import LiveSettings
from vedette.runtime.search.click_learning import Learning

__all__ = ["run_indexer"]

LOOK_EVERY_S = 0.2
# How long what is known already may take to become findable at the end.
LAST_STEPS_S = 2.0
NICENESS = 5


def run_indexer(settings: LiveSettings) -> int:
    """The life of the indexer process; it ends when it is told to, with everything durable."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    os.nice(NICENESS)
    generations = Generations(settings.folder)
    while not (settings.folder / "format").exists() and not stopping:
        time.sleep(LOOK_EVERY_S)  # the keeper is about to make the folder
    try:
        indexer = open_indexer(settings.folder, settings.clock)
    except StoreError as error:
        sys.stderr.write(f"vedette: {error}\n")
        return 1
    ranking, renewal = Ranking(), Renewal(settings.folder, settings.clock)
    curving = Curving(settings.folder, settings.clock)
    learning = Learning(settings.folder, settings.clock, configured=settings.config.serve.learn)
    impacting = Impacting(settings.folder, settings.clock, is_on=settings.config.crawl.order == "impact")
    try:
        while not stopping:
            if generations.current() != indexer.builder.generation:
                indexer.close()
                indexer = open_indexer(settings.folder, settings.clock)
            if indexer.builder.concealed_anew and not indexer.builder.pending:
                indexer.builder.concealed_anew = False
                ranking.hurry()
            ranking.step(indexer.builder.table, time.monotonic())
            renewal.step(indexer.builder.table, time.monotonic())
            curving.step(indexer.builder.table, indexer.builder.gauge.changes, time.monotonic())
            learning.step(indexer.builder.generation, time.monotonic())
            impacting.step(indexer.builder.table, indexer.builder.gauge.changes, time.monotonic())
            if not indexer.step():
                time.sleep(LOOK_EVERY_S)  # nothing is new; this is how often we look
        until_s = time.monotonic() + LAST_STEPS_S
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
