"""Does a remote observer keep large, distant pages fresh at the same budget? The real program on a web with regions.

Sites are in the region of home or in another one (``regions``); pages change as Poisson processes in world time, which
runs fast. Home reaches the others through a proxy that delays each byte by the measured latency, one way, and delivers
one window of 64 kB per round trip. An ``--auto`` observer reaches them directly; eq. 41 and 42 decide which hosts it
gets. Both runs have the same ``crawl.budget``. Freshness is the share of time, after a third of the run, in which the
last version fetched is the present one: from the servers' access log and the times of changes, which no one else knows.

    python bench/observers_live.py [MINUTES] [HOSTS]
"""

import asyncio
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

import vedette
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.engine.scheduling.spending import load_all_time
from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.politeness import judge_log
from vedette.lab.worlds.regions import CALL_S, HOME, WINDOW_BYTES
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.lab.worlds.world import Reply, WorldHost, WorldRequest
from vedette.model import Headers
from vedette.policy import rng_for

SPEED, PAGES, BUDGET_SHARE, DAYS = 2_000.0, 20, 0.5, 60
FAR = "sydney"
DAY_S = 86_400.0
HTML: Headers = (("content-type", "text/html; charset=utf-8"),)
SETTINGS = '[crawl]\ndelay = "10s"\naddress_delay = "250ms"\ntimeout = "60s"\nbudget = "{budget}/d"\n'


