"""HTTP as bytes: any request is parsed or refused, and any response can be read."""

from contextlib import suppress
from email.utils import formatdate
from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vedette.lab.worlds.synthetic.http_wire import (
    MalformedRequest,
    body_pieces,
    encode_chunk,
    format_response_head,
    parse_request_head,
)
from vedette.lab.worlds.synthetic.validators import format_http_date
from vedette.lab.worlds.world import Delivery, Reply


@given(st.binary(max_size=300))
@example(b"GET / HTTP/1.1\r\nHost: \xff\xfe[::1")
@example(b"GET http://[/ HTTP/1.1\r\nHost: a")
@example(b"GET http://a:99999/ HTTP/1.1\r\nHost: a")
def test_no_bytes_do_more_than_be_refused(head: bytes) -> None:
    """A client's bytes can only raise one exception."""
    with suppress(MalformedRequest):
        parse_request_head(head)


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=50))
def test_target_reaches_the_world_as_sent(rest: str) -> None:
    """Every byte of path and query is kept, as one character each."""
    request = parse_request_head(f"GET /{rest} HTTP/1.1\r\nHost: a.test".encode("latin-1"))
    assert request.target == f"/{rest}"


@pytest.mark.parametrize(
    ("version", "connection", "keeps"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: Close\r\n", False),
        ("1.1", "Connection: upgrade\r\nConnection: close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: Keep-Alive\r\n", True),
    ],
)
def test_connection_is_kept_as_version_and_client_say(version: str, connection: str, keeps: bool) -> None:  # noqa: FBT001 - a table
    """RFC 9112, 9.3: 1.1 stays open by default, 1.0 does not."""
    assert parse_request_head(f"GET / HTTP/{version}\r\n{connection}Host: a.test".encode()).keep_alive is keeps


@pytest.mark.parametrize(
    ("header", "carries"),
    [("Content-Length: 0", False), ("Content-Length: 10", True), ("Transfer-Encoding: chunked", True), ("X: 1", False)],
)
def test_body_of_a_request_is_announced(header: str, carries: bool) -> None:  # noqa: FBT001 - a table
    """The bytes after such headers are not the next request."""
    assert parse_request_head(f"GET / HTTP/1.1\r\nHost: a.test\r\n{header}".encode()).carries_body is carries


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_dates_are_those_of_the_standard_library(unix_s: int) -> None:
    """The fast and the slow formatting agree."""
    assert format_http_date(unix_s) == formatdate(unix_s, usegmt=True)


@given(st.integers(min_value=100, max_value=999), st.text(st.characters(min_codepoint=0x20, max_codepoint=0x24F)))
def test_heads_end_once_whatever_a_world_says(status: int, value: str) -> None:
    """Unknown statuses and odd header values still give well-formed headers."""
    head = format_response_head(Reply(status, (("x", value),), b"abc"), minor=1, keep_alive=True, world_s=1e9)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert head.index(b"\r\n\r\n") == len(head) - 4


@given(
    st.binary(max_size=5000),
    st.none() | st.integers(min_value=0, max_value=6000),
    st.none() | st.floats(min_value=1.0, max_value=1e6),
)
def test_pieces_add_up_to_the_body_or_to_where_it_stops(body: bytes, stop: int | None, rate: float | None) -> None:
    """Pacing and cutting never change, repeat or skip a byte."""
    delivery = Delivery(stop_after_bytes=stop, bytes_per_s=rate)
    assert b"".join(body_pieces(body, delivery)) == body[:stop]


@given(st.binary(min_size=1, max_size=50), st.integers(min_value=0, max_value=500))
def test_endless_body_repeats_until_it_stops(body: bytes, stop: int) -> None:
    """An endless body with a stop sends exactly this many bytes of its repetition."""
    sent = b"".join(body_pieces(body, Delivery(endless=True, stop_after_bytes=stop)))
    assert sent == (body * 501)[:stop]
    assert len(list(islice(body_pieces(body, Delivery(endless=True)), 1000))) == 1000


def test_an_endless_nothing_ends() -> None:
    """An empty body repeated forever does not keep the server busy."""
    assert b"".join(body_pieces(b"", Delivery(endless=True))) == b""


def test_chunks_are_those_of_the_standard() -> None:
    """RFC 9112, 7.1: hexadecimal size, data, and an empty chunk at the end."""
    assert encode_chunk(b"x" * 26, last=False) == b"1a\r\n" + b"x" * 26 + b"\r\n"
    assert encode_chunk(b"", last=True) == b"0\r\n\r\n"
