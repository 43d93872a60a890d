"""Promised sources: sources that the operator wants fetched at a minimum rate, whatever the price.

A promise is in a site's settings as seconds and URL, ``900 https://example.org/news``; a URL without a host is the
site's own. Politeness comes first: a promise that a host's delays do not permit is rejected with what is possible.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

from vedette.discover.urls.normalize import normalize, resolve
from vedette.discover.urls.scope import check_scope
from vedette.model import Site, origin_of

MAX_PROMISES = 100
# Promises may take half of the requests that a host's delays allow: its other pages need fetches too.
MAX_HOST_SHARE = 0.5
# How much ahead of its deadline a promised page is requested, so that the response arrives in time.
_LEAD_SHARE, _LEAD_DELAYS = 0.1, 3.0


class Promise(NamedTuple):
    """A promised source, as its site spells it, and the longest time between two fetches of it."""

    url: str
    interval_s: float


def list_promises(site: Site) -> Iterator[Promise]:
    """Yield the promises in a site's settings; sources outside the site are skipped.

    >>> list(list_promises(Site("https://example.org/", promise=("900 /news",))))
    [Promise(url='https://example.org/news', interval_s=900.0)]
    """
    for text in site.promise:
        interval, _, place = text.partition(" ")
        url = resolve(place, site.start)
        if url is not None and check_scope(url, site) is None:
            yield Promise(normalize(url, site), float(interval))


def find_out_of_scope(site: Site) -> str:
    """Return the first promised URL outside the site's scope; empty if there is none.

    >>> find_out_of_scope(Site("https://example.org/", promise=("900 https://example.com/",)))
    'https://example.com/'
    """
    for text in site.promise:
        url = resolve(place := text.partition(" ")[2], site.start)
        if url is None or check_scope(url, site) is not None:
            return place
    return ""


def find_feasible_s(promises: Sequence[Promise], delay_s: float, closed_s: float = 0.0) -> float | None:
    """Return the shortest interval that can be promised to all these sources; None if the promises can be kept.

    ``delay_s`` is the delay of their host, ``closed_s`` its longest continuous period outside crawl hours. A request
    takes a moment too; that is unknown in advance, and fits in the half that is left to other pages.

    >>> find_feasible_s([Promise("https://example.org/", 15.0)], delay_s=10.0)
    20.0
    >>> find_feasible_s([Promise("https://example.org/", 900.0)], delay_s=10.0) is None
    True
    """
    if not promises:
        return None
    wanted = sum(delay_s / each.interval_s for each in promises)
    shortest = min(each.interval_s for each in promises)
    if wanted <= MAX_HOST_SHARE and shortest > closed_s:
        return None
    return float(max(ceil(len(promises) * delay_s / MAX_HOST_SHARE), ceil(closed_s) + 1 if closed_s else 1))


def compute_due_s(promise: Promise, fetched_s: float, delay_s: float) -> float:
    """Compute when a promised source is due, by its last fetch."""
    ahead_s = max(promise.interval_s * _LEAD_SHARE, delay_s * _LEAD_DELAYS)
    return fetched_s + promise.interval_s - min(ahead_s, promise.interval_s / 2)


def describe_promise(site: Site, url: str) -> str:
    """Describe the promise behind the fetches of a source; empty if there is none.

    >>> describe_promise(Site("https://example.org/", promise=("900 /news",)), "https://example.org/news")
    'promised: fetched at least every 900 s, whatever it is worth'
    """
    found = [each.interval_s for each in list_promises(site) if each.url == url]
    return f"promised: fetched at least every {min(found):g} s, whatever it is worth" if found else ""


def group_by_host(promises: Sequence[Promise]) -> dict[str, list[Promise]]:
    """Group promises by the host of their source."""
    found: dict[str, list[Promise]] = {}
    for each in promises:
        found.setdefault(origin_of(each.url).host, []).append(each)
    return found
