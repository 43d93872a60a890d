"""The API on the real server: requests and responses of programs."""

import calendar
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tree_runs import PATIENCE_S
from tests.web.small_search import NOW_S, PAGES, SECTIONS, Ask, SmallSearch, served

from vedette.adapters.crawl_store.status_file import FailingProcess
from vedette.config import Rate, Serve
from vedette.errors import UsageError
from vedette.web import server as serving
from vedette.web.server import bind

OPEN = Serve(rate=Rate(0, 1.0), embed_origins=("https://docs.example.org",))


@pytest.fixture(scope="module")
def search() -> SmallSearch:
    """The search behind the server."""
    return SmallSearch()


@pytest.fixture(scope="module")
def server(search: SmallSearch) -> Iterator[tuple[Ask, int]]:
    """An open server without a rate limit."""
    with served(OPEN, search=search) as running:
        yield running


@pytest.fixture(scope="module")
def ask(server: tuple[Ask, int]) -> Ask:
    """Send a request."""
    return server[0]


def test_results_have_all_fields_and_reasons(ask: Ask) -> None:
    """A result has all fields, times are ISO 8601 in UTC, and the snippet is plain text with highlights."""
    report = ask("/api/v1/search?q=consumer&explain=1").json
    assert (report["query"], report["total"], report["notes"], report["relaxed"]) == ("consumer", 1, ["a note"], [])
    assert report["did_you_mean"] is None
    assert report["took_ms"] >= 0
    (found,) = report["results"]
    assert found["snippet"][slice(*found["highlights"][0])] == "Lag"
    assert found["why"] == [{"feature": "words in the title", "value": 1, "weight": 2, "contribution": 2}]
    assert _seconds(found["fetched_at"]) == NOW_S - 60
    assert _seconds(found["published_at"]) == NOW_S - 86_400
    assert (found["id"], found["site"], found["type"], found["language"]) == (1, "docs.example.org", "html", "en")
    assert found["cached_url"] == "/cached/1"
    assert [(part["heading"], part["url"]) for part in found["sections"]] == [part[:2] for part in SECTIONS]
    assert found["sections"][0]["snippet"][slice(*found["sections"][0]["highlights"][0])] == "Lag"


def test_passages_are_the_best_sections_of_all_pages(ask: Ask, search: SmallSearch) -> None:
    """Sections have a URL to cite, and of equally good pages the best come first; a page without any is one passage."""
    answer = ask("/api/v1/passages?q=a&n=3&chars=500").json
    assert search.wishes[-1].snippet_length == 500
    found = answer["passages"]
    assert [part["url"] for part in found] == [SECTIONS[0].url, PAGES[1].url, SECTIONS[1].url]
    assert [part["heading"] for part in found] == ["Lag of groups", "", "Offsets"]
    assert [part["page_url"] for part in found] == [PAGES[0].url, PAGES[1].url, PAGES[0].url]
    assert found[0]["score"] == 1 >= found[1]["score"] > found[2]["score"] > 0
    assert _seconds(found[0]["fetched_at"]) == NOW_S - 60
    assert found[0]["text"] == SECTIONS[0].snippet.text


@pytest.mark.parametrize(
    ("query", "parameter"), [("", "q"), ("q=a&n=21", "n"), ("q=a&chars=99", "chars"), ("q=a&page=2", "page")]
)
def test_wrong_passage_parameters_are_named(ask: Ask, query: str, parameter: str) -> None:
    """Errors name missing, out-of-range and unknown parameters."""
    assert ask(f"/api/v1/passages?{query}").complaint[2] == parameter


