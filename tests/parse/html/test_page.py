"""The parsed content of a page: text, main text, links and metadata."""

import pytest

from vedette.parse.html.page import Link, Page, parse_page

OWN_TEXT = (
    "This page has as much text of its own as a page of a shop or a small office has, and that is what is found. " * 8
)
PROSE = "The keeper of the light went down to the boats every evening, and came back with news of the ships. "
MENU = "".join(f"<li><a href=/m{number}>Entry {number}</a></li>" for number in range(8))


def main(body: str) -> str:
    """Return the content of a page."""
    return parse_page(body).main


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<b>V</b>edette", "Vedette"),
        ("<!-- x -->V<!-- y -->edette", "Vedette"),
        ("<x-y>V</x-y>edette", "Vedette"),
        ("one<br>two", "one two"),
        ("<table><tr><td>one<td>two</table>", "one two"),
        ("<p>one<p>two", "one\ntwo"),
        ("<DIV>one</DIV><Div>two</dIV>", "one\ntwo"),
        ("<li>one</li> <li>two</li>", "one\ntwo"),
        ("a \n\t b&nbsp;\n\nc", "a b c"),
        ("a&shy;b", "ab"),
        ("Q&ampA &lt;b&gt; &#x263A; &amp;lt;", "Q&A <b> ☺ &lt;"),
        ("1 < 2 <3", "1 < 2 <3"),
        ("<p>a</p><script>b</script><style>c</style><template>d<template>e</template>f</template><p>g", "a\ng"),
        ("a<textarea>b</textarea><iframe>c</iframe><svg><text>d</text></svg>", "a"),
        ("a<![CDATA[b]]>", "a"),
        ("a<b", "a"),
        ("", ""),
    ],
)
def test_visible_text(markup: str, text: str) -> None:
    """Inline tags do not split words, breaks and cells do, blocks are lines; hidden content is not text."""
    assert parse_page(markup).text == text


@pytest.mark.parametrize(
    "hidden",
    [
        "<div hidden>two words</div>",
        "<p style='Display : NONE'>two words</p>",
        "<span style='visibility:hidden'>two <span>words</span></span>",
        "<div style='font-size:0'><nav>two words</nav></div>",
        "<p hidden>two words",
    ],
)
@pytest.mark.parametrize("after", ["<p>after</p>", "<div>after</div>"])
def test_hidden_text(hidden: str, after: str) -> None:
    """Hidden text isn't part of the page but is counted, and the text after it is visible."""
    page = parse_page(f"<p>before</p>{hidden}{after}")
    assert (page.text, page.hidden_words) == ("before\nafter", 2)


@pytest.mark.parametrize(
    "around",
    [
        "<nav>{}</nav>",
        "<header>{}</header>",
        "<footer>{}</footer>",
        "<aside>{}</aside>",
        "<div role=navigation><div>{}</div></div>",
        "<div aria-hidden=true>{}</div>",
        "<ul class='main-menu'>{}</ul>",
        "<div id=cookieNotice><p>{}</div>",
        "<ul>{}</ul>",
    ],
)
def test_boilerplate_goes(around: str) -> None:
    """Menus, notices and link lists are visible but not content, identified by name or only by structure."""
    page = parse_page(f"{around.format(MENU)}<h2>News</h2><p>{PROSE}</p>{around.format(MENU)}")
    assert page.main == f"News\n{PROSE.strip()}"
    assert "Entry 3" in page.text


@pytest.mark.parametrize(
    ("markup", "kept"),
    [
        (f"<p>{PROSE}</p><ul><li>oil<li>wick<li>matches</ul><p>{PROSE}</p>", "wick"),
        (f"<p>{PROSE}</p><pre>x = 1</pre>", "x = 1"),
        (f"<p>{PROSE}</p><table><tr><th>Year<th>Ships<tr><td>1871<td>12</table>", "1871 12"),
        (f"<article><header><h1>The light</h1></header><p>{PROSE}</p></article>", "The light"),
        (f"<p>{PROSE}</p><p>See <a href=/x>the harbour</a></p><p>{PROSE}</p>", "See the harbour"),
        (f"<div class='content has-sidebar'><p>{PROSE}</p></div>", "keeper"),
        (f"<form><p>{PROSE}</p></form>", "keeper"),
    ],
)
def test_content_stays(markup: str, kept: str) -> None:
    """Lists and links in prose, code, tables, the header of an article and a form around the page are content."""
    assert kept in main(markup)


