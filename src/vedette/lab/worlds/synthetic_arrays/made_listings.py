"""What the listings of the made web show, as arrays: after each birth, the newest twenty of their site or section."""

from dataclasses import dataclass

import numpy as np

from vedette.lab.worlds.synthetic_arrays.changes import spread_out
from vedette.lab.worlds.synthetic_arrays.pages import MadePages
from vedette.policy import Floats, Ints

__all__ = ["Listed", "listed"]

NEWEST = 20


@dataclass(frozen=True, slots=True)
class Listed:
    """The versions of listings, sorted by page and time, the first of each at its birth.

    ``link_to[link_start[i]:link_start[i + 1]]`` are the pages that version i shows, the oldest first.
    """

    page: Ints
    at_s: Floats
    link_start: Ints
    link_to: Ints


def listed(pages: MadePages, begin_s: float) -> Listed:
    """The listings of all sites: what held when the world opens, and a version for every birth after that."""
    listing, shown = _streams(pages, begin_s)
    born_s = pages.born_s[shown]
    owners = np.flatnonzero(pages.number < 0)
    starts = np.searchsorted(listing, owners)
    # Births of one second make one version: the last of them says it all.
    last = np.append((listing[1:] != listing[:-1]) | (born_s[1:] != born_s[:-1]), True)
    later = np.flatnonzero((born_s > begin_s) & last)
    opening = (
        starts + np.bincount(np.searchsorted(owners, listing), born_s <= begin_s, len(owners)).astype(np.int64) - 1
    )
    page = np.concatenate([owners, listing[later]])
    at_s = np.concatenate([pages.born_s[owners], born_s[later]])
    newest = np.concatenate([opening, later])
    order = np.lexsort((at_s, page))
    page, at_s, newest = page[order], at_s[order], newest[order]
    oldest = np.maximum(newest - NEWEST + 1, starts[np.searchsorted(owners, page)])
    version, place = spread_out(oldest, newest)
    link_start = np.append(0, np.cumsum(np.bincount(version, minlength=len(page))))
    return Listed(page, at_s, link_start, shown[place])


def _streams(pages: MadePages, begin_s: float) -> tuple[Ints, Ints]:
    """The pages of every listing by number, one listing after the other: the listing and the page of each place.

    A page that moved before the world opens stands there with its new address, one that moves later with its old one.
    """
    articles = np.flatnonzero((pages.number >= 0) & (~pages.is_moved | (pages.born_s <= begin_s)))
    wide = int(pages.section.max(initial=0)) + 3
    # A listing is found by its site and its number; -1 where a site has no feed.
    where = np.full((int(pages.site.max(initial=0)) + 1, wide), -1)
    owners = np.flatnonzero(pages.number < 0)
    where[pages.site[owners], -pages.number[owners] - 1] = owners
    site = pages.site[articles]
    listing = np.concatenate([where[site, 0], where[site, 1], where[site, pages.section[articles] + 2]])
    shown = np.tile(articles, 3)
    order = np.lexsort((pages.number[shown], listing))
    order = order[np.searchsorted(listing[order], 0) :]
    return listing[order], shown[order]
