"""A document child process that was taken over: ``python -m tests.adapters.documents.hostile_process``.

It is the real one, except that a document is a line of Python that its parser runs. The result is the text, and an
exception's name is the title.
"""

import ctypes
import os
import resource
import signal
import socket
import subprocess
from pathlib import Path

from vedette.adapters.documents import process
from vedette.adapters.documents.outcomes import Bounds, DocumentContent, Verdict

NAMES = {each.__name__: each for each in (ctypes, os, resource, signal, socket, subprocess)} | {"Path": Path}


def run(data: bytes, bounds: Bounds) -> DocumentContent:  # noqa: ARG001 - as the real one
    """Run a line of Python in place of a parser."""
    try:
        return DocumentContent(Verdict.TEXT, 1, "", str(eval(data, dict(NAMES))))  # noqa: S307 - this is the attack
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # noqa: BLE001 - the test reads its name
        return DocumentContent(Verdict.TEXT, 1, type(error).__name__, "")


if __name__ == "__main__":
    process.read_document = run
    process.main()
