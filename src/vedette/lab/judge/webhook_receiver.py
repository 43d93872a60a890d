"""A receiver of webhooks on loopback, in a process that ends with its parent: it notes what it is told, and when.

Each message is a line of JSON in a file: the path that it came to, its items, and the world time at which it was here.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.subprocesses import die_with_parent, ignore_sigint, is_orphan

MAX_BODY_BYTES = 8 << 20
STOP_TIMEOUT_S = 5.0


class ReceivedItem(NamedTuple):
    """A page that a message told of: to whom, its URL, when it was first seen, and when the message came."""

    name: str
    url: str
    seen_at: str
    at_s: float


@dataclass(frozen=True, slots=True)
class WebhookReceiver:
    """A receiver in a child process; usable in a ``with`` block, which ends it."""

    port: int
    process: subprocess.Popen[bytes]

    def url_for(self, name: str) -> str:
        """Where messages to this name are sent."""
        return f"http://127.0.0.1:{self.port}/{name}"

    def stop(self) -> None:
        """End the child and wait for it."""
        self.process.terminate()
        try:
            self.process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_receiver(clock: Clock, log: Path) -> WebhookReceiver:
    """Receive at a free port of loopback, and write to a file."""
    command = [sys.executable, "-m", __name__, f"--clock={clock}", f"--log={log}", f"--parent={os.getpid()}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
    line = process.stdout.readline() if process.stdout is not None else b""
    return WebhookReceiver(int(line), process)


def read_received(log: Path) -> Iterator[ReceivedItem]:
    """What came, in order; what is no message of ours is passed over."""
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        told = json.loads(line)
        for item in told["items"]:
            yield ReceivedItem(told["name"], item["url"], item["first_seen_at"], told["at_s"])


def _create_server(clock: Clock, log: Path) -> ThreadingHTTPServer:
    class Taker(BaseHTTPRequestHandler):
        """Takes every message of bounded length."""

        def do_POST(self) -> None:  # the name is the library's
            at_s = clock.now()
            length = self.headers.get("content-length", "")
            body = self.rfile.read(min(int(length), MAX_BODY_BYTES)) if length.isascii() and length.isdigit() else b""
            self.send_response(204 if _append_message(log, self.path.strip("/"), body, at_s) else 400)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            """Nothing is said."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Taker)


def _append_message(log: Path, name: str, body: bytes, at_s: float) -> bool:
    """A line in one write, so that two at once do not mix."""
    try:
        items = json.loads(body)["items"]
        line = json.dumps({"name": name, "at_s": at_s, "items": items}) + "\n"
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    with log.open("ab", buffering=0) as file:
        file.write(line.encode())
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """What the child process does: say where, and receive until it is ended."""
    parser = argparse.ArgumentParser(prog=f"python -m {__name__}", description=__doc__)
    parser.add_argument("--clock", required=True, help="the clock that it goes by, as one writes it")
    parser.add_argument("--log", type=Path, required=True, help="where it writes")
    parser.add_argument("--parent", type=int, required=True, help="the process that it ends with")
    options = parser.parse_args(arguments)
    ignore_sigint()
    die_with_parent()
    server = _create_server(parse_clock(options.clock), options.log)
    if is_orphan(options.parent):
        return 0
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
