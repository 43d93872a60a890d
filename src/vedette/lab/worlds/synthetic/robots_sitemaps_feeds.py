"""Files of the synthetic web for crawlers: robots.txt, sitemaps and feeds.

A sitemap is honest, bare (no dates), or lying (every page modified today). robots.txt changes about twice a year.
"""

import time
from collections.abc import Iterator

from vedette.lab.worlds.synthetic import page_traits as traits
from vedette.lab.worlds.synthetic.change_times import ChangeProcess, last_event
from vedette.lab.worlds.synthetic.hashing import mix
from vedette.lab.worlds.synthetic.listings import conditional_reply, current_path, live_numbers, newest_pages
from vedette.lab.worlds.synthetic.page_traits import last_text_change_s
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.synthetic.validators import format_http_date
from vedette.lab.worlds.synthetic.web import PageRequest, SyntheticWeb
from vedette.lab.worlds.world import Reply
from vedette.timeutil import DAY_S

_PLAIN = ("content-type", "text/plain; charset=utf-8")
_XML = ("content-type", "application/xml; charset=utf-8")
_URLS_PER_SITEMAP = 1000
_FEED_ENTRIES = 15
_SITEMAP_SCHEMA = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_DECLARATION = b'<?xml version="1.0" encoding="utf-8"?>\n'

_ROBOTS_TEXTS = {
    "simple": "User-agent: *\nDisallow:\n",
    "folders": "# Staff pages are for staff.\nUser-agent: *\nDisallow: /private/\nDisallow: /odd/endless\n",
    "named": (
        "User-agent: greedybot\nDisallow: /\n\n"
        "User-agent: vedette\nUser-agent: examplebot\nDisallow: /private/\nAllow: /private/note-1\n\n"
        "User-agent: *\nDisallow: /private/\nDisallow: /tag/\n"
    ),
    "delay": "User-agent: *\nCrawl-delay: {delay}\nDisallow: /private/\n",
    "wildcard": "User-agent: *\nDisallow: /*?sort=\nDisallow: /*print=1$\nDisallow: /priv*/note\n",
    "closed": "User-agent: *\nDisallow: /\n",
}


def robots_reply(_web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the reply with a synthetic host's robots.txt at this time, or None if it has none."""
    site = visit.site
    if visit.path != "/robots.txt" or site.robots == "none":
        return None
    lines = _ROBOTS_TEXTS[site.robots].format(delay=site.crawl_delay_s)
    if _is_revised(site, visit.now_s):
        lines += "Disallow: /drafts/\n"
    if site.sitemap:
        lines += f"\nSitemap: http://{site.name}/sitemap.xml\n"
    return conditional_reply(visit, lines.encode(), _PLAIN)


def _is_revised(site: Site, now_s: float) -> bool:
    process = ChangeProcess("poisson", mix(site.key ^ 4), 1 / (180 * DAY_S))
    return bool(mix(last_event(process, now_s)[1]) & 1)


def _w3c_time(moment_s: float) -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment_s)).encode()


def sitemap_reply(_web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the reply with a synthetic site's sitemap, or a sitemap index if there are more than a thousand pages."""
    site = visit.site
    if not site.sitemap:
        return None
    chunks = -(-site.births.count_born(visit.now_s) // _URLS_PER_SITEMAP)
    if visit.path == "/sitemap.xml" and chunks > 1:
        return conditional_reply(visit, b"".join(_sitemap_index(site, chunks)), _XML)
    places = {"/sitemap.xml": 0} if chunks == 1 else {f"/sitemap-{chunk}.xml": chunk for chunk in range(chunks)}
    if visit.path not in places:
        return None
    return conditional_reply(visit, b"".join(_sitemap_urls(site, places[visit.path], visit.now_s)), _XML)


def _sitemap_index(site: Site, chunks: int) -> Iterator[bytes]:
    yield _DECLARATION + b"<sitemapindex %b>\n" % _SITEMAP_SCHEMA
    for chunk in range(chunks):
        yield f"<sitemap><loc>http://{site.name}/sitemap-{chunk}.xml</loc></sitemap>\n".encode()
    yield b"</sitemapindex>\n"


def _sitemap_urls(site: Site, chunk: int, now_s: float) -> Iterator[bytes]:
    yield _DECLARATION + b"<urlset %b>\n" % _SITEMAP_SCHEMA
    origin = f"http://{site.name}".encode()
    for number in live_numbers(site, chunk * _URLS_PER_SITEMAP, (chunk + 1) * _URLS_PER_SITEMAP, now_s).tolist():
        first = traits.page_hash(site, number)
        place = current_path(site, number, first, now_s)
        yield b"<url><loc>%b%b</loc>%b</url>\n" % (origin, place, _lastmod(site, number, now_s))
    yield b"</urlset>\n"


def _lastmod(site: Site, number: int, now_s: float) -> bytes:
    if site.sitemap == "bare":
        return b""
    moment_s = now_s - now_s % DAY_S if site.sitemap == "lying" else last_text_change_s(site, number, now_s)
    return b"<lastmod>%b</lastmod>" % _w3c_time(moment_s)


def feed_reply(_web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the reply with a synthetic site's feed of newest pages, as Atom or RSS."""
    site = visit.site
    if not site.feed:
        return None
    numbers = newest_pages(site, visit.now_s, _FEED_ENTRIES)
    lines = _atom(site, numbers, visit.now_s) if site.feed == "atom" else _rss(site, numbers, visit.now_s)
    return conditional_reply(visit, _DECLARATION + b"".join(lines), ("content-type", f"application/{site.feed}+xml"))


def _feed_items(site: Site, numbers: list[int], now_s: float) -> Iterator[tuple[bytes, bytes, float]]:
    """Yield URL, title and birth of each page of a feed."""
    for number in numbers:
        first = traits.page_hash(site, number)
        place = current_path(site, number, first, now_s)
        yield (
            b"http://%b%b" % (site.name.encode(), place),
            traits.page_title(site, first),
            site.births.birth_s(number),
        )


def _atom(site: Site, numbers: list[int], now_s: float) -> Iterator[bytes]:
    entries = list(_feed_items(site, numbers, now_s))
    newest_s = max((birth_s for _, _, birth_s in entries), default=0.0)
    yield f'<feed xmlns="http://www.w3.org/2005/Atom">\n<title>{site.title}</title>\n'.encode()
    yield b"<id>http://%b/</id>\n<updated>%b</updated>\n" % (site.name.encode(), _w3c_time(newest_s))
    for url, title, birth_s in entries:
        yield b'<entry><title>%b</title><id>%b</id><link href="%b"/>' % (title, url, url)
        yield b"<updated>%b</updated></entry>\n" % _w3c_time(birth_s)
    yield b"</feed>\n"


def _rss(site: Site, numbers: list[int], now_s: float) -> Iterator[bytes]:
    yield f'<rss version="2.0">\n<channel>\n<title>{site.title}</title>\n<link>http://{site.name}/</link>\n'.encode()
    yield b"<description>Newest pages</description>\n"
    for url, title, birth_s in _feed_items(site, numbers, now_s):
        yield b"<item><title>%b</title><link>%b</link><guid>%b</guid>" % (title, url, url)
        yield b"<pubDate>%b</pubDate></item>\n" % format_http_date(birth_s).encode()
    yield b"</channel>\n</rss>\n"
