"""URL states in the coordinator: how leased URLs end: refused, failed, retried, given back, or finished."""

from collections import Counter
from collections.abc import Iterable

from vedette.engine.coordinator.state import CrawlCounts, HostState
from vedette.engine.messages import FetchTask
from vedette.engine.ports import CrawlStore, UrlFrontier, UrlState
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Refusal


class UrlStates:
    """End tasks of leased URLs and set their states.

    ``hops`` are redirects that led to a URL, ``requested`` the hosts of URLs that were requested by name.
    """

    def __init__(self, urls: UrlFrontier, book: CrawlStore, schedule: Schedule, tally: CrawlCounts) -> None:
        self._urls = urls
        self._store = book
        self._schedule = schedule
        self._tally = tally
        self._attempts: Counter[int] = Counter()
        self.hops: dict[int, int] = {}
        self.requested: dict[int, HostState] = {}

    def refuse(self, id_: int, refusal: Refusal, why: str, worker: int, now_s: float) -> None:
        """Mark a leased URL as refused, with the reason."""
        self._urls.acknowledge([id_], UrlState.REFUSED, worker)
        self.finish(id_)
        self._store.add_note(id_, why, now_s)
        self._store.postpone(id_, self._schedule.due_after_refusal(now_s))
        self._tally.refusals[refusal] += 1

    def fail(self, id_: int, url: str, why: str, worker: int, now_s: float) -> None:
        """Mark a URL as failed after it was fetched without success."""
        self._urls.acknowledge([id_], UrlState.FAILED, worker)
        self.finish(id_)
        self._store.add_note(id_, why, now_s)
        row = self._store.get_pages([id_]).get(id_)
        if row is not None:
            self._store.postpone(id_, self._schedule.due_after_failure(url, row, now_s))
        self._tally.failures[why] += 1

    def retry(self, task: FetchTask, why: str, worker: int, now_s: float, most_attempts: int) -> None:
        """Requeue a URL whose fetch failed, unless it was tried often enough."""
        self._attempts[task.id] += 1
        if self._attempts[task.id] < most_attempts:
            self.release([task.id], worker)
        else:
            self.fail(task.id, task.url, why, worker, now_s)

    def release(self, ids: Iterable[int], worker: int) -> None:
        """Requeue leased URLs that were not fetched; those requested by name go to the front."""
        back: list[int] = self._urls.release_leases(ids, worker).tolist()
        wished = [id_ for id_ in back if id_ in self.requested]
        if wished:
            self._urls.move_to_front(wished)

    def finish(self, id_: int) -> None:
        """Clear the request for a URL whose fetch has ended, however it ended."""
        self._attempts.pop(id_, None)
        self.hops.pop(id_, None)
        host = self.requested.pop(id_, None)
        if host is not None:
            host.requested.pop(id_, None)
