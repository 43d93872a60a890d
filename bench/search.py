"""How fast are searches while the crawler writes, as a share of tantivy's own speed?

A data folder with pages from the git histories of real web sites (``VEDETTE_HISTORIES`` names the folder of bare
repositories) is built once and stored in ``bench-data``. A copy of it is run as by ``vedette up``: coordinator,
fetcher, indexer and server, with the sites of a synthetic web added, so that pages are fetched and indexed all the
time. The real sites are paused, and every connection that is not to the synthetic web would end at a closed port of
loopback.

wrk sends real queries to the API (``VEDETTE_DATA`` has ``queries/trec-million-query.txt``), each request another one:
first as fast as responses come, then at half that rate, by many connections that pause at random, so that requests are
independent of responses. Latencies are those of the second. For comparison: ``/healthz``, which is the HTTP layer
without a search, and before and after the searches tantivy alone, in this process, over the same index: any word in
title or body, the best ten, without showing them. The last line is one JSON object; the bench fails if a request does.

    VEDETTE_HISTORIES=FOLDER VEDETTE_DATA=FOLDER python bench/search.py [--pages N] [--seconds S] [--hosts N]
"""

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple
from urllib.parse import quote_plus

from vedette.adapters.crawl_store.data_folder import lock_folder, read_state
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.tantivy_index import open_reader
from vedette.adapters.net.ipc import Request
from vedette.config import Config, Rate
from vedette.discover.urls.scope import read_site
from vedette.fetch.connect_to import parse_override
from vedette.fetch.request import build_user_agent
from vedette.index.query.retrieval import Or, Term
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.processes.supervisor import Supervisor, ask_coordinator
from vedette.text import split_words
from vedette.version import __version__
from vedette.web.server import bind

ROOT = Path(__file__).resolve().parent.parent
WORLD = "made:medium"
NOWHERE = "*:*=127.0.0.1:1"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BUSY = 8
# This many per request per second, so that a slow response does not delay other requests.
PAUSING = 2.0
MOST_PAUSING = 64
# The server closes connections that are silent for some seconds more than this.
MOST_PAUSE_MS = 10_000
LOOK_EVERY_S = 0.05
START_S = 60.0
# Slow is no error here: latencies tell it.
PATIENCE = "10s"

LUA = """
local lines = {}
for line in io.lines("%(paths)s") do
  lines[#lines + 1] = wrk.format("GET", line)
end
local at = %(offset)d
request = function()
  at = at %% #lines + 1
  return lines[at]
end
done = function(summary, latency)
  local wrong = summary.errors
  local failed = wrong.connect + wrong.read + wrong.write + wrong.timeout
  local shape = '\\n{"requests":%%d,"seconds":%%f,"errors":%%d,"not_2xx":%%d,"p50_ms":%%.3f,"p99_ms":%%.3f}\\n'
  local p50_ms, p99_ms = latency:percentile(50) / 1000, latency:percentile(99) / 1000
  io.write(string.format(shape, summary.requests, summary.duration / 1e6, failed, wrong.status, p50_ms, p99_ms))
end
"""
# Exponential pauses, so that requests come as if from many independent users.
PAUSES = """
math.randomseed(7)
delay = function()
  return math.min(%(most_ms)d, math.floor(-%(mean_ms)f * math.log(1 - math.random()) + 0.5))
end
"""


