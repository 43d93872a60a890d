"""Title, links, base and robots meta of pages, from the tidy to the hostile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from vedette.parse.charsets import codec_of
from vedette.parse.html import Reading, decode_text, is_html, read_html

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
    """The links of a page."""
    return read_html(text).links


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
    """The title is the first title element's text, with its white space collapsed and its references read."""
    assert read_html(text).title == title


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
    """The first base with an address counts; one of a megabyte would be paid for with every link, so it does not."""
    assert read_html(text).base == base


def test_links_in_order_and_once() -> None:
    """Links come in the order of the page, each once; areas of maps are links too."""
    assert links("<a href=/b>1</a><area href=/a><a href=/b>2</a><a href=''>3</a>") == ("/b", "/a", "")


@pytest.mark.parametrize("rel", ["nofollow", "NOFOLLOW", "me nofollow", "\tnofollow\n"])
def test_nofollow(rel: str) -> None:
    """A link that its author does not vouch for is left out; a word that only contains the word is another word."""
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
    """References are read by the rules for attributes: a parameter that looks like one stays a parameter."""
    assert links(f'<a href="{written}">') == (href,)


@pytest.mark.parametrize("hidden", ["template", "script", "style", "textarea", "xmp", "iframe", "noembed", "noframes"])
def test_what_is_no_part_of_the_page(hidden: str) -> None:
    """Links inside inert or raw text are not links; those after it are."""
    assert links(f"<{hidden}><a href=/in></{hidden}><a href=/out>") == ("/out",)


def test_noscript_is_read() -> None:
    """A crawler runs no scripts, so what is meant for that case is meant for it."""
    assert links("<noscript><a href=/plain></noscript>") == ("/plain",)


def test_robots_meta() -> None:
    """Named metas arrive as they were written, in their order; others have no say."""
    text = "<meta name=Robots content='noindex, nofollow'><meta charset=x><meta name=a><meta name=vedette content>"
    assert read_html(text).robots_meta == (("Robots", "noindex, nofollow"), ("vedette", ""))


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_links_are_those_of_a_full_parser(text: str) -> None:
    """On markup that needs no tree, the links and the title are those that a complete HTML parser finds."""
    tree = LexborHTMLParser(text)
    found = [node.attributes for node in tree.css("a[href], area[href]")]
    wanted = dict.fromkeys(a["href"] or "" for a in found if "nofollow" not in (a.get("rel") or "").split())
    assert links(text) == tuple(wanted)
    title = tree.css_first("title")
    assert read_html(text).title == (" ".join(title.text().split()) if title else "")


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
    """Deep nesting, many links and unfinished markup are read to the end, in time that grows with length alone."""
    reading = read_html(text + "'\"></a></script></title>--></svg>")
    assert len(reading.links) <= 1
    assert len(reading.robots_meta) < MANY


def test_formatting_that_explodes_in_a_tree() -> None:
    """Paragraphs that would reopen thousands of formatting elements each cost what they weigh."""
    opened = "".join(f"<font size={number}>" for number in range(MANY))
    assert links(f"<p>{opened}{'<p>x' * MANY}<a href=/end>") == ("/end",)


def test_the_number_of_links_is_bounded() -> None:
    """A page of a hundred thousand links yields the first of them, and its title all the same."""
    reading = read_html("".join(f"<a href={number}>" for number in range(MANY)) + "<title>end</title>")
    assert 1_000 <= len(reading.links) < MANY
    assert reading.links[:2] == ("0", "1")
    assert reading.title == "end"


def test_lengths_are_bounded() -> None:
    """No title or link of a stranger is kept at any length; its neighbours are."""
    reading = read_html(f"<title>{'x' * MANY}</title><a href=/{'x' * MANY}><a href=/b>")
    assert 100 <= len(reading.title) < MANY
    assert reading.links == ("/b",)