def _seconds(text: str) -> float:
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def test_parameters_become_the_request(ask: Ask, search: SmallSearch) -> None:
    """Filters and pages arrive as requested; days begin at midnight UTC; empty ones are ignored."""
    ask("/api/v1/search?q=a+b&n=7&page=3&site=docs.example.org/x&type=PDF&lang=EN&after=1970-01-02&before=1970-01-03")
    wish = search.wishes[-1]
    assert (wish.query, wish.n, wish.page, wish.site) == ("a b", 7, 3, "docs.example.org/x")
    assert (wish.kind, wish.language, wish.after_s, wish.before_s) == ("pdf", "en", 86_400, 2 * 86_400)
    assert ask("/api/v1/search?q=&site=&type=&lang=&after=&before=").status == 200
    wish = search.wishes[-1]
    assert (wish.site, wish.kind, wish.language, wish.after_s, wish.before_s) == ("", "", "", None, None)
    ask("/api/v1/search?q=&site=https://docs.example.org/x")
    assert search.wishes[-1].site == "docs.example.org/x"


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        *(("", "q"), ("q=a&n=0", "n"), ("q=a&n=51", "n"), ("q=a&n=x", "n"), ("q=a&n=", "n"), ("q=a&n=%D9%A3", "n")),
        *(("q=a&page=0", "page"), ("q=a&page=101", "page"), ("q=a&n=50&page=21", "page"), ("q=a&page=1e3", "page")),
        *(("q=a&after=yesterday", "after"), ("q=a&after=2026-02-30", "after"), ("q=a&before=2026-1-1", "before")),
        *(("q=a&site=a+b", "site"), ("q=a&type=a.b", "type"), ("q=a&lang=e", "lang")),
        *(("q=a&q=b", "q"), ("q=a&since=2026-01-01", "since"), ("q=a&n=9%0A", "n")),
    ],
)
def test_invalid_parameters_are_named(ask: Ask, query: str, parameter: str) -> None:
    """Out-of-range values, invalid dates, and repeated or misspelled parameters get 400 and what is valid."""
    assert ask(f"/api/v1/search?{query}").complaint == (400, "wrong_parameter", parameter)


def test_the_last_page_that_can_be_had_can_be_had(ask: Ask) -> None:
    """There are at most a thousand results, whatever the page size."""
    assert ask("/api/v1/search?q=a&n=50&page=20").status == 200
    assert ask("/api/v1/search?q=a&n=1&page=1000").status == 200
    assert "at most 333" in ask("/api/v1/search?q=a&n=3&page=334").json["error"]["message"]


def test_a_misspelled_parameter_gets_a_suggestion(ask: Ask) -> None:
    """It is not silently ignored."""
    assert "did you mean site?" in ask("/api/v1/search?q=a&sites=x").json["error"]["message"]


def test_a_long_query_is_cut_with_a_note(ask: Ask, search: SmallSearch) -> None:
    """The beginning is searched, even if every character takes twelve bytes in the URL."""
    report = ask(f"/api/v1/search?q={quote('🦉' * 2500)}").json
    assert len(search.wishes[-1].query) == 2000
    assert "2000" in report["notes"][-1]


@given(query=st.text())
def test_any_text_is_a_query(ask: Ask, search: SmallSearch, query: str) -> None:
    """It arrives as written, and the response is JSON."""
    if query in {"boom", "panic"}:
        return
    encoded = urlencode({"q": query}, errors="surrogatepass")
    report = ask(f"/api/v1/search?{encoded}")
    assert report.status == 200
    if query.isprintable():
        assert report.json["query"] == search.wishes[-1].query == query


@given(raw=st.binary(max_size=60))
def test_any_bytes_are_a_query(ask: Ask, raw: bytes) -> None:
    """Invalid UTF-8 is replaced, not rejected."""
    assert ask(f"/api/v1/search?q={quote(raw)}").status == 200
    assert ask(f"/api/v1/suggest?q={quote(raw)}").status == 200


def test_half_a_surrogate_pair_does_not_break_the_answer(ask: Ask) -> None:
    """It is replaced, since it can't be encoded."""
    (found,) = ask("/api/v1/search?q=half").json["results"]
    assert found["title"] == PAGES[1].title.encode("utf-8", "replace").decode()


def test_suggestions_and_sites(ask: Ask) -> None:
    """Suggestions are strings, and sites are hosts with page counts; neither reveals private ones."""
    assert ask("/api/v1/suggest?q=la").json == {"query": "la", "suggestions": ["Consumer lag"]}
    assert ask("/api/v1/suggest?q=a&n=1").json["suggestions"] == ["Consumer lag"]
    assert ask("/api/v1/sites").json["sites"] == [{"site": "docs.example.org", "pages": 2}]
    assert ask("/api/v1/suggest?q=a&n=21").complaint == (400, "wrong_parameter", "n")
    assert ask("/api/v1/suggest").complaint == (400, "wrong_parameter", "q")
    instant = ask("/api/v1/instant?q=consumer%20la").json
    assert (instant["suggestions"], instant["corrected"]) == (["Consumer lag"], None)
    assert [(each["url"], each["heading"]) for each in instant["results"]] == [
        ("https://docs.example.org/1#lag", "Lag of groups")
    ]
    assert ask("/api/v1/instant?q=a&n=11").complaint == (400, "wrong_parameter", "n")


