"""The HTTP client with a real server on loopback that behaves as servers do, right and wrong."""

import gc
import gzip
import shutil
import socket
import ssl
import subprocess
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tree_runs import PATIENCE_S
from tests.wire_server import Question, Said, WireServer, whole

from vedette.adapters.clock import real_clock
from vedette.adapters.net.http import HttpClient, Limits
from vedette.discover.urls.normalize import resolve
from vedette.fetch.connect_to import Endpoint
from vedette.model import Failure, FetchOutcome, FetchRequest, FetchResponse, NoResponse

LIMITS = Limits(connect_timeout_s=300.0, timeout_s=300.0, body_bytes=100_000)
IMPATIENT = Limits(connect_timeout_s=0.2, timeout_s=0.2, body_bytes=100_000)


@pytest.fixture
def client() -> Iterator[HttpClient]:
    """A client with limits that no well-behaved response reaches."""
    client = HttpClient(real_clock(), LIMITS)
    yield client
    client.close()


def outcomes_of(client: HttpClient, count: int) -> list[FetchOutcome]:
    """Wait for the outcomes of this many requests."""
    found: list[FetchOutcome] = []
    while len(found) < count:
        found += client.wait(0.05)
    return found


def route_to(server: WireServer) -> Endpoint:
    """Return the pinned address of a server."""
    return Endpoint(server.address, server.port)


def outcome_of(client: HttpClient, server: WireServer, path: str = "/", host: str = "one.test") -> FetchOutcome:
    """Return the outcome of one request."""
    client.submit(FetchRequest(f"http://{host}{path}", "page"), route_to(server))
    return outcomes_of(client, 1)[0]


def answer_to(client: HttpClient, message: Said) -> FetchResponse:
    """Return the response that a client parses from these bytes."""
    with WireServer(lambda _: message) as server:
        outcome = outcome_of(client, server)
    assert isinstance(outcome, FetchResponse), outcome
    return outcome


def failure_of(client: HttpClient, message: Said) -> Failure:
    """Return why these bytes are not a response."""
    with WireServer(lambda _: message) as server:
        outcome = outcome_of(client, server)
    assert isinstance(outcome, NoResponse), outcome
    assert outcome.detail
    return outcome.failure


