"""The made web on which it is measured live how soon new pages are told: few sites of all kinds that publish much.

In a day of it there must be enough births for a median, and it must be crawled within a minute or two: three crawlers
share the machine, and its time does not run much faster than ours, or all that is measured is how long work takes.
"""

from dataclasses import replace

from vedette.lab.worlds.synthetic import MadeWorld
from vedette.lab.worlds.synthetic.grammar import library
from vedette.lab.worlds.synthetic.shared import web_of
from vedette.lab.worlds.synthetic.sites import Site, Size, made_sites

__all__ = ["PLACE", "births_world"]

PLACE = f"{__name__}:births_world"
"""How a server is told to open it."""

SIZE = Size(hosts=6, pages=240)
# So many times the births of other made webs.
MORE = 30.0


def births_world(seed: int) -> MadeWorld:
    """The web of this seed.

    >>> world = births_world(1)
    >>> day_s = 86_400.0
    >>> born = [site.births.born(world.start_s + day_s) - site.births.stock for site in world.sites.values()]
    >>> 80 < sum(born) < 250
    True
    """
    proses = library(seed)
    sites = tuple(_busy(site) for site in made_sites(SIZE, seed, proses, calm=True))
    return MadeWorld(f"made:births:{seed}:calm", web_of(seed, sites), proses, calm=True)


def _busy(site: Site) -> Site:
    return replace(site, births=replace(site.births, per_s=MORE * site.births.per_s))
