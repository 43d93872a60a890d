"""The HTTP client against hostile servers, names, proxies and pages."""

import gzip
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import closing

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.wire_server import Said, WireServer, whole

from vedette.adapters.clock import real_clock
from vedette.adapters.net.http import HttpClient, Limits, Transfer
from vedette.fetch.connect_to import Endpoint
from vedette.model import Failure, FetchOutcome, FetchRequest, FetchResponse, Headers, NoResponse

MIB = 2**20
LIMITS = Limits(connect_timeout_s=300.0, timeout_s=300.0, body_bytes=10 * MIB)
HURRIED = Limits(timeout_s=300.0, slow_s=1)
# Without the prefix, a secret such as "Response" would be part of any outcome.
TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40).map("secret-0-{}".format)
FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


class DribblingServer(WireServer):
    """A server that sends one byte at a time, with a pause after each."""

    def _say(self, connection: socket.socket, words: Said) -> bool:
        for at in range(len(words.data)):
            connection.sendall(words.data[at : at + 1])
            if self._ending.wait(0.05):
                return False
        return True


@pytest.fixture
def client() -> Iterator[HttpClient]:
    """A client with limits that no well-behaved response reaches."""
    with closing(HttpClient(real_clock(), LIMITS)) as client:
        yield client


def outcome_of(client: HttpClient, ask: FetchRequest, route: Endpoint) -> FetchOutcome:
    """Return the outcome of one request."""
    client.submit(ask, route)
    found: list[FetchOutcome] = []
    while not found:
        found = client.wait(0.05)
    (outcome,) = found
    return outcome


def outcome_at(
    client: HttpClient, server: WireServer, url: str = "http://one.test/", secret_headers: Headers = ()
) -> FetchOutcome:
    """The same at a server."""
    return outcome_of(client, FetchRequest(url, "page", (), secret_headers), Endpoint(server.address, server.port))


