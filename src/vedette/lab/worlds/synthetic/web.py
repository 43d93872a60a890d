"""A synthetic web ready to serve: its sites, their templates, mirrors, and which hosts many pages link to."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from vedette.lab.worlds.synthetic.hashing import MASK_64, fraction, mix
from vedette.lab.worlds.synthetic.page_template import PageTemplate, build_template
from vedette.lab.worlds.synthetic.page_traits import page_link
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.world import WorldRequest

_LINK_SLOTS = 4096
_MIRROR_REMAINDER = 3


@dataclass(frozen=True, slots=True)
class SyntheticWeb:
    """A synthetic web with everything independent of the request: sites, templates, mirrors, popular link targets.

    ``popular_sites`` has a site's index at each of its positions; a site that many link to has many positions.
    ``list_links`` and ``inline_links`` have a link to some page of that site for each position, for lists and for
    texts. ``mirrors`` gives the name of the second host that serves a site, by the site's index.
    """

    seed: int
    sites: tuple[Site, ...]
    templates: tuple[PageTemplate, ...]
    popular_sites: tuple[int, ...]
    list_links: tuple[bytes, ...]
    inline_links: tuple[bytes, ...]
    mirrors: Mapping[int, str]


class PageRequest(NamedTuple):
    """One request to the synthetic web, split into its parts; a tuple, since a frozen class costs twice as much."""

    site: Site
    path: str
    query: str
    now_s: float
    request: WorldRequest


def build_web(seed: int, sites: tuple[Site, ...]) -> SyntheticWeb:
    """Build the synthetic web of these sites."""
    mirrors = {
        site.index: f"mirror.{site.name.removeprefix('www.')}" for site in sites if site.index % 13 == _MIRROR_REMAINDER
    }
    popular = _draw_popular_sites(seed, len(sites))
    links = [_stock_page_link(sites[index], mix(mix(seed) + place)) for place, index in enumerate(popular)]
    items = tuple(b"<li>%b</li>\n" % link for link in links)
    asides = tuple(b"<p>Others see it in another light: %b.</p>\n" % link for link in links)
    return SyntheticWeb(seed, sites, tuple(map(build_template, sites)), popular, items, asides, mirrors)


def _draw_popular_sites(seed: int, count: int) -> tuple[int, ...]:
    """Draw the sites that links between hosts point to, mostly a few: the cube of a uniform number is mostly small."""
    ranks = [int(count * fraction(mix(seed + place)) ** 3) for place in range(_LINK_SLOTS)]
    order = sorted(range(count), key=lambda index: mix(mix(seed) + index))
    return tuple(order[rank] for rank in ranks)


def _stock_page_link(site: Site, word: int) -> bytes:
    """Return an HTML link to a stock page of another synthetic host, or occasionally to its home page."""
    origin = b"http://" + site.name.encode()
    if not word & 7:
        return b'<a href="%b/">%b</a>' % (origin, site.title.encode())
    share = fraction(word)
    return page_link(site, int(site.births.stock * share * share), origin)


@lru_cache(maxsize=4096)
def build_id(site: Site, rebuild: int) -> bytes:
    """Return the build id that a synthetic site's footer shows after the rebuild of this number."""
    return b"%06x" % (mix(site.key ^ rebuild & MASK_64) & 0xFFFFFF)
