"""Polling: run the discovery policy: which known pages are polled for new links, and when.

Sources are found, not given. Feeds, sitemaps and home pages are sources from their first fetch on; any other page
becomes one when a later fetch of it shows an unknown URL. The policy estimates what each will bring
(``discover.policies.accrual``), and a poll is made when what would be lost by waiting reaches the price of refreshes:
there is one price for both. So polls spread over the day, and over sources, by themselves.

What is learned of sources is held in memory and saved now and then: a crash loses some minutes of it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from vedette.discover.policies.accrual import Accrual
from vedette.discover.polling.belief_codec import StoredAccrual, pack, unpack
from vedette.discover.polling.poll_value import (
    MIN_WAIT_S,
    compute_due,
    compute_index,
    estimate_rates,
    estimate_yield,
    get_weekly_pace,
)
from vedette.discover.polling.sources import Bools, Sources
from vedette.engine.ports import CrawlStore, PageRow
from vedette.engine.scheduling.forecast import HALF_LIFE_S
from vedette.index.fields import list_site_values
from vedette.policy import Floats, Ints, rng_for
from vedette.pricing import DEFAULT_WORTH

# A look is a fetch of a source that had been fetched before: at a first fetch everything is unknown, which says nothing
# of what is new. One that names nothing unknown, or is not answered, was in vain.


# A page that somebody waits for counts for so many others. What is lost by waiting grows about with the square of the
# time, so what is watched as a whole is looked at about twice as often.
ALERT_WEIGHT = 4.0
EVERYWHERE = "*"
# So many links of a source, from all over it, speak for the others.
LINK_SAMPLE = 64


class AlertInterest:
    """Weight discovery sources by alerts: new pages at a place that an alert watches are worth more.

    An alert names a place: a host, a path on one, or everywhere. What a source will bring lies where the rest of its
    links lie, so its share of links at such places is the share of its new pages that an alert waits for. An alert on a
    query alone names no place, and moves no poll; a query within a place counts as the place. Links are cached until
    the source is polled again, or the alerts change.
    """

    def __init__(self, book: CrawlStore) -> None:
        self._store = book
        self._places: frozenset[str] = frozenset()
        self._share: dict[int, float] = {}

    def get_weights(self, ids: Sequence[int]) -> Floats:
        """Return how many ordinary new pages one new page of each discovery source counts for."""
        return 1.0 + (ALERT_WEIGHT - 1.0) * np.array(self.get_shares(ids), np.float64)

    def get_shares(self, ids: Sequence[int]) -> list[float]:
        """Return the share of each source's links that lies at places that alerts watch."""
        places = frozenset(self._store.get_alert_places())
        if places != self._places:
            self._places, self._share = places, {}
        if not places or EVERYWHERE in places:
            return [float(bool(places))] * len(ids)
        for id_ in ids:
            if id_ not in self._share:
                self._share[id_] = _compute_share(self._store.get_links(id_), places)
        return [self._share[id_] for id_ in ids]

    def invalidate(self, id_: int) -> None:
        """Drop the cached alert share of a source that was polled, as its links may have changed."""
        self._share.pop(id_, None)


