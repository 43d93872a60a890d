"""The report on a page: its content, whether that changed, and reasons not to index it."""

from datetime import UTC, datetime

import pytest

from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import add_document, parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import Content, FetchSuccess, FetchTask, StoredCopy
from vedette.index.fields import unpack_page
from vedette.model import ChangeRule, FetchResponse, Headers, Site
from vedette.parse.text.dates import RebuildDetector
from vedette.timeutil import parse_date

URL = "https://a.test/docs/page"
NOW_S = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
HTML: Headers = (("content-type", "text/html; charset=utf-8"),)
PROSE = (
    "<p>The harbour was quiet in the morning, and the boats lay still beside the wall. Nobody had come down to the "
    "water yet, except the old man who mended nets and spoke to nobody before noon.</p>"
    "<p>Later the wind turned, as it often does in that season, and the first sails went out past the lighthouse.</p>"
)


def read(
    body: str,
    headers: Headers = HTML,
    *,
    copy: StoredCopy | None = None,
    change: ChangeRule = "main",
    status: int = 200,
) -> FetchSuccess:
    """Return the fetcher's report on a page with this body."""
    links = LinkResolver(SiteIndex([Site("https://a.test/", change=change)]))
    answer = FetchResponse(URL, "page", status, headers, body.encode(), NOW_S - 1, NOW_S, "192.0.2.1")
    result = parse_outcome(FetchTask(1, "a.test", URL, "page", copy=copy), answer, links)
    assert isinstance(result, FetchSuccess)
    return result


def content(result: FetchSuccess) -> Content:
    """Return the content of a report."""
    assert result.content is not None
    return result.content


def copy_of(result: FetchSuccess) -> StoredCopy:
    """Return the stored copy for the next request of the page."""
    held = content(result)
    return StoredCopy("", "", result.digest, "", result.ended_s, held.baseline, held.modified_s)


def page(main: str, *, title: str = "Harbour", around: str = "") -> str:
    """Return a page with some main text."""
    return f"<!doctype html><html lang=en><title>{title}</title><main><h1>{title}</h1>{main}</main>{around}"


def test_the_content_of_a_page_is_reported() -> None:
    """Language, charset, description, dates, canonical and the owner's directives are reported together."""
    head = (
        '<meta name="description" content="Boats and nets"><link rel="canonical" href="/docs/harbour">'
        '<meta property="article:published_time" content="2026-08-01T12:00:00Z">'
        '<meta name="robots" content="noarchive">'
    )
    report = content(read(f"{head}{page(PROSE)}", (*HTML, ("x-robots-tag", "max-snippet: 60"))))
    assert (report.language, report.charset, report.description) == ("en", "utf-8", "Boats and nets")
    assert report.canonical == "https://a.test/docs/harbour"
    assert report.directives == "noarchive, max-snippet:60"
    assert report.published_s == datetime(2026, 8, 1, 12, tzinfo=UTC).timestamp()
    assert report.words > 50
    assert report.objections == ()


def test_links_have_the_names_that_the_page_gives_them() -> None:
    """Each link within the sites is reported once, with its first anchor text; unclickable links have none."""
    body = page(
        f'{PROSE}<a href="/b"></a><a href="/b">Boats</a><a href="/c" rel=nofollow>c</a><a href="//x.test/">x</a>'
    )
    result = read(f'<link rel="alternate" hreflang="de" href="/de/harbour">{body}')
    report = dict(zip(result.links, content(result).anchors, strict=True))
    assert report == {"https://a.test/b": "Boats", "https://a.test/de/harbour": ""}


def test_a_meta_refresh_is_followed() -> None:
    """Pages that only redirect a browser are followed like links."""
    result = read('<meta http-equiv="refresh" content="0; url=/new/place"><title>Moved</title>')
    assert result.links == ("https://a.test/new/place",)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("<title>App</title><div id=root></div><script src=/app.js></script>", "script"),
        ("<title>Nothing</title>", "empty"),
        (page(f"<meta name=robots content=noindex>{PROSE}"), "noindex"),
        (page("<p>Sorry, the page that you asked for does not exist.</p>", title="404 Not Found"), "missing"),
    ],
)
def test_reasons_against_indexing_are_reported(body: str, name: str) -> None:
    """Pages that are not worth indexing have the name of the reason."""
    assert name in dict(content(read(body)).objections)


