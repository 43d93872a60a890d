"""When a page that was just fetched is due again: sources at a fixed pace, everything else by its own changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from urllib.parse import urlsplit

import numpy as np

from vedette.decide import rng_for
from vedette.refresh.known import Known
from vedette.refresh.policies.fixed import Fixed
from vedette.refresh.policies.nutch import Nutch
from vedette.ring.orders import Fetched
from vedette.ring.ports import PageRow

__all__ = ["Schedule", "is_source"]


def is_source(result: Fetched) -> bool:
    """Feeds, sitemaps and home pages are looked at for what they link to."""
    parts = urlsplit(result.errand.url)
    return result.kind in {"feed", "sitemap"} or (parts.path in {"", "/"} and not parts.query)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The first recrawl rule; ``recrawl`` off means that nothing is ever due again."""

    recrawl: bool = False
    sources: Fixed = field(default_factory=Fixed)
    pages: Nutch = field(default_factory=Nutch)
    seed: int = 1

    def rows(
        self, answers: Sequence[tuple[int, Fetched]], earlier: Mapping[int, PageRow]
    ) -> Iterator[tuple[PageRow, tuple[str, ...]]]:
        """The rows to keep for these answers (host id and result), with their links."""
        if not answers:
            return
        results = [result for _, result in answers]
        intervals, due = self._times(results, earlier)
        for (host, result), interval_s, due_s in zip(answers, intervals, due, strict=True):
            yield _row(host, result, earlier.get(result.errand.id), interval_s, due_s), result.links

    def _times(self, results: Sequence[Fetched], earlier: Mapping[int, PageRow]) -> tuple[list[float], list[float]]:
        before = [earlier.get(result.errand.id) for result in results]
        batch = Known(
            place=np.arange(len(results)),
            last_fetch_s=np.array([result.ended_s for result in results]),
            changed=np.array([result.changed for result in results]),
            first_fetch=np.array([row is None for row in before]),
            modified_s=np.full(len(results), np.nan),
        )
        now_s = float(batch.last_fetch_s.max())
        rng = rng_for(self.seed, f"refresh/{now_s}")
        kept = self.pages.observe(np.array([row.interval_s if row else 0.0 for row in before]), batch, now_s)
        due = self.pages.due(kept, batch, now_s, 0.0, rng)
        looks = self.sources.due((), batch, now_s, 0.0, rng)
        due = np.where([is_source(result) for result in results], looks, due)
        return kept.tolist(), due.tolist() if self.recrawl else [inf] * len(results)


def _row(host: int, result: Fetched, earlier: PageRow | None, interval_s: float, due_s: float) -> PageRow:
    """What an answer leaves behind; of a page that has not changed, what was known stays."""
    same = earlier if earlier is not None and result.status == 304 else None
    return PageRow(
        id=result.errand.id,
        host=host,
        status=same.status if same else result.status,
        kind=same.kind if same else result.kind,
        fetched_s=result.ended_s,
        changed_s=result.ended_s if result.changed or earlier is None else earlier.changed_s,
        title=same.title if same else result.title,
        content_type=result.header("content-type") or (same.content_type if same else ""),
        etag=result.header("etag") or (same.etag if same else ""),
        last_modified=result.header("last-modified") or (same.last_modified if same else ""),
        digest=result.digest,
        payload_digest=result.payload_digest,
        location=result.location or "",
        body_bytes=same.body_bytes if same else result.body_bytes,
        place=earlier.place if earlier and not result.changed else result.place,
        interval_s=interval_s,
        due_s=due_s,
    )