def test_main_element_is_preferred() -> None:
    """Text outside of what the author marks as content doesn't count if enough is inside."""
    assert main(f"<p>Elsewhere. {PROSE}</p><main><p>{PROSE}</p></main>") == PROSE.strip()
    assert "Elsewhere" in main(f"<p>Elsewhere. {PROSE * 9}</p><main><p>Very little here.</p></main>")


@pytest.mark.parametrize(
    "markup",
    [
        f"<nav><a href=/>Home</a><main><p>{PROSE}</p></main>",
        f"<nav><a href=/>Home</a><h1>The light</h1><p>{PROSE}</p>",
        f"<header><a href=/>Home</a><article><p>{PROSE}</p></article>",
        f"<div class=sidebar><a href=/>Home</a><p>{PROSE}</p><p>{PROSE}</p>",
        f"<nav><a href=/>Home</a><p>{PROSE}</p><nav><a href=/>Home</a></nav>",
        f"<nav><div hidden></nav><p>{PROSE}</p>",
    ],
)
def test_what_is_left_open_does_not_swallow_the_page(markup: str) -> None:
    """An unclosed menu ends where content begins, or is judged by its content."""
    content = main(markup)
    assert PROSE.strip() in content
    assert "Home" not in content


def test_without_prose() -> None:
    """Without prose, all of the little text counts; a page of links is its own content."""
    assert main(f"<nav>{MENU}</nav><p>Closed today") == "Closed today"
    page = parse_page(f"<ul>{MENU}</ul>")
    assert page.main == page.text
    assert page.words == 16


@pytest.mark.parametrize(
    ("markup", "link"),
    [
        ("<a href=/x> the\n <b>b</b>oat </a>", Link("/x", "the boat", nofollow=False)),
        ("<a href=/x><img alt='a &amp; b'></a>", Link("/x", "a & b", nofollow=False)),
        ("<a href=/x><img alt=no>words</a>", Link("/x", "words", nofollow=False)),
        ("<a href=/x><h2>A</h2><p>card</p></a>", Link("/x", "A card", nofollow=False)),
        ("<a href=/x rel='UGC'>w</a>", Link("/x", "w", nofollow=True)),
        ('<a class="c" href="/x" rel="sponsored me">w</a>', Link("/x", "w", nofollow=True)),
        ("<map><area href=/x alt='the quay'></map>", Link("/x", "the quay", nofollow=False)),
        ("<frameset><frame src=x.html></frameset>", Link("x.html", "", nofollow=False)),
        ("<iframe title=t src='x.html'>no <a href=/y>link</a></iframe>", Link("x.html", "", nofollow=False)),
        ("<a href=/x></a><a href=/x>words</a><a href=/x>others</a>", Link("/x", "words", nofollow=False)),
        ("<a href=/x rel=nofollow>w</a><a href=/x>v</a>", Link("/x", "w", nofollow=False)),
        ("<svg><a href='/x'><title>no</title></a></svg>", Link("/x", "", nofollow=False)),
        ("<a href=/x>never closed", Link("/x", "never closed", nofollow=False)),
        ("one<a href=/x><p></a>", Link("/x", "", nofollow=False)),
    ],
)
def test_links(markup: str, link: Link) -> None:
    """A link has its text or that of its image; each URL appears once, and is followed if any of its links may be."""
    assert parse_page(markup).links == (link,)


def test_links_end_where_others_begin() -> None:
    """An unclosed link ends where the next one begins."""
    assert [link.text for link in parse_page("<a href=/a>one<a href=/b>two</a>three").links] == ["one", "two"]


