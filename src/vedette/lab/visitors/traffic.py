"""Simulated search traffic: visits started and continued on schedule, in a process that exits with its parent.

    run_visitors     this process, until it is stopped
    start_visitors   a child process

Errors are ignored: a visitor who is refused or gets no response leaves, and others come.
"""

import argparse
import heapq
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPException
from types import FrameType, TracebackType
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit

from vedette.adapters.clock import Clock, parse_clock
from vedette.lab.visitors.habits import EMPTY_PAGE, Action, Click, Hit, ResultPage, Search, View, VisitActions
from vedette.lab.visitors.population import SEARCHES_PER_VISIT, Arrival, Person, VisitorPopulation

MAX_HITS = 100
MAX_DIGITS = 18  # digits; no page has a higher one
MAX_QUERY_LENGTH = 500

_Attributes = list[tuple[str, str | None]]


def parse_results(html: str) -> ResultPage:
    """Parse the HTML of a search result page as a simulated visitor's browser sees it; ``EMPTY_PAGE`` if no results.

    >>> page = '<ol data-slate="s1"><li><a class="title" data-page="7" href="http://a.test/">An <b>anchor</b></a></ol>'
    >>> parse_results(page)
    ResultPage(slate='s1', hits=(Hit(page=7, url='http://a.test/', title='An anchor'),), suggestion='', has_next=False)
    """
    reader = _ResultPageParser()
    reader.feed(html)
    reader.close()
    return ResultPage(reader.slate, tuple(reader.hits[:MAX_HITS]), reader.suggestion, reader.has_next)


class _ResultPageParser(HTMLParser):
    """HTML parser of a search result page, by the attributes that the page's own script uses."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.slate = ""
        self.hits: list[Hit] = []
        self.suggestion = ""
        self.has_next = False
        self._open: Hit | None = None
        self._words: list[str] = []
        self._in_suggestion = False

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        """Handle the start of a slate, a result link, a spelling suggestion or the link to the next result page."""
        attributes = {name: value or "" for name, value in attrs}
        self.slate = self.slate or attributes.get("data-slate", "")
        if tag == "p":
            self._in_suggestion = attributes.get("class") == "meant"
        elif tag == "a":
            self._on_link(attributes)

    def handle_data(self, data: str) -> None:
        """Collect the text of a result's title while parsing a result page."""
        if self._open is not None:
            self._words.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Finish a result's title at the end of its link while parsing a result page."""
        if tag == "a" and self._open is not None:
            self.hits.append(self._open._replace(title=" ".join("".join(self._words).split())))
            self._open, self._words = None, []

    def _on_link(self, attributes: dict[str, str]) -> None:
        href, number = attributes.get("href", ""), attributes.get("data-page", "")
        if attributes.get("rel") == "next":
            self.has_next = True
        elif self._in_suggestion:
            self.suggestion = self.suggestion or _query_of_link(href)
        elif "title" in attributes.get("class", "").split() and _is_number(number):
            self._open = Hit(int(number), href, "")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


def _query_of_link(href: str) -> str:
    """Return the query of a link to a search on a result page, such as "did you mean"."""
    try:
        return parse_qs(urlsplit(href).query).get("q", [""])[0][:MAX_QUERY_LENGTH]
    except ValueError:
        return ""


