"""Certificates, proxies and protocol versions of the HTTP client: real certificates, real proxies, HTTP/2 by hand."""

import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.wire_server import Question, Said, WireServer, whole

from vedette.adapters.clock import real_clock
from vedette.adapters.net.http import ConnectionSettings, HttpClient, Limits
from vedette.errors import ConfigError
from vedette.fetch.connect_to import Endpoint
from vedette.model import Failure, FetchOutcome, FetchRequest, FetchResponse, NoResponse

LIMITS = Limits(connect_timeout_s=300.0, timeout_s=300.0)
NOWHERE = Endpoint("192.0.2.1", 9)
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(folder: Path, *words: str) -> None:
    """Run openssl in a folder."""
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    """Create a root certificate."""
    openssl(folder, "req", "-x509", *KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", name)


def certificate(folder: Path, root: str, name: str, host: str, days: int = 2) -> None:
    """Create a certificate for a host; with minus one day, it has expired."""
    subject = ("-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}")
    openssl(folder, "req", *KEY, *subject, "-keyout", f"{name}.key", "-out", f"{name}.ask")
    by = ("-CA", root, "-CAkey", f"{root}.key", "-CAcreateserial", "-copy_extensions", "copy")
    openssl(folder, "x509", "-req", "-in", f"{name}.ask", *by, "-days", str(days), "-out", name)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two roots and with certificates for one.test and two.test."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is needed to make certificates")
    folder = tmp_path_factory.mktemp("papers")
    authority(folder, "house.pem")
    authority(folder, "public.pem")
    certificate(folder, "house.pem", "one", "one.test")
    certificate(folder, "house.pem", "two", "two.test")
    certificate(folder, "house.pem", "expired", "one.test", -1)
    certificate(folder, "public.pem", "public", "one.test")
    return folder


def server_side(papers: Path, name: str) -> ssl.SSLContext:
    """A server-side TLS context with one of the certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(papers / name, papers / f"{name}.key")
    return context


def outcome_by(way: ConnectionSettings, url: str, route: Endpoint = NOWHERE) -> FetchOutcome:
    """Return the outcome of one request."""
    with closing(HttpClient(real_clock(), LIMITS, way)) as client:
        client.submit(FetchRequest(url, "page", (("user-agent", "me/1"),)), route)
        while not (found := client.wait(0.05)):
            pass
    return found[0]


def outcome_with(papers: Path, name: str, ca_file: str) -> FetchOutcome:
    """Return the outcome of https://one.test/ with this certificate and these additional roots."""
    with WireServer(lambda _: whole(b"page")) as server:
        server.tls = server_side(papers, name)
        outcome = outcome_by(
            ConnectionSettings(ca_file=ca_file), "https://one.test/", Endpoint(server.address, server.port)
        )
        assert bool(server.questions) is isinstance(outcome, FetchResponse)
    return outcome


def test_a_root_of_ones_own_counts_when_it_is_named(papers: Path) -> None:
    """An intranet server is trusted only by clients that configure its root."""
    assert isinstance(outcome_with(papers, "one", str(papers / "house.pem")), FetchResponse)
    for ca_file in ("", str(papers / "public.pem")):
        outcome = outcome_with(papers, "one", ca_file)
        assert isinstance(outcome, NoResponse)
        assert outcome.failure is Failure.TLS


@pytest.mark.parametrize("name", ["two", "expired"])
def test_a_root_does_not_excuse_everything(papers: Path, name: str) -> None:
    """A wrong name or an expired certificate is rejected even under a trusted root."""
    outcome = outcome_with(papers, name, str(papers / "house.pem"))
    assert isinstance(outcome, NoResponse)
    assert outcome.failure is Failure.TLS


