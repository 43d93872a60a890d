"""A web in a dictionary and a clock that is only a number: what the ring needs to be driven without a socket.

``MemoryWeb`` says what comes of a request; ``Drive`` carries out the ring's commands at virtual times, and fails where
the ring stands still with work left. The log holds every request, so a test reads the crawl off it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from vedette.edges.memory import MemoryStore
from vedette.facts import Answer, Ask, Failure, Headers, NoAnswer, Outcome, Page, Purpose, Site, origin_of
from vedette.fetch.connect import Route
from vedette.ring.crawl import idle, next_s, step
from vedette.ring.events import Begin, Came, Command, Event, GiveUp, Keep, Named, Refuse, Resolve, Send, Tick
from vedette.ring.state import Crawl, Rules

__all__ = ["Asked", "Drive", "MemoryWeb", "Reply", "moved", "page", "robots", "rules_for"]

LOOKUP_S = 0.05
MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server says, and how long it takes."""

    status: int = 200
    headers: Headers = ()
    body: bytes = b""
    took_s: float = 0.1


Served = Reply | Failure
Server = Callable[[float], Served]


def page(*links: str, title: str = "", took_s: float = 0.1) -> Reply:
    """A page with these links."""
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    return Reply(200, (("content-type", "text/html"),), f"<title>{title}</title>{anchors}".encode(), took_s)


def robots(*lines: str) -> Reply:
    """A robots.txt for everyone."""
    return Reply(200, (("content-type", "text/plain"),), "\n".join(("User-agent: *", *lines)).encode())


def moved(location: str, status: int = 301) -> Reply:
    """A redirect."""
    return Reply(status, (("location", location),))


@dataclass(slots=True)
class MemoryWeb:
    """URLs and what they answer, now or by the time; names and their addresses, public and each its own unless told."""

    replies: dict[str, Served | Server] = field(default_factory=dict)
    names: dict[str, tuple[str, ...] | Failure | Callable[[float], "tuple[str, ...] | Failure"]] = field(
        default_factory=dict
    )

    def reply(self, url: str, now_s: float) -> Served:
        """What comes of asking for a URL; what nobody put there is not found."""
        served = self.replies.get(url, Reply(404))
        return served(now_s) if callable(served) else served

    def look_up(self, host: str, now_s: float) -> Named:
        """What a resolver says of a name."""
        own = f"93.184.{len(host) % 250}.{sum(host.encode()) % 250 + 1}"
        found = self.names.get(host, (own,))
        found = found(now_s) if callable(found) else found
        return Named(host, (), found) if isinstance(found, Failure) else Named(host, found)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the server saw it."""

    url: str
    purpose: Purpose
    host: str
    address: str
    sent_s: float
    ended_s: float
    headers: Headers


def rules_for(*starts: str | Site, **settings: object) -> Rules:
    """The rules of a crawl that starts there."""
    sites = tuple(Site(start) if isinstance(start, str) else start for start in starts)
    return Rules(sites=sites, agent="vedette/test", **settings)  # type: ignore[arg-type]  # each test names real fields


class Drive:
    """One crawl over one web, at virtual times; ``log`` and ``store`` are what came of it."""

    def __init__(self, web: MemoryWeb, rules: Rules, *, room: int = 100, start_s: float = 1000.0) -> None:
        self.web, self.room, self.now_s = web, room, start_s
        self.crawl = Crawl(rules)
        self.store = MemoryStore()
        self.log: list[Asked] = []
        self.commands: list[Command] = []
        self._events: list[tuple[float, int, Event]] = []
        self._number = 0
        self._in_flight = 0

    def begin(self, earlier: MemoryStore | None = None) -> "Drive":
        """Start, or go on where another drive ended."""
        if earlier is not None:
            self.store = earlier
        self._tell(Begin(self.store.known()))
        return self

    def run(self, for_s: float = 1e7) -> "Drive":
        """Until nothing is left or the time is over; a stand-still with work left is a failure of the ring."""
        end_s = self.now_s + for_s
        for _ in range(MOST_STEPS):
            self._tell(Tick(self.room - self._in_flight))
            if idle(self.crawl) and not self._events:
                return self
            soonest_s = self._soonest_s()
            if soonest_s > end_s:
                self.now_s = end_s
                return self
            self.now_s = max(self.now_s, soonest_s)
            self._tell_what_came()
        raise AssertionError("the crawl does not come to an end")

    def urls(self, purpose: Purpose = "page") -> list[str]:
        """What was asked for, in order."""
        return [asked.url for asked in self.log if asked.purpose == purpose]

    def asked_of(self, host: str) -> list[Asked]:
        """What one host was asked for, in order."""
        return [asked for asked in self.log if asked.host == host]

    def pages(self) -> dict[str, Page]:
        """What was kept, by URL."""
        return {command.page.url: command.page for command in self.commands if isinstance(command, Keep)}

    def refused(self) -> dict[str, Refuse]:
        """What a rule forbade, by URL."""
        return {command.url: command for command in self.commands if isinstance(command, Refuse)}

    def given_up(self) -> dict[str, str]:
        """What could not be had, by URL, and why."""
        return {command.url: str(command.failure) for command in self.commands if isinstance(command, GiveUp)}

    def _soonest_s(self) -> float:
        ready_s = next_s(self.crawl) if self._in_flight < self.room else None
        times = [time_s for time_s in (ready_s, self._events[0][0] if self._events else None) if time_s is not None]
        assert times, "the crawl stands still with work left"
        assert ready_s is None or ready_s > self.now_s, "a tick left something undone that it could do"
        return min(times)

    def _tell_what_came(self) -> None:
        while self._events and self._events[0][0] <= self.now_s:
            event = heappop(self._events)[2]
            self._in_flight -= isinstance(event, Came)
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self._carry_out(step(self.crawl, event, self.now_s))

    def _carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            self.commands.append(command)
            if isinstance(command, Send):
                self._send(command.ask, command.route)
            elif isinstance(command, Resolve):
                self._later(self.now_s + LOOKUP_S, self.web.look_up(command.host, self.now_s))
            else:
                self.store.keep((command,))

    def _send(self, ask: Ask, route: Route) -> None:
        served = self.web.reply(ask.url, self.now_s)
        outcome = self._outcome(ask, route, served)
        host = origin_of(ask.url).host
        self.log.append(Asked(ask.url, ask.purpose, host, route.address, self.now_s, outcome.ended_s, ask.headers))
        self._in_flight += 1
        assert self._in_flight <= self.room, "more requests on their way than there was room for"
        self._later(outcome.ended_s, Came(outcome))

    def _outcome(self, ask: Ask, route: Route, served: Served) -> Outcome:
        if isinstance(served, Failure):
            return NoAnswer(ask.url, ask.purpose, served, "", self.now_s, self.now_s + 1.0)
        ended_s = self.now_s + served.took_s
        return Answer(
            ask.url, ask.purpose, served.status, served.headers, served.body, self.now_s, ended_s, route.address
        )

    def _later(self, at_s: float, event: Event) -> None:
        self._number += 1
        heappush(self._events, (at_s, self._number, event))
