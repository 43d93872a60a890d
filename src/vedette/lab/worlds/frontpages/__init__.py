"""Recorded front pages, the world of discovery: read from a file, looked at, and made from the public recording."""

from vedette.lab.worlds.frontpages.arrays import Frontpages, Looks, Seen, altered_after
from vedette.lab.worlds.frontpages.files import load_frontpages, save_frontpages
from vedette.lab.worlds.frontpages.recording import import_frontpages

__all__ = ["Frontpages", "Looks", "Seen", "altered_after", "import_frontpages", "load_frontpages", "save_frontpages"]
