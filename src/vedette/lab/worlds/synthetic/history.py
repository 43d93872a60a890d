"""History of a synthetic web: births, changes, moves and deaths of up to a million pages as arrays.

Laws and numbers are those of the served web (``world``), bit for bit. Left out are traps, faults and mirrors (as
in a calm world), boxes and rebuilds, which change no text, tags and the archive. From before the world opens only the
state at that time is kept: a page's first version covers all of its earlier ones. Listings show the newest twenty
births, dead or not.

Two kinds of changes can be added by name, which the served web does not have: ``+waves`` (a section is rewritten at
once, every 45 days on average) and ``+bursts`` (an edit triggers others, minutes apart).

>>> history = build_synthetic_history("tiny", seed=1)
>>> history.pages > 150, len(history.site_names)
(True, 6)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.errors import UsageError
from vedette.lab.worlds.history import FEED, PAGE, History
from vedette.lab.worlds.synthetic.change_times import START_S
from vedette.lab.worlds.synthetic.grammar import build_library
from vedette.lab.worlds.synthetic.hashing import HashArray, mix_all
from vedette.lab.worlds.synthetic.page_arrays import (
    FEED_NUMBER,
    Changes,
    SyntheticPages,
    SyntheticUrls,
    expand_ranges,
    list_changes,
    list_pages,
)
from vedette.lab.worlds.synthetic.sites import SIZES, Site, WorldSize, build_sites
from vedette.policy import Floats, Ints, rng_for
from vedette.timeutil import DAY_S

PAGES_LISTED = 20


@dataclass(frozen=True, slots=True)
class ListingVersions:
    """Versions of the listing pages in a synthetic history, by page and time, the first of each at its birth.

    ``link_to[link_start[i]:link_start[i + 1]]`` are the pages that version i shows, the oldest first.
    """

    page: Ints
    at_s: Floats
    link_start: Ints
    link_to: Ints


def build_listings(pages: SyntheticPages, begin_s: float) -> ListingVersions:
    """Build all listing versions of a synthetic history: one when the world opens, and one for every later birth."""
    listing, shown = _listing_members(pages, begin_s)
    born_s = pages.born_s[shown]
    owners = np.flatnonzero(pages.number < 0)
    starts = np.searchsorted(listing, owners)
    # Births of one second make one version: the last of them is enough.
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
    oldest = np.maximum(newest - PAGES_LISTED + 1, starts[np.searchsorted(owners, page)])
    version, place = expand_ranges(oldest, newest)
    link_start = np.append(0, np.cumsum(np.bincount(version, minlength=len(page))))
    return ListingVersions(page, at_s, link_start, shown[place])


def _listing_members(pages: SyntheticPages, begin_s: float) -> tuple[Ints, Ints]:
    """Return the member pages of every listing in a synthetic history, as columns of listing and page.

    A page that moved before the world opens is listed with its new URL, one that moves later with its old one.
    """
    articles = np.flatnonzero((pages.number >= 0) & (~pages.is_moved | (pages.born_s <= begin_s)))
    wide = int(pages.section.max(initial=0)) + 3
    # A listing is found by its site and its number; -1 if a site has no feed.
    where = np.full((int(pages.site.max(initial=0)) + 1, wide), -1)
    owners = np.flatnonzero(pages.number < 0)
    where[pages.site[owners], -pages.number[owners] - 1] = owners
    site = pages.site[articles]
    listing = np.concatenate([where[site, 0], where[site, 1], where[site, pages.section[articles] + 2]])
    shown = np.tile(articles, 3)
    order = np.lexsort((pages.number[shown], listing))
    order = order[np.searchsorted(listing[order], 0) :]
    return listing[order], shown[order]


DAYS = 100
END_S = START_S + DAYS * DAY_S
CHUNK = 65_536
WAVE_GAP_S = 45 * DAY_S
BURST_GAP_S = 600.0
WORDS_PER_PARAGRAPH = 60
MAX_SECTIONS = 16
VARIANTS = ("bursts", "waves")


class ArraySize(NamedTuple):
    """Size of a synthetic history's world, and whether listings have links: those of a million pages are too many."""

    size: WorldSize
    linked: bool


