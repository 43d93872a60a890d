"""The worth of unseen URLs, brought up to date as links to them are seen: what a crawler keeps while it runs.

A link brings the URL, its words, and who says so. What earlier links said is needed, too, but not their words: only
which n-grams of needy queries they had. Most have none, so what is kept is bounded by the share of needy queries; and
by ``MOST_HITS`` a URL, and by ``MOST_KEPT`` URLs, since links are written by strangers.

Whoever learns anew (``learn``) may have other needy queries; what was kept of links is forgotten then, and comes back
as links are seen.
"""

import numpy as np

from vedette.frontier.impact.estimator import Asking, Expectation, learned, start
from vedette.frontier.impact.matching import Hits, Wanted
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import Sketches
from vedette.frontier.impact.url_features import Brought, Described
from vedette.policy import Floats, Ints

__all__ = ["Standing", "needy_part"]

MOST_HITS = 24
MOST_KEPT = 1_000_000


class Standing:
    """Keeps what was learned, and what links said to needy queries.

    ``worth`` is in the unit of the gains that ``learn`` was told: live, expected gain in search quality by one fetch.
    """

    def __init__(self, asking: Asking) -> None:
        self.known: Expectation = start(asking)
        self._hits: dict[int, tuple[int, ...]] = {}

    def learn(self, brought: Brought, asking: Asking | None = None) -> None:
        """First fetches that were measured, all that count; and other needy queries, where they changed."""
        self.known = learned(self.known if asking is None else start(asking), brought)
        self._hits.clear()

    def worth(self, urls: Ints, batch: Described) -> Floats:
        """What a first fetch of each is worth now; a row is a URL by its number, with the strings of this moment."""
        matcher = self.known.matcher
        if matcher is None:
            return self.known.worth(batch)
        fresh = matcher.hits(batch.strings)
        earlier = self._earlier(urls)
        self._keep(urls, fresh)
        hits = Hits(*(np.concatenate(both) for both in zip(earlier, fresh, strict=True)))
        return self.known.worth(batch, hits)

    def candidates(self, batch: Described) -> int:
        """How many pairs of a URL and a needy query these strings make, which is what a batch costs most for."""
        return 0 if self.known.matcher is None else len(self.known.matcher.pairs(batch.strings).row)

    @property
    def kept_bytes(self) -> int:
        """About how much memory it takes: arrays as they are, a kept URL with its entry in a table and its numbers."""
        known = self.known
        parts = (known.matcher, known.sketches, known.pages, *(known.means or ()), *(known.scorer or ()))
        arrays = sum(int(part.kept_bytes) for part in parts if part is not None)
        return arrays + sum(160 + 8 * len(hits) for hits in self._hits.values())

    def _earlier(self, urls: Ints) -> Hits:
        """What links said before, of the URLs of a batch."""
        if not self._hits:
            nothing = np.zeros(0, np.int64)
            return Hits(nothing, nothing, nothing.astype(np.bool_))
        kept = [(row, hit) for row, url in enumerate(urls.tolist()) for hit in self._hits.get(url, ())]
        row, hit = np.array(kept, np.int64).reshape(-1, 2).T
        return Hits(hit >> 1, row, (hit & 1).astype(np.bool_))

    def _keep(self, urls: Ints, fresh: Hits) -> None:
        """Only what links said: the words of the URL itself come with every link."""
        said = np.flatnonzero(fresh.anchor)
        marks = (fresh.gram[said] << 1 | 1).tolist()
        for url, mark in zip(urls[fresh.row[said]].tolist(), marks, strict=True):
            before = self._hits.get(url, ())
            if len(before) < MOST_HITS and (before or len(self._hits) < MOST_KEPT):
                self._hits[url] = (*before, mark)


def needy_part(wanted: Wanted, sketches: Sketches, rates: Improvability, share: float) -> tuple[Ints, Wanted]:
    """The neediest of all queries, by what is known of their present results; and they alone."""
    chosen = needy(wanted.frequency, rates.of(sketches.mean()), share)
    return chosen, wanted.some(chosen)
