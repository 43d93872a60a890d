"""Redirects in the coordinator: which are followed, which lead nowhere, and the cookies that a chain needs.

Some sites answer a first request with a cookie and a redirect to the same page, or to a page that checks the cookie
and leads back. Browsers pass, since they send it. So the cookies that a redirect sets are sent to where it leads on the
same host, and nowhere else: each page is asked for without any, as by a new visitor.
"""

from collections.abc import Callable, Sequence

from vedette.discover.urls.normalize import normalize
from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import CrawlCounts
from vedette.engine.coordinator.trap_filter import TrapFilter
from vedette.engine.coordinator.url_states import UrlStates
from vedette.engine.messages import FetchSuccess
from vedette.engine.ports import CrawlStore, UrlFrontier

COOKIE_WALL = "a cookie wall"


class RedirectFollower:
    """Follow the redirects among the answers of a report."""

    def __init__(
        self,
        hosts: HostTable,
        urls: UrlFrontier,
        store: CrawlStore,
        states: UrlStates,
        traps: TrapFilter,
        copies: DuplicateDetector,
        tally: CrawlCounts,
        normalize_url: Callable[[str], str | None],
    ) -> None:
        self._hosts, self._urls, self._store, self._url_states = hosts, urls, store, states
        self._trap_filter, self._copies, self._tally, self._normalize_url = traps, copies, tally, normalize_url

    def follow(self, answers: Sequence[FetchSuccess], fetcher: int) -> list[FetchSuccess]:
        """Return the answers of a report that are to be saved.

        Redirects that lead nowhere are marked as failed; a page that leads to itself with a cookie is fetched again.
        """
        kept = []
        for result in answers:
            task = result.task
            if why := self._find_dead_end(result):
                self._trap_filter.on_dropped([task.id])
                self._url_states.fail(task.id, task.url, why, fetcher, result.ended_s)
            elif self._is_circle(result):
                self._tally.redirects += 1
                self._trap_filter.on_dropped([task.id])
                self._url_states.repeat(task, result.cookies, fetcher)
            else:
                self._url_states.finish(task.id)
                self._pass_on(result)
                kept.append(result)
        return kept

    def _pass_on(self, result: FetchSuccess) -> None:
        if result.location is not None:
            self._tally.redirects += 1
            self._copies.on_redirect(result.task.url, result.location)
            if result.cookies:
                self._lead_back(result)

    def _lead_back(self, result: FetchSuccess) -> None:
        """Fetch a known redirect again where one leads back to it with cookies: it may let us pass now."""
        target = self._normalize_url(result.location or "")
        if target is None:
            return
        (id_,) = self._urls.find_ids([target]).tolist()
        row = self._store.get_pages([id_]).get(id_) if id_ else None
        if row is not None and row.location and len(self._urls.requeue([id_], priority=0)):
            self._urls.move_to_front([id_])
            self._url_states.hops[id_], self._url_states.cookies[id_] = result.task.hops + 1, result.cookies

    def _find_dead_end(self, result: FetchSuccess) -> str:
        """Return why a redirect is not followed; empty where it is, and for answers that are none."""
        task, most = result.task, self._hosts.rules.max_redirects
        if result.location is None:
            return ""
        is_circle = self._is_circle(result)
        if is_circle and not result.cookies:
            return "it redirects to itself"
        if is_circle and result.cookies == task.cookies:
            return f"{COOKIE_WALL}: it redirects to itself even with its cookies"
        if task.hops < most:
            return ""
        return f"more than {most} redirects" + (f", perhaps {COOKIE_WALL}" if task.cookies else "")

    def _is_circle(self, result: FetchSuccess) -> bool:
        url, site = result.task.url, self._hosts.sites.find_site(result.task.url)
        return result.location is not None and url in {result.location, site and normalize(result.location, site)}
