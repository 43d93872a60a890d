"""The tools behind the Model Context Protocol, by its SDK. The only user of the SDK; ``mcp_endpoint`` imports it late.

Every request stands for itself (stateless), and is answered by one JSON body. So nothing outlives a request: its tasks
are ended with it, any number of processes can answer, and an end of the server has nothing to wait for.
"""

import logging
from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from vedette import __version__
from vedette.web.api.parameters import WrongParameter
from vedette.web.error_log import log_fault
from vedette.web.mcp.tools import INSTRUCTIONS, TOOLS, Asker, Told, Tools
from vedette.web.public.visits import visit_of

__all__ = ["Counted", "protocol_app"]

Counted = Callable[[str, str], None]
Context = ServerRequestContext[Any, Any]

LONGEST_BODY = 65_536
_HINTS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def protocol_app(tools: Tools, title: str, counted: Counted) -> ASGIApp:
    """An application that answers POST requests of the protocol. ``request.state`` says what may be seen."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # what hostile clients send is no news
    server = _server(tools, title, counted)

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=LONGEST_BODY
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    return answered


def _server(tools: Tools, title: str, counted: Counted) -> Server[Any]:
    listed = ListToolsResult(tools=[_described(name) for name in TOOLS])

    async def list_tools(_context: Context, _asked: PaginatedRequestParams | None) -> ListToolsResult:
        return listed

    async def call_tool(context: Context, asked: CallToolRequestParams) -> CallToolResult:
        outcome, answer = await _called(tools, context, asked)
        counted(asked.name if asked.name in TOOLS else "none", outcome)
        return answer

    server: Server[Any] = Server(
        "vedette",
        version=__version__,
        title=title,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.clear()  # nobody else is told what is searched
    return server


def _described(name: str) -> Tool:
    told = TOOLS[name]
    return Tool(
        name=told.name,
        title=told.title,
        description=told.description,
        input_schema=told.takes,
        output_schema=told.gives,
        annotations=_HINTS,
    )


async def _called(tools: Tools, context: Context, asked: CallToolRequestParams) -> tuple[str, CallToolResult]:
    """How a call went, and what is answered: trouble is told to the model in words, so that it can do better."""
    assert context.request is not None  # over HTTP there is one
    state = context.request.state
    asker = Asker(state.allowed, state.reader.sites, visit_of(context.request))
    try:
        told = await tools.call(asked.name, asked.arguments or {}, asker)
    except WrongParameter as wrong:
        return "refused", _trouble(f"{wrong.parameter}: {wrong.words}" if wrong.parameter else wrong.words)
    except (CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the index is no Exception, and is told all the same
        log_fault("a tool", error)
        return "failed", _trouble("That went wrong here. The reason is in the server's log.")
    return "answered", _answer(told)


def _answer(told: Told) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=told.text)], structured_content=told.values)


def _trouble(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=words)], is_error=True)
