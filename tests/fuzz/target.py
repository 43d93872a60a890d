"""Fuzzing targets: each parser of untrusted input, with what must be true for any bytes, and valid seeds.

A check returns normally for every input, however broken. ``tools/fuzz.py`` looks for inputs that break this, guided by
coverage; ``tests/hostile`` tries damaged seeds and the inputs that earlier runs found useful.
"""

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

__all__ = ["TARGETS", "Target", "load_corpus", "load_target", "make_folder"]

CORPUS = Path(__file__).parent / "corpus"
# Modules by target, imported when needed: instrumenting them all takes longer than many runs.
TARGETS = {
    "query": "query",
    "api": "api",
    "markup": "markup",
    "sitemap": "discovery",
    "feed": "discovery",
    "robots": "discovery",
    "warc": "archives",
    "pdf": "documents",
    "office": "documents",
    "markdown": "documents",
}


class Target(NamedTuple):
    """A parser to fuzz; ``mutate`` changes the inside of an input whose outside must stay valid.

    Inputs have at most ``most_bytes``; ``tests/hostile/test_parser_bounds.py`` tries large ones.
    """

    check: Callable[[bytes], None]
    seeds: Sequence[bytes]
    tokens: Sequence[bytes]
    mutate: Callable[[bytes, Callable[[bytes], bytes], int], bytes] | None = None
    most_bytes: int = 8_192


def load_target(name: str) -> Target:
    """Import a target."""
    found: Target = getattr(import_module(f"tests.fuzz.{TARGETS[name]}"), name.upper())
    return found


def load_corpus(name: str) -> list[bytes]:
    """Load the inputs of a target that earlier runs found useful."""
    file = CORPUS / f"{name}.zip"
    if not file.exists():
        return []
    with zipfile.ZipFile(file) as archive:
        return [archive.read(info) for info in archive.infolist()]


def make_folder() -> Path:
    """Create a folder for a target that works on files; it is deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="vedette-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