def names(headers: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of headers, in order."""
    return [name for name, _ in headers]


def test_a_whole_answer(client: HttpClient) -> None:
    """Status, headers, body, URL, purpose, address and times arrive."""
    with WireServer(lambda _: whole(b"hello", "X-Word: a: b ", status="404 Gone Fishing")) as server:
        client.submit(
            FetchRequest("http://one.test/a?b", "robots", (("user-agent", "me/1"), ("x-y", "z"))), route_to(server)
        )
        (answer,) = outcomes_of(client, 1)
        (question,) = server.questions
    assert isinstance(answer, FetchResponse)
    assert (answer.status, answer.body, answer.url) == (404, b"hello", "http://one.test/a?b")
    assert (answer.purpose, answer.address, answer.header("x-word")) == ("robots", "127.0.0.1", "a: b")
    assert answer.started_s <= answer.ended_s
    assert (question.target, question.header("host"), question.header("user-agent")) == ("/a?b", "one.test", "me/1")
    assert question.header("x-y") == "z"


def test_headers_keep_their_order_and_repetitions(client: HttpClient) -> None:
    """Names are in lower case, in the order of arrival, and as often as they were sent."""
    answer = answer_to(client, whole(b"", "X-ROBOTS-Tag: a", "Link: b", "x-robots-tag: c"))
    wanted = [pair for pair in answer.headers if pair[0] != "content-length"]
    assert wanted == [("x-robots-tag", "a"), ("link", "b"), ("x-robots-tag", "c")]


def test_interim_answers_leave_nothing_behind(client: HttpClient) -> None:
    """Headers of 1xx responses are not part of the final response."""
    interim = b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n" * 2
    answer = answer_to(client, Said(interim + whole(b"body", "X-Late: 1").data))
    assert (answer.status, answer.body) == (200, b"body")
    assert names(answer.headers) == ["content-length", "x-late"]


def test_trailers_are_no_headers(client: HttpClient) -> None:
    """Bytes after the body don't change the response."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Kept: 1\r\n\r\n"
    trailers = b"Content-Encoding: br\r\nHTTP/1.1 500 x: y\r\n\r\n"
    answer = answer_to(client, Said(head + b"4\r\nbody\r\n0\r\n" + trailers))
    assert (answer.body, answer.header("x-kept"), answer.header("content-encoding")) == (b"body", "1", None)


def test_a_folded_header_makes_no_new_one(client: HttpClient) -> None:
    """A continuation line is not a separate header, even if it has a colon."""
    answer = answer_to(client, whole(b"plain", "X-Long: a", " content-encoding: gzip"))
    assert answer.body == b"plain"
    assert "content-encoding" not in names(answer.headers)


def test_gzip_is_unpacked(client: HttpClient) -> None:
    """The body is decoded, and the headers stay as sent."""
    answer = answer_to(client, whole(gzip.compress(b"text" * 1000), "Content-Encoding: GZIP"))
    assert (answer.body, answer.header("content-encoding")) == (b"text" * 1000, "GZIP")


def test_a_bomb_is_too_large(client: HttpClient) -> None:
    """A small body that expands beyond the limit is rejected."""
    message = whole(gzip.compress(bytes(LIMITS.body_bytes + 1)), "Content-Encoding: gzip")
    assert failure_of(client, message) is Failure.TOO_LARGE


def test_codings_as_servers_announce_them(client: HttpClient) -> None:
    """Covers a fake encoding, one that was not applied, and one announced twice; a broken one fails."""
    codings = ("utf-8", "gzip", "aws-chunked")
    bodies = [answer_to(client, whole(b"<p>text", f"Content-Encoding: {coding}")).body for coding in codings]
    assert bodies == [b"<p>text"] * 3
    assert answer_to(client, whole(gzip.compress(b"x"), *["Content-Encoding: gzip"] * 2)).body == b"x"
    assert failure_of(client, whole(b"\x1f\x8b" + b"x" * 20, "Content-Encoding: gzip")) is Failure.CODING


@pytest.mark.parametrize("length", ["", "Content-Length: 999999999\r\n"])
def test_of_an_endless_robots_txt_the_beginning_is_taken(client: HttpClient, length: str) -> None:
    """RFC 9309 asks for at least 500 KiB: a longer file is truncated, not rejected."""
    message = Said(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode() + b"Disallow: /a\n" * 10_000, "repeat")
    with WireServer(lambda _: message) as server:
        client.submit(FetchRequest("http://one.test/robots.txt", "robots"), route_to(server))
        (answer,) = outcomes_of(client, 1)
    assert isinstance(answer, FetchResponse)
    assert answer.body.startswith(b"Disallow: /a\n")
    assert 500 * 1024 <= len(answer.body) < 600 * 1024


def test_redirects_are_told_not_followed(client: HttpClient) -> None:
    """The caller decides about the next hop."""
    with WireServer(lambda _: whole(b"", "Location: /next", status="302 Found")) as server:
        answer = outcome_of(client, server)
        assert isinstance(answer, FetchResponse)
        assert (answer.status, answer.header("location"), len(server.questions)) == (302, "/next", 1)


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        (Said(b"", "reset"), Failure.RESET),
        (Said(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "reset"), Failure.RESET),
        (Said(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "close"), Failure.RESET),
        (Said(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "close"), Failure.RESET),
        (Said(b"", "close"), Failure.RESET),
        (Said(b"SSH-2.0-OpenSSH_9.2\r\n", "close"), Failure.PROTOCOL),
        (Said(b"\x00\x01\x02" * 100, "close"), Failure.PROTOCOL),
        (Said(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(50_000), "repeat"), Failure.TOO_LARGE),
        (Said(b"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n", "hang"), Failure.TOO_LARGE),
    ],
)
def test_broken_answers_are_values(client: HttpClient, message: Said, failure: Failure) -> None:
    """Each kind of broken response has a name, and none is an exception."""
    assert failure_of(client, message) is failure


