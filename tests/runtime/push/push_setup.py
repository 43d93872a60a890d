"""Push with a real coordinator and an in-memory web, second by second."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.engine.memory_web import Drive, MemoryWeb, Reply, rules_for

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.minhash_bands import BandTable
from vedette.config import Config, Serve
from vedette.model import Site
from vedette.runtime.processes.coordinator import build_handler
from vedette.runtime.processes.settings import RuntimeSettings

__all__ = ["HOME", "HUB", "Bench", "atom", "text"]

HOME = "https://example.org/"
HUB = "https://hub.example.net/"


def atom(*links: str, hub: str = HUB, updated: str = "2001-09-09T01:46:40Z") -> bytes:
    """Return a feed with these entries, all with the same date."""
    entries = "".join(f'<entry><link href="{link}"/><updated>{updated}</updated></entry>' for link in links)
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="{hub}"/>{entries}</feed>'.encode()


def text(words: str, kind: str = "text/html") -> Reply:
    """Return a page with this text."""
    return Reply(200, (("content-type", kind),), words.encode())


@dataclass
class Bench:
    """A coordinator with push and the cheapest refresh policy.

    Pages are normally due after days.
    """

    web: MemoryWeb = field(default_factory=MemoryWeb)
    sites: tuple[Site, ...] = (Site(HOME),)
    public_url: str = "https://search.example.com"
    folder: Path = field(default_factory=Path)
    delay_s: float = 1.0
    settings: RuntimeSettings = field(init=False)

    def __post_init__(self) -> None:
        rules = rules_for(*self.sites, recrawl=True, delay_s=self.delay_s, refresh="uniform")
        self.drive = Drive(self.web, rules, start_s=1e9).begin()
        clock = Clock(0.0, 0.0, 1.0)
        self.settings = RuntimeSettings(
            Config(serve=Serve(public_url=self.public_url)), clock, self.folder, "vedette", allow_private=True
        )
        drive = self.drive
        state = State(self.folder, drive.db, drive.urls, drive.book, BandTable(None, drive.urls.secret), True, ())
        keeper = drive.keeper
        self.state = state
        self.push = build_handler(self.settings, state, keeper).push

    @property
    def now_s(self) -> float:
        """Return world time."""
        return self.drive.now_s

    def run(self, seconds: int, at_once_s: float = 1.0) -> "Bench":
        """Advance time, as the coordinator's rounds do."""
        for _ in range(int(seconds / at_once_s)):
            self.push.step(self.now_s)
            self.drive.run(for_s=at_once_s)
        return self

    def asked(self, url: str) -> list[float]:
        """Return when a URL was requested."""
        return [asked.sent_s for asked in self.drive.log if asked.url == url]

    def credit(self, source: str) -> float:
        """Return the credit of a source."""
        return self.push.store.get_credit(source).mean
