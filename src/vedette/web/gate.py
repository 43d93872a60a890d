"""What every request passes on its way in and out: sizes, methods, who asks, how much, and the headers that follow.

It stands around all routes, so that no route can be forgotten. An exception that nobody expected ends here: the reader
gets an answer, the operator one line.
"""

import ipaddress
import json
from asyncio import CancelledError
from collections.abc import Callable
from math import ceil
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vedette.config import Serve
from vedette.model import Site
from vedette.web.api.responses import error_answer
from vedette.web.auth.access import (
    CONSOLE,
    EVENTS,
    OF_OPERATORS,
    Access,
    Reader,
    Refused,
    allowed_sites,
    is_for_programs,
    path_of,
)
from vedette.web.auth.rate_limits import Limits
from vedette.web.branding import Look
from vedette.web.error_log import log_fault
from vedette.web.metrics import Metrics
from vedette.web.push.routes import LONGEST_PUSH, is_pushed
from vedette.web.rendering import problem_page, theme_of

__all__ = ["FOREIGN_HOST", "LONGEST_BODY", "Gate", "OwnNames", "again", "json_value", "told_refusal", "whole_body"]

# A stranger's page can make its own name lead to this machine, and then its scripts speak to us as if we were its
# server (DNS rebinding). The browser still says by which name it came, in the header ``Host``. So where our names are
# known, the console and the orders of the API are answered under these only. An address in the place of a name cannot
# be made to lead elsewhere, and is always good. Our names are known where the operator has told them
# (``serve.address``, ``serve.public_url``, ``serve.hosts``), and on a connection to a loopback address: whoever comes
# that way sits at this machine, or is a proxy on it, whose name is one to be told.


FOREIGN_HOST = Refused(
    421,
    "foreign_host",
    "The console and its orders are not served under this name. Open it by its address, such as "
    "http://127.0.0.1:8080/. If the name is yours, set serve.address or serve.hosts to it.",
)
_HERE = "localhost"


class OwnNames:
    """The names that the operator has told."""

    def __init__(self, serve: Serve) -> None:
        told = (urlsplit(serve.address).netloc, urlsplit(serve.public_url).netloc, *serve.hosts)
        self._names = frozenset(name for each in told if (name := name_in(each)))

    def is_foreign(self, request: Request) -> bool:
        """Whether a request for what only the operator may do came by a name that is not ours."""
        if not _is_guarded(path_of(request)) or not (self._names or _came_by_loopback(request)):
            return False
        return not all(self._is_own(name_in(told)) for told in request.headers.getlist("host"))

    def _is_own(self, name: str) -> bool:
        return name in self._names or name == _HERE or name.endswith(f".{_HERE}") or _is_address(name)


def name_in(told: str) -> str:
    """The name in a header ``Host``, without its port.

    >>> name_in("Search.Example.org.:8080"), name_in("[::1]:8080"), name_in("127.0.0.1")
    ('search.example.org', '::1', '127.0.0.1')
    """
    told = told.strip().lower()
    if told.startswith("["):
        return told[1:].partition("]")[0]
    return told.partition(":")[0].removesuffix(".")


def _is_guarded(path: str) -> bool:
    return path in OF_OPERATORS or path == CONSOLE or path.startswith(f"{CONSOLE}/")


def _came_by_loopback(request: Request) -> bool:
    own = (request.scope.get("server") or ("", 0))[0]
    return _is_address(own) and ipaddress.ip_address(own).is_loopback


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


LONGEST_BODY = 65_536


async def whole_body(receive: Receive, most: int = LONGEST_BODY) -> bytes | None:
    """All that is sent; None for what is longer than ``most``, or what its sender did not finish."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def again(body: bytes, receive: Receive) -> Receive:
    """As if the body came only now; after it comes what comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def json_value(body: bytes) -> object:
    """What a body says; None where it is no JSON, or holds half of a surrogate pair, which no text can."""
    try:
        value: object = json.loads(body)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


