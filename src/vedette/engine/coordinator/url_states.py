"""The state of URLs that were leased: refused, failed, to be tried again, given back, or waited for by somebody."""

from collections import Counter
from collections.abc import Iterable

from vedette.engine.coordinator.state import CrawlCounts, HostState
from vedette.engine.messages import FetchTask
from vedette.engine.ports import CrawlStore, UrlFrontier, UrlState
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Refusal


class UrlStates:
    """The ends of tasks. ``hops`` are redirects that led to a URL, ``requested`` the hosts of what is waited for."""

    def __init__(self, urls: UrlFrontier, book: CrawlStore, schedule: Schedule, tally: CrawlCounts) -> None:
        self._urls = urls
        self._store = book
        self._schedule = schedule
        self._tally = tally
        self._attempts: Counter[int] = Counter()
        self.hops: dict[int, int] = {}
        self.requested: dict[int, HostState] = {}

    def refuse(self, id_: int, refusal: Refusal, why: str, worker: int, now_s: float) -> None:
        """A leased URL will not be asked for."""
        self._urls.acknowledge([id_], UrlState.REFUSED, worker)
        self.finish(id_)
        self._store.add_note(id_, why, now_s)
        self._store.postpone(id_, self._schedule.due_after_refusal(now_s))
        self._tally.refusals[refusal] += 1

    def fail(self, id_: int, url: str, why: str, worker: int, now_s: float) -> None:
        """A URL was asked for in vain."""
        self._urls.acknowledge([id_], UrlState.FAILED, worker)
        self.finish(id_)
        self._store.add_note(id_, why, now_s)
        row = self._store.get_pages([id_]).get(id_)
        if row is not None:
            self._store.postpone(id_, self._schedule.due_after_failure(url, row, now_s))
        self._tally.failures[why] += 1

    def retry(self, task: FetchTask, why: str, worker: int, now_s: float, most_attempts: int) -> None:
        """No answer that counts came: it waits again, unless it was tried often enough."""
        self._attempts[task.id] += 1
        if self._attempts[task.id] < most_attempts:
            self.release([task.id], worker)
        else:
            self.fail(task.id, task.url, why, worker, now_s)

    def release(self, ids: Iterable[int], worker: int) -> None:
        """What was not asked for waits again; what somebody waits for does so at the front."""
        back: list[int] = self._urls.release_leases(ids, worker).tolist()
        wished = [id_ for id_ in back if id_ in self.requested]
        if wished:
            self._urls.move_to_front(wished)

    def finish(self, id_: int) -> None:
        """Whatever became of a URL, nobody waits for it any more."""
        self._attempts.pop(id_, None)
        self.hops.pop(id_, None)
        host = self.requested.pop(id_, None)
        if host is not None:
            host.requested.pop(id_, None)
