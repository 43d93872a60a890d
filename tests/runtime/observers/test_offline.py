"""An observer without home: it goes on with its plan for hours, within its lease and its spool, and reports later."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic, time

import pytest
from tests.wire_server import Question, Said, WireServer, whole

from vedette.adapters.clock import Clock
from vedette.adapters.observers.wire import decode, encode, is_signed, sign
from vedette.engine.observers.messages import (
    NAME_HEADER,
    SIGNATURE_HEADER,
    Errand,
    HostOrder,
    Observation,
    Orders,
    Report,
    RequestLimits,
)
from vedette.policy import rng_for
from vedette.runtime.observers import process as observer_process
from vedette.runtime.observers.keys import ObserverKey
from vedette.runtime.observers.process import ObserverOptions, ObserverProcess

KEY = ObserverKey("lima", bytes(range(32)))
HOST = "127.0.0.1"
HOUR_S = 3600.0
SPEED = 7_200.0
PATIENCE_S = 120.0
LIMITS = RequestLimits("vedette/1", True, 0.0, 0.0, 10_000, body_bytes=1 << 20, connect_timeout_s=60.0, timeout_s=60.0)


class Home:
    """A home that gives each errand once, and takes what is reported unless it is away."""

    def __init__(self) -> None:
        self.errands: list[Errand] = []
        self.plans: tuple[Errand, ...] | None = None
        self.lease_s = 1e9
        self.is_away = False
        self.reports: list[Report] = []
        self.seen: list[Observation] = []
        home = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert is_signed(KEY.secret, "report", self.headers[NAME_HEADER], body, self.headers[SIGNATURE_HEADER])
                data = b"" if home.is_away else encode(home.exchange(decode(Report, body)))
                self.send_response(200 if data else 503)
                self.send_header(SIGNATURE_HEADER, sign(KEY.secret, "orders", KEY.name, data))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                return

        self.server = HTTPServer((HOST, 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.server.server_port}"

    def exchange(self, report: Report) -> Orders:
        """Take a report."""
        self.reports.append(report)
        known = {seen.number for seen in self.seen}
        self.seen += [seen for seen in report.observations if seen.number not in known]
        given, self.errands = tuple(self.errands[: report.room]), self.errands[report.room :]
        plans, self.plans = self.plans, None
        hosts = (HostOrder(HOST, 1, 0.0, None, 0.0, 0, None),)
        taken = tuple(seen.number for seen in report.observations)
        return Orders(report.sequence, self.lease_s, LIMITS, taken, given, plans, hosts)


def build_errand(number: int, port: int, after_s: float = 0.0, valid_s: float = 1e9) -> Errand:
    """An errand, or a page of a plan."""
    url = f"http://{HOST}:{port}/{number}"
    return Errand(number, 1, HOST, url, "page", (("user-agent", "vedette"),), 0.0, valid_s, after_s=after_s)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Home; an observer goes on without it after a second of silence."""
    monkeypatch.setattr(observer_process, "OFFLINE_AFTER_S", 1.0)
    monkeypatch.setattr(observer_process, "MAX_RETRY_WALL_S", 2.0)
    made = Home()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def site() -> Iterator[WireServer]:
    """A site whose pages are 20 kB that do not compress."""

    def answer(question: Question) -> Said:
        return whole(rng_for(1, question.target).bytes(20_000), "Content-Type: text/html")

    with WireServer(answer) as made:
        yield made


@contextmanager
def observer(home: Home, folder: Path, spool_bytes: int = 1 << 20) -> Iterator[ObserverProcess]:
    """An observer that reports to home."""
    now_s = time()
    clock = Clock(now_s, now_s, SPEED)
    process = ObserverProcess(
        ObserverOptions(home.address, KEY, folder, clock, spool_bytes, 1 << 20, allow_private=True)
    )
    try:
        yield process
    finally:
        process.close()


def step_until(process: ObserverProcess, holds: Callable[[], bool]) -> None:
    """Let the observer work until something holds."""
    until_s = monotonic() + PATIENCE_S
    while not holds():
        assert monotonic() < until_s, "a hang"
        process.step()


