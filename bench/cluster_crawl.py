"""What does a crawled page cost in CPU time with one, two and four nodes?

The nodes crawl the web of ``bench/crawl.py`` with four shards each time, and PostgreSQL runs beside them. The first row
is one node with a single shard, so that the second shows what shards cost, and the others what nodes add. CPU time is
that of all processes of the nodes, from their start until every page was fetched and the nodes have stopped; PostgreSQL
and the server are not counted. The parts are read just before the nodes stop.

    python bench/cluster_crawl.py [--pages N] [--only ROW ...]
"""

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.crawl import DISTRICT_PAGES, SETTINGS, TICKS_PER_S, Web, agree, served
from tests.postgres_server import run_postgres

ROWS = ((1, 1), (1, 4), (2, 4), (4, 4))
LOOK_EVERY_S = 0.5
LONGEST_S = 1800.0


class Cost(NamedTuple):
    """CPU ms a page, as a whole and by kind of process, and requests for a page."""

    page_ms: float
    parts_ms: dict[str, float]
    requests: float


def session_cpu_s(leaders: list[int]) -> dict[str, float]:
    """CPU seconds so far of all processes of these sessions, by kind."""
    spent: dict[str, float] = defaultdict(float)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text(encoding="utf-8").partition("(")[2].rpartition(")")
            fields = rest.split()
            if int(fields[3]) in leaders:
                kind = name.removeprefix("vedette ").rstrip("0123456789") if "vedette" in name else "node"
                spent[kind] += sum(map(int, fields[11:15])) / TICKS_PER_S
    return dict(sorted(spent.items(), key=lambda pair: -pair[1]))


def count_pages(data: Path) -> int:
    """How many pages the shards have."""
    found = 0
    for state in data.glob("*/shard-*/state.db"):
        with closing(sqlite3.connect(state, timeout=30)) as db, suppress(sqlite3.OperationalError):
            found += int(db.execute("SELECT count(*) FROM page WHERE status = 200").fetchone()[0])
    return found


def crawl(web: Web, dsn: str, folder: Path, nodes: int, shards: int, pages: int) -> Cost:
    """Crawl with some nodes, and return what it cost."""
    (folder / "vedette.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "vedette", "cluster"]
    for step in (("init", "--shards", str(shards)), ("add", *web.starts(pages))):
        subprocess.run([*command, *step, "--postgres", dsn], stdout=subprocess.DEVNULL, check=True)
    web.counts()
    options = ["--allow-private", "--postgres", dsn, "--shards", str(shards // nodes)]
    options += ["--config", str(folder / "vedette.toml")]
    running = [
        subprocess.Popen(
            [*command, "join", *options, "--name", str(number), "--data", str(folder / str(number))],
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        for number in range(nodes)
    ]
    try:
        until_s = time.monotonic() + LONGEST_S
        while count_pages(folder) < pages:
            agree("a crawl in reasonable time", time.monotonic() < until_s, True)
            time.sleep(LOOK_EVERY_S)
        parts = session_cpu_s([node.pid for node in running])
        for node in running:
            node.send_signal(signal.SIGINT)
        cpu_s = 0.0
        for node in running:
            _, _, used = os.wait4(node.pid, 0)
            node.returncode = 0
            cpu_s += used.ru_utime + used.ru_stime
    finally:
        for node in running:
            if node.poll() is None:
                os.killpg(node.pid, signal.SIGKILL)
    counts = web.counts()
    agree("pages by the server's count", counts["pages"], pages)
    parts_ms = {kind: 1000 * spent / pages for kind, spent in parts.items()}
    return Cost(1000 * cpu_s / pages, parts_ms, counts["page_requests"] / pages)


def main() -> None:
    """Crawl with each number of nodes; print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2 * DISTRICT_PAGES, help=f"a multiple of {DISTRICT_PAGES}")
    parser.add_argument("--only", type=int, nargs="+", default=range(len(ROWS)), metavar="ROW", help="0 to 3")
    arguments = parser.parse_args()
    costs: dict[str, Cost] = {}
    print(f"{'nodes':>5}{'shards':>8}{'CPU ms a page':>15}{'requests a page':>17}  by process")
    with run_postgres() as postgres, served(arguments.pages) as web:
        for row in arguments.only:
            nodes, shards = ROWS[row]
            with TemporaryDirectory() as scratch:
                cost = crawl(web, postgres.create_database(), Path(scratch), nodes, shards, arguments.pages)
            costs[f"{nodes} of {shards}"] = cost
            parts = ", ".join(f"{kind} {spent:.1f}" for kind, spent in cost.parts_ms.items())
            print(f"{nodes:5}{shards:8}{cost.page_ms:15.1f}{cost.requests:17.2f}  {parts}", flush=True)
    print(json.dumps({name: cost._asdict() for name, cost in costs.items()}))


if __name__ == "__main__":
    main()
