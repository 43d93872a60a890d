"""Every parser of untrusted input, given damaged documents: no exception, no hang, bounded results."""

import gzip
from math import isfinite
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hostile.mutations import mutated

from vedette.adapters.archive.warc_reader import Damage, ImportedAnswer, scan_warc
from vedette.discover.formats.feeds import parse_feed
from vedette.discover.formats.sitemaps import parse_sitemap
from vedette.discover.urls.normalize import resolve
from vedette.fetch.body import CODINGS
from vedette.fetch.body import decode as unpack
from vedette.fetch.response_headers import parse_max_age_s, parse_retry_after_s
from vedette.fetch.robots.meta_tags import parse_header_directives
from vedette.fetch.robots.rules import parse_robots as read_robots
from vedette.model import Failure
from vedette.parse.html.page import parse_page
from vedette.parse.similarity.minhash import build_sketch
from vedette.parse.similarity.shingles import fingerprint_text, shingle_text
from vedette.parse.text.charsets import decode_page
from vedette.parse.text.dates import find_dates
from vedette.parse.text.language import detect_language
from vedette.timeutil import parse_date

NOW_S = 1.7e9
HOME = "https://host.example/a/list.xml"
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

PAGES = (
    b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page &amp; more</title><base href="/b/">
<meta name="robots" content="noindex, max-snippet:20"><meta http-equiv="refresh" content="3; url='/x'">
<link rel="canonical" href="/c"><link rel="alternate" hreflang="de" href="/de"><meta name=description content='d'>
<link rel="alternate" type="application/rss+xml" href="/f"><meta property="article:published_time" content="2024-05-01">
<script type="application/ld+json">{"@type":"Article","datePublished":"2024-01-01","@graph":[{"a":[1]}]}</script></head>
<body><nav><a href="/">Home</a></nav><h1>Title</h1><p>Words <b>and</b> words.<table><tr><td>x<td>y</table>
<a href='/y' rel="nofollow">y<img alt="z"></a><time datetime="2024-02-02">then</time>
<div hidden>no</div></body></html>""",
    "<meta charset=shift_jis><title>検索</title><p>検索エンジン<a href=/次>次".encode("shift_jis"),
    "\ufeff<title>Wide</title><svg><title>no</title></svg><template><a href=x></template>".encode("utf-16-le"),
    b"<?xml version='1.0' encoding='iso-8859-2'?><html><title>\xb1</title><![CDATA[x]]><textarea><a href=n></textarea>",
    b"<noscript>Enable scripts</noscript><div id=root></div><script>a='</scr'+'ipt>'</script><!--[if IE]>x<![endif]-->",
)
PAGE_WORDS = (
    b"<a href=",
    b"</a>",
    b"<script>",
    b"</script>",
    b"<!--",
    b"-->",
    b"<title>",
    b"<div>",
    b"</p>",
    b"&#x",
    b"hidden",
)
TYPES = st.sampled_from(
    ["", "text/html", "text/html; charset=utf-8", "text/html;charset=EUC-JP", "application/xhtml+xml"]
)
XML = (
    b"""<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>
<loc>https://host.example/a?b&amp;c</loc><lastmod>2024-01-01T10:00:00+01:00</lastmod><priority>0.5</priority></url></urlset>""",
    b"<sitemapindex><sitemap><loc>https://host.example/s.xml</loc></sitemap></sitemapindex>",
    b"""<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title><item><link>/a</link>
<guid isPermaLink="true">https://host.example/g</guid><pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate></item>
</channel></rss>""",
    b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><title type="html">&lt;b&gt;x</title><link rel="alternate"
href="/e"/><updated>2024-01-01T00:00:00Z</updated></entry></feed>""",
    gzip.compress(b"<urlset><url><loc>https://host.example/packed</loc></url></urlset>", mtime=0),
)
ROBOTS = (
    b"User-agent: *\nDisallow: /a*b$\nAllow: /a/index.html\nCrawl-delay: 1.5\nSitemap: https://host.example/s.xml\n",
    b"\xef\xbb\xbfuser-agent: vedette\nuser-agent: other\nDisallow:/%7Ejoe/\xc3\xa9\r\nDisallow: /x # note\r\r",
)
HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
WARC_HEAD = (
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://host.example/\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
    b"WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n"
)
WARC = (WARC_HEAD % len(HTTP) + HTTP + b"\r\n\r\n") * 2
HEADERS = (
    b"Wed, 21 Oct 2015 07:28:00 GMT",
    b"Wednesday, 21-Oct-15 07:28:00 GMT",
    b"max-age=3600, must-revalidate, s-maxage=99999999999999999999",
    b"otherbot: noindex, nofollow, unavailable_after: 25 Jun 2010 15:00:00 PST, max-snippet:-1",
    b"120",
)


@given(mutated(PAGES, PAGE_WORDS), TYPES)
def test_a_damaged_page_is_read_to_the_end(body: bytes, content_type: str) -> None:
    """All steps are taken; strings can be written to a file, and no more comes out than went in."""
    text = decode_page(body, content_type).text
    page = parse_page(text)
    strings = [page.title, page.text, page.main, page.description, page.language, *(link.href for link in page.links)]
    assert all(each.encode() is not None for each in strings)
    assert len(page.main) <= len(page.text) <= 2 * len(text)
    assert len(page.links) <= len(text)
    assert len(detect_language(page.main, page.language)) <= 8
    dates = find_dates(page.stamps, page.linked_data, HOME, "", NOW_S)
    assert all(isfinite(each) for each in (dates.published_s, dates.modified_s) if each is not None)
    assert len(fingerprint_text(page.main)) == len(fingerprint_text(""))
    build_sketch(shingle_text(page.main))


@given(
    mutated(
        XML,
        (b"<url>", b"<loc>", b"</loc>", b"<item>", b"<![CDATA[", b"<!ENTITY x SYSTEM 'file:///etc/passwd'>", b"&x;"),
    )
)
def test_a_damaged_sitemap_or_feed_names_only_addresses(body: bytes) -> None:
    """Whatever is left names absolute http addresses; no entity is looked up anywhere."""
    sitemap, feed = parse_sitemap(body, HOME), parse_feed(body, HOME)
    named = [*(entry.loc for entry in sitemap.entries), *sitemap.children, *(entry.link for entry in feed.entries)]
    assert all(each.startswith(("http://", "https://")) and resolve(each, None) == each for each in named)
    assert "root:" not in "".join(named)


@given(
    mutated(ROBOTS, (b"User-agent:", b"Disallow:", b"*", b"$", b"%", b"\n", b"\r")),
    st.sampled_from(["/", "/a1b", "/%7e", "/\u00e9"]),
)
def test_a_damaged_robots_file_still_decides(body: bytes, path: str) -> None:
    """There is a verdict for every path, a pause that someone could keep, and no more rules than lines."""
    rules = read_robots(body, "vedette")
    assert rules.check(f"https://host.example{path}").allowed in {True, False}
    assert rules.crawl_delay_s is None or 0 <= rules.crawl_delay_s < 1e9
    assert len(rules.rules) <= 2 * (1 + body.count(b"\n") + body.count(b"\r"))


@given(mutated(HEADERS, (b",", b":", b"=", b"9" * 20, b"noindex", b"GMT", b"-")))
def test_damaged_headers_are_numbers_or_nothing(value: bytes) -> None:
    """Dates, ages and pauses are finite, or not there; directives are read from anything."""
    text = value.decode("latin-1")
    moment, age_s = parse_date(text), parse_max_age_s((("cache-control", text),))
    assert moment is None or isfinite(moment)
    assert age_s is None or (isfinite(age_s) and age_s >= 0)
    pause_s = parse_retry_after_s((("retry-after", text),), NOW_S)
    assert isfinite(pause_s)
    assert pause_s >= 0
    told = parse_header_directives((("x-robots-tag", text),), "vedette")
    assert told.max_snippet is None or told.max_snippet >= 0
    assert told.unavailable_after_s is None or isfinite(told.unavailable_after_s)


@SAME_FOLDER
@given(
    mutated(
        [WARC, gzip.compress(WARC, mtime=0)],
        (b"WARC/1.0\r\n", b"Content-Length: 99999999999\r\n", b"\r\n\r\n", b"WARC-Type: response\r\n"),
    )
)
def test_a_damaged_archive_is_read_to_its_end(tmp_path: Path, data: bytes) -> None:
    """Records and damage come in file order, and payloads are no larger than the file."""
    path = tmp_path / "damaged.warc"
    path.write_bytes(data)
    found = list(scan_warc(path, limit_bytes=100_000))
    assert all(isinstance(each, ImportedAnswer | Damage) for each in found)
    assert [each.offset for each in found] == sorted(each.offset for each in found)
    records = [each for each in found if isinstance(each, ImportedAnswer)]
    assert all(isfinite(each.fetched_s) and 0 <= each.status <= 999 for each in records)


@pytest.mark.parametrize("coding", [*CODINGS, "gzip, br", "br, gzip, zstd, deflate"])
def test_bombs_within_bombs(coding: str) -> None:
    """A body that was packed again and again is unpacked within its limit, or refused."""
    data = bytes(50 * 2**20)
    for _ in range(3):
        data = gzip.compress(data, 9, mtime=0)
    found = unpack(data, coding, 2**20)
    assert isinstance(found, Failure) or len(found) <= 2**20


@given(mutated([gzip.compress(page, mtime=0) for page in PAGES]), st.sampled_from(CODINGS), st.integers(0, 4_000))
def test_a_damaged_package_is_a_body_or_a_reason(data: bytes, coding: str, limit_bytes: int) -> None:
    """Members cut, doubled and exchanged: at most the limit, or why not."""
    found = unpack(data, coding, limit_bytes)
    assert isinstance(found, Failure) or len(found) <= limit_bytes
