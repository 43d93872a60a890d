"""Subprocesses that exit with their parent, even if it is killed."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel kill this subprocess when its parent exits."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def is_orphan(parent: int) -> bool:
    """Check whether a subprocess's parent had exited before ``die_with_parent`` took effect."""
    return os.getppid() != parent


def ignore_sigint() -> None:
    """Ignore Ctrl-C in a subprocess; it reaches every process of a terminal, and the parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
