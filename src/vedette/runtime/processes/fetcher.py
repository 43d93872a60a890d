"""Fetcher process: request what the coordinator assigned, archive every response, and report.

It never waits for a host: it sleeps until a response or an assignment arrives, or the earliest host may be requested. A
request in flight for a while no longer takes one of the ``concurrency`` slots, so hanging hosts take no slot from
responsive ones. Reported results that the coordinator has not yet made durable are bounded, so that a crash costs few
repeated requests.

Its tasks are leased for a time, which every message to the coordinator renews. A fetcher that was stopped for longer
sends no more requests: the coordinator has assigned its tasks to another.

Whatever is assigned, an address or domain never gets more requests a day than ``daily_limit``: each is counted in the
request budget before it is sent.
"""

import os
import resource
from contextlib import suppress
from dataclasses import replace

from vedette.adapters.archive.warc_record import Exchange, Revisit, compute_digest
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.adapters.crawl_store.data_folder import explain_errors
from vedette.adapters.crawl_store.request_budget import RequestBudget
from vedette.adapters.crawl_store.status_file import SOCKET
from vedette.adapters.documents.reader import DocumentFailure, DocumentReader, DocumentText
from vedette.adapters.files.secret_files import read_secrets
from vedette.adapters.net.http import ConnectionSettings, HttpClient, Limits
from vedette.adapters.net.ipc import Channel, ChannelClosed, Hello, connect
from vedette.adapters.net.renderer import PageRenderer, find_browser
from vedette.engine.fetcher.fetcher import Fetcher
from vedette.engine.fetcher.page_reader import add_document, add_rendering
from vedette.engine.messages import (
    Ack,
    ArchiveLocation,
    FetchReport,
    FetchResult,
    FetchSuccess,
    FetchTask,
    PartReply,
    Recall,
    Stop,
    WorkBatch,
)
from vedette.errors import ConfigError
from vedette.fetch.connect_to import Endpoint, find_endpoint
from vedette.fetch.credentials import Secrets, select_headers
from vedette.model import FetchOutcome, FetchRequest, FetchResponse, Headers, Origin, Site, origin_of
from vedette.runtime.processes.housekeeping import archive_file_limit
from vedette.runtime.processes.loop import print_error
from vedette.runtime.processes.render_jobs import FinishedPage, OpenPage, PageRendering
from vedette.runtime.processes.settings import RuntimeSettings

MAX_SLEEP_S = 0.1
HOLD_WALL_S = 20.0
MAX_UNACKED = 64
# A report costs the coordinator about 5 ms, and .9 ms for each result. It fills up for a moment if there is more to
# fetch, and for longer while the coordinator is still busy with the one before.
REPORT_RESULTS = 32
REPORT_WALL_S = 0.05
BUSY_REPORT_WALL_S = 0.5
STOP_TIMEOUT_S = 1.5
# Younger requests take a slot of ``concurrency``; older ones only one of the sixteen times as many that may be open.
YOUNG_S = 1.0
OPEN_FACTOR = 16
HEARTBEATS_PER_LEASE = 5
EXIT_GONE = 3


