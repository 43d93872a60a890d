"""A worker process: asks for what the keeper ordered, archives every answer, and reports.

It never waits for a host: it sleeps until an answer or an order comes, or the earliest host may be asked. A request
that has been under way for a while no longer takes one of the ``concurrency`` places, so hosts that hang keep no place
from those that answer. What it has reported and the keeper has not yet made durable is bounded, so that a crash costs
few repeated requests.

What it holds, it holds for a time (the lease), which every word to the keeper renews. One that was stopped for longer
than that asks for nothing more: the keeper has given its errands to another.
"""

import os
import resource
import sys
from contextlib import suppress
from dataclasses import replace

from vedette.adapters.archive.warc_writer import Exchange, Revisit, WarcWriter, digest
from vedette.adapters.crawl_store.data_folder import said_plainly
from vedette.adapters.files.pdf import PdfFailure, PdfReader, PdfText
from vedette.adapters.files.secret_files import read_secrets
from vedette.adapters.net.http import Client, Limits, Way
from vedette.adapters.net.ipc import Channel, Gone, connect
from vedette.engine.fetcher.fetcher import Asker
from vedette.engine.fetcher.page_reader import document_of, read_document
from vedette.engine.messages import Errand, Fetched, Noted, Orders, Place, Recall, Report, Result, Stop
from vedette.errors import ConfigError
from vedette.fetch.connect_to import Route, detour_for
from vedette.fetch.credentials import Secrets, headers_for
from vedette.model import Answer, Ask, Origin, Outcome, Site, origin_of
from vedette.runtime.processes.coordinator import SOCKET, Hello
from vedette.runtime.processes.housekeeping import rotate_bytes
from vedette.runtime.processes.settings import LiveSettings

__all__ = ["WorkerProcess", "run_worker"]

LONGEST_SLEEP_S = 0.1
HOLD_WALL_S = 20.0
MOST_UNNOTED = 32
# Small reports: the keeper works on one while the next is being read. None waits longer than this to become full.
REPORT_RESULTS = 16
REPORT_WALL_S = 0.05
STOP_PATIENCE_S = 1.5
# Younger requests take a place of ``concurrency``; older ones only one of the sixteen times as many that may be open.
YOUNG_S = 1.0
OPEN_TIMES = 16
WORDS_PER_LEASE = 5
GONE = 3


