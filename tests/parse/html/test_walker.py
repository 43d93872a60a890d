"""The tags of any page, tidy or hostile: found as by a full parser, in time proportional to its length."""

import re
import sys
from collections.abc import Callable
from dataclasses import fields
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from vedette.parse.change.blocks import extract_blocks
from vedette.parse.html.page import Page, parse_page

MANY = 100_000
# Markup without what only a tree can know (drawings, templates) and without what a tree drops (frames, nesting rules).
PIECES = [
    *("<a href=/x>", "<A HREF='/y?a=1&amp;b=2'>", '<a href="/z" rel="me nofollow">', "<a>", "</a>", "<area href=q/>"),
    *("<div title=\"<a href='no'>\">", "</div>", "<p>", "<br/>", "text &lt;a href=no&gt; ", "<!-- <a href=no> -->"),
    *("<script>'<a href=no>'</script>", "<style><a href=no></style>", "<textarea><a href=no></textarea>", "<", "a <b"),
    *(
        "<abbr href=no>",
        "<a\nhref\n=\n/n\nclass=c>",
        "<a data-href=no href=/d HREF=no>",
        "<a href=>",
        "<!x <a href=no>",
    ),
    *("<a href='&copy=1&copy;&#65;&#x42;&#0;&unknown;&amp'>", "<?php <a href=no> ?>", "<a/href=/s/>", "<!-->", "</ a>"),
    *("é", "\0", "<a href='\0'>", "<title>t &amp; u</title>", "<a href='>'>", "<a =b href=/e>", "<ins\fhref=no>"),
]


def links(text: str) -> tuple[str, ...]:
    """Return the links of a page without nofollow."""
    return tuple(link.href for link in parse_page(text).links if not link.nofollow)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("<title>One</title><title>Two</title>", "One"),
        ("<TITLE lang=en>\n a \t b </TITLE >", "a b"),
        ("<title>a &lt;b&gt; &amp; c</title>", "a <b> & c"),
        ("<title><a href=x>&eacute;</title>", "<a href=x>é"),
        ("<svg><title>icon</title></svg><title>page</title>", "page"),
        ("<!-- <title>no</title> --><title>yes</title>", "yes"),
        ("<title>cut off", "cut off"),
        ("<p>none</p>", ""),
    ],
)
def test_title(text: str, title: str) -> None:
    """The title is the first title element's text, with its white space collapsed and its references decoded."""
    assert parse_page(text).title == title


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("<base href='/b/'><base href='/c/'>", "/b/"),
        ("<base target=x><base href='/c/'>", "/c/"),
        ("<base href=''>", None),
        ("<a href=/b>", None),
        (f"<base href='/{'x' * 1_000_000}'>", None),
    ],
)
def test_base(text: str, base: str | None) -> None:
    """The first base with a URL counts, but not a very long one, because every link would contain it."""
    assert parse_page(text).base == base


def test_links_in_order_and_once() -> None:
    """Links are in the order of the page, each once; areas of maps are links, too."""
    assert links("<a href=/b>1</a><area href=/a><a href=/b>2</a><a href=''>3</a>") == ("/b", "/a", "")


@pytest.mark.parametrize("rel", ["nofollow", "NOFOLLOW", "me nofollow", "\tnofollow\n"])
def test_nofollow(rel: str) -> None:
    """Links with ``nofollow`` are left out; a word that only contains "nofollow" doesn't count."""
    assert links(f"<a href=/a rel='{rel}'><a href=/b rel='x-nofollow me'>") == ("/b",)


@pytest.mark.parametrize(
    ("written", "href"),
    [
        ("/?a=1&amp;b=2", "/?a=1&b=2"),
        ("/?a=1&copy=2&lt=3", "/?a=1&copy=2&lt=3"),
        ("/?a=1&region=2", "/?a=1&region=2"),
        ("/&#x41;&#66;&eacute;", "/ABé"),
        ("/&#xD800;&#0;&#x110000;&#99999999999999999999;", "/\ufffd\ufffd\ufffd\ufffd"),
    ],
)
def test_references_in_links(written: str, href: str) -> None:
    """References are decoded by the rules for attributes: a parameter that looks like one stays a parameter."""
    assert links(f'<a href="{written}">') == (href,)


@pytest.mark.parametrize("hidden", ["template", "script", "style", "textarea", "xmp", "iframe", "noembed", "noframes"])
def test_what_is_no_part_of_the_page(hidden: str) -> None:
    """Links inside inert or raw text are not links; those after it are."""
    assert links(f"<{hidden}><a href=/in></{hidden}><a href=/out>") == ("/out",)


def test_noscript_is_read() -> None:
    """A crawler runs no scripts, so the fallback for that case is parsed."""
    assert links("<noscript><a href=/plain></noscript>") == ("/plain",)


