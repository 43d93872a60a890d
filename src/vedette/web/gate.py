"""The gate, middleware around all routes: size limits, methods, host names, access, rate limits, headers.

It wraps all routes, so that no route can be forgotten. An unexpected exception ends here: the user gets a response, the
operator one line.
"""

import ipaddress
import json
import sys
from asyncio import CancelledError
from collections.abc import Callable
from math import ceil
from pathlib import Path
from traceback import extract_tb
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vedette.config import Serve
from vedette.model import Site
from vedette.web.api.responses import error_response
from vedette.web.auth.access import (
    ADMIN_PATHS,
    CONSOLE_PATH,
    EVENTS_PATH,
    AccessControl,
    Identity,
    Refusal,
    allowed_sites,
    get_path,
    is_api_path,
)
from vedette.web.auth.rate_limits import RateLimiter
from vedette.web.metrics import Metrics
from vedette.web.observers.routes import MAX_REPORT_BYTES, is_observer_path
from vedette.web.push.routes import MAX_PUSH_BYTES, is_push_path
from vedette.web.rendering import Branding, error_page, get_theme

# An attacker's page can make its own name resolve to this machine, and then its scripts speak to us as if we were its
# server (DNS rebinding). The browser still sends that name in the header ``Host``. So if our names are known, the
# console and the commands of the API are served only under these. An IP address cannot be rebound, and is always
# accepted. Our names are known if the operator configured them (``serve.address``, ``serve.public_url``,
# ``serve.hosts``), and on a connection to a loopback address: such a client is on this machine, or is a proxy on it,
# whose name must be configured.
FOREIGN_HOST = Refusal(
    421,
    "foreign_host",
    "The console is not available under this host name. Open it by IP address, such as "
    "http://127.0.0.1:8080/. If the name is yours, set serve.address or serve.hosts to it.",
)
_LOCALHOST = "localhost"


class HostNames:
    """The host names of this server, as configured, for the gate's check of the header ``Host``."""

    def __init__(self, serve: Serve) -> None:
        addresses = (urlsplit(serve.address).netloc, urlsplit(serve.public_url).netloc, *serve.hosts)
        self._names = frozenset(name for each in addresses if (name := parse_host_name(each)))

    def is_foreign(self, request: Request) -> bool:
        """Check whether a request for operators' pages came under a host name that is not ours (DNS rebinding)."""
        if not _is_admin_path(get_path(request)) or not (self._names or _is_loopback_request(request)):
            return False
        return not all(self._is_known(parse_host_name(host)) for host in request.headers.getlist("host"))

    def _is_known(self, name: str) -> bool:
        return name in self._names or name == _LOCALHOST or name.endswith(f".{_LOCALHOST}") or _is_ip_address(name)


def parse_host_name(host: str) -> str:
    """Parse the host name in a header ``Host``, without its port.

    >>> parse_host_name("Search.Example.org.:8080"), parse_host_name("[::1]:8080"), parse_host_name("127.0.0.1")
    ('search.example.org', '::1', '127.0.0.1')
    """
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _is_admin_path(path: str) -> bool:
    return path in ADMIN_PATHS or path == CONSOLE_PATH or path.startswith(f"{CONSOLE_PATH}/")


def _is_loopback_request(request: Request) -> bool:
    own = (request.scope.get("server") or ("", 0))[0]
    return _is_ip_address(own) and ipaddress.ip_address(own).is_loopback


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


MAX_BODY_BYTES = 65_536
FORM_TYPE = "application/x-www-form-urlencoded"


