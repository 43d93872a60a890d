"""A web in a dictionary and a simulated clock: what coordinator and fetchers need to run without sockets.

``MemoryWeb`` defines the outcomes of requests. ``Drive`` runs a coordinator over a database in memory and some
fetchers, passes assignments and reports between them as values (sometimes encoded, as across processes), and fails if
nothing moves while work is left. ``log`` contains every request, so that tests can check the crawl.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TypeVar

from vedette.adapters.crawl_store.minhash_bands import BandTable
from vedette.adapters.crawl_store.store import CrawlStore, create_tables
from vedette.adapters.net.ipc import decode_message, encode_message
from vedette.adapters.url_store.rows import create_url_tables
from vedette.adapters.url_store.store import UrlStore
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.fetcher.fetcher import Fetcher
from vedette.engine.messages import ArchiveLocation, FetchReport, FetchResult, FetchSuccess, Recall, WorkBatch
from vedette.engine.ports import PageRow
from vedette.engine.scheduling.schedule import Schedule
from vedette.engine.scheduling.url_order import NO_IMPACT, ImpactEstimates
from vedette.fetch.connect_to import Endpoint, find_endpoint
from vedette.model import (
    Failure,
    FetchOutcome,
    FetchRequest,
    FetchResponse,
    Headers,
    NoResponse,
    Purpose,
    Site,
    origin_of,
)
from vedette.refresh.policies.fixed import Fixed

__all__ = [
    "FAR_S",
    "Asked",
    "Drive",
    "MemoryWeb",
    "Named",
    "Reply",
    "Served",
    "Server",
    "Worker",
    "moved",
    "page",
    "robots",
    "rules_for",
]

LOOKUP_S = 0.05
MOST_STEPS = 100_000
FAR_S = 1e7

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response and the time it takes."""

    status: int = 200
    headers: Headers = ()
    body: bytes = b""
    took_s: float = 0.1


Served = Reply | Failure
Server = Callable[[float], Served]
Named = tuple[str, ...] | Failure


def page(*links: str, title: str = "", took_s: float = 0.1, headers: Headers = ()) -> Reply:
    """Return a page with these links."""
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    body = f"<title>{title}</title>{anchors}".encode()
    return Reply(200, (("content-type", "text/html"), *headers), body, took_s)


def robots(*lines: str) -> Reply:
    """Return a robots.txt for all crawlers."""
    return Reply(200, (("content-type", "text/plain"),), "\n".join(("User-agent: *", *lines)).encode())


def moved(location: str, status: int = 301) -> Reply:
    """Return a redirect."""
    return Reply(status, (("location", location),))


