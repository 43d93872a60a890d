"""Recorded front pages, the world of discovery: load and save them, poll them, import the public recording."""

from vedette.lab.worlds.frontpages.arrays import Frontpages, PollResults, TargetVisibility
from vedette.lab.worlds.frontpages.files import load_frontpages, save_frontpages
from vedette.lab.worlds.frontpages.recording import import_frontpages

__all__ = [
    "Frontpages",
    "PollResults",
    "TargetVisibility",
    "import_frontpages",
    "load_frontpages",
    "save_frontpages",
]