ARRAY_SIZES: Mapping[str, ArraySize] = MappingProxyType(
    {name: ArraySize(size, linked=True) for name, size in SIZES.items()}
    | {
        "300k": ArraySize(WorldSize(hosts=900, pages=300_000), linked=False),
        "1m": ArraySize(WorldSize(hosts=3_000, pages=1_000_000), linked=False),
    }
)


class _Versions(NamedTuple):
    """Versions of a synthetic history by page and time."""

    page: Ints
    at_s: Floats
    wave: npt.NDArray[np.bool_]


class _Waves(NamedTuple):
    """Rewrite waves of a synthetic history: ``at_s`` by section (site * MAX_SECTIONS + its place), then by time."""

    section: Ints
    at_s: Floats

    def changes_for(self, pages: SyntheticPages, after_s: Floats, until_s: Floats) -> Changes:
        """Return the changes that rewrite waves make to these synthetic pages while they live."""
        mine = pages.site * MAX_SECTIONS + pages.section
        first, last = np.searchsorted(self.section, mine), np.searchsorted(self.section, mine, side="right") - 1
        row, place = expand_ranges(first, last)
        at_s = self.at_s[place]
        inside = (after_s[row] < at_s) & (at_s < until_s[row]) & (pages.number[row] >= 0)
        return Changes(row[inside], at_s[inside])


def build_synthetic_history(name: str, seed: int) -> History:
    """Build a hundred days of synthetic history of this size and seed; ``name`` may end in ``+waves``, ``+bursts``."""
    size_name, *additions = name.removeprefix("made:").split("+")
    if size_name not in ARRAY_SIZES or any(one not in VARIANTS for one in additions):
        names = ", ".join(ARRAY_SIZES)
        raise UsageError(f'there is no world "{name}": choose made: with {names}, optionally with +waves or +bursts')
    size, linked = ARRAY_SIZES[size_name]
    sites = build_sites(size, seed, build_library(seed), calm=True)
    pages = list_pages(sites, START_S, END_S)
    lists = build_listings(pages, START_S) if linked else None
    return _build_history(
        "+".join([f"made:{size_name}", *additions]), sites, pages, lists, _build_versions(pages, lists, additions, seed)
    )


def _build_history(
    name: str, sites: Sequence[Site], pages: SyntheticPages, lists: ListingVersions | None, versions: _Versions
) -> History:
    moved_to = _match_moves(pages)
    return History(
        name=name,
        begin_s=START_S,
        end_s=END_S,
        urls=SyntheticUrls(sites, pages),
        site=pages.site,
        kind=np.where(pages.number == FEED_NUMBER, FEED, PAGE).astype(np.uint8),
        born_s=pages.born_s,
        died_s=pages.died_s,
        moved_to=moved_to,
        version_page=versions.page,
        version_at_s=versions.at_s,
        digest=_hash_versions(pages, versions, moved_to),
        words=(pages.paragraphs * WORDS_PER_PARAGRAPH)[versions.page],
        wave=versions.wave,
        link_start=_link_offsets(versions.page, pages, lists),
        link_to=lists.link_to if lists else np.zeros(0, np.int64),
        site_names=tuple(site.name for site in sites),
    )


