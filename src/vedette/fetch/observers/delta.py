"""How the body of a page is sent from an observer to home: not at all, as a difference, or whole.

An observer keeps the last body of a page, as home does. If a page is unchanged, only its digest is sent. A changed page
is compressed by zstd with the last body as dictionary, so that unchanged parts cost almost nothing. Both sides identify
that body by its digest. Home does not trust what it unpacks: the size is declared in advance, limited and checked, and
nothing beyond it is unpacked.
"""

from typing import Literal, NamedTuple

import xxhash
import zstandard

Form = Literal["same", "delta", "whole"]

LEVEL = 9  # level 6 misses half of the unchanged parts in incompressible data, such as images
# Level 6 misses half of the unchanged parts in incompressible data, such as images.
MAX_RATIO = 200
SMALL_BYTES = 1 << 20
# zstd finds nothing farther back than its window, so the window must cover the dictionary and the body.
MIN_WINDOW_LOG, MAX_WINDOW_LOG = 16, 25


class PackedBody(NamedTuple):
    """A body on its way to home: its form, the bytes sent, and the size and digest of the unpacked body."""

    form: Form
    data: bytes
    size: int
    digest: str


class BodyRefused(ValueError):
    """A packed body that home does not accept: it is too large, invalid, or its dictionary is missing."""


def digest_body(body: bytes) -> str:
    """Return the digest by which observer and home identify a body; it is the same as for stored pages."""
    return xxhash.xxh3_128_hexdigest(body)


def pack_body(body: bytes, copy: bytes | None, copy_digest: str) -> PackedBody:
    """Pack a body for home, which has one with this digest; ``copy`` is that body, if the observer still has it.

    >>> old = bytes(range(256)) * 40
    >>> pack_body(old, None, digest_body(old)).form
    'same'
    >>> packed = pack_body(old + b"more", old, digest_body(old))
    >>> packed.form, len(packed.data) < 60, unpack_body(packed, old, 20_000) == old + b"more"
    ('delta', True, True)
    """
    digest = digest_body(body)
    if digest == copy_digest:
        return PackedBody("same", b"", len(body), digest)
    if copy:
        return PackedBody("delta", _compress(body, copy), len(body), digest)
    return PackedBody("whole", _compress(body, b""), len(body), digest)


def unpack_body(packed: PackedBody, copy: bytes | None, limit_bytes: int) -> bytes:
    """Unpack a body from an observer; raise ``BodyRefused`` if it is invalid.

    >>> bomb = PackedBody("whole", _compress(bytes(1 << 24), b""), 100, "")
    >>> unpack_body(bomb, None, 1 << 24)
    Traceback (most recent call last):
    ...
    vedette.fetch.observers.delta.BodyRefused: it unpacks to more than the stated 100 bytes
    """
    if packed.form in {"same", "delta"}:
        if copy is None:
            raise BodyRefused("the copy that it refers to is not available")
        if packed.form == "same":
            return copy
    dictionary = (copy or b"") if packed.form == "delta" else b""
    if packed.size > limit_bytes:
        raise BodyRefused(f"it states {packed.size} bytes; {limit_bytes} are allowed")
    if packed.size > len(dictionary) + max(SMALL_BYTES, MAX_RATIO * len(packed.data)):
        raise BodyRefused(f"{len(packed.data)} bytes would unpack to {packed.size}, which no page does")
    body = _decompress(packed.data, dictionary, packed.size)
    if digest_body(body) != packed.digest:
        raise BodyRefused("its digest is not the stated one")
    return body


def _compress(body: bytes, dictionary: bytes) -> bytes:
    reach = max(len(body) + len(dictionary), 1).bit_length()
    window = min(max(reach, MIN_WINDOW_LOG), MAX_WINDOW_LOG)
    parameters = zstandard.ZstdCompressionParameters.from_level(LEVEL, window_log=window)
    return zstandard.ZstdCompressor(dict_data=_use(dictionary), compression_params=parameters).compress(body)


def _decompress(data: bytes, dictionary: bytes, size: int) -> bytes:
    unpacker = zstandard.ZstdDecompressor(dict_data=_use(dictionary), max_window_size=1 << MAX_WINDOW_LOG)
    try:
        with unpacker.stream_reader(data) as reader:
            body = reader.read(size)
            is_longer = bool(reader.read(1))
    except zstandard.ZstdError as error:
        raise BodyRefused(f"it cannot be unpacked: {error}") from None
    if is_longer:
        raise BodyRefused(f"it unpacks to more than the stated {size} bytes")
    if len(body) != size:
        raise BodyRefused(f"it unpacks to {len(body)} bytes instead of {size}")
    return body


def _use(dictionary: bytes) -> zstandard.ZstdCompressionDict | None:
    return zstandard.ZstdCompressionDict(dictionary, zstandard.DICT_TYPE_RAWCONTENT) if dictionary else None
