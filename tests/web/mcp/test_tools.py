"""The MCP endpoint: the real server on loopback, called by the SDK's own client and by hand."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.tree_runs import PATIENCE_S
from tests.web.small_search import NOW_S, PAGES, SECTIONS, Ask, Heard, SmallSearch, bearer, made_key, served

from vedette.config import Rate, Serve
from vedette.learn.events import LoggedEvent, SearchEvent
from vedette.web.api.parameters import ParameterError
from vedette.web.api.responses import format_iso_time
from vedette.web.auth.keys import Key
from vedette.web.mcp.tools import MAX_PIECE, MAX_TOOL_RESULTS, TOOLS, UNTRUSTED_NOTE, Caller, SearchTools, ToolAnswer
from vedette.web.ports import CachedCopy
from vedette.web.public.slates import SearchRecorder, create_null_recorder

OPEN = Serve(rate=Rate(0, 1.0), embed_origins=("https://docs.example.org",))
ANN, ANN_KEY = made_key("ann", "search", "private")
BOB, BOB_KEY = made_key("bob")
DOCS, DOCS_KEY = made_key("docs", sites=["docs.example.org"])
ADMIN, ADMIN_KEY = made_key("admin", "admin")
GONE, GONE_KEY = made_key("gone")
LONG = "<title>Long</title><nav>Menu</nav><article>" + "<p>Sentences of some length stand here. " * 2000 + "</article>"


class Library(SmallSearch):
    """The small search with one long HTML page, page 1."""

    def find_copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """Return page 1 as HTML."""
        found = super().find_copy(id_, allowed)
        if found is None or id_ != 1:
            return found
        return found._replace(content_type="text/html", body=LONG.encode(), text="")


REVOKED: list[str] = []


def keys() -> Sequence[Key]:
    """The keys; some are revoked during the tests."""
    held = (ANN_KEY, BOB_KEY, DOCS_KEY, ADMIN_KEY, GONE_KEY)
    return [key for key in held if key.name not in REVOKED]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Ask, int]]:
    """An open server: searching needs no key, calling tools does."""
    with served(OPEN, keys, Library()) as running:
        yield running


@pytest.fixture(scope="module")
def ask(server: tuple[Ask, int]) -> Ask:
    """Send a request by hand."""
    return server[0]


@asynccontextmanager
async def connected(port: int, secret: str, mode: str) -> AsyncIterator[Any]:
    """Connect the SDK's client with a key."""
    async with httpx2.AsyncClient(headers=bearer(secret), trust_env=False) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def by_client(port: int, secret: str, work: Callable[[Any], Awaitable[Any]], mode: str = "auto") -> Any:
    """Return the result of some work with a client."""

    async def done() -> Any:
        async with connected(port, secret, mode) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(done(), 300))


def posted(ask: Ask, body: object, headers: dict[str, str] | None = None) -> Heard:
    """Return a message as a client posts it."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return ask("/mcp", usual | (bearer(BOB) if headers is None else headers), "POST", sent)


def call(name: str, **arguments: object) -> dict[str, object]:
    """Return the message that calls a tool."""
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def read_result(ask: Ask, secret: str, name: str, **arguments: object) -> Any:
    """Return a tool's structured result."""
    answer = posted(ask, call(name, **arguments), bearer(secret)).json["result"]
    assert not answer["isError"], answer
    return answer["structuredContent"]


def complaint(ask: Ask, secret: str, name: str, **arguments: object) -> str:
    """Return a tool's error message."""
    answer = posted(ask, call(name, **arguments), bearer(secret)).json["result"]
    assert answer["isError"]
    words: str = answer["content"][0]["text"]
    return words


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_finds_the_tools_and_uses_them(server: tuple[Ask, int], mode: str) -> None:
    """The SDK's client, with the newest protocol or an older one, lists the tools and gets the promised results."""

    async def work(client: Any) -> tuple[Any, ...]:
        tools = (await client.list_tools()).tools
        found = await client.call_tool("search", {"query": "lag", "n": 5})
        read = await client.call_tool("cached_page", {"id": found.structured_content["results"][0]["id"]})
        quoted = await client.call_tool("passages", {"query": "lag", "n": 2})
        return tools, found, read, quoted, await client.call_tool("list_sites", {})

    tools, found, read, quoted, sites = by_client(server[1], BOB, work, mode)
    assert [tool.name for tool in tools] == list(TOOLS)
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert all(UNTRUSTED_NOTE in tool.description for tool in tools[:3])
    assert [each["id"] for each in found.structured_content["results"]] == [1]
    assert PAGES[0].url in found.content[0].text
    assert read.structured_content["url"] == PAGES[0].url
    passage = quoted.structured_content["passages"][0]
    assert passage.keys() == {"url", "title", "heading", "text", "fetched_at", "score"}
    assert passage["url"] == SECTIONS[0].url
    assert sites.structured_content["sites"] == [{"site": "docs.example.org", "pages": 2}]


