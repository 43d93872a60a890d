"""Looks at sources, as the keeper sees them: what each result showed that nobody knew, and when to look again.

A look is an ordinary fetch. What it brought is known when its links were named, so due times are set again then. Where
the operator set no budget there is nothing to be thrifty with, and lists come round at their fixed pace.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import FoundUrl
from vedette.engine.messages import FetchResult, FetchSuccess
from vedette.engine.ports import ChangeSignal, CrawlStore, PageRow, UrlFrontier
from vedette.engine.scheduling.polling import MAX_INTERVAL_S, MAX_LINKS, PollResult
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.schedule import is_good, is_source

NOT_MODIFIED = 304
SAME_TIME_S = 60.0
MAX_BIRTH_AGE_S = 30 * 86_400.0


def explain_poll_time(page: PageRow, look_s: float, *, is_list: bool, fixed_s: float) -> str:
    """Why a source is looked at when it is due; empty where that is for another rule, which has its own words.

    ``look_s`` is when the discovery policy wants a look, ``fixed_s`` the pace of lists where there is no budget.
    """
    if page.due_s == inf:
        return "its time has come: it waits for its host"
    wait_s = page.due_s - page.fetched_s
    if is_list and wait_s >= MAX_INTERVAL_S - SAME_TIME_S:
        return "accrual: it brings less than a look costs, and is looked at once a day all the same"
    by_price = abs(wait_s - fixed_s) > 1.0 if is_list else look_s <= page.due_s + SAME_TIME_S
    return "accrual: by then, what is lost by waiting is worth the price of a look" if by_price else ""


class PollTracker:
    """Counts what is found by the page that named it, until the report that it came with is through."""

    def __init__(self, hosts: HostTable, urls: UrlFrontier, book: CrawlStore, refreshing: RefreshScheduler) -> None:
        self._hosts, self._urls, self._store, self._refresher = hosts, urls, book, refreshing
        self._new: Counter[str] = Counter()

    def count_new(self, fresh: Sequence[FoundUrl]) -> None:
        """These URLs were unknown until now."""
        self._new.update(one.source for one in fresh if one.source)

    def get_new_count(self, url: str) -> int:
        """How many URLs were unknown until the page at this one named them, in the report that is being read."""
        return self._new[url]

    def on_report(self, results: Sequence[FetchResult], now_s: float) -> None:
        """All links of these results were named: learn from those that were looks, and say when to look again."""
        new, self._new = self._new, Counter()
        self._store.save_births(list(self._collect_births([each for each in results if new[each.task.url]], now_s)))
        pages = [result for result in results if result.task.robots_of is None]
        rows = self._store.get_pages([result.task.id for result in pages])
        costs = self._refresher.estimate_costs(pages).tolist()
        looks = [
            self._build_poll(result, new, rows.get(result.task.id))._replace(cost=cost)
            for result, cost in zip(pages, costs, strict=True)
        ]
        lists = {look.id for look in looks if look.is_list}
        looking, price = self._refresher.poller, self._refresher.price
        sources = looking.on_polls(looks, now_s)
        times = looking.get_due_times(
            [id_ for id_ in sources if self._refresher.has_budget or id_ not in lists], price, now_s
        )
        self._store.save_due_times(
            [
                (id_, min(at_s, now_s + MAX_INTERVAL_S) if id_ in lists else min(at_s, rows[id_].due_s))
                for id_, at_s in times.items()
                if id_ in rows and is_good(rows[id_].status)
            ]
        )

    def _collect_births(self, results: Sequence[FetchResult], now_s: float) -> Iterator[ChangeSignal]:
        """What lists that named something new say of when it was made; old dates are of what is only new here."""
        for result in results:
            if isinstance(result, FetchSuccess) and result.dates and result.kind in {"feed", "sitemap"}:
                ids = self._urls.find_ids(result.links).tolist()
                for id_, at_s in zip(ids, result.dates, strict=True):
                    if id_ and at_s is not None and now_s - MAX_BIRTH_AGE_S <= at_s <= now_s:
                        yield ChangeSignal(id_, at_s, "feed" if result.kind == "feed" else "sitemap")

    def _build_poll(self, result: FetchResult, new: Counter[str], row: PageRow | None) -> PollResult:
        errand = result.task
        host = self._hosts.get(errand.host).id
        again = errand.copy is not None
        if not isinstance(result, FetchSuccess) or not (is_good(result.status) or result.status == NOT_MODIFIED):
            return PollResult(errand.id, host, ok=False, is_list=False, is_refetch=again)
        # What has not changed comes without a body, and so without a kind of its own.
        is_list = is_source(errand.url, row.kind if row is not None else result.kind)
        count = new[errand.url]
        matters = is_list or count or self._refresher.poller.is_source(errand.id)
        links = self._urls.find_ids(result.links[:MAX_LINKS]).tolist() if matters and result.links else []
        known = [id_ for id_ in links if id_]
        return PollResult(errand.id, host, ok=True, is_list=is_list, is_refetch=again, links=known, new=count)
