"""The loopback web: some districts of generated pages, served from memory by one bare process.

Every host has its own address in 127/8, all at one port. The first line on standard output is one JSON object with the
port, once everything is generated and listening; it ends when its standard input does, and so with its parent.
``/counts`` of the first host returns the pages served since its last request, so that a crawler's own count can be
checked.

    python -m bench.peers.web DISTRICTS
"""

import asyncio
import json
import socket
import sys
from collections import Counter
from statistics import median
from typing import cast

import uvloop
from bench.peers.pages import DISTRICT_HOSTS, HOST_PAGES, address, made_page, path_of

ROBOTS = b"User-agent: *\nAllow: /\n"
SITEMAPS = (b"/sitemap.xml", b"/sitemap_index.xml")  # requested once from a host whose robots.txt names none
NOT_FOUND = b"<!DOCTYPE html><title>Not found</title><p>There is no such page.</p>"
HEAD_END = b"\r\n\r\n"
BACKLOG = 1024


def answer(status: str, kind: str, body: bytes) -> bytes:
    """A whole answer, ready to be written."""
    head = f"HTTP/1.1 {status}\r\nServer: bench\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Web:
    """All answers by host and path, and how often each was given."""

    def __init__(self, hosts: int, port: int) -> None:
        self._pages = {
            f"{address(host)}:{port}{path_of(number)}".encode(): answer(
                "200 OK", "text/html; charset=utf-8", made_page(host, number, port)
            )
            for host in range(hosts)
            for number in range(HOST_PAGES)
        }
        self._robots = answer("200 OK", "text/plain", ROBOTS)
        self._not_found = answer("404 Not Found", "text/html", NOT_FOUND)
        self._counts_key = f"{address(0)}:{port}/counts".encode()
        self._served: Counter[bytes] = Counter()

    def median_bytes(self) -> float:
        """The size of a middling page, its HTTP head included."""
        return median(map(len, self._pages.values()))

    def reply(self, head: bytes) -> bytes:
        """The answer to a request."""
        path = head[4 : head.index(b" ", 4)]
        start = head.lower().index(b"\r\nhost:") + 7
        key = head[start : head.index(b"\r\n", start)].strip() + path
        if key == self._counts_key:
            return self._counts()
        page = self._pages.get(key)
        if page is not None:
            self._served[key] += 1
            return page
        kind = b"robots" if path == b"/robots.txt" else b"sitemaps" if path in SITEMAPS else b"missing"
        self._served[kind] += 1
        return self._robots if kind == b"robots" else self._not_found

    def _counts(self) -> bytes:
        served, self._served = self._served, Counter()
        told = {kind: served.pop(kind.encode(), 0) for kind in ("robots", "sitemaps", "missing")}
        told |= {"pages": len(served), "page_requests": served.total()}
        return answer("200 OK", "application/json", json.dumps(told).encode())


class Connection(asyncio.Protocol):
    """Requests in, answers out, in order."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        *heads, self._unread = (self._unread + data).split(HEAD_END)
        for head in heads:
            self._transport.write(self._web.reply(head + b"\r\n"))


def listeners(hosts: int) -> list[socket.socket]:
    """One socket for each host, all at a port that is free for the first."""
    sockets: list[socket.socket] = []
    for host in range(hosts):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address(host), sockets[0].getsockname()[1] if sockets else 0))
        sockets.append(listener)
    return sockets


async def serve(districts: int) -> None:
    """Make the web, listen, say so, and stay until the parent lets go."""
    loop = asyncio.get_running_loop()
    sockets = listeners(districts * DISTRICT_HOSTS)
    port = sockets[0].getsockname()[1]
    web = Web(len(sockets), port)
    for listener in sockets:
        await loop.create_server(lambda: Connection(web), sock=listener, backlog=BACKLOG)
    over = asyncio.Event()
    loop.add_reader(sys.stdin, over.set)
    print(json.dumps({"port": port, "median_bytes": web.median_bytes()}), flush=True)
    await over.wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