def test_robots_meta() -> None:
    """Robots metas are returned as written, in order; others are ignored."""
    text = "<meta name=Robots content='noindex, nofollow'><meta charset=x><meta name=a><meta name=vedette content>"
    assert parse_page(text).robots_meta == (("Robots", "noindex, nofollow"), ("vedette", ""))


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_links_are_those_of_a_full_parser(text: str) -> None:
    """On markup that needs no tree, the links and the title are those found by a complete HTML parser."""
    tree = LexborHTMLParser(text)
    found = [node.attributes for node in tree.css("a[href], area[href]")]
    wanted = dict.fromkeys(a["href"] or "" for a in found if "nofollow" not in (a.get("rel") or "").split())
    assert links(text) == tuple(wanted)
    title = tree.css_first("title")
    assert parse_page(text).title == (" ".join(title.text().split()) if title else "")


@pytest.mark.parametrize(
    "text",
    [
        *("<div>" * MANY, "<a href=/x>" * MANY, "<table><tr><td>" * MANY, "<svg>" * MANY, "<template>" * MANY),
        *("<a " * MANY, "<a href='" * MANY, '<a href="' + "<a href='" * MANY, "<" * MANY, "</" * MANY, "<!--" * MANY),
        *("<script>" * MANY, "<title>" * MANY, "<title></title " * MANY, "<a" + " x=" * MANY, "<a x" + " " * MANY),
        *("<a href='" + "&" * MANY + "'>", "<a href='&#" + "9" * MANY + "'>", "<meta name=a content=b>" * MANY),
        "<a " + " ".join(f"x{number}" for number in range(MANY)) + ">",
    ],
    ids=lambda text: text[:12],
)
def test_a_hundred_thousand_of_anything(text: str) -> None:
    """Deep nesting, many links and unclosed markup are parsed completely in linear time."""
    reading = parse_page(text + "'\"></a></script></title>--></svg>")
    assert len(reading.links) <= 1
    assert len(reading.robots_meta) < MANY


def test_formatting_that_explodes_in_a_tree() -> None:
    """Paragraphs that would reopen thousands of formatting elements take time in proportion to their size."""
    opened = "".join(f"<font size={number}>" for number in range(MANY))
    assert links(f"<p>{opened}{'<p>x' * MANY}<a href=/end>") == ("/end",)


def test_the_number_of_links_is_bounded() -> None:
    """Of a hundred thousand links, only the first are returned; the title is still found."""
    reading = parse_page("".join(f"<a href={number}>" for number in range(MANY)) + "<title>end</title>")
    assert 1_000 <= len(reading.links) < MANY
    assert [link.href for link in reading.links[:2]] == ["0", "1"]
    assert reading.title == "end"


def test_lengths_are_bounded() -> None:
    """Overlong titles and links are dropped, and their neighbors kept."""
    reading = parse_page(f"<title>{'x' * MANY}</title><a href=/{'x' * MANY}><a href=/b>")
    assert 100 <= len(reading.title) < MANY
    assert [link.href for link in reading.links] == ["/b"]


def strings_of(value: object) -> list[str]:
    """Return all strings in a value."""
    if isinstance(value, str):
        return [value]
    return [text for part in value for text in strings_of(part)] if isinstance(value, tuple) else []


def is_clean(page: Page) -> bool:
    """Check whether all of a page can be serialized."""
    strings = [text for field in fields(page) for text in strings_of(getattr(page, field.name))]
    return all("\0" not in text and text == text.encode(errors="replace").decode() for text in strings)


def test_surrogates_and_nul() -> None:
    """Characters that no file can store are replaced in place."""
    text = "\ud800<title>a\0\udfff</title><a href='/\ud800'><base href='\0'><meta name=a content='\udc00'>"
    assert is_clean(parse_page(text))
    assert len(links(text)) == 1


@given(
    st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Ll", "Po"]))
    | st.lists(st.sampled_from(PIECES)).map("".join)
)
def test_any_text_can_be_read(text: str) -> None:
    """Any text is parsed without an error, and the result is storable and no longer than the page."""
    page = parse_page(text)
    assert is_clean(page)
    assert len(page.main) <= len(page.text) <= len(text)
    assert sum(len(link.href) for link in page.links) <= len(text)
    assert "\n".join(block.text for block in extract_blocks(text)) == page.text


TIDY = [
    *(
        '<a href="/x">',
        '<a class="c" href="/y">',
        '<a href="/z" rel="nofollow">',
        '<a title="&gt;>" href="/w">',
        "</a>",
    ),
    *('<p class="c">', '<p hidden="">', "</p>", '<span class="c">', '<span hidden="">', "</span>", "<li>", "</li>"),
    *(
        '<div class="nav">',
        "</div>",
        "<b>",
        "</b>",
        "<strong>",
        "<td>",
        "<br>",
        "<h2>",
        "</h2>",
        '<img alt="i">',
        "<nav>",
    ),
    *("words ", "It is a sentence of some length.", " ", "\n", "&amp;", "é", "<", "\0", "<!-- -->"),
]


