"""How often a host may be asked at all, as far as push and promises must know: its pauses and its hours."""

from collections.abc import Iterable, Mapping, Sequence

from vedette.discover.urls.scope import SiteIndex
from vedette.fetch.hours import next_open_s, read_hours
from vedette.fetch.robots.state import RobotsState
from vedette.model import Origin, Site

__all__ = ["closed_s", "pause_s"]


def pause_s(host: str, sites: Sequence[Site], robots: Mapping[Origin, RobotsState], delay_s: float) -> float:
    """The pause between two requests to a host: the operator's, or the longer one that its robots.txt asks for."""
    own = [site.delay_s for site in SiteIndex(sites).of_host(host) if site.delay_s is not None]
    asked = [state.crawl_delay_s or 0.0 for origin, state in robots.items() if origin.host == host]
    return max(*(own or [delay_s]), *asked, 1e-3)


def closed_s(sites: Iterable[Site]) -> float:
    """The longest time on end in which one of these sites may not be asked.

    >>> closed_s([Site("https://example.org/", hours="22:00-06:00")]) / 3600
    16.0
    """
    return max((_longest_s(site.hours) for site in sites), default=0.0)


def _longest_s(hours: str) -> float:
    spans = read_hours(hours)
    ends = [float(end) for begin, end in spans if begin != end]
    return max((next_open_s(spans, end_s) - end_s for end_s in ends), default=0.0)
