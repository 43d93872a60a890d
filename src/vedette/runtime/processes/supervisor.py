"""The supervised tree: keeper, workers, indexer, perhaps herald, recorder and servers. Dead ones start again.

The end of the parent ends them all.

Workers end with their keeper, and come back with it. A child that dies soon after its start, again and again, is
started again later and later, and each time it is said.
"""

import ctypes
import gc
import json
import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from vedette.adapters.net.ipc import Channel, Gone, connect
from vedette.adapters.subprocesses import end_with_parent, is_orphan, leave_ctrl_c_to_parent
from vedette.errors import StoreError, VedetteError
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.coordinator import LAST_WORDS, SOCKET, run_keeper
from vedette.runtime.processes.fetcher import GONE, run_worker
from vedette.runtime.processes.settings import LiveSettings

__all__ = ["Tree", "ask_keeper"]

COLLECT_AFTER = 50_000
PR_SET_NAME = 15
STOP_S = 5.0
# How long an end may take once somebody wants it; what has not ended by then is ended.
HURRY_S = 3.5
# A child that dies at once, again and again, must not keep the machine busy.
PATIENCE_S = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
CALM_S = 5.0


@dataclass(slots=True)
class _Child:
    """A process of the tree: how to start it, and how it has been doing."""

    name: str
    work: Callable[[], int]
    pid: int = 0
    started_s: float = 0.0
    deaths: int = 0
    next_s: float = 0.0
    ends_by_signal: bool = False


