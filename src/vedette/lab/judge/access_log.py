"""Access log of a lab server, as JSON lines: all that the politeness judge uses.

The first line identifies the world, its speed and the port; every other line is one request, appended in the order in
which responses ended. Both times are bounds in the client's favor: a request begins when its head is complete, and a
response ends just before its last bytes are handed to the socket. So a client that waits its delay after the last byte
never appears with a shorter gap, whatever the scheduler does in between.

A server that is restarted on the same file continues it: a torn last line is cut off and a second header says when it
happened.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, BinaryIO

from ada_url import URL

from vedette.errors import UsageError

MAX_ROBOTS_BYTES = 500 * 1024
FORMAT_NAME = "vedette access log 1"
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LogHeader:
    """Header line of an access log: the world that was served, and how its time relates to wall time."""

    world: str
    speed: float
    world_start: float
    wall_start: float
    port: int


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One access log entry: a request and its response; ``wall`` times are Unix seconds, the others world seconds.

    ``port`` and ``scheme`` are those requested (Host header or absolute target), ``address`` the local one that
    accepted the connection. ``status`` 0 means that no response was sent; ``whole`` that every byte of it was.
    ``robots`` has what was sent for /robots.txt, or for its redirect target.
    """

    wall_start_s: float
    wall_end_s: float
    start_s: float
    end_s: float
    host: str
    scheme: str
    port: int
    address: str
    method: str
    target: str
    status: int
    bytes: int
    whole: bool
    agent: str
    retry_after: str | None = None
    location: str | None = None
    robots: str | None = None

    @property
    def url(self) -> str:
        """Return the URL that this access log entry requested."""
        default = 443 if self.scheme == "https" else 80
        return f"{self.scheme}://{self.host}" + ("" if self.port == default else f":{self.port}") + self.target


_KEYS = tuple(field.name for field in fields(AccessEntry))
_OPTIONAL = frozenset({"retry_after", "location", "robots"})


class AccessLog:
    """Writer of an access log; lines are buffered until ``flush``, which the server calls on its tick."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[str] = []
        self._size = 0

    def add(self, entry: AccessEntry) -> None:
        """Append one request to the access log."""
        self._append(_format_entry(entry))

    def write_header(self, header: LogHeader) -> None:
        """Write a header line to the access log, for the start of a server; on disk at once."""
        self._append(
            json.dumps({"log": FORMAT_NAME, **{field.name: getattr(header, field.name) for field in fields(header)}})
        )
        self.flush()

    def flush(self) -> None:
        """Flush all waiting access log lines to the operating system."""
        if self._lines:
            self._lines.append("")
            self._file.write("\n".join(self._lines).encode("ascii"))
            self._file.flush()
            self._lines = []
            self._size = 0

    def close(self) -> None:
        """Flush and close the access log; a second call does nothing."""
        if not self._file.closed:
            self.flush()
            self._file.close()

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)
        if self._size > BUFFER_BYTES:
            self.flush()


def open_log(path: Path, header: LogHeader, now_s: float) -> AccessLog:
    """Open an access log for writing, or continue the one at this path if world and time match."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size:
        _check_same_run(path, header, now_s)
        _truncate_torn_line(path)
    log = AccessLog(path.open("ab"))
    log.write_header(header)
    return log


def read_log(path: Path) -> tuple[LogHeader, list[AccessEntry]]:
    """Read an access log: its first header and all entries sorted by start; a torn last line is left out."""
    with path.open("rb") as file:
        lines = _iter_complete_lines(file)
        header = _parse_header(next(lines, b""), path)
        rows = (_parse_row(line, number, path) for number, line in enumerate(lines, start=2))
        entries = [_parse_entry(row, path) for row in rows if "log" not in row]
    entries.sort(key=lambda entry: (entry.start_s, entry.end_s))
    return header, entries


def resolve_redirect(url: str, location: str) -> str | None:
    """Resolve a redirect's location to the normalized URL that access logs compare; None if it has no target.

    >>> resolve_redirect("http://a.test/robots.txt", "//B.test:80/r.txt#top")
    'http://b.test/r.txt'
    """
    try:
        meant = URL(location, base=url)
    except ValueError:
        return None
    return meant.href.partition("#")[0] if meant.protocol in {"http:", "https:"} else None


def _format_entry(entry: AccessEntry) -> str:
    """Format an access log entry as JSON, by hand because a server under load spends half its time here otherwise."""
    return (
        f'{{"wall_start_s":{entry.wall_start_s!r},"wall_end_s":{entry.wall_end_s!r},"start_s":{entry.start_s!r},'
        f'"end_s":{entry.end_s!r},"host":{quoted(entry.host)},"scheme":"{entry.scheme}","port":{entry.port},'
        f'"address":"{entry.address}","method":{quoted(entry.method)},"target":{quoted(entry.target)},'
        f'"status":{entry.status},"bytes":{entry.bytes},"whole":{"true" if entry.whole else "false"},'
        f'"agent":{quoted(entry.agent)}{_format_optional_fields(entry)}}}'
    )


def _format_optional_fields(entry: AccessEntry) -> str:
    pairs = (("retry_after", entry.retry_after), ("location", entry.location), ("robots", entry.robots))
    return "".join(f',"{key}":{quoted(value)}' for key, value in pairs if value is not None)


def _iter_complete_lines(file: BinaryIO) -> Iterator[bytes]:
    return (line for line in file if line.endswith(b"\n"))


def _parse_header(line: bytes, path: Path) -> LogHeader:
    try:
        row = json.loads(line)
        header = LogHeader(**{field.name: row[field.name] for field in fields(LogHeader)})
        is_ours = row["log"] == FORMAT_NAME
    except (ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise UsageError(f"{path} is not a lab server's access log: the header line is missing")
    return header


def _parse_row(line: bytes, number: int, path: Path) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise UsageError(f"{path}, line {number}: not a JSON object; the log was edited or damaged")
    return row


def _parse_entry(row: dict[str, Any], path: Path) -> AccessEntry:
    values = {key: row[key] for key in _KEYS if key in row}
    missing = [key for key in _KEYS if key not in values and key not in _OPTIONAL]
    if missing:
        raise UsageError(f"{path} has a request without {missing[0]}; the log was edited or damaged")
    return AccessEntry(**values)


def _truncate_torn_line(path: Path) -> None:
    with path.open("r+b") as file:
        whole = sum(len(line) for line in _iter_complete_lines(file))
        file.truncate(whole)


def _check_same_run(path: Path, header: LogHeader, now_s: float) -> None:
    """Check that an existing access log is of the same world and that its time does not go backwards.

    One log has one client in one world's time; anything else could not be judged.
    """
    before, entries = read_log(path)
    if before.world != header.world:
        raise UsageError(f"{path} is the log for {before.world}, not {header.world}; choose another file")
    if before.speed != header.speed:
        raise UsageError(f"{path} was recorded at speed {before.speed}, not {header.speed}; choose another file")
    if any(entry.end_s > now_s for entry in entries):
        raise UsageError(f"{path} contains requests made after the current world time; choose another file")