class WorkerProcess:
    """Orders, sockets and archive of one worker."""

    def __init__(self, settings: LiveSettings, number: int, channel: Channel) -> None:
        crawl = settings.config.crawl
        self._settings = settings
        self._clock = settings.clock
        self._lease_wall_s = settings.lease_wall_s
        self._channel = channel
        limits = Limits(crawl.connect_timeout_s, crawl.timeout_s, crawl.max_page_bytes)
        self._client = Client(settings.clock, limits, Way(crawl.proxy, crawl.ca_file))
        self._client.watch(channel.fd, lambda: None)
        hold_s = HOLD_WALL_S * settings.clock.speed
        self._asker = Asker(
            settings.agent, crawl.address_delay_s, hold_s, crawl.latency_factor, speed=settings.clock.speed
        )
        self._secrets: dict[Site, Secrets] = {}
        software, largest = settings.agent.partition(" ")[0], rotate_bytes(settings.config.store, settings.workers)
        self._archive = WarcWriter(settings.folder / "warc", f"w{number}", software, rotate_bytes=largest)
        self._results: list[Result] = []
        self._serial = self._noted = 0
        self._unnoted: dict[int, int] = {}
        self._unnoted_results = 0
        self._young: dict[str, float] = {}
        self._detours: dict[Origin, Route | None] = {}
        self._documents: PdfReader[tuple[Fetched, Answer]] = PdfReader()
        self._client.watch(self._documents.fd, lambda: None)
        self._spoke_s = self._awake_s = settings.clock.wall()
        self._stopping_s: float | None = None

    def run(self) -> None:
        """Until the keeper says stop, or is gone."""
        while not self._is_done():
            self._wake()
            for message in self._channel.receive():
                self._message(message)
            self._send()
            for outcome in self._client.wait(self._pause_s()):
                self._came(outcome)
                if len(self._results) >= REPORT_RESULTS:
                    self._report()
            for (result, answer), found in self._documents.finished() if self._documents.pending else ():
                self._results.append(self._read_document(result, answer, found))
            if self._is_time_to_report():
                self._report()

    def close(self) -> None:
        """Let go of sockets and archive."""
        self._documents.close()
        self._client.close()
        with suppress(OSError):  # the disk is full: what is not acknowledged will be fetched again
            self._archive.close()

    def _wake(self) -> None:
        """Whoever slept through the time of its leases holds nothing any more."""
        wall_s, before_s = self._clock.wall(), self._awake_s
        self._awake_s = wall_s
        if wall_s - before_s > self._lease_wall_s:
            raise Gone("slept for longer than its leases last")

    def _message(self, message: object) -> None:
        if isinstance(message, Orders):
            self._asker.take_orders(message)
            if message.sites is not None:
                self._secrets = {site: _secrets_of(site) for site in message.sites if site.secrets}
        elif isinstance(message, Recall):
            self._asker.recall(message)
        elif isinstance(message, Noted):
            for serial in [serial for serial in self._unnoted if serial <= message.serial]:
                self._unnoted_results -= self._unnoted.pop(serial)
        elif isinstance(message, Stop):
            self._stopping_s = self._clock.wall()

    def _send(self) -> None:
        while self._stopping_s is None and self._has_room():
            ask = self._asker.take(self._clock.now())
            if ask is None:
                return
            self._young[ask.url] = self._clock.wall()
            self._client.submit(self._with_secrets(ask) if self._secrets else ask, self._route(ask))

    def _with_secrets(self, ask: Ask) -> Ask:
        found = (headers_for(secrets, site, ask.url) for site, secrets in self._secrets.items())
        headers = next((headers for headers in found if headers), ())
        return replace(ask, secret_headers=headers) if headers else ask

    def _has_room(self) -> bool:
        concurrency = self._settings.config.crawl.concurrency
        if self._unnoted_results >= MOST_UNNOTED or self._client.in_flight >= OPEN_TIMES * concurrency:
            return False
        self._forget_old()
        return len(self._young) < concurrency

    def _forget_old(self) -> None:
        old_s = self._clock.wall() - YOUNG_S
        while self._young and (first := next(iter(self._young.items())))[1] < old_s:
            del self._young[first[0]]

    def _route(self, ask: Ask) -> Route:
        origin = origin_of(ask.url)
        if origin not in self._detours:
            self._detours[origin] = detour_for(origin, self._settings.detours)
        return self._detours[origin] or Route(self._asker.hosts[origin.host].orders.address, origin.port)

    def _pause_s(self) -> float:
        ready_s = self._asker.next_s()
        if ready_s is None or not self._has_room():
            return self._longest_sleep_s()
        return min(max(self._clock.wall_delay(ready_s - self._clock.now()), 0.0), self._longest_sleep_s())

    def _longest_sleep_s(self) -> float:
        return REPORT_WALL_S if self._results or self._documents.pending else LONGEST_SLEEP_S

    def _came(self, outcome: Outcome) -> None:
        self._young.pop(outcome.url, None)
        result = self._asker.came(origin_of(outcome.url).host, outcome)
        if isinstance(outcome, Answer) and isinstance(result, Fetched):
            result = self._archived(result, outcome)
            document = document_of(result, outcome)
            if document is not None:
                self._documents.submit((result, outcome), document)
                return
        self._results.append(self._marked(result))

    def _marked(self, result: Result) -> Result:
        """With the site whose secrets opened it, if any did: not everybody may see it."""
        if not self._secrets or not isinstance(result, Fetched) or result.content is None:
            return result
        url = result.errand.url
        opened = (site.start for site, secrets in self._secrets.items() if headers_for(secrets, site, url))
        return result._replace(content=result.content._replace(private=next(opened, "")))

    def _read_document(self, result: Fetched, answer: Answer, found: PdfText | PdfFailure) -> Result:
        text, trouble = (found.text, "") if isinstance(found, PdfText) else ("", str(found.reason))
        read = read_document(result, answer, self._asker.links, title=found.title, text=text, trouble=trouble)
        return self._marked(read)

    def _archived(self, result: Fetched, answer: Answer) -> Fetched:
        """Every answer is kept; one whose bytes are kept already only says so."""
        payload_digest = digest(answer.payload)
        revisit = _revisit(result.errand, answer, payload_digest)
        with said_plainly(self._settings.folder):
            stood = self._archive.append(
                Exchange(
                    answer.url,
                    answer.ended_s,
                    answer.request_head,
                    answer.head,
                    answer.payload,
                    answer.address,
                    revisit,
                    payload_digest=payload_digest,
                )
            )
        place = Place(stood.file, stood.offset, stood.length)
        kept = result.errand.copy.payload_digest if revisit and result.errand.copy else payload_digest
        return result._replace(place=place, payload_digest=kept)

    def _is_time_to_report(self) -> bool:
        """What waits is told after a moment, and at once where nothing else is going on; silence is broken in time."""
        silent_s = self._clock.wall() - self._spoke_s
        if self._results or self._asker.returned or self._asker.news:
            return silent_s > REPORT_WALL_S or not self._client.in_flight
        self._channel.flush()
        return silent_s * WORDS_PER_LEASE > self._lease_wall_s

    def _report(self) -> None:
        asker = self._asker
        self._spoke_s = self._clock.wall()
        self._serial += 1
        self._unnoted[self._serial] = len(self._results)
        self._unnoted_results += len(self._results)
        with said_plainly(self._settings.folder):
            archived = self._archive.flush()
        results, self._results = tuple(self._results), []
        returned, asker.returned = tuple(asker.returned), []
        news, asker.news = tuple(asker.news.values()), {}
        self._channel.send(Report(self._serial, results, returned, news, tuple(archived.items())))

    def _is_done(self) -> bool:
        if self._stopping_s is None:
            return False
        waited_s = self._clock.wall() - self._stopping_s
        idle = not (self._client.in_flight or self._documents.pending or self._unnoted)
        return idle or waited_s > STOP_PATIENCE_S


