"""Robots review: judge the known URLs of an origin again after its robots.txt changed, some at a time.

Stored pages that the file disallows are deleted, and they and URLs refused by an earlier file wait again. A large host
has hundreds of thousands of pages, and the coordinator answers fetchers in between, so each step takes a span of ids.
What is left is saved, and survives a restart.
"""

import json

from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.url_states import LAST_FRONT
from vedette.engine.ports import CrawlStore, UrlFrontier
from vedette.model import Origin, Refusal, origin_of

REVIEW_KEY = "robots review"
MAX_URLS = 2_000


class RobotsReview:
    """Review URLs by changed robots.txt files; ``_next`` maps robots.txt URLs to the first id not yet judged."""

    def __init__(self, hosts: HostTable, urls: UrlFrontier, store: CrawlStore, copies: DuplicateDetector) -> None:
        self._hosts, self._urls, self._store, self._copies = hosts, urls, store, copies
        self._next: dict[str, int] = json.loads(store.get_value(REVIEW_KEY) or "{}")

    def start(self, origin: Origin) -> None:
        """Review the URLs of an origin from the first on; the first of them now."""
        self._next.pop(origin.robots_url, None)
        self._next = {origin.robots_url: 1} | self._next
        self.step()

    def step(self) -> None:
        """Review the next URLs of one origin, if any are left."""
        if not self._next:
            return
        url, first = next(iter(self._next.items()))
        last = first + MAX_URLS - 1
        self._judge(origin_of(url), first, last)
        del self._next[url]
        if last < self._urls.get_counts().known:
            self._next[url] = last + 1
        self._store.set_value(REVIEW_KEY, json.dumps(self._next))

    def _judge(self, origin: Origin, first: int, last: int) -> None:
        host, state = self._hosts.get(origin.host), self._hosts.robots.get(origin)
        pages = [(id_, url) for id_, url in self._store.list_pages(host.id, first, last) if origin_of(url) == origin]
        lost = [id_ for id_, url in pages if not state.rules.is_allowed(url) and not self._ignores_robots(url)]
        self._copies.delete_pages(lost)
        refused = self._store.take_refused(host.id, str(Refusal.ROBOTS), first, last)
        self._urls.requeue([*lost, *refused], priority=LAST_FRONT)
        self._hosts.enqueue(host)

    def _ignores_robots(self, url: str) -> bool:
        site = self._hosts.sites.find_site(url)
        return site is not None and site.ignore_robots
