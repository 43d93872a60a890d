"""What the bytes on the wire stand for, when they come from friends and when they do not."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.facts import Failure
from vedette.fetch.body import decode

MIB = 2**20
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
}


@given(st.binary(max_size=30_000), st.sampled_from(sorted(PACKERS)), st.integers(0, 100))
def test_round_trip_under_the_limit(body: bytes, coding: str, spare: int) -> None:
    """What fits the limit comes out as it went in, up to the last byte that fits."""
    assert decode(PACKERS[coding](body), coding, len(body) + spare) == body


@given(st.binary(min_size=1, max_size=30_000), st.sampled_from(sorted(PACKERS)), st.data())
def test_beyond_the_limit(body: bytes, coding: str, data: st.DataObject) -> None:
    """What does not fit is too large, by one byte or by many."""
    limit = data.draw(st.integers(0, len(body) - 1))
    assert decode(PACKERS[coding](body), coding, limit) is Failure.TOO_LARGE


@given(st.lists(st.binary(max_size=5_000), min_size=1, max_size=20))
def test_members_add_up(parts: list[bytes]) -> None:
    """A file of several gzip members is their contents, one after the other (RFC 1952, 2.2)."""
    packed = b"".join(map(gzip.compress, parts))
    whole = b"".join(parts)
    assert decode(packed, "gzip", len(whole)) == whole
    if whole:
        assert decode(packed, "gzip", len(whole) - 1) is Failure.TOO_LARGE


@given(st.binary(max_size=3_000), st.data())
def test_cut_short(body: bytes, data: st.DataObject) -> None:
    """A body that ends in the middle is not half taken, wherever it ends."""
    packed = gzip.compress(body)
    end = data.draw(st.integers(1, len(packed) - 1))
    assert decode(packed[:end], "gzip", MIB) is Failure.RESET


def test_a_second_member_cut_short() -> None:
    """The end of one member is not the end of the body if another one has begun."""
    packed = gzip.compress(b"one") + gzip.compress(b"two")
    assert decode(packed[:-1], "gzip", MIB) is Failure.RESET


@given(st.binary(max_size=3_000), st.binary(max_size=200).filter(lambda tail: not tail.startswith(b"\x1f\x8b")))
def test_padding_is_passed_over(body: bytes, tail: bytes) -> None:
    """Bytes after the last member are padding, be it one newline."""
    assert decode(gzip.compress(body) + tail, "gzip", MIB) == body


def test_damage_is_noticed() -> None:
    """A body whose checksum is wrong is no body."""
    packed = bytearray(gzip.compress(b"some text" * 100))
    packed[-8] ^= 1
    assert decode(bytes(packed), "gzip", MIB) is Failure.PROTOCOL


@pytest.mark.parametrize("coding", ["", "identity", " Identity ", "identity, identity"])
def test_no_coding(coding: str) -> None:
    """Plain bytes are plain bytes, with the same limit."""
    assert decode(b"abc", coding, 3) == b"abc"
    assert decode(b"abcd", coding, 3) is Failure.TOO_LARGE


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "gzip;q=1", "gzíp"])
def test_other_codings(coding: str) -> None:
    """What was not asked for is not guessed at."""
    assert decode(gzip.compress(b"abc"), coding, MIB) is Failure.PROTOCOL


@pytest.mark.parametrize("coding", sorted(PACKERS))
def test_an_empty_body_needs_no_unpacking(coding: str) -> None:
    """Answers without a body often still name a coding."""
    assert decode(b"", coding, MIB) == b""


@given(st.binary(max_size=2_000), st.text(max_size=20), st.integers(0, 5_000))
def test_anything_has_an_outcome(raw: bytes, coding: str, limit: int) -> None:
    """Whatever comes, there is a body within the limit or a reason; never an exception."""
    for name in (coding, "gzip"):
        found = decode(raw, name, limit)
        assert isinstance(found, Failure) or len(found) <= limit


def test_a_bomb_costs_no_more_than_the_limit() -> None:
    """A bomb of a thousand times its size is left alone before it has gone off."""
    bomb = gzip.compress(bytes(200 * MIB), 9)
    assert len(bomb) < MIB
    tracemalloc.start()
    found = decode(bomb, "gzip", MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is Failure.TOO_LARGE
    assert peak < 8 * MIB


def test_a_swarm_of_empty_members() -> None:
    """Ten megabytes of members without content take about as long as ten megabytes do, not their square."""
    member = gzip.compress(b"")
    assert decode(member * (10 * MIB // len(member)), "gzip", MIB) == b""
