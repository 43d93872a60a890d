"""Sitemaps as found on the web: conforming, nearly conforming, broken, compressed, and hostile."""

import gzip
from datetime import UTC, datetime

import pytest

from vedette.discover.formats.sitemaps import MAX_ENTRIES, Sitemap, SitemapEntry, is_sitemap, parse_sitemap

HOME = "https://shop.example/sitemap.xml"
SCHEMA = "http://www.sitemaps.org/schemas/sitemap/0.9"
BY_THE_BOOK = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="{SCHEMA}">
  <url>
    <loc>https://shop.example/lamps?kind=desk&amp;page=2</loc>
    <lastmod>2024-02-29T23:30:00+01:00</lastmod>
    <changefreq>Weekly</changefreq>
    <priority>0.8</priority>
  </url>
  <url><loc>https://shop.example/chairs</loc></url>
</urlset>"""
LAMPS = SitemapEntry(
    loc="https://shop.example/lamps?kind=desk&page=2",
    lastmod_s=datetime(2024, 2, 29, 22, 30, tzinfo=UTC).timestamp(),
    changefreq="weekly",
    priority=0.8,
)
CHAIRS = SitemapEntry("https://shop.example/chairs")


def locs(body: bytes | str, url: str = HOME) -> list[str]:
    """Return the locations in a sitemap."""
    raw = body.encode() if isinstance(body, str) else body
    return [entry.loc for entry in parse_sitemap(raw, url).entries]


def test_the_four_fields_of_the_protocol() -> None:
    """Location, date, frequency and priority are read, entities are replaced, and missing fields are left empty."""
    assert parse_sitemap(BY_THE_BOOK.encode(), HOME) == Sitemap(entries=(LAMPS, CHAIRS))


def test_an_index_names_other_sitemaps() -> None:
    """The sitemaps of an index are children, not pages."""
    body = f"""<sitemapindex xmlns="{SCHEMA}">
      <sitemap><loc>https://shop.example/one.xml.gz</loc><lastmod>2024-01-01</lastmod></sitemap>
      <sitemap><loc>/two.xml</loc></sitemap></sitemapindex>"""
    expected = ("https://shop.example/one.xml.gz", "https://shop.example/two.xml")
    assert parse_sitemap(body.encode(), HOME) == Sitemap(children=expected)


@pytest.mark.parametrize(
    "changed",
    [
        BY_THE_BOOK.replace(SCHEMA, "http://www.google.com/schemas/sitemap/0.84"),
        BY_THE_BOOK.replace(f' xmlns="{SCHEMA}"', ""),
        BY_THE_BOOK.replace(SCHEMA, "http://shop.example/our-own"),
        BY_THE_BOOK.replace("<", "<s:").replace("<s:/", "</s:").replace("<s:?", "<?"),
        BY_THE_BOOK.replace("url>", "URL>").replace("loc>", "Loc>"),
        BY_THE_BOOK.replace("&amp;", "&"),
        BY_THE_BOOK.replace("&amp;", "&#38;"),
        BY_THE_BOOK.replace("&amp;page=2", "<![CDATA[&page=2]]>"),
        BY_THE_BOOK.replace("<loc>", "<loc>\n\t").replace("</loc>", "\u00a0\n</loc>"),
        BY_THE_BOOK.replace("<loc>", "<!-- a <loc>comment</loc> --><loc>"),
        "\n\n \ufeff" + BY_THE_BOOK,
        BY_THE_BOOK + "<p>trailing advertisement",
        BY_THE_BOOK.replace("</url>", ""),
        BY_THE_BOOK.replace("</loc>", ""),
    ],
    ids=[
        "old namespace",
        "no namespace",
        "wrong namespace",
        "undeclared prefix",
        "other case",
        "bare ampersand",
        "numeric entity",
        "CDATA",
        "white space",
        "comment",
        "late byte-order mark",
        "trailing markup",
        "unclosed records",
        "unclosed locations",
    ],
)
def test_what_is_nearly_by_the_book_reads_the_same(changed: str) -> None:
    """Whatever template engines get wrong, pages and their fields are the same."""
    assert parse_sitemap(changed.encode(), HOME).entries == (LAMPS, CHAIRS)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_is_recognised_by_its_first_bytes(encoding: str) -> None:
    """A byte-order mark, or the pattern of a first angle bracket, takes precedence over the declaration."""
    assert parse_sitemap(BY_THE_BOOK.encode(encoding), HOME).entries == (LAMPS, CHAIRS)


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1251", "shift_jis", "gb2312", "koi8-r", "iso-8859-7"])
@pytest.mark.parametrize("place", ["declaration", "header"])
def test_other_encodings_are_declared(encoding: str, place: str) -> None:
    """The encoding declared in the file, or else in the header, is used."""
    sample = "é" if encoding == "iso-8859-1" else "λ" if encoding in {"iso-8859-7", "gb2312"} else "я"
    declaration = f'<?xml version="1.0" encoding="{encoding}"?>' if place == "declaration" else ""
    header = f"text/xml; charset={encoding}" if place == "header" else "text/xml"
    body = f"{declaration}<urlset><url><loc>/{sample}</loc></url></urlset>".encode(encoding)
    plain = f"<urlset><url><loc>/{sample}</loc></url></urlset>"
    assert [entry.loc for entry in parse_sitemap(body, HOME, header).entries] == locs(plain)


@pytest.mark.parametrize("label", ["punycode", "unicode_escape", "klingon-8", "zlib", "undefined"])
def test_an_odd_encoding_falls_back_to_utf_8(label: str) -> None:
    """Codecs that no web page uses are not looked up."""
    assert locs(f'<?xml version="1.0" encoding="{label}"?><urlset><url><loc>/\\x41') == []
    assert locs(f'<?xml version="1.0" encoding="{label}"?><urlset><url><loc>/é</loc>') == locs(
        "<urlset><url><loc>/é</loc>"
    )


def test_extensions_do_not_add_locations() -> None:
    """The location of an image or a video is not a page, with or without a prefix."""
    body = f"""<urlset xmlns="{SCHEMA}" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><url>
      <image:image><image:loc>https://shop.example/a.png</image:loc></image:image>
      <video><loc>https://shop.example/b.mp4</loc><video><loc>/c</loc></video><priority>1</priority></video>
      <loc>https://shop.example/a</loc><news:priority>0.1</news:priority></url></urlset>"""
    assert parse_sitemap(body.encode(), HOME).entries == (SitemapEntry("https://shop.example/a"),)


