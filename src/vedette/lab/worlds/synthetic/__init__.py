"""Synthetic web: generated, not recorded. The response of a URL is a pure function of seed, URL and time.

>>> from vedette.lab.worlds.world import WorldRequest
>>> world = open_synthetic_world("tiny")
>>> host = next(iter(world.sites))
>>> world.reply(WorldRequest(host, "/"), world.start_s).status
200
"""

from vedette.lab.worlds.synthetic.sites import SIZES
from vedette.lab.worlds.synthetic.world import SyntheticWorld, open_synthetic_world

__all__ = ["SIZES", "SyntheticWorld", "open_synthetic_world"]
