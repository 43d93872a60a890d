"""Supervisor: start coordinator, fetchers, indexer, notifier, event recorder and servers; restart dead ones.

When the parent exits, all of them exit.

Fetchers exit with their coordinator, and restart with it. A child that keeps dying soon after its start is restarted at
growing intervals, with a report each time. Those that keep failing are listed in the data folder, for the
console, ``vedette status``, ``/healthz`` and the metrics.
"""

import ctypes
import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import inf
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import FORMAT, check_format
from vedette.adapters.crawl_store.status_file import SOCKET, STATUS_FILE, FailingProcess, write_failing
from vedette.adapters.net.ipc import Channel, ChannelClosed, NoAnswer, Request, connect
from vedette.adapters.subprocesses import die_with_parent, ignore_sigint, is_orphan
from vedette.errors import VedetteError
from vedette.runtime.processes.coordinator import run_coordinator
from vedette.runtime.processes.fetcher import EXIT_GONE, run_fetcher
from vedette.runtime.processes.settings import RuntimeSettings

GC_THRESHOLD = 50_000
PR_SET_NAME = 15
STOP_TIMEOUT_S = 5.0
# How long a shutdown may take; what has not exited by then is killed.
STOP_DEADLINE_S = 3.5
# A child that keeps dying at once must not keep the machine busy.
RESTART_DELAYS_S = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)
STABLE_AFTER_S = 5.0
# A child that died this often within the window keeps failing, however long it lives in between.
FAILING_DEATHS = 4
FAILING_WINDOW_S = 300.0
# Names in messages for processes whose ps names are older.
_ROLES = {
    "keeper": "coordinator",
    "worker": "fetcher",
    "herald": "notifier",
    "recorder": "event recorder",
    "copy": "replicator",
    "observers": "observer hub",
}
# Polling interval of a client for a free slot in the coordinator's backlog, or for its response: nothing signals
# either.
POLL_S = 0.005
MAX_LAST_WORDS = 300


@dataclass(slots=True)
class _Child:
    """A child process of the supervisor: how to start it, and its recent deaths.

    One that ``awaits_coordinator`` is started once the coordinator can be reached.
    """

    name: str
    target: Callable[[], int]
    pid: int = 0
    started_s: float = 0.0
    deaths: int = 0
    next_s: float = 0.0
    ends_by_signal: bool = False
    awaits_coordinator: bool = True
    died_s: list[float] = field(default_factory=list)
    why: str = ""
    last_words: int = -1

    def list_recent_deaths(self, now_s: float) -> list[float]:
        """List when the child died within the window that counts."""
        return [at_s for at_s in self.died_s if now_s - at_s < FAILING_WINDOW_S]


