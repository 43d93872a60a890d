"""URL states in the coordinator: how leased URLs end: refused, failed, retried, given back, or finished."""

from collections import Counter
from collections.abc import Iterable
from math import inf

from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.engine.coordinator.state import CrawlCounts, HostState
from vedette.engine.messages import FetchTask
from vedette.engine.ports import CrawlStore, DuePage, FailedUrl, UrlFrontier, UrlState
from vedette.engine.scheduling.schedule import Schedule
from vedette.fetch.politeness import compute_retry_s
from vedette.model import Failure, Refusal

# URLs that were held back or have failed wait in the last front queue.
LAST_FRONT = 7
NO_FETCHER = -1


class UrlStates:
    """End tasks of leased URLs and set their states.

    ``hops`` are the redirects that led to a URL, ``cookies`` what they set, ``requested`` the hosts of URLs requested
    by name.
    """

    def __init__(
        self, urls: UrlFrontier, book: CrawlStore, schedule: Schedule, tally: CrawlCounts, copies: DuplicateDetector
    ) -> None:
        self._urls = urls
        self._store = book
        self._schedule = schedule
        self._tally = tally
        self._copies = copies
        self._attempts: Counter[int] = Counter()
        self.hops: dict[int, int] = {}
        self.cookies: dict[int, str] = {}
        self.requested: dict[int, HostState] = {}

    def refuse(self, id_: int, refusal: Refusal, why: str, worker: int, now_s: float) -> None:
        """Mark a leased URL as refused, with the reason; if it is held back only for now, its attempts still count."""
        self._urls.acknowledge([id_], UrlState.REFUSED, worker)
        attempts = self._attempts[id_]
        self.finish(id_)
        if attempts:
            self._attempts[id_] = attempts
        if refusal is Refusal.ROBOTS and self._store.get_pages([id_]):  # remove it from the index and the cache
            self._copies.delete_pages([id_])
        self._store.add_note(id_, why, now_s)
        self._store.postpone(id_, self._schedule.due_after_refusal(now_s))
        self._tally.refusals[refusal] += 1

    def dismiss(self, id_: int, why: str, worker: int, now_s: float) -> None:
        """Mark a leased guess as refused, with its outcome; only the request counts."""
        self._tally.requests += 1
        self._urls.acknowledge([id_], UrlState.REFUSED, worker)
        self.finish(id_)
        self._store.add_note(id_, why, now_s)

    def fail(self, id_: int, url: str, why: str, worker: int, now_s: float) -> None:
        """Mark a URL as failed after an unsuccessful fetch."""
        self._urls.acknowledge([id_], UrlState.FAILED, worker)
        self.finish(id_)
        self._store.add_note(id_, why, now_s)
        self._schedule_retry(id_, url, now_s)
        self._tally.failures[why] += 1

    def _schedule_retry(self, id_: int, url: str, now_s: float) -> None:
        """Set when a failed URL is retried; a stored page is due no later than its own interval says."""
        failed, row = self._store.get_failure(id_), self._store.get_pages([id_]).get(id_)
        rounds, since_s = (failed.rounds + 1, failed.since_s) if failed else (1, now_s)
        retry_s = compute_retry_s(rounds, since_s, now_s)
        if row is not None:
            self._store.postpone(id_, min(retry_s, self._schedule.due_after_failure(url, row, now_s)))
        self._store.save_failure(FailedUrl(id_, rounds, since_s, retry_s if row is None else inf))

    def fail_requested(self, host: HostState, count: int, now_s: float) -> None:
        """Mark URLs requested by name on an unreachable host as failed, since someone is waiting for them."""
        if not count or host.unreachable is Failure.RESOLVER:
            return
        for one in self._urls.lease([host.id] * count, NO_FETCHER, now_s):
            if one.id in self.requested:
                self.fail(one.id, one.url, str(host.unreachable), NO_FETCHER, now_s)
            else:
                self.release([one.id], NO_FETCHER)

    def wake_failed(self, now_s: float, most: int) -> list[DuePage]:
        """Requeue failed URLs that are due for a retry, behind everything else."""
        due = self._store.take_due_retries(now_s, most)
        woken = set(self._urls.requeue([one.id for one in due], priority=LAST_FRONT).tolist()) if due else set()
        return [one for one in due if one.id in woken]

    def retry(self, task: FetchTask, why: str, worker: int, now_s: float, most_attempts: int) -> None:
        """Requeue a URL whose fetch failed, unless its attempts are used up; later rounds have one attempt."""
        self._attempts[task.id] += 1
        if self._attempts[task.id] < most_attempts and self._store.get_failure(task.id) is None:
            self.release([task.id], worker)
        else:
            self.fail(task.id, task.url, why, worker, now_s)

    def repeat(self, task: FetchTask, cookies: str, worker: int) -> None:
        """Requeue a URL that redirects to itself, to be fetched next with the cookies it set."""
        self.hops[task.id], self.cookies[task.id] = task.hops + 1, cookies
        self._urls.move_to_front(self._urls.release_leases([task.id], worker).tolist())

    def release(self, ids: Iterable[int], worker: int) -> None:
        """Requeue leased URLs that were not fetched; those requested by name go to the front."""
        back: list[int] = self._urls.release_leases(ids, worker).tolist()
        wished = [id_ for id_ in back if id_ in self.requested]
        if wished:
            self._urls.move_to_front(wished)

    def finish(self, id_: int) -> None:
        """Clear the request for a URL whose fetch has ended, with any outcome."""
        self._attempts.pop(id_, None)
        self.hops.pop(id_, None)
        self.cookies.pop(id_, None)
        host = self.requested.pop(id_, None)
        if host is not None:
            host.requested.pop(id_, None)
