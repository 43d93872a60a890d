"""A cluster of real nodes over a served world, each with its own folder, that tests start, kill and disconnect."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.postgres_server import Postgres
from tests.s3_server import Storage
from tests.tree_runs import PATIENCE_S, Run, open_run

from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.registry import ShardStatus, list_nodes, list_shards
from vedette.errors import ClusterError

__all__ = ["SPEED", "Cluster", "Line", "cluster", "open_cluster"]

SPEED = 20.0
PATIENT_TRIES = 20


class Line:
    """A node's connection to PostgreSQL, which a test can cut; data sent in the meantime arrives late."""

    def __init__(self, port: int) -> None:
        self._target, self._is_open = ("127.0.0.1", port), threading.Event()
        self._is_open.set()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Hold back everything, in both directions."""
        self._is_open.clear()

    def mend(self) -> None:
        """Deliver the delayed data and restore the connection."""
        self._is_open.set()

    def _accept(self) -> None:
        while True:
            near, _ = self._socket.accept()
            far = socket.create_connection(self._target)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._is_open.wait()
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def cluster(
    dsn: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``vedette cluster`` to its end."""
    command = [sys.executable, "-m", "vedette", "cluster", arguments[0], "--postgres", dsn, *arguments[1:]]
    env = {**os.environ, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=env)


@dataclass(slots=True)
class Cluster:
    """A cluster over a served world, with nodes as process trees with their own folders."""

    run: Run
    dsn: str
    environment: Mapping[str, str]
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def join(self, name: str, *more: str, dsn: str = "") -> None:
        """Start a node, with its own connection string if its network can be cut."""
        dsn = dsn or self.dsn
        command = [sys.executable, "-m", "vedette", "cluster", "join", "--postgres", dsn, "--name", name, *more]
        command += ["--connect-to", f"@{self.run.folder / 'hosts.txt'}", "--allow-private", "--speed", str(SPEED)]
        command += ["--config", str(self.run.folder / "vedette.toml"), "--data", str(self.run.data / name), "--json"]
        with (self.run.folder / "messages.txt").open("ab") as said:
            self.nodes[name] = subprocess.Popen(
                command, stdout=said, stderr=said, start_new_session=True, env={**os.environ, **self.environment}
            )

    def kill(self, name: str) -> None:
        """Kill a node and its processes at once, as a power failure would."""
        node = self.nodes.pop(name)
        os.killpg(node.pid, signal.SIGKILL)
        node.wait()

    def lose(self, name: str) -> None:
        """Kill a node, and delete its folder, as if the machine were lost with its disk."""
        self.kill(name)
        shutil.rmtree(self.run.data / name)

    def stop(self) -> None:
        """Stop all nodes as Ctrl-C does."""
        for node in self.nodes.values():
            node.send_signal(signal.SIGINT)
        assert [node.wait(PATIENCE_S) for node in self.nodes.values()] == [0] * len(self.nodes)
        self.nodes.clear()

    def shards(self) -> list[ShardStatus]:
        """Return the status of every shard as soon as PostgreSQL responds."""
        for _ in range(PATIENT_TRIES):
            with suppress(ClusterError), connect(self.dsn) as connection:
                return list_shards(connection)
        with connect(self.dsn) as connection:
            return list_shards(connection)

    def owners(self) -> list[str]:
        """Return the owner of every shard."""
        return [shard.owner for shard in self.shards()]

    def count_nodes(self) -> int:
        """Return the number of running nodes."""
        with connect(self.dsn) as connection:
            return len(list_nodes(connection))

    def folders(self) -> list[Path]:
        """Return the data folders of all shards at their owners, without leftovers of earlier owners."""
        with connect(self.dsn) as connection:
            names = {name for (name,) in connection.execute("SELECT folder FROM vedette.shard")}
        found = []
        for file in self.run.data.glob("*/shard-*/shard"):
            with suppress(OSError):
                if json.loads(file.read_text())["name"] in names:
                    found.append(file.parent)
        return found

    def count_pages(self) -> int:
        """Return the number of pages in all shards."""
        total = 0
        for folder in self.folders():
            with suppress(sqlite3.OperationalError), closing(sqlite3.connect(folder / "state.db")) as db:
                total += db.execute("SELECT count(*) FROM page WHERE status = 200 AND kind = 'page'").fetchone()[0]
        return total

    def pages(self) -> Counter[str]:
        """Count the shards that have each page."""
        found: Counter[str] = Counter()
        for folder in self.folders():
            with suppress(sqlite3.OperationalError), closing(sqlite3.connect(folder / "state.db")) as db:
                assert db.execute("PRAGMA quick_check").fetchone() == ("ok",)
                found.update(url for url, page in CrawlStore(db).iter_pages() if page.status == 200)
        return found

    def searchable(self) -> int:
        """Return the number of pages in the indexes of all shards."""
        generations = (Generations(folder).current() for folder in self.folders())
        return sum(len(np.asarray(PageTable(one).indexed)) for one in generations if one is not None)

    def messages(self) -> str:
        """Return the log of all nodes."""
        return self.run.messages()


@contextmanager
def open_cluster(
    postgres: Postgres, folder: Path, hosts: int, shards: int, lease_s: float, storage: Storage | None = None
) -> Iterator[Cluster]:
    """Create a cluster with the hosts of the ring as its sites; no node is running yet."""
    with open_run("ring_town", hosts, folder, speed=SPEED, delay_s=1.0, timeout_s=10.0, workers=1) as run:
        dsn = postgres.create_database()
        environment = {} if storage is None else storage.environment
        copied = () if storage is None else ("--storage", f"s3://{storage.bucket}/{folder.name}")
        init = cluster(dsn, "init", "--shards", str(shards), "--lease", str(lease_s), *copied, environment=environment)
        assert init.returncode == 0, init.stderr
        assert cluster(dsn, "add", *(f"http://{name}/" for name in run.web.hosts)).returncode == 0
        open_ = Cluster(run, dsn, environment)
        try:
            yield open_
        finally:
            for name in list(open_.nodes):
                open_.kill(name)
