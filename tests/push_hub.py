"""A hub on loopback, following the WebSub recommendation: a real HTTP server that verifies, signs and distributes.

It can also misbehave: a test can send anything to a callback with ``send`` and ``ask_back``.
"""

import hmac
import http.client
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.tree_runs import PATIENCE_S

__all__ = ["Hub", "Reader"]


class Reader(NamedTuple):
    """A subscriber, with the parameters it sent."""

    callback: str
    topic: str
    secret: str


@dataclass
class Hub:
    """A hub that listens during its ``with`` block.

    ``status`` is its reply to requests, and ``lease_s`` the lease it grants. With ``calls_port``, callbacks are called
    at that port of loopback, whatever their URLs are; no one is called before it is set.
    """

    lease_s: int = 3_600
    status: int = 202
    verifies: bool = True
    calls_port: Future[int] | None = None
    forms: list[dict[str, str]] = field(default_factory=list)
    readers: dict[str, Reader] = field(default_factory=dict)
    answers: list[tuple[int, str]] = field(default_factory=list)
    verified: Event = field(default_factory=Event)

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._asked))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Return its URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/hub"

    def publish(self, topic: str, body: bytes, method: str = "sha256") -> list[int]:
        """Send a topic's news to every subscriber, signed for each; return their responses."""
        report = [reader for reader in self.readers.values() if reader.topic == topic]
        return [self.send(reader, body, self.signature(reader, body, method)) for reader in report]

    def signature(self, reader: Reader, body: bytes, method: str = "sha256") -> str:
        """Return the value of the signature header."""
        return f"{method}={hmac.digest(reader.secret.encode(), body, method).hex()}"

    def send(self, reader: Reader, body: bytes, signature: str, link: str = "") -> int:
        """Send a delivery, valid or not; return the status of the response."""
        headers = {"Content-Type": "application/atom+xml", "X-Hub-Signature": signature}
        headers["Link"] = link or f'<{self.url}>; rel="hub", <{reader.topic}>; rel="self"'
        return self._called("POST", reader.callback, body, headers)[0]

    def ask_back(self, callback: str, **query: str) -> tuple[int, str]:
        """Send a verification of a subscription, valid or not."""
        report = urlencode({f"hub.{name}": value for name, value in query.items()})
        return self._called("GET", f"{callback}?{report}", b"", {})

    def _asked(self, body: bytes) -> int:
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        self.forms.append(form)
        if 200 <= self.status < 300 and self.verifies:
            Thread(target=self._verify, args=(form,), daemon=True).start()
        return self.status

    def _verify(self, form: dict[str, str]) -> None:
        """Call back, and accept subscribers that repeat the challenge."""
        callback, topic, mode = form["hub.callback"], form["hub.topic"], form["hub.mode"]
        challenge = f"challenge {len(self.forms)}"
        lease = {"lease_seconds": str(self.lease_s)} if mode == "subscribe" else {}
        answer = self.ask_back(callback, mode=mode, topic=topic, challenge=challenge, **lease)
        self.answers.append(answer)
        if answer == (200, challenge):
            if mode == "subscribe":
                self.readers[callback] = Reader(callback, topic, form.get("hub.secret", ""))
            else:
                self.readers.pop(callback, None)
        self.verified.set()

    def _called(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        if self.calls_port is not None:
            host, port = "127.0.0.1", self.calls_port.result(PATIENCE_S)
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
        try:
            connection.request(method, f"{parts.path}?{parts.query}", body, headers | {"Host": parts.netloc})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def _handler(asked: Callable[[bytes], int]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = asked(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Do not log."""

    return Handler