async def read_body(receive: Receive, most: int = MAX_BODY_BYTES) -> bytes | None:
    """Read the body of a request; None if it is longer than ``most`` or incomplete."""
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


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that replays a body the gate has read, then passes on further messages."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def get_media_type(request: Request) -> str:
    """Return the media type of a request body, in lower case and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parse_json(body: bytes) -> object:
    """Parse the JSON body of a request; None if it is invalid or contains half a surrogate pair."""
    try:
        value: object = json.loads(body)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


async def read_form(request: Request, longest: int = MAX_BODY_BYTES) -> dict[str, list[str]] | None:
    """Read the form fields of a request; None if the body is no form, or too long."""
    if get_media_type(request) != FORM_TYPE:
        return None
    body = await request.body()  # bounded by the middleware
    return parse_form(body) if len(body) <= longest else None


def parse_form(body: bytes) -> dict[str, list[str]]:
    r"""Parse a form body into the values of each field, with normalized line ends.

    >>> parse_form(b"name=Ann+Lee&lines=a%0D%0Ab&name=Bo")
    {'name': ['Ann Lee', 'Bo'], 'lines': ['a\nb']}
    """
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: [_normalize_newlines(value) for value in values] for name, values in fields.items()}


def _normalize_newlines(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


MAX_QUERY_STRING = 32_768  # room for the longest query of the API, each character written as four escaped bytes
MAX_HEADER_BYTES = 32_768
PUBLIC_CACHE = "public, max-age=10"
# What scripts of other origins may request: methods and custom headers.
CORS_PATHS = {
    "/api/v1/search": ("GET", "authorization"),
    "/api/v1/passages": ("GET", "authorization"),
    "/api/v1/suggest": ("GET", "authorization"),
    "/api/v1/instant": ("GET", "authorization"),
    EVENTS_PATH: ("POST", "content-type"),
}
# Paths that accept POST; anything else is read-only.
POST_PATHS = frozenset({"/signin", EVENTS_PATH, "/api/v1/orders", "/api/v1/sponsored/orders", "/mcp"})
POST_PREFIX = "/console/"
# Paths that need a key however open the server is.
KEY_REQUIRED_PATHS = ADMIN_PATHS | {"/mcp"}
UNLIMITED_PATHS = frozenset({"/healthz", "/metrics", "/embed.js", "/favicon.ico"})
_READ_ONLY = "This URL is read-only: use GET."


class GateConfig(NamedTuple):
    """The configuration of the gate: access control, rate limits, metrics, sites and branding."""

    access: AccessControl
    limits: RateLimiter
    metrics: Metrics
    list_sites: Callable[[], tuple[Site, ...]]
    branding: Branding


def refusal_response(
    request: Request, look: Branding, refused: Refusal, headers: dict[str, str] | None = None
) -> Response:
    """Return the gate's refusal as a response: JSON for programs, an error page for people."""
    if is_api_path(get_path(request)):
        return error_response(refused.status, refused.code, refused.message, None, headers)
    answer = error_page(refused.status, refused.message, look=look, theme=get_theme(request))
    answer.headers.update(headers or {})
    return answer


def log_error(what: str, error: BaseException) -> None:
    """Log one line for the operator on what failed, where and why, without the search query."""
    frames = extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    why = f"{type(error).__name__}: {error}"[:300]
    sys.stderr.write(f"vedette: {what} failed at {where}: {why!r}\n")