LONGEST_QUERY_STRING = 32_768  # room for the longest query of the API, each character written as four escaped bytes
LONGEST_HEADERS = 32_768
FRESH = "public, max-age=10"
# What scripts of other origins may ask, and how: methods, and headers of their own.
CROSS_ORIGIN = {
    "/api/v1/search": ("GET", "authorization"),
    "/api/v1/suggest": ("GET", "authorization"),
    EVENTS: ("POST", "content-type"),
}
# What may be posted to; anything else can only be read.
POSTED = frozenset({"/signin", EVENTS, "/api/v1/orders", "/api/v1/sponsored/orders", "/mcp"})
POSTED_FOLDER = "/console/"
# What needs a key however open the server is.
KEYED = OF_OPERATORS | {"/mcp"}
UNCOUNTED = frozenset({"/healthz", "/metrics", "/embed.js", "/favicon.ico"})
_ONLY_READ = "This address can only be read, with GET."


class Rules(NamedTuple):
    """What the gate goes by."""

    access: Access
    limits: Limits
    metrics: Metrics
    sites: Callable[[], tuple[Site, ...]]
    look: Look


def told_refusal(request: Request, look: Look, refused: Refused, headers: dict[str, str] | None = None) -> Response:
    """A refusal as the asker reads it: JSON for programs, a page for people."""
    if is_for_programs(path_of(request)):
        return error_answer(refused.status, refused.code, refused.words, None, headers)
    answer = problem_page(refused.status, refused.words, look=look, theme=theme_of(request))
    answer.headers.update(headers or {})
    return answer


