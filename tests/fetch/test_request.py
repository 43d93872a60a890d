"""Request headers."""

import gzip
import zlib

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
import zstandard

from vedette.fetch.body import decode
from vedette.fetch.request import PRODUCT, build_headers, build_user_agent
from vedette.model import Purpose


@pytest.mark.parametrize(
    ("contact", "agent"),
    [
        ("ops@example.org", "vedette/1.2 (+mailto:ops@example.org)"),
        ("https://example.org/bot", "vedette/1.2 (+https://example.org/bot)"),
        ("", "vedette/1.2"),
    ],
)
def test_who_asks(contact: str, agent: str) -> None:
    """The User-Agent has product, version and contact, in the form crawlers use."""
    assert build_user_agent("1.2", contact) == agent


def test_the_product_is_what_robots_txt_may_name() -> None:
    """The name before the slash is the product token for robots.txt rules, with the characters allowed by RFC 9309."""
    assert build_user_agent("1.2", "").partition("/")[0] == PRODUCT
    assert PRODUCT.replace("-", "").replace("_", "").isalpha()


@pytest.mark.parametrize("purpose", ["page", "robots"])
def test_headers(purpose: Purpose) -> None:
    """Each header is sent once, in lower case, with the given User-Agent."""
    headers = dict(build_headers(purpose, "me/1"))
    assert len(headers) == len(build_headers(purpose, "me/1"))
    assert headers["user-agent"] == "me/1"
    assert all(name == name.lower() for name in headers)


def test_only_codings_that_can_be_undone() -> None:
    """Only codings that we can decode are requested."""
    packed = {
        "gzip": gzip.compress(b"text"),
        "deflate": zlib.compress(b"text"),
        "br": brotli.compress(b"text"),
        "zstd": zstandard.compress(b"text"),
    }
    codings = [coding.strip() for coding in dict(build_headers("page", "me/1"))["accept-encoding"].split(",")]
    assert sorted(codings) == sorted(packed)
    assert [decode(packed[coding], coding, 100) for coding in codings] == [b"text"] * len(codings)


def test_a_robots_txt_is_wanted_plain() -> None:
    """A robots.txt may be truncated at its size limit, and half of a compressed file would be useless."""
    assert dict(build_headers("robots", "me/1"))["accept-encoding"] == "identity"


def test_each_purpose_asks_for_its_kind() -> None:
    """Pages are requested as HTML, robots.txt as plain text; other types are accepted as well."""
    accepts = [dict(build_headers(purpose, "me/1"))["accept"] for purpose in ("page", "robots")]
    assert [accept.partition(",")[0] for accept in accepts] == ["text/html", "text/plain"]
    assert all("*/*" in accept for accept in accepts)
