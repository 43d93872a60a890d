"""What the keeper is told of a page: what it says, whether that changed, and what speaks against it."""

from datetime import UTC, datetime

import pytest

from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import add_document, parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import Content, FetchSuccess, FetchTask, StoredCopy
from vedette.model import ChangeRule, FetchResponse, Headers, Site

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
    """What a worker tells of a page with this body."""
    links = LinkResolver(SiteIndex([Site("https://a.test/", change=change)]))
    answer = FetchResponse(URL, "page", status, headers, body.encode(), NOW_S - 1, NOW_S, "192.0.2.1")
    result = parse_outcome(FetchTask(1, "a.test", URL, "page", copy=copy), answer, links)
    assert isinstance(result, FetchSuccess)
    return result


def content(result: FetchSuccess) -> Content:
    """The content that it has."""
    assert result.content is not None
    return result.content


def copy_of(result: FetchSuccess) -> StoredCopy:
    """What is at hand when the page is asked for again."""
    return StoredCopy("", "", result.digest, "", result.ended_s, content(result).baseline)


def page(main: str, *, title: str = "Harbour", around: str = "") -> str:
    """A page with some main text."""
    return f"<!doctype html><html lang=en><title>{title}</title><main><h1>{title}</h1>{main}</main>{around}"


def test_what_a_page_says() -> None:
    """Language, charset, description, dates, canonical and the owner's wishes are told together."""
    head = (
        '<meta name="description" content="Boats and nets"><link rel="canonical" href="/docs/harbour">'
        '<meta property="article:published_time" content="2026-08-01T12:00:00Z">'
        '<meta name="robots" content="noarchive">'
    )
    told = content(read(f"{head}{page(PROSE)}", (*HTML, ("x-robots-tag", "max-snippet: 60"))))
    assert (told.language, told.charset, told.description) == ("en", "utf-8", "Boats and nets")
    assert told.canonical == "https://a.test/docs/harbour"
    assert told.directives == "noarchive, max-snippet:60"
    assert told.published_s == datetime(2026, 8, 1, 12, tzinfo=UTC).timestamp()
    assert told.words > 50
    assert told.objections == ()


def test_links_have_the_names_that_the_page_gives_them() -> None:
    """Each link within the sites once, with the first words for it; what is no link to click on has none."""
    body = page(
        f'{PROSE}<a href="/b"></a><a href="/b">Boats</a><a href="/c" rel=nofollow>c</a><a href="//x.test/">x</a>'
    )
    result = read(f'<link rel="alternate" hreflang="de" href="/de/harbour">{body}')
    told = dict(zip(result.links, content(result).anchors, strict=True))
    assert told == {"https://a.test/b": "Boats", "https://a.test/de/harbour": ""}


def test_a_meta_refresh_leads_somewhere() -> None:
    """Stubs that send a browser on are followed like links."""
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
def test_what_speaks_against_a_page(body: str, name: str) -> None:
    """Pages that are not worth indexing say by which name that is known."""
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
    """The operator's choice decides; digits are no change of words, and a menu is no part of the main text."""
    before = read(page(f"{PROSE}<p>Seen 317 times</p>") if what == "a counter" else page(PROSE), change=judged_by)
    body, counts_for = CHANGES[what]
    after = read(body, copy=copy_of(before), change=judged_by)
    assert after.changed == (judged_by in counts_for.split())


def test_a_first_version_is_a_change_and_a_304_is_none() -> None:
    """What was never seen is new; what the server says is the same is the same."""
    before = read(page(PROSE))
    assert before.changed
    assert content(before).change is None
    same = read("", status=304, copy=copy_of(before))
    assert not same.changed
    assert same.digest == before.digest


def test_a_box_that_turns_all_the_time_is_no_change_after_a_while() -> None:
    """It counts at first; once it is known to turn with every fetch, only the rest of the page counts."""
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
    """A PDF is handed out to be read; what comes back is told like a page, with the reason where nothing does."""
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


def test_a_huge_page_is_read_up_to_a_bound() -> None:
    """What lies behind some megabytes is archived and makes no difference to what is read."""
    result = read(page(PROSE) + " <p>x</p>" * 300_000 + '<a href="/behind">behind</a>')
    assert "https://a.test/behind" not in result.links
    assert result.body_bytes > 2_500_000
