"""A worker process: asks for what the keeper ordered, archives every answer, and reports.

It never waits for a host: it sleeps until an answer or an order comes, or the earliest host may be asked. What it
has reported and the keeper has not yet made durable is bounded, so that a crash costs few repeated requests.
"""

from dataclasses import replace

from vedette.edges.http import Client, Limits
from vedette.edges.post import Channel, Gone, connect
from vedette.edges.warc import Exchange, Revisit, WarcWriter, digest
from vedette.facts import Answer, Ask, Outcome, origin_of
from vedette.fetch.connect import Route, detour_for
from vedette.live.keeper import SOCKET, Hello
from vedette.live.settings import LiveSettings
from vedette.ring.ask import Asker
from vedette.ring.orders import Errand, Fetched, Noted, Orders, Place, Recall, Report, Result, Stop

__all__ = ["WorkerProcess", "run_worker"]

LONGEST_SLEEP_S = 0.1
HOLD_WALL_S = 20.0
MOST_UNNOTED = 16
STOP_PATIENCE_S = 1.5
GONE = 3


class WorkerProcess:
    """Orders, sockets and archive of one worker."""

    def __init__(self, settings: LiveSettings, number: int, channel: Channel) -> None:
        crawl = settings.config.crawl
        self._settings = settings
        self._clock = settings.clock
        self._channel = channel
        limits = Limits(crawl.connect_timeout_s, crawl.timeout_s, crawl.max_page_bytes)
        self._client = Client(settings.clock, limits)
        self._client.watch(channel.fd, lambda: None)
        hold_s = HOLD_WALL_S * settings.clock.speed
        self._asker = Asker(settings.agent, crawl.address_delay_s, hold_s)
        self._archive = WarcWriter(settings.folder / "warc", f"w{number}", settings.agent.partition(" ")[0])
        self._results: list[Result] = []
        self._serial = self._noted = 0
        self._unnoted: dict[int, int] = {}
        self._stopping_s: float | None = None

    def run(self) -> None:
        """Until the keeper says stop, or is gone."""
        while not self._is_done():
            for message in self._channel.receive():
                self._message(message)
            self._send()
            for outcome in self._client.wait(self._pause_s()):
                self._came(outcome)
            self._report()

    def close(self) -> None:
        """Let go of sockets and archive."""
        self._client.close()
        self._archive.close()

    def _message(self, message: object) -> None:
        if isinstance(message, Orders):
            self._asker.take_orders(message)
        elif isinstance(message, Recall):
            self._asker.recall(message)
        elif isinstance(message, Noted):
            self._unnoted = {serial: count for serial, count in self._unnoted.items() if serial > message.serial}
        elif isinstance(message, Stop):
            self._stopping_s = self._clock.wall()

    def _send(self) -> None:
        concurrency = self._settings.config.crawl.concurrency
        if self._stopping_s is not None:
            return
        while self._client.in_flight < concurrency and sum(self._unnoted.values()) < MOST_UNNOTED:
            ask = self._asker.take(self._clock.now())
            if ask is None:
                return
            self._client.submit(ask, self._route(ask))

    def _route(self, ask: Ask) -> Route:
        origin = origin_of(ask.url)
        detour = detour_for(origin, self._settings.detours)
        return detour or Route(self._asker.hosts[origin.host].orders.address, origin.port)

    def _pause_s(self) -> float:
        ready_s = self._asker.next_s()
        if ready_s is None or sum(self._unnoted.values()) >= MOST_UNNOTED:
            return LONGEST_SLEEP_S
        return min(max(self._clock.wall_delay(ready_s - self._clock.now()), 0.0), LONGEST_SLEEP_S)

    def _came(self, outcome: Outcome) -> None:
        result = self._asker.came(origin_of(outcome.url).host, outcome)
        if isinstance(outcome, Answer) and isinstance(result, Fetched):
            result = self._archived(result, outcome)
        self._results.append(result)

    def _archived(self, result: Fetched, answer: Answer) -> Fetched:
        """Every answer is kept; one whose bytes are kept already only says so."""
        payload_digest = digest(answer.payload)
        revisit = _revisit(result.errand, answer, payload_digest)
        stood = self._archive.append(
            Exchange(
                answer.url,
                answer.ended_s,
                answer.request_head,
                answer.head,
                answer.payload,
                answer.address,
                revisit,
            )
        )
        place = Place(stood.file, stood.offset, stood.length)
        kept = result.errand.copy.payload_digest if revisit and result.errand.copy else payload_digest
        return replace(result, place=place, payload_digest=kept)

    def _report(self) -> None:
        asker = self._asker
        if not (self._results or asker.returned or asker.news):
            self._channel.flush()
            return
        self._serial += 1
        self._unnoted[self._serial] = len(self._results)
        archived = self._archive.flush()
        results, self._results = tuple(self._results), []
        returned, asker.returned = tuple(asker.returned), []
        news, asker.news = tuple(asker.news.values()), {}
        self._channel.send(Report(self._serial, results, returned, news, archived))

    def _is_done(self) -> bool:
        if self._stopping_s is None:
            return False
        waited_s = self._clock.wall() - self._stopping_s
        return (not self._client.in_flight and not self._unnoted) or waited_s > STOP_PATIENCE_S


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
    channel.send(Hello(number))
    worker = WorkerProcess(settings, number, channel)
    try:
        worker.run()
    except Gone:
        return GONE
    finally:
        worker.close()
    return 0
