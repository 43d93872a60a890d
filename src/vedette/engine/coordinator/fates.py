"""What becomes of URLs that were given out: refused, failed, put back to wait; and for which of them somebody waits."""

from collections import Counter
from collections.abc import Iterable

from vedette.engine.coordinator.state import KeptHost, Tally
from vedette.engine.messages import Errand
from vedette.engine.ports import Book, Fate, Urls
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Refusal

__all__ = ["Fates"]


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
