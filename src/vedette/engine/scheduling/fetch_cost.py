"""Fetch cost: the cost of a page in ordinary fetches: the request, the bytes, and the connection time.

Seconds are wall time, from sending a request to the end of its response. Host delays, back-off and the other hops of a
redirect do not count. When world time runs faster they are still wall time, as latency is.

In the busy hours of a site each fetch costs a multiple, set by the operator. Observe99 (2.4.2) calls for a cost by hour
of day: with busy hours, a page is fetched at the first hour whose cost it is worth.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import NamedTuple

import numpy as np

from vedette.discover.urls.scope import SiteIndex
from vedette.errors import ConfigError
from vedette.fetch.politeness import find_next_open_s, parse_hours
from vedette.model import Site
from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools
from vedette.timeutil import HOUR_S

MAX_HOSTS = 5_000
# Number of fetches that a host's mean averages over: it adapts to a slow host within a few pages.
WINDOW_FETCHES = 10


class HostMeans:
    """Mean connection time or size of each host's fetches, for a limited number of hosts, the last requested ones.

    >>> seconds = HostMeans().observe(["a.test", "a.test"], [1.0, 3.0])
    >>> seconds.estimate(["a.test", "b.test"])
    [2.0, None]
    """

    def __init__(self, means: Mapping[str, tuple[float, int]] | None = None) -> None:
        self._means = dict(means or {})

    def observe(self, hosts: Sequence[str], seconds: Sequence[float]) -> "HostMeans":
        """Update host latencies with the durations of requests; return the same object."""
        for host, took_s in zip(hosts, seconds, strict=True):
            mean_s, seen = self._means.pop(host, (0.0, 0))
            seen = min(seen + 1, WINDOW_FETCHES)
            self._means[host] = mean_s + (took_s - mean_s) / seen, seen
        while len(self._means) > MAX_HOSTS:
            del self._means[next(iter(self._means))]
        return self

    def estimate(self, hosts: Sequence[str]) -> list[float | None]:
        """Estimate how long a request to each host takes; None if unknown."""
        return [self._means.get(host, (None, 0))[0] for host in hosts]

    def forget(self, hosts: Sequence[str]) -> None:
        """Forget hosts for which the measure no longer applies."""
        for host in hosts:
            self._means.pop(host, None)

    def to_json(self) -> str:
        """Serialize the host latencies for the next run."""
        return json.dumps({host: (round(mean_s, 4), seen) for host, (mean_s, seen) in self._means.items()})

    @classmethod
    def from_json(cls, text: str | None) -> "HostMeans":
        """Parse host latencies that an earlier run saved; empty if invalid.

        >>> HostMeans.from_json(HostMeans({"a.test": (0.25, 3)}).to_json()).estimate(["a.test"])
        [0.25]
        >>> HostMeans.from_json('{"a.test": [-1, 3]}').estimate(["a.test"])
        [None]
        >>> HostMeans.from_json("[").estimate([])
        []
        """
        try:
            means = {str(host): (float(mean_s), int(seen)) for host, (mean_s, seen) in json.loads(text or "{}").items()}
        except (TypeError, ValueError, AttributeError):
            return cls()
        return cls({host: one for host, one in means.items() if isfinite(one[0]) and one[0] >= 0 and one[1] > 0})


# Budgets and politeness count requests: one costs as much as this many bytes, and no page costs many times the average.
REQUEST_BYTES = 100_000.0
# A second of connection time costs as much as this many bytes; a hanging connection counts at most this long.
SECOND_BYTES = 100_000.0
MAX_HELD_S = 30.0
MAX_COST = 3.0
COST_HOSTS = 1_000  # number of fetches that the mean averages over


@dataclass(frozen=True, slots=True)
class FetchCost:
    """Fetch cost model: mean size and duration of fetches; a page of that size and duration costs 1.

    >>> cost = FetchCost().observe([50_000, 250_000], [0.0, 1.0])
    >>> cost.estimate([150_000, 0, 10**9], [0.5, 0.5, 0.5]).tolist()
    [1.0, 0.5, 3.0]
    >>> cost.estimate([150_000] * 3, [0.0, 5.0, 99.0]).tolist()
    [0.8333333333333334, 2.5, 3.0]
    """

    mean_bytes: float = 0.0
    seen: int = 0
    mean_s: float = 0.0

    def observe(self, sizes: Sequence[int], seconds: Sequence[float]) -> "FetchCost":
        """Update the fetch cost means with more fetches; old ones fade."""
        if not sizes:
            return self
        seen = self.seen + len(sizes)
        weight = len(sizes) / min(seen, max(COST_HOSTS, len(sizes)))
        mean_bytes = self.mean_bytes + weight * (float(np.mean(sizes)) - self.mean_bytes)
        mean_s = self.mean_s + weight * (float(np.mean(_clip_seconds(seconds))) - self.mean_s)
        return FetchCost(mean_bytes, min(seen, COST_HOSTS), mean_s)

    def estimate(self, sizes: Sequence[int], seconds: Sequence[float | None]) -> Floats:
        """Estimate the fetch cost of pages by size and duration, the mean where None; 1 each before any data."""
        if not self.seen:
            return np.ones(len(sizes))
        held_s = _clip_seconds([self.mean_s if each is None else each for each in seconds])
        spent = np.array(sizes, float) + REQUEST_BYTES + SECOND_BYTES * held_s
        usual = self.mean_bytes + REQUEST_BYTES + SECOND_BYTES * self.mean_s
        cost: Floats = np.minimum(spent / usual, MAX_COST)
        return cost

    def estimate_rendering(self, requests: float, seconds: float) -> float:
        """Estimate the cost of rendering a page beyond its own fetch, by its requests and browser seconds.

        >>> FetchCost().observe([100_000], [0.0]).estimate_rendering(2.0, 2.0)
        2.0
        """
        usual = self.mean_bytes + REQUEST_BYTES + SECOND_BYTES * self.mean_s
        return (requests * REQUEST_BYTES + SECOND_BYTES * min(seconds, MAX_HELD_S)) / usual

    def to_json(self) -> str:
        """Serialize the fetch cost means for the next run."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "FetchCost":
        """Parse fetch cost means that an earlier run saved, with or without durations; empty if invalid.

        >>> FetchCost.from_json(FetchCost(5.0, 2, 0.5).to_json()), FetchCost.from_json('{"seen": "x"}').seen
        (FetchCost(mean_bytes=5.0, seen=2, mean_s=0.5), 0)
        >>> FetchCost.from_json('{"mean_bytes": 5.0, "seen": 2}')
        FetchCost(mean_bytes=5.0, seen=2, mean_s=0.0)
        """
        try:
            cost = cls(**json.loads(text or "{}"))
            sound = all(isfinite(each) and each >= 0 for each in (cost.mean_bytes, cost.mean_s, cost.seen))
        except (TypeError, ValueError):
            return cls()
        return cost if sound else cls()


