"""Serve site trees on loopback, each host at its own address, over HTTP and TLS, and record every request.

Responses have an ETag and Last-Modified and are 304 if the client has them already; text is compressed for clients that
accept gzip, with Apache's suffix on the ETag. The certificates are from an authority created for the run.
"""

import asyncio
import gzip
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import quote

import xxhash
from bench.peers.site_trees import Reply, SiteTree

__all__ = ["Request", "Served", "serve_trees"]

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
HEAD_END = b"\r\n\r\n"
_TEXT = ("text/", "application/xml", "application/json", "application/javascript", "image/svg")


class Request(NamedTuple):
    """A request and its response; the file is empty if none of the tree was sent."""

    host: str
    url: str
    status: int
    file: str
    is_page: bool


class Served(NamedTuple):
    """The running servers: every request so far, the authority's certificate, and the address of each host and port."""

    log: list[Request]
    ca_file: Path
    connect_to: list[str]


class _Connection(asyncio.Protocol):
    """Requests in, answers out, in order."""

    def __init__(self, tree: SiteTree, scheme: str, log: list[Request]) -> None:
        self._tree, self._scheme, self._log = tree, scheme, log
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        *heads, self._unread = (self._unread + data).split(HEAD_END)
        for head in heads:
            self._transport.write(self._answer(head.decode("latin-1")))

    def _answer(self, head: str) -> bytes:
        first, *lines = head.split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, target, _ = first.split(" ", 2)
        url = f"{self._scheme}://{self._tree.site.host}{quote(target, safe=chr(37) + '/?&=+:;,@!$()*~[]' + chr(39))}"
        reply = self._tree.answer(url)
        status, lines, body = _format(reply, self._tree.modified_s, headers)
        self._log.append(Request(self._tree.site.host, url, status, reply.file, reply.is_page))
        start = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n" + "".join(f"{line}\r\n" for line in lines)
        return start.encode() + b"\r\n" + (b"" if method == "HEAD" else body)


def _format(reply: Reply, modified_s: float, headers: dict[str, str]) -> tuple[int, list[str], bytes]:
    lines, body, status = [f"Date: {formatdate(usegmt=True)}", "Server: Apache"], reply.body, reply.status
    if reply.location:
        return status, [*lines, f"Location: {reply.location}", "Content-Length: 0"], b""
    can_shrink = len(body) > 200 and reply.content_type.startswith(_TEXT)
    shrinks = can_shrink and "gzip" in headers.get("accept-encoding", "")
    if status == 200:
        tag = f"{xxhash.xxh64_hexdigest(body)}{'-gzip' if shrinks else ''}"
        lines += [f'ETag: "{tag}"', f"Last-Modified: {formatdate(modified_s, usegmt=True)}"]
        if tag in headers.get("if-none-match", ""):
            return 304, lines, b""
    lines.append(f"Content-Type: {reply.content_type}")
    if can_shrink:
        lines.append("Vary: Accept-Encoding")
    if shrinks:
        body = gzip.compress(body, 1)
        lines.append("Content-Encoding: gzip")
    return status, [*lines, f"Content-Length: {len(body)}"], body


@contextmanager
def serve_trees(trees: Sequence[SiteTree], folder: Path) -> Iterator[Served]:
    """Serve sites in a thread until the block ends."""
    context = _make_certificates(folder, [tree.site.host for tree in trees])
    served, loop = Served([], folder / "authority.pem", []), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(_listen(trees, context, served), loop).result()
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _listen(trees: Sequence[SiteTree], context: ssl.SSLContext, served: Served) -> None:
    loop = asyncio.get_running_loop()
    for number, tree in enumerate(trees, 1):
        for scheme, port, tls in (("http", 80, None), ("https", 443, context)):
            # The names are bound now, since the loop continues before a client comes.
            server = await loop.create_server(
                lambda tree=tree, scheme=scheme: _Connection(tree, scheme, served.log), f"127.22.0.{number}", 0, ssl=tls
            )
            address, local = server.sockets[0].getsockname()
            served.connect_to.append(f"{tree.site.host}:{port}={address}:{local}")


def _make_certificates(folder: Path, hosts: Sequence[str]) -> ssl.SSLContext:
    names = ",".join(f"DNS:{host}" for host in hosts)
    _openssl(
        folder, "req", "-x509", *KEY, "-days", "2", "-subj", "/CN=bench", "-keyout", "ca.key", "-out", "authority.pem"
    )
    subject = ("-subj", "/CN=bench sites", "-addext", f"subjectAltName={names}")
    _openssl(folder, "req", *KEY, *subject, "-keyout", "sites.key", "-out", "sites.ask")
    by = ("-CA", "authority.pem", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy")
    _openssl(folder, "x509", "-req", "-in", "sites.ask", *by, "-days", "2", "-out", "sites.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "sites.pem", folder / "sites.key")
    return context


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