class Load(NamedTuple):
    """What wrk saw."""

    requests: int
    seconds: float
    errors: int
    not_2xx: int
    p50_ms: float
    p99_ms: float

    @property
    def per_s(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds


class Turn(NamedTuple):
    """A load, the CPU seconds that each process spent meanwhile, and for how long the server could have, but waited."""

    load: Load
    cpu_s: dict[str, float]
    kept_s: float

    @property
    def server_ms(self) -> float:
        """CPU milliseconds of the servers for each answer."""
        return 1000 * _of_servers(self.cpu_s) / max(1, self.load.requests)


def _of_servers(seconds: dict[str, float]) -> float:
    return sum(spent for name, spent in seconds.items() if name.startswith("server"))


class Alone(NamedTuple):
    """Tantivy without anything around it: queries a second, and milliseconds of each."""

    per_s: float
    p50_ms: float
    p99_ms: float


# --- Runs ---


@dataclass
class Freshness:
    """Seconds from the end of a fetch to the commit after which the page can be found, of one page after the other.

    The server checks for such commits four times a second, so users wait at most that much longer.
    """

    folder: Path
    since_s: float
    waits_s: list[float] = field(default_factory=list)
    _seq: int = 0
    _fetched_s: float = 0.0

    def look(self, now_s: float) -> None:
        """Follow the newest page until the index has it."""
        if not self._seq:
            self._choose()
        elif (Generations(self.folder).min_indexed_seq() or 0) >= self._seq:
            self.waits_s.append(now_s - self._fetched_s)
            self._seq = 0

    def _choose(self) -> None:
        sql = (
            "SELECT seq, fetched_s FROM news JOIN page ON page.id = news.page "
            "WHERE text IS NOT NULL AND fetched_s > ? ORDER BY seq DESC LIMIT 1"
        )
        with read_state(self.folder) as db:
            row = db.execute(sql, (self.since_s,)).fetchone()
        if row is not None:
            self._seq, self._fetched_s = row


@dataclass
class Run:
    """The process tree over a copy of the folder, and its clients."""

    settings: RuntimeSettings
    tree: Supervisor
    scratch: Path
    fresh: Freshness
    asked: int = 0

    @property
    def port(self) -> int:
        """Where the server listens on loopback."""
        assert self.settings.listener is not None
        return int(self.settings.listener.getsockname()[1])

    def pages(self) -> tuple[int, int]:
        """How many pages were fetched since the start, and how many can be found."""
        told = ask_coordinator(self.settings.folder, Request("status"))
        server = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        server.request("GET", "/healthz")
        found = json.load(server.getresponse())["pages"]
        server.close()
        return int(str(told["pages"])), int(found)

    def turn(self, paths: Path, seconds: float, connections: int, mean_ms: float = 0.0) -> Turn:
        """Let wrk send requests for a while, from where the last turn ended; with pauses of this mean if given."""
        script = self.scratch / "load.lua"
        pauses = PAUSES % {"mean_ms": mean_ms, "most_ms": MOST_PAUSE_MS} if mean_ms else ""
        script.write_text(LUA % {"paths": paths, "offset": self.asked} + pauses)
        options = ["-t1", f"-c{connections}", f"-d{seconds:.0f}s", "--timeout", PATIENCE, "-s", str(script)]
        command = ["wrk", *options, f"http://127.0.0.1:{self.port}"]
        before, kept_s = self.cpu_s(), self.kept_s()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                self.tend()
                time.sleep(LOOK_EVERY_S)
            told = process.stdout.read() if process.stdout else ""
        spent = {name: used - before.get(name, 0.0) for name, used in self.cpu_s().items()}
        load = Load(**json.loads(told.strip().splitlines()[-1]))
        self.asked += load.requests
        return Turn(load, spent, self.kept_s() - kept_s)

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds of each process so far."""
        return {name: _cpu_s(pid) for name, pid in self.tree.list_pids().items()}

    def kept_s(self) -> float:
        """Seconds that a server was ready to run and others had the cores."""
        pids = [pid for name, pid in self.tree.list_pids().items() if name.startswith("server")]
        told = [Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1] for pid in pids]
        return sum(map(int, told)) / 1e9 / len(pids)

    def tend(self) -> None:
        """Nothing may die; and see how fresh the index is."""
        if happened := self.tree.restart_dead():
            sys.exit("\n".join(happened))
        self.fresh.look(self.settings.clock.now())

    def wait(self) -> None:
        """Until the server answers, and pages come in."""
        until_s = time.monotonic() + START_S
        while time.monotonic() < until_s:
            self.tend()
            time.sleep(LOOK_EVERY_S)
            if "server" in self.tree.list_pids() and self.fresh.waits_s:
                return
        sys.exit("the crawl did not begin")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


@contextmanager
def running(folder: Path, web: ServerHandle, scratch: Path, hosts: int) -> Iterator[Run]:
    """The tree with a synthetic web to crawl, to its end."""
    with bind("127.0.0.1:0") as listener, lock_folder(folder):
        settings = replace(settings_for(folder, web, hosts), listener=listener)
        tree = Supervisor(settings)
        tree.start()
        try:
            yield Run(settings, tree, scratch, Freshness(folder, settings.clock.now()))
        finally:
            tree.stop()


def settings_for(folder: Path, web: ServerHandle, hosts: int) -> RuntimeSettings:
    """As ``vedette up`` configures them, without rate limits."""
    config = Config()
    names = [name for name in web.hosts if not name.startswith("*.")]
    return RuntimeSettings(
        config=replace(config, serve=replace(config.serve, rate=Rate(0, 1.0))),
        clock=web.clock,
        folder=folder,
        agent=build_user_agent(__version__, ""),
        sites=tuple(read_site(f"http://{name}/") for name in names[:hosts]),
        detours=tuple(parse_override(line) for line in [*web.connect_to_lines(), NOWHERE]),
        allow_private=True,
        forever=True,
    )


# --- Requests ---


def queries_in(data: Path) -> list[str]:
    """The real queries."""
    lines = (data / "queries" / "trec-million-query.txt").read_text("latin-1").splitlines()
    return [line.strip() for line in lines if line.strip()]


def paths_in(scratch: Path, queries: Sequence[str]) -> Path:
    """A file with a request for each."""
    paths = scratch / "paths"
    paths.write_text("".join(f"/api/v1/search?q={quote_plus(query)}&n=10\n" for query in queries))
    return paths


def alone(run: Run, queries: Sequence[str], seconds: float) -> Alone:
    """Tantivy, one query after the other."""
    generation = Generations(run.settings.folder).current()
    assert generation is not None
    reader, taken_ms = open_reader(generation / "tantivy"), []
    started_s = looked_s = perf_counter()
    for query in cycle(queries):
        parts = tuple(Term(field_, word) for word in split_words(query) for field_ in ("title", "body"))
        before_s = perf_counter()
        reader.find(Or(parts), 10)
        now_s = perf_counter()
        taken_ms.append(1000 * (now_s - before_s))
        if now_s - looked_s > 1.0:
            looked_s = now_s
            reader.refresh()
            run.tend()
        if now_s - started_s > seconds:
            break
    return Alone(1000 * len(taken_ms) / sum(taken_ms), median(taken_ms), quantiles(taken_ms, n=100)[98])


# --- Results ---


class Found(NamedTuple):
    """All that was measured."""

    health: Turn
    most: Turn
    half: Turn
    alone: Sequence[Alone]
    pages: Sequence[tuple[int, int]]
    seconds: float
    waits_s: Sequence[float]

    @property
    def failed(self) -> int:
        """How many requests were not answered well."""
        return sum(turn.load.errors + turn.load.not_2xx for turn in (self.health, self.most, self.half))

    def table(self) -> str:
        """For people."""
        head = f"{'':26}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU ms':>9}{'errors':>9}{'not 2xx':>9}"
        rows = [
            _row("search, as fast as it goes", self.most),
            _row("search, half of that", self.half),
            _row("healthz", self.health),
        ]
        rows += [f"{'tantivy alone':26}{each.per_s:9.0f}{each.p50_ms:9.2f}{each.p99_ms:9.2f}" for each in self.alone]
        return "\n".join([head, *rows, "", self._crawl(), self._cost()])

    def facts(self) -> dict[str, float]:
        """For machines."""
        return {
            "qps_max": round(self.most.load.per_s, 1),
            "p50_ms": self.half.load.p50_ms,
            "p99_ms": self.half.load.p99_ms,
            "qps_half": round(self.half.load.per_s, 1),
            "qps_tantivy": round(median(each.per_s for each in self.alone), 1),
            "qps_healthz": round(self.health.load.per_s, 1),
            "cpu_ms": round(self.most.server_ms, 3),
            "fresh_p50_s": round(median(self.waits_s), 2),
            "fresh_max_s": round(max(self.waits_s), 2),
            "pages": self.pages[0][1],
            "failed": self.failed,
        }

    def _crawl(self) -> str:
        (fetched, could), (fetched_later, can) = self.pages[0], self.pages[-1]
        return (
            f"{could} pages could be found at the start and {can} at the end; {fetched_later - fetched} were fetched "
            f"in {self.seconds:.0f} s; from fetch to index {median(self.waits_s):.1f} s, {max(self.waits_s):.1f} s at "
            f"most ({len(self.waits_s)} pages followed)"
        )

    def _cost(self) -> str:
        spent = self.half.cpu_s
        each = ", ".join(f"{name} {used / self.half.load.seconds:.2f}" for name, used in spent.items())
        kept = [turn.kept_s / turn.load.seconds for turn in (self.most, self.half)]
        return (
            f"CPU seconds a second at half the rate: {each}\n"
            f"The server waited for a core {kept[0]:.0%} of the time, and {kept[1]:.0%} at half the rate; on a machine "
            "that does nothing else it hardly does, and only then latencies are its own"
        )


def _row(name: str, turn: Turn) -> str:
    load = turn.load
    waits = f"{load.per_s:9.0f}{load.p50_ms:9.2f}{load.p99_ms:9.2f}"
    return f"{name:26}{waits}{turn.server_ms:9.2f}{load.errors:9}{load.not_2xx:9}"


def half_as_fast(run: Run, paths: Path, seconds: float, most: Turn) -> Turn:
    """A connection sends one request per pause and response; at half the rate, waiting is little."""
    rate = most.load.per_s / 2
    connections = min(MOST_PAUSING, max(BUSY, round(PAUSING * rate)))
    return run.turn(paths, seconds, connections, max(1.0, 1000 * connections / rate - most.server_ms))


def measure(run: Run, queries: Sequence[str], seconds: float) -> Found:
    """One measurement after the other, while the crawl runs."""
    paths, health = paths_in(run.scratch, queries), run.scratch / "health"
    health.write_text("/healthz\n")
    run.wait()
    run.turn(paths, min(5.0, seconds), BUSY)  # warms up, and does not count
    started_s, pages = perf_counter(), [run.pages()]
    healthy = run.turn(health, min(5.0, seconds), BUSY)
    apart = [alone(run, queries, seconds / 4)]
    most = run.turn(paths, seconds, BUSY)
    half = half_as_fast(run, paths, 1.5 * seconds, most)
    apart.append(alone(run, queries, seconds / 4))
    pages.append(run.pages())
    return Found(healthy, most, half, apart, pages, perf_counter() - started_s, run.fresh.waits_s)


def folder_with(pages: int, histories: Path) -> Path:
    """The stored folder, built if needed by a separate process."""
    command = [sys.executable, "-m", "bench.peers.search_folder", str(histories), str(ROOT / "bench-data"), str(pages)]
    told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    return Path(told.strip().splitlines()[-1])


def needed(name: str, what: str) -> Path:
    """A folder that the environment names."""
    if name not in os.environ:
        sys.exit(f"{name} must name a folder {what}")
    return Path(os.environ[name])


def main() -> int:
    """Make or find the folder, run, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=60_000, help="versions of pages; some say the same and fall away")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long it is asked as fast as it goes")
    parser.add_argument(
        "--hosts", type=int, default=50, help="hosts of the synthetic web, each with one request a second"
    )
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk asks the queries, and is not here: apt install wrk, or https://github.com/wg/wrk")
    histories = needed("VEDETTE_HISTORIES", "of bare repositories, such as apache+kafka-site/repo")
    queries = queries_in(needed("VEDETTE_DATA", "with queries/trec-million-query.txt"))
    kept = folder_with(options.pages, histories)
    with TemporaryDirectory(dir=kept.parent, prefix="search-run-") as name, start_server(WORLD) as web:
        folder = Path(shutil.copytree(kept, Path(name) / "data"))
        with running(folder, web, Path(name), options.hosts) as run:
            found = measure(run, queries, options.seconds)
    print(found.table())
    print(json.dumps(found.facts()))
    return 1 if found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
