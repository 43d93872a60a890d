"""Sandbox of a process that reads untrusted files: no network, no files but program libraries, no other program.

Two features of the kernel, each used where it exists: Landlock decides which files can be opened, seccomp which system
calls can be made at all. A denied call fails with EPERM or EACCES, so that the reader reports an ordinary error. Both
work without privileges, also in containers, and cannot be undone.

Why by hand: the packages on PyPI are a development release (landlock) and a binding that needs a system library
(pyseccomp), and all that is needed is four system calls.
"""

import ctypes
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple

_PR_SET_NO_NEW_PRIVS, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 21, 22, 2

# Landlock, include/uapi/linux/landlock.h: system calls have the same numbers everywhere.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FILES_ALONE = _EXECUTE | _WRITE_FILE | _READ_FILE  # the rights that can be given to a file
_FILE_RIGHTS_BY_VERSION = (0, 13, 14, 15, 15)  # how many there are; 16 from version 5 on
_NETWORK_SINCE, _TCP_RIGHTS = 4, 0b11  # bind, connect
_SCOPES_SINCE, _SCOPES = 6, 0b11  # abstract sockets, signals
_RULESET, _RULE = Struct("=QQQ"), Struct("=Qi")

# seccomp, include/uapi/linux/{seccomp,filter,audit}.h.
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL_WITH_EPERM, _KILL = 0x7FFF0000, 0x00050001, 0x80000000
_AT_NUMBER, _AT_MACHINE, _AT_FIRST_ARGUMENT = 0, 4, 16
_INSTRUCTION = Struct("=HBBI")
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# System calls of a Python process that reads a file in memory and answers on a socket, with their numbers on x86_64
# and aarch64.
_CALLS = """
    read 0 63, write 1 64, open 2 -, close 3 57, stat 4 -, fstat 5 80, lstat 6 -, poll 7 -, lseek 8 62, mmap 9 222,
    mprotect 10 226, munmap 11 215, brk 12 214, rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139,
    pread64 17 67, readv 19 65, access 21 -, sched_yield 24 124, mremap 25 216, madvise 28 233, nanosleep 35 101,
    getpid 39 172, sendto 44 206, recvfrom 45 207, recvmsg 47 212, getsockname 51 204, getsockopt 55 209,
    exit 60 93, uname 63 160, fcntl 72 25, getcwd 79 17, readlink 89 -, gettimeofday 96 169, getrlimit 97 163,
    getrusage 98 165, sysinfo 99 179, times 100 153, getuid 102 174, getgid 104 176, geteuid 107 175,
    getegid 108 177, sigaltstack 131 132, setrlimit 160 164, gettid 186 178, time 201 -, futex 202 98,
    sched_getaffinity 204 123, getdents64 217 61, restart_syscall 219 128, clock_gettime 228 113,
    clock_getres 229 114, clock_nanosleep 230 115, exit_group 231 94, openat 257 56, newfstatat 262 79,
    readlinkat 267 78, faccessat 269 48, ppoll 271 73, set_robust_list 273 99, getrandom 318 278, statx 332 291,
    rseq 334 293, faccessat2 439 439
"""
_SET_OWN_LIMIT = (302, 261)  # prlimit64, allowed for this process (0) only
_LIBRARY_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")


class Sandbox(NamedTuple):
    """What confines a process: the version of Landlock (0 without it), and whether system calls are filtered."""

    landlock: int
    seccomp: bool

    def __str__(self) -> str:
        """Say in one sentence what protects against a document that takes over its reader."""
        if self.landlock and self.seccomp:
            return "no network, no other programs (seccomp), no files (Landlock)"
        if self.seccomp:
            return "no network, no other programs (seccomp); files are readable: this kernel has no Landlock"
        if self.landlock:
            return f"no files{_describe_tcp(self.landlock)} (Landlock); other programs: no seccomp on this machine"
        return "limits of memory and time only: this kernel has neither Landlock nor seccomp"


def _describe_tcp(version: int) -> str:
    return ", no TCP" if version >= _NETWORK_SINCE else ""


def find_sandbox() -> Sandbox:
    """Find out what can confine a process on this machine, without confining this one."""
    libc = _load_libc()
    version = max(libc.syscall(_CREATE_RULESET, None, 0, _GET_VERSION), 0)
    return Sandbox(version, platform.machine() in _MACHINES and libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0)