class FetcherProcess:
    """The fetcher process of one worker: its tasks, HTTP client, document reader and WARC archive."""

    def __init__(
        self,
        settings: RuntimeSettings,
        channel: Channel,
        client: HttpClient,
        queue: Fetcher,
        budget: RequestBudget,
        archive: WarcWriter,
        documents: DocumentReader[tuple[FetchSuccess, FetchResponse]],
        rendering: PageRendering,
    ) -> None:
        self._settings, self._clock, self._lease_wall_s = settings, settings.clock, settings.lease_wall_s
        self._shard = settings.shard
        self._channel, self._client, self._queue = channel, client, queue
        self._budget, self._archive = budget, archive
        self._documents, self._rendering = documents, rendering
        self._client.watch_fd(channel.fd, lambda: None)
        self._client.watch_fd(documents.fd, lambda: None)
        self._client.watch_fd(rendering.renderer.fd, lambda: None)
        self._secrets: dict[Site, Secrets] = {}
        self._results: list[FetchResult] = []
        self._serial = 0
        self._unacked: dict[int, int] = {}
        self._unacked_results = 0
        self._young: dict[str, float] = {}
        self._detours: dict[Origin, Endpoint | None] = {}
        self._last_report_s = self._last_wake_s = settings.clock.wall_now()
        self._stopping_s: float | None = None

    def run(self) -> None:
        """Run the fetcher process until the coordinator says stop, or is gone."""
        while not self._is_done():
            self._check_leases()
            for message in self._channel.receive():
                self._handle_message(message)
            self._send_requests()
            for outcome in self._client.wait(self._get_sleep_s()):
                self._on_outcome(outcome)
                if len(self._results) >= REPORT_RESULTS:
                    self._send_report()
            for (result, answer), found in self._documents.collect() if self._documents.pending else ():
                self._results.append(self._read_document(result, answer, found))
            for page in self._rendering.collect() if self._rendering.is_busy else ():
                self._results.append(self._read_rendered(page))
            if self._is_time_to_report():
                self._send_report()

    def close(self) -> None:
        """Close the sockets and the archive of the fetcher process."""
        self._documents.close()
        self._rendering.renderer.close()
        self._client.close()
        self._budget.close()
        with suppress(OSError):  # the disk is full: unacknowledged pages will be fetched again
            self._archive.close()

    def _check_leases(self) -> None:
        """Drop the fetcher's tasks if it slept through the time of its leases."""
        wall_s, before_s = self._clock.wall_now(), self._last_wake_s
        self._last_wake_s = wall_s
        if wall_s - before_s > self._lease_wall_s:
            raise ChannelClosed("slept for longer than its leases last")

    def _handle_message(self, message: object) -> None:
        if isinstance(message, WorkBatch):
            self._queue.accept_batch(message)
            if message.sites is not None:
                self._secrets = {site: _load_secrets(site) for site in message.sites if site.secrets}
        elif isinstance(message, Recall):
            self._queue.recall(message)
        elif isinstance(message, Ack):
            for serial in [serial for serial in self._unacked if serial <= message.serial]:
                self._unacked_results -= self._unacked.pop(serial)
        elif isinstance(message, PartReply):
            self._rendering.take_reply(message)
        elif isinstance(message, Stop):
            self._stopping_s = self._clock.wall_now()

    def _send_requests(self) -> None:
        while self._stopping_s is None and self._has_room():
            ask = self._queue.take_request(self._clock.now())
            if ask is None:
                return
            route = self._get_route(ask)
            if self._is_within_limit(origin_of(ask.url).host, route.address):
                self._young[ask.url] = self._clock.wall_now()
                self._client.submit(self._add_secrets(ask) if self._secrets else ask, route)

    def _is_within_limit(self, host: str, address: str) -> bool:
        """Count a request that is about to be sent; take it back if its address or domain got too many today."""
        now_s = self._clock.now()
        refusal = self._budget.spend(host, address, now_s)
        if refusal is not None:
            self._queue.take_back(host, refusal.find_retry_s(now_s), str(refusal))
        return refusal is None

    def _add_secrets(self, ask: FetchRequest) -> FetchRequest:
        found = (select_headers(secrets, site, ask.url) for site, secrets in self._secrets.items())
        headers = next((headers for headers in found if headers), ())
        return replace(ask, secret_headers=_join_cookies(headers + ask.secret_headers)) if headers else ask

    def _has_room(self) -> bool:
        if self._shard is not None and not self._shard.lease.may_request():
            return False  # another node may own the shard soon
        concurrency = self._settings.config.crawl.concurrency
        if self._unacked_results >= MAX_UNACKED or self._client.in_flight >= OPEN_FACTOR * concurrency:
            return False
        self._forget_old_requests()
        return len(self._young) < concurrency

    def _forget_old_requests(self) -> None:
        old_s = self._clock.wall_now() - YOUNG_S
        while self._young and (first := next(iter(self._young.items())))[1] < old_s:
            del self._young[first[0]]

    def _get_route(self, ask: FetchRequest) -> Endpoint:
        origin = origin_of(ask.url)
        if origin not in self._detours:
            self._detours[origin] = find_endpoint(origin, self._settings.detours)
        return self._detours[origin] or Endpoint(self._queue.hosts[origin.host].settings.address, origin.port)

    def _get_sleep_s(self) -> float:
        ready_s = self._queue.next_s()
        if ready_s is None or not self._has_room():
            return self._get_longest_sleep_s()
        return min(max(self._clock.to_wall_s(ready_s - self._clock.now()), 0.0), self._get_longest_sleep_s())

    def _get_longest_sleep_s(self) -> float:
        is_busy = self._results or self._documents.pending or self._rendering.pending
        return REPORT_WALL_S if is_busy else MAX_SLEEP_S

    def _on_outcome(self, outcome: FetchOutcome) -> None:
        self._young.pop(outcome.url, None)
        self._finish(self._queue.on_outcome(origin_of(outcome.url).host, outcome), outcome)

    def _finish(self, result: FetchResult, outcome: FetchOutcome) -> None:
        """Archive a response, and report its result, once documents and pages with scripts were read elsewhere."""
        if isinstance(outcome, FetchResponse) and isinstance(result, FetchSuccess):
            result = self._archive_answer(result, outcome)
            if result.kind == "document":  # read elsewhere, since it may take any time
                self._documents.submit((result, outcome), outcome.body)
                return
            if result.should_render:
                self._rendering.submit(result, outcome)
                return
        if result.task.part_of is not None:
            result = self._rendering.take_part(result)
        self._results.append(self._mark_private(result) if self._secrets else result)

    def _mark_private(self, result: FetchResult) -> FetchResult:
        """Mark a fetched page as private with the site whose credentials were used, if any."""
        if not isinstance(result, FetchSuccess) or result.content is None:
            return result
        url = result.task.url
        opened = (site.start for site, secrets in self._secrets.items() if select_headers(secrets, site, url))
        return result._replace(content=result.content._replace(private=next(opened, "")))

    def _read_document(
        self, result: FetchSuccess, answer: FetchResponse, found: DocumentText | DocumentFailure
    ) -> FetchResult:
        text, trouble = (found.text, "") if isinstance(found, DocumentText) else ("", str(found.reason))
        read = add_document(
            result, answer, self._queue.links, title=found.title, text=text, trouble=trouble, kind=found.kind
        )
        return self._mark_private(read) if self._secrets else read

    def _read_rendered(self, page: FinishedPage) -> FetchResult:
        """Parse a page again after its script ran, and archive the rendering, unless it is archived already."""
        read = add_rendering(page.result, page.rendered, self._queue.links, page.rendering)
        copy, rendered = page.result.task.copy, page.rendered
        if rendered is not None and read.digest not in {page.result.digest, copy.digest if copy else ""}:
            place, digest = self._write_archive(rendered, None, compute_digest(rendered.payload), is_rendered=True)
            read = read._replace(place=place, payload_digest=digest)
        return self._mark_private(read) if self._secrets else read

    def _archive_answer(self, result: FetchSuccess, answer: FetchResponse) -> FetchSuccess:
        """Archive a response in the fetcher process; one whose bytes are archived already as a revisit."""
        payload_digest = compute_digest(answer.payload)
        revisit = _build_revisit(result.task, answer, payload_digest)
        place, _ = self._write_archive(answer, revisit, payload_digest)
        kept = result.task.copy.payload_digest if revisit and result.task.copy else payload_digest
        return result._replace(place=place, payload_digest=kept)

    def _write_archive(
        self, answer: FetchResponse, revisit: Revisit | None, payload_digest: str, *, is_rendered: bool = False
    ) -> tuple[ArchiveLocation, str]:
        exchange = Exchange(
            answer.url,
            answer.ended_s,
            answer.request_head,
            answer.head,
            answer.payload,
            answer.address,
            revisit,
            payload_digest=payload_digest,
            is_rendered=is_rendered,
        )
        with explain_errors(self._settings.folder):
            stood = self._archive.append(exchange)
        return ArchiveLocation(stood.file, stood.offset, stood.length), payload_digest

    def _is_time_to_report(self) -> bool:
        """Check whether the fetcher should report: after a moment, at once when idle, and as a sign of life."""
        silent_s = self._clock.wall_now() - self._last_report_s
        if self._results or self._queue.returned or self._queue.host_updates:
            is_fetching = self._client.in_flight or self._get_sleep_s() < REPORT_WALL_S
            return silent_s > (BUSY_REPORT_WALL_S if self._unacked else REPORT_WALL_S) or not is_fetching
        self._channel.flush()
        return silent_s * HEARTBEATS_PER_LEASE > self._lease_wall_s

    def _send_report(self) -> None:
        asker = self._queue
        self._last_report_s = self._clock.wall_now()
        self._serial += 1
        self._unacked[self._serial] = len(self._results)
        self._unacked_results += len(self._results)
        with explain_errors(self._settings.folder):
            archived = self._archive.flush()
        results, self._results = tuple(self._results), []
        returned, asker.returned = tuple(asker.returned), []
        news, asker.host_updates = tuple(asker.host_updates.values()), {}
        self._channel.send(FetchReport(self._serial, results, returned, news, tuple(archived.items())))

    def _is_done(self) -> bool:
        if self._stopping_s is None:
            return False
        waited_s = self._clock.wall_now() - self._stopping_s
        pending = self._documents.pending or self._rendering.pending
        idle = not (self._client.in_flight or pending or self._unacked)
        return idle or waited_s > STOP_TIMEOUT_S


