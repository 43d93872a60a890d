"""Poll counts: results of polls of discovery sources, how many are allowed, and which sources alerts wait for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, NamedTuple, Protocol

import numpy as np

from vedette.engine.scheduling.forecast import HALF_LIFE_S
from vedette.index.fields import list_site_values
from vedette.policy import Floats
from vedette.timeutil import DAY_S, HOUR_S


class PollStore(Protocol):
    """Crawl store port of polling: saved values, the links of pages, and the places that alerts watch."""

    def get_value(self, key: str) -> str | None:
        """Return a value that an earlier run saved."""

    def set_value(self, key: str, value: str) -> None:
        """Save a value for the next run."""

    def get_alert_places(self) -> Sequence[str]:
        """Return the places that alerts watch."""

    def get_links(self, id_: int) -> Sequence[str]:
        """Return the links of a stored page."""


# A poll is a fetch of a source that was fetched before: at a first fetch everything is unknown, which says nothing
# about what is new. A poll that finds no unknown URL, or gets no response, was wasted.


# A page that an alert waits for counts as this many others. The loss from waiting grows roughly with the square of the
# time, so a fully watched source is polled about twice as often.
ALERT_WEIGHT = 4.0
EVERYWHERE = "*"
# How many links of a source, spread over it, represent the others; how many sources are looked up at a time.
LINK_SAMPLE, MAX_LOOKUPS = 64, 500


class AlertInterest:
    """Weight discovery sources by alerts: new pages at a place that an alert watches are worth more.

    An alert names a place: a host, a path on one, or everywhere. New pages of a source tend to be where the rest of its
    links are, so the share of its links at such places estimates the share of its new pages that an alert waits for. An
    alert on a query alone names no place and affects no poll; a query within a place counts as the place. Links are
    cached until the source is polled again or the alerts change.
    """

    def __init__(self, book: PollStore) -> None:
        self._store = book
        self._places: frozenset[str] = frozenset()
        self._share: dict[int, float] = {}

    def get_weights(self, ids: Sequence[int]) -> Floats:
        """Return how many ordinary new pages one new page of each discovery source counts for."""
        return 1.0 + (ALERT_WEIGHT - 1.0) * np.array(self.get_shares(ids), np.float64)

    def get_shares(self, ids: Sequence[int]) -> list[float]:
        """Return the share of each source's links at places that alerts watch; 0 until it was looked up."""
        places = frozenset(self._store.get_alert_places())
        if places != self._places:
            self._places, self._share = places, {}
        if not places or EVERYWHERE in places:
            return [float(bool(places))] * len(ids)
        for id_ in [id_ for id_ in ids if id_ not in self._share][:MAX_LOOKUPS]:
            self._share[id_] = _compute_share(self._store.get_links(id_), places)
        return [self._share.get(id_, 0.0) for id_ in ids]

    def invalidate(self, id_: int) -> None:
        """Drop the cached alert share of a source that was polled, since its links may have changed."""
        self._share.pop(id_, None)


