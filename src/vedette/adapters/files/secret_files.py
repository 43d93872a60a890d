"""Secrets of a site, such as passwords: read from an environment variable or a file that only its owner can read.

Settings and the data folder only name the location, so both can be shown, copied and backed up. A message names the
location and the line, never the content.
"""

import os
import stat

from vedette.errors import ConfigError
from vedette.fetch.credentials import Secrets, parse_secrets

_MAX_BYTES = 65_536
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_secrets(where: str) -> Secrets:
    """Read a site's secrets from ``env:NAME`` or ``file:PATH``; empty if no location is named."""
    if not where:
        return Secrets()
    kind, _, place = where.partition(":")
    if kind not in {"env", "file"} or not place:
        # The input may be the secret itself, so it is not repeated.
        raise ConfigError("expected env:NAME or file:PATH")
    text = _read_environment(place) if kind == "env" else _read_file(place)
    try:
        return parse_secrets(text)
    except ConfigError as error:
        raise ConfigError(f"secrets in {where}: {error}") from None


def _read_environment(name: str) -> str:
    text = os.environ.get(name)
    if text is None:
        raise ConfigError(f"secrets: set the environment variable {name} before you start vedette")
    return text


def _read_file(path: str) -> str:
    try:
        raw = _read_private_bytes(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such path"
        raise ConfigError(f"secrets: cannot read {path} ({reason}); choose a readable file") from None
    if len(raw) > _MAX_BYTES:
        raise ConfigError(f"secrets: {path} is too long (the maximum is {_MAX_BYTES} bytes)")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"secrets: {path} is not UTF-8 text; save it as UTF-8") from None


def _read_private_bytes(path: str) -> bytes:
    """Read a secrets file after checking its permissions on the open descriptor, so that it cannot be swapped."""
    # A pipe in the file's place would otherwise block forever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - it is open already
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"secrets: {path} is not a regular file; choose another one")
        if found.st_mode & _OTHERS:
            raise ConfigError(f"secrets: other users can read {path}; run: chmod 600 {path}")
        return file.read(_MAX_BYTES + 1)