_BUSY = re.compile(r"(.+?)\s*x\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)", re.ASCII)
MAX_FACTOR = 100.0


class BusyHours(NamedTuple):
    """Busy hours of a site: a bit for each hour of the day in UTC, and the cost factor in those hours."""

    hours: int = 0
    factor: float = 1.0


def parse_busy_hours(text: str) -> BusyHours:
    """Parse the busy hours of a site; an empty text means none.

    >>> busy = parse_busy_hours("22:00-01:00, 12:00-13:00 x3")
    >>> [hour for hour in range(24) if busy.hours >> hour & 1], busy.factor
    ([0, 12, 22, 23], 3.0)
    """
    if not text.strip():
        return BusyHours()
    found = _BUSY.fullmatch(text.strip())
    spans, factor = (parse_hours(found[1]), float(found[2])) if found else ((), 0.0)
    if not 1 <= factor <= MAX_FACTOR or any(edge % HOUR_S for span in spans for edge in span):
        raise ConfigError(
            f'busy hours "{text[:60]}": expected whole hours in UTC and a cost factor from 1 '
            f'to {MAX_FACTOR:.0f}, such as "08:00-18:00 x3"'
        )
    return BusyHours(sum(1 << hour for hour in range(24) if _is_within(spans, hour * HOUR_S)), factor)


def _is_within(spans: tuple[tuple[int, int], ...], at_s: float) -> bool:
    return find_next_open_s(spans, at_s) == at_s


class BusySites:
    """Busy hours of pages by the site that they belong to."""

    def __init__(self, sites: Sequence[Site] = ()) -> None:
        self.set_sites(sites)

    def set_sites(self, sites: Sequence[Site]) -> None:
        """Replace the sites, since settings can change while a crawl runs."""
        self._hours = {site.start: parse_busy_hours(site.busy_hours) for site in sites if site.busy_hours}
        self._sites = SiteIndex(sites if self._hours else ())

    @property
    def has_hours(self) -> bool:
        """Whether any site has busy hours."""
        return bool(self._hours)

    def find(self, urls: Sequence[str]) -> tuple[Ints, Floats]:
        """Find the busy hours and cost factor of each page, as columns of ``KnownPages``."""
        sites = [self._sites.find_site(url) for url in urls]
        found = [self._hours.get(site.start if site else "", BusyHours()) for site in sites]
        return np.array([one.hours for one in found], np.int64), np.array([one.factor for one in found], np.float64)

    def find_factors(self, urls: Sequence[str], now_s: float) -> Floats:
        """Find the current cost factor of each page."""
        if not self._hours:
            return np.ones(len(urls))
        hours, factors = self.find(urls)
        return np.where(is_busy(hours, np.full(len(urls), now_s)), factors, 1.0)


def is_busy(hours: Ints, at_s: Floats) -> Bools:
    """Mark the times within busy hours."""
    # Also for times too large for integers: a page may wait that long at a trial price.
    hour = (np.floor(at_s / HOUR_S) % 24.0).astype(np.int64)
    busy: Bools = (hours >> hour & 1).astype(np.bool_)
    return busy


def find_next_quiet_s(hours: Ints, at_s: Floats) -> Floats:
    """Find the first time outside busy hours from a time on; infinity if every hour is busy, or for never.

    >>> times = np.array([1.5, 2.5, 0.0, 1e30, np.inf]) * HOUR_S
    >>> (find_next_quiet_s(np.array([12, 12, 2**24 - 1, 2, 12]), times) / HOUR_S).tolist()
    [1.5, 4.0, inf, 1e+30, inf]
    """
    never, at_s = ~np.isfinite(at_s), np.where(np.isfinite(at_s), at_s, 0.0)
    hour_s = np.floor(at_s / HOUR_S) * HOUR_S
    quiet_s = np.full(len(at_s), np.inf)
    for ahead in range(23, -1, -1):
        start_s = np.maximum(hour_s + ahead * HOUR_S, at_s)
        quiet_s = np.where(is_busy(hours, start_s), quiet_s, start_s)
    return np.where(never, np.inf, quiet_s)


def _clip_seconds(seconds: Sequence[float]) -> Floats:
    """Clip connection times for fetch costs; a clock that was set back counts as 0."""
    held: Floats = np.clip(np.nan_to_num(np.array(seconds, float), nan=0.0, posinf=MAX_HELD_S), 0.0, MAX_HELD_S)
    return held
