"""Sessions of the console, one small file each, written by the servers: signing in waits for no other process.

A file is named by the digest of the session's secret, which is not stored. It contains when (wall time) the session was
opened, and the digest of the operator's token at that time: a new token closes every session.
"""

import re
from contextlib import suppress
from pathlib import Path

from vedette.adapters.files.atomic import replace_text

SESSIONS_DIR = "sessions"
MAX_SESSION_S = 12 * 3600.0
_DIGEST = re.compile("[0-9a-f]{64}")


def open_session(folder: Path, digest: str, token_digest: str, wall_s: float) -> None:
    """Open a session of the console in a data folder, and delete the files of expired ones."""
    sessions = folder / SESSIONS_DIR
    sessions.mkdir(mode=0o700, exist_ok=True)
    for path in sessions.iterdir():
        opened_s = _read(path)[0]
        if opened_s is not None and wall_s - opened_s > MAX_SESSION_S:
            path.unlink(missing_ok=True)
    replace_text(sessions / digest, f"{wall_s!r} {token_digest}")


def close_session(folder: Path, digest: str) -> None:
    """Close a session of the console."""
    if _DIGEST.fullmatch(digest):
        (folder / SESSIONS_DIR / digest).unlink(missing_ok=True)


def read_session_start(folder: Path, digest: str, token_digest: str) -> float | None:
    """Return when (wall time) a session was opened with this token; None if there is no such session."""
    opened_s, token = _read(folder / SESSIONS_DIR / digest) if _DIGEST.fullmatch(digest) else (None, "")
    return opened_s if token == token_digest else None


def _read(path: Path) -> tuple[float | None, str]:
    with suppress(OSError, ValueError):
        opened_s, _, token = path.read_text(encoding="ascii").partition(" ")
        return float(opened_s), token
    return None, ""
