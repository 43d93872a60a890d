"""The real server responds to any request in time, and keeps running.

The index is real and small: a crawl over loopback, served by ``vedette up``. All requests use one persistent
connection; a socket timeout is a failure.
"""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.api_cases import OPERATIONS, try_cases
from tests.search_runs import Leaf, Up, page, small_web, up
from tests.tree_runs import PATIENCE_S, PROVE, patiently

from vedette.web.api.openapi import build_openapi
from vedette.web.api.parameters import MAX_TOTAL_RESULTS

EXAMPLES = 100_000 if PROVE else 120
HOME = "http://zoo.test/"
ANIMALS = ("quagga", "okapi", "gnu", "ibex", "tapir", "dugong", "axolotl", "numbat")


def _pages() -> dict[str, Leaf]:
    links = {f"/{name}": f"the {name}" for name in ANIMALS}
    pages = {HOME: page("Zoo", "All animals of this zoo.", links)}
    for number, name in enumerate(ANIMALS):
        said = f"The {name} eats 3.9.0 leaves; 東京 動物園, Größe, مرحبا, C++ and #{number} are said here, too."
        pages[f"{HOME}{name}"] = page(f"The {name}", said)
    return pages


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Run a server over a small set of pages, all searchable, with their words among the suggestions."""
    with small_web(_pages()) as web, up(web, tmp_path_factory.mktemp("zoo"), HOME) as started:
        patiently(lambda: started.search("eats")["total"] == len(ANIMALS))
        patiently(lambda: started.get("/api/v1/suggest?q=quag").json["suggestions"])
        yield started


class Line:
    """One persistent connection for all requests."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)

    def ask(self, target: str) -> tuple[int, bytes]:
        """Return status and body; reconnect if the server closed the connection after its response."""
        self._connection.request("GET", target)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@pytest.fixture(scope="module")
def line(run: Up) -> Iterator[Line]:
    """Share one connection between all tests."""
    made = Line(run.port)
    yield made
    made.close()


SIGNS = ('"', "'", "(", ")", "-", "+", "|", "&&", "||", "*", "~", "^2", "?", "[a TO b]", "{a TO *}", "\\", ":")
OPERATORS = (
    *("OR", "AND", "NOT", "site:", "title:", "url:", "type:", "lang:", "after:", "before:", "-site:", 'title:"'),
    *("site:zoo.test", "type:pdf", "lang:en", "after:2026-13-45", "before:9999-99-99", "after:yesterday"),
    *("body:", "access:", "access:public", "id:1"),
)
WORDS = (
    *("quagga", "eats", "the", "a", "3.9.0", "\u6771\u4eac", "\u0645\u0631\u062d\u0628\u0627", "Gr\u00f6\u00dfe"),
    *("\u0130", "\ufb01", "\u0301", "\u200d", "\u202e", "\x00", "\ud800"),
)
PIECES = st.sampled_from((*SIGNS, *OPERATORS, *WORDS))
QUERIES = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=200),
    st.lists(PIECES, max_size=40).map(" ".join),
    st.lists(PIECES, max_size=40).map("".join),
    st.lists(st.one_of(PIECES, st.text(st.characters(exclude_categories=()), max_size=8)), max_size=25).map(" ".join),
)


def escaped(query: str) -> str:
    """Escape a query for a URL; invalid Unicode is sent as the bytes of a careless client."""
    return quote_from_bytes(query.encode("utf-8", "surrogatepass"), safe="")


def searched(line: Line, query: str) -> dict[str, Any]:
    """Return the API's response to a query."""
    status, body = line.ask(f"/api/v1/search?q={escaped(query)}")
    assert status == 200, (query[:200], body[:300])
    report: dict[str, Any] = json.loads(body)
    assert report["total"] >= len(report["results"])
    return report


def check(line: Line, query: str) -> dict[str, Any]:
    """Check that pages and suggestions answer a query, and return the API's response."""
    written, report = escaped(query), searched(line, query)
    assert line.ask(f"/search?q={written}")[0] in {200, 302}
    assert line.ask(f"/api/v1/suggest?q={written}")[0] == 200
    return report


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(QUERIES)
@example("\x00")
@example("\ud800\udfff")
@example("")
def test_any_query_is_answered(line: Line, query: str) -> None:
    """Text of any characters, and operators in any order, get status 200 from the API."""
    searched(line, query)


