"""Page renderer: run the scripts of pages in a browser in a limited child process.

Nothing here blocks. Submit pages, watch ``fd``, and ``collect`` events: requests that a page makes, to be answered with
``answer_part``, and finally the rendered HTML or why there is none. ``collect`` also enforces the limits, so call it a
few times a second while anything is ``pending``. The browser is started when it is first needed, renders one page at a
time, and is killed with all its processes at a deadline, when it uses too much memory, after a number of pages, and
after being idle for long. Its messages are trusted only within limits: a page may control it.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from vedette.adapters.net import render_process
from vedette.adapters.net.render_process import LENGTHS, MAX_HTML_BYTES

Key = TypeVar("Key")

# The shell is the same engine without tabs and menus, and starts in a third of the CPU time.
BROWSER_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING_PACKAGE = "rendering needs Playwright: pip install 'vedette[render]'"
MISSING_BROWSER = "rendering needs Chromium, which was not found: install it, such as with apt install chromium"
SWITCHED_OFF = 'rendering is off: set crawl.browser = "sandboxed"'
NO_SANDBOX = (
    "the browser cannot use its sandbox here: allow user namespaces, "
    'or set crawl.browser = "unsandboxed" if you trust the sites'
)
# In the archived head of a rendered page: the cost of its rendering.
RENDERED_HEADER = "x-crawler-rendered"
_MAX_HEAD_BYTES = 1 << 16
_PIECE_BYTES = 1 << 18
_MEASURE_EVERY_S = 0.2
_END_S, _CLOSE_STEP_S = 2.0, 0.02
_STATUS_FIELDS = ("RssAnon:", "RssShmem:")


class RenderFailure(StrEnum):
    """Why a page could not be rendered."""

    TIMEOUT = "its script ran for too long"
    MEMORY = "its script took too much memory"
    CRASH = "the browser crashed on it"
    BUSY = "too many pages are waiting to be rendered"
    UNAVAILABLE = "the browser cannot be started"


@dataclass(frozen=True, slots=True)
class RenderJob:
    """A fetched page to render, and the User-Agent and site of its requests."""

    url: str
    content_type: str
    body: bytes
    agent: str


class PartWanted(NamedTuple):
    """A request of the page being rendered; it waits for ``answer_part``."""

    number: int
    url: str
    kind: str
    accept: str


class PartAnswer(NamedTuple):
    """The answer to a page's request; status 0 refuses it."""

    status: int = 0
    content_type: str = ""
    body: bytes = b""


class RenderedPage(NamedTuple):
    """The HTML of a page after its script ran, browser seconds used, and number of requests."""

    html: bytes
    seconds: float
    requests: int


class FailedPage(NamedTuple):
    """Why a page could not be rendered, and the browser seconds wasted on it."""

    reason: RenderFailure
    seconds: float = 0.0


RenderEvent = PartWanted | RenderedPage | FailedPage


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Limits on one page, on waiting ones, and on the life of a browser.

    ``script_s`` is the time without an open request after which the current state of a page is used; ``cpu_s`` and
    ``wall_s`` are when it is given up. CPU time distinguishes an endless loop from a busy machine. ``memory_bytes`` is
    for all processes of the browser together, and for the writable memory of one of them.
    """

    script_s: float = 15.0
    cpu_s: float = 15.0
    wall_s: float = 180.0
    start_s: float = 60.0
    requests: int = 40
    memory_bytes: int = 1_200 * 2**20
    grown_bytes: int = 700 * 2**20
    waiting: int = 1_000
    idle_s: float = 60.0
    pages: int = 200


def find_browser() -> str:
    """Return the path of the system's Chromium; empty if it or Playwright is missing."""
    return next(filter(None, map(shutil.which, BROWSER_NAMES)), "") if find_spec("playwright") else ""


def explain_missing_browser(setting: str = "sandboxed") -> str:
    """Return what must be installed or set before pages can be rendered; empty if nothing is missing.

    ``setting`` is that of ``crawl.browser``.
    """
    if setting == "none":
        return SWITCHED_OFF
    if find_spec("playwright") is None:
        return MISSING_PACKAGE
    return "" if find_browser() else MISSING_BROWSER