@dataclass(slots=True)
class MemoryWeb:
    """URLs and their responses, constant or by time; host names and their addresses, public and distinct by default."""

    replies: dict[str, Served | Server] = field(default_factory=dict)
    names: dict[str, Named | Callable[[float], Named]] = field(default_factory=dict)

    def reply(self, url: str, now_s: float) -> Served:
        """Return the outcome of a request; unknown URLs are not found."""
        served = self.replies.get(url, Reply(404))
        return served(now_s) if callable(served) else served

    def look_up(self, host: str, now_s: float) -> Named:
        """Return the resolver's response for a name."""
        own = f"93.184.{len(host) % 250}.{sum(host.encode()) % 250 + 1}"
        found = self.names.get(host, (own,))
        return found(now_s) if callable(found) else found


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the server saw it."""

    url: str
    purpose: Purpose
    host: str
    address: str
    worker: int
    sent_s: float
    ended_s: float
    headers: Headers


@dataclass(slots=True)
class Worker:
    """A fetcher with its unreported results and its requests in flight.

    ``run`` distinguishes it from its predecessors.
    """

    asker: Fetcher
    run: int
    results: list[FetchResult] = field(default_factory=list)
    in_flight: int = 0
    serial: int = 0

    def report(self) -> FetchReport | None:
        """Return what happened since the last report, if anything."""
        asker = self.asker
        if not (self.results or asker.returned or asker.host_updates):
            return None
        self.serial += 1
        answer = FetchReport(
            self.serial, tuple(self.results), tuple(asker.returned), tuple(asker.host_updates.values())
        )
        self.results, asker.returned, asker.host_updates = [], [], {}
        return answer


def rules_for(*starts: str | Site, **settings: object) -> CrawlRules:
    """Return the rules of a crawl with these starts."""
    sites = tuple(Site(start) if isinstance(start, str) else start for start in starts)
    return CrawlRules(sites=sites, **settings)  # type: ignore[arg-type]  # each test names real fields


def _database() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    create_url_tables(db)
    create_tables(db)
    return db


def memory_book(*hosts: str) -> CrawlStore:
    """Return an empty store that only knows these host names."""
    db = _database()
    UrlStore(db, 1).intern_hosts(hosts)
    return CrawlStore(db)


class Drive:
    """One run of a crawl over one web in simulated time; ``db`` is passed on to the next run."""

    def __init__(
        self,
        web: MemoryWeb,
        rules: CrawlRules,
        *,
        workers: int = 2,
        room: int = 100,
        start_s: float = 1000.0,
        db: sqlite3.Connection | None = None,
        schedule: Schedule | None = None,
        hold_s: float = 20.0,
        patient: bool = False,
        foresight: ImpactEstimates = NO_IMPACT,
    ) -> None:
        self.web, self.rules, self.room, self.now_s = web, rules, room, start_s
        self.db = db or _database()
        self.urls = UrlStore(self.db, epoch=1)
        self.book = CrawlStore(self.db)
        schedule = schedule or Schedule(recrawl=rules.recrawl, sources=Fixed())
        copies = DuplicateDetector(BandTable(None, self.urls.secret), self.book, self.urls)
        self.keeper = Coordinator(rules, self.urls, self.book, schedule, copies, workers, foresight)
        self.hold_s, self.patient = hold_s, patient
        self.log: list[Asked] = []
        self.looked_up: list[str] = []
        self.workers: dict[int, Worker] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        for number in range(workers):
            self.start_worker(number)

    # beginning and end

    def begin(self, *, clean: bool = True) -> "Drive":
        """Start a new crawl, or continue that of an earlier drive over the same database."""
        self.urls.requeue_expired(float("inf"))
        for row in self.book.load_hosts():
            self.keeper.host_table.restore_host(row, row.ready_s)
        self.keeper.start(self.urls.host_names_with_work(), self.book.load_robots(), self.now_s, clean=clean)
        self.keeper.add_starts(self.now_s)
        return self

    def run(self, for_s: float = FAR_S, until: Callable[[], bool] | None = None) -> "Drive":
        """Run until the crawl or the time is over, or a condition is true; fail if nothing moves."""
        end_s = self.now_s + for_s
        for _ in range(MOST_STEPS):
            self._settle()
            if (until is not None and until()) or self._is_over():
                return self
            soonest_s = self._soonest_s()
            if soonest_s > end_s:
                self.now_s = end_s
                return self
            self.now_s = max(self.now_s, soonest_s)
            while self._events and self._events[0][0] <= self.now_s:
                heappop(self._events)[2]()
        raise AssertionError("the crawl does not come to an end")

    def expect(self, at_s: float) -> None:
        """Expect an event from outside the crawl at a time: until then it may have nothing to do."""
        self._later(at_s, lambda: None)

    def after(self, *, clean: bool, **changes: object) -> "Drive":
        """Return the next run over the same database, from the same time on."""
        if clean:
            self._report()
        rules = replace(self.rules, **changes)  # type: ignore[arg-type]  # each test names real fields
        later = Drive(self.web, rules, workers=len(self.workers), room=self.room, start_s=self.now_s, db=self.db)
        return later.begin(clean=clean)

    def start_worker(self, number: int) -> Worker:
        """Start a fetcher, or restart it without tasks."""
        run = self.workers[number].run + 1 if number in self.workers else 0
        asker = Fetcher("vedette/test", self.rules.address_delay_s, self.hold_s)
        asker.accept_batch(WorkBatch(sites=self.keeper.rules.sites))
        self.workers[number] = Worker(asker, run)
        return self.workers[number]

    def kill_worker(self, number: int) -> Worker:
        """Kill a fetcher, with all its unreported results; another takes its place."""
        dead = self.workers[number]
        self.keeper.on_fetcher_lost(number, self.now_s)
        self.start_worker(number)
        return dead

    def rule(self, rules: CrawlRules) -> None:
        """Change the rules, as an operator's command would."""
        self.rules = rules
        recalled = self.keeper.apply_rules(rules, self.urls.host_names_with_work(), self.now_s)
        for worker in self.workers.values():
            worker.asker.accept_batch(WorkBatch(sites=rules.sites))
            worker.asker.recall(Recall(recalled))

    # what came of it

    def asked_urls(self, purpose: Purpose = "page") -> list[str]:
        """List the requested URLs in order."""
        return [asked.url for asked in self.log if asked.purpose == purpose]

    def asked_of(self, host: str) -> list[Asked]:
        """List the requests to one host in order."""
        return [asked for asked in self.log if asked.host == host]

    def pages(self) -> dict[str, PageRow]:
        """Return the stored pages by URL."""
        return dict(self.book.iter_pages())

    def depths(self) -> dict[str, int]:
        """Return the distance of each known URL from a start URL."""
        return dict(self.db.execute("SELECT url, depth FROM url"))

    def refused(self) -> dict[str, str]:
        """Return the excluded URLs in the order in which they were found, with the reason."""
        return {url: why for url, why in self._notes() if "robots.txt" in why or "scope" in why}

    def given_up(self) -> dict[str, str]:
        """Return the failed URLs, with the reason."""
        return {url: why for url, why in self._notes() if "robots.txt" not in why and "scope" not in why}

    def waiting(self) -> int:
        """Return the number of waiting URLs."""
        return self.urls.get_counts().waiting

    def _notes(self) -> list[tuple[str, str]]:
        return self.db.execute("SELECT url, why FROM note JOIN url ON id = url_id ORDER BY id").fetchall()

    # time

    def _is_over(self) -> bool:
        if self._events or self.rules.recrawl:
            return False
        if self.patient:  # also for what failed and is tried again hours later
            return self.keeper.get_ending(self.now_s, FAR_S) == "done"
        return not self.keeper.pages_out and self.keeper.get_ending(self.now_s, -FAR_S) == "done"

    def _soonest_s(self) -> float:
        askers = (worker.asker.next_s() for worker in self.workers.values() if worker.in_flight < self.room)
        times = [self.keeper.next_s(), self._due_s(), *askers]
        ahead = [time_s for time_s in times if time_s is not None and time_s > self.now_s]
        ahead += [time_s for time_s, _, _ in self._events[:1]]
        assert ahead, "the crawl stands still with work left"
        return min(ahead)

    def _due_s(self) -> float | None:
        """Return when a known page is due, or a failed one is retried."""
        tables = ("page", "retry") if self.rules.recrawl else ("retry",)
        times = [self.db.execute(f"SELECT min(due_s) FROM {table}").fetchone()[0] for table in tables]  # noqa: S608 - ours
        return min((time_s for time_s in times if time_s is not None), default=None)

    def _settle(self) -> None:
        """Process everything that can happen at this time."""
        for _ in range(MOST_STEPS):
            self.keeper.wake_due_pages(self.now_s)
            if not any((self._hand_out(), self._send(), self._report())):
                return
        raise AssertionError("there is always something more to do at one and the same moment")

    def _report(self) -> bool:
        reports = [
            (number, answer) for number, worker in self.workers.items() if (answer := worker.report()) is not None
        ]
        for number, answer in reports:
            self.keeper.apply_report(number, self._carried(answer))
        return bool(reports)

    def _hand_out(self) -> bool:
        before = self.keeper.next_s()
        orders, lookups = self.keeper.assign_work(self.now_s, self.now_s + 300.0, dict.fromkeys(self.workers, 1000))
        for order in orders:
            self.workers[order.worker].asker.accept_batch(self._carried(order.batch))
        for host in lookups:
            self.looked_up.append(host)
            self._later(self.now_s + LOOKUP_S, self._naming(host, self.web.look_up(host, self.now_s)))
        after = self.keeper.next_s()
        return bool(orders or lookups or after != before or (after is not None and after <= self.now_s))

    def _naming(self, host: str, named: Named) -> Callable[[], None]:
        addresses, failure = ((), named) if isinstance(named, Failure) else (named, None)
        return lambda: self.keeper.host_table.on_dns(host, addresses, failure, self.now_s)

    def _send(self) -> bool:
        sent = False
        for number, worker in self.workers.items():
            while worker.in_flight < self.room and (ask := worker.asker.take_request(self.now_s)) is not None:
                self._ask(number, worker, ask)
                sent = True
        return sent

    def _ask(self, number: int, worker: Worker, ask: FetchRequest) -> None:
        origin = origin_of(ask.url)
        route = find_endpoint(origin, self.rules.detours)
        route = route or Endpoint(worker.asker.hosts[origin.host].settings.address, origin.port)
        outcome = self._outcome(ask, route, self.web.reply(ask.url, self.now_s))
        headers = ask.headers + ask.secret_headers
        asked = Asked(ask.url, ask.purpose, origin.host, route.address, number, self.now_s, outcome.ended_s, headers)
        self.log.append(asked)
        worker.in_flight += 1
        self._later(outcome.ended_s, lambda: self._came(worker, origin.host, outcome))

    def _came(self, worker: Worker, host: str, outcome: FetchOutcome) -> None:
        worker.in_flight -= 1
        result = worker.asker.on_outcome(host, outcome)
        if isinstance(result, FetchSuccess):
            result = result._replace(place=ArchiveLocation("memory", len(self.log), 1))
        worker.results.append(result)

    def _outcome(self, ask: FetchRequest, route: Endpoint, served: Served) -> FetchOutcome:
        if isinstance(served, Failure):
            return NoResponse(ask.url, ask.purpose, served, "", self.now_s, self.now_s + 1.0)
        ended_s = self.now_s + served.took_s
        return FetchResponse(
            ask.url, ask.purpose, served.status, served.headers, served.body, self.now_s, ended_s, route.address
        )

    def _carried(self, message: Message) -> Message:
        """Pass a message on; encode every third one, as between processes."""
        self._number += 1
        if self._number % 3:
            return message
        carried = decode_message(encode_message(message))
        assert type(carried) is type(message)
        return carried

    def _later(self, at_s: float, event: Callable[[], None]) -> None:
        self._number += 1
        heappush(self._events, (at_s, self._number, event))
