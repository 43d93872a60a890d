"""Start our own programs by forking a process that has imported them: importing takes 0.7 s of CPU, a fork 0.02 s.

``install`` makes ``subprocess`` start every ``vedette…``, ``python -m vedette…`` and ``python -m tests…`` this way.
Each is still a separate process: a child of the test's process, with its own arguments, folder, environment, streams,
session and signals. Other commands get a fresh interpreter, and so does every command of ``make prove``. The new
process must be a child of the test's process, not of the server. So the server forks twice, and the process in between
ends. The kernel then looks for the nearest ancestor that adopts orphans: the test's process, which does so during the
call.
"""

import atexit
import ctypes
import gc
import io
import os
import pickle
import runpy
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self

from vedette.text import split_words

ROOT = Path(__file__).parents[1]
PR_SET_CHILD_SUBREAPER = 36
# Of the settings that an interpreter reads at its start only these are followed by a fork.
KNOWN_SETTINGS = frozenset({"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"})
STARTED_WITH = dict(os.environ)
# Modules that commands import late.
LATE_MODULES = (
    "vedette.runtime.processes.indexer",
    "vedette.runtime.processes.notifier",
    "vedette.runtime.processes.event_recorder",
    "vedette.runtime.processes.hub_client",
    "vedette.runtime.search.searcher",
    "vedette.lab.worlds.synthetic.server",
    "tests.tree_worlds",
)
# Commands that import the metrics, whose library reads at its import where several servers add up their counts.
COUNTING_COMMANDS = frozenset({"search"})
_HEAD = struct.Struct("I")


class Job(NamedTuple):
    """A program to run: its module, arguments, working folder and environment, and whether it leads a session."""

    module: str
    arguments: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    leads_session: bool


