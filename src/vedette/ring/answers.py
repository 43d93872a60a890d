"""What good answers bring: rows with a time to come back, links, hosts that no site takes, and what a fetch was worth.

The answers of a report are gathered and kept together, since each batch has its price.
"""

from collections.abc import Callable, Mapping, Sequence

from vedette.order.traps import Brought
from vedette.ring.copies import Copies
from vedette.ring.hosts import Hosts
from vedette.ring.kept import Named, Tally
from vedette.ring.orders import Fetched
from vedette.ring.ports import Book, Fate, PageRow, StrangerLink, Urls
from vedette.ring.refreshing import Refreshing
from vedette.ring.schedule import Schedule
from vedette.ring.thrift import Thrift

__all__ = ["Answers"]

LISTS = frozenset({"feed", "sitemap"})
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
                self._links.append(((target,), Named("", errand.depth, errand.hops + 1, source=errand.url)))
        if result.sources:
            self._links.append((result.sources, Named("", 0, front=0, source=errand.url, vouched=True)))
        listed = result.kind in LISTS
        self._links.append((result.links, Named("", errand.depth + 1, source=errand.url, vouched=listed)))

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
            judged = self._refreshing.judged(results, earlier) if self._schedule.recrawl else {}
            self._book.keep_pages(list(self._schedule.rows(came, earlier, judged)))
            self._meet_strangers(results, earlier)
            groups = self._copies.keep(results)
            for result in results:
                self._thrift.came(result.errand.id, self._brought(result, groups))
        return links

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
