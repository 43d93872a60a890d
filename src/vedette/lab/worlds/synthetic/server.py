"""Between HTTP and a world: which host is meant, what is answered without asking the world, what is written down."""

import logging
from collections.abc import Iterable

from vedette.adapters.clock import Clock
from vedette.lab.judge.access_log import ROBOTS_BYTES, AccessLog, Entry, redirect_target
from vedette.lab.worlds.synthetic.connection import Exchange, text_reply
from vedette.lab.worlds.synthetic.http_wire import Request
from vedette.lab.worlds.world import Question, Reply, World, WorldHost

__all__ = ["Front", "Names"]

ROBOTS_PLACES_MOST = 10_000
NAME_LENGTH_MOST = 253

_logger = logging.getLogger(__name__)


class Names:
    """Which names a world has; ``*.x.test`` covers every name below ``x.test``."""

    def __init__(self, hosts: Iterable[WorldHost]) -> None:
        self._names = frozenset(host.name.lower() for host in hosts)

    def has(self, name: str) -> bool:
        """Whether the world answers for this lower-case name."""
        return name in self._names or (len(name) <= NAME_LENGTH_MOST and self._is_below(name))

    def _is_below(self, name: str) -> bool:
        _, dot, parent = name.partition(".")
        while dot:
            if f"*.{parent}" in self._names:
                return True
            _, dot, parent = parent.partition(".")
        return False


class Front:
    """Answers for one world, and keeps its access log."""

    def __init__(self, world: World, clock: Clock, log: AccessLog | None) -> None:
        self._world = world
        self._clock = clock
        self._log = log
        self._names = Names(world.hosts())
        # Where robots.txt redirects to is as much a robots.txt as the file itself, so its text is logged as well.
        self._robots_places: set[str] = set()

    def answer(self, request: Request, now_s: float) -> Reply:
        """What this request brings; a fault of the world is an answer too, so that the others are still served."""
        if request.method not in {"GET", "HEAD"}:
            return text_reply(405, "Only GET and HEAD are answered here.", (("allow", "GET, HEAD"),))
        if not self._names.has(request.host):
            return text_reply(421, f"There is no host {request.host!a} in {self._world.name}.")
        question = Question(request.host, request.target, request.if_none_match, request.if_modified_since)
        try:
            return self._world.reply(question, now_s)
        except Exception:
            _logger.exception("%s failed at http://%s%s", self._world.name, request.host, request.target)
            return text_reply(500, "The world failed at this request; see the server's messages.")

    def note(self, exchange: Exchange, ended_s: float, whole: bool) -> None:  # noqa: FBT001 - a callback of one shape
        """Write down what became of a request."""
        if self._log is not None:
            self._log.add(self._entry(exchange, ended_s, whole=whole))

    def _entry(self, exchange: Exchange, ended_s: float, *, whole: bool) -> Entry:
        request = exchange.request
        is_common = exchange.status == 200
        location = None if is_common else _header(exchange.reply, "location")
        return Entry(
            wall_start_s=exchange.started_s,
            wall_end_s=ended_s,
            start_s=self._clock.world(exchange.started_s),
            end_s=self._clock.world(ended_s),
            host=request.host,
            scheme=request.scheme,
            port=request.port,
            address=exchange.address,
            method=request.method,
            target=request.target,
            status=exchange.status,
            bytes=exchange.sent_bytes,
            whole=whole,
            agent=request.agent,
            retry_after=None if is_common else _header(exchange.reply, "retry-after"),
            location=location,
            robots=self._robots_text(exchange, location),
        )

    def _robots_text(self, exchange: Exchange, location: str | None) -> str | None:
        request = exchange.request
        if request.method != "GET" or not self._is_robots(request):
            return None
        place = redirect_target(_url(request), location) if location is not None else None
        if place is not None and len(self._robots_places) < ROBOTS_PLACES_MOST:
            self._robots_places.add(place)
        sent = exchange.reply.body[: min(exchange.sent_bytes, ROBOTS_BYTES)]
        return sent.decode("utf-8", "surrogateescape")

    def _is_robots(self, request: Request) -> bool:
        if request.target == "/robots.txt":
            return True
        return bool(self._robots_places) and redirect_target(_url(request), "") in self._robots_places


def _url(request: Request) -> str:
    return f"{request.scheme}://{request.host}:{request.port}{request.target}"


def _header(reply: Reply, name: str) -> str | None:
    return next((value for key, value in reply.headers if key.lower() == name), None)
