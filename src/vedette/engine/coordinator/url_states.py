"""What came back from an errand: an answer that counts, one that is asked for again, or one that is given up."""

from vedette.engine.coordinator.answers import Answers
from vedette.engine.coordinator.fates import Fates
from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.robots_errands import RobotsErrands
from vedette.engine.coordinator.state import KeptHost, Tally
from vedette.engine.coordinator.trap_filter import Thrift
from vedette.engine.messages import Fetched, Result, Silent
from vedette.model import Failure

__all__ = ["Results"]

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
