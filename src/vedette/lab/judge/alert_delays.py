"""Alert delays: a webhook receiver on loopback, and how soon after publication alert messages arrived.

The receiver runs in a process that exits with its parent. Each message is a line of JSON in a file: its request path,
its items, and the world time at which it arrived.

A page without a message counts as later than all: it is in the quartiles, so a crawler gains nothing by missing what is
hard to find. Intervals are from the bootstrap over births.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf, isfinite, nan
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.subprocesses import die_with_parent, ignore_sigint, is_orphan
from vedette.policy import Floats, rng_for

MAX_BODY_BYTES = 8 << 20
STOP_TIMEOUT_S = 5.0
RESAMPLES = 2000
LEVEL = 0.95
QUARTILES = (0.25, 0.5, 0.75)


class ReceivedItem(NamedTuple):
    """A page in a received alert message: receiver's name, URL, when it was first seen, when the message arrived."""

    name: str
    url: str
    seen_at: str
    at_s: float


@dataclass(frozen=True, slots=True)
class WebhookReceiver:
    """Handle of an alert webhook receiver in a child process; usable in a ``with`` block, which stops it."""

    port: int
    process: subprocess.Popen[bytes]

    def url_for(self, name: str) -> str:
        """Return the webhook URL to which alert messages for this name are sent."""
        return f"http://127.0.0.1:{self.port}/{name}"

    def stop(self) -> None:
        """Stop the child process of the alert webhook receiver and wait for it."""
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
    """Start a receiver of alert webhooks at a free loopback port, which logs messages to a file."""
    command = [sys.executable, "-m", __name__, f"--clock={clock}", f"--log={log}", f"--parent={os.getpid()}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
    line = process.stdout.readline() if process.stdout is not None else b""
    return WebhookReceiver(int(line), process)


def read_received(log: Path) -> Iterator[ReceivedItem]:
    """Read the items of received alert messages from the receiver's log, in order; skip anything else."""
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        message = json.loads(line)
        for item in message["items"]:
            yield ReceivedItem(message["name"], item["url"], item["first_seen_at"], message["at_s"])


def _create_server(clock: Clock, log: Path) -> ThreadingHTTPServer:
    class Taker(BaseHTTPRequestHandler):
        """HTTP handler of the alert webhook receiver: accepts every message of bounded length."""

        def do_POST(self) -> None:  # the name is the library's
            at_s = clock.now()
            length = self.headers.get("content-length", "")
            body = self.rfile.read(min(int(length), MAX_BODY_BYTES)) if length.isascii() and length.isdigit() else b""
            self.send_response(204 if _append_message(log, self.path.strip("/"), body, at_s) else 400)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            """Suppress the HTTP handler's own log of alert webhook requests."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Taker)


def _append_message(log: Path, name: str, body: bytes, at_s: float) -> bool:
    """Append an alert message to the receiver's log in one write, so that concurrent ones do not mix."""
    try:
        items = json.loads(body)["items"]
        line = json.dumps({"name": name, "at_s": at_s, "items": items}) + "\n"
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    with log.open("ab", buffering=0) as file:
        file.write(line.encode())
    return True


class AlertDelays(NamedTuple):
    """Alert delays, seconds from birth to message: quartiles over all births, infinite if too few were reported.

    ``low_s`` and ``high_s`` are the ends of the median's interval.
    """

    births: int
    told: int
    quarter_s: float
    median_s: float
    three_quarters_s: float
    low_s: float
    high_s: float

    @property
    def share(self) -> float:
        """Return the share of page births that an alert message reported."""
        return self.told / self.births if self.births else nan


def measure_delays(born_s: Mapping[str, float], reported_s: Mapping[str, float], seed: int = 1) -> AlertDelays:
    """Measure the alert delays of these births by URL; messages about other URLs are ignored.

    >>> found = measure_delays({"a": 0.0, "b": 10.0, "c": 20.0}, {"a": 60.0, "b": 40.0, "x": 1.0})
    >>> found.births, found.told, found.quarter_s, found.median_s, found.three_quarters_s
    (3, 2, 30.0, 60.0, inf)
    """
    waits = np.array([max(reported_s[url] - at_s, 0.0) if url in reported_s else inf for url, at_s in born_s.items()])
    if not len(waits):
        return AlertDelays(0, 0, nan, nan, nan, nan, nan)
    rng = rng_for(seed, "lab/birth-delays")
    draws = waits[rng.integers(0, len(waits), (RESAMPLES, len(waits)))]
    medians = _rank_quantile(draws, 0.5)
    low, high = (float(_rank_quantile(medians[None, :], part)[0]) for part in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    quarter, median, three = (float(_rank_quantile(waits[None, :], part)[0]) for part in QUARTILES)
    return AlertDelays(len(waits), sum(map(isfinite, waits.tolist())), quarter, median, three, low, high)


def _rank_quantile(rows: Floats, part: float) -> Floats:
    """Return the quantile of each row of alert delays as one of its values, since infinities have no midpoint."""
    place = min(max(int(np.ceil(part * rows.shape[1])) - 1, 0), rows.shape[1] - 1)
    ranked: Floats = np.sort(rows, axis=1)[:, place]
    return ranked


def earliest_times(seen: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return when each URL was first reported in an alert message.

    >>> earliest_times([("a", 5.0), ("b", 2.0), ("a", 1.0)])
    {'a': 1.0, 'b': 2.0}
    """
    first: dict[str, float] = {}
    for url, at_s in seen:
        first[url] = min(at_s, first.get(url, inf))
    return first


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the child process of the alert webhook receiver: print its port, and receive until it is stopped."""
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
