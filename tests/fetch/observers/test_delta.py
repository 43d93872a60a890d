"""Bodies sent home: they are small, and invalid ones are refused."""

import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from vedette.fetch.observers.delta import BodyRefused, PackedBody, digest_body, pack_body, unpack_body

LIMIT = 1 << 22


@given(st.binary(max_size=4000), st.binary(max_size=4000))
def test_a_body_arrives_as_it_was(old: bytes, new: bytes) -> None:
    """Whatever the last copy was, home restores the new body exactly."""
    packed = pack_body(new, old or None, digest_body(old))
    assert unpack_body(packed, old, LIMIT) == new


def test_a_small_change_of_a_large_page_costs_little() -> None:
    """A changed sentence in an incompressible megabyte is sent in a few hundred bytes."""
    old = os.urandom(1 << 20)
    packed = pack_body(old[: 1 << 19] + b"one more sentence" + old[1 << 19 :], old, digest_body(old))
    assert packed.form == "delta"
    assert len(packed.data) < 500


def test_bombs_are_not_unpacked() -> None:
    """A few kilobytes that expand to gigabytes, or claim to, are refused before they take memory."""
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(1 << 28))
    honest_size = PackedBody("whole", bomb, 1 << 28, "")
    for packed in (honest_size, replace_size(honest_size, LIMIT), replace_size(honest_size, 100)):
        with pytest.raises(BodyRefused):
            unpack_body(packed, None, LIMIT)


def test_a_large_window_is_refused() -> None:
    """A frame that requires a window of half a gigabyte is refused, because the window is allocated first."""
    parameters = zstandard.ZstdCompressionParameters(window_log=29, enable_ldm=True)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = frame.compress(os.urandom(1000)) + frame.flush()
    with pytest.raises(BodyRefused, match="cannot be unpacked"):
        unpack_body(PackedBody("whole", data, 1000, ""), None, LIMIT)


def test_deltas_that_are_not_what_they_claim_are_refused() -> None:
    """A delta from another copy, with a wrong size or digest, truncated, or without its copy is refused."""
    old, new = b"old text " * 500, b"old text " * 499 + b"new text"
    packed = pack_body(new, old, digest_body(old))
    other = b"a wholly different page " * 300
    lies = (
        (packed, other),
        (packed, None),
        (packed._replace(size=packed.size - 1), old),
        (packed._replace(size=packed.size + 1), old),
        (packed._replace(digest=digest_body(old)), old),
        (packed._replace(data=packed.data[:-4]), old),
        (packed._replace(data=b""), old),
        (packed._replace(size=LIMIT + 1), old),
    )
    for lie, copy in lies:
        with pytest.raises(BodyRefused):
            unpack_body(lie, copy, LIMIT)


def replace_size(packed: PackedBody, size: int) -> PackedBody:
    """Return the same with another stated size."""
    return packed._replace(size=size)
