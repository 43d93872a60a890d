"""PageRank job: importance of pages and hosts, and the lexicon, computed in a background process.

python -m vedette.runtime.indexing.pagerank GENERATION
"""

import sys
from pathlib import Path

import numpy as np

from vedette.adapters.crawl_store.data_folder import SHARD_FILE
from vedette.adapters.index_store.indexer_store import follow_aliases
from vedette.adapters.index_store.page_table import PageTable, write_rank
from vedette.adapters.index_store.rank_blocks import RankBlock, find_newest_block_s, read_blocks, write_block
from vedette.index.pagerank import (
    GraphBlock,
    host_importance,
    merge_percentiles,
    page_importance,
    percentiles,
    sample_quantiles,
)
from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools
from vedette.runtime.processes.background import BackgroundJob, run_in_background
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
        self._received_s = 0.0

    def request_run(self) -> None:
        """Request a run of the PageRank job, since pages were hidden or shown again: suggestions must follow."""
        self._is_requested = True

    def step(self, table: PageTable, now_s: float) -> None:
        """Start the PageRank job if it is due."""
        if not self.is_ready(now_s):
            return
        pages, received_s = len(table.indexed), find_newest_block_s(table.folder.parent.parent)
        self._is_requested |= received_s > self._received_s
        changed = abs(pages - self._pages) > GROWTH * self._pages or now_s - self.started_s > MAX_AGE_S
        if pages and (changed or self._is_requested):
            self._pages, self._is_requested, self._received_s = pages, False, received_s
            self.start(now_s, str(table.folder))


def compute_importance(generation: Path) -> int:
    """Compute the PageRank importance of all pages of a generation; return how many there are."""
    table = PageTable(generation)
    ids = table.indexed
    if not len(ids):
        return 0
    sources, prints = _load_links(table, ids, generation)
    own, hosts = table.rows["print"][ids], table.rows["host"][ids].astype(np.int64)
    targets, known = _find_places(own, prints)
    edges = sources[known], targets[known]
    if (generation.parent.parent / SHARD_FILE).exists():
        of_pages, of_hosts = _rank_block(generation.parent.parent, own, hosts, edges, (sources[~known], prints[~known]))
    else:
        worth = page_importance(*edges, len(ids), hosts=hosts)
        of_pages, of_hosts = percentiles(worth), percentiles(host_importance(worth, hosts))
    pages, homes = np.zeros((2, int(ids[-1]) + 1), np.float32)
    pages[ids], homes[ids] = of_pages, of_hosts[hosts]
    write_rank(generation, pages, homes)
    return len(ids)


def _rank_block(
    folder: Path, own: Ints, hosts: Ints, edges: tuple[Ints, Ints], others: tuple[Ints, Ints]
) -> tuple[Floats, Floats]:
    """Compute percentiles of pages and hosts in a shard, with what other shards have sent, and tell them the news."""
    blocks = read_blocks(folder)
    total = float(len(own) + sum(len(block.prints) for block in blocks.values()))
    inflow = np.zeros(len(own))
    for block in blocks.values():
        places, known = _find_places(own, block.targets)
        inflow += np.bincount(places[known], block.flows[known], minlength=len(own))
    theirs = np.sort(np.concatenate([np.zeros(0, np.int64), *(block.prints for block in blocks.values())]))
    is_theirs = _find_places(theirs, others[1])[1] if len(theirs) else np.zeros(len(others[1]), np.bool_)
    pairs = np.unique(np.stack([others[0][is_theirs], others[1][is_theirs]]), axis=1)
    dangling = sum(block.dangling for block in blocks.values())
    solved = GraphBlock(*edges, len(own), pairs[0], inflow, total, dangling, hosts).solve()
    worth, of_hosts = solved.ranks * total, np.log1p(np.bincount(hosts, solved.ranks) * total)
    targets, owner = np.unique(pairs[1], return_inverse=True)
    write_block(
        folder,
        RankBlock(
            np.sort(own),
            solved.dangling,
            sample_quantiles(worth),
            sample_quantiles(of_hosts[np.unique(hosts)]),
            len(np.unique(hosts)),
            targets,
            np.bincount(owner.ravel(), solved.outflow, minlength=len(targets)).astype(np.float64),
        ),
    )
    return (
        merge_percentiles(worth, [(len(block.prints), block.of_pages) for block in blocks.values()]),
        merge_percentiles(of_hosts, [(block.hosts, block.of_hosts) for block in blocks.values()]),
    )


def _load_links(table: PageTable, ids: Ints, generation: Path) -> tuple[Ints, Ints]:
    """Load the links of indexed pages for PageRank, as positions in ``ids`` and fingerprints; follow aliases once."""
    links = [table.read_links(id_) for id_ in ids.tolist()]
    sources = np.repeat(np.arange(len(ids)), [len(each) for each in links])
    return sources, follow_aliases(generation, np.concatenate(links))


def _find_places(own: Ints, prints: Ints) -> tuple[Ints, Bools]:
    """Find the places of fingerprints among those of pages, and which of them are there."""
    order = np.argsort(own, kind="stable")
    places = order[np.minimum(np.searchsorted(own[order], prints), len(own) - 1)]
    return places, own[places] == prints


if __name__ == "__main__":
    with run_in_background():
        compute_importance(Path(sys.argv[1]))
        write_lexicon(Path(sys.argv[1]))