def failure_in(client: HttpClient, words: Said, kind: type[WireServer] = WireServer) -> NoResponse:
    """Return why these bytes are not a response."""
    with kind(lambda _: words) as server:
        outcome = outcome_at(client, server)
    assert isinstance(outcome, NoResponse), outcome
    return outcome


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(b"text" * 999)),
        ("br", brotli.compress(b"text" * 999)),
        ("zstd", zstandard.compress(b"text" * 999)),
    ],
    ids=["gzip", "br", "zstd"],
)
def test_a_coded_body_is_undone_and_kept(client: HttpClient, coding: str, packed: bytes) -> None:
    """The page is decoded, and the archive gets what was sent."""
    with WireServer(lambda _: whole(packed, f"Content-Encoding: {coding}")) as server:
        answer = outcome_at(client, server)
    assert isinstance(answer, FetchResponse)
    assert (answer.body, answer.payload) == (b"text" * 999, packed)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_bomb_is_not_set_off(client: HttpClient, coding: str) -> None:
    """A body that expands a thousandfold is rejected even within the limit, and costs little memory."""
    bomb = {"gzip": gzip.compress, "br": brotli.compress, "zstd": zstandard.compress}[coding](bytes(9 * MIB))
    tracemalloc.start()
    refused = failure_in(client, whole(bomb, f"Content-Encoding: {coding}"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused.failure is Failure.TOO_LARGE
    assert peak < 5 * MIB


def test_a_route_that_leads_elsewhere(client: HttpClient) -> None:
    """No connection is opened to an unchecked address, and the outcome differs from a closed port."""
    with WireServer(lambda _: whole(b"inside")) as server:
        # A name where the address should be: it resolves, but no one has looked at what it resolves to.
        refused = outcome_of(client, FetchRequest("http://one.test/", "page"), Endpoint("localhost", server.port))
        assert isinstance(refused, NoResponse)
        assert (refused.failure, server.connections) == (Failure.ADDRESS, 0)
        assert isinstance(outcome_at(client, server), FetchResponse)


@pytest.mark.parametrize(
    ("pinned", "opened", "same"),
    [
        ("127.0.0.1", ("127.0.0.1", 80), True),
        ("127.0.0.1", ("127.0.0.1", 81), False),
        ("127.0.0.1", ("127.0.0.2", 80), False),
        ("2001:db8:0:0::1", ("2001:db8::1", 80, 0, 0), True),
        ("2001:DB8::1", ("2001:db8::1", 80, 0, 0), True),
        ("2001:db8::1", ("2001:db8::2", 80, 0, 0), False),
        ("127.0.0.1", ("::ffff:127.0.0.1", 80, 0, 0), False),
        ("localhost", ("127.0.0.1", 80), False),
        ("", ("127.0.0.1", 80), False),
    ],
)
def test_only_the_pinned_address_is_opened(pinned: str, opened: tuple[str, int], *, same: bool) -> None:
    """However an address is written, it is compared as an address, with its port."""
    transfer = Transfer(FetchRequest("http://one.test/", "page"), Endpoint(pinned, 80), LIMITS, 0.0)
    got = transfer.open_socket(0, (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, opened))
    assert isinstance(got, int) is not same
    assert (transfer.stopped is None) is same


@pytest.mark.parametrize(
    "head",
    [
        b"X-Y: z\r\n" * 300,
        b"".join(b"X-%d: %s\r\n" % (number, b"z" * 1000) for number in range(80)),
        b"X-Long: " + b"z" * 90_000 + b"\r\n",
    ],
    ids=["many lines", "many bytes", "one long line"],
)
def test_a_long_head_is_too_large(client: HttpClient, head: bytes) -> None:
    """The server can't choose the number or size of headers."""
    words = Said(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: 0\r\n\r\n")
    assert failure_in(client, words).failure is Failure.TOO_LARGE


@pytest.mark.parametrize("count", [10, 200])
def test_an_ordinary_head_is_not(client: HttpClient, count: int) -> None:
    """Many headers are fine."""
    lines = [f"X-{number}: {'z' * 200}" for number in range(count)]
    with WireServer(lambda _: whole(b"page", *lines)) as server:
        answer = outcome_at(client, server)
    assert isinstance(answer, FetchResponse)
    assert [name for name, _ in answer.headers[1:]] == [f"x-{number}" for number in range(count)]


def test_endless_promises_end(client: HttpClient) -> None:
    """A server that sends 1xx responses forever is given up."""
    words = Said(b"HTTP/1.1 103 Early Hints\r\nX-Y: z\r\n\r\n" * 100, "repeat")
    assert failure_in(client, words).failure is Failure.TOO_LARGE


def test_endless_trailers_end(client: HttpClient) -> None:
    """Data after the last chunk counts as well."""
    words = Said(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X-Y: z\r\n" * 1000, "hang")
    assert failure_in(client, words).failure is Failure.TOO_LARGE


@pytest.mark.parametrize("body", [b"", b"\r\n" + b"x" * 10_000], ids=["head", "body"])
def test_a_dribble_is_too_slow(body: bytes) -> None:
    """A server that sends a byte now and then is given up long before the time limit."""
    words = Said(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n" + (body or b"X-Y: z\r\n" * 1000))
    with closing(HttpClient(real_clock(), HURRIED)) as client:
        refused = failure_in(client, words, DribblingServer)
    assert refused.failure is Failure.TIMEOUT
    assert "slow" in refused.detail


@FIXTURE
@given(TOKENS, st.sampled_from(["cookie", "authorization", "x-key"]), st.sampled_from(["fine", "echo", "cut", "junk"]))
def test_no_secret_is_ever_shown(client: HttpClient, secret: str, name: str, manner: str) -> None:
    """The server gets the secret, but neither the archived request nor the error contains it.

    This is true even if the server repeats it in a part of its response that is quoted.
    """
    words = {
        "fine": whole(b"page"),
        "echo": whole(b"\x1f\x8b" + bytes(20), f"Content-Encoding: gzip, {secret.replace(',', ';')}"),
        "cut": Said(f"HTTP/1.1 200 {secret}\r\nContent-Length: 99\r\n\r\n{secret}".encode(), "close"),
        "junk": Said(f"{secret} {secret}\r\n\r\n".encode(), "close"),
    }[manner]
    secret_headers = ((name, secret),)
    with WireServer(lambda _: words) as server:
        ask = FetchRequest("http://one.test/", "page", (("accept", "*/*"),), secret_headers)
        outcome = outcome_of(client, ask, Endpoint(server.address, server.port))
        assert server.questions[0].header(name) == secret
    shown = outcome.request_head.decode() if isinstance(outcome, FetchResponse) else repr(outcome)
    assert isinstance(outcome, FetchResponse) is (manner == "fine")
    assert secret not in shown + repr(ask)


def test_a_secret_goes_with_its_own_request_only(client: HttpClient) -> None:
    """It is not sent with the next request over the same connection, nor to another host."""
    with WireServer(lambda _: whole(b"")) as server:
        outcome_at(client, server, "http://one.test/", (("x-key", "0123456789"),))
        outcome_at(client, server, "http://one.test/")
        outcome_at(client, server, "http://two.test/")
        assert [question.header("x-key") for question in server.questions] == ["0123456789", None, None]
        assert [question.connection for question in server.questions] == [1, 1, 2]


@pytest.mark.parametrize(
    "url",
    [
        "http://one.test/a b",
        "http://one.test/ HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET /two",
        "http://one.test/\nX-Evil: 1",
        "http://one.test/\tx",
        "http://one.test/\x00",
        "http://one.test/\x7f",
        "http://one.test/é",
        "http://one.test\r\nX-Evil: 1/",
        "http://one.test /",
        "http://user:word@one.test/",
        "http://one.test\\@two.test/",
        "http://",
        "",
        "gopher://one.test/",
        "http://one.test/" + "a" * 9_000_000,
    ],
    ids=lambda url: ascii(url[:40]),
)
def test_a_url_that_is_more_than_a_url(client: HttpClient, url: str) -> None:
    """A URL that does not fit in a request line is not sent, not even in part; it is an outcome, not an exception."""
    with WireServer(lambda _: whole(b"")) as server:
        outcome = outcome_at(client, server, url)
        assert (client.in_flight, server.questions) == (0, [])
    assert isinstance(outcome, NoResponse)
    assert outcome.failure is Failure.PROTOCOL


@FIXTURE
@given(st.text(max_size=30))
def test_a_url_is_sent_whole_or_not_at_all(client: HttpClient, text: str) -> None:
    """Any text as a path becomes exactly one request for exactly that path, or none."""
    with WireServer(lambda _: whole(b"")) as server:
        outcome = outcome_at(client, server, f"http://one.test/{text}")
        targets = [question.target for question in server.questions]
        assert targets == ([f"/{text.partition('#')[0]}"] if isinstance(outcome, FetchResponse) else [])
        assert all(question.header("host") == "one.test" for question in server.questions)


@pytest.mark.parametrize(
    "header",
    [
        ("x-a", "b\r\nX-Evil: 1"),
        ("x-a", "b\nX-Evil: 1"),
        ("x-a", "b\rX-Evil: 1"),
        ("x-a", "b\x00"),
        ("x-a", "\u20ac"),
        ("x-a\r\nx-evil", "1"),
        ("x-a: b, x-evil", "1"),
        ("", "1"),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("secret", [False, True])
def test_a_header_that_is_more_than_a_header(client: HttpClient, header: tuple[str, str], *, secret: bool) -> None:
    """A value may come from a server (an ETag), so one that could end its line stops the request."""
    headers = ((header,), ())
    with WireServer(lambda _: whole(b"")) as server:
        ask = FetchRequest("http://one.test/", "page", headers[secret], headers[not secret])
        outcome = outcome_of(client, ask, Endpoint(server.address, server.port))
        assert server.questions == []
    assert isinstance(outcome, NoResponse)
    assert outcome.failure is Failure.PROTOCOL


def test_odd_headers_are_sent_as_they_are(client: HttpClient) -> None:
    """Non-ASCII bytes are sent unchanged, and a header without a value is valid."""
    headers = (("if-none-match", '"caf\xe9"'), ("x-empty", ""))
    with WireServer(lambda _: whole(b"")) as server:
        outcome_of(client, FetchRequest("http://one.test/", "page", headers), Endpoint(server.address, server.port))
        (question,) = server.questions
    assert [(name, question.header(name)) for name, _ in headers] == list(headers)
    assert question.header("accept") is not None


def test_refused_and_sent_requests_each_have_one_outcome(client: HttpClient) -> None:
    """Requests that are never sent are counted and returned among the others."""
    with WireServer(lambda _: whole(b"")) as server:
        urls = [f"http://one.test/{number}{' ' * (number % 2)}" for number in range(20)]
        for url in urls:
            client.submit(FetchRequest(url, "page"), Endpoint(server.address, server.port))
        assert client.in_flight == len(urls)
        found: list[FetchOutcome] = []
        while client.in_flight:
            found += client.wait(0.05)
    assert sorted(outcome.url for outcome in found) == sorted(urls)
    assert {outcome.url for outcome in found if isinstance(outcome, FetchResponse)} == set(urls[::2])


def test_a_client_that_only_refuses_does_not_wait(client: HttpClient) -> None:
    """An available outcome is returned at once, whatever the timeout."""
    client.submit(FetchRequest("http://one.test/ ", "page"), Endpoint("127.0.0.1", 9))
    assert len(client.wait(3600.0)) == 1
