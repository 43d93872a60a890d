"""Remote observers as processes: either side is killed at random, nothing is lost, and crawling stays polite."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
from tests.tree_runs import PROVE, Run, children, kill_all, open_run, patiently
from tests.tree_worlds import kill_town
from tests.wire_server import Question, Said, WireServer, whole

from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.observers.hub_store import read_contacts
from vedette.errors import StoreError
from vedette.policy import rng_for
from vedette.runtime.observers.facts import parse_facts

HOSTS = int(os.environ.get("OBSERVED_HOSTS", "100" if PROVE else "6"))
KILLS = 30 if PROVE or HOSTS > 6 else 4
SPEED = 300.0
NAMES = ("tokyo", "lima")
MAX_RSS_KB = 60_000


class Scene:
    """A tree at home with a server, and observers that report to it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.options = ["--connect-to", f"@{run.folder / 'hosts.txt'}", "--allow-private", "--speed", str(run.speed)]
        self.data = ["--data", str(run.data), "--config", str(run.folder / "vedette.toml")]
        self.port = 0
        self.home: subprocess.Popen[bytes] | None = None
        self.observers: dict[str, subprocess.Popen[bytes]] = {}

    def command(self, *words: str) -> str:
        """Run a command on the data folder."""
        line = [sys.executable, "-m", "vedette", *words, *self.data]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    def start_home(self) -> None:
        """Start the tree at home; it keeps its port."""
        sites = [f"http://{name}/" for name in self.run.web.hosts]
        line = [sys.executable, "-m", "vedette", "up", *sites, *self.options, *self.data, "--port", str(self.port)]
        said = self.run.folder / "home.txt"
        with said.open("ab") as out:
            self.home = subprocess.Popen(line, stdout=out, stderr=out, start_new_session=True)
        patiently(lambda: b"Search  http" in said.read_bytes())
        found = re.search(rb"127\.0\.0\.1:(\d+)", said.read_bytes())
        assert found is not None
        self.port = int(found[1])

    def start_observer(self, name: str) -> None:
        """Start an observer, or continue with its folder."""
        # Not ``-m vedette``, for which tests fork a process that has everything imported: its memory is measured.
        program = "import sys; from vedette.cli.main import main; sys.exit(main())"
        line = [sys.executable, "-c", program, "observe", "--home", f"http://127.0.0.1:{self.port}"]
        line += ["--key", str(self.run.folder / name), "--data", str(self.run.folder / f"{name}-data"), *self.options]
        with (self.run.folder / f"{name}.txt").open("ab") as out:
            self.observers[name] = subprocess.Popen(line, stdout=out, stderr=out)

    def kill(self, victim: str) -> None:
        """Kill a process, and restart it unless the supervisor does."""
        assert self.home is not None
        if victim == "home":
            kill_all(self.home)
            self.start_home()
        elif victim in NAMES:
            self.observers[victim].kill()
            self.observers[victim].wait()
            self.start_observer(victim)
        else:
            with suppress(KeyError, ProcessLookupError):
                os.kill(children(self.home.pid)[f"vedette {victim}"], signal.SIGKILL)

    def stop(self) -> None:
        """Stop everything."""
        for process in self.observers.values():
            process.terminate()
            process.wait()
        if self.home is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.home.pid, signal.SIGTERM)
            self.home.wait()

    def fetched(self) -> set[str]:
        """Return the successfully fetched pages at home."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.run.data / "state.db", timeout=5)) as db:
            rows = db.execute("SELECT url FROM page JOIN url USING (id) WHERE status = 200")
            return {url for (url,) in rows}
        return set()


def kill_at_random(scene: Scene, wanted: set[str], kills: int, rng: np.random.Generator) -> Counter[str]:
    """Kill something repeatedly while pages are fetched; return what was killed how often."""
    victims = ("observers", "tokyo", "keeper", "lima", "home", "server")
    done: Counter[str] = Counter()
    for number in range(kills):
        share = (number + rng.uniform(0.3, 1.0)) / (kills + 1)
        patiently(lambda share=share: len(scene.fetched() & wanted) >= share * len(wanted))  # type: ignore[misc]  # bound
        victim = victims[number % len(victims)]
        scene.kill(victim)
        done[victim] += 1
    return done


def test_nothing_is_lost_or_asked_too_often_whatever_is_killed(tmp_path: Path) -> None:
    """Two observers fetch all hosts, while hub, observers, coordinator and all of home are killed."""
    with open_run("kill_town", HOSTS, tmp_path, speed=SPEED) as run:
        scene = Scene(run)
        names = list(run.web.hosts)
        wanted = set(kill_town(HOSTS).urls())
        addresses = sorted({each.address for each in kill_town(HOSTS).manners})
        groups = [
            [each.name for each in kill_town(HOSTS).manners if addresses.index(each.address) % len(NAMES) == number]
            for number in range(len(NAMES))
        ]
        first = [sys.executable, "-m", "vedette", "crawl", f"http://{names[0]}/", "--pages", "1"]
        subprocess.run([*first, *scene.options, *scene.data], check=True, capture_output=True)
        for number, name in enumerate(NAMES):
            scene.command("observers", "add", name, "--write", str(tmp_path / name))
            scene.command("observers", "assign", name, *groups[number])
        began_s = time.monotonic()
        try:
            scene.start_home()
            for name in NAMES:
                scene.start_observer(name)
            killed = kill_at_random(scene, wanted, KILLS, rng_for(28, "observers/kills"))
            patiently(lambda: wanted <= scene.fetched())
            told = scene.command("observers", "list")
            sizes = [read_rss_kb(process.pid) for process in scene.observers.values()]
        finally:
            scene.stop()
        took_s = time.monotonic() - began_s
        verdict = run.verdict()
        asked = Counter(entry.url for entry in run.entries() if entry.url in wanted)
        again = sum(count - 1 for url, count in asked.items() if not url.endswith(".test/"))
        print(f"{len(wanted)} pages in {took_s:.0f} s, killed {dict(killed)}, {again} repeated, RSS {sizes} kB")  # noqa: T201 - shown with -s
    assert verdict.violations == ()
    assert all(name in told for name in NAMES)
    assert max(sizes) < MAX_RSS_KB
    # What was in flight when an observer was killed must be requested again: at most one request for each of its hosts.
    assert again <= (killed["tokyo"] + killed["lima"]) * (HOSTS + 1) // 2
    assert all(asked[url] >= 1 for url in wanted)


def read_rss_kb(pid: int) -> int:
    """Return the memory use of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