def test_copies_in_other_languages_are_pages() -> None:
    """Each one is listed once, after the entries, with any prefix; feeds and style sheets are not pages."""
    body = f"""<urlset xmlns="{SCHEMA}" xmlns:x="http://www.w3.org/1999/xhtml">
      <url><loc>/en</loc><x:link rel="alternate" hreflang="de" href="/de?a=1&amp;b=2"/>
        <x:link rel="alternate" hreflang="en" href="/en"/><x:link rel="alternate" type="text/css" href="/s.css"/></url>
      <url><loc>/fr</loc><x:link rel="alternate" hreflang="de" href="/de?a=1&amp;b=2"/></url>
    </urlset>"""
    assert locs(body) == [f"https://shop.example{path}" for path in ("/en", "/fr", "/de?a=1&b=2")]


def test_a_news_sitemap_dates_its_pages() -> None:
    """The publication date is used if there is no modification date."""
    news = "<news:news><news:publication><news:name>N</news:name></news:publication>{}</news:news>"
    day = news.format("<news:publication_date>2023-06-05T04:30Z</news:publication_date>")
    body = f"<urlset><url><loc>/a</loc>{day}</url><url><loc>/b</loc><lastmod>2023-07-08</lastmod>{day}</url></urlset>"
    dates = [entry.lastmod_s for entry in parse_sitemap(body.encode(), HOME).entries]
    assert dates == [datetime(2023, 6, 5, 4, 30, tzinfo=UTC).timestamp(), datetime(2023, 7, 8, tzinfo=UTC).timestamp()]


def test_lines_of_text_are_a_sitemap_too() -> None:
    """Each line is a URL, with any line ends; lines that are not absolute URLs are left out."""
    body = (
        "\ufeffhttps://shop.example/a\r\n\r\n  HTTPS://shop.example/b\t\nsee http://x.example\n/c\nftp://x.example/d\n"
    )
    assert locs(body) == ["https://shop.example/a", "https://shop.example/b"]


def test_packed_files_are_unpacked_as_content() -> None:
    """A .gz body is unpacked whatever the headers say: once, twice, in several members, as XML or as text."""
    raw = BY_THE_BOOK.encode()
    chained = gzip.compress(raw[:90]) + gzip.compress(raw[90:])
    for body in (gzip.compress(raw), gzip.compress(gzip.compress(raw)), chained):
        assert parse_sitemap(body, HOME, "text/html").entries == (LAMPS, CHAIRS)
        assert is_sitemap(body, "text/html")
    assert locs(gzip.compress(b"https://shop.example/a\n")) == ["https://shop.example/a"]


