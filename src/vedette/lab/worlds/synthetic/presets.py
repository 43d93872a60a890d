"""The made web on which refreshing is measured live: few sites, all kinds of them, without traps and faults.

It is small because a month of it must fit into minutes, and every tree of the comparison has to keep up with its time.
"""

from dataclasses import replace

from vedette.lab.worlds.synthetic import SyntheticWorld
from vedette.lab.worlds.synthetic.grammar import build_library
from vedette.lab.worlds.synthetic.shared import build_web
from vedette.lab.worlds.synthetic.sites import Site, WorldSize, build_sites

# In a day of it there must be enough births for a median, and it must be crawled within a minute or two: three crawlers
# share the machine, and its time does not run much faster than ours, or all that is measured is how long work takes.


BIRTHS_PLACE = f"{__name__}:births_world"
"""How a server is told to open it."""

BIRTHS_SIZE = WorldSize(hosts=6, pages=240)
# So many times the births of other made webs.
BIRTH_FACTOR = 30.0


def births_world(seed: int) -> SyntheticWorld:
    """The web of this seed.

    >>> world = births_world(1)
    >>> day_s = 86_400.0
    >>> born = [site.births.count_born(world.start_s + day_s) - site.births.stock for site in world.sites.values()]
    >>> 80 < sum(born) < 250
    True
    """
    proses = build_library(seed)
    sites = tuple(_speed_up_births(site) for site in build_sites(BIRTHS_SIZE, seed, proses, calm=True))
    return SyntheticWorld(f"made:births:{seed}:calm", build_web(seed, sites), proses, calm=True)


def _speed_up_births(site: Site) -> Site:
    return replace(site, births=replace(site.births, per_s=BIRTH_FACTOR * site.births.per_s))


MONTH_PLACE = f"{__name__}:month_world"
"""How a server is told to open it."""

MONTH_SIZE = WorldSize(hosts=6, pages=400)


def month_world(seed: int) -> SyntheticWorld:
    """The web of this seed.

    >>> world = month_world(1)
    >>> len(world.sites), sum(len(world.live_pages(host, world.start_s)) for host in world.sites) > 300
    (6, True)
    """
    proses = build_library(seed)
    web = build_web(seed, build_sites(MONTH_SIZE, seed, proses, calm=True))
    return SyntheticWorld(f"made:month:{seed}:calm", web, proses, calm=True)
