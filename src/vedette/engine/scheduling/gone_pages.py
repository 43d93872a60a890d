"""Gone pages: recheck URLs whose page is gone or has moved at growing intervals, in case it comes back.

A recheck costs as much as any fetch, so it waits until the probability of a return is worth the price. Rechecks end
after a limit; a new link, or a date in a sitemap or feed, makes the URL worth a recheck again.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from vedette.engine.messages import FetchSuccess
from vedette.engine.ports import CrawlStore, PageRow
from vedette.engine.scheduling.schedule import (
    gone_duration_s,
    has_changed,
    is_good,
    is_source,
    kind_after,
    status_after,
)
from vedette.refresh.gone_pages import ReturnModel

RETURNS_KEY = "refresh returning"
ResultPair = tuple[FetchSuccess, PageRow | None]


class GonePages:
    """Schedule rechecks of gone pages, based on how often pages came back."""

    def __init__(self, book: CrawlStore) -> None:
        self._store = book
        self.model = ReturnModel.from_json(book.get_value(RETURNS_KEY))

    def schedule(
        self, answers: Sequence[FetchSuccess], earlier: Mapping[int, PageRow], price: float
    ) -> dict[int, float]:
        """Schedule the recheck of each gone page; infinity for never."""
        pairs = [(result, earlier.get(result.task.id)) for result in answers]
        pairs = [pair for pair in pairs if not is_source(pair[0].task.url, kind_after(*pair))]
        self._learn(pairs)
        return {
            result.task.id: result.ended_s + self.model.wait_s(_gone_duration_s(result, before), price)
            for result, before in pairs
            if not is_good(status_after(result, before))
        }

    def on_new_links(self, ids: Sequence[int], now_s: float) -> None:
        """Recheck gone pages soon that have new links."""
        looks = self._store.get_gone_pages(ids)
        times = [
            (look.page, max(look.page.fetched_s + self.model.wait_after_link_s(gone_duration_s(look.page)), now_s))
            for look in looks
        ]
        self._store.save_due_times([(page.id, at_s) for page, at_s in times if at_s < page.due_s])

    def _learn(self, pairs: Sequence[ResultPair]) -> None:
        """Learn whether pages that were gone have come back."""
        asks = [
            (gone_duration_s(before), result.ended_s - before.changed_s, is_good(status_after(result, before)))
            for result, before in pairs
            if before is not None and not is_good(before.status)
        ]
        if asks:
            before_s, asked_s, back = np.array(asks, float).T
            self.model = self.model.observe(before_s, asked_s, back)
            self._store.set_value(RETURNS_KEY, self.model.to_json())


def _gone_duration_s(result: FetchSuccess, before: PageRow | None) -> float:
    """Return how long a page has been gone; 0 if it was just found gone."""
    return 0.0 if before is None or has_changed(result, before) else result.ended_s - before.changed_s
