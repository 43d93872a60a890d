"""The state of a crawl in memory: for the lab, and for tests that need no disk."""

from collections.abc import Iterable, Iterator

from vedette.facts import Origin, Page, fingerprint
from vedette.fetch.robots_state import RobotsState
from vedette.ring.events import GiveUp, Keep, KeepRobots, Known, Refuse, Remember, Seen
from vedette.ring.store import Counts, Kept

__all__ = ["MemoryStore"]


class MemoryStore:
    """A ``ring.store.Store`` that is gone when its object is."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._pages: dict[str, Page] = {}
        self._refused: dict[str, Refuse] = {}
        self._failed: dict[str, GiveUp] = {}
        self._robots: dict[Origin, RobotsState] = {}

    def keep(self, commands: Iterable[Kept]) -> None:
        """Take note."""
        for command in commands:
            match command:
                case Remember(urls):
                    self._seen.update((seen.url, seen) for seen in urls)
                case Keep(page):
                    self._pages[page.url] = page
                case Refuse(url):
                    self._refused[url] = command
                case GiveUp(url):
                    self._failed[url] = command
                case KeepRobots(origin, state):
                    self._robots[origin] = state

    def commit(self) -> None:
        """Nothing survives the process, so nothing is to be done."""

    def known(self) -> Known | None:
        """What was kept so far."""
        if not self._seen:
            return None
        done = {*self._pages, *self._refused, *self._failed}
        waiting = tuple(seen for url, seen in self._seen.items() if url not in done)
        return Known(frozenset(map(fingerprint, self._seen)), waiting, dict(self._robots))

    def counts(self) -> Counts:
        """Numbers for people."""
        ended = len(self._pages), len(self._refused), len(self._failed)
        return Counts(len(self._seen), len(self._seen) - sum(ended), *ended)

    def pages(self) -> Iterator[Page]:
        """Every fetched page, in the order in which its URL was first seen."""
        return (self._pages[url] for url in self._seen if url in self._pages)

    def close(self) -> None:
        """Nothing to let go of."""
