"""Bodies sent to the API: the whole application in this process, without a socket; the first byte selects the path."""

import asyncio
import atexit
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any
from unittest.mock import patch

from starlette.applications import Starlette
from tests.fuzz.target import Target
from tests.web.push.test_routes import SmallPush
from tests.web.small_operator import SmallDesk, SmallOperator, SmallWatch
from tests.web.small_search import HeldLog, SmallSearch, made_key, recording_to

from vedette.config import Rate, Serve
from vedette.serve.slate import SearchRequest, Slate
from vedette.web.api.parameters import ParameterError
from vedette.web.app import create_app
from vedette.web.commands.json_commands import Holdings, parse_ad_command
from vedette.web.console.routes import ConsoleServices
from vedette.web.gate import parse_json
from vedette.web.rendering import Branding

__all__ = ["API"]

PATHS = ("/api/v1/orders", "/api/v1/events", "/indexnow", "/push/abc", "/mcp")
ADMIN, ADMIN_KEY = made_key("ops", "search", "admin")
SCOPE = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "POST",
    "scheme": "http",
    "root_path": "",
    "query_string": b"",
    "client": ("192.0.2.1", 50_000),
    "server": ("localhost", 8080),
}


def _call(name: str, **arguments: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


BODIES: tuple[tuple[int, object], ...] = (
    (0, {"order": "add_site", "site": "example.org/docs/", "settings": {"scope": "prefix", "delay": "5s"}}),
    (0, {"order": "set_site", "site": "example.org", "settings": {"exclude": ["/drafts/*"], "render": "always"}}),
    (0, {"order": "fetch", "urls": ["https://example.org/a"]}),
    (0, {"order": "add_rule", "kind": "block", "value": "a.example"}),
    (0, {"order": "add_alert", "name": "n", "query": "owls site:a.example", "webhook": "https://93.184.216.34/"}),
    (1, {"slate": "abc", "event": "click", "result": 1, "position": 2}),
    (2, {"host": "example.org", "key": "0123456789abcdef", "urlList": ["https://example.org/new"]}),
    (4, _call("search", query="lag", n=3, site="docs.example.org")),
    (4, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    (
        5,
        {
            "order": "submit_ad",
            "campaign": "c",
            "title": "T",
            "text": "t",
            "url": "https://93.184.216.34/",
            "bid": "0.3",
        },
    ),
    (5, {"order": "keep_campaign", "campaign": "c", "budget": "3.00", "ends": "2027-01-31"}),
)
SEEDS = (*(bytes([path]) + json.dumps(body).encode() for path, body in BODIES), b"\x03<feed/>")
TOKENS = (
    *(b'"order": "', b'"retry"', b'"undo"', b'"settings": {', b'"remove_site"', b'"edit_ad"', b'"pause_campaign"'),
    *(b"null", b"true", b"1e999", b"-0", b"\\ud800", b"\\u0000", b"[[[[", b'"params": {', b"https://", b"[::1]"),
)


class CalmSearch(SmallSearch):
    """The small search without its faults, which have their own tests."""

    def search(self, wish: SearchRequest) -> Slate:
        """Return results, even for queries that are faults elsewhere."""
        self.wishes.clear()
        return super().search(wish if wish.query not in {"boom", "panic"} else wish._replace(query="lag"))


class _Application:
    """The application, called without a server, and its responses."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        atexit.register(self._loop.close)
        self._operator, self._push, self._log = SmallOperator(), SmallPush(), HeldLog()
        self._app: Starlette = create_app(
            CalmSearch(),
            Serve(rate=Rate(0, 1.0)),
            Branding(),
            lambda: (ADMIN_KEY,),
            recording=recording_to(self._log),
            console=ConsoleServices(self._operator, SmallWatch(), SmallDesk(), push=self._push),
        )

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a body; return status and body of the response."""
        with patch("anyio.to_thread.run_sync", _call_here):
            answer = self._loop.run_until_complete(self._post(path, body))
        for kept in (
            self._operator.orders,
            self._push.pings,
            self._push.deliveries,
            self._log.records,
            self._log.lines,
        ):
            kept.clear()
        return answer

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        sent: list[dict[str, Any]] = []
        rest = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if rest:
                return rest.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            sent.append(message)

        headers = {"host": "localhost", "content-type": "application/json", "authorization": f"Bearer {ADMIN}"}
        headers |= {"accept": "application/json, text/event-stream", "content-length": str(len(body))}
        scope = SCOPE | {
            "path": path,
            "raw_path": path.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        await asyncio.wait_for(self._app(scope, receive, send), 300)
        bodies = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], bodies


async def _call_here(function: Callable[..., Any], *arguments: object, **_: object) -> Any:
    """Call what would run in a thread, because starting threads takes longer than everything else."""
    return function(*arguments)


@cache
def _start_application() -> _Application:
    return _Application()


def check_body(data: bytes) -> None:
    """Check that the response to any body is below 500, and that an error says why."""
    path, body = (data[0] if data else 0) % (len(PATHS) + 1), data[1:]
    if path == len(PATHS):
        _check_ad_command(body)
        return
    status, answer = _start_application().post(PATHS[path], body)
    assert 200 <= status < 500, (status, answer[:500])
    if status >= 400 and PATHS[path] != "/mcp":
        assert json.loads(answer)["error"]["message"], answer


def _check_ad_command(body: bytes) -> None:
    with suppress(ParameterError):
        parse_ad_command(parse_json(body), Holdings("", {}, {}, {}))


API = Target(check_body, SEEDS, TOKENS, most_bytes=4_096)
