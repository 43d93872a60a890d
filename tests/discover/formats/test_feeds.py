"""Feeds of every family, with the oddities that publishers give them."""

from datetime import UTC, datetime

import pytest

from vedette.discover.formats.feeds import MAX_ENTRIES, MAX_TITLE_LENGTH, Feed, FeedEntry, is_feed, parse_feed

HOME = "https://news.example/feed"
JUNE = datetime(2023, 6, 5, 4, 30, tzinfo=UTC).timestamp()
JULY = datetime(2023, 7, 8, 9, 10, 11, tzinfo=UTC).timestamp()

RSS_2 = """<?xml version="1.0"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
  <title>Harbour news</title><link>https://news.example/</link>
  <image><title>Logo</title><link>https://news.example/logo</link><url>/logo.png</url></image>
  <atom:link rel="self" type="application/rss+xml" href="https://news.example/feed"/>
  <atom:link rel="hub" href="https://hub.example/"/>
  <item><title>Tide &amp;amp; time</title><link>https://news.example/tide?a=1&amp;b=2</link>
    <pubDate>Mon, 05 Jun 2023 06:30:00 +0200</pubDate><guid isPermaLink="false">17</guid></item>
</channel></rss>"""
RSS_09 = """<rss version="0.91"><channel><title>Harbour news</title>
  <item><title>Tide &amp; time</title><link>https://news.example/tide?a=1&amp;b=2</link></item></channel></rss>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
    xmlns:d="http://purl.org/dc/elements/1.1/">
  <channel rdf:about="https://news.example/feed"><title>Harbour news</title><link>https://news.example/</link>
    <items><rdf:Seq><rdf:li resource="https://news.example/tide"/></rdf:Seq></items></channel>
  <image><title>Logo</title></image>
  <item rdf:about="https://news.example/about"><title>Tide &amp; time</title>
    <link>https://news.example/tide?a=1&amp;b=2</link><d:date>2023-06-05T04:30Z</d:date></item>
</rdf:RDF>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Harbour news</title>
  <link rel="hub" href="https://hub.example/"/><link rel="self" href="https://news.example/feed"/>
  <updated>2023-07-08T09:10:11Z</updated>
  <entry><title type="html">Tide &amp;amp; &lt;b&gt;time&lt;/b&gt;</title><id>tag:news.example,2023:17</id>
    <link rel="replies" href="https://news.example/replies"/>
    <link rel="enclosure" type="audio/mpeg" href="https://news.example/tide.mp3"/>
    <link rel="alternate" type="application/json" href="https://news.example/tide.json"/>
    <link href="https://news.example/tide?a=1&amp;b=2" type="text/html"/>
    <source><title>Elsewhere</title><link href="https://other.example/"/><updated>2001-01-01T00:00:00Z</updated></source>
    <published>2023-06-05T04:30:00Z</published><updated>2023-07-08T11:10:11.25+02:00</updated>
    <content type="xhtml"><div><title>Inside</title><link>https://inside.example/</link></div></content></entry>
</feed>"""
ATOM_03 = """<atom:feed version="0.3" xmlns:atom="http://purl.org/atom/ns#"><atom:title>Harbour news</atom:title>
  <atom:entry><atom:title>Tide &amp; time</atom:title>
    <atom:link rel="alternate" type="text/html" href="https://news.example/tide?a=1&amp;b=2"/>
    <atom:issued>2023-06-05T04:30:00Z</atom:issued><atom:modified>2023-07-08T09:10:11Z</atom:modified></atom:entry>
</atom:feed>"""
JSON_FEED = """\ufeff{"items": [
    {"id": "https://news.example/tide?a=1&b=2", "title": "Tide &\\n time",
     "date_published": "2023-06-05T06:30:00+02:00", "date_modified": "2023-07-08T09:10:11Z", "external_url": "https://elsewhere.example/"},
    {"id": "17", "url": 17}, "nonsense", null],
  "version": "https:\\/\\/jsonfeed.org\\/version\\/1.1", "title": "Harbour news",
  "feed_url": "https://news.example/feed", "hubs": [{"type": "WebSub", "url": "https://hub.example/"}]}"""

TIDE = "https://news.example/tide?a=1&b=2"
HUB, SELF = "https://hub.example/", "https://news.example/feed"


def rss(*items: str) -> bytes:
    """Return an RSS feed of these items."""
    return ("<rss><channel>" + "".join(f"<item>{item}</item>" for item in items) + "</channel></rss>").encode()


def links(body: bytes | str, url: str = HOME) -> list[str]:
    """Return the links of a feed's entries."""
    return [entry.link for entry in parse_feed(body.encode() if isinstance(body, str) else body, url).entries]


def title_of(body: bytes | str) -> str:
    """Return the title of a feed's only entry."""
    (entry,) = parse_feed(body.encode() if isinstance(body, str) else body, HOME).entries
    return entry.title


