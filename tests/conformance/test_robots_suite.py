"""The published expectations of google/robotstxt-spec-test, part "correctness".

The files come from ``$VEDETTE_DATA/conformance/robots``. They are protocol buffers in text form; a small parser for
fields, lists, strings and comments is enough.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from vedette.fetch.robots.rules import is_allowed

PUBLISHED_EXPECTATIONS = 146

TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<word>[\w.-]+)|(?P<mark>.)"""
)
ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


@dataclass(frozen=True, slots=True)
class Expectation:
    """One robots.txt, one agent, one URL, and the expected verdict."""

    source: str
    robots: bytes
    user_agent: str
    url: str
    is_allowed: bool


def unescaped(literal: str) -> bytes:
    """Return the bytes of a quoted string."""
    return ESCAPE.sub(_unescape, literal[1:-1].encode())


def _unescape(found: re.Match[bytes]) -> bytes:
    hexadecimal, octal, letter = found.groups()
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    return bytes([int(octal, 8)]) if octal else LETTERS.get(letter, letter)


def fields(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield every field with a string or a word, in order; adjacent strings are joined."""
    tokens = [token for token in TOKEN.finditer(text) if token.lastgroup != "space"]
    name, value = "", b""
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if following is not None and following.group() == ":":
            name, value = token.group(), b""
        elif token.lastgroup in ("string", "word"):
            value += unescaped(token.group()) if token.lastgroup == "string" else token.group().encode()
            if following is None or following.lastgroup != "string":
                yield name, value


def expectations(text: str, source: str) -> Iterator[Expectation]:
    """Yield the expectations of a file; ``expected_outcome`` ends each of them."""
    known: dict[str, bytes] = {}
    for name, value in fields(text):
        known[name] = value
        if name == "expected_outcome":
            agent, url = known["useragent"].decode(), known["testurl"].decode()
            yield Expectation(source, known["robotstxt"], agent, url, value == b"ALLOWED")


@pytest.fixture(scope="module")
def suite() -> list[Expectation]:
    """Return all expectations of all files."""
    data = os.environ.get("VEDETTE_DATA")
    if not data:
        pytest.skip("VEDETTE_DATA is not set: it names the folder that holds conformance/robots")
    files = sorted(Path(data, "conformance", "robots").glob("*.textproto"))
    return [found for file in files for found in expectations(file.read_text("utf-8"), file.name)]


def test_the_reader_understands_the_text_form() -> None:
    """Comments, adjacent strings, escapes and both kinds of list are parsed as the text format defines."""
    text = r"""
    # robotstxt: "not this"
    tests: [ { robotstxt: "a: \"b\"\n" "\xEF\101ツ#" test_expectations: [
      { testurl: 'u' useragent: "" expected_outcome: DISALLOWED additional_explanation: "x: y" } ,
      { testurl: "v" useragent: "w" expected_outcome: ALLOWED } ] } ]
    """
    body = b'a: "b"\n\xefA' + "ツ#".encode()
    assert list(expectations(text, "here")) == [
        Expectation("here", body, "", "u", is_allowed=False),
        Expectation("here", body, "w", "v", is_allowed=True),
    ]


def test_the_suite_is_whole(suite: list[Expectation]) -> None:
    """The number of expectations is that of the published suite, with both outcomes."""
    assert len(suite) == PUBLISHED_EXPECTATIONS
    assert {found.is_allowed for found in suite} == {False, True}


def test_every_expectation_is_met(suite: list[Expectation]) -> None:
    """The matcher agrees with the published suite without exception."""
    missed = [found for found in suite if is_allowed(found.robots, found.user_agent, found.url) != found.is_allowed]
    assert missed == []