def test_a_page_comes_home_whole_then_as_a_difference_then_as_a_digest(tmp_path: Path) -> None:
    """Home's archive has each version byte for byte, and the program says which observer fetched it."""
    words = " ".join(f"word{number * 7919 % 3001}" for number in range(3_000))
    body = [f"<title>Far</title><p>{words}".encode()]

    def answer(question: Question) -> Said:
        if question.target == "/robots.txt":
            return whole(b"", status="404 Not Found")
        return whole(body[0], "Content-Type: text/html") if question.target == "/" else whole(b"", status="404 Nothing")

    data, key = tmp_path / "data", tmp_path / "key"
    folder = ["--data", str(data)]
    with WireServer(answer) as site:
        url = f"http://{site.address}:{site.port}/"
        base = [sys.executable, "-m", "vedette"]
        (tmp_path / "vedette.toml").write_text('[crawl]\ndelay = "50ms"\naddress_delay = "10ms"\n')
        config = ["--config", str(tmp_path / "vedette.toml")]
        subprocess.run([*base, "sites", "add", url, "--allow-private", *folder], check=True, capture_output=True)
        subprocess.run([*base, "observers", "add", "lima", "--write", str(key), *folder], check=True)
        subprocess.run([*base, "observers", "assign", "lima", url, *folder], check=True)
        said = tmp_path / "home.txt"
        with said.open("wb") as out:
            home = subprocess.Popen([*base, "up", "--port", "0", *config, *folder], stdout=out, stderr=out)
        try:
            patiently(lambda: b"Search  http" in said.read_bytes())
            port = said.read_text().partition("127.0.0.1:")[2].partition("/")[0]
            line = [*base, "observe", "--home", f"http://127.0.0.1:{port}", "--key", str(key), "--allow-private"]
            with (tmp_path / "observer.txt").open("wb") as out:
                observer = subprocess.Popen([*line, "--data", str(tmp_path / "observer")], stdout=out, stderr=out)
            for version in (b"word7 ", b"another ", b"another ", b"a third "):
                body[0] = body[0].replace(b"word7 ", version).replace(b"another ", version)
                subprocess.run([*base, "fetch", url, *folder], check=True, capture_output=True)
                patiently(lambda: read_page(data, url) == body[0])
            explained = subprocess.run(
                [*base, "explain", url, *folder], capture_output=True, text=True, check=True
            ).stdout
        finally:
            observer.terminate()
            observer.wait()
            home.send_signal(signal.SIGTERM)
            home.wait()
    assert "lima fetches from this host: assigned manually" in explained
    row = read_contacts(data)["lima"]
    changes = parse_facts(row.facts).changes[site.address]
    assert changes.looks > changes.changes >= 1  # as of the last exchange but one
    assert changes.compression < 0.05


def read_page(data: Path, url: str) -> bytes:
    """Return the archived body of a page, or an empty one."""
    with suppress(StoreError, sqlite3.Error), open_state_reader(data) as reader:
        found = reader.find_url(url)
        page = reader.store.get_page(found.id) if found else None
        return read_answer(data / "warc", page.place).payload if page and page.place else b""
    return b""
