"""A web that is made, not recorded: what a URL answers is a pure function of seed, URL and time.

>>> from vedette.lab.worlds.world import Question
>>> world = open_made("tiny")
>>> host = next(iter(world.sites))
>>> world.reply(Question(host, "/"), world.start_s).status
200
"""

from vedette.lab.worlds.synthetic.sites import SIZES
from vedette.lab.worlds.synthetic.world import MadeWorld, open_made

__all__ = ["SIZES", "MadeWorld", "open_made"]