def _compute_share(links: Sequence[str], places: frozenset[str]) -> float:
    """Compute the share of links at one of these alert places.

    >>> _compute_share(["https://a.example/news/1", "https://a.example/shop"], frozenset({"a.example/news"}))
    0.5
    """
    some = links[:: len(links) // LINK_SAMPLE + 1]
    return sum(not places.isdisjoint(list_site_values(link)) for link in some) / len(some) if some else 0.0


class SourceCount(NamedTuple):
    """Poll counts of one discovery source since it is known: polls, URLs found, wasted polls."""

    polls: int = 0
    found: int = 0
    wasted: int = 0

    def add_poll(self, new: int) -> "SourceCount":
        """Add a poll that found this many new URLs to a source's counts."""
        return SourceCount(self.polls + 1, self.found + new, self.wasted + (new == 0))


NO_POLLS = SourceCount()


@dataclass(slots=True)
class PollCounts:
    """Poll counts by discovery source, and in total as decaying sums over about the last day.

    >>> counts = PollCounts()
    >>> counts.add(7, new=2, now_s=0.0), counts.add(7, new=0, now_s=0.0)
    (None, None)
    >>> counts.get(7), counts.polls, counts.wasted_share
    (SourceCount(polls=2, found=2, wasted=1), 2.0, 0.5)
    """

    polls: float = 0.0
    found: float = 0.0
    wasted: float = 0.0
    at_s: float = 0.0
    _by_source: dict[int, SourceCount] = field(default_factory=dict)

    @property
    def wasted_share(self) -> float | None:
        """Share of discovery polls that found nothing."""
        return self.wasted / self.polls if self.polls > 0 else None

    def get(self, id_: int) -> SourceCount:
        """Return the poll counts of one discovery source."""
        return self._by_source.get(id_, NO_POLLS)

    def add(self, id_: int, *, new: int, now_s: float) -> None:
        """Count a poll of a discovery source that found this many unseen URLs."""
        part = 0.5 ** (max(now_s - self.at_s, 0.0) / HALF_LIFE_S)
        self.polls = part * self.polls + 1.0
        self.found = part * self.found + new
        self.wasted = part * self.wasted + (new == 0)
        self.at_s = max(now_s, self.at_s)
        self._by_source[id_] = self.get(id_).add_poll(new)

    def forget(self, id_: int) -> None:
        """Drop the poll counts of a page that is no longer a source; the sums stay."""
        self._by_source.pop(id_, None)

    def to_json(self) -> str:
        """Serialize the poll counts for the next run."""
        sums = [self.polls, self.found, self.wasted, self.at_s]
        return json.dumps({"sums": sums, "sources": {str(id_): row for id_, row in self._by_source.items()}})

    @classmethod
    def from_json(cls, text: str | None) -> "PollCounts":
        """Parse the poll counts that an earlier run saved; empty if invalid.

        >>> counts = PollCounts()
        >>> counts.add(7, new=2, now_s=0.0)
        >>> PollCounts.from_json(counts.to_json()).get(7).found, PollCounts.from_json("[]").polls
        (2, 0.0)
        """
        try:
            data: Any = json.loads(text or "{}")
            looks, found, wasted, at_s = (float(each) for each in data["sums"])
            rows = {int(id_): SourceCount(*map(int, row)) for id_, row in data["sources"].items()}
        except (TypeError, ValueError, KeyError, AttributeError):
            return cls()
        sound = all(isfinite(each) and each >= 0.0 for each in (looks, found, wasted)) and isfinite(at_s)
        return cls(looks, found, wasted, at_s, rows) if sound else cls()


# The share of all requests that may be polls of sources; unused polls are saved for two hours.
SHARE, SAVED_S = 0.3, 2 * HOUR_S
# What a request that is no poll earns, so that polls are this share of the total.
EARNED = SHARE / (1.0 - SHARE)


class PollAllowance:
    """Allowed polls where fetches have no common price: a share of all requests, spread over a day.

    What requests earn is spread over the following 24 hours, so a first crawl pays for the polls of a day. If that is
    less than a floor (``is_floor``), the floor applies.

    >>> allowance = PollAllowance()
    >>> allowance.add_requests(1_680)  # as many earn 30 polls an hour
    >>> allowance.advance(0.0, 0.0), [allowance.advance(60.0 * minute, 0.0) for minute in (1, 2, 4)]
    (1, [1, 2, 3])
    """

    def __init__(self, requests: Mapping[int, float] | None = None) -> None:
        # Requests that were no polls, by the hour since 1970, over about the last day.
        self._requests = dict(requests or {})
        self._uncounted, self._tokens, self._at_s, self._per_s = 0.0, 1.0, -inf, 0.0
        self.is_floor = False

    def add_requests(self, count: int) -> None:
        """Add requests of any kind; polls among them are subtracted when they are taken."""
        self._uncounted += count

    def advance(self, now_s: float, floor_per_s: float) -> int:
        """Advance the clock and return how many polls may be made now."""
        hour = int(now_s // HOUR_S)
        self._requests[hour] = self._requests.get(hour, 0.0) + self._uncounted
        self._uncounted = 0.0
        self._requests = {at: count for at, count in self._requests.items() if hour - 24 < at <= hour}
        earned_per_s = EARNED * max(sum(self._requests.values()), 0.0) / DAY_S
        self.is_floor, self._per_s = earned_per_s < floor_per_s, max(earned_per_s, floor_per_s)
        passed_s = now_s - self._at_s if 0 <= now_s - self._at_s < inf else 0.0
        self._tokens = min(self._tokens + self._per_s * passed_s, max(self._per_s * SAVED_S, 1.0))
        self._at_s = now_s
        return int(self._tokens)

    def take(self, count: int) -> None:
        """Take polls that are made."""
        self._tokens -= count
        self._uncounted -= count

    def find_next_s(self, now_s: float) -> float:
        """Estimate when the next poll is allowed; now if every poll worth a price is allowed."""
        return now_s + max(1.0 - self._tokens, 0.0) / self._per_s if self._per_s else now_s

    def to_json(self) -> str:
        """Serialize what requests earned for the next run."""
        return json.dumps(self._requests)

    @classmethod
    def from_json(cls, text: str | None) -> "PollAllowance":
        """Parse what requests earned in an earlier run; nothing if invalid."""
        try:
            counts = {int(hour): float(count) for hour, count in json.loads(text or "{}").items()}
        except (TypeError, ValueError, AttributeError):
            return cls()
        return cls(counts if all(map(isfinite, counts.values())) else None)