def step_for(process: ObserverProcess, wall_s: float) -> None:
    """Let the observer work for a while."""
    until_s = monotonic() + wall_s
    step_until(process, lambda: monotonic() >= until_s)


def is_idle(process: ObserverProcess) -> bool:
    """Whether no request is under way."""
    return process._client is not None and not process._client.in_flight


def requested(site: WireServer) -> list[int]:
    """The numbers of the pages that were requested, in this order."""
    return [int(question.target[1:]) for question in site.questions]


def test_it_follows_its_plan_for_hours_and_reports_later(home: Home, site: WireServer, tmp_path: Path) -> None:
    """Each page once, when it becomes due and while robots.txt allows it; home gets all of it when it is back."""
    hours = {1: 1.0, 2: 3.0, 3: 5.0, 4: 4.0, 5: 1_000.0}
    valid_h = {4: 2.0}
    home.plans = tuple(
        build_errand(number, site.port, after_h * HOUR_S, valid_h.get(number, 1e6) * HOUR_S)
        for number, after_h in hours.items()
    )
    with observer(home, tmp_path) as process:
        step_until(process, lambda: bool(home.reports) and process._observer is not None)
        home.is_away = True
        step_until(process, lambda: len(requested(site)) == 3)
        step_for(process, 1.0)
        assert sorted(requested(site)) == [1, 2, 3]
        reports = len(home.reports)
        home.is_away = False
        step_until(process, lambda: len(home.seen) == 3)
        assert len(home.reports) > reports
        assert min(seen.at_s for seen in home.seen) > 1.9 * HOUR_S  # they are dated when they were fetched
        step_until(process, lambda: home.reports[-1].observations == ())
    assert sorted(requested(site)) == [1, 2, 3]


def test_a_restarted_observer_goes_on_with_its_plan(home: Home, site: WireServer, tmp_path: Path) -> None:
    """What it has fetched by then is not requested again."""
    home.plans = tuple(build_errand(number, site.port, after_s) for number, after_s in ((1, 1.0), (2, 8 * HOUR_S)))
    with observer(home, tmp_path) as process:
        step_until(process, lambda: bool(home.reports) and process._observer is not None)
        home.is_away = True
        step_until(process, lambda: 1 in requested(site) and not process._errands)
    with observer(home, tmp_path) as process:
        step_until(process, lambda: 2 in requested(site))
        home.is_away = False
        step_until(process, lambda: len(home.seen) == 2)
    assert requested(site) == [1, 2]


def test_nothing_is_requested_after_the_lease(home: Home, site: WireServer, tmp_path: Path) -> None:
    """Another may have the hosts by then, also if the observer was restarted in between."""
    home.lease_s = 0.0
    home.errands = [build_errand(1, site.port)]
    home.plans = (build_errand(2, site.port, 1.0),)
    with observer(home, tmp_path) as process:
        step_until(process, lambda: bool(home.reports) and process._observer is not None)
        home.is_away = True
        step_for(process, 2.0)
    with observer(home, tmp_path) as process:
        step_for(process, 2.0)
        assert requested(site) == []
        home.is_away, home.lease_s = False, 1e9
        step_until(process, lambda: any(seen.number == 1 for seen in home.seen))


def test_a_full_spool_stops_requests_until_home_has_taken_it(home: Home, site: WireServer, tmp_path: Path) -> None:
    """What was fetched is kept, also over a restart, and nothing is requested twice."""
    home.errands = [build_errand(number, site.port) for number in range(1, 21)]
    with observer(home, tmp_path, spool_bytes=60_000) as process:
        step_until(process, lambda: bool(requested(site)))
        home.is_away = True
        step_until(process, lambda: process._spool.unreported_bytes >= 60_000 and is_idle(process))
        before = requested(site)
        step_for(process, 1.0)
        assert requested(site) == before
    with observer(home, tmp_path, spool_bytes=60_000) as process:
        step_for(process, 2.0)
        assert requested(site) == before
        home.is_away = False
        step_until(process, lambda: len(home.seen) == 20)
    assert sorted(requested(site)) == list(range(1, 21))
    assert any(report.room == 0 for report in home.reports)
    assert {seen.number: len(seen.data) for seen in home.seen} == pytest.approx(
        dict.fromkeys(range(1, 21), 20_000), rel=0.1
    )
