"""Observer hub: the process at home that talks to remote observers; to the coordinator, it is another fetcher.

It leases the tasks of hosts that are assigned to observers, passes them on as errands, and turns the observations into
results as a fetcher does: archived, parsed and reported. What is sent to an observer, and what comes back, is on disk
before it is confirmed (``observers.db``). If hub or coordinator are killed, the coordinator leases the same URLs again,
and the hub knows which of them an observer has or has already observed. So nothing is requested twice, and nothing is
lost.

Servers pass on the observers' signed reports over a local socket. An observer is revoked, and its pages are fetched
again, if it sends impossible observations, or if its pages differ from what home gets itself.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from vedette.adapters.archive.replay import ImportedResponse, decode_body
from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.archive.warc_record import Revisit
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.status_file import SOCKET
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.net.ipc import Channel, ChannelClosed, Hello, Request, connect, listen
from vedette.adapters.observers.hub_store import ErrandRow, ObserverStore
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.messages import Ack, FetchSuccess, FetchTask, HostSettings, Recall, WorkBatch
from vedette.engine.observers.messages import Observation
from vedette.errors import StoreCorrupt, StoreError
from vedette.fetch.observers.costs import LinkMeter
from vedette.fetch.observers.delta import BodyRefused, PackedBody, unpack_body
from vedette.fetch.robots.rules import MAX_ROBOTS_BYTES
from vedette.model import Failure, FetchOutcome, FetchResponse, NoResponse
from vedette.runtime.observers.assignments import JUDGE_EVERY_S, Candidate, judge_hosts
from vedette.runtime.observers.checks import PageChecks
from vedette.runtime.observers.desk import ErrandDesk
from vedette.runtime.observers.service import HUB_SOCKET
from vedette.runtime.processes.fetcher import EXIT_GONE, FetcherProcess, build_parts
from vedette.runtime.processes.loop import print_error
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.processes.supervisor import ask_coordinator

CHORES_WALL_S = 1.0
MAX_UNREPORTED = 256
CLIENT_TIMEOUT_S = 30.0


class ObserverHub(FetcherProcess):
    """The observer hub: a fetcher process whose requests are sent by observers."""

    def __init__(self, *parts: Any, store: ObserverStore) -> None:  # noqa: ANN401 - those of a fetcher
        super().__init__(*parts)
        self._store = store
        self._desk = ErrandDesk(self._settings, store)
        self._checks = PageChecks(self._settings, self._budget)
        self._answered: dict[str, ErrandRow] = {row.url: row for row in store.list_answered()}
        self._reported: dict[int, list[str]] = {}
        self._clients: dict[int, tuple[Channel, float]] = {}
        self._chores_s = self._judged_s = 0.0
        self._listener = listen(self._settings.folder / HUB_SOCKET)
        self._client.watch_fd(self._listener.fileno(), lambda: None)
        self._client.watch_fd(self._checks.fd, self._checks.drain)

    def close(self) -> None:
        """Close the sockets, the archive and the store of the observer hub."""
        for channel, _ in self._clients.values():
            channel.close()
        self._listener.close()
        (self._settings.folder / HUB_SOCKET).unlink(missing_ok=True)
        self._checks.close()
        super().close()
        self._store.close()

    # from the coordinator

    def _handle_message(self, message: object) -> None:
        if isinstance(message, Ack):
            done = [
                url for serial in list(self._reported) if serial <= message.serial for url in self._reported.pop(serial)
            ]
            with self._store.open_transaction():
                self._store.delete_errands(done)
        if isinstance(message, WorkBatch):
            super()._handle_message(message._replace(hosts=(), tasks=()))
            self._desk.secrets = self._secrets
            self._desk.agent = self._queue.agent
            self._take_tasks(message.hosts, message.tasks)
        elif isinstance(message, Recall):
            self._queue.returned += self._desk.recall(message.hosts)
        else:
            super()._handle_message(message)

    def _take_tasks(self, hosts: Sequence[HostSettings], tasks: Sequence[FetchTask]) -> None:
        refused = self._desk.take_tasks(hosts, tasks)
        self._queue.returned += refused
        for row in self._store.find_errands([task.url for task in tasks]):
            if row.outcome is not None:
                self._answered[row.url] = row

    # from servers, with the reports of observers

    def _send_requests(self) -> None:
        """Do what a fetcher does when it looks for requests to send: serve observers, read pages, send checks."""
        self._accept_clients()
        for fd in list(self._clients):
            self._serve_client(fd)
        for url in [url for url in self._answered if url in self._desk.tasks]:
            if self._unacked_results + len(self._results) < MAX_UNREPORTED:
                self._read_observation(self._desk.tasks.pop(url), self._answered.pop(url))
        wall_s = self._clock.wall_now()
        if wall_s - self._chores_s >= CHORES_WALL_S:
            self._chores_s = wall_s
            self._run_chores()
        ask = self._checks.take_request(self._clock.now(), self._desk)
        if ask is not None:
            self._client.submit(*ask)

    def _accept_clients(self) -> None:
        with suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                channel = Channel(sock)
                self._clients[channel.fd] = channel, self._clock.wall_now()
                self._client.watch_fd(channel.fd, lambda: None)

    def _serve_client(self, fd: int) -> None:
        channel, since_s = self._clients[fd]
        try:
            for message in channel.receive():
                if isinstance(message, Request) and message.verb == "exchange":
                    channel.send(self._exchange(**message.arguments))
            channel.flush()
            if self._clock.wall_now() - since_s < CLIENT_TIMEOUT_S:
                return
        except ChannelClosed:
            pass
        self._client.unwatch_fd(fd)
        del self._clients[fd]
        channel.close()

    def _exchange(self, name: str, signature: str, body: bytes) -> dict[str, object]:
        """Exchange a report from an observer for orders; the report is on disk before the observer gets the reply."""
        try:
            exchange = self._desk.exchange(name, signature, body)
        except StoreError as error:
            print_error(str(error))
            return {"status": 503, "body": b"", "words": "The store of observers cannot be written.\n"}
        self._answered.update((row.url, row) for row in exchange.answered)
        self._queue.returned += exchange.returned
        self._queue.host_updates.update((update.name, update) for update in exchange.host_updates)
        return exchange.reply

    # what an observer saw

    def _read_observation(self, task: FetchTask, row: ErrandRow) -> None:
        """Read a page from an observation, as a fetcher does."""
        assert row.outcome is not None
        try:
            outcome = self._rebuild(task, row.outcome)
        except BodyRefused as error:
            self._desk.count_refused(row.observer, f"{task.url}: {error}")
            outcome = _fail(task, row.outcome, Failure.PROTOCOL, f"refused from {row.observer}: {error}")
        seen = row.outcome
        result = parse_outcome(task, outcome, self._queue.links, self._queue.rebuilds)
        sent = len(seen.data) + len(seen.head) + len(seen.request_head)
        is_refetch = task.copy is not None and seen.status == 200
        look_s = self._desk.measure(row, sent, is_refetch=is_refetch)
        result = result._replace(connection_s=look_s / self._clock.speed)
        if isinstance(result, FetchSuccess):
            result = result._replace(sent_bytes=sent)
        before = len(self._results)
        if seen.form == "same" and task.copy is not None and isinstance(result, FetchSuccess):
            self._results.append(self._archive_same(task, seen, result))
        else:
            self._finish(result, outcome)
        if len(self._results) > before and isinstance(told := self._results[-1], FetchSuccess):
            self._checks.consider(told, row.observer, self._desk)

    def _rebuild(self, task: FetchTask, seen: Observation) -> FetchOutcome:
        """Rebuild the response that an observer got; one without a new body counts as not modified."""
        if seen.failure:
            return _fail(task, seen, Failure.__members__.get(seen.failure, Failure.PROTOCOL), seen.detail[:500])
        status, copy = seen.status, b""
        if not 100 <= status <= 599 or not seen.head.startswith(b"HTTP/"):
            raise BodyRefused("it has no HTTP status line")
        if seen.form == "same":
            if task.copy is None or task.copy.digest != seen.digest:
                raise BodyRefused("it says that a page is unchanged which home does not have")
            status, body = 304, b""
        else:
            copy = self._load_copy(task) if seen.form == "delta" else b""
            limit = MAX_ROBOTS_BYTES + 1 if task.purpose == "robots" else self._settings.config.crawl.max_page_bytes
            body = unpack_body(PackedBody(seen.form, seen.data, seen.size, seen.digest), copy, limit)
        return FetchResponse(
            *(task.url, task.purpose, status, seen.headers, body, seen.at_s - seen.took_s, seen.at_s, seen.address),
            request_head=seen.request_head,
            head=seen.head,
            payload=body,
        )

    def _load_copy(self, task: FetchTask) -> bytes:
        """Load the archived body of a page for which an observer sent a difference."""
        folder = self._settings.folder
        with read_state(folder) as db:
            page = CrawlStore(db).get_pages([task.id]).get(task.id)
        if page is None or page.place is None:
            raise BodyRefused("home has no copy of the page")
        try:
            old = read_answer(folder / "warc", page.place)
        except StoreCorrupt as error:
            raise BodyRefused(str(error)) from None
        imported = ImportedResponse(task.url, 0.0, page.status, old.headers, old.payload, "")
        body = decode_body(imported, self._settings.config.crawl.max_page_bytes)
        if isinstance(body, Failure):
            raise BodyRefused("home cannot read its copy of the page")
        return body

    def _archive_same(self, task: FetchTask, seen: Observation, result: FetchSuccess) -> FetchSuccess:
        """Archive that a page was unchanged, by its digest."""
        copy = task.copy
        assert copy is not None
        revisit = Revisit("identical-payload-digest", task.url, copy.fetched_s, copy.payload_digest)
        answer = FetchResponse(
            *(task.url, task.purpose, seen.status, seen.headers, b"", result.started_s, result.ended_s, seen.address),
            request_head=seen.request_head,
            head=seen.head,
        )
        place, _ = self._write_archive(answer, revisit if copy.payload_digest else None, copy.payload_digest)
        return result._replace(place=place, payload_digest=copy.payload_digest)

    def _on_outcome(self, outcome: FetchOutcome) -> None:
        """Compare a page that home fetched itself with the observer's version."""
        updates = self._checks.on_outcome(outcome, self._queue.links, self._desk)
        self._queue.host_updates.update((update.name, update) for update in updates)

    def _send_report(self) -> None:
        self._reported[self._serial + 1] = [
            *(result.task.url for result in self._results),
            *(task.url for task in self._queue.returned),
        ]
        super()._send_report()

    def _run_chores(self) -> None:
        """Hand over released hosts, revoke observers that lie, move hosts by their costs."""
        if self._stopping_s is not None:
            return
        self._desk.load_assignments()
        released, returned = self._desk.release_hosts(self._clock.now())
        self._queue.returned += returned
        for what in (
            *self._desk.take_requests(),
            *([{"what": "released", "hosts": released}] if released else []),
            *self._judge_hosts(self._clock.now()),
        ):
            self._ask(what)

    def _judge_hosts(self, now_s: float) -> list[dict[str, Any]]:
        """Judge now and then by their costs who observes which host."""
        if now_s - self._judged_s < JUDGE_EVERY_S or not self._desk.observers:
            return []
        self._judged_s = now_s
        is_auto = any(row.is_auto for row in self._desk.observers.values())
        found = self._ask({"what": "candidates"}).get("hosts", {}) if is_auto else {}
        return judge_hosts(
            self._desk, {host: Candidate(LinkMeter(*meter), since_s) for host, (meter, since_s) in found.items()}, now_s
        )

    def _ask(self, what: dict[str, Any]) -> dict[str, Any]:
        """Ask the coordinator for something; an empty reply if it does not respond."""
        with suppress(OSError, ChannelClosed):
            return ask_coordinator(self._settings.folder, Request("observers", what), timeout_s=2.0)
        return {}


def _fail(task: FetchTask, seen: Observation, failure: Failure, detail: str) -> NoResponse:
    return NoResponse(task.url, task.purpose, failure, detail, seen.at_s - seen.took_s, seen.at_s)


def run_observer_hub(settings: RuntimeSettings) -> int:
    """Run the observer hub from start to end; return ``EXIT_GONE`` if there is no coordinator."""
    number = settings.workers
    try:
        channel = Channel(connect(settings.folder / SOCKET))
        channel.send(Hello(number, os.getpid()))
    except (OSError, ChannelClosed):
        return EXIT_GONE
    process = build_hub(settings, number, channel)
    try:
        process.run()
    except ChannelClosed:
        return EXIT_GONE
    finally:
        process.close()
    return 0


def build_hub(settings: RuntimeSettings, number: int, channel: Channel) -> ObserverHub:
    """Build the observer hub on a channel to the coordinator."""
    return ObserverHub(*build_parts(settings, number, channel), store=ObserverStore(settings.folder))