def _list_environment() -> dict[str, str]:
    """List the variables that Python needs to start; secrets of the operator are none of them."""
    return {name: text for name, text in os.environ.items() if name in {"PATH", "LANG"} or name.startswith("PYTHON")}


class _Child:
    """A render child process with its browser, and its messages so far."""

    def __init__(self, browser: str, limits: RenderLimits, *, sandbox: bool) -> None:
        self.line, theirs = socket.socketpair()
        self.line.setblocking(False)
        self.folder = tempfile.mkdtemp(prefix="vedette-render-")
        self.served = 0
        self.is_ready = False
        self._received, self._unsent = bytearray(), bytearray()
        script = str(Path(render_process.__file__))
        words = (self.folder, browser, "yes" if sandbox else "no", str(limits.memory_bytes))
        nowhere = subprocess.DEVNULL
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - our own file
                [sys.executable, "-P", script, *words],
                stdin=theirs.fileno(),
                stdout=nowhere,
                stderr=nowhere,
                env=_list_environment(),
            )

    def send(self, head: dict[str, object], body: bytes = b"") -> None:
        """Send a message to the render child, or as much of it as fits; ``flush`` sends the rest."""
        encoded = json.dumps(head).encode()
        self._unsent += LENGTHS.pack(len(encoded), len(body)) + encoded + body
        self.flush()

    def flush(self) -> None:
        """Send what is left of earlier messages."""
        with suppress(OSError):  # full buffer, or no process: the next receive notices that
            while self._unsent:
                del self._unsent[: self.line.send(self._unsent)]

    def receive(self) -> list[tuple[dict[str, Any], bytes]] | None:
        """Receive the complete messages of the render child; None if it ended or broke the protocol."""
        ended = False
        try:
            while piece := self.line.recv(_PIECE_BYTES):
                self._received += piece
                if len(self._received) > MAX_HTML_BYTES + 2 * _MAX_HEAD_BYTES:
                    break
            ended = True
        except BlockingIOError:
            pass
        except OSError:
            ended = True
        messages = self._split_messages()
        return messages or None if ended else messages

    def _split_messages(self) -> list[tuple[dict[str, Any], bytes]] | None:
        found: list[tuple[dict[str, Any], bytes]] = []
        while len(self._received) >= LENGTHS.size:
            head_bytes, body_bytes = LENGTHS.unpack_from(self._received)
            if head_bytes > _MAX_HEAD_BYTES or body_bytes > MAX_HTML_BYTES:
                return None
            body_from = LENGTHS.size + head_bytes
            if len(self._received) < body_from + body_bytes:
                break
            try:
                head = json.loads(self._received[LENGTHS.size : body_from])
            except (ValueError, RecursionError):
                return None
            found.append(
                (head if isinstance(head, dict) else {}, bytes(self._received[body_from : body_from + body_bytes]))
            )
            del self._received[: body_from + body_bytes]
        return found

    def kill(self) -> None:
        """Kill every process of the browser; the child itself reaps them, and exits."""
        self.line.close()
        for pid in list_descendants(self.process.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


class PageRenderer(Generic[Key]):
    """Submit pages under keys, answer their requests, and collect the outcomes, one page at a time."""

    def __init__(self, browser: str, limits: RenderLimits = RenderLimits(), *, sandbox: bool = True) -> None:  # noqa: B008 - it is frozen
        self._browser, self._limits, self._sandbox = browser, limits, sandbox
        self._poll = select.epoll()
        self._waiting: deque[tuple[Key, RenderJob]] = deque()
        self._events: list[tuple[Key, RenderEvent]] = []
        self._child: _Child | None = None
        self._current: tuple[Key] | None = None
        self._dying: list[tuple[_Child, float]] = []
        self._parts: set[int] = set()
        self._started_s = self._worked_until_s = self._worked_s = self._measured_s = self._cpu_before_s = 0.0
        self.trouble = ""

    @property
    def fd(self) -> int:
        """File descriptor that is readable when ``collect`` may have something; it stays the same."""
        return self._poll.fileno()

    @property
    def pending(self) -> int:
        """Number of submitted pages without an outcome."""
        return len(self._waiting) + len(self._events) + (self._current is not None)

    @property
    def is_alive(self) -> bool:
        """Whether ``collect`` must be called: a page waits, or a browser runs or is exiting."""
        return bool(self.pending or self._child or self._dying)

    def submit(self, key: Key, job: RenderJob) -> None:
        """Submit a page to be rendered; if too many wait, its outcome is a failure that says so."""
        if len(self._waiting) >= self._limits.waiting:
            self._events.append((key, FailedPage(RenderFailure.BUSY)))
            return
        self._waiting.append((key, job))
        self._start_next()

    def answer_part(self, number: int, answer: PartAnswer) -> None:
        """Answer a request of the page being rendered; late answers are ignored."""
        if self._child is None or number not in self._parts:
            return
        self._parts.discard(number)
        if not self._parts:
            self._worked_until_s = time.monotonic()
        head: dict[str, object] = {"type": "part", "id": number, "status": answer.status}
        self._child.send({**head, "content_type": answer.content_type}, answer.body)

    def collect(self) -> list[tuple[Key, RenderEvent]]:
        """Return the requests and outcomes of pages since the last call, in order."""
        self._reap()
        if self._child is not None:
            self._check_child(self._child)
        self._start_next()
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Drop the waiting pages and end the browser, leaving no process behind."""
        self._drop_child()
        self._waiting.clear()
        while self._dying:
            self._reap()
            time.sleep(_CLOSE_STEP_S)  # they exit by themselves; this is the polling interval
        self._poll.close()

    def _reap(self) -> None:
        """Wait for exited children, kill those that hang, and remove their files."""
        for child, until_s in self._dying:
            if time.monotonic() > until_s:
                child.process.kill()
            if child.process.poll() is not None:
                shutil.rmtree(child.folder, ignore_errors=True)
        self._dying = [one for one in self._dying if one[0].process.returncode is None]

    def _check_child(self, child: _Child) -> None:
        child.flush()
        messages = child.receive()
        for head, body in messages or ():
            self._handle_message(child, head, body)
        if child is not self._child:
            return
        now_s = time.monotonic()
        if messages is None:
            self._finish(RenderFailure.CRASH)
        elif self._current is None:
            if now_s - self._started_s > self._limits.idle_s:
                self._drop_child()
        elif (failure := self._find_excess(child, now_s)) is not None:
            self._finish(failure)

    def _find_excess(self, child: _Child, now_s: float) -> RenderFailure | None:
        """Return which limit the current page has exceeded; None if it is within all."""
        limits, late_s = self._limits, now_s - self._started_s
        if not child.is_ready:
            return RenderFailure.UNAVAILABLE if late_s > limits.start_s else None
        if late_s > limits.wall_s:
            return RenderFailure.TIMEOUT
        if now_s - self._measured_s < _MEASURE_EVERY_S:
            return None
        self._measured_s = now_s
        usage = measure_usage(child.process.pid)
        if usage.memory_bytes > limits.memory_bytes:
            return RenderFailure.MEMORY
        return RenderFailure.TIMEOUT if usage.cpu_s - self._cpu_before_s > limits.cpu_s else None

    def _handle_message(self, child: _Child, head: dict[str, Any], body: bytes) -> None:
        kind = head.get("type")
        if kind == "ready":
            child.is_ready = True
            self._begin_clock(child)
        elif kind == "unavailable":
            self.trouble = NO_SANDBOX if "sandbox" in str(head.get("why")).lower() else str(head.get("why"))[:200]
            self._finish(RenderFailure.UNAVAILABLE)
        elif self._current is None:
            self._drop_child()  # an unexpected message
        elif kind == "part":
            self._on_part(head)
        elif kind == "done":
            self._stop_clock()
            self._finish(RenderedPage(body, self._worked_s, len(self._parts) + _to_count(head.get("asked"))))
        else:
            self._finish(RenderFailure.CRASH)

    def _on_part(self, head: dict[str, Any]) -> None:
        number, url = head.get("id"), head.get("url")
        if not isinstance(number, int) or not isinstance(url, str) or self._current is None:
            self._finish(RenderFailure.CRASH)
            return
        if not self._parts:
            self._stop_clock()
        self._parts.add(number)
        self._events.append((self._current[0], PartWanted(number, url, str(head.get("kind")), str(head.get("accept")))))

    def _begin_clock(self, child: _Child) -> None:
        self._started_s = self._worked_until_s = self._measured_s = time.monotonic()
        self._worked_s = 0.0
        self._cpu_before_s = measure_usage(child.process.pid).cpu_s

    def _stop_clock(self) -> None:
        """Count the time since the page last waited for a request as work."""
        now_s = time.monotonic()
        if not self._parts:
            self._worked_s += now_s - self._worked_until_s
            self._worked_until_s = now_s

    def _start_next(self) -> None:
        while self._waiting and self._current is None:
            key, job = self._waiting.popleft()
            self._current, self._worked_s = (key,), 0.0
            self._started_s = self._worked_until_s = time.monotonic()
            try:
                child = self._child = self._child or self._start_child()
            except OSError:
                self._finish(RenderFailure.UNAVAILABLE)
                continue
            child.served += 1
            self._begin_clock(child)
            head = {"type": "render", "url": job.url, "content_type": job.content_type, "agent": job.agent}
            child.send({**head, "most": self._limits.requests, "script_s": self._limits.script_s}, job.body)

    def _start_child(self) -> _Child:
        child = _Child(self._browser, self._limits, sandbox=self._sandbox)
        self._poll.register(child.line.fileno(), select.EPOLLIN)
        return child

    def _finish(self, outcome: RenderedPage | RenderFailure) -> None:
        """Record the outcome of the current page; kill a browser that failed, is old or has grown."""
        if self._current is not None:
            self._stop_clock()
            ended = FailedPage(outcome, self._worked_s) if isinstance(outcome, RenderFailure) else outcome
            self._events.append((self._current[0], ended))
        self._current, self._started_s = None, time.monotonic()
        self._parts.clear()
        child = self._child
        if child is not None and (isinstance(outcome, RenderFailure) or self._is_worn(child)):
            self._drop_child()

    def _is_worn(self, child: _Child) -> bool:
        limits = self._limits
        return child.served >= limits.pages or measure_usage(child.process.pid).memory_bytes > limits.grown_bytes

    def _drop_child(self) -> None:
        if self._child is not None:
            self._poll.unregister(self._child.line.fileno())
            self._child.kill()
            self._dying.append((self._child, time.monotonic() + _END_S))
            self._child = None


def list_descendants(pid: int) -> list[int]:
    """List the processes below a process, whatever session they are in."""
    parents: dict[int, list[int]] = {}
    for name in (path.name for path in Path("/proc").iterdir()):
        with suppress(OSError, IndexError, ValueError):
            parents.setdefault(int(_read_stat(int(name))[1]), []).append(int(name))
    found, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


class Usage(NamedTuple):
    """Resource use of a process and its descendants: private bytes, and CPU time so far."""

    memory_bytes: int
    cpu_s: float


def measure_usage(pid: int) -> Usage:
    """Measure the memory and CPU time of a process and its descendants."""
    family = (pid, *list_descendants(pid))
    return Usage(sum(map(_read_memory_bytes, family)), sum(map(_read_cpu_s, family)))


def _read_memory_bytes(pid: int) -> int:
    with suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(_STATUS_FIELDS)) * 1024
    return 0


def _read_cpu_s(pid: int) -> float:
    with suppress(OSError, IndexError, ValueError):
        user, system = _read_stat(pid)[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _read_stat(pid: int) -> list[str]:
    """Read the numbers of a process from its state on, past a name that may contain anything."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _to_count(value: object) -> int:
    return min(max(value, 0), 10_000) if isinstance(value, int) else 0
