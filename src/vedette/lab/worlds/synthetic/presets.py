"""Preset synthetic webs for live comparisons: a month of changes, and a day of many births.

They have all kinds of sites, without traps and faults. They are small because every crawler of a comparison has to keep
up with their time, and a month must fit into minutes.
"""

from dataclasses import replace

from vedette.lab.worlds.synthetic import SyntheticWorld
from vedette.lab.worlds.synthetic.grammar import build_library
from vedette.lab.worlds.synthetic.sites import WorldSize, build_sites
from vedette.lab.worlds.synthetic.web import build_web

BIRTHS_PLACE, MONTH_PLACE = f"{__name__}:births_world", f"{__name__}:month_world"
"""The command-line name that opens them."""

# A day of births needs enough of them for a median, and must be crawled within a minute or two: three crawlers share
# the machine, and its time does not run much faster than ours, otherwise only the duration of work would be measured.
BIRTHS_SIZE, MONTH_SIZE = WorldSize(hosts=6, pages=240), WorldSize(hosts=6, pages=400)
BIRTH_FACTOR = 30.0  # times the births of other synthetic webs


def births_world(seed: int) -> SyntheticWorld:
    """Return the preset synthetic world with a day of many births, by seed.

    >>> world = births_world(1)
    >>> day_s = 86_400.0
    >>> born = [site.births.count_born(world.start_s + day_s) - site.births.stock for site in world.sites.values()]
    >>> 80 < sum(born) < 250
    True
    """
    return _open_calm("births", seed, BIRTHS_SIZE, BIRTH_FACTOR)


def month_world(seed: int) -> SyntheticWorld:
    """Return the preset synthetic world with a month of changes, by seed.

    >>> world = month_world(1)
    >>> len(world.sites), sum(len(world.live_pages(host, world.start_s)) for host in world.sites) > 300
    (6, True)
    """
    return _open_calm("month", seed, MONTH_SIZE)


def _open_calm(name: str, seed: int, size: WorldSize, birth_factor: float = 1.0) -> SyntheticWorld:
    proses = build_library(seed)
    sites = build_sites(size, seed, proses, calm=True)
    sites = tuple(replace(one, births=replace(one.births, per_s=birth_factor * one.births.per_s)) for one in sites)
    return SyntheticWorld(f"made:{name}:{seed}:calm", build_web(seed, sites), proses, calm=True)