@dataclass(frozen=True, slots=True)
class RegionTown:
    """Near and far hosts in turns; sizes (median 30 kB) and changes (median 1 in 3 days) are log-normal."""

    name: str
    count: int
    start_s: float = 1_700_000_000.0
    pages: dict[str, tuple[int, tuple[float, ...]]] = field(default_factory=dict)

    def hosts(self) -> tuple[WorldHost, ...]:
        """Return every host in a fixed order."""
        return tuple(WorldHost(f"{'far' if n % 2 else 'near'}{n}.test", f"127.8.0.{n + 1}") for n in range(self.count))

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Return the present version of a page; the home page links to the others."""
        url = f"http://{question.host}{question.target}"
        if url not in self.pages:
            return Reply(404, HTML, b"no such page\n")
        size, changes = self.pages[url]
        version = bisect_right(changes, now_s)
        links = "".join(f'<a href="/{n}">{n}</a> ' for n in range(1, PAGES)) if question.target == "/" else ""
        rng = np.random.default_rng(size)
        words = " ".join(map(str, rng.integers(10**4, 10**6, size // 7)))
        body = (
            f"<title>{url}</title>{links}<p>Version {version} of {url} says {version * 7919 % 9973}.</p><p>{words}</p>"
        )
        return Reply(200, HTML, body.encode())


def create_town(count: int) -> RegionTown:
    """Create the web; a function of the number of its hosts."""
    town, rng = RegionTown(f"region town {count}", count), rng_for(28, f"bench/regions/{count}")
    for host in town.hosts():
        for number in range(PAGES):
            size, rate = int(min(30e3 * rng.lognormal(0.0, 1.2), 2e6)), float(rng.lognormal(0.0, 1.0)) / 3.0
            gaps_d = rng.exponential(1.0 / rate, int(2 * rate * DAYS) + 20)
            changes = tuple((town.start_s + DAY_S * np.cumsum(gaps_d)).tolist())
            town.pages[f"http://{host.name}/{number or ''}"] = size, changes
    return town


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, latency_s: float, rate: float) -> None:
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)

    async def deliver() -> None:
        while True:
            at_s, data = await queue.get()
            await asyncio.sleep(max(at_s - time.monotonic(), 0.0))
            if not data:
                writer.close()
                return
            writer.write(data)

    task, free_s, data = asyncio.create_task(deliver()), time.monotonic(), b"-"
    while data:
        data = await reader.read(16_384)
        free_s = max(free_s, time.monotonic()) + len(data) / rate
        await queue.put((free_s + latency_s, data))
    await task


def run_proxies(addresses: dict[str, str], port: int, latency_s: float, rate: float) -> None:
    """Forward connections to distant hosts until the process is ended."""

    async def serve() -> None:
        for address, target in addresses.items():

            async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str = target) -> None:
                with suppress(OSError):
                    there, back = await asyncio.open_connection(target, port)
                    await asyncio.gather(
                        _pump(reader, back, latency_s, rate),
                        _pump(there, writer, latency_s, rate),
                        return_exceptions=True,
                    )

            await asyncio.start_server(connect, address, port)
        await asyncio.Event().wait()

    asyncio.run(serve())


def run_crawl(folder: Path, minutes: float, count: int, *, has_observer: bool) -> dict[str, float]:
    """Run home, and an observer if wanted, and measure."""
    with start_server("bench.observers_live:create_town", count, speed=SPEED, log_path=folder / "log") as web:
        proxies = {
            address.replace("127.8.", "127.9."): address
            for name, address in web.hosts.items()
            if name.startswith("far")
        }
        call_s = CALL_S[HOME, FAR]
        args = (proxies, web.port, call_s / 2, WINDOW_BYTES / call_s)
        proxy = multiprocessing.get_context("fork").Process(target=run_proxies, args=args, daemon=True)
        proxy.start()
        processes: list[subprocess.Popen[bytes]] = []
        try:
            run_processes(folder, web, processes, minutes, has_observer=has_observer)
        finally:
            for process in reversed(processes):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait()
            proxy.terminate()
    return measure(folder, create_town(count), minutes)


def run_processes(
    folder: Path, web: ServerHandle, processes: list[subprocess.Popen[bytes]], minutes: float, *, has_observer: bool
) -> None:
    """Start home and an observer, let them run, and show who observes what."""
    lines = web.connect_to_lines()
    (folder / "near.txt").write_text("\n".join(lines))
    slow = [line.replace("127.8.", "127.9.") if line.startswith("far") else line for line in lines]
    (folder / "far.txt").write_text("\n".join(slow))
    (folder / "vedette.toml").write_text(SETTINGS.format(budget=round(BUDGET_SHARE * PAGES * len(web.hosts))))
    base, common = [sys.executable, "-m", "vedette"], ["--allow-private", "--speed", str(SPEED)]
    data = ["--data", str(folder / "data"), "--config", str(folder / "vedette.toml")]
    sites = [f"http://{name}/" for name in web.hosts]

    def start(name: str, *words: str) -> None:
        with (folder / f"{name}.txt").open("wb") as out:
            processes.append(subprocess.Popen([*base, *words, *common], stdout=out, stderr=out, start_new_session=True))

    start("home", "up", *sites, "--connect-to", f"@{folder / 'far.txt'}", *data, "--port", "0")
    while (found := re.search(r"127\.0\.0\.1:(\d+)/", (folder / "home.txt").read_text())) is None:
        time.sleep(0.2)  # until it listens
    if has_observer:
        key, home = str(folder / "key"), f"http://127.0.0.1:{found[1]}"
        subprocess.run([*base, "observers", "add", FAR, "--auto", "--write", key, *data], check=True)
        own = ["--connect-to", f"@{folder / 'near.txt'}", "--data", str(folder / "observer")]
        start("observer", "observe", "--home", home, "--key", key, *own)
    time.sleep(60.0 * minutes)  # the run itself
    if has_observer:
        subprocess.run([*base, "observers", "list", *data], check=False)


def measure(folder: Path, town: RegionTown, minutes: float) -> dict[str, float]:
    """Measure freshness by the servers' log, after a third of the run, and what was spent by home's count."""
    with open_state_reader(folder / "data") as view:
        spent = load_all_time(view.store).values()
    header, entries = read_log(folder / "log")
    fetched: dict[str, list[float]] = {}
    for entry in entries:
        if entry.status == 200 and entry.whole:
            fetched.setdefault(entry.url, []).append(entry.start_s)
    began_s, end_s = (header.world_start + share * 60.0 * minutes * SPEED for share in (1 / 3, 1.0))
    fresh, median = {}, float(np.median([size for size, _ in town.pages.values()]))
    for url, (_, changes) in town.pages.items():
        fresh[url] = measure_freshness(fetched.get(url, []), changes, began_s, end_s)
    large = [url for url, (size, _) in town.pages.items() if size > median and "//far" in url]
    looks = {url: sum(began_s < at_s < end_s for at_s in times) for url, times in fetched.items()}
    days = (end_s - began_s) / DAY_S
    return {
        "fresh": float(np.mean(list(fresh.values()))),
        "fresh_large_far": float(np.mean([fresh[url] for url in large])),
        "looks_a_day": sum(looks.get(url, 0) for url in fresh) / len(fresh) / days,
        "of_large_far": sum(looks.get(url, 0) for url in large) / len(large) / days,
        "fetches": sum(one.fetches for one in spent),
        "seconds": sum(one.seconds for one in spent),
        "violations": len(judge_log(entries, header, delay_s=10.0, address_delay_s=0.25).violations),
    }


def measure_freshness(fetched: list[float], changes: tuple[float, ...], begin_s: float, end_s: float) -> float:
    """Measure the share of a time in which the version fetched last was the present one."""
    points = sorted({begin_s, end_s, *(at_s for at_s in (*fetched, *changes) if begin_s < at_s < end_s)})
    fetched = sorted(fetched)
    fresh_s = 0.0
    for left, right in pairwise(points):
        last = bisect_right(fetched, left)
        if last and bisect_right(changes, fetched[last - 1]) == bisect_right(changes, left):
            fresh_s += right - left
    return fresh_s / (end_s - begin_s)


def main() -> None:
    """Print both runs, and as the last line one JSON object."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    rows = {}
    for has_observer in (False, True):
        with tempfile.TemporaryDirectory() as name:
            rows["one observer" if has_observer else "no observer"] = run_crawl(
                Path(name), minutes, count, has_observer=has_observer
            )
    for name in rows["no observer"]:
        print(f"{name:16} " + " ".join(f"{row[name]:>12.4g}" for row in rows.values()))
    print(json.dumps({"version": vedette.__version__, "minutes": minutes, "hosts": count, "rows": rows}))


if __name__ == "__main__":
    main()
