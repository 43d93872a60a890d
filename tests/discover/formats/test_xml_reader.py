"""The scanner for sitemaps and feeds, with good and bad markup."""

from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.discover.formats.feeds import parse_feed
from vedette.discover.formats.sitemaps import parse_sitemap
from vedette.discover.formats.xml_reader import parse_attributes, scan

HOME = "https://host.example/"
texts = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), max_size=20)
names = st.from_regex(r"[a-z][a-z0-9:_.-]{0,8}", fullmatch=True)


def visible(body: str) -> str:
    """Return all texts in order."""
    return "".join(text for kind, text, _ in scan(body) if kind == "text")


@given(texts, names)
def test_escaped_text_comes_back(text: str, name: str) -> None:
    """A well-formed element yields its start, its text and its end."""
    events = list(scan(f"<{name}>{escape(text)}</{name}>"))
    assert [event[:2] for event in events if event[0] != "text"] == [("open", name), ("close", name)]
    assert visible(f"<{name}>{escape(text)}</{name}>") == text


@given(st.dictionaries(names, texts, max_size=5))
def test_quoted_attributes_come_back(written: dict[str, str]) -> None:
    """Values in either kind of quotes are read, with entities replaced and surrounding white space removed."""
    raw = "".join(f" {name}={quoteattr(value)}" for name, value in written.items())
    ((kind, _, attributes), _) = scan(f"<a{raw}/>")
    assert kind == "open"
    assert parse_attributes(attributes) == {name: value.strip() for name, value in written.items()}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a<!-- <b> -- c -->d", "ad"),
        ("a<!-- never closed <b>", "a"),
        ("a<![CDATA[<b>&amp;]] ]>]]>c", "a<b>&amp;]] ]>c"),
        ("a<![CDATA[never closed <b>", "anever closed <b>"),
        ("a<!DOCTYPE x [<!ENTITY y 'z'>]>b&y;", "ab&y;"),
        ("a<?php echo 1 ?>b", "ab"),
        ("1 < 2", "1 < 2"),
        ("a<b c='>'>d", "ad"),
        ("a<b it's>c", "ac"),
        ("a<b c='d<e>f", "a<b c='df"),
    ],
)
def test_what_is_text_and_what_is_not(body: str, text: str) -> None:
    """Comments, instructions and document types are dropped; a bracket that opens nothing is a character."""
    assert visible(body) == text


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a",
        '<a "',
        "<a '",
        "<!--",
        "<!-",
        "<![CDATA[",
        "<![CDATA[]",
        "<!D [",
        "<?",
        "</",
        "&",
        "&#",
        "&amp",
        "<a b=",
        "]]",
    ],
)
def test_beginnings_without_ends_are_read_in_one_pass(piece: str) -> None:
    """Thousands of unclosed constructs don't each cause a search for their end, which would take hours."""
    body = piece * (2**19 // len(piece))
    assert parse_sitemap(f"<urlset>{body}<url><loc>{body}".encode(), HOME).entries == ()
    assert parse_feed(f"<rss>{body}<item><link {body}".encode(), HOME).entries == ()
