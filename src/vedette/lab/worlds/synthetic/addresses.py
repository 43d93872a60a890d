"""Where a page stands: its path is written from its number, and the number is read back from its path.

A path that is not exactly what the page's number gives is nobody's path.
"""

import re

from vedette.lab.worlds.synthetic.page_traits import page_hash, page_section
from vedette.lab.worlds.synthetic.sites import Section, Site

_NUMBER_PATTERNS = {
    False: re.compile(r"-([0-9]{1,9})(?:\.html)?\Z"),
    True: re.compile(r"/([0-9]{1,9})-[a-z0-9-]*\Z"),
}


def parse_number(site: Site, target: str) -> int | None:
    """The page number that a path claims, unchecked."""
    match = _NUMBER_PATTERNS[site.kind.number_first].search(target)
    return int(match[1]) if match else None


def page_path(site: Site, number: int, first: int) -> bytes:
    """The path at which a page is born."""
    part = page_section(site, first)
    return _format_path(site, part.prefix, part, number, first)


def moved_path(site: Site, number: int, first: int) -> bytes:
    """The path of a page after it has moved."""
    return _format_path(site, site.kind.moved_prefix, page_section(site, first), number, first)


def _format_path(site: Site, prefix: bytes, part: Section, number: int, first: int) -> bytes:
    prose = part.prose
    head = prose.heads[(first >> 8 & 65535) % len(prose.heads)].slug
    tail = prose.tails[(first >> 24 & 65535) % len(prose.tails)].slug
    if site.kind.number_first:
        return b"%b%d-%b-%b" % (prefix, number, head, tail)
    return b"%b%b-%b-%d%b" % (prefix, head, tail, number, site.kind.suffix)


def page_title(site: Site, first: int) -> bytes:
    """The title of a page, escaped."""
    prose = page_section(site, first).prose
    head = prose.heads[(first >> 8 & 65535) % len(prose.heads)].text
    return head + b" " + prose.tails[(first >> 24 & 65535) % len(prose.tails)].text


def page_link(site: Site, number: int, origin: bytes = b"") -> bytes:
    """A link to where a page was born, with its title; ``origin`` is set in links from other hosts."""
    first = page_hash(site, number)
    part = page_section(site, first)
    head = part.prose.heads[(first >> 8 & 65535) % len(part.prose.heads)]
    tail = part.prose.tails[(first >> 24 & 65535) % len(part.prose.tails)]
    if site.kind.number_first:
        place = b"%d-%b-%b" % (number, head.slug, tail.slug)
    else:
        place = b"%b-%b-%d%b" % (head.slug, tail.slug, number, site.kind.suffix)
    return b'<a href="%b%b%b">%b %b</a>' % (origin, part.prefix, place, head.text, tail.text)
