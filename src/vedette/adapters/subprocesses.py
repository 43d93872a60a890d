"""Subprocesses that exit with their parent, even if it is killed, and go on if what they print is lost."""

import ctypes
import os
import signal
from contextlib import suppress
from typing import TextIO

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


class LossyOutput:
    """A text stream that drops what cannot be written, such as to a log file on a full disk."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text if possible."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what was written, if possible."""
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
