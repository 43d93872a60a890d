"""What the bytes on the wire stand for: content codings, with a limit that holds before memory is spent."""

import zlib

from vedette.facts import Failure

__all__ = ["decode"]

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


def decode(raw: bytes, coding: str, limit_bytes: int) -> bytes | Failure:
    """The body behind a Content-Encoding, or why there is none.

    A body that would grow beyond the limit is not unpacked further; one that ends in the middle is not half taken.

    >>> decode(zlib.compress(b"a" * 100), "deflate", 100) == b"a" * 100
    True
    >>> decode(zlib.compress(b"a" * 101), "deflate", 100)
    <Failure.TOO_LARGE: 'answer too large'>
    """
    coding = coding.strip().lower()
    if coding in {"", "identity"}:
        return raw if len(raw) <= limit_bytes else Failure.TOO_LARGE
    if coding not in {"gzip", "x-gzip", "deflate"}:
        return Failure.PROTOCOL
    return _unpack(raw, limit_bytes) if raw else b""


def _unpack(raw: bytes, limit_bytes: int) -> bytes | Failure:
    parts: list[bytes] = []
    room = limit_bytes
    while raw:
        member = zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            parts.append(member.decompress(raw, room + 1))
        except zlib.error:
            # Bytes after a whole member are padding, as browsers see it; nonsense at the start is no answer.
            return b"".join(parts) if parts else Failure.PROTOCOL
        room -= len(parts[-1])
        if room < 0:
            return Failure.TOO_LARGE
        if not member.eof:
            return Failure.RESET
        raw = member.unused_data
    return b"".join(parts)