class GateMiddleware:
    """The gate's middleware: checks each request before it reaches a route.

    It sets in the request's state who sends it (``reader``), from where (``address``), and what they may see
    (``allowed``).
    """

    def __init__(self, app: ASGIApp, rules: GateConfig) -> None:
        self._app = app
        self._rules = rules
        self._names = HostNames(rules.access.serve)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through the gate, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        request.state.reader, request.state.allowed = Identity(), ()
        exit_ = _ResponseSender(request, send, self._rules.access)
        try:
            stopped = self._check_request(request)
            if stopped is None and request.method == "POST":
                body = await read_body(receive, _get_max_body_bytes(get_path(request)))
                receive = receive if body is None else replay_body(body, receive)
                stopped = self._refuse_too_large(request) if body is None else None
            await (stopped or self._app)(scope, receive, exit_.send)
        except (CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a panic of the index is no Exception, and is reported too
            log_error(f"{request.method} {_get_route_pattern(scope)}", error)
            if not exit_.status:
                await self._refuse_failed(request)(scope, receive, exit_.send)
        self._rules.metrics.count_request(_get_route_pattern(scope), exit_.status or 500)

    def _check_request(self, request: Request) -> Response | None:
        """Run all checks of the gate on a request; return the refusal, or None to let it through."""
        return (
            self._check_size(request)
            or self._check_method(request)
            or self._check_host(request)
            or self._check_access(request)
        )

    def _check_size(self, request: Request) -> Response | None:
        if len(request.scope["query_string"]) > MAX_QUERY_STRING:
            return self._refuse(request, 414, "too_long", "The URL is too long. Shorten the request.")
        if sum(len(name) + len(value) for name, value in request.scope["headers"]) > MAX_HEADER_BYTES:
            return self._refuse(request, 431, "headers_too_large", "The headers of this request are too large.")
        return None

    def _check_method(self, request: Request) -> Response | None:
        path, method = get_path(request), request.method
        may_post = path in POST_PATHS or path.startswith(POST_PREFIX) or is_push_path(path) or is_observer_path(path)
        if method in {"GET", "HEAD"} or (method == "POST" and may_post):
            return None
        if method == "OPTIONS" and path in CORS_PATHS:
            methods, headers = CORS_PATHS[path]
            leave = {"access-control-allow-methods": methods, "access-control-allow-headers": headers}
            allow = "POST, OPTIONS" if methods == "POST" else "GET, HEAD, OPTIONS"
            return Response(status_code=204, headers={"allow": allow, **leave})
        words = "Use GET or POST for this URL." if may_post else _READ_ONLY
        allow = "GET, HEAD, POST" if may_post else "GET, HEAD"
        return self._refuse(request, 405, "wrong_method", words, {"allow": allow})

    def _check_host(self, request: Request) -> Response | None:
        return (
            refusal_response(request, self._rules.branding, FOREIGN_HOST) if self._names.is_foreign(request) else None
        )

    def _check_access(self, request: Request) -> Response | None:
        rules, path = self._rules, get_path(request)
        reader = rules.access.authorize(request)
        if path not in UNLIMITED_PATHS and not path.startswith("/static/"):
            rate = reader.rate if isinstance(reader, Identity) else None
            wait_s = rules.limits.take_token(
                rules.access.get_rate_limit_key(request, reader), rate or rules.access.serve.rate
            )
            if wait_s:
                return self._refuse_rate_limited(request, ceil(wait_s))
        if isinstance(reader, Refusal):
            return self._refuse_access(request, reader)
        request.state.reader = reader
        request.state.address = rules.access.get_client_address(request)
        request.state.allowed = allowed_sites(reader, rules.list_sites()) if reader.auth_method else ()
        return None

    def _refuse_rate_limited(self, request: Request, wait_s: int) -> Response:
        words = f"Too many requests. Try again in {wait_s} s."
        return self._refuse(request, 429, "too_many_requests", words, {"retry-after": str(wait_s)})

    def _refuse_access(self, request: Request, refused: Refusal) -> Response:
        if refused.status == 401 and (
            self._rules.access.serve.access == "token" or get_path(request) in KEY_REQUIRED_PATHS
        ):
            if not is_api_path(get_path(request)) and "authorization" not in request.headers:
                return RedirectResponse(f"/signin?next={quote(_get_full_path(request), safe='')}", 303)
            return refusal_response(request, self._rules.branding, refused, {"www-authenticate": "Bearer"})
        return refusal_response(request, self._rules.branding, refused)

    def _refuse_too_large(self, request: Request) -> Response:
        words = f"The request body is too large: send at most {_get_max_body_bytes(get_path(request)) // 1024} kB."
        return self._refuse(request, 413, "too_large", words)

    def _refuse_failed(self, request: Request) -> Response:
        return self._refuse(request, 500, "failed", "Internal error. The reason is in the server log.")

    def _refuse(
        self, request: Request, status: int, code: str, words: str, headers: dict[str, str] | None = None
    ) -> Response:
        return refusal_response(request, self._rules.branding, Refusal(status, code, words), headers)


class _ResponseSender:
    """Send a response through the gate with headers that depend on the user; remember its status (0: not sent)."""

    def __init__(self, request: Request, send: Send, access: AccessControl) -> None:
        self.status = 0
        self._request = request
        self._path = get_path(request)
        self._send = send
        self._origins = access.serve.embed_origins

    async def send(self, message: Message) -> None:
        """Send a message of the response, with the gate's headers added."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.setdefault("x-content-type-options", "nosniff")
            self._set_cache_headers(headers)
            if self._path in CORS_PATHS:
                self._set_cors_headers(headers)
        await self._send(message)

    def _set_cache_headers(self, headers: MutableHeaders) -> None:
        """Set cache headers: personal responses are private, public ones may be cached for seconds."""
        if self._path.startswith("/static/") or self._path == "/embed.js":
            return
        if self._request.state.reader.auth_method:
            headers["cache-control"] = "private, no-store"
        else:
            headers.setdefault("cache-control", PUBLIC_CACHE if self.status == 200 else "no-store")
        headers.add_vary_header("Authorization, Cookie")

    def _set_cors_headers(self, headers: MutableHeaders) -> None:
        """Set CORS headers: which other origins' scripts may read a response, never with credentials."""
        headers.add_vary_header("Origin")
        origin = self._request.headers.get("origin", "")
        if "*" in self._origins or origin in self._origins:
            headers["access-control-allow-origin"] = "*" if "*" in self._origins else origin
            headers["access-control-expose-headers"] = "retry-after"


def _get_route_pattern(scope: Scope) -> str:
    """Return the path pattern of the route that answered, for metrics; one name for all unmatched paths."""
    path, root = getattr(scope.get("route"), "path", None), scope.get("root_path", "")
    return "none" if path is None else path if path.startswith(root) and root else root + path


def _get_max_body_bytes(path: str) -> int:
    """Return the maximum body size of a path at the gate; hubs push whole feeds, observers whole pages."""
    if is_observer_path(path):
        return MAX_REPORT_BYTES
    return MAX_PUSH_BYTES if is_push_path(path) else MAX_BODY_BYTES


def _get_full_path(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return get_path(request) + (f"?{query}" if query else "")
