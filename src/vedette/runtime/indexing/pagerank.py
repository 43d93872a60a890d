"""PageRank job: importance of pages and hosts, and the lexicon, computed in a background process.

python -m vedette.runtime.indexing.pagerank GENERATION
"""

import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from vedette.adapters.index_store.indexer_store import follow_aliases
from vedette.adapters.index_store.page_table import PageTable, write_rank
from vedette.errors import StoreError
from vedette.index.pagerank import host_importance, page_importance, percentiles
from vedette.policy import Ints
from vedette.runtime.processes.background import BackgroundJob, lower_priority
from vedette.runtime.search.lexicon import write_lexicon

# It is computed again when the index has grown by this share, and at the latest after this many seconds.
GROWTH = 0.1
MAX_AGE_S = 1800.0


class ImportanceJob(BackgroundJob):
    """Background job that computes PageRank importance and the lexicon when due."""

    def __init__(self) -> None:
        super().__init__("vedette.runtime.indexing.pagerank")
        self._pages = 0
        self._is_requested = False

    def request_run(self) -> None:
        """Request a run of the PageRank job, since pages were hidden or shown again: suggestions must follow."""
        self._is_requested = True

    def step(self, table: PageTable, now_s: float) -> None:
        """Start the PageRank job if it is due."""
        if not self.is_ready(now_s):
            return
        pages = len(table.indexed)
        changed = abs(pages - self._pages) > GROWTH * self._pages or now_s - self.started_s > MAX_AGE_S
        if pages and (changed or self._is_requested):
            self._pages, self._is_requested = pages, False
            self.start(now_s, str(table.folder))


def compute_importance(generation: Path) -> int:
    """Compute the PageRank importance of all pages of a generation; return how many there are."""
    table = PageTable(generation)
    ids = table.indexed
    if not len(ids):
        return 0
    sources, targets = _load_edges(table, ids, generation)
    hosts = table.rows["host"][ids].astype(np.int64)
    worth = page_importance(sources, targets, len(ids), hosts=hosts)
    of_hosts = host_importance(worth, hosts)
    pages, homes = np.zeros((2, int(ids[-1]) + 1), np.float32)
    pages[ids], homes[ids] = percentiles(worth), percentiles(of_hosts)[hosts]
    write_rank(generation, pages, homes)
    return len(ids)


def _load_edges(table: PageTable, ids: Ints, generation: Path) -> tuple[Ints, Ints]:
    """Load the links between indexed pages for PageRank, as positions in ``ids``; aliases are followed once."""
    links = [table.read_links(id_) for id_ in ids.tolist()]
    sources = np.repeat(np.arange(len(ids)), [len(each) for each in links])
    prints = follow_aliases(generation, np.concatenate(links))
    own = table.rows["print"][ids]
    order = np.argsort(own, kind="stable")
    places = np.minimum(np.searchsorted(own[order], prints), len(ids) - 1)
    targets = order[places]
    known = own[targets] == prints
    return sources[known], targets[known]


if __name__ == "__main__":
    lower_priority()
    with suppress(StoreError, FileNotFoundError):  # another generation replaced it meanwhile
        compute_importance(Path(sys.argv[1]))
        write_lexicon(Path(sys.argv[1]))
