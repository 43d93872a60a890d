"""``POST /mcp``: the HTTP endpoint of the Model Context Protocol (streamable HTTP), for language models.

A key is always needed, even if others may search without one: a model sends many requests, and someone has to be
responsible for them. It has to be in the header, since a browser adds cookies to whatever a page requests.

The SDK takes most of a second to import, and most servers never need it. So it is imported at the first request, in a
thread, while searches continue.
"""

from asyncio import Lock
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from vedette.config import Serve
from vedette.web.api.responses import error_response
from vedette.web.auth.keys import KEY_PREFIX
from vedette.web.mcp.tools import SearchTools
from vedette.web.ports import SearchService
from vedette.web.public.slates import SearchRecorder
from vedette.web.rendering import Branding

MCP_PATH = "/mcp"
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


def mcp_route(
    search: SearchService,
    serve: Serve,
    look: Branding,
    counted: Callable[[str, str], None],
    recording: SearchRecorder,
) -> Route:
    """Return the MCP route. ``counted`` gets the tool and outcome of each call, ``recording`` each search."""
    return Route(MCP_PATH, _McpEndpoint(SearchTools(search, recording), serve, look, counted), methods=["POST"])


class _McpEndpoint:
    """The MCP endpoint: admits callers whose key the gate accepted, and passes them to the SDK."""

    def __init__(self, tools: SearchTools, serve: Serve, look: Branding, counted: Callable[[str, str], None]) -> None:
        self._tools = tools
        self._serve = serve
        self._look = look
        self._counted = counted
        self._app: ASGIApp | None = None
        self._making = Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an MCP request."""
        request = Request(scope)
        answer = self._check_origin(request) or self._check_key(request) or await self._load_app()
        await answer(scope, receive, send)

    def _check_origin(self, request: Request) -> Response | None:
        """Refuse an MCP request from a page of another origin, which a browser names; programs name none."""
        origin = request.headers.get("origin")
        if origin is None or "*" in self._serve.embed_origins or origin in self._serve.embed_origins:
            return None
        if origin in self._list_own_origins(request):
            return None
        return error_response(403, "foreign_origin", "Requests from other origins are not allowed.")

    def _list_own_origins(self, request: Request) -> tuple[str, ...]:
        """Return this server's own origins for the MCP origin check.

        The header Host is not trusted: a name may be made to resolve to this machine.
        """
        if self._look.address:
            return (self._look.address.rstrip("/"),)
        port = (request.scope.get("server") or ("", 80))[1]
        return tuple(f"http://{host}:{port}" for host in (*_LOCAL_HOSTS, self._serve.listen.rpartition(":")[0]))

    def _check_key(self, request: Request) -> Response | None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        by_header = scheme.lower() == "bearer" and shown.strip().startswith(KEY_PREFIX)
        if by_header and request.state.reader.auth_method == "key":
            return None
        words = "A key is required: send it in the Authorization header, as Bearer vk_…."
        return error_response(401, "no_key", words, None, {"www-authenticate": "Bearer"})

    async def _load_app(self) -> ASGIApp:
        async with self._making:
            if self._app is None:
                self._app = await run_in_threadpool(_import_app, self._tools, self._look.name, self._counted)
        return self._app


def _import_app(tools: SearchTools, title: str, counted: Callable[[str, str], None]) -> ASGIApp:
    from vedette.web.mcp.server import create_mcp_app  # late: it is slow, and seldom needed

    return create_mcp_app(tools, title, counted)
