"""What the parts of the made web share while they answer: the sites, their frames, and who links to whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from vedette.lab.worlds.synthetic.addresses import anchor
from vedette.lab.worlds.synthetic.hashing import MASK, fraction, mix
from vedette.lab.worlds.synthetic.page_frame import Frame, frame_of
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.world import Question

__all__ = ["Visit", "Web", "build_of", "web_of"]

_PLACES = 4096
_MIRRORED = 3


@dataclass(frozen=True, slots=True)
class Web:
    """Everything that does not depend on the question.

    ``popular`` names a site by index at each of its places; a site that many link to has many places. ``items``
    and ``asides`` hold a link to some page of that site for each place, for lists and for texts. ``mirrors`` gives the
    name of the second host that serves a site, by the site's index.
    """

    seed: int
    sites: tuple[Site, ...]
    frames: tuple[Frame, ...]
    popular: tuple[int, ...]
    items: tuple[bytes, ...]
    asides: tuple[bytes, ...]
    mirrors: Mapping[int, str]


class Visit(NamedTuple):
    """One question, taken apart; a tuple, because one is made for every answer and a frozen class costs twice that."""

    site: Site
    path: str
    query: str
    now_s: float
    question: Question


def web_of(seed: int, sites: tuple[Site, ...]) -> Web:
    """The web of these sites."""
    mirrors = {site.index: f"mirror.{site.name.removeprefix('www.')}" for site in sites if site.index % 13 == _MIRRORED}
    popular = _popular(seed, len(sites))
    known = [_known(sites[index], mix(mix(seed) + place)) for place, index in enumerate(popular)]
    items = tuple(b"<li>%b</li>\n" % link for link in known)
    asides = tuple(b"<p>Others see it in another light: %b.</p>\n" % link for link in known)
    return Web(seed, sites, tuple(map(frame_of, sites)), popular, items, asides, mirrors)


def _popular(seed: int, count: int) -> tuple[int, ...]:
    """Places for links between hosts, crowded at a few hosts: the cube of an even number is mostly small."""
    ranks = [int(count * fraction(mix(seed + place)) ** 3) for place in range(_PLACES)]
    order = sorted(range(count), key=lambda index: mix(mix(seed) + index))
    return tuple(order[rank] for rank in ranks)


def _known(site: Site, word: int) -> bytes:
    """A link to a stock page of a host, to its home page now and then."""
    origin = b"http://" + site.name.encode()
    if not word & 7:
        return b'<a href="%b/">%b</a>' % (origin, site.title.encode())
    share = fraction(word)
    return anchor(site, int(site.births.stock * share * share), origin)


@lru_cache(maxsize=4096)
def build_of(site: Site, rebuild: int) -> bytes:
    """The name of the build that the footer shows after the rebuild of this number."""
    return b"%06x" % (mix(site.key ^ rebuild & MASK) & 0xFFFFFF)
