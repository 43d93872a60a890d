"""Decompression within a limit: what is read may be damaged, or prepared by someone else to fill the memory."""

import zlib


def inflate(data: bytes, limit_bytes: int, window_bits: int = zlib.MAX_WBITS) -> bytes:
    """Decompress zlib data; raise ``ValueError`` if it is damaged, incomplete, or larger than the limit.

    >>> inflate(zlib.compress(b"a" * 100), 100) == b"a" * 100
    True
    >>> inflate(zlib.compress(b"a" * 101), 100)
    Traceback (most recent call last):
    ValueError: it is incomplete, or larger than 100 bytes
    """
    stream = zlib.decompressobj(window_bits)
    try:
        found = stream.decompress(data, limit_bytes)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not stream.eof:
        raise ValueError(f"it is incomplete, or larger than {limit_bytes} bytes")
    return found
