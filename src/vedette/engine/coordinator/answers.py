"""What good answers bring: rows with a time to come back, links, hosts that no site takes, and what a fetch was worth.

The answers of a report are gathered and kept together, since each batch has its price.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vedette.engine.coordinator.duplicates import Copies
from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.state import Named, Tally
from vedette.engine.coordinator.trap_filter import Thrift
from vedette.engine.messages import Fetched, Kind
from vedette.engine.ports import Book, Fate, PageRow, Signal, SignalKind, StrangerLink, Urls, Way
from vedette.engine.scheduling.refresh import Refreshing
from vedette.engine.scheduling.schedule import Schedule
from vedette.frontier.traps import Brought

__all__ = ["Answers"]

LISTS = frozenset({"feed", "sitemap"})
_SAYING: Mapping[Kind, SignalKind] = {"feed": "feed", "sitemap": "sitemap"}
# A list of links is worth as much as a page of so many words.
LIST_WORDS = 300

NamedLinks = tuple[Sequence[str], Named]


class Answers:
    """Those of one report; ``sited`` gives a URL in the spelling of the site that takes it."""

    def __init__(
        self,
        hosts: Hosts,
        urls: Urls,
        book: Book,
        schedule: Schedule,
        refreshing: Refreshing,
        copies: Copies,
        thrift: Thrift,
        sited: Callable[[str], str | None],
    ) -> None:
        self._hosts = hosts
        self._urls = urls
        self._book = book
        self._schedule = schedule
        self._refreshing = refreshing
        self._copies = copies
        self._thrift = thrift
        self._sited = sited
        self._came: list[tuple[int, Fetched]] = []
        self._links: list[NamedLinks] = []

    def take(self, host: int, result: Fetched, tally: Tally) -> None:
        """An answer of a host came."""
        good = result.status < 300 or result.status == 304
        tally.pages += good
        tally.new_pages += good and result.errand.copy is None
        tally.unchanged += good and not result.changed
        tally.redirects += result.location is not None
        self._came.append((host, result))
        self._follow(result)

    def _follow(self, result: Fetched) -> None:
        """Links lead one deeper; a redirect is where the page itself went."""
        errand = result.errand
        if result.location is not None:
            self._copies.moved(errand.url, result.location)
            target = self._sited(result.location)
            if target is not None:
                way = _way(result, "redirect")
                self._links.append(((target,), Named("", errand.depth, errand.hops + 1, source=errand.url, found=way)))
        way = _way(result, result.kind)
        if result.sources:
            self._links.append((result.sources, Named("", 0, front=0, source=errand.url, vouched=True, found=way)))
        listed = result.kind in LISTS
        again = errand.copy is not None
        deeper = Named("", errand.depth + 1, source=errand.url, vouched=listed, found=way, again=again)
        self._links.append((result.links, deeper))

    def keep(self, worker: int) -> list[NamedLinks]:
        """They become rows, each with the time at which it is due again; the links in them, to be named."""
        came, self._came = self._came, []
        links, self._links = self._links, []
        if came:
            results = [result for _, result in came]
            ids = [result.errand.id for result in results]
            self._urls.acknowledge(ids, Fate.FETCHED, worker)
            earlier = self._book.copies(ids)
            # Where nothing is ever fetched again, nobody needs to know when.
            judged = self._refreshing.judged(results, earlier, self._links_to(ids)) if self._schedule.recrawl else {}
            anew = self._named_anew(results, earlier) if self._schedule.recrawl else []
            self._book.keep_pages(list(self._schedule.rows(came, earlier, judged)))
            now_s = max(result.ended_s for result in results)
            self._refreshing.named_anew(anew, now_s)
            self._refreshing.signalled(self._signals(results), now_s)
            self._meet_strangers(results, earlier)
            groups = self._copies.keep(results)
            for result in results:
                self._thrift.came(result.errand.id, self._brought(result, groups))
        return links

    def _links_to(self, ids: Sequence[int]) -> dict[int, int]:
        """How often each was named."""
        return dict(zip(ids, self._urls.times_named(np.array(ids, np.uint32)).tolist(), strict=True))

    def _named_anew(self, results: Sequence[Fetched], earlier: Mapping[int, PageRow]) -> list[int]:
        """What is gone and stands in a list of links, or on a page, on which it did not stand before."""
        linking = [result for result in results if result.changed and result.links]
        urls = list(dict.fromkeys(url for result in linking for url in result.links))
        gone = {look.url: look.page.id for look in self._book.gone(self._urls.find(urls).tolist())} if urls else {}
        return [id_ for result in linking for id_ in self._anew_on(result, gone, earlier)] if gone else []

    def _anew_on(self, result: Fetched, gone: Mapping[str, int], earlier: Mapping[int, PageRow]) -> list[int]:
        named = [url for url in result.links if url in gone]
        before = frozenset(self._book.links_of(result.errand.id) if named and result.errand.id in earlier else ())
        return [gone[url] for url in named if url not in before]

    def _signals(self, results: Sequence[Fetched]) -> list[Signal]:
        """What sitemaps and feeds say of when known pages changed."""
        said: list[Signal] = []
        for result in results:
            kind: SignalKind | None = _SAYING.get(result.kind)
            if result.dates and kind is not None:
                pages = zip(self._urls.find(result.links).tolist(), result.dates, strict=True)
                said += [Signal(id_, at_s, kind) for id_, at_s in pages if id_ and at_s is not None]
        return said

    def _meet_strangers(self, results: Sequence[Fetched], earlier: Mapping[int, PageRow]) -> None:
        """Each page counts once, at its first fetch; workers do not know the sites that are paused."""
        links = [
            StrangerLink(host, result.errand.url, result.ended_s)
            for result in results
            if result.errand.id not in earlier
            for host in result.strangers
            if not self._hosts.paused.of_host(host)
        ]
        if links:
            self._book.link_strangers(links)

    def _brought(self, result: Fetched, groups: Mapping[int, int]) -> Brought:
        """What a fetch was worth, for pages like it."""
        content, id_ = result.content, result.errand.id
        if content is None:
            return Brought(LIST_WORDS if result.kind in LISTS else 0, result.status)
        named = self._sited(content.canonical) if content.canonical else None
        stands = groups[id_] == id_ or self._book.canonical_of(groups[id_]) == id_
        is_copy = not stands or named not in {None, result.errand.url}
        return Brought(content.words, result.status, is_copy, content.is_missing)


def _way(result: Fetched, how: str) -> Way:
    """What links of this answer are found by."""
    copy = result.errand.copy
    return Way(result.errand.id, how, copy.fetched_s if copy else None)
