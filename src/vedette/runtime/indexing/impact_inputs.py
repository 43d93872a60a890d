"""What is known of URLs before they are fetched, out of index and state: their words, and who links to them.

Of pages that were fetched the same is told as it would be if they had not been, as far as that can be had: what others
call them, and the links of others. What has been said of them since is in it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.adapters.crawl_store.unseen_view import UrlFacts
from vedette.adapters.index_store.indexer_store import read_aliases, read_names
from vedette.adapters.index_store.page_table import PageTable
from vedette.frontier.impact.url_features import Described, folders_of, strings_of
from vedette.index.pagerank import page_importance
from vedette.model import fingerprint
from vedette.policy import Floats, Ints

__all__ = ["Linked", "described_urls", "linked", "prints_of_urls"]

MOST_NAMES = 8  # of one URL
NOTHING_LINKS = 1e-9


class Linked(NamedTuple):
    """How many indexed pages link to each URL, by ascending print, and how important that makes it."""

    prints: Ints
    inlinks: Ints
    importance: Floats

    def of(self, prints: Ints) -> tuple[Ints, Floats]:
        """The same for some; nothing links to a URL that is not among them."""
        if not len(self.prints):
            return np.zeros(len(prints), np.int64), np.zeros(len(prints))
        at = np.minimum(np.searchsorted(self.prints, prints), len(self.prints) - 1)
        known = self.prints[at] == prints
        least = float(self.importance.min())
        return np.where(known, self.inlinks[at], 0), np.where(known, self.importance[at], least)


def prints_of_urls(urls: Sequence[UrlFacts]) -> Ints:
    """Their fingerprints."""
    return np.array([fingerprint(one.url) for one in urls], np.int64)


def linked(table: PageTable, prints: Ints) -> Linked:
    """Links from all pages of the index to each other and to the URLs with these prints, and PageRank over them.

    Importance is its logarithm, to the mean: what is linked from everywhere has a thousand times what others have.
    """
    ids = table.indexed
    own = table.rows["print"][ids]
    nodes = np.unique(np.concatenate((own, prints)))
    links = [np.unique(table.links(id_)) for id_ in ids.tolist()]
    source = np.repeat(np.searchsorted(nodes, own), [len(each) for each in links])
    target_prints = _followed(np.concatenate(links) if links else np.zeros(0, np.int64), table.folder)
    if not len(nodes):
        return Linked(nodes, np.zeros(0, np.int64), np.zeros(0))
    target = np.minimum(np.searchsorted(nodes, target_prints), len(nodes) - 1)
    known = (nodes[target] == target_prints) & (source != target)
    source, target = source[known], target[known]
    ranks = page_importance(source, target, len(nodes))
    importance = np.log(np.maximum(ranks * len(nodes), NOTHING_LINKS))
    return Linked(nodes, np.bincount(target, minlength=len(nodes)), importance)


def _followed(prints: Ints, generation: Path) -> Ints:
    """Where URLs lead that lead on, one step."""
    aliases = np.array(read_aliases(generation), np.int64).reshape(-1, 2)
    if not len(aliases) or not len(prints):
        return prints
    aliases = aliases[np.argsort(aliases[:, 0], kind="stable")]
    places = np.minimum(np.searchsorted(aliases[:, 0], prints), len(aliases) - 1)
    return np.where(aliases[places, 0] == prints, aliases[places, 1], prints)


def described_urls(urls: Sequence[UrlFacts], prints: Ints, known: Linked, generation: Path) -> Described:
    """All that is known of these URLs."""
    texts = [one.url for one in urls]
    folder, branch = folders_of(texts)
    inlinks, importance = known.of(prints)
    return Described(
        depth=np.array([one.depth for one in urls], np.int64),
        found=np.array([one.id for one in urls], np.int64),
        inlinks=inlinks,
        importance=importance,
        folder=folder,
        branch=branch,
        strings=strings_of(texts, read_names(generation, prints.tolist(), MOST_NAMES)),
    )