def is_clean(reading: Reading) -> bool:
    """Whether all of a reading can be written down."""
    strings = (
        reading.title,
        *reading.links,
        reading.base or "",
        *(part for pair in reading.robots_meta for part in pair),
    )
    return all("\0" not in text and text == text.encode(errors="replace").decode() for text in strings)


def test_surrogates_and_nul() -> None:
    """What no file could keep is replaced where it stands."""
    text = "\ud800<title>a\0\udfff</title><a href='/\ud800'><base href='\0'><meta name=a content='\udc00'>"
    assert is_clean(read_html(text))
    assert len(links(text)) == 1


@given(
    st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Ll", "Po"]))
    | st.lists(st.sampled_from(PIECES)).map("".join)
)
def test_any_text_can_be_read(text: str) -> None:
    """Nothing that a page says is an error, and everything read off it can be kept."""
    assert is_clean(read_html(text))


@given(st.binary(), st.text(max_size=40) | st.text(max_size=20).map(lambda name: f"text/html; charset={name}"))
def test_any_bytes_can_be_decoded(body: bytes, content_type: str) -> None:
    """Any bytes under any type are some text, without surrogates."""
    text = decode_text(body, content_type)
    assert text == text.encode(errors="replace").decode()
    assert isinstance(is_html(content_type, body), bool)


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=iso-8859-1", "é"),
        (b"\xff\xfea\0", "text/html; charset=utf-8", "a"),
        (b"\xfe\xff\0a", "", "a"),
        (b"\xe9", "text/html; charset=ISO-8859-1", "é"),
        (b"\x80", 'text/html; charset="latin1"', "€"),
        (b"\xe9", "text/html;Charset = 'windows-1252'", "é"),
        ("<meta charset=koi8-r>да".encode("koi8-r"), "text/html", "<meta charset=koi8-r>да"),
        (b"<meta charset=koi8-r>\xc3\xa9", "text/html; charset=utf-8", "<meta charset=koi8-r>é"),
        (b"<meta charset=koi8-r>\xc4", "text/html; charset=nonsense", "<meta charset=koi8-r>д"),
        (b"<meta charset=utf-16>\xc3\xa9", "", "<meta charset=utf-16>é"),
        ("<meta charset=shift_jis>あ".encode("cp932"), "", "<meta charset=shift_jis>あ"),
        (b"<meta http-equiv=a content='text/html; charset=big5'>\xa7A", "", None),
        (b"\xc3\xa9", "", "é"),
        (b"a\xffb", "", "a\ufffdb"),
    ],
)
def test_the_charset_decision(body: bytes, content_type: str, text: str | None) -> None:
    """A byte-order mark, then the header, then the page, then UTF-8; Latin-1 is what browsers make of it."""
    wanted = body.decode("big5") if text is None else text
    assert decode_text(body, content_type) == wanted


@pytest.mark.parametrize("label", ["unicode_escape", "punycode", "idna", "utf-7", "undefined", "hex", "rot13", "mbcs"])
def test_names_that_only_python_knows(label: str) -> None:
    """A page cannot choose a codec that is no charset of the web: some of them are slow, unsafe or not text."""
    assert codec_of(label) is None
    body = f"<meta charset={label}>\\ud800 +2AA- \\q".encode()
    assert decode_text(body, f"text/html; charset={label}") == body.decode()


@pytest.mark.parametrize(
    ("content_type", "body", "html"),
    [
        ("text/html", b"", True),
        ("Text/HTML ; charset=x", b"", True),
        ("application/xhtml+xml", b"", True),
        ("text/plain", b"<!doctype html>", False),
        ("application/pdf", b"<html>", False),
        ("", b"\n <!DOCTYPE html>", True),
        ("", b"\xef\xbb\xbf<html>", True),
        ("", b"%PDF-1.7", False),
    ],
)
def test_what_is_html(content_type: str, body: bytes, html: bool) -> None:  # noqa: FBT001 - a column of the table
    """The declared type decides; only where there is none, the body is looked at."""
    assert is_html(content_type, body) is html