def test_an_endless_chunked_body_is_too_large(client: HttpClient) -> None:
    """A body without a length is cut off as well."""
    chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"a\r\n0123456789\r\n" * 50_000
    assert failure_of(client, Said(chunk, "hang")) is Failure.TOO_LARGE


def test_endless_headers_end(client: HttpClient) -> None:
    """Endless headers are rejected."""
    with WireServer(lambda _: Said(b"HTTP/1.1 200 OK\r\n" + b"X-Y: z\r\n" * 10_000, "repeat")) as server:
        assert isinstance(outcome_of(client, server), NoResponse)


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
def test_silence_is_too_slow(data: bytes) -> None:
    """A server that stops sending is given up after the time limit."""
    client = HttpClient(real_clock(), IMPATIENT)
    assert failure_of(client, Said(data, "hang")) is Failure.TIMEOUT
    client.close()


def test_a_closed_port(client: HttpClient) -> None:
    """If no one listens, there is no connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client.submit(FetchRequest("http://one.test/", "page"), Endpoint("127.0.0.1", port))
    (outcome,) = outcomes_of(client, 1)
    assert isinstance(outcome, NoResponse)
    assert outcome.failure is Failure.CONNECT


def test_other_protocols_are_refused(client: HttpClient, tmp_path: Path) -> None:
    """A URL that is not http(s) is not fetched."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    client.submit(FetchRequest(secret.as_uri(), "page"), Endpoint("127.0.0.1", 9))
    assert [type(outcome) for outcome in outcomes_of(client, 1)] == [NoResponse]


def test_connections_are_kept(client: HttpClient) -> None:
    """Consecutive requests to a host share a connection."""
    with WireServer(lambda asked: whole(asked.target.encode())) as server:
        bodies = [outcome_of(client, server, f"/{number}") for number in range(5)]
        assert [answer.body for answer in bodies if isinstance(answer, FetchResponse)] == [
            b"/0",
            b"/1",
            b"/2",
            b"/3",
            b"/4",
        ]
        assert server.connections == 1


def test_a_kept_connection_that_the_server_closed(client: HttpClient) -> None:
    """A connection that was closed while idle is replaced transparently."""
    with WireServer(lambda _: Said(whole(b"x").data, "close")) as server:
        assert [type(outcome_of(client, server)) for _ in range(3)] == [FetchResponse] * 3


def test_hosts_go_where_they_are_pinned(client: HttpClient) -> None:
    """Each request goes to the address of its route with the host's own name, on new or reused connections."""

    def script(asked: Question) -> Said:
        return whole(f"{asked.address} {asked.header('host')}".encode())

    with WireServer(script, "127.0.0.2") as two, WireServer(script, "127.0.0.3", two.port) as three:
        plan = [("a.test", two), ("b.test", three), ("a.test", three), ("a.test", two)]
        answers = [outcome_of(client, server, host=host) for host, server in plan]
    message = [(answer.body, answer.address) for answer in answers if isinstance(answer, FetchResponse)]
    assert message == [(f"{server.address} {host}".encode(), server.address) for host, server in plan]


