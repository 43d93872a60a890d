"""Novelty detection in the coordinator: which URLs just found are new on the web, not only new to this crawl.

A page that was fetched before and now links to an unknown URL is the best available evidence. It counts

- when the first crawl of the host is over, since until then everything is unknown;
- when the earlier fetch used the same scope rules, since wider rules show old links for the first time;
- also at one or two removes: links on a page that is itself new (the articles of a new issue, the entries of a new
  sitemap).

A known page that now redirects elsewhere has moved, which is not new. Whether a page repeats the text of another is
decided later, after it was parsed.
"""

from collections.abc import Mapping, Sequence

import xxhash

from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import CrawlRules, FoundUrl, HostState
from vedette.engine.ports import CrawlStore, Discovery, FirstCrawl, LinkOrigin, UrlFrontier
from vedette.model import origin_of

# A crawl that never finishes must not suppress new pages forever.
MAX_FIRST_CRAWL_S = 7 * 86_400.0
MAX_STEPS = 3
REDIRECT = "redirect"


class NoveltyDetector:
    """Detect URLs that are new on the web, by the first crawl of each host and what was found after it."""

    def __init__(self, hosts: HostTable, urls: UrlFrontier, book: CrawlStore) -> None:
        self._hosts = hosts
        self._urls = urls
        self._store = book
        self._crawls = {row.host: row for row in book.get_first_crawls()}
        self._ruled: CrawlRules | None = None
        self._prints: dict[str, int] = {}

    def can_be_new(self, hosts: Sequence[int], now_s: float) -> bool:
        """Check whether URLs found on these hosts can be new on the web; never during a first crawl."""
        return any(self._is_over(self._crawls.get(host), now_s) for host in dict.fromkeys(hosts))

    def detect(self, found: Mapping[int, FoundUrl], hosts: Mapping[str, int], now_s: float) -> list[int]:
        """Return which of these unseen URLs are new on the web; ``hosts`` maps URLs to host ids."""
        ways = [
            (id_, one.via)
            for id_, one in found.items()
            if one.via is not None and self._is_new(one.via, one.url, self._crawls.get(hosts[one.url]), now_s)
        ]
        if not ways:
            return []
        earlier = self._get_earlier([way for _, way in ways])
        finds = []
        for id_, way in ways:
            before = earlier.get(way)
            if way.before_s is not None:
                finds.append(Discovery(id_, way.source, way.how, 0))
            elif before is not None and way.how == REDIRECT:
                finds.append(before._replace(id=id_))
            elif before is not None and before.steps + 1 < MAX_STEPS:
                finds.append(Discovery(id_, way.source, way.how, before.steps + 1))
        if finds:
            self._store.save_discoveries(finds)
        return [find.id for find in finds]

    def _get_earlier(self, ways: Sequence[LinkOrigin]) -> dict[LinkOrigin, Discovery]:
        """Return the discoveries of pages that were fetched for the first time; other shards send their own."""
        own = list(dict.fromkeys(way.source for way in ways if way.before_s is None and way.source))
        found = self._store.get_discoveries(own) if own else {}
        sent = {way: Discovery(0, 0, way.how, way.steps) for way in ways if not way.source and way.steps is not None}
        return {way: found[way.source] for way in ways if way.source in found} | sent

    def on_host_answered(self, host: HostState, began_s: float, ended_s: float) -> None:
        """Update a host's first crawl after answers between these times; it ends when nothing waits.

        Requests in flight when the rules changed followed the old rules.
        """
        before, rules = self._crawls.get(host.id), self._get_scope_hash(host.name)
        row = before
        if row is None or row.rules != rules:
            row = FirstCrawl(host.id, rules, began_s if row is None else ended_s)
        if not row.over and not self._has_work(host):
            row = row._replace(over=True)
        if row != before:
            self._crawls[host.id] = row
            self._store.save_first_crawls([row])

    def _is_new(self, way: LinkOrigin, url: str, crawl: FirstCrawl | None, now_s: float) -> bool:
        if crawl is None or not self._is_over(crawl, now_s) or crawl.rules != self._get_scope_hash(origin_of(url).host):
            return False
        if way.before_s is None:
            return True
        return way.how != REDIRECT and way.before_s >= crawl.since_s

    @staticmethod
    def _is_over(crawl: FirstCrawl | None, now_s: float) -> bool:
        return crawl is not None and (crawl.over or now_s - crawl.since_s >= MAX_FIRST_CRAWL_S)

    def _has_work(self, host: HostState) -> bool:
        return bool(host.busy or host.robots_tasks or host.robots_pending or self._urls.count_waiting(host.id))

    def _get_scope_hash(self, name: str) -> int:
        """Hash the scope rules of the sites on a host, so that novelty detection notices changes."""
        if self._ruled is not self._hosts.rules:
            self._ruled, self._prints = self._hosts.rules, {}
        if name not in self._prints:
            self._prints[name] = _hash_scope(self._hosts.sites, self._hosts.paused, name)
        return self._prints[name]


def _hash_scope(running: SiteIndex, paused: SiteIndex, name: str) -> int:
    sites = sorted({site.start: site for index in (running, paused) for site in index.find_by_host(name)}.items())
    said = [(start, site.scope, site.include, site.exclude, site.drop_parameters) for start, site in sites]
    return xxhash.xxh64_intdigest(repr(said).encode()) >> 1