def test_two_clients_are_served_at_once(server: tuple[Ask, int]) -> None:
    """Concurrent requests each get their own response, according to their own key."""

    async def both() -> list[list[int]]:
        async with connected(server[1], ANN, "auto") as ann, connected(server[1], BOB, "auto") as bob:
            asked = [client.call_tool("search", {"query": "lag"}) for client in (ann, bob) * 5]
            answers = await asyncio.gather(*asked)
        return [[each["id"] for each in answer.structured_content["results"]] for answer in answers]

    assert asyncio.run(asyncio.wait_for(both(), 300)) == [[1, 3, 4], [1]] * 5


def test_a_search_returns_results_notes_and_spelling(ask: Ask) -> None:
    """A result has dates and a reason; notes and a spelling suggestion are included; text is quoted as such."""
    found = read_result(ask, BOB, "search", query="consumer", n="3", page=1.0, after=None)
    (first,) = found["results"]
    assert first["snippet"] == PAGES[0].snippet.text
    assert first["fetched_at"] == format_iso_time(NOW_S - 60)
    assert first["published_at"] == format_iso_time(NOW_S - 86_400)
    assert found["notes"] == ["a note"]
    assert read_result(ask, BOB, "search", query="lga")["did_you_mean"] == "lag"
    assert read_result(ask, BOB, "search", query="half")["results"][0]["title"] == "Half a pair ?"
    text = posted(ask, call("search", query="consumer")).json["result"]["content"][0]["text"]
    assert UNTRUSTED_NOTE in text
    assert first["snippet"] in text


def test_passages_are_quoted_with_their_source(ask: Ask) -> None:
    """A passage has the URL of its section; its text is quoted as untrusted, and hidden sites stay hidden."""
    found = read_result(ask, BOB, "passages", query="lag", n=5, max_chars="300")["passages"]
    assert [part["url"] for part in found] == [part.url for part in SECTIONS]
    assert found[0]["text"] == SECTIONS[0].snippet.text
    text = posted(ask, call("passages", query="lag")).json["result"]["content"][0]["text"]
    assert UNTRUSTED_NOTE in text
    assert SECTIONS[1].url in text
    assert read_result(ask, BOB, "passages", query="nothing of the kind")["passages"] == []


def test_a_page_is_read_in_pieces_and_never_as_html(ask: Ask) -> None:
    """The parts of a long page add up to its main text, without markup."""
    piece = read_result(ask, BOB, "cached_page", id=1, max_chars=MAX_PIECE)
    pieces = [piece["text"]]
    while piece["next_offset"]:
        piece = read_result(ask, BOB, "cached_page", id=1, max_chars=MAX_PIECE, offset=piece["next_offset"])
        pieces.append(piece["text"])
    assert max(map(len, pieces)) <= MAX_PIECE
    text = "".join(pieces)
    assert len(text) == piece["total_chars"]
    assert text.count("Sentences of some length stand here.") == LONG.count("<p>")
    assert "<" not in text
    assert "Menu" not in text
    assert read_result(ask, BOB, "cached_page", id=1, offset=10**7)["text"] == ""


