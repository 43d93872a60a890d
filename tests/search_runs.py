"""A small web whose pages a test changes, crawled and served by the real ``vedette up``, and clients of that server.

All hosts are on one port of loopback. The servers record requests and their times.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import xxhash
from tests.tree_runs import PATIENCE_S, children, kill_all, patiently

from vedette.adapters.crawl_store.status_file import SOCKET

__all__ = ["Heard", "Leaf", "SmallWeb", "Up", "page", "prose", "small_web", "up", "vedette"]

SETTINGS = """\
[crawl]
delay = "20ms"
address_delay = "10ms"
latency_factor = 0
timeout = "60s"
source_interval = "10s"

[serve]
rate = "0"
{serve}
"""
_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "wa")


class Leaf(NamedTuple):
    """The response of a URL; with ``key``, only to requests with that X-Key header."""

    body: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    key: str = ""


class Visit(NamedTuple):
    """One request, as recorded by its server."""

    at_s: float
    url: str
    status: int


@dataclass(slots=True)
class SmallWeb:
    """Pages by URL, all of them http; missing ones are 404."""

    port: int
    pages: dict[str, Leaf] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)

    def answer(self, url: str, key: str) -> Leaf:
        """Return the response to a request, and record it."""
        leaf = self.pages.get(url, Leaf("nothing is here", 404))
        if leaf.key and leaf.key != key:
            leaf = Leaf("say who you are", 403)
        self.visits.append(Visit(time.time(), url, leaf.status))
        return leaf

    def visited(self, url: str) -> list[Visit]:
        """List the successful requests for a page, oldest first."""
        return [visit for visit in self.visits if visit.url == url and visit.status == 200]


@contextmanager
def small_web(pages: Mapping[str, Leaf]) -> Iterator[SmallWeb]:
    """Serve pages on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20

        def do_GET(self) -> None:
            url = f"http://{self.headers.get('Host', '')}{self.path}"
            leaf = web.answer(url, self.headers.get("X-Key", ""))
            body = leaf.body.encode("utf-8", "surrogatepass")
            self.send_response(leaf.status)
            named = {name.lower() for name, _ in leaf.headers}
            for name, value in (*leaf.headers, *([] if "content-type" in named else [HTML])):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
            """Do not log: requests are recorded elsewhere."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web = SmallWeb(server.server_address[1], dict(pages))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


HTML = ("Content-Type", "text/html; charset=utf-8")


def prose(name: str, words: int = 60) -> str:
    """Return words unique to this name, since pages without new words would be held back as a trap."""
    numbers = [xxhash.xxh32_intdigest(f"{name} {place}".encode()) for place in range(words)]
    return " ".join("".join(_SYLLABLES[each >> shift & 15] for shift in (0, 4, 8, 12)) for each in numbers)


def page(title: str, text: str, links: Mapping[str, str] | None = None, head: str = "", lang: str = "en") -> Leaf:
    """Return a plain page with unique text and links with their texts."""
    anchors = "".join(f'<li><a href="{url}">{message}</a></li>' for url, message in (links or {}).items())
    body = f"<main><h1>{title}</h1><p>{text} {prose(title + text)}.</p><ul>{anchors}</ul></main>"
    return Leaf(f"<!doctype html><html lang={lang}><head><title>{title}</title>{head}</head><body>{body}</body></html>")


class Heard(NamedTuple):
    """A response of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as parsed JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class Up:
    """A running ``vedette up``, its address, and its data folder."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    environment: dict[str, str]

    @property
    def address(self) -> str:
        """Return the URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def get(self, target: str, headers: Mapping[str, str] | None = None) -> Heard:
        """Send a request on its own connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", target, headers=dict(headers or {}))
            answer = connection.getresponse()
            return Heard(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def search(self, query: str, headers: Mapping[str, str] | None = None, **more: object) -> Any:
        """Return the API's response to a query."""
        received = self.get(f"/api/v1/search?{urlencode({'q': query, **more})}", headers)
        assert received.status == 200, received.body
        return received.json

    def found(self, query: str, headers: Mapping[str, str] | None = None) -> list[str]:
        """Return the URLs of the results of a query."""
        return [result["url"] for result in self.search(query, headers)["results"]]

    def vedette(self, *arguments: str) -> str:
        """Run another command on the same folder while this one runs."""
        return vedette(self.folder, *arguments, environment=self.environment)

    def pid(self, name: str) -> int:
        """Wait for a process of the tree and return its id."""
        found: dict[str, int] = {}

        def is_there() -> bool:
            found.update(children(self.process.pid))
            return f"vedette {name}" in found

        patiently(is_there)
        return found[f"vedette {name}"]

    def messages(self) -> str:
        """Return its error messages."""
        return (self.folder / "messages.txt").read_text()


def vedette(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a command on the data folder of a test and return its output; it must succeed."""
    command = [sys.executable, "-m", "vedette", *arguments, "--data", "data"]
    known = {**os.environ, **(environment or {})}
    done = subprocess.run(
        command, env=known, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def up(
    web: SmallWeb,
    folder: Path,
    *sites: str,
    serve: str = "",
    speed: float = 1.0,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Up]:
    """Run ``vedette up`` over some sites of a small web, or those in the folder, until the block ends.

    Home pages are polled every ten seconds of world time, which runs ``speed`` times as fast as real time.
    """
    (folder / "vedette.toml").write_text(SETTINGS.format(serve=serve))
    command = [sys.executable, "-m", "vedette", "up", *sites, "--connect-to", f"*:80=127.0.0.1:{web.port}"]
    command += ["--allow-private", "--listen", "127.0.0.1:0", "--quiet", "--data", "data", "--speed", str(speed)]
    known = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
    report = folder / "output.txt"
    with (folder / "messages.txt").open("wb") as message, report.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=known, stdout=out, stderr=message, start_new_session=True)
    try:
        patiently(lambda: "Search  http" in report.read_text() or process.poll() is not None)
        patiently(lambda: (folder / "data" / SOCKET).exists() or process.poll() is not None)
        assert process.poll() is None, (folder / "messages.txt").read_text()
        line = next(line for line in report.read_text().splitlines() if line.startswith("Search"))
        port = int(line.rstrip("/").rpartition(":")[2])
        yield Up(process, folder, port, known)
    finally:
        kill_all(process)