@settings(max_examples=EXAMPLES // 5, suppress_health_check=list(HealthCheck))
@given(QUERIES)
def test_any_query_makes_a_page(line: Line, query: str) -> None:
    """The same is true for the results page, and for suggestions."""
    check(line, query)


NASTY = {
    "nested quotes": '"a "b "c "d" e" f" g"' * 20,
    "one quote": '"',
    "a thousand quotes": '"' * 1000,
    "open parentheses": "(" * 5000,
    "nested parentheses": "(" * 900 + "quagga" + ")" * 900,
    "closing parentheses": ")" * 5000,
    "operators without value": "site: title: url: type: lang: after: before: - OR OR AND NOT",
    "only minus": "-" * 1900,
    "only negations": "-quagga -okapi -gnu",
    "many alternatives": " OR ".join(f"word{number}" for number in range(200)),
    "many words": " ".join(f"w{number}" for number in range(600)),
    "one letter each": " ".join("abcdefghijklmnopqrstuvwxyz" * 30),
    "the same word": "quagga " * 280,
    "a phrase of all words": '"' + "the quagga eats leaves " * 80 + '"',
    "right to left": "\u202e\u0645\u0631\u062d\u0628\u0627\u202d \u2067\u05e2\u05d1\u05e8\u05d9\u05ea\u2069 quagga",
    "zero bytes": "qua\0gga \0\0 \0",
    "lone surrogates": "\ud800 quagga \udfff",
    "combining marks": "e" + "\u0301" * 1500,
    "hangul and han": "한국어 東京 ไทย" * 60,
    "sql": "'; DROP TABLE page; -- \" OR 1=1 UNION SELECT * FROM keys",
    "lua": "os.execute('id') {{7*7}} ${7*7} <%= 7*7 %> #{7*7} %s%n%x",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "syntax of the index": 'body:quagga^1000 AND access:"public" OR id:[0 TO *] title:/.*/ *:* IN [a b] "a b"~999999',
    "regular expressions": "(a+)+$ " * 100,
    "numbers": "9" * 400 + " -0 1e309 NaN inf 0x10 1_000",
    "dates": "after:0000-00-00 before:99999-01-01 after:-1 before:1969-12-31 after:2026-02-30",
    "sites": "site:../../etc/passwd site:%00 site:[::1] site:http:// site:" + "a." * 400,
    "line ends": "quagga\r\nSet-Cookie: a=b\r\n\r\n<html>",
    "one long word": "q" * 1999,
    "long dashes and dots": "a-b.c_d/e:f " * 150,
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_queries_are_answered(line: Line, name: str) -> None:
    """Queries that break other parsers get a response, and so does the next one."""
    check(line, NASTY[name])
    assert check(line, "quagga")["results"][0]["url"] == f"{HOME}quagga"


def test_queries_cannot_use_the_syntax_of_the_index(line: Line) -> None:
    """Syntax of the index engine is treated as words; a query can't address its fields."""
    for query in ("access:public", "id:1", "*:*", "body:quagga", "/.*/", "[a TO z]", "quagg*", "quagga~2"):
        report = check(line, query)
        plain = check(line, "".join(sign if sign.isalnum() else " " for sign in query))
        assert {each["url"] for each in report["results"]} <= {each["url"] for each in plain["results"]}, query


@pytest.mark.parametrize("sign", ["a", "%22", "(", "%F0%9F%A6%89", "%ED%A0%80", "%00"])
def test_a_query_of_a_hundred_kilobytes(run: Up, sign: str) -> None:
    """It is rejected with a message, or searched in part, and the server handles the next request."""
    target = "/api/v1/search?q=" + sign * (100_000 // len(sign))
    try:
        status = run.get(target).status
    except (ConnectionError, http.client.HTTPException):  # refused while it was still being sent
        status = 431
    assert status in {200, 400, 414, 431}
    assert run.found("quagga")[0] == f"{HOME}quagga"


def test_the_longest_query_that_is_taken(line: Line) -> None:
    """Everything up to the URL limit gets status 200, and dropped parts are reported."""
    report = check(line, "quagga " * 3000)
    assert report["results"]
    assert any("cut" in note for note in report["notes"])


@settings(max_examples=EXAMPLES // 3)
@given(
    st.dictionaries(st.sampled_from(["q", "n", "page", "site", "type", "lang", "time", "after"]), st.text(max_size=40))
)
def test_any_parameters_are_answered(line: Line, values: dict[str, str]) -> None:
    """The page uses the valid parameters; the API accepts them or says which one is wrong."""
    written = urlencode({key: value.encode("utf-8", "surrogatepass") for key, value in values.items()})
    assert line.ask(f"/search?{written}")[0] in {200, 302}
    status, body = line.ask(f"/api/v1/search?{written}")
    assert status in {200, 400}
    assert status == 200 or json.loads(body)["error"]["message"]


CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_real_server_matches_its_description(operation: str, run: Up) -> None:
    """Every response to valid and invalid requests is one that the description lists."""
    try_cases(
        operation,
        lambda case: case.call_and_validate(base_url=run.address, checks=CHECKS, timeout=PATIENCE_S),
        2000 if PROVE else 8,
    )


def test_the_description_is_the_one_that_is_served(run: Up) -> None:
    """The server publishes the description that was tested above, and it states the limits."""
    served = run.get("/api/openapi.json").json
    assert served["paths"] == json.loads(json.dumps(build_openapi("vedette", "", "1")["paths"]))
    assert run.get(f"/api/v1/search?q=a&n=50&page={MAX_TOTAL_RESULTS}").status == 400


def test_nothing_went_wrong_behind_the_answers(run: Up) -> None:
    """After all these requests, the same processes are running, and none of them reported an error."""
    assert run.process.poll() is None
    assert run.messages() == ""
