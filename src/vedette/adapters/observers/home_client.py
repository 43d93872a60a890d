"""The observer's client for home: one exchange at a time, in a separate thread, so that no request waits for home."""

from dataclasses import dataclass
from math import ceil
from queue import SimpleQueue
from threading import Thread
from time import monotonic

import pycurl

from vedette.adapters.net.http import CaBundle, ConnectionSettings, Limits, create_handle
from vedette.engine.observers.messages import CONTENT_TYPE, EXCHANGE_PATH, NAME_HEADER, SIGNATURE_HEADER

CONNECT_TIMEOUT_S, TIMEOUT_S = 10.0, 120.0
MAX_ORDERS_BYTES = 16 << 20
MAX_WORDS = 200


@dataclass(frozen=True, slots=True)
class HomeReply:
    """The reply of home: status 0 and a message if there was none, the duration, and the bytes in both directions."""

    status: int
    body: bytes = b""
    signature: str = ""
    words: str = ""
    took_s: float = 0.0
    total_bytes: int = 0


class HomeClient:
    """Sends reports to home and collects the replies."""

    def __init__(self, home: str, name: str, user_agent: str, ca_file: str = "") -> None:
        self._url = home.rstrip("/") + EXCHANGE_PATH
        self._name, self._agent = name, user_agent
        self._roots = CaBundle(ca_file)
        self._replies: SimpleQueue[HomeReply] = SimpleQueue()
        self._curl: pycurl.Curl | None = None
        self.is_busy = False

    def submit(self, body: bytes, signature: str) -> None:
        """Send a report; ``take`` returns the reply once."""
        assert not self.is_busy, "an exchange is under way"
        self.is_busy = True
        Thread(target=self._run, args=(body, signature), name="home", daemon=True).start()

    def take(self) -> HomeReply | None:
        """Return the reply if it has arrived."""
        if self._replies.empty():
            return None
        self.is_busy = False
        return self._replies.get()

    def _run(self, body: bytes, signature: str) -> None:
        started_s = monotonic()
        try:
            reply = self._post(body, signature)
        except pycurl.error as error:
            reply = HomeReply(0, words=str(error.args[-1])[:MAX_WORDS])
        size = len(body) + len(reply.body)
        self._replies.put(
            HomeReply(reply.status, reply.body, reply.signature, reply.words, monotonic() - started_s, size)
        )

    def _post(self, body: bytes, signature: str) -> HomeReply:
        """Post a report over a persistent connection.

        Redirects are not followed, because they are not signed.
        """
        if self._curl is None:
            limits = Limits(CONNECT_TIMEOUT_S, TIMEOUT_S)
            self._curl = create_handle(limits, ConnectionSettings(), self._roots)
            self._curl.setopt(pycurl.TIMEOUT_MS, ceil(TIMEOUT_S * 1000))
            self._curl.setopt(pycurl.MAXFILESIZE_LARGE, MAX_ORDERS_BYTES)
        curl, answer, lines = self._curl, bytearray(), list[bytes]()
        curl.setopt(pycurl.URL, self._url)
        headers = {
            "user-agent": self._agent,
            "content-type": CONTENT_TYPE,
            "expect": "",
            NAME_HEADER: self._name,
            SIGNATURE_HEADER: signature,
        }
        curl.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" if value else f"{name}:" for name, value in headers.items()])
        curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.HEADERFUNCTION, lines.append)
        curl.setopt(pycurl.WRITEFUNCTION, _build_writer(answer))
        curl.perform()
        status = int(curl.getinfo(pycurl.RESPONSE_CODE))
        prefix = f"{SIGNATURE_HEADER}:".encode()
        found = next((line.partition(b":")[2] for line in lines if line.lower().startswith(prefix)), b"")
        words = "" if status == 200 else " ".join(answer[:MAX_WORDS].decode("utf-8", "replace").split())
        return HomeReply(status, bytes(answer), found.strip().decode("latin-1"), words)


def _build_writer(body: bytearray):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a callback of libcurl
    def take(data: bytes) -> int:
        if len(body) + len(data) > MAX_ORDERS_BYTES:
            return -1
        body.extend(data)
        return len(data)

    return take