def test_text_after_a_hidden_paragraph() -> None:
    """The end of a paragraph ends its hiding, whatever comes next."""
    assert parse_page("<p hidden>secret</p>open").text == "open"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<span class=x>a</span><span hidden>b<span class=x>c</span>d</span>e", "a\ne"),
        ("<span class=x>a<span hidden>b</span>c</span>d", "a\ncd"),
        ("<p class=x>a</p><p hidden>b<p class=x>c", "a\nc"),
        ("<p class=x>a</p><div hidden>b<p class=x>c</div><p class=x>d", "a\nd"),
        ("<div hidden><span hidden>a</span><p hidden>b</p></div><span hidden>c</span>d<p hidden>e</p>f", "d\nf"),
    ],
)
def test_tags_that_were_seen_before(markup: str, text: str) -> None:
    """The first effect of a tag does not determine later ones: that depends on hidden containers around it."""
    assert parse_page(markup).text == text


def test_headings_and_title() -> None:
    """Headings have levels; the first top-level one is the title of a page that has none."""
    page = parse_page("<h2>Be<b>fore</b></h2><h1> The <a href=/>light</a></h1><h3></h3>")
    assert page.headings == ((2, "Before"), (1, "The light"))
    assert page.title == "The light"
    assert parse_page("<title>T</title><h1>H</h1>").title == "T"


HEAD = """
<html lang=en-GB><meta http-equiv=Content-Language content=de>
<meta property=og:description content=shared><meta name=Description content=' a  page '>
<link rel=canonical href=/one><link rel=canonical href=/two><meta property=og:url content=/three>
<meta http-equiv=refresh content="7;URL='/new?a=1'">
<link rel=alternate hreflang=DE href=/de><link rel='alternate' type=application/atom+xml href=/feed>
<meta property=article:published_time content=2024-05-06><meta itemprop=dateModified content=2024-06-07>
<time datetime=2024-05-05 pubdate></time><time itemprop=datePublished datetime=2024-05-04></time><time datetime=noon>
<script type="application/ld+json">{"@type": "Article"}</script><script>var no;</script>
"""


def test_what_a_page_says_of_itself() -> None:
    """Language, description, canonical, refresh, alternates, feeds and dates are those declared by the page."""
    page = parse_page(HEAD)
    assert (page.language, page.description, page.canonical) == ("en", "a page", "/one")
    assert page.refresh == (7, "/new?a=1")
    assert (page.alternates, page.feeds) == ((("de", "/de"),), ("/feed",))
    assert page.linked_data == ('{"@type": "Article"}',)
    assert page.stamps == (
        ("article:published_time", "2024-05-06"),
        ("datemodified", "2024-06-07"),
        ("pubdate", "2024-05-05"),
        ("datepublished", "2024-05-04"),
        ("time", "noon"),
    )


@pytest.mark.parametrize(
    ("content", "refresh"),
    [
        ("0;url=/x", (0, "/x")),
        ("5, /x", (5, "/x")),
        ("0.5; url = /x ", (0, "/x")),
        (";url=/x", (0, "/x")),
        ("30", None),
        ("30; url=", None),
        ("soon; url=/x", None),
    ],
)
def test_refresh(content: str, refresh: tuple[int, str] | None) -> None:
    """A page that redirects says when and where; one that reloads itself does not."""
    assert parse_page(f'<meta http-equiv=refresh content="{content}">').refresh == refresh


@pytest.mark.parametrize(
    ("markup", "needs"),
    [
        ("<div id=root></div><script src=/app.js></script>", True),
        ('<title>App</title><body><div class="x" id="__next"> </div><script>boot()</script>', True),
        ("<noscript>You need to enable JavaScript to run this app.</noscript><script src=a></script>", True),
        ("<script>a</script><script>b</script>", True),
        ("<p>Loading ...</p><script>a</script>", True),
        ("<script type='text/x-handlebars-template'><p>All of it</p></script><ul><li>Streams</ul>", True),
        (f"<div id=root></div><p>{PROSE * 3}</p><script>a</script>", False),
        (
            f"<ul>{'<li>Item of a menu' * 20}</ul><div id=app data-page='{'x' * 999}'></div><script src=a></script>",
            True,
        ),
        (f"<ul>{'<li>Item of a menu' * 20}</ul><div id=app>x<b>y</b></div><script src=a></script>", False),
        (f"<p>{PROSE * 9}</p><script>{'x' * 400_000}</script>", True),
        (f"<p>{PROSE * 9}</p><img src='data:{'x' * 400_000}'><script>count()</script>", False),
        (f"<p>{PROSE * 90}</p><script>{'x' * 400_000}</script>", False),
        ("<script type=application/ld+json>{}</script>", False),
        ("<p>Closed today.</p>", False),
        ("<p>Closed today.</p><script>count()</script>", False),
        ("", False),
    ],
)
def test_a_page_that_is_empty_without_scripts(markup: str, needs: bool) -> None:  # noqa: FBT001 - a column of the table
    """A page with almost no words for its size, and a script that would add them, is detected."""
    assert parse_page(markup).needs_script is needs


