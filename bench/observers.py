"""What does a remote observer save, and do equations 41 and 42 of Observe99 forecast it?

One site, home, and an observer (the real process), on loopback. A proxy of ours between them delays each byte by the
latency of the link, one way, and limits the rate. First both ways fetch all pages once; then a share of the pages
changes by a sentence, and all are fetched again, one after the other: from home, and through the observer. The proxies
count the bytes. The site sends no validators, so each fetch is a download.

Seconds of the observer are those at the site plus those of its exchanges with home, which overlap. Eq. 42 is given as
printed, with one message for each change, and with the exchanges that there were, a request and a response each (t2').

    python bench/observers.py [PAGES]
"""

import asyncio
import json
import multiprocessing
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from tests.runtime.observers.desk_setup import NAME, Desk, stored

import vedette
from vedette.adapters.clock import Clock
from vedette.adapters.net.http import HttpClient
from vedette.adapters.net.http import Limits as HttpLimits
from vedette.adapters.observers.hub_store import ErrandRow
from vedette.engine.messages import FetchTask, HostSettings, StoredCopy
from vedette.engine.observers.messages import NAME_HEADER, SIGNATURE_HEADER, Errand
from vedette.fetch.connect_to import Endpoint
from vedette.fetch.observers.costs import (
    Link,
    LinkMeter,
    Task,
    compute_direct_s,
    compute_remote_s,
    compute_reported_s,
    find_break_even_latency_s,
)
from vedette.model import FetchRequest, FetchResponse, Headers
from vedette.runtime.observers.desk import ErrandDesk
from vedette.runtime.observers.keys import ObserverKey, format_key

LATENCY_S, RATE, CHANGE_SHARE = 0.1, 1e6, 0.05
ERRAND_BYTES = 400.0
# What an observation sends besides the change: heads of request and response, numbers and names.
REPORT_BYTES = 300.0
HOST = "far.test"


def build_page(number: int, version: int) -> bytes:
    """Build a page of words that compress as text does; a version changes one sentence."""
    rng = random.Random(number)  # noqa: S311 - no secret
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(400)]
    count = int(4_000 * 2.718 ** rng.gauss(0.0, 0.7))
    body = " ".join(rng.choices(words, k=count)) + f" <p>Version {version} of this page."
    return f"<title>{number}</title><p>{body}".encode()


async def _serve_site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, versions: Sequence[int]) -> None:
    try:
        while line := await reader.readline():
            while (await reader.readline()).strip():
                pass
            number = int(line.split()[1].rpartition(b"/")[2])
            body = build_page(number, versions[number])
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def run_site(port: int, versions: Sequence[int]) -> None:
    """Serve the pages until the process is ended."""

    async def serve() -> None:
        server = await asyncio.start_server(lambda r, w: _serve_site(r, w, versions), "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(serve())


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, latency_s: float, rate: float, counter: Sequence[int]
) -> None:
    """Pass bytes on, each a latency after it came, and no faster than the rate."""
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            at_s, data = await queue.get()
            await asyncio.sleep(max(at_s - time.monotonic(), 0.0))
            if not data:
                writer.close()
                return
            writer.write(data)

    task = asyncio.create_task(deliver())
    free_s = time.monotonic()
    while True:
        data = await reader.read(16_384)
        free_s = max(free_s, time.monotonic()) + len(data) / rate
        counter[0] += len(data)  # type: ignore[index]  # a shared array
        queue.put_nowait((free_s + latency_s, data))
        if not data:
            await task
            return