def _secrets_of(site: Site) -> Secrets:
    """What a site is asked with; where it cannot be read, the site is asked without, and that is said."""
    try:
        return read_secrets(site.secrets)
    except ConfigError as error:
        sys.stderr.write(f"vedette: {site.start} is asked without its secrets: {error}\n")
        return Secrets()


def _revisit(errand: Errand, answer: Answer, payload_digest: str) -> Revisit | None:
    copy = errand.copy
    if copy is None or not copy.payload_digest:
        return None
    if answer.status == 304:
        return Revisit("server-not-modified", errand.url, copy.fetched_s, copy.payload_digest)
    if answer.status == 200 and payload_digest == copy.payload_digest:
        return Revisit("identical-payload-digest", errand.url, copy.fetched_s, copy.payload_digest)
    return None


def run_worker(settings: LiveSettings, number: int) -> int:
    """The life of a worker process; ``GONE`` when there is no keeper to work for."""
    try:
        channel = Channel(connect(settings.folder / SOCKET))
    except OSError:
        return GONE
    _allow_many_files()
    channel.send(Hello(number, os.getpid()))
    worker = WorkerProcess(settings, number, channel)
    try:
        worker.run()
    except Gone:
        return GONE
    finally:
        worker.close()
    return 0


def _allow_many_files() -> None:
    """Hosts that hang keep their sockets; the usual soft limit of 1 024 is soon passed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