@pytest.mark.parametrize(
    "wrapped",
    [
        "<template>{}</template>",
        "<noscript>{}</noscript>",
        "<script type='text/x-handlebars-template' id=a>{}</script>",
        '<SCRIPT TYPE="text/html">{}</SCRIPT>',
        "<div><template shadowrootmode=open>{}</template></div>",
    ],
)
def test_a_page_whose_text_is_in_a_template(wrapped: str) -> None:
    """Text in a template is read, with its headings and links; URLs that a script would fill in are skipped."""
    text = (
        f"<h1>Almonds</h1><p>{PROSE * 3} <a href=/figs>Figs</a> <a href='/{{{{version}}}}/x'>no</a> in {{{{year}}}}</p>"
    )
    page = parse_page(f"<nav><a href=/>Home</a></nav>{wrapped.format(text)}<script src=a></script>")
    assert PROSE.strip() in page.main
    assert page.headings == ((1, "Almonds"),)
    assert "/figs" in [link.href for link in page.links]
    assert not page.needs_script
    assert page.needs_script_links is ("<script" in wrapped.lower())


def test_a_page_whose_links_are_in_a_template() -> None:
    """A table of contents has fewer words than the menu around it, but links to every chapter."""
    menu = "".join(f"<li><a href=/menu/{number}>Item {number} of a menu</a>" for number in range(20))
    chapters = "".join(f"<li><a class='reference internal' href={number}.html>Chapter</a>" for number in range(9))
    template = f"<script type='text/x-handlebars-template'><h1>Guide</h1><ul>{chapters * 2}</ul></script>"
    page = parse_page(f"<nav><ul>{menu}</ul></nav>{template}")
    assert {f"{number}.html" for number in range(9)} <= {link.href for link in page.links}


def test_links_that_scripts_write_are_not_links_of_the_page() -> None:
    """Markup inside a script, or a template next to the page's own text, doesn't mean that it needs JavaScript."""
    link = "<a href='/${version}/x'>x</a>"
    for markup in (
        f"<p>{PROSE * 3}</p><script>show(`{link}`)</script>",
        f"<p>{PROSE * 3}</p><template>{link}</template>",
    ):
        assert not parse_page(markup).needs_script_links


@pytest.mark.parametrize(
    "template",
    [
        f"<template><p>{PROSE * 3}</p></template>",
        "<script type=text/x-template><b>{{name}}</b> costs {{price}} now, {{n}} left of {{all}}</script>" * 20,
        f"<script type=application/json>{PROSE * 90}</script>",
    ],
    ids=["a page with text of its own", "a control", "data"],
)
def test_a_template_that_is_no_text_of_the_page(template: str) -> None:
    """A template is ignored if the page has its own text, or if it is mostly placeholders."""
    page = parse_page(f"<p>{OWN_TEXT}</p>{template}<script src=a></script>")
    assert page.main == OWN_TEXT.strip()


def test_an_empty_page() -> None:
    """An empty page is a page, too."""
    assert parse_page("") == Page(
        "", "", "", (), (), (), None, None, None, (), (), (), (), (), (), "", "", 0, 0, *[False] * 3
    )


LONG = "This is a sentence of the article that is long enough to be taken for prose by anybody who reads it closely."


def test_comments_marked_up_as_articles_are_not_the_page() -> None:
    """The text of a post counts even if only its comments are articles."""
    comments = "".join(f'<article class="comment"><p>I agree, and {LONG} {number}</p></article>' for number in range(5))
    page = parse_page(f"<div id=post><h1>Post</h1><p>{LONG}</p><p>{LONG} More.</p></div>{comments}")
    assert page.main == f"Post\n{LONG}\n{LONG} More."


