"""The MCP server, built on the SDK. It is the only user of the SDK; ``mcp.endpoint`` imports it late.

Requests are stateless, and each gets one JSON body. So nothing outlives a request: its tasks end with it, any number of
processes can respond, and a shutdown of the server has nothing to wait for.
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

from vedette.version import __version__
from vedette.web.api.parameters import ParameterError
from vedette.web.gate import log_error
from vedette.web.mcp.tools import INSTRUCTIONS, TOOLS, Caller, SearchTools, ToolAnswer
from vedette.web.public.visits import parse_visitor

CallCounter = Callable[[str, str], None]
Context = ServerRequestContext[Any, Any]

MAX_BODY_BYTES = 65_536
_READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def create_mcp_app(tools: SearchTools, title: str, counted: CallCounter) -> ASGIApp:
    """Create the ASGI application that answers MCP requests. ``request.state`` says what may be seen."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # hostile input is not worth logging
    server = _create_server(tools, title, counted)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    return answer


def _create_server(tools: SearchTools, title: str, counted: CallCounter) -> Server[Any]:
    listed = ListToolsResult(tools=[_describe_tool(name) for name in TOOLS])

    async def list_tools(_context: Context, _asked: PaginatedRequestParams | None) -> ListToolsResult:
        return listed

    async def call_tool(context: Context, call: CallToolRequestParams) -> CallToolResult:
        outcome, answer = await _call_tool(tools, context, call)
        counted(call.name if call.name in TOOLS else "none", outcome)
        return answer

    server: Server[Any] = Server(
        "vedette",
        version=__version__,
        title=title,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.clear()  # queries must not appear in logs
    return server


def _describe_tool(name: str) -> Tool:
    tool = TOOLS[name]
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=_READ_ONLY,
    )


async def _call_tool(tools: SearchTools, context: Context, call: CallToolRequestParams) -> tuple[str, CallToolResult]:
    """Call an MCP tool; return the outcome and the answer, with errors in words that a model can act on."""
    assert context.request is not None  # over HTTP there is one
    state = context.request.state
    asker = Caller(state.allowed, state.reader.sites, parse_visitor(context.request))
    try:
        result = await tools.call(call.name, call.arguments or {}, asker)
    except ParameterError as wrong:
        return "refused", _build_error(f"{wrong.parameter}: {wrong.message}" if wrong.parameter else wrong.message)
    except (CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the index is no Exception, and is reported all the same
        log_error("a tool", error)
        return "failed", _build_error("Internal error. The reason is in the server log.")
    return "answered", _build_result(result)


def _build_result(answer: ToolAnswer) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=answer.text)], structured_content=answer.values)


def _build_error(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=words)], is_error=True)