def test_health_reports_whether_it_can_search(ask: Ask, search: SmallSearch) -> None:
    """200 while it can search, otherwise 503 with a reason."""
    assert ask("/healthz").json == {"status": "ok", "pages": 2, "behind": "", "failing": [], "over_limit": 0}
    search.broken = True
    try:
        failing = ask("/healthz")
        assert (failing.status, failing.json["status"]) == (503, "failing")
        assert "OSError" in failing.json["behind"]
    finally:
        search.broken = False


def test_health_names_processes_that_keep_failing(ask: Ask, search: SmallSearch) -> None:
    """Searches work, so the status is 200; a monitor sees which process fails, but not its error."""
    search.failing = (FailingProcess("indexer", 7, "a path nobody else should read"),)
    try:
        report = ask("/healthz")
    finally:
        search.failing = ()
    assert (report.status, report.json["status"], report.json["failing"]) == (200, "degraded", ["indexer"])
    assert b"nobody" not in report.body


def test_health_counts_daily_limits_that_are_used_up(ask: Ask, search: SmallSearch) -> None:
    """A monitor sees that the limit was needed; which sites are crawled stays private."""
    search.exceeded = 2
    try:
        report = ask("/healthz").json
    finally:
        search.exceeded = 0
    assert (report["status"], report["over_limit"]) == ("degraded", 2)


def test_metrics_count_by_route_and_never_by_query(ask: Ask) -> None:
    """Requests by route and status, searches by time, pages and age; a made-up path does not become a label."""
    ask("/api/v1/search?q=needle-in-label")
    ask("/made-up-path")
    text = ask("/metrics").body.decode()
    assert 'vedette_requests_total{route="/api/v1/search",status="200"}' in text
    assert 'route="none",status="404"' in text
    assert "vedette_search_seconds_bucket" in text
    assert "vedette_pages 2.0" in text
    assert "vedette_index_age_seconds 60.0" in text
    assert "needle" not in text
    assert "made-up" not in text


def test_a_fault_is_an_answer_and_one_line(ask: Ask, capfd: pytest.CaptureFixture[str]) -> None:
    """Programs get JSON and people a page; the log line has the error and its place, but not the query."""
    assert ask("/api/v1/search?q=boom").complaint == (500, "failed", None)
    page = ask("/search?q=panic")
    assert (page.status, page.headers["content-type"]) == (500, "text/html; charset=utf-8")
    first, second = capfd.readouterr().err.splitlines()
    assert "RuntimeError: the index" in first
    assert "small_search.py" in first
    assert "/search failed" in second
    assert "Panic: out of bounds" in second
    assert "boom" not in first + second


def test_only_reading_is_allowed(ask: Ask) -> None:
    """Other methods get the list of allowed ones."""
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        refused = ask("/api/v1/sites", method=method)
        assert (refused.complaint, refused.headers["allow"]) == ((405, "wrong_method", None), "GET, HEAD")
    assert ask("/", method="POST").status == 405
    head = ask("/api/v1/search?q=lag", method="HEAD")
    assert (head.status, head.body) == (200, b"")


def test_unknown_paths_are_not_found(ask: Ask) -> None:
    """JSON under /api, a page elsewhere; an extra slash does not lead to another page."""
    assert ask("/api/v2/search?q=a").complaint == (404, "not_found", None)
    assert ask("/api/v1/search/?q=a").complaint == (404, "not_found", None)
    assert ask("/nowhere").headers["content-type"].startswith("text/html")


def test_scripts_of_named_origins_may_read(ask: Ask) -> None:
    """Only configured origins, without credentials; a preflight is answered."""
    ours = ask("/api/v1/suggest?q=a", {"Origin": "https://docs.example.org"})
    assert ours.headers["access-control-allow-origin"] == "https://docs.example.org"
    assert "access-control-allow-credentials" not in ours.headers
    assert "Origin" in ours.headers["vary"]
    for other in ("https://evil.example", "https://docs.example.org.evil.example", "null"):
        assert "access-control-allow-origin" not in ask("/api/v1/suggest?q=a", {"Origin": other}).headers
    assert "access-control-allow-origin" not in ask("/api/v1/sites", {"Origin": "https://docs.example.org"}).headers
    asked = {"Origin": "https://docs.example.org", "Access-Control-Request-Method": "GET"}
    preflight = ask("/api/v1/search", asked, "OPTIONS")
    assert (preflight.status, preflight.headers["access-control-allow-methods"]) == (204, "GET")
    wrong = ask("/api/v1/search?n=0", {"Origin": "https://docs.example.org"})
    assert wrong.headers["access-control-allow-origin"] == "https://docs.example.org"