def test_a_page_is_found_by_its_address(ask: Ask) -> None:
    """Any spelling of the URL works; an unknown one gets the same response as one without access."""
    assert read_result(ask, BOB, "cached_page", url="HTTPS://docs.example.org:443/a/../1#part")["id"] == 1
    unknown = complaint(ask, BOB, "cached_page", url="https://docs.example.org/none")
    assert complaint(ask, BOB, "cached_page", url=PAGES[2].url) == unknown
    assert complaint(ask, BOB, "cached_page", id=3) == unknown
    assert read_result(ask, ANN, "cached_page", url=PAGES[2].url)["id"] == 3


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("search", {}, "query"),
        ("search", {"query": ["a"]}, "query"),
        ("search", {"query": "a", "n": MAX_TOOL_RESULTS + 1}, "n must be an integer"),
        ("search", {"query": "a", "n": True}, "n must be"),
        ("search", {"query": "a", "n": 10**400}, "n must be"),
        ("search", {"query": "a", "page": 0}, "page must be an integer"),
        ("search", {"query": "a", "after": "yesterday"}, "after must be a valid date"),
        ("search", {"query": "a", "langauge": "en"}, "did you mean language?"),
        ("cached_page", {}, "either id or url"),
        ("cached_page", {"id": 1, "url": "https://docs.example.org/1"}, "either id or url"),
        ("cached_page", {"url": "file:///etc/passwd"}, "full URL"),
        ("list_sites", {"site": "x"}, "takes no arguments"),
        ("delete_everything", {}, "Unknown tool; choose from search, passages, cached_page, list_sites."),
    ],
)
def test_wrong_arguments_are_explained(ask: Ask, name: str, arguments: dict[str, object], expected: str) -> None:
    """The error says what to write instead."""
    assert expected in complaint(ask, BOB, name, **arguments)


