"""The way to an origin's robots.txt: over as many hosts as it is redirected to, and back to the host that it is for.

Whoever has to be asked on the way is asked in its own time, in its own line, and nobody waits for a host that waits:
only pages wait for robots.txt, a robots.txt waits for nothing but politeness. So no chain of redirects can dead-lock.
"""

from collections.abc import Callable, Sequence

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.robots_cache import to_event
from vedette.engine.coordinator.state import HostState
from vedette.engine.messages import FetchResult, FetchTask
from vedette.engine.ports import CrawlStore, HostRow
from vedette.fetch.robots.state import RobotsFailure, RobotsResponse, RobotsStatus
from vedette.model import origin_of


class RobotsFetches:
    """What follows from answers on the way to robots.txt files; ``sitemaps`` is told those that a file names."""

    def __init__(self, hosts: HostTable, book: CrawlStore, sitemaps: Callable[[Sequence[str], float], None]) -> None:
        self._hosts = hosts
        self._store = book
        self._sitemaps = sitemaps
        self._changed: dict[str, None] = {}

    def pop_changed(self) -> list[HostState]:
        """The hosts whose pauses may have changed since this was last asked."""
        names, self._changed = self._changed, {}
        return [self._hosts.by_name[name] for name in names]

    def on_result(self, result: FetchResult) -> None:
        """An answer on the way."""
        event = to_event(result)
        if isinstance(event, str):
            self._follow_redirect(result.task, event)
        else:
            self.apply_event(result.task, event)

    def apply_event(self, errand: FetchTask, event: RobotsResponse | RobotsFailure) -> None:
        """The end of the way: the file is known, or that it cannot be had."""
        origin = errand.robots_of
        assert origin is not None
        owner = self._hosts.by_name[origin.host]
        most_s, delay_s = self._hosts.rules.robots_max_age_s, self._hosts.delay_s(owner)
        state = self._hosts.robots.observe(origin, event, most_s, delay_s)
        self._store.save_robots(origin, state)
        owner.robots_pending.pop(origin, None)
        owner.paused_until_s = 0.0
        owner.robots_trouble = f"robots.txt: {state.why}" if state.status is RobotsStatus.WAITING else ""
        # A crawl-delay counts from the answer that told it.
        owner.ready_s = max(owner.ready_s, event.now_s + (state.crawl_delay_s or 0.0))
        self._store.save_hosts([HostRow(owner.name, owner.ready_s, owner.failure_streak, owner.rest_trouble)])
        self._changed[owner.name] = None
        self._sitemaps(state.sitemaps, event.now_s)
        self._hosts.enqueue(owner)

    def _follow_redirect(self, errand: FetchTask, target: str) -> None:
        """One redirect further, in the line of whichever host it leads to."""
        assert errand.robots_of is not None
        there, owner = self._hosts.get(origin_of(target).host), self._hosts.by_name[errand.robots_of.host]
        there.robots_tasks.append(errand._replace(host=there.name, url=target, hops=errand.hops + 1, validators=("", "")))
        owner.robots_trouble = "" if there is owner else f"its robots.txt is asked of {there.name}"
        self._hosts.enqueue(there)
