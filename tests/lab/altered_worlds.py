"""Worlds with the same past but another future, to check that policies don't look ahead."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.lab.worlds.frontpages import Frontpages
from vedette.lab.worlds.history import History, SelectedTexts
from vedette.policy import Floats, Ints, rng_for

DEATH_SHARE = 0.3  # the share of living pages that die in the other future
CHANGES_PER_PAGE = 2.0  # how often a page changes in it, on average
LINKS_PER_VERSION = 5.0  # that a version of it has, on average


def alter_future(history: History, at_s: float, seed: int) -> History:
    """Return a history that is the same up to and including ``at_s``, and different afterwards.

    Pages that exist by then keep their number, versions and links, and their death if they have died. Everything later
    is drawn again: deaths, changes, new pages and links. Past links to pages that did not exist yet lead to other such
    pages.
    """
    rng = rng_for(seed, "altered future")
    begin_s = float(np.nextafter(at_s, np.inf))
    future = _Future(
        past_pages=int(np.count_nonzero(history.born_s <= at_s)),
        begin_s=begin_s,
        end_s=max(history.end_s, begin_s + 1.0),
        rng=rng,
    )
    world = _draw_pages(history, future)
    drawn = _draw_versions(world, future)
    start, to = _draw_links(world, drawn, future)
    return replace(
        world,
        version_page=drawn.page,
        version_at_s=drawn.at_s,
        digest=np.where(drawn.past, history.digest[drawn.source], _draw_digests(len(drawn.past), rng)),
        words=history.words[drawn.source],
        wave=history.wave[drawn.source] & drawn.past,
        link_start=start,
        link_to=to,
        texts=SelectedTexts(history.texts, drawn.source),
    )


class _Future(NamedTuple):
    """When the future begins and ends, how many pages existed before, and its random numbers."""

    past_pages: int
    begin_s: float
    end_s: float
    rng: np.random.Generator


class _DrawnVersions(NamedTuple):
    """All versions in order: page, time, the real version with the same words, and whether it is that version."""

    page: Ints
    at_s: Floats
    source: Ints
    past: npt.NDArray[np.bool_]


def _draw_pages(history: History, future: _Future) -> History:
    """Draw the pages of the past, some with other deaths, and new ones; versions are still the real ones."""
    old, begin_s, end_s, rng = future
    new = int(rng.poisson(history.pages - old + 1)) + 1 if len(history.digest) else 0
    born_s = np.concatenate((history.born_s[:old], np.sort(rng.uniform(begin_s, end_s, new))))
    died_s = np.concatenate((history.died_s[:old], np.full(new, np.inf)))
    dead = died_s < begin_s
    death_s = np.maximum(born_s, begin_s) + (rng.random(old + new) + 0.001) * (end_s - begin_s)
    moved_to = np.concatenate((history.moved_to[:old], np.full(new, -1)))
    sites = int(history.site.max(initial=0)) + 1
    return replace(
        history,
        end_s=end_s,
        urls=[*list(history.urls)[:old], *(f"https://future.invalid/{number}" for number in range(new))],
        site=np.concatenate((history.site[:old], rng.integers(0, sites, new))),
        kind=np.concatenate((history.kind[:old], np.zeros(new, np.uint8))),
        born_s=born_s,
        died_s=np.where(dead, died_s, np.where(rng.random(old + new) < DEATH_SHARE, death_s, np.inf)),
        moved_to=np.where(dead, moved_to, -1),
    )


def _draw_versions(world: History, future: _Future) -> _DrawnVersions:
    """Draw versions: those of the past, the first one of each new page, and changes of all living pages."""
    rng = future.rng
    past = np.flatnonzero(world.version_at_s < future.begin_s)
    births = np.arange(future.past_pages, world.pages)
    begin_s = np.maximum(world.born_s, future.begin_s)
    span_s = np.maximum(0.0, np.minimum(world.died_s, future.end_s) - begin_s)
    changed = np.repeat(np.arange(world.pages), rng.poisson(CHANGES_PER_PAGE, world.pages) * (span_s > 0))
    change_s = begin_s[changed] + rng.uniform(0.001, 0.999, len(changed)) * span_s[changed]
    drawn = len(births) + len(changed)
    page = np.concatenate((world.version_page[past], births, changed))
    at_s = np.concatenate((world.version_at_s[past], world.born_s[births], change_s))
    source = np.concatenate((past, rng.integers(0, max(1, len(world.digest)), drawn)))
    is_past = np.arange(len(page)) < len(past)
    order = np.lexsort((at_s, page))
    return _DrawnVersions(page[order], at_s[order], source[order], is_past[order])


def _draw_links(world: History, drawn: _DrawnVersions, future: _Future) -> tuple[Ints, Ints]:
    """Draw links: those of the past, except links to the future, and new ones for everything new."""
    rows = zip(drawn.source.tolist(), drawn.past.tolist(), strict=True)
    found = [
        _rewrite_past_links(world, one, future) if past else _draw_random_links(world.pages, future.rng)
        for one, past in rows
    ]
    start = np.zeros(len(found) + 1, np.int64)
    np.cumsum([len(one) for one in found], out=start[1:])
    return start, np.concatenate([*found, np.zeros(0, np.int64)])


def _rewrite_past_links(world: History, version: int, future: _Future) -> Ints:
    links = world.links_of(version)
    ahead = np.flatnonzero(links >= future.past_pages)
    if not len(ahead):
        return links
    new = future.rng.permutation(np.arange(future.past_pages, world.pages))[: len(ahead)]
    return np.insert(np.delete(links, ahead), np.minimum(ahead, len(links) - len(ahead))[: len(new)], new)


def _draw_random_links(pages: int, rng: np.random.Generator) -> Ints:
    return np.unique(rng.integers(0, pages, rng.poisson(LINKS_PER_VERSION)))


def _draw_digests(count: int, rng: np.random.Generator) -> npt.NDArray[np.uint64]:
    return rng.integers(1, 1 << 63, count, dtype=np.uint64)


def alter_frontpages(world: Frontpages, index: int, seed: int) -> Frontpages:
    """Return a world with the same past and another future, to prove that a policy does not know the future.

    From snapshot ``index`` on, every source shows what another one would have shown, half of the new links are gone,
    and targets that were never seen before are replaced.
    """
    rng = rng_for(seed, "lab/frontpages/altered")
    moved = _draw_cycle(world.sources, rng)
    born = np.full(world.targets, world.snapshots, np.int64)
    np.minimum.at(born, world.target, world.start)
    later = np.flatnonzero(born >= index)
    renamed = np.arange(world.targets)
    renamed[later] = rng.permutation(later)
    past = np.flatnonzero(world.start < index)
    future = np.flatnonzero((world.stop > index) & ((world.start < index) | (rng.random(len(world.start)) < 0.5)))
    ok = world.ok.copy()
    ok[index:, moved] = world.ok[index:]
    return Frontpages(
        name=world.name,
        times=world.times,
        source=np.concatenate([world.source[past], moved[world.source[future]]]),
        target=np.concatenate([world.target[past], renamed[world.target[future]]]),
        start=np.concatenate([world.start[past], np.maximum(world.start[future], index)]),
        stop=np.concatenate([np.minimum(world.stop[past], index), world.stop[future]]),
        ok=ok,
        host=world.host,
        source_names=world.source_names,
        host_names=world.host_names,
        targets=world.targets,
    )


def _draw_cycle(count: int, rng: np.random.Generator) -> Ints:
    """Draw a permutation of ``count`` places without a fixed point: a ring in random order."""
    ring = rng.permutation(count)
    moved = np.empty(count, np.int64)
    moved[ring] = np.roll(ring, 1)
    return moved