def test_roots_of_the_system_count_as_before(papers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Additional roots don't replace the system's."""
    monkeypatch.setenv("SSL_CERT_FILE", str(papers / "public.pem"))
    found = [outcome_with(papers, name, str(papers / "house.pem")) for name in ("one", "public")]
    assert [type(outcome) for outcome in found] == [FetchResponse, FetchResponse]


@pytest.mark.parametrize(("name", "content"), [("missing", None), ("empty", b""), ("text", b"no certificate")])
def test_a_file_without_roots_is_a_mistake(tmp_path: Path, name: str, content: bytes | None) -> None:
    """The error comes before any request, with the setting and the file."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=f"crawl.ca_file.*{name}"):
        HttpClient(real_clock(), LIMITS, ConnectionSettings(ca_file=str(tmp_path / name)))


class Proxy:
    """A small proxy on loopback that resolves a few names: it forwards, tunnels, and speaks SOCKS 5."""

    def __init__(self, hosts: dict[str, WireServer], refusal: bytes = b"") -> None:
        self._hosts = hosts
        self._refusal = refusal
        self._open: list[socket.socket] = []
        self._threads: list[Thread] = []
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def close(self) -> None:
        """Close every connection, and wait."""
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._open):
            each.close()

    def _start(self, job: Callable[..., None], *arguments: socket.socket) -> None:
        thread = Thread(target=job, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                self._start(self._serve, connection)

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError):
            first = client.recv(65_536)
            if first.startswith(b"\x05"):
                self._socks(client)
            elif first.startswith(b"CONNECT "):
                self._tunnel(client, first)
            else:
                self._forward(client, first)

    def _socks(self, client: socket.socket) -> None:
        client.sendall(b"\x05\x00")
        ask = client.recv(65_536)
        assert ask[:4] == b"\x05\x01\x00\x03", "a name is wanted, not an address"
        name = ask[5 : 5 + ask[4]].decode()
        server = self._reach(name)
        client.sendall(b"\x05\x00\x00\x01" + bytes(6))
        self._join(client, server)

    def _tunnel(self, client: socket.socket, head: bytes) -> None:
        if self._refusal:
            client.sendall(self._refusal)
            return
        server = self._reach(head.split(b" ")[1].partition(b":")[0].decode())
        client.sendall(b"HTTP/1.1 200 Gladly\r\nX-Proxy: 1\r\n\r\n")
        self._join(client, server)

    def _forward(self, client: socket.socket, head: bytes) -> None:
        method, target, rest = head.split(b" ", 2)
        host, _, path = target.removeprefix(b"http://").partition(b"/")
        server = self._reach(host.decode())
        server.sendall(b" ".join((method, b"/" + path, rest)))
        self._join(client, server)

    def _reach(self, name: str) -> socket.socket:
        self.asked.append(name)
        to = self._hosts[name]
        server = socket.create_connection((to.address, to.port))
        self._open.append(server)
        return server

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        self._start(self._pour, server, client)
        self._pour(client, server)

    def _pour(self, source: socket.socket, into: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                into.sendall(data)
            into.shutdown(socket.SHUT_WR)


def script(asked: Question) -> Said:
    """A page that echoes the requested path, host and client."""
    return whole(f"{asked.header('host')}{asked.target} {asked.header('user-agent')}".encode())


@pytest.fixture
def server() -> Iterator[WireServer]:
    """A server that only the proxy can find."""
    with WireServer(script) as server:
        yield server


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_a_proxy_gets_everything(scheme: str, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets the name and resolves it; exceptions in the environment don't bypass it."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("NO_PROXY", "one.test")
    with closing(Proxy({"one.test": server})) as proxy:
        way = ConnectionSettings(proxy=f"{scheme}://127.0.0.1:{proxy.port}")
        answer = outcome_by(way, "http://one.test/a?b", Endpoint("127.0.0.1", 9))
        assert proxy.asked == ["one.test"]
    assert isinstance(answer, FetchResponse)
    assert answer.body == b"one.test/a?b me/1"


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_tls_goes_through_a_proxy_untouched(papers: Path, scheme: str, server: WireServer) -> None:
    """The server proves its name through the proxy; the proxy's own response is not part of the result."""
    server.tls = server_side(papers, "one")
    with closing(Proxy({"one.test": server, "two.test": server})) as proxy:
        way = ConnectionSettings(f"{scheme}://127.0.0.1:{proxy.port}", str(papers / "house.pem"))
        answer = outcome_by(way, "https://one.test/a")
        other = outcome_by(way, "https://two.test/a")
    assert isinstance(answer, FetchResponse)
    assert (answer.body, answer.header("x-proxy")) == (b"one.test/a me/1", None)
    assert b"Gladly" not in answer.head
    assert isinstance(other, NoResponse)
    assert other.failure is Failure.TLS


def test_a_proxy_that_declines(server: WireServer) -> None:
    """Without a tunnel there is no connection."""
    with closing(Proxy({"one.test": server}, b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")) as proxy:
        outcome = outcome_by(ConnectionSettings(f"http://127.0.0.1:{proxy.port}"), "https://one.test/")
    assert isinstance(outcome, NoResponse)
    assert outcome.failure is Failure.CONNECT


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_a_proxy_that_is_gone(scheme: str, server: WireServer) -> None:
    """Without its proxy, a request fails, and is never sent to the server directly."""
    with closing(Proxy({})) as proxy:
        port = proxy.port
    way = ConnectionSettings(f"{scheme}://127.0.0.1:{port}")
    outcome = outcome_by(way, "http://one.test/", Endpoint(server.address, server.port))
    assert isinstance(outcome, NoResponse)
    assert (outcome.failure, server.questions) == (Failure.CONNECT, [])


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """An HTTP/2 frame (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def plain_fields(fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Header fields in HPACK without a table (RFC 7541, 6.2.2)."""
    return b"".join(b"\0%c%b%c%b" % (len(name), name, len(value), value) for name, value in fields)


class BinaryServer(WireServer):
    """A server that returns the same page for every request, over HTTP/2."""

    def __init__(self, fields: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__(lambda _: Said(b""))
        self._fields = fields
        self._body = body
        self.spoken = Event()

    def _serve(self, _number: int, connection: socket.socket) -> None:
        assert self.tls is not None, "browsers and crawlers speak HTTP/2 over TLS only"
        with suppress(OSError), self.tls.wrap_socket(connection.dup(), server_side=True) as secure:
            self._connections.append(secure)
            with secure.makefile("rb") as received:
                if received.read(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":
                    self.spoken.set()
                    secure.sendall(frame(4, 0, 0))
                    while head := received.read(9):
                        self._reply(secure, head[3], int.from_bytes(head[5:]))
                        received.read(int.from_bytes(head[:3]))

    def _reply(self, secure: ssl.SSLSocket, kind: int, stream: int) -> None:
        if kind == 1:
            status_200 = b"\x88"
            secure.sendall(frame(1, 4, stream, status_200 + plain_fields(self._fields)))
            secure.sendall(frame(0, 1, stream, self._body))


def test_http_two_where_it_is_offered(papers: Path) -> None:
    """Over TLS, HTTP/2 is used if it is offered."""
    with BinaryServer([(b"x-word", b"two"), (b"content-type", b"text/html")], b"page") as server:
        server.tls = server_side(papers, "one")
        server.tls.set_alpn_protocols(["h2", "http/1.1"])
        way = ConnectionSettings(ca_file=str(papers / "house.pem"))
        answer = outcome_by(way, "https://one.test/a", Endpoint(server.address, server.port))
        assert server.spoken.is_set()
    assert isinstance(answer, FetchResponse)
    assert (answer.status, answer.body, answer.header("x-word")) == (200, b"page", "two")


def test_a_long_head_in_http_two(papers: Path) -> None:
    """The header limits also apply there, where headers cost a few bytes each."""
    with BinaryServer([(b"x", b"y")] * 1000, b"page") as server:
        server.tls = server_side(papers, "one")
        server.tls.set_alpn_protocols(["h2"])
        way = ConnectionSettings(ca_file=str(papers / "house.pem"))
        outcome = outcome_by(way, "https://one.test/", Endpoint(server.address, server.port))
    assert isinstance(outcome, NoResponse)
    assert outcome.failure is Failure.TOO_LARGE
