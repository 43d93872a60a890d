"""Does a robots.txt pattern match a URL? The bytes decide, and nothing backtracks.

A pattern begins at the path's first byte; ``*`` stands for any run, ``$`` for the end where it is the last byte.
Patterns and paths come from strangers, so a match is one walk from left to right: taking the leftmost place for
each part between two stars never loses a match, because what remains of the path is then the longest.
"""

import re
from dataclasses import dataclass

__all__ = ["Pattern", "compile_pattern", "path_of"]

_TO_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_PATH_BEGINS = re.compile(rb"[/?;]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern taken apart: ``head`` begins the path, the ``middle`` parts follow in order, ``tail`` comes last.

    ``tail`` is None where the pattern has no star. ``length_bytes`` is what it weighs against other patterns.
    """

    head: bytes
    middle: tuple[bytes, ...]
    tail: bytes | None
    anchored: bool
    length_bytes: int

    def matches(self, path: bytes) -> bool:
        """Whether the path, as ``path_of`` writes it, is one that this pattern speaks of."""
        if not path.startswith(self.head):
            return False
        if self.tail is None:
            return not self.anchored or len(path) == len(self.head)
        at = self._after_middle(path)
        if at < 0:
            return False
        if self.anchored:
            return len(path) - len(self.tail) >= at and path.endswith(self.tail)
        return path.find(self.tail, at) >= 0

    def _after_middle(self, path: bytes) -> int:
        at = len(self.head)
        for part in self.middle:
            found = path.find(part, at)
            if found < 0:
                return -1
            at = found + len(part)
        return at


def compile_pattern(value: bytes) -> Pattern:
    """The value of an Allow or Disallow line, ready to match.

    Escapes get upper-case digits and bytes outside ASCII are escaped; nothing is unescaped, so ``%62`` is not ``b``.

    >>> compile_pattern("/café*x$".encode()).matches(b"/caf%C3%A9/a/x")
    True
    """
    escaped = _TO_ESCAPE.sub(_escape, value)
    anchored = escaped.endswith(b"$")
    head, *others = escaped.removesuffix(b"$").split(b"*")
    tail = others.pop() if others else None
    return Pattern(head, tuple(part for part in others if part), tail, anchored, len(escaped))


def path_of(url: str) -> bytes:
    """Path, parameters and query of a URL: what patterns are compared with.

    The URL is taken as it is; whoever asks escapes it first. What cannot be understood is ``/``.

    >>> path_of("http://example.org/a;b?c#d"), path_of("example.org?q"), path_of("http://example.org")
    (b'/a;b?c', b'/?q', b'/')
    """
    raw = url.encode("utf-8", "surrogatepass")
    start = 2 if raw.startswith(b"//") else 0
    begin = _path_start(raw, start)
    fragment = raw.find(b"#", start)
    if begin < 0 or 0 <= fragment < begin:
        return b"/"
    path = raw[begin:] if fragment < 0 else raw[begin:fragment]
    # The reference holds the path as a C string, so a NUL ends it.
    path = path.partition(b"\0")[0]
    return path if path.startswith(b"/") else b"/" + path


def _path_start(raw: bytes, start: int) -> int:
    first = _first_of_path(raw, start)
    scheme_end = raw.find(b"://", start)
    if scheme_end < 0 or first < scheme_end:
        return first
    return _first_of_path(raw, scheme_end + 3)


def _first_of_path(raw: bytes, start: int) -> int:
    found = _PATH_BEGINS.search(raw, start)
    return found.start() if found else -1


def _escape(found: re.Match[bytes]) -> bytes:
    octets = found.group()
    return octets.upper() if len(octets) == 3 else b"%%%02X" % octets[0]