def test_a_broken_package_keeps_what_was_unpacked() -> None:
    """In a file that is truncated, or followed by garbage, the pages in its first part are found."""
    raw = b"<urlset>" + b"".join(b"<url><loc>/%d</loc></url>" % (number**7) for number in range(20_000))
    whole, packed = locs(raw), gzip.compress(raw)
    half = locs(packed[: len(packed) // 2])
    assert half == whole[: len(half)]
    assert len(half) > 1_000
    assert locs(packed + b"nonsense") == whole


def test_a_cut_off_file_keeps_whole_locations_only() -> None:
    """The last location of a truncated file would lead elsewhere, so it is dropped; those before it stay."""
    assert locs("<urlset><url><loc>/a</loc></url><url><loc>/bea") == ["https://shop.example/a"]
    assert locs("<urlset><url><loc>/a</loc><lastmod>2024") == ["https://shop.example/a"]


def test_no_entity_is_declared_expanded_or_loaded() -> None:
    """Document types are skipped: entities aren't expanded, nothing external is loaded, and later pages are read."""
    body = """<?xml version="1.0"?><!DOCTYPE urlset [ <!ENTITY a "ha"> <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
      <!ENTITY outside SYSTEM "file:///etc/hostname"> %outside; ]>
      <urlset><url><loc>/&b;</loc></url><url><loc>/&outside;</loc></url><url><loc>/c</loc></url></urlset>"""
    assert locs(body) == [f"https://shop.example/{name}" for name in ("&b;", "&outside;", "c")]


def test_a_name_that_looks_like_an_entity_stays_a_parameter() -> None:
    """Without its semicolon, it isn't an entity, so a bare ampersand in a query keeps the parameter after it."""
    assert locs("<urlset><url><loc>/a?b=1&copy=2&lt=3</loc></url></urlset>") == [
        "https://shop.example/a?b=1&copy=2&lt=3"
    ]


@pytest.mark.parametrize("value", ["2", "-0.1", "nan", "inf", "high", "", "0,5", "1" * 400])
def test_a_priority_outside_the_protocol_is_none(value: str) -> None:
    """Numbers outside 0 to 1 are not priorities."""
    body = f"<urlset><url><loc>/a</loc><priority>{value}</priority></url></urlset>"
    assert parse_sitemap(body.encode(), HOME).entries[0].priority is None


def test_hints_that_cannot_be_read_are_left_open() -> None:
    """An unknown frequency or an impossible date does not drop the page."""
    body = b"<urlset><url><loc>/a</loc><lastmod>2024-02-30</lastmod><changefreq>sometimes</changefreq></url></urlset>"
    assert parse_sitemap(body, HOME).entries == (SitemapEntry("https://shop.example/a"),)


def test_locations_that_lead_nowhere_are_left_out() -> None:
    """Empty, too long and non-http(s) locations are not pages."""
    odd = ["", " ", "mailto:a@b.example", "javascript:void(0)", "http://[", "/" + "a" * 100_000]
    body = "".join(f"<url><loc>{loc}</loc></url>" for loc in odd)
    assert locs(f"<urlset>{body}<url><loc>/good</loc></url></urlset>") == ["https://shop.example/good"]


def test_a_record_may_hold_two_locations_or_its_url_bare() -> None:
    """Records that are not closed, or have no location element, are understood."""
    assert locs("<urlset><url><loc>/a</loc><loc>/b</loc></url></urlset>") == [
        "https://shop.example/a",
        "https://shop.example/b",
    ]
    body = (
        b"<sitemapindex><sitemap>\nhttps://shop.example/a.xml?b&amp;c\n</sitemap><sitemap>none</sitemap></sitemapindex>"
    )
    assert parse_sitemap(body, HOME).children == ("https://shop.example/a.xml?b&c",)


def test_at_most_as_many_entries_as_the_protocol_allows() -> None:
    """Pages beyond the protocol's limit per file are dropped, in XML, in text and within one record."""
    many = MAX_ENTRIES + 10
    assert len(locs(b"<urlset>" + b"<url><loc>/a</loc></url>" * many)) == MAX_ENTRIES
    assert len(locs(b"https://shop.example/a\n" * many)) == MAX_ENTRIES
    assert len(locs(b"<urlset>" + (b"<url>" + b"<loc>/a</loc>" * 50 + b"</url>") * 2_000)) == MAX_ENTRIES


def test_a_bomb_is_unpacked_to_a_limit() -> None:
    """A small body that would expand to gigabytes is cut off early, and its beginning is read."""
    head = b"<urlset><url><loc>/a</loc></url>"
    bomb = gzip.compress(head + b" " * 2**20, 9) + gzip.compress(b" " * 2**20, 9) * 300
    assert len(bomb) < 2**20
    assert locs(bomb) == ["https://shop.example/a"]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html><body><url><loc>/a</loc></url></body></html>", b"Not found", b"\x1f\x8b", b"{}", b"<", b"\x00" * 50],
)
def test_other_bodies_are_no_sitemaps(body: bytes) -> None:
    """An error page with status 200 lists no pages."""
    assert not is_sitemap(body, "application/xml")
    assert parse_sitemap(body, HOME, "application/xml") == Sitemap()


def test_a_sitemap_is_known_by_its_content() -> None:
    """The declared type is ignored; the first element or the first lines decide."""
    assert is_sitemap(BY_THE_BOOK.encode(), "text/html")
    assert is_sitemap(b"<!-- made -->\n<sitemapindex>", "text/plain")
    assert is_sitemap(b"https://shop.example/a\nhttps://shop.example/b\n", "text/html")
    assert not is_sitemap(b"https://shop.example/a\nis where to look\n", "text/plain")
    assert not is_sitemap(b"<rss><channel>", "application/xml")
