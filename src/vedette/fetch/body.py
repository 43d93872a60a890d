"""Decode response bodies by their content coding (gzip, deflate, brotli, zstd), with limits against bombs.

A few kilobytes can unpack to gigabytes, so a body has two limits: the caller's size limit and, beyond a modest size, a
multiple of the bytes sent. Text shrinks to a fifth or a tenth, a table of zeros to a hundredth; a response that unpacks
two-hundredfold is no real page. Every decoder is fed so that it cannot exceed the limit by more than one piece.
"""

import re
import zlib
from collections.abc import Callable
from typing import Protocol, cast

import brotli  # type: ignore[import-untyped]  # it ships no types; _Brotli below declares what is used
import zstandard

from vedette.model import Failure

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_BARE_DEFLATE = -zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC, _ZSTD_SKIPPED = b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"
# Two occur in practice, when a proxy compresses what its origin has compressed.
_MAX_CODINGS = 4
_SNIFF_BYTES = 1024
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[!?/a-zA-Z]")
# Everything that is no "binary data byte" of the MIME Sniffing standard, 3.
_TEXT_BYTES = bytes({9, 10, 12, 13, 27, *range(32, 256)})
# The rest after each member is copied, so a body of many tiny members is fed in small pieces.
_PIECE_BYTES = 8192
_UNPACKED_PIECE_BYTES = 65_536
# RFC 9659: no HTTP client may need a larger window, so no server may force us to allocate one.
_ZSTD_WINDOW_BYTES = 8 * 2**20
_SMALL_BODY_BYTES = 2**20
_MAX_RATIO = 200


class _Brotli(Protocol):
    """The part of a brotli decoder's interface that body decoding uses."""

    def process(self, data: bytes, *, output_buffer_limit: int) -> bytes: ...
    def can_accept_more_data(self) -> bool: ...
    def is_finished(self) -> bool: ...


def decode(raw: bytes, coding: str, limit_bytes: int) -> bytes | Failure:
    """Decode a response body by its Content-Encoding as browsers do, or return why that failed.

    Several codings are undone last first. An unknown coding (``utf-8``, ``none``, ``aws-chunked``) is ignored, as is
    one that was announced but not applied. A body that would exceed the limit is not unpacked further; a truncated one
    is rejected.

    >>> decode(zlib.compress(b"a" * 100), "deflate", 100) == b"a" * 100
    True
    >>> decode(zlib.compress(b"a" * 101), "deflate", 100)
    <Failure.TOO_LARGE: 'answer too large'>
    >>> decode(b"<!doctype html><p>Plain</p>", "utf-8, gzip", 100)
    b'<!doctype html><p>Plain</p>'
    """
    names = [part.partition(";")[0].strip().lower() for part in coding.split(",")]
    codings = [name for name in names if name in _DECODERS]
    if len(codings) > _MAX_CODINGS:
        return Failure.PROTOCOL
    most = min(limit_bytes, _compute_plausible_bytes(raw)) if codings else limit_bytes
    body: bytes | Failure = raw if codings or len(raw) <= limit_bytes else Failure.TOO_LARGE
    for name in reversed(codings):
        if body and not isinstance(body, Failure):
            body = _undo(body, name, most)
    return body


def _undo(raw: bytes, name: str, limit_bytes: int) -> bytes | Failure:
    """Undo one coding of a response body; bytes to which it was never applied are returned as they are."""
    try:
        body = _DECODERS[name](raw, limit_bytes)
    except (zlib.error, brotli.error, zstandard.ZstdError):
        body = Failure.PROTOCOL
    if body not in {Failure.PROTOCOL, Failure.RESET} or not _is_plain(raw, name):
        return body
    return raw if len(raw) <= limit_bytes else Failure.TOO_LARGE


def _is_plain(raw: bytes, name: str) -> bool:
    """Check whether a body that cannot be decoded was sent without its announced coding.

    Gzip and zstd start with a magic number. The other codings have none, so the bytes must resemble markup, or start
    with the magic number of another coding that is still to be undone.
    """
    if name in {"gzip", "x-gzip"}:
        return not _GZIP_MAGIC.startswith(raw[:2]) and (_is_text(raw) or not _has_zlib_head(raw))
    if name == "zstd":
        return not _ZSTD_MAGIC.startswith(raw[:4]) and raw[1:4] != _ZSTD_SKIPPED
    return _is_markup(raw) or raw.startswith((_GZIP_MAGIC, _ZSTD_MAGIC))


