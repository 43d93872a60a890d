"""What good answers bring: rows with a time to come back, links, hosts that no site takes, and what a fetch was worth.

The answers of a report are gathered and kept together, since each batch has its price.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import CrawlCounts, FoundUrl
from vedette.engine.coordinator.trap_filter import TrapFilter
from vedette.engine.messages import FetchSuccess, Kind
from vedette.engine.ports import (
    ChangeSignal,
    CrawlStore,
    LinkOrigin,
    PageRow,
    SignalKind,
    UnlistedLink,
    UrlFrontier,
    UrlState,
)
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.schedule import Schedule
from vedette.frontier.traps import FetchYield

LISTS = frozenset({"feed", "sitemap"})
_SIGNAL_KINDS: Mapping[Kind, SignalKind] = {"feed": "feed", "sitemap": "sitemap"}
# A list of links is worth as much as a page of so many words.
LIST_WORDS = 300

LinkGroup = tuple[Sequence[str], FoundUrl]


class AnswerHandler:
    """Those of one report; ``sited`` gives a URL in the spelling of the site that takes it."""

    def __init__(
        self,
        hosts: HostTable,
        urls: UrlFrontier,
        book: CrawlStore,
        schedule: Schedule,
        refreshing: RefreshScheduler,
        copies: DuplicateDetector,
        thrift: TrapFilter,
        sited: Callable[[str], str | None],
    ) -> None:
        self._hosts = hosts
        self._urls = urls
        self._store = book
        self._schedule = schedule
        self._refresher = refreshing
        self._copies = copies
        self._trap_filter = thrift
        self._sited = sited
        self._results: list[tuple[int, FetchSuccess]] = []
        self._links: list[LinkGroup] = []

    def add(self, host: int, result: FetchSuccess, tally: CrawlCounts) -> None:
        """An answer of a host came."""
        good = result.status < 300 or result.status == 304
        tally.pages += good
        tally.new_pages += good and result.task.copy is None
        tally.unchanged += good and not result.changed
        tally.redirects += result.location is not None
        self._results.append((host, result))
        self._collect_links(result)

    def _collect_links(self, result: FetchSuccess) -> None:
        """Links lead one deeper; a redirect is where the page itself went."""
        errand = result.task
        if result.location is not None:
            self._copies.on_redirect(errand.url, result.location)
            target = self._sited(result.location)
            if target is not None:
                way = _build_origin(result, "redirect")
                self._links.append(((target,), FoundUrl("", errand.depth, errand.hops + 1, source=errand.url, via=way)))
        way = _build_origin(result, result.kind)
        if result.sources:
            self._links.append((result.sources, FoundUrl("", 0, front=0, source=errand.url, from_list=True, via=way)))
        listed = result.kind in LISTS
        again = errand.copy is not None
        deeper = FoundUrl("", errand.depth + 1, source=errand.url, from_list=listed, via=way, is_refetch=again)
        self._links.append((result.links, deeper))

    def save(self, worker: int) -> list[LinkGroup]:
        """They become rows, each with the time at which it is due again; the links in them, to be named."""
        came, self._results = self._results, []
        links, self._links = self._links, []
        if came:
            results = [result for _, result in came]
            ids = [result.task.id for result in results]
            self._urls.acknowledge(ids, UrlState.FETCHED, worker)
            earlier = self._store.get_pages(ids)
            # Where nothing is ever fetched again, nobody needs to know when.
            judged = (
                self._refresher.schedule(results, earlier, self._count_inlinks(ids)) if self._schedule.recrawl else {}
            )
            anew = self._find_relinked(results, earlier) if self._schedule.recrawl else []
            self._store.save_pages(list(self._schedule.build_rows(came, earlier, judged)))
            now_s = max(result.ended_s for result in results)
            self._refresher.on_new_links(anew, now_s)
            self._refresher.on_signals(self._collect_signals(results), now_s)
            self._add_unlisted_links(results, earlier)
            groups = self._copies.save(results)
            for result in results:
                self._trap_filter.on_result(result.task.id, self._measure_yield(result, groups))
        return links

    def _count_inlinks(self, ids: Sequence[int]) -> dict[int, int]:
        """How often each was named."""
        return dict(zip(ids, self._urls.count_inlinks(np.array(ids, np.uint32)).tolist(), strict=True))

    def _find_relinked(self, results: Sequence[FetchSuccess], earlier: Mapping[int, PageRow]) -> list[int]:
        """What is gone and stands in a list of links, or on a page, on which it did not stand before."""
        linking = [result for result in results if result.changed and result.links]
        urls = list(dict.fromkeys(url for result in linking for url in result.links))
        gone = (
            {look.url: look.page.id for look in self._store.get_gone_pages(self._urls.find_ids(urls).tolist())}
            if urls
            else {}
        )
        return [id_ for result in linking for id_ in self._find_relinked_on(result, gone, earlier)] if gone else []

    def _find_relinked_on(
        self, result: FetchSuccess, gone: Mapping[str, int], earlier: Mapping[int, PageRow]
    ) -> list[int]:
        named = [url for url in result.links if url in gone]
        before = frozenset(self._store.get_links(result.task.id) if named and result.task.id in earlier else ())
        return [gone[url] for url in named if url not in before]

    def _collect_signals(self, results: Sequence[FetchSuccess]) -> list[ChangeSignal]:
        """What sitemaps and feeds say of when known pages changed."""
        said: list[ChangeSignal] = []
        for result in results:
            kind: SignalKind | None = _SIGNAL_KINDS.get(result.kind)
            if result.dates and kind is not None:
                pages = zip(self._urls.find_ids(result.links).tolist(), result.dates, strict=True)
                said += [ChangeSignal(id_, at_s, kind) for id_, at_s in pages if id_ and at_s is not None]
        return said

    def _add_unlisted_links(self, results: Sequence[FetchSuccess], earlier: Mapping[int, PageRow]) -> None:
        """Each page counts once, at its first fetch; workers do not know the sites that are paused."""
        links = [
            UnlistedLink(host, result.task.url, result.ended_s)
            for result in results
            if result.task.id not in earlier
            for host in result.unlisted_hosts
            if not self._hosts.paused.find_by_host(host)
        ]
        if links:
            self._store.add_unlisted_links(links)

    def _measure_yield(self, result: FetchSuccess, groups: Mapping[int, int]) -> FetchYield:
        """What a fetch was worth, for pages like it."""
        content, id_ = result.content, result.task.id
        if content is None:
            return FetchYield(LIST_WORDS if result.kind in LISTS else 0, result.status)
        named = self._sited(content.canonical) if content.canonical else None
        stands = groups[id_] == id_ or self._store.get_canonical(groups[id_]) == id_
        is_copy = not stands or named not in {None, result.task.url}
        return FetchYield(content.words, result.status, is_copy, content.is_missing)


def _build_origin(result: FetchSuccess, how: str) -> LinkOrigin:
    """What links of this answer are found by."""
    copy = result.task.copy
    return LinkOrigin(result.task.id, how, copy.fetched_s if copy else None)
