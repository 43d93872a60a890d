"""What came back from an errand: an answer that counts, one that is asked for again, or one that is given up."""

from collections import Counter
from collections.abc import Iterable

from vedette.engine.coordinator.answers import AnswerHandler
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.robots_fetch import RobotsFetches
from vedette.engine.coordinator.state import CrawlCounts, HostState
from vedette.engine.coordinator.trap_filter import TrapFilter
from vedette.engine.messages import FetchFailure, FetchResult, FetchSuccess, FetchTask
from vedette.engine.ports import CrawlStore, UrlFrontier, UrlState
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Failure, Refusal


class UrlStates:
    """The ends of errands. ``hops`` are the redirects that led to a URL, ``requested`` the hosts of what is waited for."""

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

    def retry(self, errand: FetchTask, why: str, worker: int, now_s: float, most_attempts: int) -> None:
        """No answer that counts came: it waits again, unless it was tried often enough."""
        self._attempts[errand.id] += 1
        if self._attempts[errand.id] < most_attempts:
            self.release([errand.id], worker)
        else:
            self.fail(errand.id, errand.url, why, worker, now_s)

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


PERMANENT_FAILURES = frozenset({Failure.TLS, Failure.TOO_LARGE, Failure.PROTOCOL, Failure.ADDRESS, Failure.NAME})


class ResultHandler:
    """Who is told of a result: ``robots`` of robots.txt files, ``answers`` of good pages, ``fates`` of the others."""

    def __init__(
        self,
        hosts: HostTable,
        robots: RobotsFetches,
        fates: UrlStates,
        answers: AnswerHandler,
        thrift: TrapFilter,
        tally: CrawlCounts,
    ) -> None:
        self._hosts = hosts
        self._robots = robots
        self._url_states = fates
        self._answers = answers
        self._trap_filter = thrift
        self._tally = tally

    def on_result(self, host: HostState, result: FetchResult, worker: int) -> None:
        """A worker did an errand that it had."""
        self._tally.requests += 1
        host.success_streak = (
            host.success_streak + 1 if isinstance(result, FetchSuccess) and not host.failure_streak else 0
        )
        if result.task.robots_of is not None:
            self._tally.robots += 1
            self._robots.on_result(result)
        elif isinstance(result, FetchFailure):
            most = 1 if result.failure in PERMANENT_FAILURES else self._hosts.rules.max_attempts
            self._retry_or_fail(result, str(result.failure), worker, most)
        elif result.status == 429 or result.status >= 500:
            self._retry_or_fail(result, f"status {result.status}", worker, self._hosts.rules.max_attempts)
        else:
            self._on_answer(host, result, worker)

    def _retry_or_fail(self, result: FetchResult, why: str, worker: int, most_attempts: int) -> None:
        self._trap_filter.on_dropped([result.task.id])
        self._url_states.retry(result.task, why, worker, result.ended_s, most_attempts)

    def _on_answer(self, host: HostState, result: FetchSuccess, worker: int) -> None:
        errand = result.task
        self._tally.statuses[result.status] += 1
        self._tally.bytes += result.body_bytes
        most = self._hosts.rules.max_redirects
        if result.location is not None and errand.hops >= most:
            self._url_states.fail(errand.id, errand.url, f"more than {most} redirects", worker, result.ended_s)
            return
        self._url_states.finish(errand.id)
        self._answers.add(host.id, result, self._tally)