def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment is not used."""
    with WireServer(lambda _: whole(b"proxy")) as proxy, WireServer(lambda _: whole(b"site")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        client = HttpClient(real_clock(), LIMITS)
        answer = outcome_of(client, server)
        client.close()
        assert isinstance(answer, FetchResponse)
        assert (answer.body, proxy.questions) == (b"site", [])


def test_many_at_once_have_one_outcome_each(client: HttpClient) -> None:
    """200 concurrent requests, valid and invalid, have exactly one outcome each."""

    def script(asked: Question) -> Said:
        number = int(asked.target[1:])
        return Said(b"", "reset") if number % 5 == 0 else whole(str(number).encode())

    count = 200
    with WireServer(script) as server:
        for number in range(count):
            client.submit(FetchRequest(f"http://host{number}.test/{number}", "page"), route_to(server))
        assert client.in_flight == count
        outcomes = outcomes_of(client, count)
        assert client.in_flight == 0
        assert client.wait(0.01) == []
    bodies = {outcome.url: outcome.body for outcome in outcomes if isinstance(outcome, FetchResponse)}
    assert bodies == {f"http://host{n}.test/{n}": str(n).encode() for n in range(count) if n % 5}
    assert len({outcome.url for outcome in outcomes}) == len(outcomes) == count


def test_closing_leaves_no_socket(client: HttpClient) -> None:
    """A server sees the end of an abandoned request."""
    with WireServer(lambda _: Said(b"", "hang")) as server:
        client.submit(FetchRequest("http://one.test/", "page"), route_to(server))
        while not server.questions:
            client.wait(0.01)
        client.close()
        assert server.peer_left.wait(PATIENCE_S)
        assert client.in_flight == 0


def test_another_descriptor_wakes_the_wait(client: HttpClient) -> None:
    """A watched descriptor ends the wait and triggers its callback."""
    ours, theirs = socket.socketpair()
    read: list[bytes] = []
    client.watch_fd(ours.fileno(), lambda: read.append(ours.recv(10)))
    theirs.send(b"x")
    assert client.wait(20.0) == []
    assert read == [b"x"]
    ours.close()
    theirs.close()


def test_finished_bodies_are_let_go() -> None:
    """Idle connections don't keep bodies in memory."""
    size = 2_000_000
    client = HttpClient(real_clock(), Limits(body_bytes=size))
    tracemalloc.start()
    with WireServer(lambda _: Said(whole(bytes(size)).data)) as server:
        for number in range(10):
            client.submit(FetchRequest(f"http://host{number}.test/", "page"), route_to(server))
        outcomes = outcomes_of(client, 10)
        assert all(isinstance(outcome, FetchResponse) for outcome in outcomes)
        del outcomes
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    client.close()
    assert held < 2 * size


def test_a_body_in_crumbs_costs_no_more_than_it_weighs() -> None:
    """Memory depends on the size of a body, not on the number of its pieces."""
    pieces = 200_000
    client = HttpClient(real_clock(), Limits(body_bytes=2 * pieces))
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"2\r\nab\r\n" * pieces + b"0\r\n\r\n"
    with WireServer(lambda _: Said(data)) as server:
        tracemalloc.start()
        answer = outcome_of(client, server)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    client.close()
    assert isinstance(answer, FetchResponse)
    assert answer.body == b"ab" * pieces
    assert peak < 10 * len(answer.body)


BROKEN = (
    whole(b"words", "X-A: 1", "oops", "Content-Type: text/html"),
    Said(b"HTTP/1.1 200 OK\r\noops\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\n0\r\n\r\n"),
    Said(b"HTTP/1.1 103 Early\r\nhm\r\n\r\nHTTP/1.1 200 OK\noops\nX-A: 1\n\nwords", "close"),
)


@pytest.mark.parametrize("message", BROKEN)
def test_a_header_line_without_a_colon_loses_no_page(client: HttpClient, message: Said) -> None:
    """The first attempt asks for a retry; from then on such lines are ignored."""
    with WireServer(lambda _: message) as server:
        first, *more = (outcome_of(client, server, f"/{number}") for number in range(3))
    assert isinstance(first, NoResponse)
    assert (first.failure, first.detail) == (
        Failure.HEADER,
        "a header line has no colon; it is left out at the next attempt",
    )
    for outcome in more:
        assert isinstance(outcome, FetchResponse)
        assert (outcome.status, outcome.body, outcome.header("x-a")) == (200, b"words", "1")
        assert (outcome.address, outcome.header("oops")) == (server.address, None)
    assert [asked.target for asked in server.questions] == ["/0", "/1", "/2"]
    assert all(asked.header("host") == "one.test" for asked in server.questions)