@dataclass(slots=True)
class Supervisor:
    """Supervise all processes over one data folder."""

    settings: RuntimeSettings
    _children: list[_Child] = field(default_factory=list)
    _stopping: bool = False
    _stop_deadline_s: float = inf
    _metrics_folder: str = ""
    _failing: tuple[FailingProcess, ...] = ()
    _sockets: list[socket.socket] = field(default_factory=list)

    def start(self) -> None:
        """Start all processes of the tree: the coordinator first, since fetchers report to it.

        Servers of a folder that is already there start at the same time, so that it can be searched soon.
        """
        settings = self.settings
        (settings.folder / STATUS_FILE).unlink(missing_ok=True)
        write_failing(settings.folder, ())
        self._remove_socket()
        self._children = [_Child("keeper", lambda: run_coordinator(settings), awaits_coordinator=False)]
        self._children += [
            _Child(f"worker {number}", lambda number=number: run_fetcher(settings, number))  # type: ignore[misc]  # the default binds the number
            for number in range(settings.workers)
        ]
        if settings.gateway is None:
            self._children.append(
                _Child("indexer", lambda: _run_lazily("indexer", "run_indexer", settings), ends_by_signal=True)
            )
        if settings.shard is not None:
            self._children.append(
                _Child("search", lambda: _run_lazily("shard_search", "run_shard_search", settings), ends_by_signal=True)
            )
            self._children.append(
                _Child("exchange", lambda: _run_lazily("exchanger", "run_exchanger", settings), ends_by_signal=True)
            )
            if settings.shard.storage:
                self._children.append(
                    _Child("copy", lambda: _run_lazily("replicator", "run_replicator", settings), ends_by_signal=True)
                )
        if settings.forever and settings.gateway is None:  # a crawl that ends finds only what is new here
            self._children.append(
                _Child("herald", lambda: _run_lazily("notifier", "run_notifier", settings), ends_by_signal=True)
            )
        if settings.listener is not None:
            self._children.append(
                _Child(
                    "recorder",
                    lambda: _run_lazily("event_recorder", "run_event_recorder", settings),
                    ends_by_signal=True,
                )
            )
        if settings.has_observers:
            self._children.append(
                _Child("observers", lambda: _run_lazily("observer_hub", "run_observer_hub", settings))
            )
        if settings.listener is not None and settings.gateway is None:
            self._children.append(
                _Child("push", lambda: _run_lazily("hub_client", "run_push", settings), ends_by_signal=True)
            )
        if settings.listener is not None:
            self._children += self._build_servers(settings, settings.listener)
        self.restart_dead()

    def restart_dead(self) -> list[str]:
        """Restart dead child processes that are due; return what happened, in words. Call it often."""
        told = [words for child, code in self._reap_children() if (words := self._on_exit(child, code))]
        for child in self._children:
            if child.pid == 0 and not self._stopping and time.monotonic() >= child.next_s:
                self._start_child(child)
        self._list_failing()
        return told

    @property
    def is_alive(self) -> bool:
        """Whether any process of the tree is alive, or will be restarted."""
        return not self._stopping or any(child.pid for child in self._children)

    @property
    def is_over(self) -> bool:
        """Whether the coordinator ended normally, or its stop deadline has passed."""
        return self._stopping or time.monotonic() > self._stop_deadline_s

    def set_stop_deadline(self) -> None:
        """Set the deadline for the coordinator's end, some seconds after the first call."""
        self._stop_deadline_s = min(self._stop_deadline_s, time.monotonic() + STOP_DEADLINE_S)

    def stop(self) -> None:
        """Stop the process tree: by request and SIGTERM first, after some seconds by SIGKILL."""
        self._stopping = True
        until_s = min(time.monotonic() + STOP_TIMEOUT_S, self._stop_deadline_s)
        while self.is_alive and time.monotonic() < until_s:
            self._send_sigterm()
            self.restart_dead()
            time.sleep(0.02)  # children exit by themselves; this is the polling interval
        for child in self._children:
            if child.pid:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
                child.pid = 0
        self._remove_socket()
        with suppress(OSError):
            write_failing(self.settings.folder, ())
        if self._metrics_folder:
            shutil.rmtree(self._metrics_folder, ignore_errors=True)
        for own in self._sockets:
            own.close()

    def list_pids(self) -> dict[str, int]:
        """List the process ids of the tree by role."""
        return {child.name: child.pid for child in self._children if child.pid}

    def _build_servers(self, settings: RuntimeSettings, listener: socket.socket) -> list[_Child]:
        """Build the server children, each with a socket that the supervisor keeps open, and shared counters."""
        from vedette.web.server import bind_shared  # only needed for serving

        counts = self._metrics_folder = tempfile.mkdtemp(prefix="vedette-counts-")
        is_ready = settings.shard is None and _can_be_served(settings.folder)
        self._sockets = [bind_shared(listener) for _ in range(1, settings.config.serve.processes)]
        return [
            _Child(
                f"server {number}" if number > 1 else "server",
                lambda own=own: _run_server(replace(settings, listener=own), counts),  # type: ignore[misc]  # the default binds it
                ends_by_signal=True,
                awaits_coordinator=not is_ready,
            )
            for number, own in enumerate([listener, *self._sockets], 1)
        ]

    def _send_sigterm(self) -> None:
        """Send SIGTERM to children that the coordinator does not stop; repeated, as one may miss it."""
        for child in self._children:
            if child.pid and child.ends_by_signal:
                os.kill(child.pid, signal.SIGTERM)

    def _reap_children(self) -> list[tuple[_Child, int]]:
        dead = []
        for child in self._children:
            if child.pid:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    dead.append((child, os.waitstatus_to_exitcode(status)))
        return dead

    def _on_exit(self, child: _Child, code: int) -> str:
        now_s = time.monotonic()
        child.pid, child.next_s = 0, now_s
        if child.name == "keeper":
            self._remove_socket()
            self._stopping = self._stopping or code == 0
        # A worker without a coordinator exits cleanly, and waits for the next one.
        if self._stopping or code in {0, EXIT_GONE}:
            return ""
        child.deaths = 1 if now_s - child.started_s > STABLE_AFTER_S else child.deaths + 1
        child.died_s = [*child.list_recent_deaths(now_s), now_s]
        child.why = _read_last_words(child) or _describe_exit(code)
        pause_s = RESTART_DELAYS_S[min(child.deaths, len(RESTART_DELAYS_S)) - 1]
        child.next_s = now_s + pause_s
        role, delay = _describe_role(child.name), _describe_delay(pause_s, child.deaths)
        return f"{role} ended ({_describe_exit(code)}); restarting{delay}"

    def _list_failing(self) -> None:
        """Write down which children keep failing, if that has changed; a full disk must not end the tree."""
        now_s = time.monotonic()
        counts = [(child, len(child.list_recent_deaths(now_s))) for child in self._children if child.died_s]
        failing = tuple(
            FailingProcess(_describe_role(child.name), count, child.why)
            for child, count in counts
            if count >= FAILING_DEATHS
        )
        if failing != self._failing:
            self._failing = failing
            with suppress(OSError):
                write_failing(self.settings.folder, failing)

    def _remove_socket(self) -> None:
        """Remove the dead coordinator's socket file, so that no fetcher starts and no client tries it."""
        (self.settings.folder / SOCKET).unlink(missing_ok=True)

    def _start_child(self, child: _Child) -> None:
        if child.awaits_coordinator and not (self.settings.folder / SOCKET).exists():
            return
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        if child.last_words >= 0:
            os.close(child.last_words)
        child.last_words, speaker = os.pipe()
        pid = os.fork()
        if pid == 0:
            _run_child(child.name, child.target, parent, speaker)
        os.close(speaker)
        child.pid, child.started_s = pid, time.monotonic()