@pytest.mark.parametrize("query", ["boom", "panic"])
def test_faults_are_reported_without_details(ask: Ask, query: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The model learns that the tool failed; the error goes to the operator, and the query to no one."""
    assert complaint(ask, BOB, "search", query=query) == "Internal error. The reason is in the server log."
    logged = capfd.readouterr().err
    assert logged.startswith("vedette: ")
    assert logged.count("\n") == 1
    assert read_result(ask, BOB, "search", query="lag")["total"] == 1


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer vk_wrong"}, {"Cookie": f"vedette_key={BOB}"}])
def test_a_key_is_always_needed(ask: Ask, headers: dict[str, str]) -> None:
    """This is true even if everyone may search.

    Neither a cookie, which browsers send automatically, nor a parameter counts.
    """
    answer = posted(ask, call("search", query="lag"), headers)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    kind = {"Content-Type": "application/json"}
    assert ask(f"/mcp?key={BOB}", kind, "POST", b"{}").status == 401


def test_a_revoked_key_ends_at_once(ask: Ask) -> None:
    """It is refused from the next call on."""
    assert read_result(ask, GONE, "search", query="lag")["total"] == 1
    REVOKED.append("gone")
    assert posted(ask, call("search", query="lag"), bearer(GONE)).status == 401


def test_a_key_needs_the_scope_to_search(ask: Ask) -> None:
    """A key with other scopes can't call tools."""
    assert posted(ask, call("list_sites"), bearer(ADMIN)).status == 403


def test_a_limited_key_sees_its_sites_only(ask: Ask) -> None:
    """This is true for results, copies and lists, and for any query."""
    assert {each["site"] for each in read_result(ask, DOCS, "search", query="")["results"]} == {"docs.example.org"}
    assert "This key is limited to docs.example.org" in complaint(
        ask, DOCS, "search", query="lag", site="hr.example.org"
    )
    assert [each["site"] for each in read_result(ask, DOCS, "list_sites")["sites"]] == ["docs.example.org"]
    assert read_result(ask, DOCS, "cached_page", id=1)["id"] == 1


def test_private_sites_are_visible_to_their_readers_only(ask: Ask) -> None:
    """No tool reveals a page, a title or a host to anyone else."""
    for name, arguments in (
        ("search", {"query": ""}),
        ("passages", {"query": ""}),
        ("list_sites", {}),
        ("cached_page", {"id": 1}),
    ):
        answer = posted(ask, call(name, **arguments)).body
        assert b"wiki.example.org" not in answer
        assert b"Salaries" not in answer
    assert "wiki.example.org" in [each["site"] for each in read_result(ask, ANN, "list_sites")["sites"]]


def test_foreign_origins_are_refused(server: tuple[Ask, int]) -> None:
    """A page on another origin can't call it, even if its name resolves here; configured origins can."""
    ask, port = server
    for origin, host, status in (
        ("https://evil.example", "", 403),
        (f"http://evil.example:{port}", f"evil.example:{port}", 403),
        ("null", "", 403),
        ("https://docs.example.org", "", 200),
        (f"http://127.0.0.1:{port}", "", 200),
        (f"http://localhost:{port}", "", 200),
    ):
        sent = bearer(BOB) | {"Origin": origin} | ({"Host": host} if host else {})
        assert posted(ask, call("list_sites"), sent).status == status, origin


def test_only_posting_is_allowed(ask: Ask) -> None:
    """There is no stream to open and no session to end."""
    for method in ("GET", "DELETE", "PUT"):
        answer = ask("/mcp", bearer(BOB), method)
        assert answer.status == 405
        assert "POST" in answer.headers["allow"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"[" * 60_000, b"null", b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', b"\xff\xfe"],
    ids=["empty", "open", "batch", "deep", "null", "bare", "bytes"],
)
@pytest.mark.parametrize("version", ["", "2025-06-18", "2026-07-28", "1999-01-01"])
def test_invalid_messages_are_client_errors(ask: Ask, body: bytes, version: str) -> None:
    """Whatever is posted, the error blames the sender, and the next call works."""
    sent = bearer(BOB) | ({"MCP-Protocol-Version": version} if version else {})
    assert posted(ask, body or b" ", sent).status < 500


def test_calls_are_counted_by_tool_and_outcome(ask: Ask) -> None:
    """Invented names are not counted separately."""
    read_result(ask, BOB, "list_sites")
    complaint(ask, BOB, "made_up_name")
    shown = ask("/metrics").body.decode()
    assert 'vedette_mcp_calls_total{outcome="answered",tool="list_sites"}' in shown
    assert 'vedette_mcp_calls_total{outcome="refused",tool="none"}' in shown
    assert "made_up_name" not in shown


def test_the_server_ends_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    """No protocol state outlives a call, so shutdown has nothing to wait for."""
    with served(OPEN, keys, Library()) as (ask, _port):
        assert read_result(ask, BOB, "list_sites")["pages"]
    assert capfd.readouterr() == ("", "")


def test_a_search_is_written_down_as_a_model_s() -> None:
    """Searches by models are recorded separately from those of people, with their views."""
    kept: list[LoggedEvent] = []
    tools = SearchTools(Library(), SearchRecorder(kept, b"secret", lambda _day: b"salt", lambda: NOW_S))
    asyncio.run(tools.call("search", {"query": "lag", "n": 2, "page": 1}, Caller()))
    (record,) = kept
    assert isinstance(record, SearchEvent)
    assert (record.query, record.via, [each.page for each in record.results]) == ("lag", "mcp", [1])


_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2)


@settings(max_examples=60)
@given(
    name=st.sampled_from([*TOOLS, "other"]),
    arguments=st.dictionaries(
        st.sampled_from(
            ["query", "n", "page", "site", "language", "after", "before", "id", "url", "offset", "max_chars"]
        ),
        _VALUES,
        max_size=4,
    ),
)
def test_any_arguments_are_answered_or_refused(name: str, arguments: dict[str, object]) -> None:
    """Nothing a model invents causes a server error, and every response is JSON in UTF-8."""
    answer = outcome(name, arguments)
    if isinstance(answer, str):
        assert answer.endswith((".", "?"))
        return
    json.dumps(answer.values, ensure_ascii=False, allow_nan=False).encode()
    answer.text.encode()


def outcome(name: str, arguments: dict[str, object]) -> ToolAnswer | str:
    """Return a tool's result or its error message."""
    try:
        return asyncio.run(SearchTools(Library(), create_null_recorder()).call(name, arguments, Caller()))
    except ParameterError as wrong:
        return wrong.message


def test_the_sdk_is_imported_only_where_it_is_used() -> None:
    """A server that no model calls does not load it."""
    code = "import sys, vedette.web.app; sys.exit('mcp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)