def test_broken_header_lines_over_tls(
    untrusted: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate is checked as always, and a large body arrives completely."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    client = HttpClient(real_clock(), LIMITS)
    with WireServer(lambda _: whole(b"words " * 15_000, "oops")) as server:
        server.tls = untrusted
        outcomes = []
        for _ in range(2):
            client.submit(FetchRequest("https://one.test/", "page"), route_to(server))
            outcomes += outcomes_of(client, 1)
        (tmp_path / "two").mkdir()
        server.tls = certify(tmp_path / "two", "two.test")
        client.submit(FetchRequest("https://one.test/", "page"), route_to(server))
        outcomes += outcomes_of(client, 1)
    client.close()
    assert isinstance(outcomes[1], FetchResponse)
    assert outcomes[1].body == b"words " * 15_000
    assert isinstance(outcomes[2], NoResponse)
    assert len(server.questions) == 2


def test_the_limits_hold_behind_the_header_filter() -> None:
    """Endless headers and a body that is too large are given up as always."""
    message = iter((whole(b"", "oops"), Said(b"HTTP/1.1 200 OK\r\nA: b\r\n", "repeat"), whole(b"x" * 100_001)))
    client = HttpClient(real_clock(), LIMITS)
    with WireServer(lambda _: next(message)) as server:
        outcomes = [outcome_of(client, server) for _ in range(3)]
    client.close()
    failures = [outcome.failure for outcome in outcomes if isinstance(outcome, NoResponse)]
    assert failures == [Failure.HEADER, Failure.TOO_LARGE, Failure.TOO_LARGE]


@pytest.fixture
def untrusted(tmp_path: Path) -> ssl.SSLContext:
    """Return a server-side TLS context with an untrusted certificate."""
    return certify(tmp_path, "one.test")


def certify(folder: Path, host: str) -> ssl.SSLContext:
    """Return a server-side TLS context with a new self-signed certificate for a host."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is needed to make a certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    kind = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    name = f"-subj /CN={host} -addext subjectAltName=DNS:{host}"
    files = ("-keyout", key, "-out", certificate)
    subprocess.run(["openssl", "req", *kind.split(), *name.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_an_untrusted_certificate(client: HttpClient, untrusted: ssl.SSLContext) -> None:
    """Nothing is requested over a connection whose peer can't prove its name."""
    with WireServer(lambda _: whole(b"secret")) as server:
        server.tls = untrusted
        client.submit(FetchRequest("https://one.test/", "page"), route_to(server))
        (outcome,) = outcomes_of(client, 1)
        assert isinstance(outcome, NoResponse)
        assert (outcome.failure, server.questions) == (Failure.TLS, [])


def test_a_trusted_certificate(untrusted: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the operator's own roots, the same server is trusted for its name and no other."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    client = HttpClient(real_clock(), LIMITS)
    with WireServer(lambda asked: whole(asked.target.encode())) as server:
        server.tls = untrusted
        client.submit(FetchRequest("https://one.test/yes", "page"), route_to(server))
        (good,) = outcomes_of(client, 1)
        client.submit(FetchRequest("https://two.test/no", "page"), route_to(server))
        (bad,) = outcomes_of(client, 1)
    client.close()
    assert isinstance(good, FetchResponse)
    assert isinstance(bad, NoResponse)
    assert (good.body, bad.failure) == (b"/yes", Failure.TLS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=20))
def test_the_target_is_sent_as_it_stands(client: HttpClient, links: list[str]) -> None:
    """A URL reaches the server byte for byte: nothing is shortened, decoded or encoded."""
    prefix = "http://one.test"
    urls = dict.fromkeys(url for link in links if (url := resolve("/" + link, prefix)) and url.startswith(f"{prefix}/"))
    with WireServer(lambda _: whole(b"")) as server:
        for url in urls:
            client.submit(FetchRequest(url, "page"), route_to(server))
        outcomes = outcomes_of(client, len(urls))
        targets = {question.target for question in server.questions}
    assert [outcome for outcome in outcomes if isinstance(outcome, NoResponse)] == []
    assert targets == {url.removeprefix(prefix) for url in urls}
