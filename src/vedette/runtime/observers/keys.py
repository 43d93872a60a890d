"""The key file of an observer: its name and secret in one line, as ``vedette observers add`` prints it."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.observers.wire import KEY_BYTES
from vedette.errors import UsageError

PREFIX = "vo1"
_KEY = re.compile(rf"{PREFIX}\.([a-z0-9][a-z0-9-]{{0,39}})\.([A-Za-z0-9_-]{{43}})")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class ObserverKey(NamedTuple):
    """The name of an observer, and the secret that it shares with home."""

    name: str
    secret: bytes


def format_key(key: ObserverKey) -> str:
    """Format the key of an observer.

    >>> format_key(ObserverKey("tokyo", bytes(32)))
    'vo1.tokyo.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    >>> parse_key(format_key(ObserverKey("tokyo", bytes(32)))).name
    'tokyo'
    """
    return f"{PREFIX}.{key.name}.{urlsafe_b64encode(key.secret).rstrip(b'=').decode()}"


def parse_key(text: str) -> ObserverKey:
    """Parse the key of an observer; the error does not quote it."""
    found = _KEY.fullmatch(text.strip())
    secret = urlsafe_b64decode(found[2] + "=") if found else b""
    if found is None or len(secret) != KEY_BYTES:
        raise UsageError('not a key of an observer: use the line that "vedette observers add" printed')
    return ObserverKey(found[1], secret)


def read_key_file(file: Path) -> ObserverKey:
    """Read the key file of an observer."""
    try:
        return parse_key(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise UsageError(f"--key {file}: {reason}; save the line from vedette observers add in it") from None


def check_name(name: str) -> str:
    """Check the name of an observer as typed."""
    if not _NAME.fullmatch(name) or name == "home":
        raise UsageError(
            f'"{name[:60]}" is no name of an observer: use lower-case letters, digits and hyphens, not "home"'
        )
    return name
