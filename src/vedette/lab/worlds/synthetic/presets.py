"""The made web on which refreshing is measured live: few sites, all kinds of them, without traps and faults.

It is small because a month of it must fit into minutes, and every tree of the comparison has to keep up with its time.
"""

from vedette.lab.worlds.synthetic import MadeWorld
from vedette.lab.worlds.synthetic.grammar import library
from vedette.lab.worlds.synthetic.shared import web_of
from vedette.lab.worlds.synthetic.sites import Size, made_sites

__all__ = ["PLACE", "month_world"]

PLACE = f"{__name__}:month_world"
"""How a server is told to open it."""

SIZE = Size(hosts=6, pages=400)


def month_world(seed: int) -> MadeWorld:
    """The web of this seed.

    >>> world = month_world(1)
    >>> len(world.sites), sum(len(world.live_pages(host, world.start_s)) for host in world.sites) > 300
    (6, True)
    """
    proses = library(seed)
    web = web_of(seed, made_sites(SIZE, seed, proses, calm=True))
    return MadeWorld(f"made:month:{seed}:calm", web, proses, calm=True)
