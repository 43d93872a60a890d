"""Sections: pages are split at their headings, and the section that answers a query is found."""

from urllib.parse import unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from vedette.engine.search.search import build_excerpts
from vedette.index.fields import StoredPage, pack_page, unpack_page
from vedette.index.sections import Section, choose_sections, outline_text, split_sections
from vedette.index.snippets import search_text, tidy_text
from vedette.parse.html.page import parse_page

FILLER = "<p>Nothing of note is said in this sentence, whatever you look for.</p>" * 40
MANUAL = f"""<title>Manual</title><h1>Manual of the harbor</h1>{FILLER}
<h2 id="boats">Boats¶</h2><p>Boats are moored at the pier, and nets dry in the sun.</p>{FILLER}
<section id="birds"><h2>Sea birds</h2><p>Gulls nest on the roof. Terns eat the fish that boats leave.</p></section>
<h2>Opening hours</h2>{FILLER}<p>The harbor closes at dusk, when the terns sleep.</p>
<h2><a name="empty"></a>Weather</h2><h3 id="fog">Fog</h3>
<p>Fog comes in the morning and stays until noon, as a rule.</p>"""


def store(markup: str) -> StoredPage:
    """Store a page as the crawler does."""
    page = parse_page(markup)
    body, is_plain = tidy_text(page.main)
    headings = tuple(text for _, text in page.headings)
    stored = StoredPage("http://example.org/manual", page.title, headings=headings, body=body, anchors=page.anchors)
    read = unpack_page(pack_page(stored._replace(is_plain=is_plain)))
    assert read is not None
    return read


def search(page: StoredPage, query: str) -> list[tuple[str, str]]:
    """Return heading and fragment of the sections shown for a query, best first."""
    _, sections = build_excerpts(page, [[word] for word in query.split()])
    return [(section.heading, urlsplit(section.url).fragment) for section in sections]


def test_best_section_comes_first() -> None:
    """The section with all words wins over sections with one of them, wherever it is in a long page."""
    page = store(MANUAL)
    assert search(page, "terns boats")[0] == ("Sea birds", "birds")
    snippet, sections = build_excerpts(page, [["terns"], ["boats"]])
    assert snippet == sections[0].snippet
    assert "Terns eat the fish" in snippet.text


def test_heading_counts_more_than_text() -> None:
    """A section about a word wins over one that mentions it; permalink signs are not part of a heading."""
    assert search(store(MANUAL), "boats")[0] == ("Boats", "boats")


def test_anchors() -> None:
    """Ids of headings, of anchors in them and of sections around them are used; otherwise a text fragment is."""
    page = store(MANUAL)
    assert search(page, "dusk") == [("Opening hours", ":~:text=Opening%20hours")]
    assert search(page, "weather")[0] == ("Weather", "empty")


def test_heading_without_text_shows_what_follows() -> None:
    """A heading that has only subsections is shown with their text."""
    snippet, _ = build_excerpts(store(MANUAL), [["weather"]])
    assert "Fog comes in the morning" in snippet.text


def test_words_of_every_section_tell_nothing() -> None:
    """A word in all sections doesn't outweigh one that is only in one."""
    page = store(MANUAL.replace("Nothing of note", "Nothing of note about harbor boats"))
    assert search(page, "harbor boats fog")[0] == ("Fog", "fog")


def test_navigation_headings_are_no_sections() -> None:
    """A menu heading that has the same text as a real heading does not replace it."""
    page = store(f"<nav><h2 id=menu>Boats</h2><a href=/>Home</a></nav>{MANUAL}")
    assert search(page, "boats moored")[0] == ("Boats", "boats")


def test_owner_may_forbid_excerpts() -> None:
    """If the owner allows no snippet, no section is shown, either."""
    page = store(MANUAL)._replace(marks="nosnippet")
    assert build_excerpts(page, [["boats"]]) == (("", ()), ())


def test_pages_stored_before_sections() -> None:
    """A page without stored ids has a snippet, but no sections."""
    snippet, sections = build_excerpts(store(MANUAL)._replace(anchors=()), [["terns"]])
    assert "Terns" in snippet.text
    assert sections == ()


PARTS = st.text("abAB \n\u0301かが\u3099#¶é", max_size=30)


@given(st.lists(st.tuples(PARTS, PARTS), max_size=6), PARTS)
def test_any_page(parts: list[tuple[str, str]], query: str) -> None:
    """For any page, sections are ordered, disjoint and within the text; selected ones are among them."""
    markup = "".join(f"<h2 id=x{number}>{heading}</h2><p>{text}.</p>" for number, (heading, text) in enumerate(parts))
    page = store(markup)
    text, found = search_text(page.body, [[word] for word in query.lower().split()], is_plain=page.is_plain)
    sections = split_sections(page, text)
    edges = [edge for part in sections for edge in (part.heading_at, part.start, part.end)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)
    kept = {(part.heading_at, part.heading) for part in sections}
    assert all((part.heading_at, part.heading) in kept for part in choose_sections(outline_text(page, text), found))


@given(st.text(min_size=1, max_size=40), st.text(max_size=40))
def test_any_url(heading: str, anchor: str) -> None:
    """The URL of a section is the page's with one fragment, which decodes to the id or the heading."""
    heading, anchor = (text.encode("utf-8", "replace").decode() for text in (heading, anchor))
    url = Section(heading, anchor, 0, 0, 0).build_url(StoredPage("http://example.org/a?b"))
    assert url.isascii()
    page, _, fragment = url.partition("#")
    assert page == "http://example.org/a?b"
    assert unquote(fragment) == (anchor or f":~:text={heading}")
