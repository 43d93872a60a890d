"""Decoding of response bodies, from friendly and hostile servers."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from vedette.fetch.body import CODINGS, decode
from vedette.model import Failure

MIB = 2**20
NOISE = b"".join(zlib.crc32(bytes([n % 256, n // 256])).to_bytes(4) for n in range(50_000))


def bare_deflate(body: bytes) -> bytes:
    """Compress with deflate without the zlib wrapper, as some servers do."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def streamed_zstd(body: bytes) -> bytes:
    """Compress with Zstandard like a server that does not know the size in advance, so the frame has none."""
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return packer.compress(body) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "bare deflate": ("deflate", bare_deflate),
    "gzip called deflate": ("deflate", gzip.compress),
    "br": ("br", partial(brotli.compress, quality=5)),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "streamed zstd": ("zstd", streamed_zstd),
}
PACKED = st.sampled_from(sorted(PACKERS))


def unpacked(kind: str, body: bytes, limit: int) -> bytes | Failure:
    """Decode a body with this encoding."""
    coding, pack = PACKERS[kind]
    return decode(pack(body), coding, limit)


@given(st.binary(max_size=30_000), PACKED, st.integers(0, 100))
def test_round_trip_under_the_limit(body: bytes, kind: str, spare: int) -> None:
    """Content within the limit is unchanged, up to the last byte that fits."""
    assert unpacked(kind, body, len(body) + spare) == body


@pytest.mark.parametrize("kind", sorted(PACKERS))
def test_a_large_page_comes_out_whole(kind: str) -> None:
    """A page of many chunks, with prose and with noise, is decoded without loss."""
    page = b"<p>Some words that come back.</p>\n" * 20_000 + NOISE + bytes(100_000)
    assert unpacked(kind, page, len(page)) == page


@given(st.binary(min_size=1, max_size=30_000), PACKED, st.data())
def test_beyond_the_limit(body: bytes, kind: str, data: st.DataObject) -> None:
    """Content beyond the limit is too large, by one byte or by many."""
    limit = data.draw(st.integers(0, len(body) - 1))
    assert unpacked(kind, body, limit) is Failure.TOO_LARGE


@given(st.lists(st.binary(max_size=5_000), min_size=1, max_size=20), st.sampled_from(["gzip", "zstd", "streamed zstd"]))
def test_members_add_up(parts: list[bytes], kind: str) -> None:
    """Several gzip members (RFC 1952, 2.2) or zstd frames (RFC 8878, 3) are concatenated."""
    coding, pack = PACKERS[kind]
    packed = b"".join(map(pack, parts))
    whole = b"".join(parts)
    assert decode(packed, coding, len(whole)) == whole
    if whole:
        assert decode(packed, coding, len(whole) - 1) is Failure.TOO_LARGE


@given(st.binary(min_size=1, max_size=3_000), PACKED.filter(lambda kind: "called" not in kind), st.data())
def test_cut_short(body: bytes, kind: str, data: st.DataObject) -> None:
    """A truncated body is rejected, wherever it ends."""
    coding, pack = PACKERS[kind]
    packed = pack(body)
    end = data.draw(st.integers(1, len(packed) - 1))
    assert decode(packed[:end], coding, MIB) is Failure.RESET


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_second_member_cut_short(kind: str) -> None:
    """A body that ends within its second member is truncated."""
    coding, pack = PACKERS[kind]
    assert decode((pack(b"one") + pack(b"two"))[:-1], coding, MIB) is Failure.RESET


@given(st.binary(max_size=3_000), st.binary(max_size=200).filter(lambda tail: not tail.startswith(b"\x1f\x8b")))
def test_padding_is_passed_over(body: bytes, tail: bytes) -> None:
    """Bytes after the last member are padding, even a single newline."""
    assert decode(gzip.compress(body) + tail, "gzip", MIB) == body


@pytest.mark.parametrize("kind", ["br", "zstd", "streamed zstd"])
@pytest.mark.parametrize("size", [10, *range(8150, 8200), 100_000])
def test_the_younger_codings_know_no_padding(kind: str, size: int) -> None:
    """Bytes after a brotli stream or after zstd frames make the body invalid, even at a round number of bytes."""
    coding, pack = PACKERS[kind]
    assert decode(pack(NOISE[:size]) + b"junk" * 5_000, coding, MIB) is Failure.PROTOCOL


@pytest.mark.parametrize("kind", ["gzip", "streamed zstd"])
def test_damage_is_noticed(kind: str) -> None:
    """A body with a wrong checksum is rejected."""
    coding, pack = PACKERS[kind]
    packed = bytearray(pack(b"some text" * 100))
    packed[-8 if coding == "gzip" else -1] ^= 1
    assert decode(bytes(packed), coding, MIB) is Failure.PROTOCOL


def test_a_greedy_window_is_refused() -> None:
    """A zstd frame that requires more memory than HTTP allows (RFC 9659: 8 MiB) is not decoded."""
    settings = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    packed = packer.compress(b"text") + packer.flush()
    assert decode(packed, "zstd", MIB) is Failure.PROTOCOL


@pytest.mark.parametrize("coding", ["", "identity", " Identity ", "identity, identity"])
def test_no_coding(coding: str) -> None:
    """A body without a coding is unchanged, with the same limit."""
    assert decode(b"abc", coding, 3) == b"abc"
    assert decode(b"abcd", coding, 3) is Failure.TOO_LARGE


