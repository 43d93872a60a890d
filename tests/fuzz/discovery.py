"""What sites say about themselves: sitemaps, feeds, robots.txt."""

import gzip
from collections.abc import Sequence

from tests.fuzz.target import Target

from vedette.discover.formats.feeds import parse_feed
from vedette.discover.formats.sitemaps import parse_sitemap
from vedette.discover.urls.normalize import resolve
from vedette.fetch.robots.rules import parse_robots

__all__ = ["FEED", "ROBOTS", "SITEMAP"]

HOME = "https://host.example/a/list.xml"
PATHS = ("/", "/a1b", "/%7e", "/\u00e9")

SITEMAPS = (
    b"""<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>
<loc>https://host.example/a?b&amp;c</loc><lastmod>2024-01-01T10:00:00+01:00</lastmod><priority>0.5</priority></url></urlset>""",
    b"<sitemapindex><sitemap><loc>https://host.example/s.xml</loc></sitemap></sitemapindex>",
    b"https://host.example/a\nhttps://host.example/b\r\n",
    gzip.compress(b"<urlset><url><loc>https://host.example/packed</loc></url></urlset>", mtime=0),
)
FEEDS = (
    b"""<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title><item><link>/a</link>
<guid isPermaLink="true">https://host.example/g</guid><pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate></item>
</channel></rss>""",
    b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><title type="html">&lt;b&gt;x</title><link rel="alternate"
href="/e"/><updated>2024-01-01T00:00:00Z</updated></entry></feed>""",
    b"""{"version": "https://jsonfeed.org/version/1.1", "title": "T", "items": [{"id": "1", "url":
"https://host.example/j", "date_published": "2024-01-01T00:00:00Z", "content_text": "x"}]}""",
)
ENTITIES = (b"<![CDATA[", b"<!ENTITY x SYSTEM 'file:///etc/passwd'>", b"&x;", b"<!DOCTYPE a [", b"]>", b"encoding=")
SITEMAP_TOKENS = (
    b"<url>",
    b"<loc>",
    b"</loc>",
    b"<sitemap>",
    b"<lastmod>",
    b"<xhtml:link href=",
    b"http://",
    *ENTITIES,
)
FEED_TOKENS = (b"<item>", b"<link>", b"<entry>", b'"items": [', b'"url": "', b"xml:base=", b"<guid>", *ENTITIES)


def check_sitemap(data: bytes) -> None:
    """All remaining entries are absolute http URLs; no entity is resolved."""
    found = parse_sitemap(data, HOME)
    _check_addresses([*(entry.loc for entry in found.entries), *found.children])


def check_feed(data: bytes) -> None:
    """All remaining entries are absolute http URLs; no entity is resolved."""
    _check_addresses([entry.link for entry in parse_feed(data, HOME).entries])


def _check_addresses(named: Sequence[str]) -> None:
    assert all(each.startswith(("http://", "https://")) and resolve(each, None) == each for each in named)
    assert "root:" not in "".join(named)


ROBOTS_FILES = (
    b"User-agent: *\nDisallow: /a*b$\nAllow: /a/index.html\nCrawl-delay: 1.5\nSitemap: https://host.example/s.xml\n",
    b"\xef\xbb\xbfuser-agent: vedette\nuser-agent: other\nDisallow:/%7Ejoe/\xc3\xa9\r\nDisallow: /x # note\r\r",
)
ROBOTS_TOKENS = (b"User-agent:", b"Disallow:", b"Allow:", b"Crawl-delay:", b"Sitemap:", b"*", b"$", b"%", b"\n", b"\r")


def check_robots(data: bytes) -> None:
    """Every path gets a verdict, the delay is realistic, and there are no more rules than lines."""
    rules = parse_robots(data, "vedette")
    verdicts = {rules.check(f"https://host.example{path}").allowed for path in PATHS}
    assert verdicts <= {True, False}
    assert rules.crawl_delay_s is None or 0 <= rules.crawl_delay_s < 1e9
    assert len(rules.rules) <= 2 * (1 + data.count(b"\n") + data.count(b"\r"))


SITEMAP = Target(check_sitemap, SITEMAPS, SITEMAP_TOKENS)
FEED = Target(check_feed, FEEDS, FEED_TOKENS)
ROBOTS = Target(check_robots, ROBOTS_FILES, ROBOTS_TOKENS)