def _is_markup(raw: bytes) -> bool:
    return _MARKUP.match(raw[:_SNIFF_BYTES]) is not None and _is_text(raw)


def _is_text(raw: bytes) -> bool:
    return not raw[:_SNIFF_BYTES].translate(None, _TEXT_BYTES)


def _has_zlib_head(raw: bytes) -> bool:
    return raw[0] & 15 == 8 and int.from_bytes(raw[:2]) % 31 == 0


def _compute_plausible_bytes(raw: bytes) -> int:
    """Compute how large a plausible response body may be when decoded, given the bytes sent."""
    return max(_SMALL_BODY_BYTES, _MAX_RATIO * len(raw))


def _decode_gzip(raw: bytes, limit_bytes: int) -> bytes | Failure:
    return _decode_zlib(raw, limit_bytes, _GZIP_OR_ZLIB)


def _decode_deflate(raw: bytes, limit_bytes: int) -> bytes | Failure:
    """Decode a deflate body with the zlib wrapper, as the standard says, or without, as many servers do."""
    wrapped = raw.startswith(_GZIP_MAGIC) or _has_zlib_head(raw)
    return _decode_zlib(raw, limit_bytes, _GZIP_OR_ZLIB if wrapped else _BARE_DEFLATE)


def _decode_zlib(raw: bytes, limit_bytes: int, window_bits: int) -> bytes | Failure:
    """Decode all zlib or gzip members of a body; bytes after the last one are padding, as in browsers."""
    out = bytearray()
    start = 0
    while start == 0 or raw.startswith(_GZIP_MAGIC, start):
        member = zlib.decompressobj(window_bits)
        while not member.eof:
            if start >= len(raw):
                return Failure.RESET
            piece = raw[start : start + _PIECE_BYTES]
            out += member.decompress(piece, limit_bytes - len(out) + 1)
            if len(out) > limit_bytes:
                return Failure.TOO_LARGE
            start += len(piece) - len(member.unused_data)
    return bytes(out)


def _decode_brotli(raw: bytes, limit_bytes: int) -> bytes | Failure:
    """Decode a brotli body of one stream, piece by piece within the limit."""
    decoder = cast("_Brotli", brotli.Decompressor())
    out = bytearray()
    start = 0
    while not decoder.is_finished():
        piece = raw[start : start + _PIECE_BYTES] if decoder.can_accept_more_data() else b""
        start += len(piece)
        unpacked = decoder.process(piece, output_buffer_limit=_UNPACKED_PIECE_BYTES)
        if not piece and not unpacked:
            return Failure.RESET
        out += unpacked
        if len(out) > limit_bytes:
            return Failure.TOO_LARGE
    return bytes(out) if start == len(raw) else Failure.PROTOCOL


def _decode_zstd(raw: bytes, limit_bytes: int) -> bytes | Failure:
    """Decode all zstd frames of a body, one after the other.

    The library has a reader with limits that does not detect a missing end, and a decoder without limits that does. So
    the reader measures, storing nothing, and the decoder unpacks what is known to fit.
    """
    library = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    if not _is_zstd_within(library, raw, limit_bytes):
        return Failure.TOO_LARGE
    out = bytearray()
    start = 0
    while start < len(raw):
        frame = library.decompressobj()
        while not frame.eof:
            if start >= len(raw):
                return Failure.RESET
            piece = raw[start : start + _PIECE_BYTES]
            out += frame.decompress(piece)
            start += len(piece) - len(frame.unused_data)
    return bytes(out)


def _is_zstd_within(library: zstandard.ZstdDecompressor, raw: bytes, limit_bytes: int) -> bool:
    reader = library.stream_reader(raw, read_across_frames=True)
    buffer = bytearray(_UNPACKED_PIECE_BYTES)
    size = 0
    while size <= limit_bytes and (count := reader.readinto(buffer)):
        size += count
    return size <= limit_bytes


_DECODERS: dict[str, Callable[[bytes, int], bytes | Failure]] = {
    "gzip": _decode_gzip,
    "x-gzip": _decode_gzip,
    "deflate": _decode_deflate,
    "br": _decode_brotli,
    "zstd": _decode_zstd,
}
CODINGS = tuple(name for name in _DECODERS if name != "x-gzip")
