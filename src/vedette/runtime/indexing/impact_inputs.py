"""Impact inputs: what index and state know about URLs before they are fetched.

Fetched pages are described as if they had not been fetched, as far as possible: by anchor texts and by the links of
other pages. Later additions are included.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.adapters.crawl_store.url_list import UrlFacts
from vedette.adapters.index_store.indexer_store import follow_aliases, read_anchors
from vedette.adapters.index_store.page_table import PageTable
from vedette.frontier.impact.url_features import DescribedUrls, hash_folders, tokenize_texts
from vedette.index.pagerank import page_importance
from vedette.model import fingerprint
from vedette.policy import Floats, Ints

MAX_NAMES = 8  # of one URL
MIN_RANK = 1e-9


class LinkStats(NamedTuple):
    """Link statistics for the impact pass: in-links from indexed pages and importance, by URL fingerprint."""

    prints: Ints
    inlinks: Ints
    importance: Floats

    def get(self, prints: Ints) -> tuple[Ints, Floats]:
        """Look up in-links and importance of URLs by fingerprint; the minimum if nothing links to a URL."""
        if not len(self.prints):
            return np.zeros(len(prints), np.int64), np.zeros(len(prints))
        at = np.minimum(np.searchsorted(self.prints, prints), len(self.prints) - 1)
        known = self.prints[at] == prints
        least = float(self.importance.min())
        return np.where(known, self.inlinks[at], 0), np.where(known, self.importance[at], least)


def fingerprint_urls(urls: Sequence[UrlFacts]) -> Ints:
    """Compute the fingerprints of URLs for the impact pass."""
    return np.array([fingerprint(one.url) for one in urls], np.int64)


def compute_link_stats(table: PageTable, prints: Ints) -> LinkStats:
    """Compute link statistics and PageRank over indexed pages and unseen URLs, for the impact pass.

    Importance is its logarithm, relative to the mean: a page linked from everywhere has a thousand times the usual
    value.
    """
    ids = table.indexed
    own = table.rows["print"][ids]
    nodes = np.unique(np.concatenate((own, prints)))
    links = [np.unique(table.read_links(id_)) for id_ in ids.tolist()]
    source = np.repeat(np.searchsorted(nodes, own), [len(each) for each in links])
    target_prints = follow_aliases(table.folder, np.concatenate(links) if links else np.zeros(0, np.int64))
    if not len(nodes):
        return LinkStats(nodes, np.zeros(0, np.int64), np.zeros(0))
    target = np.minimum(np.searchsorted(nodes, target_prints), len(nodes) - 1)
    known = (nodes[target] == target_prints) & (source != target)
    source, target = source[known], target[known]
    ranks = page_importance(source, target, len(nodes))
    importance = np.log(np.maximum(ranks * len(nodes), MIN_RANK))
    return LinkStats(nodes, np.bincount(target, minlength=len(nodes)), importance)


def describe_urls(urls: Sequence[UrlFacts], prints: Ints, known: LinkStats, generation: Path) -> DescribedUrls:
    """Build the feature rows of URLs for the impact pass: everything known before they are fetched."""
    texts = [one.url for one in urls]
    folder, branch = hash_folders(texts)
    inlinks, importance = known.get(prints)
    return DescribedUrls(
        depth=np.array([one.depth for one in urls], np.int64),
        found=np.array([one.id for one in urls], np.int64),
        inlinks=inlinks,
        importance=importance,
        folder=folder,
        branch=branch,
        texts=tokenize_texts(texts, read_anchors(generation, prints.tolist(), MAX_NAMES)),
    )