def _build_versions(
    pages: SyntheticPages, lists: ListingVersions | None, additions: Sequence[str], seed: int
) -> _Versions:
    """Build all versions of a synthetic history, a chunk of pages at a time so that memory stays small."""
    waves = _draw_waves(pages, seed) if "waves" in additions else None
    parts = []
    for low in range(0, len(pages), CHUNK):
        some = pages.select(slice(low, low + CHUNK))
        rng = rng_for(seed, f"made/bursts/{low}") if "bursts" in additions else None
        found = _build_chunk(some, waves, rng)
        if lists is not None:
            found = _add_listings(found, lists, low, len(some))
        order = np.lexsort((found.at_s, found.page))
        parts.append(_Versions(found.page[order] + low, found.at_s[order], found.wave[order]))
    return _Versions(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _build_chunk(pages: SyntheticPages, waves: _Waves | None, rng: np.random.Generator | None) -> _Versions:
    """Build the births and changes of a chunk of pages for a synthetic history, unordered."""
    after_s, until_s = np.maximum(pages.born_s, START_S), np.minimum(pages.died_s, END_S)
    changes = list_changes(pages.process, after_s, until_s)
    if rng is not None:
        changes = _add_bursts(changes, until_s, rng)
    swept = waves.changes_for(pages, after_s, until_s) if waves else Changes(np.zeros(0, np.int64), np.zeros(0))
    row = np.concatenate([np.arange(len(pages)), changes.row, swept.row])
    at_s = np.concatenate([pages.born_s, changes.at_s, swept.at_s])
    return _Versions(row, at_s, np.arange(len(row)) >= len(row) - len(swept.row))


def _add_listings(found: _Versions, lists: ListingVersions, low: int, count: int) -> _Versions:
    """Add the listing versions to a synthetic history's page versions; a listing's first one is there already."""
    rows = slice(*np.searchsorted(lists.page, [low, low + count]))
    later = lists.at_s[rows] > START_S
    page, at_s = lists.page[rows][later] - low, lists.at_s[rows][later]
    none = np.zeros(len(page), bool)
    return _Versions(*(np.concatenate(pair) for pair in zip(found, (page, at_s, none), strict=True)))


def _add_bursts(changes: Changes, until_s: Floats, rng: np.random.Generator) -> Changes:
    """Add bursts to a synthetic history: half of all edits draw a second one, half of those a third, and so on."""
    parts, last = [changes], changes
    while len(last.row):
        drawn = rng.random(len(last.row)) < 0.5
        row = last.row[drawn]
        at_s = last.at_s[drawn] + rng.exponential(BURST_GAP_S, len(row))
        inside = at_s <= until_s[row]
        last = Changes(row[inside], at_s[inside])
        parts.append(last)
    return Changes(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _draw_waves(pages: SyntheticPages, seed: int) -> _Waves:
    sections = (int(pages.site.max()) + 1) * MAX_SECTIONS
    rng = rng_for(seed, "made/waves")
    counts = rng.poisson(DAYS * DAY_S / WAVE_GAP_S, sections)
    section = np.repeat(np.arange(sections), counts)
    return _Waves(section, rng.uniform(START_S, END_S, len(section)))


def _match_moves(pages: SyntheticPages) -> Ints:
    """Match each moved page of a synthetic history with the URL that replaces it."""
    text = pages.site << 32 | pages.number
    left, reached = np.flatnonzero(pages.moved_s < np.inf), np.flatnonzero(pages.is_moved)
    reached = reached[np.argsort(text[reached])]
    moved_to = np.full(len(pages), -1)
    moved_to[left] = reached[np.searchsorted(text[reached], text[left])]
    return moved_to


def _hash_versions(pages: SyntheticPages, versions: _Versions, moved_to: Ints) -> HashArray:
    """Hash the text of each version in a synthetic history: an edit changes the hash, a move keeps it."""
    digests = mix_all(pages.key[versions.page] ^ versions.at_s.view(np.uint64))
    left = np.flatnonzero(moved_to >= 0)
    last = np.searchsorted(versions.page, left, side="right") - 1
    digests[np.searchsorted(versions.page, moved_to[left])] = digests[last]
    return digests


def _link_offsets(page: Ints, pages: SyntheticPages, lists: ListingVersions | None) -> Ints:
    """Return where the links of each version in a synthetic history start; zeros if listings have no links."""
    if lists is None:
        return np.broadcast_to(np.int64(0), len(page) + 1)
    counts = np.zeros(len(page), np.int64)
    counts[pages.number[page] < 0] = np.diff(lists.link_start)
    return np.append(0, np.cumsum(counts))