def _compute_share(links: Sequence[str], places: frozenset[str]) -> float:
    """Compute the share of links that lies at one of these alert places.

    >>> _compute_share(["https://a.example/news/1", "https://a.example/shop"], frozenset({"a.example/news"}))
    0.5
    """
    some = links[:: len(links) // LINK_SAMPLE + 1]
    return sum(not places.isdisjoint(list_site_values(link)) for link in some) / len(some) if some else 0.0


class SourceCount(NamedTuple):
    """Poll counts of one discovery source since it is known: polls, URLs found, polls in vain."""

    polls: int = 0
    found: int = 0
    wasted: int = 0

    def add_poll(self, new: int) -> "SourceCount":
        """Add a poll that found this many new URLs to a source's counts."""
        return SourceCount(self.polls + 1, self.found + new, self.wasted + (new == 0))


NO_POLLS = SourceCount()


@dataclass(slots=True)
class PollCounts:
    """Poll counts by discovery source, and in all as fading sums over about the last day.

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

    def to_json(self) -> str:
        """Serialize the poll counts for the next run."""
        sums = [self.polls, self.found, self.wasted, self.at_s]
        return json.dumps({"sums": sums, "sources": {str(id_): row for id_, row in self._by_source.items()}})

    @classmethod
    def from_json(cls, text: str | None) -> "PollCounts":
        """Parse the poll counts that an earlier run saved; empty where they make no sense.

        >>> counts = PollCounts()
        >>> counts.add(7, new=2, now_s=0.0)
        >>> PollCounts.from_json(counts.to_json()).get(7).found, PollCounts.from_json("[]").polls
        (2, 0.0)
        """
        try:
            told: Any = json.loads(text or "{}")
            looks, found, wasted, at_s = (float(each) for each in told["sums"])
            rows = {int(id_): SourceCount(*map(int, row)) for id_, row in told["sources"].items()}
        except (TypeError, ValueError, KeyError, AttributeError):
            return cls()
        sound = all(isfinite(each) and each >= 0.0 for each in (looks, found, wasted)) and isfinite(at_s)
        return cls(looks, found, wasted, at_s, rows) if sound else cls()


SOURCES_KEY, COUNTS_KEY = "sources", "look counts"
# A page that people lack for a day counts for as many ordinary changes that they lack for a day, as in a first fetch.
PAGE_WORTH = DEFAULT_WORTH
MAX_SOURCES = 5_000
# Lists are there to name what is new; other pages must not take their room.
MAX_PAGES = 4_000
# Of so many links of a page it is remembered who else shows them.
MAX_LINKS = 300
SAVE_EVERY_S = 600.0
# However little a list brings, it is looked at once a day.
MAX_INTERVAL_S = 86_400.0
DUE_VALID_S, PRICE_TOLERANCE = 900.0, 0.05
# One that is due and has not been looked at is asked about again after so long.
OVERDUE_RECHECK_S = 30.0
# For people: pages that show this part of what a source shows are alike; hours with so many times the mean are busy.
MIN_OVERLAP, MAX_SIMILAR, BUSY = 0.2, 3, 1.5


class PollResult(NamedTuple):
    """Result of a discovery poll: page, host, whether it was answered, and the links it showed.

    ``links`` are the ids of the URLs that it links to, ``new`` how many of them were unknown. ``is_list`` says that the
    page is there for its links, ``is_refetch`` that it had been fetched before; ``cost`` is in ordinary fetches.
    """

    id: int
    host: int
    ok: bool
    is_list: bool
    is_refetch: bool
    links: Sequence[int] = ()
    new: int = 0
    cost: float = 1.0


class SourceSummary(NamedTuple):
    """Summary of a discovery source for the console: new links an hour with an interval, value of a poll."""

    an_hour: float
    low: float
    high: float
    expected: float
    looks: int
    found: int
    wasted: int
    busiest_hours: tuple[int, ...]
    """Of the day in UTC, the busiest first; empty where no hour is known to differ."""
    alike: tuple[int, ...]
    """Pages that show much of the same."""
    alike_share: tuple[float, ...]
    """How much of what appears on the source each of these shows."""
    watched: float
    """The part of what it links to that somebody watches."""


class SourceYield(NamedTuple):
    """Yield of a discovery source in a list: new links an hour with an interval, poll value, poll counts."""

    id: int
    an_hour: float
    low: float
    high: float
    expected: float
    counts: SourceCount


class _DueTime(NamedTuple):
    """Cached due time of a discovery source: the price it is for, and when it was computed."""

    due_s: float
    price: float
    asked_s: float


class SourcePoller:
    """Poll discovery sources: beliefs about their new links, and when each is worth a poll."""

    def __init__(self, book: CrawlStore, seed: int = 1) -> None:
        self._store, self._seed = book, seed
        self._policy = Accrual()
        kept = unpack(book.get_value(SOURCES_KEY))
        self._belief = kept.state
        self._ids: list[int] = list(kept.ids)
        self._place = {id_: place for place, id_ in enumerate(self._ids)}
        self._hosts: list[int] = list(kept.hosts)
        self._tried_s, self._counts = list(kept.last_try_s), [list(row) for row in kept.counts]
        self.counts = PollCounts.from_json(book.get_value(COUNTS_KEY))
        self._watched = AlertInterest(book)
        self._kept_s: float | None = None
        self._dated: dict[int, _DueTime] = {}
        # What looks cost in this run, by place; one that was not looked at yet costs what is usual.
        self._costs: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def is_source(self, id_: int) -> bool:
        """Check whether a page is a discovery source, polled for what it links to."""
        return id_ in self._place

    def on_polls(self, looks: Sequence[PollResult], now_s: float) -> list[int]:
        """Learn from discovery polls; return the ids of those pages that are sources."""
        some = {look.id: look for look in looks if self._is_candidate(look)}
        if not some:
            return []
        rows = list(some.values())
        places = np.array([self._get_or_add(look) for look in rows], np.int64)
        for place, look in zip(places.tolist(), rows, strict=True):
            self._tried_s[place] = now_s
            self._costs[place] = (self._costs.get(place, look.cost) + look.cost) / 2
            counts = self._counts[place]
            counts[0], counts[1] = counts[0] + look.ok, counts[1] + look.new
            counts[2] = 0 if look.ok else counts[2] + 1
            self._dated.pop(look.id, None)
            self._watched.invalidate(look.id)
            if look.is_refetch:
                self.counts.add(look.id, new=look.new, now_s=now_s)
        self._belief = self._policy.observe(self._belief, self._build_batch(places, rows), now_s)
        self._save_periodically(now_s)
        return list(some)

    def get_due_times(self, ids: Sequence[int], price: float | None, now_s: float) -> dict[int, float]:
        """Return when those of these pages that are discovery sources are worth a poll at the price."""
        known = [id_ for id_ in ids if id_ in self._place]
        if not known or price is None:
            return {}
        asked = [id_ for id_ in known if not self._is_current(id_, price, now_s)]
        if asked:
            times = self._compute_due_times(asked, price / PAGE_WORTH, now_s)
            self._dated |= {id_: _DueTime(at_s, price, now_s) for id_, at_s in zip(asked, times, strict=True)}
        return {id_: self._dated[id_].due_s for id_ in known}

    def estimate_poll_rate(self, now_s: float, price: float) -> float:
        """Estimate polls a second at a price; each discovery source at least once a day.

        Alerts are left out: to know what all sources link to takes long, and the price will move by itself.
        """
        if not self._ids:
            return 0.0
        batch = self._build_batch(np.arange(len(self._ids)))
        limits = price / PAGE_WORTH * self._get_costs(batch.place)
        times = compute_due(self._belief, batch, now_s, limits, rng_for(self._seed, "discover/pace"))
        return float((1.0 / np.clip(times - batch.last_poll_s, MIN_WAIT_S, MAX_INTERVAL_S)).sum())

    def _is_current(self, id_: int, price: float, now_s: float) -> bool:
        """Check whether a source's cached poll time still holds, as computing it is slow."""
        dated = self._dated.get(id_)
        lasts_s = DUE_VALID_S if dated is not None and now_s < dated.due_s else OVERDUE_RECHECK_S
        if dated is None or not 0 <= now_s - dated.asked_s < lasts_s:
            return False
        return abs(dated.price - price) <= PRICE_TOLERANCE * price

    def _get_costs(self, places: Ints) -> Floats:
        return np.array([self._costs.get(place, 1.0) for place in places.tolist()], np.float64)

    def _compute_due_times(self, ids: Sequence[int], price: float, now_s: float) -> list[float]:
        """Compute when the pages lost by not polling a source reach the price; alerted ones count more."""
        batch = self._build_batch(np.array([self._place[id_] for id_ in ids], np.int64))
        limit = price * self._get_costs(batch.place) / self._watched.get_weights(ids)
        is_now = (compute_index(self._belief, batch, now_s) >= limit) & (now_s - batch.last_poll_s >= MIN_WAIT_S)
        later_s = compute_due(self._belief, batch, now_s, limit, rng_for(self._seed, f"discover/{now_s}"))
        times: list[float] = np.where(is_now, now_s, later_s).tolist()
        return times

    def summarize_source(self, id_: int, now_s: float) -> SourceSummary | None:
        """Summarize the poller's belief about a page; None where it is no discovery source."""
        place = self._place.get(id_)
        if place is None:
            return None
        batch = self._build_batch(np.array([place], np.int64))
        mean, low, high = (float(each[0]) for each in estimate_rates(self._belief, batch))
        count = self.counts.get(id_)
        alike = self._find_similar(place)
        return SourceSummary(
            an_hour=mean,
            low=low,
            high=high,
            expected=float(estimate_yield(self._belief, batch, now_s)[0]),
            looks=count.polls,
            found=count.found,
            wasted=count.wasted,
            busiest_hours=_find_busiest_hours(get_weekly_pace(self._belief, self._hosts[place])),
            alike=tuple(self._ids[other] for other in alike),
            alike_share=tuple(alike.values()),
            watched=self._watched.get_shares([id_])[0],
        )

    def list_yields(self, now_s: float) -> list[SourceYield]:
        """List the yields of all discovery sources for the console, the best first."""
        if not self._ids:
            return []
        batch = self._build_batch(np.arange(len(self._ids)))
        pace, expected = estimate_rates(self._belief, batch), estimate_yield(self._belief, batch, now_s)
        numbers = [each.tolist() for each in (pace.mean, pace.low, pace.high, expected)]
        counted = [self.counts.get(id_) for id_ in self._ids]
        rows = map(SourceYield, self._ids, *numbers, counted)
        return sorted(rows, key=lambda row: (-row.an_hour, row.id))

    def save(self, now_s: float) -> None:
        """Save the poller's beliefs about discovery sources."""
        counts = [tuple(row) for row in self._counts]
        self._store.set_value(
            SOURCES_KEY, pack(StoredAccrual(self._belief, self._ids, self._hosts, self._tried_s, counts))
        )
        self._store.set_value(COUNTS_KEY, self.counts.to_json())
        self._kept_s = now_s

    def _is_candidate(self, look: PollResult) -> bool:
        if look.id in self._place:
            return True
        if not look.ok:
            return False
        room = MAX_SOURCES if look.is_list else MAX_PAGES
        return len(self._ids) < room and (look.is_list or (look.is_refetch and look.new > 0))

    def _get_or_add(self, look: PollResult) -> int:
        """Return the row of a discovery source, adding it where it is new."""
        if look.id not in self._place:
            self._place[look.id] = len(self._ids)
            self._ids.append(look.id)
            self._hosts.append(look.host)
            self._tried_s.append(-np.inf)
            self._counts.append([0, 0, 0])
        return self._place[look.id]

    def _build_batch(self, places: Ints, looks: Sequence[PollResult] = ()) -> Sources:
        """Build the discovery policy's batch of sources, with what a poll just showed if they were polled."""
        looked, found, failures = (
            np.array([self._counts[place][column] for place in places.tolist()], np.int64) for column in range(3)
        )
        shown = [np.array(look.links[:MAX_LINKS], np.int64) for look in looks]
        start = np.concatenate([[0], np.cumsum([len(each) for each in shown])]).astype(np.int64)
        nothing = np.zeros(len(places), np.int64)
        yields = np.array([look.new for look in looks], np.int64) if looks else nothing
        return Sources(
            place=places,
            host=np.array([self._hosts[place] for place in places.tolist()], np.int64),
            last_poll_s=self._last_poll_times(places),
            failures=failures,
            polls=looked,
            found=found,
            links=np.diff(start) if looks else nothing,
            poll_s=self._last_poll_times(places)[:, None],
            yields=yields[:, None],
            shown_start=start if looks else np.zeros(len(places) + 1, np.int64),
            shown=np.concatenate(shown) if shown else np.zeros(0, np.int64),
            shown_new=np.concatenate([_mark_newest(*pair) for pair in zip(shown, yields.tolist(), strict=True)])
            if shown
            else np.zeros(0, np.bool_),
        )

    def _last_poll_times(self, places: Ints) -> Floats:
        return np.array([self._tried_s[place] for place in places.tolist()], np.float64)

    def _find_similar(self, place: int) -> dict[int, float]:
        """Find the discovery sources that show most of the links of this one, and their overlap."""
        overlap = self._belief.overlap
        if place >= len(overlap.other):
            return {}
        share = overlap.estimate_share(np.array([place]))[0]
        order = np.argsort(-share, kind="stable")[:MAX_SIMILAR].tolist()
        return {
            int(overlap.other[place, column]): float(share[column]) for column in order if share[column] > MIN_OVERLAP
        }

    def _save_periodically(self, now_s: float) -> None:
        if self._kept_s is None or not isfinite(self._kept_s) or abs(now_s - self._kept_s) >= SAVE_EVERY_S:
            self.save(now_s)


def _mark_newest(links: Ints, count: int) -> Bools:
    """Mark which links of a poll are the new ones: the highest ids, as ids follow the order of discovery.

    >>> _mark_newest(np.array([7, 9, 3]), 1).tolist()
    [False, True, False]
    """
    newest = np.zeros(len(links), np.bool_)
    newest[np.argsort(-links, kind="stable")[:count]] = True
    return newest


def _find_busiest_hours(week: Floats) -> tuple[int, ...]:
    """Find a source's three busiest hours of the day, where they bring half as much again as the mean."""
    day = week.reshape(7, 24).mean(axis=0)
    order = np.argsort(-day, kind="stable")[:3]
    return tuple(int(hour) for hour in order if day[hour] > BUSY * day.mean())


SAME_TIME_S = 60.0


def explain_poll_time(page: PageRow, look_s: float, *, is_list: bool, fixed_s: float) -> str:
    """Explain why a source is polled when it is due; empty where another rule sets the time.

    ``look_s`` is when the discovery policy wants a poll, ``fixed_s`` the interval of lists where there is no budget.
    """
    if page.due_s == inf:
        return "its time has come: it waits for its host"
    wait_s = page.due_s - page.fetched_s
    if is_list and wait_s >= MAX_INTERVAL_S - SAME_TIME_S:
        return "accrual: it brings less than a look costs, and is looked at once a day all the same"
    by_price = abs(wait_s - fixed_s) > 1.0 if is_list else look_s <= page.due_s + SAME_TIME_S
    return "accrual: by then, what is lost by waiting is worth the price of a look" if by_price else ""