def run_proxy(port: int, target: int, latency_s: float, rate: float, counter: Sequence[int]) -> None:
    """Forward connections over a slow link until the process is ended."""

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(
            _pump(reader, back, latency_s, rate, counter),
            _pump(there, writer, latency_s, rate, counter),
            return_exceptions=True,
        )

    async def serve() -> None:
        server = await asyncio.start_server(connect, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(serve())


class CopyDesk(ErrandDesk):
    """A desk that says of each page that home has a copy of it, without a crawl state."""

    def _build_errand(
        self,
        row: ErrandRow,
        task: FetchTask,
        epoch: int,
        secrets: Headers,
        now_s: float,
        *,
        has_copy: bool,
    ) -> Errand:
        return super()._build_errand(row, task, epoch, secrets, now_s, has_copy=has_copy or task.copy is not None)


class Home:
    """Home as the observer sees it: a desk behind HTTP, with the observations that came back."""

    def __init__(self, folder: Path, port: int) -> None:
        self.desk = Desk(folder)
        crawl = replace(self.desk.settings.config.crawl, address_delay_s=0.0)
        settings = replace(self.desk.settings, config=replace(self.desk.settings.config, crawl=crawl))
        self.desk.desk = CopyDesk(settings, self.desk.store, agent="vedette/1")
        self.seen: dict[str, float] = {}
        self.sent = self.changes = self.messages = 0
        self.took_s = self.exchange_s = 0.0
        self.site = LinkMeter()
        home = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                exchange = home.desk.desk.exchange(self.headers[NAME_HEADER], self.headers[SIGNATURE_HEADER], body)
                home.messages += bool(exchange.answered)
                for row in exchange.answered:
                    assert row.outcome is not None
                    home.seen[row.url] = time.monotonic()
                    home.took_s += row.outcome.took_s
                    home.sent += len(row.outcome.data)
                    home.changes += row.outcome.form != "same"
                    home.site = home.site.add(row.outcome.site_bytes, row.outcome.took_s)
                data = exchange.reply["body"]
                assert isinstance(data, bytes)
                self.send_response(int(str(exchange.reply["status"])))
                self.send_header("content-length", str(len(data)))
                self.send_header(SIGNATURE_HEADER, str(exchange.reply.get("signature", "")))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", port), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    def observe(self, urls: Sequence[str], copies: dict[str, StoredCopy]) -> float:
        """Have all pages observed; return the wall time until the last answer."""
        self.seen.clear()
        self.sent = self.changes = self.messages = 0
        self.took_s, began_s = 0.0, time.monotonic()
        tasks = [FetchTask(n + 1, HOST, url, "page", copy=copies.get(url)) for n, url in enumerate(urls)]
        with self.desk.store.open_transaction():
            self.desk.store.delete_errands(urls)
        self.desk.desk.take_tasks([HostSettings(HOST, "observed", 0.0, None, 0.0, 0)], tasks)
        while len(self.seen) < len(urls):
            time.sleep(0.02)  # until the observer has answered all
        return max(self.seen.values()) - began_s


def fetch_directly(urls: Sequence[str], port: int) -> tuple[float, dict[str, bytes]]:
    """Fetch all pages from home, one after the other; return the seconds and the bodies."""
    client = HttpClient(Clock(time.time(), time.time(), 1.0), HttpLimits())
    bodies: dict[str, bytes] = {}
    began_s = time.monotonic()
    for url in urls:
        client.submit(FetchRequest(url, "page", (("user-agent", "bench"),)), Endpoint("127.0.0.1", port))
        while url not in bodies:
            for outcome in client.wait(1.0):
                assert isinstance(outcome, FetchResponse), outcome
                bodies[outcome.url] = outcome.body
    took_s = time.monotonic() - began_s
    client.close()
    return took_s, bodies


def _find_free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def compare(pages: int, latency_s: float, observer_latency_s: float) -> dict[str, float]:
    """Compare both ways at these latencies: home to site and observer, and observer to site."""
    manager = multiprocessing.get_context("fork")
    versions = manager.Array("i", pages, lock=False)
    counts = [manager.Array("q", 1, lock=False) for _ in range(3)]
    site, direct, near, home_port, far = _find_free_ports(5)
    works: list[tuple[Callable[..., None], tuple[object, ...]]] = [
        (run_site, (site, versions)),
        (run_proxy, (direct, site, latency_s, RATE, counts[0])),
        (run_proxy, (near, site, observer_latency_s, RATE if observer_latency_s else 1e9, counts[1])),
        (run_proxy, (far, home_port, latency_s, RATE, counts[2])),
    ]
    children = [manager.Process(target=run, args=args, daemon=True) for run, args in works]
    for child in children:
        child.start()
    time.sleep(0.5)  # until they listen
    urls = [f"http://{HOST}/{number}" for number in range(pages)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = Home(folder / "data", home_port)
        (folder / "key").write_text(format_key(ObserverKey(NAME, home.desk.key())))
        program = "import sys; from vedette.cli.main import main; sys.exit(main())"
        line = [sys.executable, "-c", program, "observe", "--home", f"http://127.0.0.1:{far}", "--key"]
        line += [str(folder / "key"), "--data", str(folder / "observer"), "--allow-private"]
        observer = subprocess.Popen([*line, "--connect-to", f"{HOST}:80=127.0.0.1:{near}"])
        try:
            _, bodies = fetch_directly(urls, site)
            home.observe(urls, {})
            copies = {url: stored(body) for url, body in bodies.items()}
            changed = range(0, pages, round(1 / CHANGE_SHARE))
            for number in changed:
                versions[number] += 1
            before = [count[0] for count in counts]
            t1_s, _ = fetch_directly(urls, direct)
            home.site = LinkMeter()
            exchanged = home.desk.desk.facts[NAME].home
            wall_s = home.observe(urls, copies)
            after = [count[0] for count in counts]
            exchanges = home.desk.desk.facts[NAME].home
        finally:
            observer.terminate()
            observer.wait()
            home.server.shutdown()
            home.desk.store.close()
            for child in children:
                child.terminate()
    size = sum(map(len, bodies.values())) / pages
    near_link = home.site.fit()
    assert near_link is not None
    far_link = Link(latency_s, 1 / RATE)
    changed_bytes = sum(len(bodies[urls[number]]) for number in changed)
    task = Task(size, home.changes / pages, home.sent / changed_bytes, ERRAND_BYTES / size)
    exchange_s, count = exchanges.seconds - exchanged.seconds, exchanges.count - exchanged.count
    printed_s = compute_remote_s(pages, far_link, near_link, task._replace(agent_share=pages * ERRAND_BYTES / size))
    reported = task._replace(agent_share=(ERRAND_BYTES + REPORT_BYTES) / size)
    reported_s = compute_reported_s(pages, count, far_link, near_link, reported)
    return {
        "latency_ms": 1000 * latency_s,
        "size_kb": size / 1000,
        "changed": home.changes,
        "direct_s": t1_s / pages,
        "eq_41_s": compute_direct_s(1, far_link, size),
        "remote_s": (home.took_s + exchange_s) / pages,
        "eq_42_s": printed_s / pages,
        "eq_42_reports_s": reported_s / pages,
        "remote_wall_s": wall_s / pages,
        "exchanges": count,
        "direct_bytes": (after[0] - before[0]) / pages,
        "remote_bytes": (after[2] - before[2]) / pages,
        "delta_bytes": home.sent / max(home.changes, 1),
        "reports": home.messages,
        "switch_ms": 1000 * find_break_even_latency_s(far_link, far_link, near_link, task),
    }


def main() -> None:
    """Print a table, and as the last line one JSON object."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rows = [compare(pages, LATENCY_S, 0.0)]
    rows += [compare(pages // 4, latency_s, 0.02) for latency_s in (0.005, 0.01, 0.04)]
    for name in rows[0]:
        print(f"{name:16} " + " ".join(f"{row[name]:>12.4g}" for row in rows))
    print(json.dumps({"version": vedette.__version__, "pages": pages, "rows": rows}))


if __name__ == "__main__":
    main()