@pytest.mark.parametrize(
    ("body", "published_s", "updated_s", "hub", "self_link"),
    [
        (RSS_2, JUNE, None, HUB, SELF),
        (RSS_09, None, None, None, None),
        (RDF, JUNE, None, None, None),
        (ATOM, JUNE, JULY, HUB, SELF),
        (ATOM_03, JUNE, JULY, None, None),
        (JSON_FEED, JUNE, JULY, HUB, SELF),
    ],
    ids=["RSS 2.0", "RSS 0.91", "RSS 1.0", "Atom", "Atom 0.3", "JSON Feed"],
)
def test_every_family_says_the_same(
    body: str, published_s: float | None, updated_s: float | None, hub: str | None, self_link: str | None
) -> None:
    """An entry has its page, plain title and dates; the contents of images, sources and text don't leak into it."""
    entry = FeedEntry(TIDE, "Tide & time", published_s, updated_s)
    assert parse_feed(body.encode(), HOME) == Feed("Harbour news", (entry,), hub, self_link)
    assert is_feed(body.encode(), "text/html")


def test_a_guid_stands_in_for_a_link_when_it_is_permanent() -> None:
    """A guid counts as a URL unless it is marked otherwise or isn't a URL."""
    items = (
        "<guid>{0}/a</guid>",
        '<guid isPermaLink="false">{0}/b</guid>',
        "<guid>c</guid>",
        "<link/><guid>{0}/d</guid>",
    )
    assert links(rss(*(item.format("https://news.example") for item in items))) == [
        "https://news.example/a",
        "https://news.example/d",
    ]


def test_an_atom_entry_without_a_link_is_named_by_its_id() -> None:
    """An id that is a URL is the page; a tag URI isn't, and a source's id isn't the entry's."""
    body = """<feed><id>https://news.example/</id><entry><id>https://news.example/a</id><title>A</title></entry>
      <entry><source><id>https://other.example/</id></source><id>tag:news.example,2023:17</id></entry>
      <entry><id>https://news.example/id</id><link href="/c"/></entry></feed>"""
    assert links(body) == ["https://news.example/a", "https://news.example/c"]


def test_broken_json_is_an_empty_feed() -> None:
    """Nothing raises, whatever follows the marker of a JSON Feed."""
    sign = '{"version": "https://jsonfeed.org/version/1"'
    for rest in ("", ', "items": ' + "[" * 100_000, ', "items": {"a": 1}}', ', "title": 1, "hubs": [1]}'):
        assert is_feed((sign + rest).encode())
        assert parse_feed((sign + rest).encode(), HOME) == Feed()


def test_a_link_for_readers_comes_before_a_guid() -> None:
    """If an entry has both, the link wins, whichever comes first."""
    assert links(rss("<guid>https://news.example/guid</guid><link>https://news.example/a</link>")) == [
        "https://news.example/a"
    ]


def test_an_rdf_item_is_named_by_its_about_where_it_has_no_link() -> None:
    """The subject of an RSS 1.0 item is its page."""
    assert links('<rdf:RDF><channel/><item rdf:about="https://news.example/a"><title>A</title></item></rdf:RDF>') == [
        "https://news.example/a"
    ]


def test_entries_that_lead_nowhere_are_left_out() -> None:
    """Entries without a link, with an empty one, or with one that isn't a web page are skipped."""
    assert links(rss("<title>a</title>", "<link> </link>", "<link>mailto:a@b.example</link>", "<link>/d</link>")) == [
        "https://news.example/d"
    ]


def test_relations_may_be_written_in_full() -> None:
    """A relation given by its URL in the IANA registry counts as the relation."""
    full = "http://www.iana.org/assignments/relation/"
    body = f'<feed><link rel="{full}self" href="/me"/><entry><link rel="{full}alternate" href="/a"/></entry></feed>'
    feed = parse_feed(body.encode(), HOME)
    assert (feed.self_link, feed.entries[0].link) == ("https://news.example/me", "https://news.example/a")


def test_hubs_of_entries_are_not_the_feeds() -> None:
    """Only the head of a feed says where it is pushed from, before its entries or after them."""
    inside = '<entry><link href="/a"/><link rel="hub" href="https://evil.example/"/></entry>'
    assert parse_feed(f"<feed>{inside}</feed>".encode(), HOME).hub is None
    assert parse_feed(f'<feed>{inside}<link rel="hub" href="{HUB}"/></feed>'.encode(), HOME).hub == HUB


def test_a_hub_is_found_under_any_prefix() -> None:
    """The namespace decides; without a declaration, the usual prefix does."""
    declared = f'<rss xmlns:x="http://www.w3.org/2005/Atom"><channel><x:link rel="hub" href="{HUB}"/></channel></rss>'
    usual = f'<rss><channel><atom:link rel="hub" href="{HUB}"/></channel></rss>'
    assert parse_feed(declared.encode(), HOME).hub == parse_feed(usual.encode(), HOME).hub == HUB