class Gate:
    """The middleware.

    It leaves in the request's state who asks (``reader``), from where (``address``), and what they may see
    (``allowed``).
    """

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        self._names = OwnNames(rules.access.serve)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request in, or answers it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        request.state.reader, request.state.allowed = Reader(), ()
        exit_ = _Exit(request, send, self._rules.access)
        try:
            stopped = self._stopped(request)
            if stopped is None and request.method == "POST":
                body = await whole_body(receive, _longest(path_of(request)))
                receive = receive if body is None else again(body, receive)
                stopped = self._too_large(request) if body is None else None
            await (stopped or self._app)(scope, receive, exit_.send)
        except (CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a panic of the index is no Exception, and is told all the same
            log_fault(f"{request.method} {_route(scope)}", error)
            if not exit_.status:
                await self._failed(request)(scope, receive, exit_.send)
        self._rules.metrics.answered(_route(scope), exit_.status or 500)

    def _stopped(self, request: Request) -> Response | None:
        """The answer to what goes no further; None for what does."""
        return (
            self._oversized(request)
            or self._other_method(request)
            or self._misdirected(request)
            or self._unwelcome(request)
        )

    def _oversized(self, request: Request) -> Response | None:
        if len(request.scope["query_string"]) > LONGEST_QUERY_STRING:
            return self._told(request, 414, "too_long", "This address is too long. Ask for less at once.")
        if sum(len(name) + len(value) for name, value in request.scope["headers"]) > LONGEST_HEADERS:
            return self._told(request, 431, "headers_too_large", "The headers of this request are too large.")
        return None

    def _other_method(self, request: Request) -> Response | None:
        path, method = path_of(request), request.method
        may_post = path in POSTED or path.startswith(POSTED_FOLDER) or is_pushed(path)
        if method in {"GET", "HEAD"} or (method == "POST" and may_post):
            return None
        if method == "OPTIONS" and path in CROSS_ORIGIN:
            methods, headers = CROSS_ORIGIN[path]
            leave = {"access-control-allow-methods": methods, "access-control-allow-headers": headers}
            allow = "POST, OPTIONS" if methods == "POST" else "GET, HEAD, OPTIONS"
            return Response(status_code=204, headers={"allow": allow, **leave})
        words = "This address is read with GET or written to with POST." if may_post else _ONLY_READ
        allow = "GET, HEAD, POST" if may_post else "GET, HEAD"
        return self._told(request, 405, "wrong_method", words, {"allow": allow})

    def _misdirected(self, request: Request) -> Response | None:
        return told_refusal(request, self._rules.look, FOREIGN_HOST) if self._names.is_foreign(request) else None

    def _unwelcome(self, request: Request) -> Response | None:
        rules, path = self._rules, path_of(request)
        reader = rules.access.reader(request)
        if path not in UNCOUNTED and not path.startswith("/static/"):
            rate = reader.rate if isinstance(reader, Reader) else None
            wait_s = rules.limits.wait_s(rules.access.mark(request, reader), rate or rules.access.serve.rate)
            if wait_s:
                return self._too_fast(request, ceil(wait_s))
        if isinstance(reader, Refused):
            return self._refused(request, reader)
        request.state.reader = reader
        request.state.address = rules.access.address(request)
        request.state.allowed = allowed_sites(reader, rules.sites()) if reader.known_by else ()
        return None

    def _too_fast(self, request: Request, wait_s: int) -> Response:
        words = f"Too many requests. Ask again in {wait_s} s."
        return self._told(request, 429, "too_many_requests", words, {"retry-after": str(wait_s)})

    def _refused(self, request: Request, refused: Refused) -> Response:
        if refused.status == 401 and (self._rules.access.serve.access == "token" or path_of(request) in KEYED):
            if not is_for_programs(path_of(request)) and "authorization" not in request.headers:
                return RedirectResponse(f"/signin?next={quote(_place(request), safe='')}", 303)
            return told_refusal(request, self._rules.look, refused, {"www-authenticate": "Bearer"})
        return told_refusal(request, self._rules.look, refused)

    def _too_large(self, request: Request) -> Response:
        words = f"This is too much at once: send {_longest(path_of(request)) // 1024} kB at most."
        return self._told(request, 413, "too_large", words)

    def _failed(self, request: Request) -> Response:
        return self._told(request, 500, "failed", "That went wrong here. The reason is in the server's log.")

    def _told(
        self, request: Request, status: int, code: str, words: str, headers: dict[str, str] | None = None
    ) -> Response:
        return told_refusal(request, self._rules.look, Refused(status, code, words), headers)


class _Exit:
    """Sends an answer with the headers that depend on who asked, and remembers its status (0: nothing sent yet)."""

    def __init__(self, request: Request, send: Send, access: Access) -> None:
        self.status = 0
        self._request = request
        self._path = path_of(request)
        self._send = send
        self._origins = access.serve.embed_origins

    async def send(self, message: Message) -> None:
        """Passes a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.setdefault("x-content-type-options", "nosniff")
            self._may_be_kept(headers)
            if self._path in CROSS_ORIGIN:
                self._may_be_read(headers)
        await self._send(message)

    def _may_be_kept(self, headers: MutableHeaders) -> None:
        """What somebody in particular was told is for nobody else; what all are told may be old by seconds."""
        if self._path.startswith("/static/") or self._path == "/embed.js":
            return
        if self._request.state.reader.known_by:
            headers["cache-control"] = "private, no-store"
        else:
            headers.setdefault("cache-control", FRESH if self.status == 200 else "no-store")
        headers.add_vary_header("Authorization, Cookie")

    def _may_be_read(self, headers: MutableHeaders) -> None:
        """Which other origins' scripts may read it; never with credentials."""
        headers.add_vary_header("Origin")
        origin = self._request.headers.get("origin", "")
        if "*" in self._origins or origin in self._origins:
            headers["access-control-allow-origin"] = "*" if "*" in self._origins else origin
            headers["access-control-expose-headers"] = "retry-after"


def _route(scope: Scope) -> str:
    """The pattern of the path that answered; one name for all that matched none."""
    path, root = getattr(scope.get("route"), "path", None), scope.get("root_path", "")
    return "none" if path is None else path if path.startswith(root) and root else root + path


def _longest(path: str) -> int:
    """How much may be posted there: what hubs push are whole feeds."""
    return LONGEST_PUSH if is_pushed(path) else LONGEST_BODY


def _place(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return path_of(request) + (f"?{query}" if query else "")
