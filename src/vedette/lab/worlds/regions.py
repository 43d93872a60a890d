"""Webs with regions (``regions:NAME``) for the observers experiment: where sites are, and what the links cost.

The latencies are measured: the mean duration of empty HTTP calls between web servers in four AWS regions, each minute
from February 23 to March 31, 2019 (AWS Latency Index, sitemap.bytecode.tech/aws-latency-index). Such a call is what
eq. 41 calls 2 L. Home is in Ireland. Bandwidth is an assumption: TCP delivers one window of 64 kB per round trip, and a
call is two of them (one to connect).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.fetch.observers.costs import Link
from vedette.policy import Floats, Ints, rng_for

REGIONS = ("ireland", "oregon", "saopaulo", "sydney")
HOME = "ireland"
CALL_S: Mapping[tuple[str, str], float] = MappingProxyType({
    ("ireland", "oregon"): 0.267159,
    ("oregon", "sydney"): 0.278496,
    ("ireland", "saopaulo"): 0.367805,
    ("oregon", "saopaulo"): 0.366153,
    ("ireland", "sydney"): 0.536054,
    ("saopaulo", "sydney"): 0.630039,
})  # fmt: skip
LOCAL = Link(0.002, 1e-8)
WINDOW_BYTES = 65_536.0


class RegionWeb(NamedTuple):
    """A kind of web: hosts, pages for each, and the share of hosts that are in the home region."""

    hosts: int
    pages: int
    home_share: float


REGION_WEBS: Mapping[str, RegionWeb] = MappingProxyType(
    {"small": RegionWeb(12, 20, 0.4), "large": RegionWeb(200, 50, 0.4)}
)


class RegionPages(NamedTuple):
    """The pages of a web with regions: their host, size in bytes, changes a day; and the region of each host."""

    host: Ints
    size: Floats
    rate: Floats
    region: tuple[str, ...]


def check_region_web(name: str) -> None:
    """Refuse a web with regions that does not exist."""
    if name not in REGION_WEBS:
        raise UsageError(f"no world is named regions:{name}; choose regions:{' or regions:'.join(REGION_WEBS)}")


def get_link(one: str, other: str) -> Link:
    """Return the link between two regions.

    >>> get_link("sydney", "ireland") == get_link("ireland", "sydney"), get_link("sydney", "sydney") == LOCAL
    (True, True)
    """
    if one == other:
        return LOCAL
    call_s = CALL_S.get((one, other)) or CALL_S[other, one]
    return Link(call_s / 2.0, call_s / 2.0 / WINDOW_BYTES)


def create_pages(name: str, seed: int) -> RegionPages:
    """Create the pages of a web with regions; sizes (median 30 kB) and changes (median 1 a week) are log-normal."""
    kind, rng = REGION_WEBS[name], rng_for(seed, f"lab/regions/{name}")
    far = [region for region in REGIONS if region != HOME]
    drawn = rng.random(kind.hosts) < kind.home_share
    region = tuple(HOME if near else far[int(rng.integers(len(far)))] for near in drawn)
    count = kind.hosts * kind.pages
    host = np.repeat(np.arange(kind.hosts), kind.pages)
    return RegionPages(host, 30e3 * rng.lognormal(0.0, 1.2, count), rng.lognormal(0.0, 1.5, count) / 7.0, region)