CHANGES = {
    "the same bytes": (page(PROSE), ""),
    "a counter": (page(f"{PROSE}<p>Seen 318 times</p>"), "bytes"),
    "a menu": (page(PROSE, around="<nav><a href=/z>Zebra</a></nav>"), "bytes text links"),
    "a paragraph": (
        page(f"{PROSE}<p>Then the rain came, and everybody went home to sit by the fire.</p>"),
        "bytes text main",
    ),
    "a title": (page(PROSE, title="Port"), "bytes text main"),
}


@pytest.mark.parametrize("judged_by", ["bytes", "text", "main", "links"])
@pytest.mark.parametrize("what", CHANGES)
def test_what_counts_as_a_change(what: str, judged_by: ChangeRule) -> None:
    """The configured rule decides; digits don't count as changed words, and a menu isn't part of the main text."""
    before = read(page(f"{PROSE}<p>Seen 317 times</p>") if what == "a counter" else page(PROSE), change=judged_by)
    body, counts_for = CHANGES[what]
    after = read(body, copy=copy_of(before), change=judged_by)
    assert after.changed == (judged_by in counts_for.split())


def test_a_first_version_is_a_change_and_a_304_is_none() -> None:
    """A page without an earlier version is new; a 304 means unchanged."""
    before = read(page(PROSE))
    assert before.changed
    assert content(before).change is None
    same = read("", status=304, copy=copy_of(before))
    assert not same.changed
    assert same.digest == before.digest


def test_a_box_that_turns_all_the_time_is_no_change_after_a_while() -> None:
    """A rotating box counts at first; once it is known to change with every fetch, only the rest of the page counts."""
    boxes = ["early ferries", "salted herring", "rope and tar", "lighthouse tours", "evening choir", "second-hand oars"]
    bodies = [page(f"{PROSE}<aside class=tip><p>Today: {box}.</p></aside>") for box in boxes]
    result = read(bodies[0], change="text")
    judged = []
    for body in bodies[1:]:
        result = read(body, copy=copy_of(result), change="text")
        judged.append(result.changed)
    assert judged[0]
    assert not judged[-1]
    edited = bodies[0].replace("the old man who mended nets", "a young woman with a camera and a dog")
    assert read(edited, copy=copy_of(result), change="text").changed


def test_a_document_is_read_elsewhere() -> None:
    """A PDF is submitted to the reader; its text is reported like a page's, or the reason why there is none."""
    body = b"%PDF-1.4 something"
    headers: Headers = (("content-type", "application/pdf"), ("x-robots-tag", "noindex"))
    links = LinkResolver(SiteIndex([Site("https://a.test/")]))
    answer = FetchResponse(URL, "page", 200, headers, body, NOW_S - 1, NOW_S, "192.0.2.1")
    result = parse_outcome(FetchTask(1, "a.test", URL, "page"), answer, links)
    assert isinstance(result, FetchSuccess)
    assert result.kind == "document"
    good = add_document(result, answer, links, title="Tides", text="When the tide turns. " * 40, trouble="")
    assert (good.title, content(good).directives) == ("Tides", "noindex")
    assert content(good).words > 100
    bad = add_document(result, answer, links, title="", text="", trouble="it is encrypted")
    assert ("empty", "it is encrypted") in content(bad).objections


@pytest.mark.parametrize(
    ("kind", "stated", "title"),
    [("md", "", "Harbour"), ("docx", "Tides", "Tides"), ("xlsx", "", "tides of 2026.xlsx")],
)
def test_the_headings_and_links_of_a_document(kind: str, stated: str, title: str) -> None:
    """A converted document is reported like a page: title, headings, links; all of its text counts."""
    url = "https://a.test/docs/tides%20of%202026.xlsx"
    links = LinkResolver(SiteIndex([Site("https://a.test/")]))
    answer = FetchResponse(url, "page", 200, (("content-type", "text/markdown"),), b"#", NOW_S - 1, NOW_S, "192.0.2.1")
    result = parse_outcome(FetchTask(1, "a.test", url, "page"), answer, links)
    assert isinstance(result, FetchSuccess)
    assert result.kind == "document"
    html = f"<h1>Harbour</h1>{PROSE}<ul><li><a href=more.md>More</a></ul><p>Menu</p>"
    read = add_document(result, answer, links, title=stated, text=html, trouble="", kind=kind)
    stored = unpack_page(content(read).stored)
    assert stored is not None
    assert (stored.title, stored.kind, stored.headings) == (title, kind, ("Harbour",))
    assert (read.links, content(read).anchors) == (("https://a.test/docs/more.md",), ("More",))
    assert stored.body.endswith("Menu")