TIMEOUT_S = 10.0
MAX_BYTES = 2_000_000
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Browser:
    """A simulated visitor's browser, which talks HTTP to the search server at a loopback port."""

    port: int
    person: Person

    def perform(self, deed: Action) -> ResultPage | None:
        """Send a simulated visitor's action to the server; return the result page, None if it was refused.

        Views and clicks return ``EMPTY_PAGE``.
        """
        if isinstance(deed, Search):
            return self._search(deed)
        return EMPTY_PAGE if self._send_event(deed) else None

    def _search(self, ask: Search) -> ResultPage | None:
        wanted = {"q": ask.query} | ({"page": str(ask.page)} if ask.page > 1 else {})
        headers = {
            "accept": "text/html,application/xhtml+xml",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
        }
        status, body = self._request("GET", f"/search?{urlencode(wanted)}", headers)
        return parse_results(body.decode("utf-8", "replace")) if status == 200 else None

    def _send_event(self, deed: View | Click) -> bool:
        page = deed.page if isinstance(deed, Click) else 0
        event = {"slate": deed.slate, "kind": "click" if page else "view", "page": page}
        headers = {"content-type": "application/json", "origin": f"http://{LOOPBACK}:{self.port}"}
        headers |= {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
        return self._request("POST", "/api/v1/events", headers, json.dumps(event).encode())[0] == 204

    def _request(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, bytes]:
        all_headers = {"user-agent": self.person.agent, "accept-language": "en-GB,en;q=0.8", **headers}
        return send_request(self.port, self.person.address, method, target, all_headers, body)


def fetch_page_count(port: int) -> int:
    """Fetch from the search server how many pages are searchable, before visitors start; 0 without a response."""
    status, body = send_request(port, LOOPBACK, "GET", "/healthz", {})
    try:
        return int(json.loads(body)["pages"]) if status == 200 else 0
    except (ValueError, TypeError, KeyError, OverflowError):
        return 0


def send_request(
    port: int, address: str, method: str, target: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, bytes]:
    """Send one HTTP request from a visitor's address on a new connection; return status (0 on failure) and body."""
    connection = HTTPConnection(LOOPBACK, port, timeout=TIMEOUT_S, source_address=(address, 0))
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return response.status, response.read(MAX_BYTES)
    except (OSError, HTTPException):
        return 0, b""
    finally:
        connection.close()


MAX_SEARCHES_PER_S = 5.0  # searches per second of wall time, whatever the demand
MAX_CONCURRENT_VISITS = 200
MIN_PAGES = 50  # visitors come only when there is something to find
POLL_INTERVAL_S = 0.5
TICK_S = 0.2
STOP_TIMEOUT_S = 5.0


class StopRequested(Exception):
    """Signal that the process of simulated visitors must stop, even while it waits for a server that is gone."""


@dataclass(slots=True)
class Tally:
    """Tally of the simulated visitors' searches, views and clicks; ``refused`` counts what the server refused."""

    visits: int = 0
    searches: int = 0
    views: int = 0
    clicks: int = 0
    refused: int = 0

    def add(self, deed: Action, *, taken: bool) -> None:
        """Count one visitor action in the traffic tally."""
        if not taken:
            self.refused += 1
        elif isinstance(deed, Search):
            self.searches += 1
        elif isinstance(deed, View):
            self.views += 1
        else:
            self.clicks += 1


@dataclass(order=True, slots=True)
class _ScheduledAction:
    """The next scheduled action of a visit, and the wall time at which it is due."""

    at_s: float
    number: int
    action: Action = field(compare=False)
    visit: VisitActions = field(compare=False)
    browser: Browser = field(compare=False)


@dataclass(slots=True)
class _VisitScheduler:
    """Scheduler of all visits in progress in the simulated traffic; times are wall times of the clock."""

    public: VisitorPopulation
    port: int
    clock: Clock
    arrivals: Iterator[Arrival]
    tally: Tally
    _steps: list[_ScheduledAction] = field(default_factory=list)
    _next_arrival: Arrival | None = None
    _next_search_s: float = 0.0

    def run_due(self) -> float:
        """Run one due visitor action, if there is any; return the seconds until the next."""
        now_s = self.clock.wall_now()
        self._admit_arrivals(now_s)
        if not self._steps or self._steps[0].at_s > now_s:
            return min(TICK_S, self._steps[0].at_s - now_s) if self._steps else TICK_S
        step = heapq.heappop(self._steps)
        if isinstance(step.action, Search) and now_s < self._next_search_s:
            # Only searches wait for each other: views and clicks are sent on schedule.
            heapq.heappush(self._steps, replace(step, at_s=self._next_search_s))
        else:
            self._perform(step)
        return 0.0

    def _admit_arrivals(self, now_s: float) -> None:
        """Start the visits whose arrival time has come; visitors beyond the limit of concurrent visits are dropped."""
        while (coming := self._next_arrival or next(self.arrivals)).at_s <= self.clock.to_world_s(now_s):
            self._next_arrival = None
            if len(self._steps) < MAX_CONCURRENT_VISITS:
                self._begin_visit(coming, now_s)
        self._next_arrival = coming

    def _begin_visit(self, arrival: Arrival, now_s: float) -> None:
        self.tally.visits += 1
        visit, browser = self.public.simulate_visit(arrival), Browser(self.port, self.public.person_for(arrival))
        first = next(visit)
        heapq.heappush(self._steps, _ScheduledAction(now_s + first.after_s, arrival.number, first, visit, browser))

    def _perform(self, step: _ScheduledAction) -> None:
        if isinstance(step.action, Search):
            self._next_search_s = self.clock.wall_now() + 1.0 / MAX_SEARCHES_PER_S
        found = step.browser.perform(step.action)
        self.tally.add(step.action, taken=found is not None)
        # A refused event does not affect the visitor; a search without a response ends the visit.
        if found is None and isinstance(step.action, Search):
            return
        try:
            deed = step.visit.send(found or EMPTY_PAGE)
        except StopIteration:
            return
        at_s = self.clock.wall_now() + deed.after_s
        heapq.heappush(self._steps, _ScheduledAction(at_s, step.number, deed, step.visit, step.browser))


def run_visitors(
    public: VisitorPopulation,
    port: int,
    clock: Clock,
    per_s: float,
    stopped: Callable[[], bool],
    enough_pages: int = MIN_PAGES,
) -> Tally:
    """Run simulated visitors: ``per_s`` searches per wall second, once the server has enough pages, until ``stopped``.

    ``StopRequested``, raised by a signal, ends it in the middle of any wait.
    """
    visits_per_s = per_s / SEARCHES_PER_VISIT / clock.speed
    tally = Tally()
    with suppress(StopRequested):
        while not stopped() and fetch_page_count(port) < enough_pages:
            time.sleep(POLL_INTERVAL_S)  # there is nothing else to do before
        outing = _VisitScheduler(public, port, clock, public.arrivals(clock.now(), visits_per_s), tally)
        while not stopped():
            time.sleep(outing.run_due())  # until the next visit is due
    return tally


@dataclass(frozen=True, slots=True)
class VisitorsHandle:
    """Handle of the child process of simulated visitors; usable in a ``with`` block, which stops it."""

    process: subprocess.Popen[bytes]

    def stop(self) -> Tally | None:
        """Stop the child process of simulated visitors; return its tally once, if it was written."""
        self.process.terminate()
        try:
            output, _ = self.process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, _ = self.process.communicate()
        return Tally(**json.loads(output)) if output else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.stop()


def start_visitors(
    port: int, clock: Clock, per_s: float, *, seed: int = 1, enough_pages: int = MIN_PAGES
) -> VisitorsHandle:
    """Start simulated visitors in a child process that search the server at a loopback port; see ``run_visitors``."""
    command = [sys.executable, "-m", __name__, f"--port={port}", f"--clock={clock}", f"--per-second={per_s}"]
    command += [f"--seed={seed}", f"--enough-pages={enough_pages}", f"--parent={os.getpid()}"]
    return VisitorsHandle(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))  # noqa: S603 - ourselves


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the child process of simulated visitors: search until stopped, then print the tally."""
    options = _parse_options(arguments)
    signal.signal(signal.SIGTERM, _raise_stop)
    # Ctrl-C reaches a whole process group; the parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tally = run_visitors(
        VisitorPopulation(options.seed),
        options.port,
        parse_clock(options.clock),
        options.per_second,
        lambda: os.getppid() != options.parent,
        options.enough_pages,
    )
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.write(json.dumps(asdict(tally)))
    return 0


def _raise_stop(_number: int, _frame: FrameType | None) -> None:
    raise StopRequested


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {__name__}", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="where the server is, on loopback")
    parser.add_argument("--clock", required=True, help="the clock of the world, as another process printed it")
    parser.add_argument("--per-second", type=float, required=True, help="searches a second of wall time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--enough-pages", type=int, default=MIN_PAGES, help="wait until so many can be found")
    parser.add_argument("--parent", type=int, required=True, help="stop when this process is no longer the parent")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
