"""How fast is the synthetic web served, and how much of that is the web and how much the server?

One core serves, and another sends requests. The synthetic web and a constant body of the same mean size take turns,
both with their access log on; the table has the medians. The last line is one JSON object.

    python bench/made.py [--pages N] [--seconds S] [--rounds R]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

import pycurl

from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.lab.worlds.world import WorldRequest
from vedette.policy import rng_for

SEED = 1
CONNECTIONS = 32
SAMPLE = 2000
# Faults would measure their delays, not the server.
WORLD = f"made:large:{SEED}:calm"
CORES = sorted(os.sched_getaffinity(0))

LUA = """
local lines = {}
for line in io.lines("%s") do
  local host, path = line:match("(%%S+)\\t(%%S+)")
  lines[#lines + 1] = wrk.format("GET", path, {["Host"] = host, ["User-Agent"] = "bench/1", ["Accept"] = "text/html"})
end
local at = %d
request = function()
  at = at %% #lines + 1
  return lines[at]
end
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local shape = '\\n{"requests":%%d,"seconds":%%f,"errors":%%d,"p50_ms":%%.3f,"p99_ms":%%.3f}\\n'
  local p50_ms, p99_ms = latency:percentile(50) / 1000, latency:percentile(99) / 1000
  io.write(string.format(shape, summary.requests, summary.duration / 1e6, failed, p50_ms, p99_ms))
end
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A request to make."""

    host: str
    target: str


@dataclass(frozen=True, slots=True)
class Load:
    """The results of a load generator; it may not know latencies."""

    requests: int
    seconds: float
    errors: int
    p50_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of one server."""

    load: Load
    cpu_s: float

    @property
    def requests_per_s(self) -> float:
        """Answers by the wall."""
        return self.load.requests / self.load.seconds

    @property
    def cpu_us_per_request(self) -> float:
        """What an answer cost the server."""
        return self.cpu_s / max(1, self.load.requests) * 1e6


def live_pages(world: SyntheticWorld, most: int) -> list[Page]:
    """Live pages of all hosts in a seeded random order."""
    urls = [url for host in world.sites for url in world.live_pages(host, world.start_s)]
    order = rng_for(SEED, "bench/made").permutation(len(urls))[:most]
    parts = (urls[int(index)].removeprefix("http://").partition("/") for index in order)
    return [Page(host, f"/{rest}") for host, _, rest in parts]


def mean_body_bytes(world: SyntheticWorld, pages: Sequence[Page]) -> int:
    """The mean body of the first pages of the list."""
    questions = (WorldRequest(page.host, page.target) for page in pages[:SAMPLE])
    return round(fmean(len(world.reply(question, world.start_s).body) for question in questions))


def ask_with_wrk(web: ServerHandle, pages: Sequence[Page], seconds: float, offset: int, folder: Path) -> Load:
    """Load from wrk, which walks through the list from an offset."""
    listed, script = folder / "pages.tsv", folder / "load.lua"
    if not listed.exists():
        listed.write_text("".join(f"{page.host}\t{page.target}\n" for page in pages))
    script.write_text(LUA % (listed, offset))
    options = ["-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", "-s", str(script)]
    command = ["wrk", *options, f"http://127.0.0.1:{web.port}/"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Load(**json.loads(told.strip().splitlines()[-1]))


def ask_with_curl(web: ServerHandle, pages: Sequence[Page], seconds: float, offset: int) -> Load:
    """Load from our own loop around libcurl, which knows no latencies and may itself be what limits the rate."""
    upcoming = cycle([*pages[offset:], *pages[:offset]])
    multi = pycurl.CurlMulti()
    handles = [_curl() for _ in range(CONNECTIONS)]
    started_s, requests, errors = perf_counter(), 0, 0
    for handle in handles:
        _aim(handle, next(upcoming), web.port)
        multi.add_handle(handle)
    while (passed_s := perf_counter() - started_s) < seconds:
        multi.perform()
        _, done, failed = multi.info_read()
        for handle in [*done, *(found[0] for found in failed)]:
            requests += 1
            errors += handle.getinfo(pycurl.RESPONSE_CODE) != 200
            multi.remove_handle(handle)
            _aim(handle, next(upcoming), web.port)
            multi.add_handle(handle)
        if not done and not failed:
            multi.select(0.1)
    for handle in handles:
        multi.remove_handle(handle)
        handle.close()
    multi.close()
    return Load(requests, passed_s, errors)


def _curl() -> pycurl.Curl:
    handle = pycurl.Curl()
    handle.setopt(pycurl.WRITEFUNCTION, lambda _: None)
    handle.setopt(pycurl.USERAGENT, "bench/1")
    return handle


def _aim(handle: pycurl.Curl, page: Page, port: int) -> None:
    handle.setopt(pycurl.URL, f"http://127.0.0.1:{port}{page.target}")
    handle.setopt(pycurl.HTTPHEADER, [f"Host: {page.host}"])


def cpu_s(pid: int) -> float:
    """The processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    """Two servers on one core, and a load generator on another."""

    def __init__(self, pages: Sequence[Page], seconds: float, folder: Path, load: str) -> None:
        self._pages = pages
        self._seconds = seconds
        self._folder = folder
        self._asked = 0
        self._load = load

    def turn(self, web: ServerHandle) -> Round:
        """Let one server respond for a while; every turn continues in the list where the previous one ended."""
        before_s = cpu_s(web.process.pid)
        offset = self._asked % len(self._pages)
        if self._load == "wrk":
            load = ask_with_wrk(web, self._pages, self._seconds, offset, self._folder)
        else:
            load = ask_with_curl(web, self._pages, self._seconds, offset)
        self._asked += load.requests
        return Round(load, cpu_s(web.process.pid) - before_s)


def pin(process: int, core: int) -> None:
    """Pin a process to one core, if there are two."""
    if len(CORES) > 1:
        os.sched_setaffinity(process, {CORES[core]})


@dataclass(frozen=True, slots=True)
class Result:
    """The measurement, and its tool."""

    made: list[Round]
    constant: list[Round]
    pages: int
    mean_bytes: int
    load: str

    def table(self, options: argparse.Namespace) -> str:
        """For people."""
        cores = "one core serves, another asks" if len(CORES) > 1 else "one core serves and asks"
        return "\n".join(
            [
                f"{WORLD}: {self.pages:,} live pages, {self.mean_bytes:,} bytes on average; {cores}, by {self.load};",
                f"medians of {options.rounds} turns of {options.seconds:g} s, {CONNECTIONS} connections, access log on",
                "",
                f"{'':<22}{'requests/s':>11}{'CPU us/request':>15}{'p50 ms':>9}{'p99 ms':>9}{'not 200':>9}",
                row("synthetic web", self.made),
                row("constant body", self.constant),
                "",
            ]
        )

    def facts(self) -> dict[str, float | str | None]:
        """For machines."""
        return {
            "requests_per_s": round(median(turn.requests_per_s for turn in self.made)),
            "cpu_us_per_request": round(median(turn.cpu_us_per_request for turn in self.made), 1),
            "ceiling_requests_per_s": round(median(turn.requests_per_s for turn in self.constant)),
            "ceiling_cpu_us_per_request": round(median(turn.cpu_us_per_request for turn in self.constant), 1),
            "p50_ms": latency(self.made, "p50_ms"),
            "p99_ms": latency(self.made, "p99_ms"),
            "errors": self.errors,
            "pages": self.pages,
            "mean_bytes": self.mean_bytes,
            "load": self.load,
        }

    @property
    def errors(self) -> int:
        """How many requests were not answered with 200."""
        return sum(turn.load.errors for turn in [*self.made, *self.constant])


def row(name: str, rounds: Sequence[Round]) -> str:
    """The medians of one server."""
    rate = median(turn.requests_per_s for turn in rounds)
    cost_us = median(turn.cpu_us_per_request for turn in rounds)
    errors = sum(turn.load.errors for turn in rounds)
    told = [latency(rounds, "p50_ms"), latency(rounds, "p99_ms")]
    waits = "".join(f"{'-' if value is None else format(value, '.2f'):>9}" for value in told)
    return f"{name:<22}{rate:>11,.0f}{cost_us:>15.1f}{waits}{errors:>9,}"


def latency(rounds: Sequence[Round], which: str) -> float | None:
    """The median of a latency over the rounds, if known."""
    known = [value for turn in rounds if (value := getattr(turn.load, which)) is not None]
    return median(known) if known else None


def measure(options: argparse.Namespace) -> Result:
    """Take turns; the first turn of each server warms up and does not count."""
    world = open_synthetic_world("large", SEED, calm=True)
    pages = live_pages(world, options.pages)
    mean_bytes = mean_body_bytes(world, pages)
    result = Result([], [], len(pages), mean_bytes, "wrk" if shutil.which("wrk") else "pycurl")
    with (
        tempfile.TemporaryDirectory() as name,
        start_server(WORLD, log_path=Path(name) / "made.log") as web,
        start_server(f"constant:{mean_bytes}", log_path=Path(name) / "constant.log") as constant,
    ):
        pin(web.process.pid, 0)
        pin(constant.process.pid, 0)
        pin(0, 1)
        bench = Bench(pages, options.seconds, Path(name), result.load)
        for number in range(options.rounds + 1):
            turns = bench.turn(web), bench.turn(constant)
            if number:
                result.made.append(turns[0])
                result.constant.append(turns[1])
    return result


def main() -> int:
    """Measure, print, and fail if anything was not answered with 200."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000, help="how many distinct live pages are asked for")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long a turn lasts")
    parser.add_argument("--rounds", type=int, default=3, help="how many turns of each are counted")
    options = parser.parse_args()
    result = measure(options)
    print(result.table(options))
    print(json.dumps(result.facts()))
    return 1 if result.errors else 0


if __name__ == "__main__":
    sys.exit(main())