class ForkServer:
    """A process that has imported our modules and forks on request."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=ROOT, start_new_session=True)
        self._lock = threading.Lock()
        atexit.register(self._close)

    def start(self, job: Job, streams: Sequence[int]) -> int:
        """Start a program with these three streams; return the number of its process, a child of this one."""
        body = pickle.dumps(job)
        with self._lock:
            _take_in_orphans(True)
            try:
                socket.send_fds(self._line, [_HEAD.pack(len(body))], list(streams))
                self._line.sendall(body)
                answer = _receive(self._line, _HEAD.size)
            finally:
                _take_in_orphans(False)
        if not answer:
            raise ChildProcessError("the fork server of the tests has ended")
        pid: int = _HEAD.unpack(answer)[0]
        return pid

    def _close(self) -> None:
        self._line.close()
        self._process.wait()


class ForkingPopen(subprocess.Popen[Any]):
    """A ``Popen`` that uses the fork server where it can."""

    _server: "ForkServer | None" = None

    def _execute_child(self: Self, *words: Any) -> None:
        args, executable, preexec, _, passed, cwd, env, _, _, shell = words[:10]
        session, group = words[21:23]
        is_plain = not (executable or preexec or passed or shell) and group == -1
        job = find_job(args, cwd, env, leads_session=bool(session)) if is_plain else None
        if job is None:
            super()._execute_child(*words)  # type: ignore[misc]  # the place where Popen starts a process, not in its stubs
            return
        if ForkingPopen._server is None:
            ForkingPopen._server = ForkServer()
        streams = [own if given == -1 else given for own, given in enumerate((words[10], words[13], words[15]))]
        self.pid = ForkingPopen._server.start(job, streams)
        self._child_created = True
        self._close_pipe_fds(*words[10:16])  # type: ignore[attr-defined]  # as Popen does after a start


def install() -> None:
    """Make ``subprocess`` start our own programs with the fork server."""
    subprocess.Popen = ForkingPopen  # type: ignore[misc]  # for all who start programs, the package itself included


def find_job(args: object, cwd: object, env: Mapping[str, str] | None, *, leads_session: bool) -> Job | None:
    """Return what a command runs if it is one of our own modules in this interpreter with its usual settings."""
    environment = dict(os.environ if env is None else env)
    if isinstance(args, list | tuple) and args and _is_program(args[0], environment):
        args = [sys.executable, "-m", "vedette", *args[1:]]
    if not isinstance(args, list | tuple) or len(args) < 3 or (args[0], args[1]) != (sys.executable, "-m"):
        return None
    module, *arguments = (os.fspath(word) for word in args[2:])
    settings = {name for name in environment if name.startswith("PYTHON") and name not in KNOWN_SETTINGS}
    changed = {name for name in settings if environment[name] != STARTED_WITH.get(name)}
    if module.partition(".")[0] not in {"vedette", "tests"} or changed or module == __name__:
        return None
    return Job(module, tuple(arguments), os.fspath(cwd or Path.cwd()), environment, leads_session)  # type: ignore[call-overload]  # a path


def _is_program(word: object, environment: Mapping[str, str]) -> bool:
    """Check whether the first word of a command is the ``vedette`` script of this environment."""
    found = shutil.which(word, path=environment.get("PATH")) if isinstance(word, str) else None
    return found == str(Path(sys.executable).parent / "vedette")


def _take_in_orphans(whether: bool) -> None:  # noqa: FBT001 - a switch
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0)


def _receive(line: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = line.recv(size - len(got))
        if not more:
            return b""
        got += more
    return got


def serve(line: socket.socket) -> Job:
    """Fork for every request until the connection is closed; return the job in each new process."""
    while True:
        head, streams, _, _ = socket.recv_fds(line, _HEAD.size, 3)
        body = _receive(line, _HEAD.unpack(head)[0]) if head else b""
        if not body:
            sys.exit()
        report, tell = os.pipe()
        between = os.fork()
        if between == 0:
            between = os.getpid()
            pid = os.fork()
            if pid:
                os.write(tell, _HEAD.pack(pid))
                os._exit(0)
            while os.getppid() == between:
                time.sleep(0.001)
            for used in (line.detach(), report, tell):
                os.close(used)
            job: Job = pickle.loads(body)  # noqa: S301 - from the process that started this one
            _become(job, streams)
            return job
        os.waitpid(between, 0)
        line.sendall(os.read(report, _HEAD.size))
        for used in (*streams, report, tell):
            os.close(used)


def _become(job: Job, streams: Sequence[int]) -> None:
    """Take over a job's session, folder, environment, arguments and streams."""
    if job.leads_session:
        os.setsid()
    for own, given in enumerate(streams):
        os.dup2(given, own)
    for given in streams:
        os.close(given)
    os.chdir(job.folder)
    os.environ.clear()
    os.environ.update(job.environment)
    sys.path[0] = job.folder
    sys.argv = ["", *job.arguments]
    depth = 0 if job.environment.get("PYTHONUNBUFFERED") else -1
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115 - a stream
    sys.stdout = sys.__stdout__ = _open_stream(1, "strict", depth)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _open_stream(2, "backslashreplace", depth)  # type: ignore[misc]


def _open_stream(number: int, errors: str, depth: int) -> io.TextIOWrapper:
    raw = open(number, "wb", buffering=depth, closefd=False)  # noqa: SIM115 - a stream
    by_lines = number == 2 or os.isatty(number)
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, line_buffering=by_lines, write_through=depth == 0)


def _import_programs() -> None:
    commands = import_module("vedette.cli.main").COMMANDS
    for name in (*(each.module for each in commands if each.name not in COUNTING_COMMANDS), *LATE_MODULES):
        import_module(name)
    split_words("é")  # builds the table that folds characters
    assert "prometheus_client" not in sys.modules, "it would count for one process alone"
    gc.collect()
    gc.freeze()


def main() -> None:
    """Serve the process that started this one."""
    line = socket.socket(fileno=int(sys.argv[1]))
    _import_programs()
    job = serve(line)
    sys.modules.pop(job.module, None)
    runpy.run_module(job.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