@dataclass(slots=True)
class Tree:
    """All processes over one data folder."""

    settings: LiveSettings
    _children: list[_Child] = field(default_factory=list)
    _stopping: bool = False
    _hurry_until_s: float = inf
    _last_words: Path = field(default_factory=Path)
    _counts: str = ""
    _sockets: list[socket.socket] = field(default_factory=list)

    def start(self) -> None:
        """Start everything; the keeper first, since workers report to it."""
        settings = self.settings
        self._last_words = self.settings.folder / LAST_WORDS
        self._last_words.unlink(missing_ok=True)
        self._forget_socket()
        self._children = [_Child("keeper", lambda: run_keeper(settings))]
        self._children += [
            _Child(f"worker {number}", lambda number=number: run_worker(settings, number))  # type: ignore[misc]  # the default binds the number
            for number in range(settings.workers)
        ]
        self._children.append(_Child("indexer", lambda: _index(settings), ends_by_signal=True))
        if settings.forever:  # a crawl that ends finds nothing but what is new here
            self._children.append(_Child("herald", lambda: _tell(settings), ends_by_signal=True))
        if settings.listener is not None:
            self._children.append(_Child("recorder", lambda: _record(settings), ends_by_signal=True))
            self._children.append(_Child("push", lambda: _push(settings), ends_by_signal=True))
            self._children += self._servers(settings, settings.listener)
        self.tend()

    def tend(self) -> list[str]:
        """Start again what has died and may be; what happened, in words. To be called often."""
        told = [words for child, code in self._dead() if (words := self._buried(child, code))]
        for child in self._children:
            if child.pid == 0 and not self._stopping and time.monotonic() >= child.next_s:
                self._start(child)
        return told

    @property
    def alive(self) -> bool:
        """Whether any process of the tree is there, or will be."""
        return not self._stopping or any(child.pid for child in self._children)

    @property
    def ended(self) -> bool:
        """Whether the keeper came to its own good end, or had its time to."""
        return self._stopping or time.monotonic() > self._hurry_until_s

    def hurry(self) -> None:
        """Somebody wants it to end and the keeper is told so: from the first call on, there are some seconds left."""
        self._hurry_until_s = min(self._hurry_until_s, time.monotonic() + HURRY_S)

    def stop(self) -> None:
        """End the tree: politely, and after some seconds not."""
        self._stopping = True
        until_s = min(time.monotonic() + STOP_S, self._hurry_until_s)
        while self.alive and time.monotonic() < until_s:
            self._ask_to_end()
            self.tend()
            time.sleep(0.02)  # children are ending by themselves; this is how often we look
        for child in self._children:
            if child.pid:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
                child.pid = 0
        self._forget_socket()
        if self._counts:
            shutil.rmtree(self._counts, ignore_errors=True)
        for own in self._sockets:
            own.close()

    def last_words(self) -> dict[str, object]:
        """The numbers with which the keeper ended; nothing if it did not end by itself."""
        try:
            told: dict[str, object] = json.loads(self._last_words.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return told

    def pids(self) -> dict[str, int]:
        """Who is who."""
        return {child.name: child.pid for child in self._children if child.pid}

    def _servers(self, settings: LiveSettings, listener: socket.socket) -> list[_Child]:
        """Each has a socket of its own, which is open here as long as the tree lives, and counts in one folder."""
        from vedette.web.server import bind_beside  # only whoever serves needs it

        counts = self._counts = tempfile.mkdtemp(prefix="vedette-counts-")
        self._sockets = [bind_beside(listener) for _ in range(1, settings.config.serve.processes)]
        return [
            _Child(
                f"server {number}" if number > 1 else "server",
                lambda own=own: _serve(replace(settings, listener=own), counts),  # type: ignore[misc]  # the default binds it
                ends_by_signal=True,
            )
            for number, own in enumerate([listener, *self._sockets], 1)
        ]

    def _ask_to_end(self) -> None:
        """Those that the keeper does not tell; again and again, since one may not have been listening yet."""
        for child in self._children:
            if child.pid and child.ends_by_signal:
                os.kill(child.pid, signal.SIGTERM)

    def _dead(self) -> list[tuple[_Child, int]]:
        dead = []
        for child in self._children:
            if child.pid:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    dead.append((child, os.waitstatus_to_exitcode(status)))
        return dead

    def _buried(self, child: _Child, code: int) -> str:
        now_s = time.monotonic()
        child.pid, child.next_s = 0, now_s
        if child.name == "keeper":
            self._forget_socket()
            self._stopping = self._stopping or code == 0
        # A worker without a keeper ends in peace, and waits for the next one.
        if self._stopping or code in {0, GONE}:
            return ""
        child.deaths = 1 if now_s - child.started_s > CALM_S else child.deaths + 1
        pause_s = PATIENCE_S[min(child.deaths, len(PATIENCE_S)) - 1]
        child.next_s = now_s + pause_s
        return f"{child.name} ended ({_cause(code)}) and is started again{_after(pause_s, child.deaths)}"

    def _forget_socket(self) -> None:
        """Nobody listens there any more: without the file no worker is started, and nobody else tries."""
        (self.settings.folder / SOCKET).unlink(missing_ok=True)

    def _start(self, child: _Child) -> None:
        if child.name != "keeper" and not (self.settings.folder / SOCKET).exists():
            return
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _live(child.name, child.work, parent)
        child.pid, child.started_s = pid, time.monotonic()


def _index(settings: LiveSettings) -> int:
    from vedette.runtime.processes.indexer import run_indexer  # the index is needed in this process alone

    try:
        return run_indexer(settings)
    except (sqlite3.OperationalError, OSError) as error:
        where = settings.folder / "index"
        raise StoreError(
            f"{where}: {error}; it can be made anew, nothing is lost: make room, or check permissions"
        ) from error


def _record(settings: LiveSettings) -> int:
    from vedette.runtime.processes.event_recorder import run_recorder  # so is what people did with results

    return run_recorder(settings)


def _tell(settings: LiveSettings) -> int:
    from vedette.runtime.processes.notifier import run_herald  # so is what goes out to those who watch

    return run_herald(settings)


def _push(settings: LiveSettings) -> int:
    from vedette.runtime.processes.hub_client import run_push  # so is what hubs are asked

    return run_push(settings)


def _serve(settings: LiveSettings, counts: str) -> int:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts  # where servers add up what they count; read at the import
    from vedette.runtime.processes.server import run_server  # so is everything that serves pages

    return run_server(settings)


def _cause(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _after(pause_s: float, deaths: int) -> str:
    return f" in {pause_s:g} s, the {deaths}. time in a row" if pause_s else ""


def _collect_seldom() -> None:
    """A page leaves thousands of short-lived objects and hardly any cycles: looking for those can wait."""
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 10, 10)


def _live(name: str, work: Callable[[], int], parent: int) -> None:
    """What a forked child does; it never returns."""
    code = 1
    try:
        end_with_parent()
        # What ps and top show, at most 15 bytes of it.
        short = name.replace("worker ", "w").replace("server ", "s").replace("recorder", "record")
        ctypes.CDLL(None).prctl(PR_SET_NAME, f"vedette {short}".encode())
        if not is_orphan(parent):
            leave_ctrl_c_to_parent()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _collect_seldom()
            code = work()
    except VedetteError as error:
        sys.stderr.write(f"vedette: {error}\n")
        code = error.exit_code
    except BaseException:  # noqa: BLE001 - the last frame of the process: whatever it is, it is told
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ask_keeper(folder: Path, call: Call, timeout_s: float = 10.0) -> dict[str, object]:
    """Ask a running keeper; ``OSError`` if there is none, ``Gone`` if it leaves meanwhile."""
    channel = Channel(connect(folder / SOCKET))
    try:
        channel.send(call)
        until_s = time.monotonic() + timeout_s
        while time.monotonic() < until_s:
            channel.flush()
            for reply in channel.receive():
                assert isinstance(reply, dict)
                return reply
            time.sleep(0.005)
        raise Gone("no answer in time")
    finally:
        channel.close()
