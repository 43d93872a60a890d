"""Run the soak: ``python -m tests.soak [--days 7] [--speed 600] [--hosts 12] [--seed 1] [--folder DIR]``.

Two thirds of the time everything goes wrong in turns; then the tree is left alone, slopes are measured, everything
that was ever published must be there, and two readers audit the folder: ours (``vedette check``) and one that shares no
code with it (``tests.soak.audit``). The exit code is 1 if anything is wrong; the last line is one JSON object.
"""

import argparse
import json
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

from tests.soak.audit import audit, audit_budget, audit_requests
from tests.soak.faults import MEMORY_BYTES, ROLES, Tree, outage
from tests.soak.load import Load, wait_for
from tests.soak.samples import Samples
from tests.soak.town import SoakTown, open_town, path

from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.politeness import judge_log
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server

DAY_S, HOUR_S = 86_400.0, 3600.0
DELAY_S, ADDRESS_DELAY_S = 300.0, 60.0
DAILY_LIMIT = 2_000
CHAOS_SHARE = 2 / 3
SETTLE_WALL_S = 1800.0
SAMPLE_S = 1.0
# What one day of world time may add once nothing goes wrong any more; the town itself grows by six pages a host.
MOST_PER_DAY = {"memory": 8.0, "descriptors": 2.0, "other": 1.0}
# What goes up and down with merges and checkpoints is bounded instead.
MOST = {"files": 200.0, "write-ahead": 32.0}
SETTINGS = f"""\
[crawl]
delay = "{DELAY_S:g}s"
address_delay = "{ADDRESS_DELAY_S:g}s"
latency_factor = 0
daily_limit = {DAILY_LIMIT}
timeout = "5s"
browser = "none"

[store]
min_free = "1MiB"

[serve]
rate = "0"
sponsored = true
"""


