"""A real PostgreSQL on loopback for tests, if this machine has the programs; otherwise, tests say so."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

__all__ = ["MISSING", "Postgres", "find_programs", "run_postgres"]

MISSING = "left out: no PostgreSQL on this machine. On Debian and Ubuntu: apt install postgresql"
# Nothing of a test has to survive a power cut.
OPTIONS = "-c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c max_connections=200"


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running PostgreSQL: its programs, data folder and port."""

    programs: Path
    folder: Path
    port: int
    user: str | None

    def dsn(self, database: str = "postgres") -> str:
        """Return the connection string of a database."""
        return f"postgresql://tester@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """Create an empty database; return its connection string."""
        name = f"test_{uuid4().hex}"
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.dsn(name)

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        self._control("start", "-o", f"{OPTIONS} -p {self.port}", "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """Stop the server immediately, as a crash would."""
        self._control("stop", "-m", "immediate")

    def _control(self, *more: str) -> None:
        command = [str(self.programs / "pg_ctl"), "-D", str(self.folder / "data"), "-w", "-s", *more]
        subprocess.run(command, check=True, user=self.user, stdout=subprocess.DEVNULL, cwd=self.folder)


def find_programs() -> Path | None:
    """Find the folder of PostgreSQL's server programs."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    return next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


@contextmanager
def run_postgres() -> Iterator[Postgres]:
    """Run a new server.

    It refuses to run as root, so root runs it as another user.
    """
    programs, user = find_programs(), _find_user()
    assert programs is not None, MISSING
    folder = Path(tempfile.mkdtemp(prefix="vedette-postgres-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    server = Postgres(programs, folder, _find_port(), user)
    settings: dict[str, Any] = {"check": True, "user": user, "stdout": subprocess.DEVNULL, "cwd": folder}
    initdb = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", "tester", "-A", "trust", "-N", "-E", "UTF8"]
    try:
        subprocess.run([*initdb, "--locale=C"], **settings)  # noqa: PLW1510 - "check" is in the settings
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _find_user() -> str | None:
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _find_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
