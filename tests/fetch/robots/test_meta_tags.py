"""Robots directives of a page."""

from datetime import UTC, datetime

import pytest

from vedette.fetch.robots.meta_tags import (
    UNRESTRICTED,
    Directives,
    merge_directives,
    parse_header_directives,
    parse_meta_directives,
)

JUNE_S = datetime(2010, 6, 25, 23, 0, 0, tzinfo=UTC).timestamp()


def of_header(*values: str) -> Directives:
    """Parse these X-Robots-Tag values."""
    return parse_header_directives(tuple(("x-robots-tag", value) for value in values), "vedette")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("noindex", Directives(index=False)),
        ("nofollow", Directives(follow=False)),
        ("none", Directives(index=False, follow=False)),
        ("NoArchive", Directives(archive=False)),
        ("nocache", Directives(archive=False)),
        ("nosnippet", Directives(snippet=False)),
        ("noindex,nofollow", Directives(index=False, follow=False)),
        (" noindex ; nofollow ", Directives(index=False, follow=False)),
        ("noindex nofollow", Directives(index=False, follow=False)),
        ("index, follow, all", UNRESTRICTED),
        ("max-snippet:80", Directives(max_snippet=80)),
        ("max-snippet: 80, max-snippet:20", Directives(max_snippet=20)),
        ("max-snippet:0", Directives(snippet=False, max_snippet=0)),
        ("max-snippet:-1", UNRESTRICTED),
        ("max-snippet:" + "9" * 5000, UNRESTRICTED),
        ("max-image-preview:large, noindex", Directives(index=False)),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", Directives(unavailable_after_s=JUNE_S)),
        ("unavailable_after: Friday, 25-Jun-10 23:00:00 GMT", Directives(unavailable_after_s=JUNE_S)),
        ("unavailable_after: Fri, 25 Jun 2010 23:00:00 GMT, noindex", Directives(False, unavailable_after_s=JUNE_S)),
        ("nofollow, unavailable_after:2010-06-25T23:00:00Z", Directives(follow=False, unavailable_after_s=JUNE_S)),
        ("unavailable_after: tomorrow, noindex", Directives(index=False)),
        ("unavailable_after:", UNRESTRICTED),
        ("noindexing, xnoindex, please", UNRESTRICTED),
        ("", UNRESTRICTED),
        (":,:,,::", UNRESTRICTED),
    ],
)
def test_the_words(words: str, expected: Directives) -> None:
    """Header and meta tag understand the same words, in any case and order, and ignore unknown ones."""
    assert of_header(words) == expected
    assert parse_meta_directives([("robots", words)], "vedette") == expected


@pytest.mark.parametrize(
    ("value", "is_indexed"),
    [
        ("noindex", False),
        ("vedette: noindex", False),
        ("Vedette : nofollow, noindex", False),
        ("robots: noindex", False),
        ("*: noindex", False),
        ("otherbot: noindex", True),
        ("otherbot: nofollow, noindex", True),
        ("otherbot: nofollow, vedette: noindex", False),
        ("vedette: nofollow, otherbot: noindex", True),
        ("noindex, otherbot: nofollow", False),
        ("vedette-images: noindex", True),
        ("noindex: true", False),
    ],
)
def test_a_header_may_address_one_agent(value: str, *, is_indexed: bool) -> None:
    """A name applies to everything up to the next name; directives for others do not apply to us."""
    assert of_header(value).index is is_indexed


def test_a_date_is_no_address() -> None:
    """The colons in a date do not make it the name of an agent."""
    assert of_header("otherbot: unavailable_after: Fri, 25 Jun 2010 23:00:00 GMT") == UNRESTRICTED
    assert of_header("vedette: unavailable_after: Fri, 25 Jun 2010 23:00:00 GMT").unavailable_after_s == JUNE_S


def test_several_headers_add_up() -> None:
    """Each header line starts with directives for everyone, and all lines are combined."""
    assert of_header("otherbot: noindex", "nofollow", "noarchive") == Directives(follow=False, archive=False)


def test_other_headers_say_nothing() -> None:
    """Only X-Robots-Tag is read."""
    assert parse_header_directives((("x-robots", "noindex"), ("robots", "none")), "vedette") == UNRESTRICTED


def test_meta_tags_of_our_name_add_to_those_for_everyone() -> None:
    """Names are compared in any case; tags for other agents and of other kinds do not count."""
    metas = [("ROBOTS", "nofollow"), (" Vedette ", "noarchive"), ("otherbot", "noindex"), ("description", "none")]
    assert parse_meta_directives(metas, "vedette") == Directives(follow=False, archive=False)


def test_merging_takes_the_stricter_part_of_each() -> None:
    """No smaller number, earlier date or prohibition is lost."""
    a = Directives(index=False, max_snippet=10, unavailable_after_s=5.0)
    b = Directives(snippet=False, max_snippet=20, unavailable_after_s=3.0)
    assert merge_directives(a, b) == Directives(False, snippet=False, max_snippet=10, unavailable_after_s=3.0)


def test_endless_headers_come_back() -> None:
    """A hundred thousand bytes of separators, words or names are parsed in time."""
    for noise in (",", "a:", "noindex ", " ", "unavailable_after:1,", "max-snippet:1,", "a" * 1000 + ","):
        assert isinstance(of_header(noise * (100_000 // len(noise))), Directives)
