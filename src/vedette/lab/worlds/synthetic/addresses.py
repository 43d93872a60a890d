"""Where a page stands: its path is written from its number, and the number is read back from its path.

A path that is not exactly what the page's number gives is nobody's path.
"""

import re

from vedette.lab.worlds.synthetic.page_traits import first_word, section
from vedette.lab.worlds.synthetic.sites import Section, Site

__all__ = ["anchor", "moved_path", "number_in", "path", "title"]

_NUMBERS = {
    False: re.compile(r"-([0-9]{1,9})(?:\.html)?\Z"),
    True: re.compile(r"/([0-9]{1,9})-[a-z0-9-]*\Z"),
}


def number_in(site: Site, target: str) -> int | None:
    """The page number that a path claims, unchecked."""
    match = _NUMBERS[site.kind.number_first].search(target)
    return int(match[1]) if match else None


def path(site: Site, number: int, first: int) -> bytes:
    """The path at which a page is born."""
    part = section(site, first)
    return _written(site, part.prefix, part, number, first)


def moved_path(site: Site, number: int, first: int) -> bytes:
    """The path of a page after it has moved."""
    return _written(site, site.kind.moved_prefix, section(site, first), number, first)


def _written(site: Site, prefix: bytes, part: Section, number: int, first: int) -> bytes:
    prose = part.prose
    head = prose.heads[(first >> 8 & 65535) % len(prose.heads)].slug
    tail = prose.tails[(first >> 24 & 65535) % len(prose.tails)].slug
    if site.kind.number_first:
        return b"%b%d-%b-%b" % (prefix, number, head, tail)
    return b"%b%b-%b-%d%b" % (prefix, head, tail, number, site.kind.suffix)


def title(site: Site, first: int) -> bytes:
    """The title of a page, escaped."""
    prose = section(site, first).prose
    head = prose.heads[(first >> 8 & 65535) % len(prose.heads)].text
    return head + b" " + prose.tails[(first >> 24 & 65535) % len(prose.tails)].text


def anchor(site: Site, number: int, origin: bytes = b"") -> bytes:
    """A link to where a page was born, with its title; ``origin`` is set in links from other hosts."""
    first = first_word(site, number)
    part = section(site, first)
    head = part.prose.heads[(first >> 8 & 65535) % len(part.prose.heads)]
    tail = part.prose.tails[(first >> 24 & 65535) % len(part.prose.tails)]
    if site.kind.number_first:
        place = b"%d-%b-%b" % (number, head.slug, tail.slug)
    else:
        place = b"%b-%b-%d%b" % (head.slug, tail.slug, number, site.kind.suffix)
    return b'<a href="%b%b%b">%b %b</a>' % (origin, part.prefix, place, head.text, tail.text)
