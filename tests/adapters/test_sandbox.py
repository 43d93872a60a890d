"""A hostile document in the reader process can do nothing: the kernel refuses, and the outcome says so."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from vedette.adapters.documents.reader import (
    DocumentFailure,
    DocumentFailureReason,
    DocumentLimits,
    DocumentReader,
    DocumentText,
    read_and_wait,
)
from vedette.adapters.sandbox import Sandbox, find_sandbox

COMMAND = (sys.executable, "-m", "tests.adapters.documents.hostile_process")
LIMITS = DocumentLimits(wall_s=300.0, memory_bytes=512 * 2**20)
FOUND = find_sandbox()
needs_seccomp = pytest.mark.skipif(not FOUND.seccomp, reason="this machine has no seccomp filter for us")
needs_landlock = pytest.mark.skipif(not FOUND.landlock, reason="this kernel has no Landlock")


@pytest.fixture(scope="module")
def reader() -> Iterator[DocumentReader[int]]:
    """A reader whose child does what documents say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        patch.setenv("WIKI_PASSWORD", "plover")
        with closing(DocumentReader[int](LIMITS, COMMAND)) as reader:
            yield reader


def attempt(reader: DocumentReader[int], line: str) -> DocumentText | DocumentFailure:
    """Run a line of Python in the child."""
    return read_and_wait(reader, line.replace("PARENT", str(os.getpid())).encode())


@needs_seccomp
@pytest.mark.parametrize(
    "line",
    [
        "socket.socket(socket.AF_INET)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "socket.create_connection(('127.0.0.1', 9))",
        "os.execv('/bin/true', ['true'])",
        "subprocess.run(['/bin/true'])",
        "os.fork()",
        "[os.fork() for _ in range(10_000)]",
        "os.kill(PARENT, 0)",
        "resource.prlimit(PARENT, resource.RLIMIT_CORE)",
        "os.memfd_create('program')",
        "os.setuid(0)",
        "os.unshare(0x10000000) if hasattr(os, 'unshare') else os.chroot('/')",
    ],
)
def test_a_call_that_no_reader_needs_fails(reader: DocumentReader[int], line: str) -> None:
    """Sockets, programs, processes, signals and privileges are refused, and the child continues."""
    assert attempt(reader, line) == DocumentText("PermissionError", "", 1)


@needs_seccomp
@pytest.mark.parametrize("number", [101, 310, 321, 425, 298, 165])
def test_other_ways_out_fail(reader: DocumentReader[int], number: int) -> None:
    """ptrace, process_vm_readv, bpf, io_uring_setup, perf_event_open and mount, called by number."""
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of these system calls are those of x86_64")
    assert attempt(reader, f"ctypes.CDLL(None).syscall({number}, 0, 0, 0, 0, 0)") == DocumentText("", "-1", 1)


@needs_landlock
@pytest.mark.parametrize(
    "line",
    [
        "Path('/etc/passwd').read_text()",
        "Path('/proc/self/environ').read_text()",
        "Path('/proc/PARENT/mem').open('rb')",
        "list(Path('/').iterdir())",
        "Path('HERE/secret').read_text()",
        "list(Path('HERE').iterdir())",
        "Path('HERE/secret').write_text('x')",
        "Path('HERE/new').touch()",
        "Path('HERE/secret').unlink()",
        "Path('/dev/shm/new').touch()",
        "Path(os.__file__).open('r+')",
    ],
)
def test_files_cannot_be_opened(reader: DocumentReader[int], line: str, tmp_path: Path) -> None:
    """Files can be neither read, listed nor written, wherever they are."""
    (tmp_path / "secret").write_text("plover")
    assert attempt(reader, line.replace("HERE", str(tmp_path))) == DocumentText("PermissionError", "", 1)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("secret", "plover")]


def test_the_environment_has_no_secrets(reader: DocumentReader[int]) -> None:
    """Credentials of sites that are environment variables are not passed on."""
    found = attempt(reader, "dict(os.environ)")
    assert isinstance(found, DocumentText)
    assert "PYTHONPATH" in found.text
    assert "plover" not in found.text


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("bytes(2**30)", DocumentFailureReason.MEMORY),
        ("[bytes(2**20) for _ in range(4096)]", DocumentFailureReason.MEMORY),
        ("ctypes.string_at(0)", DocumentFailureReason.CRASH),
        ("os._exit(0)", DocumentFailureReason.CRASH),
    ],
)
def test_other_deeds_have_an_outcome(reader: DocumentReader[int], line: str, outcome: DocumentFailureReason) -> None:
    """Memory is refused, and a crash affects one document."""
    assert attempt(reader, line) == DocumentFailure(outcome)
    assert attempt(reader, "1 + 1") == DocumentText("", "2", 1)


def test_the_library_folders_are_enough(reader: DocumentReader[int]) -> None:
    """Modules, codecs and shared libraries can still be loaded when they are first used."""
    line = "[__import__(name).__name__ for name in ('pypdfium2', 'markdown_it', 'zipfile', 'encodings.shift_jis')]"
    found = attempt(reader, line)
    assert isinstance(found, DocumentText)
    assert not found.title


BROWSING = """
import ctypes, encodings.ascii, os, subprocess, sys  # all now: another user may not be able to read Python
from pathlib import Path
from vedette.adapters.net.render_process import _confine

own, outside, user = sys.argv[1:]
if user != "0" and os.getuid() == 0:
    os.setgroups([])
    os.setresgid(int(user), int(user), int(user))
    os.setresuid(int(user), int(user), int(user))
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, as in a process that this user started
before = os.getuid()
_confine(own, sys.executable, 1 << 30, sandbox=False)
assert before == 0 or os.getuid() == before, "nobody can start a sandbox as a user that is not mapped"
(Path(own) / "written").write_text("x")
assert subprocess.run(["/bin/true"]).returncode == 0
for deed in (lambda path: path.read_text(), lambda path: path.write_text("x"), lambda path: path.unlink()):
    try:
        deed(Path(outside))
    except PermissionError:
        continue
    sys.exit("it could")
"""


@needs_landlock
@pytest.mark.parametrize("user", [0, 1234])
def test_a_browser_has_its_own_files_alone(user: int) -> None:
    """A process started like the browser can start programs, but reach no files of others that all may use."""
    with TemporaryDirectory() as name:
        own, outside = Path(name) / "own", Path(name) / "data" / "secret"
        for folder in (Path(name), own, outside.parent):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o777)
        outside.write_text("plover")
        outside.chmod(0o666)
        subprocess.run([sys.executable, "-c", BROWSING, own, outside, str(user)], check=True)
        assert outside.read_text() == "plover"


@pytest.mark.parametrize(
    ("sandbox", "part"),
    [
        (Sandbox(7, seccomp=True), "no files (Landlock)"),
        (Sandbox(0, seccomp=True), "files are readable"),
        (Sandbox(4, seccomp=False), "no TCP"),
        (Sandbox(0, seccomp=False), "neither Landlock nor seccomp"),
    ],
)
def test_what_protects_is_said(sandbox: Sandbox, part: str) -> None:
    """There is one sentence for each kind of machine."""
    assert part in str(sandbox)
