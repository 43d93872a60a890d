"""Every parser of untrusted input, given damaged documents: no exception, no hang, bounded results.

``tests/fuzz`` defines what must be true for each, and ``tools/fuzz.py`` looks for inputs that break it.
"""

import gzip
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.markup import MARKUP
from tests.fuzz.target import TARGETS, load_corpus, load_target
from tests.hostile.mutations import mutated

from vedette.fetch.body import CODINGS
from vedette.fetch.body import decode as unpack
from vedette.fetch.response_headers import parse_max_age_s, parse_retry_after_s
from vedette.fetch.robots.meta_tags import parse_header_directives
from vedette.model import Failure
from vedette.timeutil import parse_date

NOW_S = 1.7e9

HEADERS = (
    b"Wed, 21 Oct 2015 07:28:00 GMT",
    b"Wednesday, 21-Oct-15 07:28:00 GMT",
    b"max-age=3600, must-revalidate, s-maxage=99999999999999999999",
    b"otherbot: noindex, nofollow, unavailable_after: 25 Jun 2010 15:00:00 PST, max-snippet:-1",
    b"120",
)


@pytest.mark.parametrize("name", TARGETS)
def test_known_and_damaged_inputs_hold(name: str) -> None:
    """Each target takes its seeds, the inputs that fuzzing found useful, and seeds that are damaged."""
    target = load_target(name)
    for data in load_corpus(name):
        target.check(data)
    given(mutated(target.seeds, target.tokens))(target.check)()


@given(mutated(HEADERS, (b",", b":", b"=", b"9" * 20, b"noindex", b"GMT", b"-")))
def test_damaged_headers_give_finite_numbers_or_none(value: bytes) -> None:
    """Dates, ages and delays are finite or absent; directives can be read from any header."""
    text = value.decode("latin-1")
    moment, age_s = parse_date(text), parse_max_age_s((("cache-control", text),))
    assert moment is None or isfinite(moment)
    assert age_s is None or (isfinite(age_s) and age_s >= 0)
    pause_s = parse_retry_after_s((("retry-after", text),), NOW_S)
    assert isfinite(pause_s)
    assert pause_s >= 0
    report = parse_header_directives((("x-robots-tag", text),), "vedette")
    assert report.max_snippet is None or report.max_snippet >= 0
    assert report.unavailable_after_s is None or isfinite(report.unavailable_after_s)


@pytest.mark.parametrize("coding", [*CODINGS, "gzip, br", "br, gzip, zstd, deflate"])
def test_bombs_within_bombs(coding: str) -> None:
    """A body that was compressed repeatedly is decompressed within its limit, or rejected."""
    data = bytes(50 * 2**20)
    for _ in range(3):
        data = gzip.compress(data, 9, mtime=0)
    found = unpack(data, coding, 2**20)
    assert isinstance(found, Failure) or len(found) <= 2**20


@given(
    mutated([gzip.compress(page, mtime=0) for page in MARKUP.seeds]), st.sampled_from(CODINGS), st.integers(0, 4_000)
)
def test_a_damaged_package_is_a_body_or_a_reason(data: bytes, coding: str, limit_bytes: int) -> None:
    """With truncated, duplicated and swapped members, the result stays within the limit, or there is a reason."""
    found = unpack(data, coding, limit_bytes)
    assert isinstance(found, Failure) or len(found) <= limit_bytes
