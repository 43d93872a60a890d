"""The state of a crawl in memory: for the lab, and for tests that need no disk."""

from collections import Counter
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
        self._ends: dict[str, Keep | Refuse | GiveUp] = {}
        self._robots: dict[Origin, RobotsState] = {}

    def keep(self, commands: Iterable[Kept]) -> None:
        """Take note."""
        for command in commands:
            match command:
                case Remember(urls):
                    for seen in urls:
                        self._seen.setdefault(seen.url, seen)
                case Keep(page):
                    self._pages[page.url] = page
                    self._ends[page.url] = command
                case Refuse(url) | GiveUp(url):
                    self._ends[url] = command
                case KeepRobots(origin, state):
                    self._robots[origin] = state

    def commit(self) -> None:
        """Nothing survives the process, so nothing is to be done."""

    def known(self) -> Known | None:
        """What was kept so far."""
        if not self._seen:
            return None
        waiting = tuple(seen for url, seen in self._seen.items() if url not in self._ends)
        return Known(frozenset(map(fingerprint, self._seen)), waiting, dict(self._robots))

    def counts(self) -> Counts:
        """Numbers for people."""
        by_kind = Counter(map(type, self._ends.values()))
        ended = by_kind[Keep], by_kind[Refuse], by_kind[GiveUp]
        return Counts(len(self._seen), len(self._seen) - len(self._ends), *ended)

    def pages(self) -> Iterator[Page]:
        """Every fetched page, in the order in which its URL was first seen."""
        return (self._pages[url] for url in self._seen if url in self._pages)

    def close(self) -> None:
        """Nothing to let go of."""
