"""Child processes that end with their parent, even where that one is killed."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """From now on the kernel ends this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def is_orphan(parent: int) -> bool:
    """Whether the parent had ended before the kernel was asked to look after it."""
    return os.getppid() != parent


def ignore_sigint() -> None:
    """Ctrl-C reaches every process of a terminal; the parent answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