def test_xml_base_is_honoured_at_three_levels() -> None:
    """The bases of feed, entry and link apply in turn; without them, the feed's own URL does."""
    body = """<feed xml:base="/x/"><entry xml:base="y/"><link xml:base="z/" href="a"/></entry>
      <entry><link href="b"/></entry></feed>"""
    assert links(body) == ["https://news.example/x/y/z/a", "https://news.example/x/b"]
    assert links(body.replace(' xml:base="/x/"', "")) == ["https://news.example/y/z/a", "https://news.example/b"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Caf&eacute; &amp; bar", "Café & bar"),
        ("<![CDATA[Caf&eacute; <i>&amp;</i> bar]]>", "Café & bar"),
        ("&lt;b&gt;Café&lt;/b&gt; &amp;#38; bar", "Café & bar"),
        ("<![CDATA[Café &]]> <![CDATA[bar]]>", "Café & bar"),
        (" \n Café\t & \u00a0 bar ", "Café & bar"),
        ("1 < 2 and a<b", "1 < 2 and a<b"),
        ("5 &lt; 6 &unknown; &#xD800;", "5 < 6 &unknown; \ufffd"),
    ],
)
def test_titles_of_rss_become_plain_text(written: str, read: str) -> None:
    """HTML entities, CDATA sections and markup all become the text that a person would see."""
    assert title_of(rss(f"<link>/a</link><title>{written}</title>")) == read


def test_titles_of_atom_say_what_they_are() -> None:
    """Text is used as is, HTML is parsed, and markup is removed from XHTML."""

    def read(kind: str, title: str) -> str:
        return title_of(f'<feed><entry><link href="/a"/><title type="{kind}">{title}</title></entry></feed>')

    assert read("text", "use &lt;b&gt; &amp;amp;") == "use <b> &amp;"
    assert read("html", "use &lt;b&gt;bold&lt;/b&gt; &amp;amp;") == "use bold &"
    assert read("xhtml", "<div>use <b>bold</b> &amp;</div>") == "use bold &"


@pytest.mark.parametrize(
    "written",
    [
        "Mon, 05 Jun 2023 04:30:00 GMT",
        "Mon, 5 Jun 2023 04:30 UT",
        "05 Jun 23 00:30:00 EDT",
        "Monday, 05-Jun-23 04:30:00 GMT",
        "2023-06-05T04:30:00Z",
        "2023-06-05T10:00:00+05:30",
        "2023-06-04T21:30:00.999-0700",
        "20230605T043000Z",
        "2023-06-05 04:30:00",
    ],
)
def test_dates_in_any_usual_dress(written: str) -> None:
    """RFC 822 with its old zones and ISO 8601 with and without hyphens give the same time."""
    (entry,) = parse_feed(rss(f"<link>/a</link><pubDate>{written}</pubDate>"), HOME).entries
    assert entry.published_s == JUNE


@pytest.mark.parametrize(
    "written", ["2023-02-30", "32 Jan 2023 00:00 GMT", "soon", "", "0000-00-00", "9" * 5000, "Mon,"]
)
def test_a_date_that_is_none_is_left_open(written: str) -> None:
    """Impossible and unreadable dates are ignored, and another date of the entry is used."""
    dates = f"<pubDate>{written}</pubDate><dc:date>2023-06-05T04:30Z</dc:date>"
    (first, second) = parse_feed(
        rss(f"<link>/a</link><pubDate>{written}</pubDate>", f"<link>/b</link>{dates}"), HOME
    ).entries
    assert (first.published_s, second.published_s) == (None, JUNE)


def test_broken_feeds_keep_what_can_be_read() -> None:
    """Unclosed elements, bare ampersands and truncation lose no complete entry."""
    body = """<rss><channel><title>R&D<item><title>One<link>/a?b&c</link>
      <item><link>/d</link><title>Two & a half</title><description><p>unclosed<br></description><item><link>/e"""
    feed = parse_feed(body.encode(), HOME)
    assert feed.title == "R&D"
    assert [(each.link, each.title) for each in feed.entries] == [
        ("https://news.example/a?b&c", "One"),
        ("https://news.example/d", "Two & a half"),
    ]


def test_limits_hold() -> None:
    """Endless entries and endless titles are cut."""
    body = rss("<link>/a</link><title>" + "long " * 10_000 + "</title>", *["<link>/b</link>"] * (MAX_ENTRIES + 5))
    feed = parse_feed(body, HOME)
    assert len(feed.entries) == MAX_ENTRIES
    assert len(feed.entries[0].title) <= MAX_TITLE_LENGTH


@pytest.mark.parametrize(
    "body", [b"", b"<html><item><link>/a</link></item></html>", b'{"items": []}', b"<rdf:RDF><foaf:Person/></rdf:RDF>"]
)
def test_other_bodies_are_no_feeds(body: bytes) -> None:
    """HTML, JSON and RDF about other things are not feeds, whatever their type."""
    assert not is_feed(body, "application/rss+xml")
    assert parse_feed(body, HOME, "application/rss+xml").entries == ()