def _join_cookies(headers: Headers) -> Headers:
    """Join the cookies of a site's credentials and those of a redirect chain into one header."""
    cookies = "; ".join(value for name, value in headers if name == "cookie")
    others = tuple(header for header in headers if header[0] != "cookie")
    return (*others, ("cookie", cookies)) if cookies else others


def _load_secrets(site: Site) -> Secrets:
    """Load the secrets of a site for the fetcher; if unreadable, warn and fetch without them."""
    try:
        return read_secrets(site.secrets)
    except ConfigError as error:
        print_error(f"{site.start} is fetched without its secrets: {error}")
        return Secrets()


def _build_revisit(task: FetchTask, answer: FetchResponse, payload_digest: str) -> Revisit | None:
    copy = task.copy
    if copy is None or not copy.payload_digest:
        return None
    if answer.status == 304:
        return Revisit("server-not-modified", task.url, copy.fetched_s, copy.payload_digest)
    if answer.status == 200 and payload_digest == copy.payload_digest:
        return Revisit("identical-payload-digest", task.url, copy.fetched_s, copy.payload_digest)
    return None


def run_fetcher(settings: RuntimeSettings, number: int) -> int:
    """Run a fetcher process from start to end; return ``EXIT_GONE`` if there is no coordinator."""
    try:
        channel = Channel(connect(settings.folder / SOCKET))
        channel.send(Hello(number, os.getpid()))
    except (OSError, ChannelClosed):
        return EXIT_GONE
    _raise_file_limit()
    process = build_process(settings, number, channel)
    try:
        process.run()
    except ChannelClosed:
        return EXIT_GONE
    finally:
        process.close()
    return 0


