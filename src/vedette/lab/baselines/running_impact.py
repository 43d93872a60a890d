"""Running impact estimates of unseen URLs, updated as links to them are seen.

A link brings the URL, its words, and its source. What earlier links said is needed, too, but not their words: only
which n-grams of needy queries they had. Most have none, so what is kept is bounded by the share of needy queries; and
by ``MAX_HITS`` a URL, and by ``MAX_URLS`` URLs, since links are written by strangers.

``learn`` may bring other needy queries; what was kept of links is forgotten then, and comes back as links are seen.
"""

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel, ImpactSettings, create_model, train_model
from vedette.frontier.impact.matching import Hits, QuerySet
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import Sketches
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages
from vedette.policy import Floats, Ints

MAX_HITS = 24
MAX_URLS = 1_000_000


class ImpactTracker:
    """Tracker of running impact estimates: the trained model, and the hits of links on needy queries.

    ``estimate_gain`` is in the unit of the gains that ``learn`` received: live, expected gain in search quality by one
    fetch.
    """

    def __init__(self, asking: ImpactSettings) -> None:
        self.model: ImpactModel = create_model(asking)
        self._hits: dict[int, tuple[int, ...]] = {}

    def learn(self, brought: TrainingPages, asking: ImpactSettings | None = None) -> None:
        """Train the running impact model on all measured first fetches, and set other needy queries if they changed."""
        self.model = train_model(self.model if asking is None else create_model(asking), brought)
        self._hits.clear()

    def estimate_gain(self, urls: Ints, batch: DescribedUrls) -> Floats:
        """Estimate the current gain of a first fetch of each URL, from its number and the strings of new links."""
        matcher = self.model.matcher
        if matcher is None:
            return self.model.estimate_gain(batch)
        fresh = matcher.find_hits(batch.texts)
        earlier = self._load_hits(urls)
        self._store_hits(urls, fresh)
        hits = Hits(*(np.concatenate(both) for both in zip(earlier, fresh, strict=True)))
        return self.model.estimate_gain(batch, hits)

    def count_candidates(self, batch: DescribedUrls) -> int:
        """Count the pairs of a URL and a needy query that these strings make, the main cost of a batch."""
        return 0 if self.model.matcher is None else len(self.model.matcher.match_pairs(batch.texts).row)

    @property
    def size_bytes(self) -> int:
        """Estimate the memory of the running impact tracker: its arrays, and each kept URL with its table entry."""
        known = self.model
        parts = (known.matcher, known.sketches, known.page_forest, *(known.means or ()), *(known.scorer or ()))
        arrays = sum(int(part.size_bytes) for part in parts if part is not None)
        return arrays + sum(160 + 8 * len(hits) for hits in self._hits.values())

    def _load_hits(self, urls: Ints) -> Hits:
        """Load the stored link hits on needy queries of the URLs of a batch."""
        if not self._hits:
            nothing = np.zeros(0, np.int64)
            return Hits(nothing, nothing, nothing.astype(np.bool_))
        kept = [(row, hit) for row, url in enumerate(urls.tolist()) for hit in self._hits.get(url, ())]
        row, hit = np.array(kept, np.int64).reshape(-1, 2).T
        return Hits(hit >> 1, row, (hit & 1).astype(np.bool_))

    def _store_hits(self, urls: Ints, fresh: Hits) -> None:
        """Store the link hits on needy queries of URLs; words of the URL itself come with every link."""
        said = np.flatnonzero(fresh.is_anchor)
        marks = (fresh.ngram[said] << 1 | 1).tolist()
        for url, mark in zip(urls[fresh.row[said]].tolist(), marks, strict=True):
            before = self._hits.get(url, ())
            if len(before) < MAX_HITS and (before or len(self._hits) < MAX_URLS):
                self._hits[url] = (*before, mark)


def select_needy_queries(
    wanted: QuerySet, sketches: Sketches, rates: Improvability, share: float
) -> tuple[Ints, QuerySet]:
    """Select the neediest queries by their present results; return their rows and the query set."""
    chosen = needy(wanted.frequency, rates.predict(sketches.compute_means()), share)
    return chosen, wanted.select(chosen)
