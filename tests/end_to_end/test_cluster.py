"""Two nodes crawl one web with links between shards and shared addresses; when one is killed, the other takes over."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs
from tests.tree_runs import PATIENCE_S, PROVE, Run, open_run, patiently
from tests.tree_worlds import ring_town

from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.directory import list_machines
from vedette.adapters.registry.registry import ShardStatus, list_shards
from vedette.runtime.cluster.operator import ClusterOperator
from vedette.web.commands.commands import AddRules, Rule

HOSTS = 40 if PROVE else 12
SHARDS = 4 if PROVE else 2
LEASE_S = 10.0
SPEED = 20.0

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)


def cluster(dsn: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``vedette cluster`` to its end."""
    command = [sys.executable, "-m", "vedette", "cluster", arguments[0], "--postgres", dsn, *arguments[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@dataclass(slots=True)
class Cluster:
    """A cluster over a served world, with nodes as separate process trees and one shared folder."""

    run: Run
    dsn: str
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def join(self, name: str, *more: str) -> None:
        """Start a node."""
        command = [sys.executable, "-m", "vedette", "cluster", "join", "--postgres", self.dsn, "--name", name, *more]
        command += ["--connect-to", f"@{self.run.folder / 'hosts.txt'}", "--allow-private", "--speed", str(SPEED)]
        command += ["--config", str(self.run.folder / "vedette.toml"), "--data", str(self.run.data), "--json"]
        with (self.run.folder / "messages.txt").open("ab") as said:
            self.nodes[name] = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)

    def kill(self, name: str) -> None:
        """Kill a node and its processes at once, as a power failure would."""
        node = self.nodes.pop(name)
        os.killpg(node.pid, signal.SIGKILL)
        node.wait()

    def stop(self) -> None:
        """Stop all nodes as Ctrl-C does."""
        for node in self.nodes.values():
            node.send_signal(signal.SIGINT)
        assert [node.wait(PATIENCE_S) for node in self.nodes.values()] == [0] * len(self.nodes)
        self.nodes.clear()

    def shards(self) -> list[ShardStatus]:
        """Return the status of each shard."""
        with connect(self.dsn) as connection:
            return list_shards(connection)

    def owners(self) -> list[str]:
        """Return the owner of each shard."""
        return [shard.owner for shard in self.shards()]

    def ask(self, name: str, target: str) -> Any:
        """Send a request to a node's gateway once it listens; return parsed JSON."""
        address: list[str] = []

        def is_served() -> bool:
            with connect(self.dsn) as connection:
                address[:] = [one.gateway for one in list_machines(connection) if one.name == name]
            with suppress(OSError), socket.create_connection(parse_address(address[0]), 5):
                return True
            return False

        patiently(is_served)
        with urlopen(f"http://{address[0]}{target}", timeout=60) as answer:
            return json.load(answer)

    def first_result(self, name: str, query: str) -> str:
        """Return the URL of the first result of a search on a node, or an empty string."""
        found = self.ask(name, f"/api/v1/search?{urlencode({'q': query})}")
        return "" if not found["results"] else str(found["results"][0]["url"])

    def count_rules(self) -> list[int]:
        """Return the number of search rules in each shard."""
        counts = []
        for state in sorted(self.run.data.glob("shard-*/state.db")):
            with closing(sqlite3.connect(state)) as db:
                counts.append(len(CrawlStore(db).list_search_rules()))
        return counts

    def pages(self) -> Counter[str]:
        """Count the shards that have each page."""
        found: Counter[str] = Counter()
        for state in self.run.data.glob("shard-*/state.db"):
            with closing(sqlite3.connect(state)) as db, suppress(sqlite3.OperationalError):
                found.update(url for url, page in CrawlStore(db).iter_pages() if page.status == 200)
        return found

    def messages(self) -> str:
        """Return the log of all nodes."""
        return self.run.messages()


@contextmanager
def open_cluster(postgres: Postgres, folder: Path) -> Iterator[Cluster]:
    """Create a cluster with the hosts of the ring as its sites; no node is running yet."""
    with open_run("ring_town", HOSTS, folder, speed=SPEED, delay_s=1.0, timeout_s=10.0, workers=1) as run:
        dsn = postgres.create_database()
        assert cluster(dsn, "init", "--shards", str(SHARDS), "--lease", str(LEASE_S)).returncode == 0
        assert cluster(dsn, "add", *(f"http://{name}/" for name in run.web.hosts)).returncode == 0
        open_ = Cluster(run, dsn)
        try:
            yield open_
        finally:
            for name in list(open_.nodes):
                open_.kill(name)


def test_another_node_takes_over_and_no_link_is_lost(postgres: Postgres, tmp_path: Path) -> None:
    """Every page is found through other shards' links, each has one owner, and the servers saw no violations."""
    with open_cluster(postgres, tmp_path) as both:
        half = SHARDS // 2
        both.join("a", "--shards", str(half), "--port", "0")
        patiently(lambda: both.owners().count("a") == half)
        both.join("b", "--port", "0")
        patiently(lambda: both.owners().count("b") == SHARDS - half)
        wanted = ring_town(HOSTS).urls()
        patiently(lambda: both.pages().total() > len(wanted) // 3)
        patiently(lambda: both.ask("a", "/healthz")["behind"] == "" and both.ask("a", "/healthz")["pages"] > 0)
        both.kill("a")
        killed_s = time.monotonic()
        patiently(lambda: both.owners() == ["b"] * SHARDS)
        taken_over_s = time.monotonic() - killed_s
        patiently(lambda: set(wanted) <= both.pages().keys())
        patiently(lambda: both.ask("b", "/healthz")["pages"] == len(wanted))
        some = [url for url in wanted if "/p/" in url][:: len(wanted) // 8]
        # Each shard has sent the others how important its pages are.
        patiently(lambda: len(list(both.run.data.glob("shard-*/rank/in-*"))) == SHARDS * (SHARDS - 1))
        assert [both.first_result("b", f"site:{url.removeprefix('http://')}") for url in some] == some
        ClusterOperator(tmp_path, both.dsn).run_command(AddRules((Rule("block", "", "blocked.test"),)), "a test")
        assert both.count_rules() == [1] * SHARDS
        epochs = [shard.epoch for shard in both.shards()]
        both.stop()
        assert sorted(epochs) == [1] * (SHARDS - half) + [2] * half
        assert both.owners() == [""] * SHARDS
        pages = both.pages()
        assert [url for url in wanted if pages[url] != 1] == []
        assert [each.detail for each in both.run.verdict().violations] == []
        asked = Counter(entry.url for entry in both.run.entries() if entry.target != "/robots.txt")
        # The figures of docs/results/cluster.md, shown with pytest -s.
        print(f"claimed {taken_over_s:.1f} s after the kill; {asked.total()} requests for {len(asked)} URLs")  # noqa: T201 - see above


def test_a_node_without_a_lease_sends_nothing(postgres: Postgres, tmp_path: Path) -> None:
    """A hanging node, and one without PostgreSQL, stop by their own clock; afterwards, the crawl continues."""
    with open_cluster(postgres, tmp_path) as one:
        one.join("a")
        patiently(lambda: one.pages().total() > 20)
        (node,) = one.nodes.values()
        node.send_signal(signal.SIGSTOP)
        patiently(lambda: one.owners() == [""] * SHARDS)
        silent_s = one.run.web.clock.now()
        time.sleep(1.0)  # for requests that must not be sent
        resumed_s = one.run.web.clock.now()
        node.send_signal(signal.SIGCONT)
        patiently(lambda: {shard.epoch for shard in one.shards()} == {2})
        patiently(lambda: "a" in one.owners())
        postgres.stop()
        patiently(lambda: "shards pause until it responds" in one.messages())
        patiently(lambda: trees(node.pid) == 0)
        stopped_s = one.run.web.clock.now()
        time.sleep(1.0)  # for requests that must not be sent
        postgres.start()
        started_s = one.run.web.clock.now()
        patiently(lambda: set(ring_town(HOSTS).urls()) <= one.pages().keys())
        one.stop()
        verdict = one.run.verdict()
        times = [entry.start_s for entry in one.run.entries()]
        assert [at_s for at_s in times if silent_s < at_s < resumed_s or stopped_s < at_s < started_s] == []
        assert [each.detail for each in verdict.violations] == []


def parse_address(address: str) -> tuple[str, int]:
    """Parse host and port of an address; nothing listens at an empty one."""
    host, _, port = address.rpartition(":")
    return host or "127.0.0.1", int(port or 9)


def trees(pid: int) -> int:
    """Count the running processes that a node has started."""
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_what_does_not_fit_is_refused_before_anything_starts(postgres: Postgres, tmp_path: Path) -> None:
    """Each wrong start gets one line that says what to do, and creates no folder."""
    dsn, other = postgres.create_database(), postgres.create_database()
    data = ("--data", str(tmp_path / "data"))

    def refused(run_on: str, *arguments: str) -> str:
        done = cluster(run_on, *arguments)
        assert done.returncode in {1, 2}
        assert done.stderr.count("\n") == 1
        return done.stderr

    assert "run vedette cluster init first" in refused(dsn, "join", *data)
    assert cluster(dsn, "init", "--shards", "2").returncode == 0
    assert cluster(other, "init", "--shards", "2").returncode == 0
    assert "already has a cluster" in refused(dsn, "init")
    assert "is not a number of shards" in refused(other, "init", "--shards", "5000")
    assert not (tmp_path / "data").exists()
    folder = tmp_path / "data" / "shard-000"
    folder.mkdir(parents=True)
    (folder / "shard").write_text(json.dumps({"cluster": "another", "shard": 0, "name": "x"}))
    assert "belongs to cluster another" in refused(dsn, "join", *data)
    alone = [sys.executable, "-m", "vedette", "up", "--data", str(folder), "--listen", "", "http://a.test/"]
    done = subprocess.run(alone, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, "is a shard of a cluster" in done.stderr) == (1, True)