PAGE = b"<!doctype html><title>Caf\xe9</title><p>Some words that come back.</p>"
GZIPPED = gzip.compress(PAGE, mtime=0)  # without the time, so that the names of the tests stay the same


@pytest.mark.parametrize(
    ("coding", "sent"),
    [
        ("utf-8", PAGE),
        ("none", PAGE),
        ("aws-chunked", PAGE),
        ("aws-chunked, gzip", GZIPPED),
        ("gzip, aws-chunked", GZIPPED),
        ("GZIP;q=1", GZIPPED),
        ("gzip, br", brotli.compress(GZIPPED)),
        ("br, gzip", gzip.compress(brotli.compress(PAGE), mtime=0)),
        ("gzip, br", GZIPPED),
        ("gzip, gzip", GZIPPED),
        ("gzip, identity", GZIPPED),
        ("deflate, zstd", zstandard.compress(zlib.compress(PAGE))),
    ],
)
def test_codings_as_servers_announce_them(coding: str, sent: bytes) -> None:
    """Codings are decoded last first; an unknown or unapplied one changes nothing."""
    assert decode(sent, coding, MIB) == PAGE


@pytest.mark.parametrize("coding", [*CODINGS, "x-gzip"])
def test_a_coding_that_was_announced_and_not_applied(coding: str) -> None:
    """A page that was sent uncompressed under the name of a coding is accepted, within the limit."""
    assert decode(PAGE, coding, MIB) == PAGE
    assert decode(PAGE, coding, len(PAGE) - 1) is Failure.TOO_LARGE


def test_plain_text_under_the_name_of_gzip() -> None:
    """Bytes without the magic number of gzip are plain, even those that might begin a zlib stream."""
    for text in (b"80 days around the world", b"x^2 + y^2 = z^2", b"%PDF-1.7 \x00\x01"):
        assert decode(text, "gzip", MIB) == text


def test_many_codings_are_no_page() -> None:
    """A stack of codings that no one builds by accident is rejected."""
    packed = PAGE
    for _ in range(5):
        packed = gzip.compress(packed)
    assert decode(packed, "gzip, " * 5, MIB) is Failure.PROTOCOL


@pytest.mark.parametrize("coding", CODINGS)
def test_an_empty_body_needs_no_unpacking(coding: str) -> None:
    """Responses without a body often still declare a coding."""
    assert decode(b"", coding, MIB) == b""


@given(st.binary(max_size=2_000), st.text(max_size=20), st.integers(0, 5_000))
def test_anything_has_an_outcome(raw: bytes, coding: str, limit: int) -> None:
    """Any input yields a body within the limit or a reason, never an exception."""
    for name in (coding, *CODINGS):
        found = decode(raw, name, limit)
        assert isinstance(found, Failure) or len(found) <= limit


@given(st.binary(max_size=500), PACKED, st.data())
def test_a_flipped_bit_has_an_outcome(body: bytes, kind: str, data: st.DataObject) -> None:
    """Damage anywhere in a valid body yields a body within the limit or a reason."""
    coding, pack = PACKERS[kind]
    packed = bytearray(pack(body))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = decode(bytes(packed), coding, 1_000)
    assert isinstance(found, Failure) or len(found) <= 1_000


@pytest.mark.parametrize("kind", sorted(PACKERS))
def test_a_bomb_costs_no_more_than_the_limit(kind: str) -> None:
    """A body that would expand a thousandfold or more is rejected before it does."""
    coding, pack = PACKERS[kind]
    bomb = pack(bytes(200 * MIB))
    assert len(bomb) < MIB
    tracemalloc.start()
    found = decode(bomb, coding, MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is Failure.TOO_LARGE
    assert peak < 8 * MIB


@pytest.mark.parametrize("kind", sorted(PACKERS))
def test_a_bomb_below_the_limit_is_a_bomb(kind: str) -> None:
    """A body that expands from almost nothing to eight megabytes is rejected, even below the size limit."""
    assert unpacked(kind, bytes(8 * MIB), 100 * MIB) is Failure.TOO_LARGE


@pytest.mark.parametrize("kind", sorted(PACKERS))
def test_a_dull_page_passes(kind: str) -> None:
    """A page of one letter repeated a million times is accepted, and so is a long table of equal rows."""
    assert unpacked(kind, b"x" * 1_000_000, 10 * MIB) == b"x" * 1_000_000
    table = b"".join(b"<tr><td>%d</td><td>none</td></tr>\n" % row for row in range(150_000))
    assert unpacked(kind, table, 10 * MIB) == table


@pytest.mark.parametrize("kind", ["gzip", "streamed zstd"])
def test_a_swarm_of_empty_members(kind: str) -> None:
    """Ten megabytes of empty members take linear, not quadratic time."""
    coding, pack = PACKERS[kind]
    member = pack(b"")
    assert decode(member * (10 * MIB // len(member)), coding, MIB) == b""


def test_a_swarm_of_empty_blocks() -> None:
    """The same is true for a zstd frame of empty blocks."""
    head = streamed_zstd(b"text")[:6]
    assert decode(head + bytes(10 * MIB), "zstd", MIB) is Failure.RESET
