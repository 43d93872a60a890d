"""Requests to the synthetic web: replies, links, and changes in two forms that must agree, arrays and served pages."""

from urllib.parse import urljoin, urlsplit

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from vedette.lab.worlds.synthetic import SyntheticWorld
from vedette.lab.worlds.synthetic.change_times import ChangeProcess
from vedette.lab.worlds.synthetic.page_arrays import list_changes
from vedette.lab.worlds.synthetic.page_traits import CHANGE_LAWS, ChangeProcesses, last_text_change_s
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.world import Reply, WorldRequest


def ask(world: SyntheticWorld, url: str, now_s: float, **validators: str | None) -> Reply:
    """Return the reply to a URL."""
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return world.reply(WorldRequest(parts.netloc, target, **validators), now_s)


def hrefs(url: str, body: bytes) -> list[str]:
    """Return the absolute targets of all links of a page."""
    return [urljoin(url, node.attributes["href"] or "") for node in LexborHTMLParser(body).css("a[href]")]


def edit_times(process: ChangeProcess, birth_s: float, until_s: float) -> list[float]:
    """Return every change after birth, up to a time, in order, according to the arrays."""
    law, key = np.array([CHANGE_LAWS.index(process.law)]), np.array([process.key], np.uint64)
    processes = ChangeProcesses(law, key, np.array([process.per_s]))
    return sorted(list_changes(processes, np.array([birth_s]), np.array([until_s])).at_s.tolist())


def change_times(site: Site, number: int, until_s: float) -> list[float]:
    """List the changes of a page's text after its birth, up to a time, by going back from the last one served."""
    moments: list[float] = []
    while (last_s := last_text_change_s(site, number, until_s)) > site.births.birth_s(number):
        moments.append(last_s)
        until_s = last_s - 1e-3
    return moments[::-1]
