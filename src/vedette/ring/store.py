"""The port to whatever keeps the state of a crawl; ``edges/memory`` and ``edges/sqlite`` pass the same tests."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from vedette.facts import Page
from vedette.ring.events import GiveUp, Keep, KeepRobots, Known, Refuse, Remember

__all__ = ["Counts", "Kept", "Store"]

Kept = Remember | Keep | Refuse | GiveUp | KeepRobots


@dataclass(frozen=True, slots=True)
class Counts:
    """How many URLs are known, and what became of them."""

    known: int
    waiting: int
    fetched: int
    refused: int
    failed: int


class Store(Protocol):
    """Takes what the ring wants kept, in the order of its commands, and gives it back to a later run."""

    def keep(self, commands: Iterable[Kept]) -> None:
        """Take note; durable with the next ``commit``."""

    def commit(self) -> None:
        """From here on it survives the end of the process."""

    def known(self) -> Known | None:
        """What earlier runs left behind; None if nothing."""

    def counts(self) -> Counts:
        """Numbers for people."""

    def pages(self) -> Iterator[Page]:
        """Every fetched page, in the order in which its URL was first seen."""

    def close(self) -> None:
        """Commit and let go."""