def untidy(piece: str) -> str:
    """Write a tag in capitals, with a space before its end; leave anything else unchanged."""
    return re.sub(r"^<(/?\w+)(.*)>$", lambda tag: f"<{tag[1].upper()}{tag[2]} >", piece)


@given(st.lists(st.sampled_from(TIDY)))
def test_the_way_of_writing_does_not_matter(pieces: list[str]) -> None:
    """Tidy tags take a faster path, with the same result."""
    assert parse_page("".join(map(untidy, pieces))) == parse_page("".join(pieces))


@pytest.mark.parametrize(("written", "sign"), [("&amp", "&"), ("&amp;", "&"), ("a&lt;b", "a<b"), ("&#65", "A")])
def test_any_number_of_references(written: str, sign: str) -> None:
    """Megabytes of references are parsed like a few of them."""
    assert parse_page(written * MANY).text == sign * MANY


def calls(read: Callable[[str], object], text: str) -> int:
    """Count the function calls, including those in C, that parsing a text takes."""
    count = 0

    def counting(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(counting)
    try:
        read(text)
    finally:
        sys.setprofile(None)
    return count


HOSTILE = [
    *(
        "<div>",
        "<div class=nav>",
        "<div hidden>",
        "<nav>",
        "</nav>",
        "<main>",
        "<article>",
        "<header>",
        "<h1>",
        "</h1>",
    ),
    *(
        "<a href=x>y",
        "<a href=x><p>y</p>",
        "<p class=x>y",
        "<li>y",
        "<td>y",
        "<td><a href=x>y",
        "<span hidden>",
        "</p>",
    ),
    *(
        "<noscript>javascript",
        "</noscript>",
        "<template>",
        "</template>",
        "<svg>",
        "<svg><a href=x>",
        "</svg>",
        "<svg/>",
    ),
    *(
        "<select><option>",
        "<button>",
        "<script>",
        "<title>",
        "<script></script>",
        "&amp;",
        "&amp",
        "&#65;",
        "&x",
        "&",
        "\0",
        "<x>",
    ),
    *("<meta name=a content=b>", "<time datetime=x>", "<link rel=alternate hreflang=a href=b>", "<img alt=x>", "<pre>"),
    *("<nav><div hidden>", "<main><nav>", "</div>", "<br>", "\x01", "\ud800", "<!--", "-->", "<![CDATA[", "\n", "  "),
]


@pytest.mark.parametrize("read", [parse_page, extract_blocks])
@pytest.mark.parametrize("shape", HOSTILE)
def test_twice_the_text_is_at_most_twice_the_work(shape: str, read: Callable[[str], object]) -> None:
    """Whatever is repeated, the number of calls grows no faster than the page."""
    once, twice = calls(read, shape * 1000), calls(read, shape * 2000)
    assert twice <= 2.1 * once + 100


def test_lists_are_bounded() -> None:
    """Lists in the result are bounded, however often a page repeats their items."""
    message = "<h2>x</h2><meta name=date content=x><time datetime=x><link rel=alternate hreflang=a href=b>"
    data = "<script type=application/ld+json>{}</script>"
    page = parse_page((message + data) * 5000)
    kept = (page.headings, page.stamps, page.alternates, page.linked_data, page.robots_meta)
    assert all(0 < len(each) < 5000 for each in kept)


def test_a_page_of_millions_of_tags_is_read_in_part() -> None:
    """The first tags of a page with millions of them are parsed; the rest is ignored."""
    page = parse_page("<p>first" + "<i>" * 1_500_000 + "<p>last")
    assert page.text == "first"


def test_megabytes_in_one_tag() -> None:
    """A tag of megabytes is skipped, and the text after it is read."""
    page = parse_page(f"<div {'x=1 ' * 1_000_000} class='{'nav ' * 100_000}'><p>Here the page goes on.</div>")
    assert page.text == "Here the page goes on."


def test_an_attribute_is_whole_or_not_there() -> None:
    """However much precedes it in a tag, a URL is never truncated."""
    assert not parse_page(f"<a{' ' * 200_000}href=/x>").links
    for length in range(0, 200_000, 999):
        page = parse_page(f"<a {'x' * length} href='{'/abcdefghi' * 200}'>y</a>")
        assert all(link.href == "/abcdefghi" * 200 for link in page.links)


def test_words_of_links_are_those_of_a_full_parser() -> None:
    """On a well-formed page, anchor texts and headings are those found by a complete HTML parser."""
    text = "".join(
        f"<h{level}>T{level} <i>i</i></h{level}><p>See <a href=/{level}>the <b>b</b>oat &amp; {level}</a>.</p>"
        for level in range(1, 7)
    )
    tree, page = LexborHTMLParser(text), parse_page(text)
    assert [link.text for link in page.links] == [node.text() for node in tree.css("a")]
    assert [heading for _, heading in page.headings] == [node.text() for node in tree.css("h1, h2, h3, h4, h5, h6")]