def build_process(settings: RuntimeSettings, number: int, channel: Channel) -> FetcherProcess:
    """Build the fetcher process on a channel to the coordinator."""
    return FetcherProcess(*build_parts(settings, number, channel))


FetcherParts = tuple[
    RuntimeSettings,
    Channel,
    HttpClient,
    Fetcher,
    RequestBudget,
    WarcWriter,
    DocumentReader[tuple[FetchSuccess, FetchResponse]],
    PageRendering,
]


def build_parts(settings: RuntimeSettings, number: int, channel: Channel) -> FetcherParts:
    """Build the parts of a fetcher process, or of another process that reports to the coordinator like one."""
    crawl, clock = settings.config.crawl, settings.clock
    limits = Limits(crawl.connect_timeout_s, crawl.timeout_s, crawl.max_page_bytes)
    client = HttpClient(clock, limits, ConnectionSettings(crawl.proxy, crawl.ca_file))
    hold_s = HOLD_WALL_S * clock.speed
    queue = Fetcher(settings.agent, crawl.address_delay_s, hold_s, crawl.latency_factor, speed=clock.speed)
    budget = _build_budget(settings)
    largest = archive_file_limit(settings.config.store, settings.workers)
    software = settings.agent.partition(" ")[0]
    archive = WarcWriter(settings.folder / "warc", f"w{number}", software, rotate_bytes=largest)
    renderer: PageRenderer[OpenPage] = PageRenderer(find_browser(), sandbox=crawl.browser != "unsandboxed")
    rendering = PageRendering(renderer, number, settings.agent, clock, channel.send)
    return settings, channel, client, queue, budget, archive, DocumentReader(), rendering


def _build_budget(settings: RuntimeSettings) -> RequestBudget:
    """Build the budget of daily requests; the shards of a cluster share one."""
    limit = settings.config.crawl.daily_limit
    if settings.shard is None:
        return RequestBudget(settings.folder, limit)
    from vedette.adapters.exchange.daily_limit import SharedRequestBudget  # only a cluster needs it

    return SharedRequestBudget(settings.folder, limit, settings.clock.speed)


def _raise_file_limit() -> None:
    """Raise the fetcher's limit on open files: hanging hosts hold sockets, and 1 024 is soon exceeded."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
