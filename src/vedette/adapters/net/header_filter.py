"""Header filter: remove header lines without a colon, which some servers send, before libcurl sees them.

Browsers skip such a line; libcurl rejects the whole response, and none of its options changes that. So a request to a
server known to do this goes through a socket pair: a thread connects to the pinned address, with TLS if the URL
requires it, forwards the request, and forwards the response without those lines. Limits on size and time are libcurl's,
as for any other request.
"""

import select
import socket
import ssl
from threading import Thread

from vedette.fetch.connect_to import Endpoint

_PIECE_BYTES = 65_536


def open_filtered(
    route: Endpoint, host: str, tls: ssl.SSLContext | None, timeout_s: float, head_bytes: int
) -> socket.socket:
    """Return a connected socket to a server whose broken header lines are removed; ``host`` is its name for TLS.

    If no connection can be made, the socket is closed without a response.
    """
    theirs, ours = socket.socketpair()
    ours.settimeout(timeout_s)
    work = (ours, route, host, tls, timeout_s, head_bytes)
    Thread(target=_pass_on, args=work, name="header filter", daemon=True).start()
    return theirs


def filter_head(head: bytes) -> bytes:
    r"""Remove the lines of an HTTP head that have no colon, and their continuations.

    >>> filter_head(b"HTTP/1.1 200 OK\r\nA: 1\r\n b\r\noops\r\n more: x\r\n\r\n")
    b'HTTP/1.1 200 OK\r\nA: 1\r\n b\r\n\r\n'
    """
    first, *lines = head.splitlines(keepends=True)
    kept_lines, is_kept = [first], True
    for line in lines:
        is_folded = line[:1] in {b" ", b"\t"} and bool(line.strip())
        is_kept = is_kept if is_folded else b":" in line or not line.strip()
        if is_kept:
            kept_lines.append(line)
    return b"".join(kept_lines)


def _pass_on(
    ours: socket.socket, route: Endpoint, host: str, tls: ssl.SSLContext | None, timeout_s: float, head_bytes: int
) -> None:
    with ours:
        try:
            with _connect(route, host, tls, timeout_s) as server:
                server.sendall(_receive_head(ours, head_bytes)[0])
                _answer(server, ours, head_bytes)
        except OSError:
            return  # libcurl sees that the connection ends


def _connect(route: Endpoint, host: str, tls: ssl.SSLContext | None, timeout_s: float) -> socket.socket:
    plain = socket.create_connection((route.address, route.port), timeout_s)
    if tls is None:
        return plain
    try:
        return tls.wrap_socket(plain, server_hostname=host)
    except OSError:
        plain.close()
        raise


def _answer(server: socket.socket, ours: socket.socket, head_bytes: int) -> None:
    status, rest = b"1", b""
    while status == b"1":  # interim responses have heads of their own
        head, rest = _receive_head(server, head_bytes, rest)
        status = head.partition(b" ")[2][:1]
        ours.sendall(filter_head(head))
    while rest or _has_more(server, ours):
        ours.sendall(rest)
        rest = server.recv(_PIECE_BYTES)
        if not rest:
            return


def _has_more(server: socket.socket, ours: socket.socket) -> bool:
    """Wait for more of a response; False when libcurl has had enough, or nothing comes."""
    if isinstance(server, ssl.SSLSocket) and server.pending():
        return True
    ready, _, _ = select.select([server, ours], [], [], server.gettimeout())
    return ready == [server]


def _receive_head(source: socket.socket, most_bytes: int, data: bytes = b"") -> tuple[bytes, bytes]:
    """Receive an HTTP head; return it with its blank line, and the bytes after it. Without an end, all is head."""
    while not (ends := [at + len(mark) for mark in (b"\r\n\r\n", b"\n\n") if (at := data.find(mark)) >= 0]):
        piece = source.recv(_PIECE_BYTES)
        if not piece or len(data) > most_bytes:
            return data + piece, b""
        data += piece
    return data[: min(ends)], data[min(ends) :]
