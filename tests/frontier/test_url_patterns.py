"""Patterns fold generated numbers, keep chosen names, and accept any URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.frontier.url_patterns import check_shape, coarsen, is_suspicious, to_parameter_pattern, url_to_pattern

HOST = "https://example.org"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/calendar/2026/1/15", "/calendar/1999/12/3"),
        ("/2026/11/15/a-long-night", "/2025/01/02/first"),
        ("/thread/123-what-is-this", "/thread/9-hello"),
        ("/product/blue-kettle-731", "/product/pan-2"),
        ("/wiki/Caf%C3%A9", "/wiki/Tea"),
        ("/list?page=7&sort=up", "/list?sort=down&page=8"),
        ("/o/deadbeef01", "/o/0123456789abcdef"),
        ("/a/b/c/d/e/f/g/h/i", "/a/b/x/y/z/u/v/w"),
    ],
)
def test_pages_of_one_kind_share_a_pattern(one: str, other: str) -> None:
    """Two URLs that a site's software would build from one template are judged together."""
    assert url_to_pattern(HOST + one) == url_to_pattern(HOST + other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/calendar/2026/1", "/calendar/2026/1/15"),
        ("/news/12", "/calendar/12"),
        ("/en/news/12", "/en/calendar/12"),
        ("/posts/tea", "/posts/tea?print=1"),
        ("/posts/tea?print=1", "/posts/tea?sort=up"),
        ("/posts/tea", "/posts/tea/"),
        ("/", "/about"),
    ],
)
def test_pages_of_two_kinds_do_not(one: str, other: str) -> None:
    """A trap among real pages has a separate account, so those pages aren't charged for it."""
    assert url_to_pattern(HOST + one) != url_to_pattern(HOST + other)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_spelling_has_a_short_pattern(path: str, query: str) -> None:
    """Whatever follows the host, the pattern is short, starts with a slash, and does not change when folded again."""
    pattern = url_to_pattern(f"{HOST}/{path}?{query}")
    assert pattern.startswith("/")
    assert len(pattern) < 500
    assert coarsen(coarsen(pattern)) == coarsen(pattern)
    assert to_parameter_pattern(pattern) == pattern[pattern.index("?") :]


@pytest.mark.parametrize("unit", ["/a/b", "/1-1", "/%41", "/aaaaaaaaab", "/-"])
def test_shapes_are_judged_at_any_length(unit: str) -> None:
    """A URL of a megabyte is rejected immediately for its length; one that just fits, for its folders."""
    assert "characters" in (check_shape(HOST + unit * 250_000) or "")
    assert check_shape(HOST + unit * 40)
    assert len(url_to_pattern(HOST + unit * 250_000)) < 500


@pytest.mark.parametrize("path", ["/a/b/a/b/a/b", "/x/x/x", "/x/a/x/b/x/c/x/d/x", "/p?" + "&a=1" * 60])
def test_spellings_that_nobody_writes_are_refused(path: str) -> None:
    """URLs with cyclic or repeated folders, or dozens of parameters, are never requested, and a reason is given."""
    assert check_shape(HOST + path)


@pytest.mark.parametrize(
    "path", ["/2026/11/11/11", "/a/b/a/c", "/docs/en/api/docs", "/?a=1&b=2", "/tile/7/7/7/7/7", "/guide/a/b/c/d/e/f/g"]
)
def test_ordinary_spellings_pass(path: str) -> None:
    """Dates with repeated numbers and a folder that appears twice are ordinary."""
    assert check_shape(HOST + path) is None
    assert not is_suspicious(HOST + path)
