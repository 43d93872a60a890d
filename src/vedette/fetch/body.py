"""What the bytes on the wire stand for: content codings, with a limit that holds before memory is spent."""

import zlib

from vedette.facts import Failure

__all__ = ["decode"]

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
# What is left over after a member is copied once for each, so a body of many tiny members is fed in small pieces.
_PIECE_BYTES = 8192


def decode(raw: bytes, coding: str, limit_bytes: int) -> bytes | Failure:
    """The body behind a Content-Encoding, or why there is none.

    A body that would grow beyond the limit is not unpacked further; one that ends in the middle is not half taken.

    >>> decode(zlib.compress(b"a" * 100), "deflate", 100) == b"a" * 100
    True
    >>> decode(zlib.compress(b"a" * 101), "deflate", 100)
    <Failure.TOO_LARGE: 'answer too large'>
    """
    codings = [name for name in (part.strip().lower() for part in coding.split(",")) if name not in {"", "identity"}]
    if not codings:
        return raw if len(raw) <= limit_bytes else Failure.TOO_LARGE
    if len(codings) > 1 or codings[0] not in {"gzip", "x-gzip", "deflate"}:
        return Failure.PROTOCOL
    try:
        return _unpack(raw, limit_bytes) if raw else b""
    except zlib.error:
        return Failure.PROTOCOL


def _unpack(raw: bytes, limit_bytes: int) -> bytes | Failure:
    """All members, one after the other; bytes after the last one are padding, as browsers see it."""
    out = bytearray()
    start = 0
    while start == 0 or raw.startswith(_GZIP_MAGIC, start):
        member = zlib.decompressobj(_GZIP_OR_ZLIB)
        while not member.eof:
            if start >= len(raw):
                return Failure.RESET
            piece = raw[start : start + _PIECE_BYTES]
            out += member.decompress(piece, limit_bytes - len(out) + 1)
            if len(out) > limit_bytes:
                return Failure.TOO_LARGE
            start += len(piece) - len(member.unused_data)
    return bytes(out)
