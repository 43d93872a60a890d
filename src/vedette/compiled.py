"""Say whether the hot modules run compiled, and warn if one was edited since it was compiled.

``hatch_build.py`` compiles them with mypyc where there is a C compiler; the same files run interpreted. Python prefers
a compiled module to its source, however old it is, so the stamp that compiling leaves is compared with the sources at
each start: about 0.2 ms.
"""

import sys
import warnings
import zlib
from pathlib import Path

PACKAGE = Path(__file__).parent
STAMP = PACKAGE / "compiled.txt"


def read_stamp() -> dict[str, str]:
    """Return the checksum of each compiled source by its path, and the interpreter under ``python``; empty if none."""
    try:
        lines = STAMP.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


def checksum(source: Path) -> str:
    """Return the checksum of a source file; empty if there is none."""
    return f"{zlib.crc32(source.read_bytes()):08x}" if source.is_file() else ""


def is_compiled() -> bool:
    """Say whether this interpreter imports compiled modules."""
    return read_stamp().get("python") == sys.implementation.cache_tag


def get_form() -> str:
    """Return the form in which the hot modules run: ``compiled`` or ``interpreted``."""
    return "compiled" if is_compiled() else "interpreted"


def find_edited() -> list[str]:
    """Return the sources that differ from what was compiled from them."""
    sources = {path: value for path, value in read_stamp().items() if path.endswith(".py")}
    return [path for path, value in sources.items() if checksum(PACKAGE / path) != value]


def warn_if_edited() -> None:
    """Warn if an edit has no effect because the compiled form is older."""
    if read_stamp().get("python") == "unfinished":
        warnings.warn("compiling was interrupted: run make setup", RuntimeWarning, stacklevel=2)
    edited = find_edited() if is_compiled() else []
    if edited:
        message = f"edited after being compiled, so the edit has no effect: {', '.join(edited)}; run make setup"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