@dataclass(slots=True)
class Soak:
    """One soak: the town, the tree that crawls it, the visitors, and what went wrong."""

    folder: Path
    web: ServerHandle
    speed: float
    rng: Random
    port: int
    tree: Tree
    load: Load
    town: SoakTown
    samples: Samples = field(default_factory=Samples)
    events: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    calm_s: float = 0.0  # world time since which no clock is set any more

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    def rest(self, seconds: float) -> None:
        """Let time pass, and take samples."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self.samples.take(self.tree.roles(), self.data)
            time.sleep(min(SAMPLE_S, left_s))
        if self.tree.process.poll() is not None:
            self.wrong.append(f"the tree ended by itself ({self.tree.process.returncode})")
            self.tree.kill_all()

    def list_faults(self) -> list[tuple[str, Callable[[], None]]]:
        """List every fault, in the order in which they occur."""
        tree = self.tree
        kills: list[tuple[str, Callable[[], None]]] = [(f"kill {role}", partial(tree.kill, role)) for role in ROLES]
        return [
            *kills,
            ("full disk", partial(self._limit, resource.RLIMIT_FSIZE, 8192, 4.0)),
            ("kill all", tree.kill_all),
            ("DNS outage", self._outage),
            ("clock 6 h back", partial(tree.restart, -6 * HOUR_S)),
            ("few descriptors", partial(self._limit, resource.RLIMIT_NOFILE, 12, 3.0, "w0", "server")),
            ("backup and restore", self._back_up),
            ("little memory", partial(self._limit, resource.RLIMIT_AS, MEMORY_BYTES, 3.0, "indexer", "w1")),
            ("clock 2 h ahead", partial(tree.restart, 2 * HOUR_S)),
            ("stopped coordinator", partial(tree.pause, "keeper", 3.0)),
            ("command", self._command),
            ("second tree", self._start_second),
        ]

    def run_chaos(self, wall_s: float) -> None:
        """Inject one fault after another, in an order that differs from round to round."""
        until_s, queue = time.monotonic() + wall_s, list[tuple[str, Callable[[], None]]]()
        while time.monotonic() < until_s:
            if not queue:
                queue = self.list_faults()
                self.rng.shuffle(queue)
            name, strike = queue.pop()
            say(f"{time.monotonic() - self.samples.began_s:6.0f} s  {name}")
            strike()
            self.events[name] += 1
            self.rest(min(self.rng.uniform(1.0, 5.0), max(until_s - time.monotonic(), 0.5)))

    def _limit(self, kind: int, most: int, seconds: float, *roles: str) -> None:
        with self.tree.limit(kind, most, *roles):
            self.rest(seconds)

    def _outage(self) -> None:
        with outage(self.folder / "no-names"):
            self.rest(self.rng.uniform(2.0, 6.0))

    def _vedette(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "vedette", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=self.folder)

    def _command(self) -> None:
        site = f"http://{self.rng.choice(list(self.web.hosts))}:{self.web.port}/"
        done = self._vedette("sites", "set", site, f"delay={self.rng.randrange(300, 400)}s", "--data", "data")
        self.events["commands acknowledged"] += done.returncode == 0
        if done.returncode != 0:
            say(f"          {' '.join(done.stderr.split())[:200]}")
        if "Traceback" in done.stderr:
            self.wrong.append(f"a command ended with a traceback: {done.stderr[-300:]}")

    def _back_up(self) -> None:
        """Back up while everything runs, restore, and audit the restored folder."""
        copy, restored = self.folder / "backup", self.folder / "restored"
        for place in (copy, restored):
            shutil.rmtree(place, ignore_errors=True)
        done = self._vedette("backup", "backup", "--data", "data")
        if done.returncode == 0:
            done = self._vedette("restore", "backup", "--data", "restored")
        if done.returncode != 0:
            self.wrong.append(f"backup and restore: {done.stdout}{done.stderr}"[:400])
            return
        _, wrong = audit(restored)
        self.wrong += [f"restored: {words}" for words in wrong]

    def _start_second(self) -> None:
        wait_for(self.port, 300.0)  # the first may just be starting
        done = self._vedette("up", "--data", "data", "--listen", "127.0.0.1:0", "--quiet")
        if done.returncode == 0 or "in use" not in done.stderr:
            self.wrong.append(f"a second tree was not refused: {done.stderr[-300:]}")

    def settle(self) -> float:
        """Wait until every existing page is fetched; return how long that took, in wall seconds."""
        last = self.town.count_pages(self.web.clock.now())
        wanted = {f"http://{host}:{self.web.port}{path(number)}" for host in self.web.hosts for number in range(last)}
        began_s, missing = time.monotonic(), wanted
        while missing and time.monotonic() - began_s < SETTLE_WALL_S:
            self.rest(2.0)
            missing = wanted - self._list_fetched()
        self.events["pages expected"] = len(wanted)
        self.wrong += [f"{url} was never fetched" for url in sorted(missing)[:5]]
        return time.monotonic() - began_s

    def _list_fetched(self) -> set[str]:
        with closing(sqlite3.connect(f"file:{self.data / 'state.db'}?mode=ro", uri=True, timeout=60)) as db:
            return {url for (url,) in db.execute("SELECT url FROM page JOIN url USING (id) WHERE status = 200")}

    def check_clicks(self) -> None:
        """Check that each acknowledged click is recorded, and none that was never sent."""
        with closing(sqlite3.connect(self.data / "record.db")) as db:
            kept = set(db.execute("SELECT slate, page FROM event WHERE kind = 'click'"))
        lost, invented = self.load.acknowledged - kept, kept - self.load.sent
        if lost or invented:
            self.wrong.append(f"{len(lost)} acknowledged clicks are lost, {len(invented)} were never sent")

    def check_politeness(self) -> int:
        """Judge the servers' own log twice: by the lab's judge, and by the audit."""
        self.web.stop()
        log = self.folder / "access.log"
        header, entries = read_log(log)
        verdict = judge_log(entries, header, delay_s=DELAY_S, address_delay_s=ADDRESS_DELAY_S)
        self.wrong += [f"impolite: {each.detail}" for each in verdict.violations][:10]
        gaps = {"delay_s": DELAY_S, "address_delay_s": ADDRESS_DELAY_S, "rounding_s": 0.01 * self.speed}
        gaps["robots_age_s"] = DAY_S + self.speed  # a task is sent up to a second of wall time after it was chosen
        requests, wrong = audit_requests(log, **gaps)
        wrong += audit_budget(self.data, log, limit=DAILY_LIMIT, shift_s=self.tree.shift_s, since_s=self.calm_s)
        self.wrong += [f"impolite: {words}" for words in wrong][:10]
        return requests


def build_soak(folder: Path, web: ServerHandle, speed: float, seed: int, town: SoakTown) -> Soak:
    """Build a soak over a served town, and start its tree."""
    (folder / "vedette.toml").write_text(SETTINGS)
    (folder / "hosts.json").write_text(json.dumps(web.hosts))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    clock, environment = web.clock, {**os.environ, "PYTHONUNBUFFERED": "1"}

    def start(shift_s: float, *starts: str) -> subprocess.Popen[bytes]:
        shifted = replace(clock, ahead_s=clock.ahead_s + clock.to_wall_s(shift_s))
        command = [sys.executable, "-m", "tests.soak.tree", str(folder), str(shifted), str(port), *starts]
        with (folder / "output.txt").open("ab") as output:
            return subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True, env=environment, umask=0o077
            )

    starts = [f"http://{name}:{web.port}/" for name in web.hosts]
    tree = Tree(start, start(0.0, *starts))
    rng, visitors = Random(seed), Random(seed + 1)  # noqa: S311 - for repeats
    return Soak(folder, web, speed, rng, port, tree, Load(port, visitors), town)


def run_soak(soak: Soak, days: float) -> dict[str, object]:
    """Run a soak from start to report."""
    wall_s = days * DAY_S / soak.speed
    if not wait_for(soak.port, 300.0):
        sys.exit(f"the server did not start; see {soak.folder / 'output.txt'}")
    soak.load.start()
    soak.run_chaos(wall_s * CHAOS_SHARE)
    soak.rest(5.0)
    soak.calm_s = soak.web.clock.now()
    calm_s = time.monotonic() - soak.samples.began_s
    soak.rest(wall_s * (1 - CHAOS_SHARE))
    settled_s = soak.settle()
    soak.load.stop()
    soak.wrong += soak.load.wrong
    ended_s = time.monotonic() - soak.samples.began_s
    # Processes that were started last fill their caches first: the second half counts.
    slopes = soak.samples.measure((calm_s + ended_s) / 2, DAY_S / soak.speed)
    # Of less than a day the slopes are printed, but mean nothing.
    is_long = (ended_s - calm_s) / 2 > DAY_S / soak.speed
    soak.rest(5.0)
    if soak.tree.stop() != 0:
        soak.wrong.append("the tree did not stop cleanly")
    return report(soak, slopes, settled_s, is_long=is_long)


def report(
    soak: Soak, slopes: dict[str, tuple[float, float, float]], settled_s: float, *, is_long: bool
) -> dict[str, object]:
    """Audit a soak's data and print the report."""
    requests = soak.check_politeness()
    soak.check_clicks()
    counts, wrong = audit(soak.data)
    soak.wrong += wrong
    checked = soak._vedette("check", "--data", "data")
    if checked.returncode != 0:
        soak.wrong.append(f"vedette check: {checked.stdout}{checked.stderr}"[:400])
    if is_long:
        soak.wrong += [f"too many: {name}" for name, (_, *numbers) in slopes.items() if _is_too_much(name, *numbers)]
    output = (soak.folder / "output.txt").read_text(errors="replace")
    say(f"\n{'number':<34}{'first':>10}{'last':>10}{'a day':>10}")
    for name, (first, last, slope) in sorted(slopes.items()):
        say(f"{name:<34}{first:>10.1f}{last:>10.1f}{slope:>+10.2f}")
    say(f"\nfaults    {dict(soak.events)}\nload      {dict(soak.load.counts)}\nfolder    {counts}")
    say(f"requests  {requests}, clicks acknowledged {len(soak.load.acknowledged)}, settled in {settled_s:.0f} s")
    say("\n".join(["wrong:", *soak.wrong] if soak.wrong else ["Nothing is wrong."]))
    return {
        "events": dict(soak.events),
        "load": dict(soak.load.counts),
        "folder": counts,
        "requests": requests,
        "clicks": len(soak.load.acknowledged),
        "restarts": output.count("; restarting"),
        "tracebacks": output.count("Traceback"),
        "slopes": {name: round(slope, 3) for name, (_, _, slope) in slopes.items()},
        "wrong": soak.wrong,
    }


def _is_too_much(name: str, last: float, slope: float) -> bool:
    kind = name.partition(" ")[0]
    return last > MOST[kind] if kind in MOST else slope > MOST_PER_DAY[kind]


def say(words: str) -> None:
    """Print a line immediately."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the soak that the arguments describe."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--speed", type=float, default=600.0)
    parser.add_argument("--hosts", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="vedette-soak-"))
    folder.mkdir(exist_ok=True)
    log = folder / "access.log"
    number = max(round(options.days * 24), 1) * 1000 + options.hosts
    with start_server("tests.soak.town:open_town", number, speed=options.speed, log_path=log) as web:
        soak = build_soak(folder, web, options.speed, options.seed, open_town(number))
        try:
            found = run_soak(soak, options.days)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(soak.tree.process.pid, 9)
    say(json.dumps({"days": options.days, "speed": options.speed, "hosts": options.hosts, **found}))
    return int(bool(soak.wrong))


if __name__ == "__main__":
    sys.exit(main())