def test_plain_text_is_a_page() -> None:
    """Its title is the first line with words, or the file name; binary content is not text, whatever its type says."""
    body = "\n ----\n  Tides \u00e0 la carte\n\n" + "When the tide turns, the boats come home. " * 20
    result = read(body, (("content-type", "text/plain; charset=utf-8"), ("x-robots-tag", "noarchive")))
    assert (result.kind, result.title, result.links) == ("page", "Tides \u00e0 la carte", ())
    assert (content(result).language, content(result).directives) == ("en", "noarchive")
    stored = unpack_page(content(result).stored)
    assert stored is not None
    assert stored.kind == "txt"
    assert read("tide " * 200, ()).title == "page"
    assert read("\0\1\2", (("content-type", "text/plain"),)).kind == "other"
    assert read("https://a.test/x\n", (("content-type", "text/plain"),)).kind == "sitemap"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/caf\xc3\xa9?q=\xc3\xa9", "/caf%C3%A9?q=%C3%A9"),
        (b"/caf\xe9", "/caf%E9"),
        (b"/a b%20c", "/a%20b%20c"),
    ],
)
def test_a_location_in_raw_bytes(location: bytes, target: str) -> None:
    """A redirect leads where browsers would go: its bytes are kept, in any charset."""
    result = read("", (("location", location.decode("latin-1")),), status=301)
    assert result.location == f"https://a.test{target}"


def test_a_deploy_makes_no_page_new() -> None:
    """A new Last-Modified with the same text doesn't change the page's date; with another text it does."""
    old, new = "Thu, 01 Oct 2026 10:00:00 GMT", "Sat, 31 Oct 2026 10:00:00 GMT"
    first = read(page(PROSE), (*HTML, ("last-modified", old)))
    footer = page(PROSE, around="<footer>Build 4711</footer>")
    again = read(footer, (*HTML, ("last-modified", new)), copy=copy_of(first))
    assert content(first).modified_s == parse_date(old) == content(again).modified_s
    edited = read(page("<p>Other words altogether.</p>"), (*HTML, ("last-modified", new)), copy=copy_of(again))
    assert (edited.changed, content(edited).modified_s) == (True, parse_date(new))


def test_a_date_that_all_pages_share_is_no_date_of_a_page() -> None:
    """After some pages, dates that come from a deployment are recognized; dates stated by a page still count."""
    links, rebuilds = LinkResolver(SiteIndex([Site("https://a.test/")])), RebuildDetector()
    own = '<meta property="article:modified_time" content="2026-08-01T12:00:00Z">'

    def first_read(number: int, head: str = "") -> float | None:
        headers: Headers = (*HTML, ("last-modified", f"Sat, 31 Oct 2026 10:{number:02}:00 GMT"))
        body = (head + page(f"{PROSE} {number}")).encode()
        answer = FetchResponse(f"{URL}/{number}", "page", 200, headers, body, NOW_S - 1, NOW_S, "192.0.2.1")
        result = parse_outcome(FetchTask(number, "a.test", answer.url, "page"), answer, links, rebuilds)
        assert isinstance(result, FetchSuccess)
        return content(result).modified_s

    dated = [first_read(number) is not None for number in range(20)]
    assert dated == [True] * 10 + [False] * 10
    assert first_read(21, own) == parse_date("2026-08-01T12:00:00Z")


def test_a_huge_page_is_read_up_to_a_bound() -> None:
    """Anything after some megabytes is archived, but does not affect the parsed content."""
    result = read(page(PROSE) + " <p>x</p>" * 300_000 + '<a href="/behind">behind</a>')
    assert "https://a.test/behind" not in result.links
    assert result.body_bytes > 2_500_000
