"""Listing pages of the synthetic web: home, sections, tags and the archive.

Home, sections and tags show the newest for a while; the archive shows every live page in chunks by number, so every
live page is at most three clicks from home. Listings use the current URL of a page.
"""

from collections.abc import Callable, Iterable, Iterator
from html import escape

import numpy as np
import xxhash

from vedette.lab.worlds.synthetic import page_traits as traits
from vedette.lab.worlds.synthetic.change_times import last_event
from vedette.lab.worlds.synthetic.hashing import HashArray, mix
from vedette.lab.worlds.synthetic.page_template import render_page
from vedette.lab.worlds.synthetic.pages import HTML
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.synthetic.validators import is_not_modified, validator_headers
from vedette.lab.worlds.synthetic.web import PageRequest, SyntheticWeb, build_id
from vedette.lab.worlds.world import Reply
from vedette.model import Headers
from vedette.policy import Ints

PageFilter = Callable[[HashArray], "np.typing.NDArray[np.bool_]"]

_PAGES_LISTED = 20
_SCAN_STEP = 256
_PAGES_PER_CHUNK = 100
_NOTES = 5


def live_numbers(site: Site, low: int, high: int, now_s: float) -> Ints:
    """Return the live (born and not dead) pages of a number range for a listing, in order."""
    numbers = np.arange(low, min(high, site.births.count_born(now_s)))
    return numbers[traits.lifetimes(site, numbers)[1] > now_s]


def newest_pages(site: Site, now_s: float, count: int, keep: PageFilter | None = None) -> list[int]:
    """Return the newest live pages of a site for a listing, newest first; ``keep`` filters by their first words."""
    found: list[int] = []
    high = site.births.count_born(now_s)
    while high > 0 and len(found) < count:
        low = max(0, high - _SCAN_STEP)
        numbers = live_numbers(site, low, high, now_s)
        if keep is not None:
            numbers = numbers[keep(traits.page_hashes(site, numbers))]
        found += numbers[::-1].tolist()
        high = low
    return found[:count]


def current_path(site: Site, number: int, first: int, now_s: float) -> bytes:
    """Return the current path of a page, as a listing links to it."""
    moved_s = traits.move_s(site, traits.life_hash(first), site.births.birth_s(number))
    return (traits.page_path if moved_s > now_s else traits.moved_path)(site, number, first)


def _list_items(site: Site, numbers: Iterable[int], now_s: float, suffix: bytes = b"") -> Iterator[bytes]:
    yield b"<ul>\n"
    for number in numbers:
        first = traits.page_hash(site, number)
        place = current_path(site, number, first, now_s)
        yield b'<li><a href="%b%b">%b</a></li>\n' % (place, suffix, traits.page_title(site, first))
    yield b"</ul>\n"


def conditional_reply(visit: PageRequest, body: bytes, kind: tuple[str, str] = HTML, more: Headers = ()) -> Reply:
    """Return a listing's reply with validators from its bytes, or 304 if the client has them."""
    stamped = validator_headers(visit.site.validators, xxhash.xxh3_64_hexdigest(body), None, visit.now_s)
    if is_not_modified(visit.request, stamped):
        return Reply(304, stamped, b"")
    return Reply(200, (kind, *stamped, *more), body)


def simple_page(web: SyntheticWeb, visit: PageRequest, title: bytes, main: Iterable[bytes]) -> Reply:
    """Return a simple page such as a listing in its site's template, canonical at its own path."""
    site = visit.site
    build = build_id(site, last_event(site.rebuilds, visit.now_s)[1])
    canonical = escape(visit.path).encode("utf-8", "replace")
    body = render_page(web.templates[site.index], title, title, canonical, (b"<h1>%b</h1>\n" % title, *main), build)
    return conditional_reply(visit, body)


