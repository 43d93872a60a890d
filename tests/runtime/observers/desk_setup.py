"""A desk over a data folder with one observer and one observed host, without processes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.data_folders import NOW_S

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import open_for_write, read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.observers.hub_store import ObserverStore
from vedette.adapters.observers.wire import decode, derive_key, encode, is_signed, sign
from vedette.config import Config
from vedette.engine.messages import FetchTask, HostSettings, StoredCopy
from vedette.engine.observers.messages import Errand, Observation, Orders, Report
from vedette.fetch.observers.delta import digest_body, pack_body
from vedette.model import Site
from vedette.runtime.commands.executor import AnyCommand, execute_command
from vedette.runtime.observers.desk import ErrandDesk, Exchange
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.commands.commands import AddObserver, AddSite, AssignHosts

HOST, NAME = "far.test", "tokyo"
OLD = b"<title>Old</title>" + b"<p>A page that hardly ever changes. " * 40


class Desk:
    """A desk, and the actions of an observer with a key."""

    def __init__(self, folder: Path, secret_site: bool = False) -> None:  # noqa: FBT001, FBT002 - a switch of the test
        self.folder = folder
        sites = (f"http://{HOST}/",) if secret_site else ()
        self.command(AddSite(Site(f"http://{HOST}/", secrets="env:FAR" if secret_site else "")))
        self.command(AddObserver(NAME, sites), AssignHosts((HOST,), NAME))
        clock = Clock(NOW_S, NOW_S, 1.0)
        self.settings = RuntimeSettings(Config(), clock, folder, "vedette/1 (+mailto:ops@example.org)")
        self.store = ObserverStore(folder)
        self.desk = ErrandDesk(self.settings, self.store, agent="vedette/1")
        self.sequence = 0

    def command(self, *commands: AnyCommand) -> None:
        """Execute commands as the command line does."""
        with open_for_write(self.folder, NOW_S) as state:
            for command in commands:
                execute_command(command, state, NOW_S, "a test")

    def key(self, generation: int = 1) -> bytes:
        """The observer's key."""
        with read_state(self.folder) as db:
            return derive_key(CrawlStore(db).read_secret(), NAME, generation)

    def take_tasks(self, *paths: str, copy: StoredCopy | None = None) -> list[FetchTask]:
        """Take what the coordinator leases to the hub."""
        tasks = [FetchTask(n + 1, HOST, f"http://{HOST}{path}", "page", copy=copy) for n, path in enumerate(paths)]
        self.desk.take_tasks([HostSettings(HOST, "observed", 1.0, None, 0.0, 0)], tasks)
        return tasks

    def report(self, *observations: Observation, key: bytes | None = None, **more: Any) -> Exchange:
        """Send a report."""
        self.sequence += 1
        told = {"sequence": self.sequence, "room": 100, "is_confidential": True} | more
        data = encode(Report(**told)._replace(observations=observations))
        return self.desk.exchange(NAME, sign(key or self.key(), "report", NAME, data), data)

    def orders(self, exchange: Exchange) -> Orders:
        """Decode the orders of an exchange, whose signature must be valid."""
        body, signature = exchange.reply["body"], exchange.reply["signature"]
        assert isinstance(body, bytes)
        assert is_signed(self.key(), "orders", NAME, body, str(signature))
        return decode(Orders, body)

    def errands(self, **more: Any) -> Sequence[Errand]:
        """Get errands."""
        return self.orders(self.report(**more)).errands


def observe(errand: Errand, body: bytes = OLD, copy: bytes | None = None) -> Observation:
    """Return what an honest observer reports about a page with this body."""
    packed = pack_body(body, copy, errand.digest)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    return Observation(
        *(errand.number, errand.epoch, errand.url, 1.0, 0.1),
        status=200,
        headers=(("content-type", "text/html"),),
        head=head,
        form=packed.form,
        data=packed.data,
        size=packed.size,
        digest=packed.digest,
        site_bytes=len(body),
    )


def stored(body: bytes) -> StoredCopy:
    """Return home's copy of the page."""
    return StoredCopy("", "", digest_body(body), "sha1:X", NOW_S - 100)