def enter_sandbox() -> Sandbox:
    """Confine this process for good, as far as the machine can; return what worked."""
    libc = _load_libc()
    forbid_privileges()
    found = find_sandbox()
    readable = dict.fromkeys(_list_readable(), _READ_FILE | _READ_FOLDER)
    landlock = found.landlock if found.landlock and _restrict_files(libc, found.landlock, readable) else 0
    return Sandbox(landlock, found.seccomp and _filter_calls(libc))


def hide_files(programs: Iterable[str], devices: Iterable[str], own: Iterable[str]) -> bool:
    """Hide all files from this process and those it starts, for good, but these; return whether it worked.

    Those under ``programs`` can be read and executed, those under ``devices`` also written, and those under ``own``
    changed in any way. New TCP connections are denied. It needs the capability CAP_SYS_ADMIN or ``forbid_privileges``,
    and a kernel with Landlock.
    """
    libc = _load_libc()
    version = find_sandbox().landlock
    if not version:
        return False
    rights = dict.fromkeys(programs, _EXECUTE | _READ_FILE | _READ_FOLDER)
    rights |= dict.fromkeys(devices, _EXECUTE | _READ_FILE | _READ_FOLDER | _WRITE_FILE)
    return _restrict_files(libc, version, rights | dict.fromkeys(own, _list_file_rights(version)))


def forbid_privileges() -> None:
    """Have this process and those it starts never gain privileges, such as by a setuid program."""
    _load_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _load_libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _list_readable() -> list[str]:
    """List what may still be opened: modules and libraries that are loaded at their first use."""
    ours = str(Path(__file__).parents[2])
    modules = [path for path in sys.path if path and Path(path).is_absolute()]
    return [*dict.fromkeys([sysconfig.get_path("stdlib"), ours, *modules, *_LIBRARY_FOLDERS])]


def _list_file_rights(version: int) -> int:
    bits = _FILE_RIGHTS_BY_VERSION[version] if version < len(_FILE_RIGHTS_BY_VERSION) else 16
    return (1 << bits) - 1


def _restrict_files(libc: ctypes.CDLL, version: int, rights: Mapping[str, int]) -> bool:
    """Restrict what can be done with files to these rights by path, and forbid TCP."""
    tcp = _TCP_RIGHTS if version >= _NETWORK_SINCE else 0
    scopes = _SCOPES if version >= _SCOPES_SINCE else 0
    size = 24 if scopes else 16 if tcp else 8
    rules = libc.syscall(_CREATE_RULESET, _RULESET.pack(_list_file_rights(version), tcp, scopes), size, 0)
    if rules < 0:
        return False
    try:
        for path, allowed in rights.items():
            with suppress(OSError):
                _allow(libc, rules, path, allowed)
        return bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    rights &= -1 if Path(path).is_dir() else _FILES_ALONE
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, _RULE.pack(rights, place), 0)
    finally:
        os.close(place)


def _filter_calls(libc: ctypes.CDLL) -> bool:
    """Let every system call fail that is not listed; on another machine's numbers, end the process."""
    code = b"".join(_INSTRUCTION.pack(*each) for each in _build_filter(*_MACHINES[platform.machine()]))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = Struct("@HP").pack(len(code) // _INSTRUCTION.size, ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0) == 0)


def _list_calls(column: int) -> list[int]:
    numbers = [each.split()[1 + column] for each in _CALLS.split(",")]
    return [int(number) for number in numbers if number != "-"]


def _build_filter(column: int, machine: int) -> Iterable[tuple[int, int, int, int]]:
    """Build the program that decides about a system call (classic BPF); jumps are relative."""
    yield _LOAD, 0, 0, _AT_MACHINE
    yield _JUMP_IF_EQUAL, 1, 0, machine
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _AT_NUMBER
    for number in _list_calls(column):
        yield _JUMP_IF_EQUAL, 0, 1, number
        yield _RETURN, 0, 0, _ALLOW
    yield _JUMP_IF_EQUAL, 0, 3, _SET_OWN_LIMIT[column]
    yield _LOAD, 0, 0, _AT_FIRST_ARGUMENT
    yield _JUMP_IF_EQUAL, 0, 1, 0
    yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _FAIL_WITH_EPERM