def home_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the home page listing of a synthetic site: newest pages, sections, and a few links to other hosts."""
    if visit.path != "/":
        return None
    site = visit.site
    suffix = b"?ref=home" if "tracking" in site.features else b""
    friends = dict.fromkeys(web.popular_sites[mix(site.key + turn) % len(web.popular_sites)] for turn in range(6))
    main = (
        site.sections[0].prose.paragraph(site.key),
        b"<h2>Latest</h2>\n",
        *_list_items(site, newest_pages(site, visit.now_s, _PAGES_LISTED), visit.now_s, suffix),
        b"<h2>Sections</h2>\n<ul>\n",
        *(
            b'<li><a href="/section/%b">%b</a></li>\n' % (part.slug.encode(), part.label.encode())
            for part in site.sections
        ),
        b"</ul>\n<h2>Friends</h2>\n<ul>\n",
        *(_link(web.sites[index].name, web.sites[index].title) for index in friends),
        *([_link(web.mirrors[site.index], "Our mirror")] if site.index in web.mirrors else []),
        b"</ul>\n",
    )
    return simple_page(web, visit, b"Home", main)


def _link(host: str, label: str) -> bytes:
    return f'<li><a href="http://{host}/">{label}</a></li>\n'.encode()


def section_listing(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the listing of a section's newest pages."""
    site = visit.site
    slugs = [part.slug for part in site.sections]
    slug = visit.path.removeprefix("/section/")
    if slug not in slugs:
        return None
    wanted, part = slugs.index(slug), site.sections[slugs.index(slug)]
    numbers = newest_pages(site, visit.now_s, _PAGES_LISTED, lambda words: (words & 255) % len(slugs) == wanted)
    main = (part.prose.paragraph(site.key), *_list_items(site, numbers, visit.now_s))
    return simple_page(web, visit, part.label.encode(), main)


def tag_listing(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the listing of the newest pages with a tag."""
    site = visit.site
    name = visit.path.removeprefix("/tag/")
    if name not in site.tags:
        return None
    wanted, count = site.tags.index(name), len(site.tags)
    numbers = newest_pages(
        site,
        visit.now_s,
        _PAGES_LISTED,
        lambda words: ((words >> 50 & 127) % count == wanted) | ((words >> 57) % count == wanted),
    )
    title = f"Tagged {name.replace('-', ' ')}".encode()
    return simple_page(web, visit, title, _list_items(site, numbers, visit.now_s))


def tag_index(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the listing of all tags of a synthetic site."""
    if visit.path != "/tags":
        return None
    links = (f'<li><a href="/tag/{tag}">{tag.replace("-", " ")}</a></li>\n'.encode() for tag in visit.site.tags)
    return simple_page(web, visit, b"Tags", (b"<ul>\n", *links, b"</ul>\n"))


def archive_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the archive listing: all chunks, or one chunk with its live pages."""
    site = visit.site
    chunks = -(-site.births.count_born(visit.now_s) // _PAGES_PER_CHUNK)
    if visit.path == "/archive":
        links = (b'<li><a href="/archive/%d">Part %d</a></li>\n' % (chunk, chunk + 1) for chunk in range(chunks))
        return simple_page(web, visit, b"Archive", (b"<ul>\n", *links, b"</ul>\n"))
    chunk = next((chunk for chunk in _parse_number(visit.path, "/archive/") if chunk < chunks), None)
    if chunk is None:
        return None
    numbers = live_numbers(site, chunk * _PAGES_PER_CHUNK, (chunk + 1) * _PAGES_PER_CHUNK, visit.now_s).tolist()
    return simple_page(web, visit, b"Archive, part %d" % (chunk + 1), _list_items(site, numbers, visit.now_s))


def _parse_number(path: str, prefix: str) -> Iterator[int]:
    """Parse the number after a prefix of a listing's path, if it is in canonical form."""
    text = path.removeprefix(prefix)
    if text.isascii() and text.isdigit() and len(text) < 10 and str(int(text)) == text:
        yield int(text)


def about_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the about page of a synthetic site, which never changes except for its template."""
    if visit.path != "/about":
        return None
    prose = visit.site.sections[-1].prose
    return simple_page(web, visit, b"About us", [prose.paragraph(visit.site.key + turn) for turn in range(4)])


def private_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return a page of the private folder, which is linked, but which most robots.txt files disallow."""
    if visit.path == "/private/":
        links = [b'<li><a href="/private/note-%d">Note %d</a></li>\n' % (note, note) for note in range(1, _NOTES + 1)]
        return simple_page(web, visit, b"Staff only", (b"<ul>\n", *links, b"</ul>\n"))
    note = next(_parse_number(visit.path, "/private/note-"), 0)
    if not 1 <= note <= _NOTES:
        return None
    text = visit.site.sections[0].prose.paragraph(visit.site.key ^ note)
    return simple_page(web, visit, b"Staff note %d" % note, [text])
