"""Redirects in the coordinator: which to follow, which are dead ends, and the cookies that a chain needs.

Some sites respond to a first request with a cookie and a redirect to the same page, or to a page that checks the cookie
and redirects back. Browsers pass because they send the cookie. So cookies set by a redirect are sent to its target on
the same host, and nowhere else: every page is requested without cookies, as by a new visitor.
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
    """Follow the redirects among the responses of a report."""

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
        """Return the responses of a report that should be saved.

        Dead-end redirects are marked as failed; a page that redirects to itself with a cookie is fetched again.
        """
        kept = []
        for result in answers:
            if result.location is None or self._follow(result, result.location, fetcher):
                self._url_states.finish(result.task.id)
                kept.append(result)
        return kept

    def _follow(self, result: FetchSuccess, location: str, fetcher: int) -> bool:
        """Follow one redirect; return whether its task is done."""
        task, site = result.task, self._hosts.sites.find_site(result.task.url)
        is_circle = task.url in {location, site and normalize(location, site)}
        if why := self._find_dead_end(result, is_circle=is_circle):
            self._trap_filter.on_dropped([task.id])
            self._url_states.fail(task.id, task.url, why, fetcher, result.ended_s)
            return False
        self._tally.redirects += 1
        if is_circle:
            self._trap_filter.on_dropped([task.id])
            self._url_states.repeat(task, result.cookies, fetcher)
            return False
        self._copies.on_redirect(task.url, location)
        if result.cookies:
            self._lead_back(result, location)
        return True

    def _lead_back(self, result: FetchSuccess, location: str) -> None:
        """Fetch a known redirect again if another one leads back to it with cookies, which may let us pass now."""
        target = self._normalize_url(location)
        if target is None:
            return
        (id_,) = self._urls.find_ids([target]).tolist()
        row = self._store.get_pages([id_]).get(id_) if id_ else None
        if row is not None and row.location and len(self._urls.requeue([id_], priority=0)):
            self._urls.move_to_front([id_])
            self._url_states.hops[id_], self._url_states.cookies[id_] = result.task.hops + 1, result.cookies

    def _find_dead_end(self, result: FetchSuccess, *, is_circle: bool) -> str:
        """Return why a redirect is not followed; empty if it is followed."""
        task, most = result.task, self._hosts.rules.max_redirects
        if is_circle and not result.cookies:
            return "it redirects to itself"
        if is_circle and result.cookies == task.cookies:
            return f"{COOKIE_WALL}: it redirects to itself even with its cookies"
        if task.hops < most:
            return ""
        return f"more than {most} redirects" + (f", perhaps {COOKIE_WALL}" if task.cookies else "")