def test_a_suspect_class_around_the_whole_text() -> None:
    """A container that holds most of the prose is content; one inside it may still be suspect."""
    menu = '<div class="sidebar"><p>Subscribe to us today.</p></div>'
    page = parse_page(f"<div class='theme-sidebar-left'><p>{LONG}</p><p>{LONG} Two.</p>{menu}</div>")
    assert page.main == f"{LONG}\n{LONG} Two."


def test_articles_after_the_page_s_own() -> None:
    """The first large article is the page; longer ones after it may belong to other pages."""
    first, second = f"<p>{LONG}</p><p>{LONG} Two.</p>", f"<p>{LONG} Three.</p><p>{LONG} Four.</p><p>{LONG} Five.</p>"
    page = parse_page(f"<main><article>{first}</article><article>{second}</article></main>")
    assert page.main == f"{LONG}\n{LONG} Two."


def test_comments_below_a_post() -> None:
    """Comments are not main text, however long they are; a post that names its author and tags is."""
    comments = f"<ol id=comments><li class=comment-body><p>{LONG * 3} I agree.</p></ol>"
    post = f"<div class='hentry author-ann tag-comments'><p>{LONG * 2}</p><p>{LONG * 2} Two.</p></div>"
    assert main(f"{post}{comments}") == f"{LONG * 2}\n{LONG * 2} Two."


def test_a_paragraph_with_a_suspect_class() -> None:
    """A very long paragraph is content, and so are paragraphs that hold most of the prose; a short one is not."""
    note = "<p class=teaser>Read on in our newsletter tomorrow.</p>"
    lead = f"<p class=teaser>{LONG * 3}</p>"
    assert main(f"{lead}<p>{LONG}</p><p>{LONG} Two. {LONG * 4}</p>{note}").startswith(LONG * 3)
    assert main(f"<p class=paywall>{LONG}</p><p class=paywall>{LONG} Two.</p>{note}").startswith(f"{LONG}\n{LONG} Two.")
    assert "newsletter" not in main(f"<p>{LONG}</p><p>{LONG} Two.</p>{note}")


def test_the_caption_of_a_figure() -> None:
    """A caption is not main text; a heading's id of many words says nothing about its section."""
    figure = f"<figure><img src=a.png><figcaption><p>{LONG} Photo: Ann</p></figcaption></figure>"
    section = f"<div id=sharing-with-a-single-developer><p>{LONG} Two.</p></div>"
    assert main(f"<p>{LONG * 3}</p>{figure}{section}<p>{LONG} Three.</p>") == (
        f"{LONG * 3}\n{LONG} Two.\n{LONG} Three."
    )


def test_captions_dates_and_buttons() -> None:
    """Short text outside of paragraphs is not main text if paragraphs contain the text; next to code, it is."""
    image = "<img src=a.png><div>A tower at night, seen from the river. Photo: Ann Example</div>"
    text = f"<p>{LONG}</p>{image}<p>{LONG} Two.</p>"
    code = "<figure><figcaption>Listing 1: a loop</figcaption><pre>while True: pass</pre></figure>"
    page = parse_page(f"<h1>Title</h1><div>3 min read</div>{text}<div>Share</div>{code}")
    assert page.main == f"Title\n{LONG}\n{LONG} Two.\nListing 1: a loop\nwhile True: pass"


def test_items_with_links() -> None:
    """List items that are partly links are text; those that are only links are a menu."""
    items = "".join(f"<li><a href=/{n}>Option {n}</a> sets how many there are</li>" for n in range(4))
    menu = "".join(f"<li><a href=/{n}>Chapter number {n}</a></li>" for n in range(4))
    page = parse_page(f"<p>{LONG}</p><ul>{items}</ul><p>{LONG} Two.</p><ul>{menu}</ul>")
    assert "Option 3 sets how many there are" in page.main
    assert "Chapter" not in page.main


def test_text_that_a_script_reveals() -> None:
    """Hidden paragraphs count if they are nearly all of the page, not if they are an addition."""
    hidden = "".join(f"<p>{LONG} {number}</p>" for number in range(12))
    assert f"{LONG} 11" in parse_page(f"<h1>News</h1><div hidden>{hidden}</div>").main
    addition = f"<div hidden>{hidden.replace('This', 'That')}</div>"
    assert "That is" not in parse_page(f"<h1>News</h1>{hidden}{addition}").main