def _can_be_served(folder: Path) -> bool:
    """Check whether servers may open a data folder before its coordinator has: it exists, and needs no upgrade."""
    with suppress(VedetteError):
        return check_format(folder) == FORMAT
    return False


def _run_lazily(module: str, function: str, settings: RuntimeSettings) -> int:
    """Run a child whose modules are imported only in the child, since no other process needs them."""
    run: Callable[[RuntimeSettings], int] = getattr(import_module(f"vedette.runtime.processes.{module}"), function)
    return run(settings)


def _run_server(settings: RuntimeSettings, counts: str) -> int:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts  # where servers sum up their counters; read at import
    return _run_lazily("server", "run_server", settings)


def _describe_role(name: str) -> str:
    """Return the role of a process for messages, with its number if there are several.

    >>> _describe_role("keeper"), _describe_role("worker 0"), _describe_role("server")
    ('coordinator', 'fetcher 0', 'server')
    """
    kind, space, number = name.partition(" ")
    return f"{_ROLES.get(kind, kind)}{space}{number}"


def _describe_exit(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _read_last_words(child: _Child) -> str:
    """Return the error with which a dead child ended, in one line; empty if it said nothing."""
    os.set_blocking(child.last_words, False)
    with suppress(BlockingIOError):
        return " ".join(os.read(child.last_words, MAX_LAST_WORDS).decode("utf-8", "replace").split())
    return ""


def _describe_delay(pause_s: float, deaths: int) -> str:
    return f" in {pause_s:g} s (failure {deaths} in a row)" if pause_s else ""


def _tune_gc() -> None:
    """Tune the garbage collector of a child: pages leave many short-lived objects and hardly any cycles."""
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 10, 10)


def _run_child(name: str, work: Callable[[], int], parent: int, speaker: int) -> None:
    """Run a forked child process of the supervisor; never returns. Its last words go to ``speaker``."""
    code = 1
    try:
        die_with_parent()
        # The name in ps and top, at most 15 bytes.
        short = name.replace("worker ", "w").replace("server ", "s").replace("recorder", "record")
        ctypes.CDLL(None).prctl(PR_SET_NAME, f"vedette {short}".encode())
        if not is_orphan(parent):
            ignore_sigint()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _tune_gc()
            code = work()
    except VedetteError as error:
        sys.stderr.write(f"vedette: {error}\n")
        _say(speaker, str(error))
        code = error.exit_code
    except BaseException as error:  # noqa: BLE001 - the last frame of the process: every exception is reported
        traceback.print_exc()
        _say(speaker, f"{type(error).__name__}: {error}")
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)


def _say(speaker: int, words: str) -> None:
    with suppress(OSError):
        os.write(speaker, words.encode("utf-8", "replace")[:MAX_LAST_WORDS])


def ask_coordinator(folder: Path, call: Request, timeout_s: float = 10.0, name: str = SOCKET) -> dict[str, object]:
    """Send a request to the running coordinator and return its response.

    Raises ``OSError`` if there is none, ``ChannelClosed`` if it exits meanwhile or accepts nothing, ``NoAnswer`` if it
    has the request but did not respond in time. ``name`` is the socket of another process that takes requests.
    """
    until_s = time.monotonic() + timeout_s
    channel = _connect(folder / name, until_s)
    try:
        channel.send(call)
        while time.monotonic() < until_s:
            channel.flush()
            for reply in channel.receive():
                assert isinstance(reply, dict)
                return reply
            time.sleep(POLL_S)  # a channel has no blocking call
        raise NoAnswer("no response in time")
    finally:
        channel.close()


def _connect(path: Path, until_s: float) -> Channel:
    """Connect to the running coordinator; if too many others are waiting for it, retry until this time."""
    while True:
        try:
            return Channel(connect(path))
        except BlockingIOError:
            if time.monotonic() >= until_s:
                raise ChannelClosed("too many requests are waiting for it") from None
            time.sleep(POLL_S)  # nothing signals when another request is done