def test_public_responses_are_cached_for_seconds(ask: Ask) -> None:
    """Anonymous responses are cached for ten seconds, errors never."""
    assert ask("/api/v1/search?q=lag").headers["cache-control"] == "public, max-age=10"
    assert ask("/api/v1/search").headers["cache-control"] == "no-store"


def test_the_reference_needs_nothing_from_elsewhere(ask: Ask) -> None:
    """It shows every path, and loads nothing external."""
    shown = ask("/api/docs").body.decode()
    assert all(path in shown for path in ask("/api/openapi.json").json["paths"])
    assert not re.search(r"""(?:src|href|action)\s*=\s*["']?(?:[a-z]+:)?//|@import|url\(""", shown)


def test_long_addresses_and_headers_are_refused(ask: Ask) -> None:
    """They are rejected early."""
    assert ask(f"/api/v1/search?q={'a' * 40_000}").complaint == (414, "too_long", None)
    assert ask("/api/v1/sites", {f"X-{n}": "a" * 1000 for n in range(40)}).complaint == (431, "headers_too_large", None)


def _send(port: int, data: bytes) -> bytes:
    """Return a server's response to bytes, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        try:
            connection.sendall(data)
            received = b""
            while chunk := connection.recv(65_536):
                received += chunk
        except ConnectionError:
            return b"reset"
        return received


def test_a_head_without_end_is_cut_off(server: tuple[Ask, int]) -> None:
    """Endless headers or request lines cost no more than a few kilobytes."""
    for endless in (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 100_000, b"GET /" + b"a" * 500_000):
        assert _send(server[1], endless).startswith((b"HTTP/1.1 431", b"reset"))
    assert server[0]("/healthz").status == 200


def test_a_request_by_the_drop_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that send nothing, or stop in the headers or the body, are eventually closed."""
    monkeypatch.setattr(serving, "REQUEST_TIMEOUT_S", 0.2)
    form = b"POST /signin HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nkey"
    with served(OPEN) as (ask, port):
        assert _send(port, b"") == b""
        assert _send(port, b"GET / HTTP/1.1\r\nHost: x\r\n") == b""
        assert b" 200 " not in _send(port, form)
        assert ask("/healthz").status == 200


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"])
def test_invalid_http_is_refused(server: tuple[Ask, int], garbage: bytes) -> None:
    """The server keeps running."""
    assert _send(server[1], garbage).startswith(b"HTTP/1.1 400")
    assert server[0]("/healthz").status == 200


def test_a_port_in_use_is_explained() -> None:
    """Foreign addresses and invalid ports are explained as well."""
    with bind("127.0.0.1:0") as first:
        port = first.getsockname()[1]
        with pytest.raises(
            UsageError, match=f"port {port} is in use: stop the program that uses it, or choose another"
        ):
            bind(f"127.0.0.1:{port}")
    with pytest.raises(UsageError, match="not one of this machine"):
        bind("203.0.113.1:0")
    with pytest.raises(UsageError, match="up to 65535"):
        bind("127.0.0.1:65536")


CHILD = """
import sys
from tests.web.small_search import SmallSearch
from vedette.config import Serve
from vedette.web.app import create_app
from vedette.web.rendering import Branding
from vedette.web.server import bind, run_server

listening = bind("127.0.0.1:0")
print(listening.getsockname()[1], flush=True)
run_server(create_app(SmallSearch(), Serve(), Branding()), listening)
print("ended", flush=True)
"""


def test_sigterm_ends_it_cleanly_with_connections_open() -> None:
    """The server returns to its caller, even if an idle connection is open."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout
        port = int(child.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert idle.recv(65_536).startswith(b"HTTP/1.1 200")
            child.send_signal(signal.SIGTERM)
            assert child.stdout.readline() == "ended\n"
        assert child.wait(PATIENCE_S) == 0
