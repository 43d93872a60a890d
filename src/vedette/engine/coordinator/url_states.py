"""What came back from an errand: an answer that counts, one that is asked for again, or one that is given up."""

from collections import Counter
from collections.abc import Iterable

from vedette.engine.coordinator.answers import Answers
from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.robots_fetch import RobotsErrands
from vedette.engine.coordinator.state import KeptHost, Tally
from vedette.engine.coordinator.trap_filter import Thrift
from vedette.engine.messages import Errand, Fetched, Result, Silent
from vedette.engine.ports import Book, Fate, Urls
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Failure, Refusal

__all__ = ["Fates", "Results"]


class Fates:
    """The ends of errands. ``hops`` are the redirects that led to a URL, ``wished`` the hosts of what is waited for."""

    def __init__(self, urls: Urls, book: Book, schedule: Schedule, tally: Tally) -> None:
        self._urls = urls
        self._book = book
        self._schedule = schedule
        self._tally = tally
        self._attempts: Counter[int] = Counter()
        self.hops: dict[int, int] = {}
        self.wished: dict[int, KeptHost] = {}

    def refuse(self, id_: int, refusal: Refusal, why: str, worker: int, now_s: float) -> None:
        """A leased URL will not be asked for."""
        self._urls.acknowledge([id_], Fate.REFUSED, worker)
        self.end(id_)
        self._book.note(id_, why, now_s)
        self._book.put_off(id_, self._schedule.after_refusal(now_s))
        self._tally.refusals[refusal] += 1

    def fail(self, id_: int, url: str, why: str, worker: int, now_s: float) -> None:
        """A URL was asked for in vain."""
        self._urls.acknowledge([id_], Fate.FAILED, worker)
        self.end(id_)
        self._book.note(id_, why, now_s)
        row = self._book.copies([id_]).get(id_)
        if row is not None:
            self._book.put_off(id_, self._schedule.after_failure(url, row, now_s))
        self._tally.failures[why] += 1

    def try_again(self, errand: Errand, why: str, worker: int, now_s: float, most_attempts: int) -> None:
        """No answer that counts came: it waits again, unless it was tried often enough."""
        self._attempts[errand.id] += 1
        if self._attempts[errand.id] < most_attempts:
            self.put_back([errand.id], worker)
        else:
            self.fail(errand.id, errand.url, why, worker, now_s)

    def put_back(self, ids: Iterable[int], worker: int) -> None:
        """What was not asked for waits again; what somebody waits for does so at the front."""
        back: list[int] = self._urls.put_back(ids, worker).tolist()
        wished = [id_ for id_ in back if id_ in self.wished]
        if wished:
            self._urls.first(wished)

    def end(self, id_: int) -> None:
        """Whatever became of a URL, nobody waits for it any more."""
        self._attempts.pop(id_, None)
        self.hops.pop(id_, None)
        host = self.wished.pop(id_, None)
        if host is not None:
            host.wishes.pop(id_, None)


HOPELESS = frozenset({Failure.TLS, Failure.TOO_LARGE, Failure.PROTOCOL, Failure.ADDRESS, Failure.NAME})


class Results:
    """Who is told of a result: ``robots`` of robots.txt files, ``answers`` of good pages, ``fates`` of the others."""

    def __init__(
        self, hosts: Hosts, robots: RobotsErrands, fates: Fates, answers: Answers, thrift: Thrift, tally: Tally
    ) -> None:
        self._hosts = hosts
        self._robots = robots
        self._fates = fates
        self._answers = answers
        self._thrift = thrift
        self._tally = tally

    def came(self, host: KeptHost, result: Result, worker: int) -> None:
        """A worker did an errand that it had."""
        self._tally.requests += 1
        host.streak = host.streak + 1 if isinstance(result, Fetched) and not host.strain else 0
        if result.errand.robots_of is not None:
            self._tally.robots += 1
            self._robots.came(result)
        elif isinstance(result, Silent):
            most = 1 if result.failure in HOPELESS else self._hosts.rules.most_attempts
            self._in_vain(result, str(result.failure), worker, most)
        elif result.status == 429 or result.status >= 500:
            self._in_vain(result, f"status {result.status}", worker, self._hosts.rules.most_attempts)
        else:
            self._answered(host, result, worker)

    def _in_vain(self, result: Result, why: str, worker: int, most_attempts: int) -> None:
        self._thrift.dropped([result.errand.id])
        self._fates.try_again(result.errand, why, worker, result.ended_s, most_attempts)

    def _answered(self, host: KeptHost, result: Fetched, worker: int) -> None:
        errand = result.errand
        self._tally.statuses[result.status] += 1
        self._tally.bytes += result.body_bytes
        most = self._hosts.rules.most_redirects
        if result.location is not None and errand.hops >= most:
            self._fates.fail(errand.id, errand.url, f"more than {most} redirects", worker, result.ended_s)
            return
        self._fates.end(errand.id)
        self._answers.take(host.id, result, self._tally)
