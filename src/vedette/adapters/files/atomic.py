"""Atomic file replacement: a reader finds the old content or the new, never a part of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replace_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a draft to replace a file atomically; it takes effect if the block ends without an error."""
    draft = path.with_name(f"{path.name}.new")
    with draft.open("w+b") as file:
        yield file
    draft.replace(path)


def replace_text(path: Path, text: str) -> None:
    """Replace a small text file atomically."""
    with replace_file(path) as file:
        file.write(text.encode())


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that its file names survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
