"""Spending log: where the fetch budget went: fetches by day, site and kind, their cost, and their results.

    first     a page that was never fetched             look      a poll of a page for its links
    refresh   a known page, for its changes             gone      a page that was gone or had moved
    asked     requested by the operator                 robots    robots.txt and guesses, which are no pages

The search gain of a fetch is measured later, by the indexer, and credited to the day, site and kind of the fetch. A
fetch that found no change is not measured: its gain is zero. Days are in world time, UTC. All-time counts are saved
with each report, daily counts periodically: a crash loses a minute of them.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from operator import add, attrgetter, sub
from typing import Final, Literal, NamedTuple

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.messages import FetchResult, FetchSuccess
from vedette.engine.ports import CrawlStore, FetchGain, PageRow
from vedette.engine.scheduling.polling import SourcePoller
from vedette.engine.scheduling.schedule import has_changed, is_good, is_source
from vedette.timeutil import DAY_S

FetchKind = Literal["first", "refresh", "look", "gone", "asked", "robots"]
FETCH_KINDS: Final[tuple[FetchKind, ...]] = ("first", "refresh", "look", "gone", "asked", "robots")
DAYS = 31
SAVE_EVERY_S = 20.0
# This many sites are counted separately per day; fetches of the others are counted together, without a name.
MAX_SITES, OTHER_SITES = 200, ""
# Gains arrive within minutes; the purpose of this many fetches is remembered.
MAX_RECENT = 20_000
SPENDING_KEY, ALL_TIME_KEY = "spending", "spending of all time"


@dataclass(frozen=True, slots=True)
class FetchStats:
    """Spending statistics of fetches: count, failures, cost, changes found, and measured search gain.

    ``changed`` is how many found a page new or changed, ``found`` how many unknown URLs they linked to, ``measured``
    how many have a measured search gain, and ``gain`` the sum of those gains.
    """

    fetches: float = 0.0
    failed: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    changed: float = 0.0
    found: float = 0.0
    measured: float = 0.0
    gain: float = 0.0

    def __add__(self, other: "FetchStats") -> "FetchStats":
        return FetchStats(*map(add, _get_values(self), _get_values(other)))

    def __sub__(self, other: "FetchStats") -> "FetchStats":
        return FetchStats(*map(sub, _get_values(self), _get_values(other)))


_WIDTH = len(fields(FetchStats))
_get_values = attrgetter(*(field.name for field in fields(FetchStats)))  # ten times as fast as ``astuple``
StatsByKind = dict[str, FetchStats]


class DaySpending(NamedTuple):
    """Spending of one day, by site and kind of fetch."""

    number: int
    sites: dict[str, StatsByKind]

    @property
    def begin_s(self) -> float:
        """When the day of this spending record began."""
        return self.number * DAY_S

    def add(self, site: str, kind: str, spent: FetchStats) -> None:
        """Add fetch statistics to a day's spending; sites beyond the limit count together."""
        name = site if site in self.sites or len(self.sites) < MAX_SITES else OTHER_SITES
        kinds = self.sites.setdefault(name, {})
        kinds[kind] = kinds.get(kind, FetchStats()) + spent

    def to_json(self) -> str:
        """Serialize a day's spending for the console and the next run."""
        sites = {site: {kind: _pack(spent) for kind, spent in kinds.items()} for site, kinds in self.sites.items()}
        return json.dumps({"day": self.number, "sites": sites})

    @classmethod
    def from_json(cls, text: str | None) -> "DaySpending | None":
        """Parse a saved day's spending; None if invalid.

        >>> day = DaySpending(7, {"https://a.test/": {"first": FetchStats(fetches=2.0, gain=0.5)}})
        >>> DaySpending.from_json(day.to_json()) == day, DaySpending.from_json("[")
        (True, None)
        >>> DaySpending.from_json('{"day": 1, "sites": {"a": 3}}')
        """
        try:
            data = json.loads(text or "")
            sites = {str(site): _unpack_kinds(kinds) for site, kinds in data["sites"].items()}
            return cls(int(data["day"]), sites)
        except (TypeError, ValueError, KeyError, AttributeError):
            return None


def classify_fetch(row: PageRow | None, *, wished: bool, is_polled: bool) -> FetchKind:
    """Classify what a fetch was for, for the spending log; ``row`` is the page's stored row before it."""
    if wished:
        return "asked"
    if row is None:
        return "first"
    if not is_good(row.status):
        return "gone"
    return "look" if is_polled else "refresh"


class CountedResult(NamedTuple):
    """A fetch result for the spending log: its site, what it was for, and the page's row before."""

    result: FetchResult
    site: str
    kind: FetchKind
    row: PageRow | None


class SpendingLog:
    """Count the fetches of reports by day, site and kind, and save them periodically."""

    def __init__(self, book: CrawlStore, hosts: HostTable, poller: SourcePoller) -> None:
        self._store, self._hosts, self._poller = book, hosts, poller
        self._recent: dict[int, tuple[int, str, FetchKind]] = {}
        self._day: DaySpending | None = None
        self._kept_s: float | None = None
        self._is_kept = True
        self.all_time = load_all_time(book)

    def classify(
        self, results: Sequence[FetchResult], rows: Mapping[int, PageRow], misses: Container[int] = ()
    ) -> list[CountedResult]:
        """Classify what fetches were for, for the spending log; ``rows`` are their pages' rows before.

        ``misses`` are guessed sitemaps that do not exist, which are no pages either.
        """
        counted = []
        for result in results:
            task, site = result.task, self._hosts.sites.find_site(result.task.url)
            row: PageRow | None = None
            kind: FetchKind = "robots"
            if task.robots_of is None and task.id not in misses:
                row, wished = rows.get(task.id), task.id in self._hosts.by_name[task.host].requested
                is_polled = row is not None and (self._poller.is_source(task.id) or is_source(task.url, row.kind))
                kind = classify_fetch(row, wished=wished, is_polled=is_polled)
            counted.append(CountedResult(result, site.start if site is not None else "", kind, row))
        return counted

    def add(self, results: Sequence[CountedResult], found: Mapping[str, int], now_s: float) -> None:
        """Count fetches in the spending log; ``found`` is how many unseen URLs each page linked to."""
        for one in results:
            self._add(int(now_s // DAY_S), one.site, one.kind, _compute_stats(one, found.get(one.result.task.url, 0)))
            if one.kind != "robots":
                self._recent.pop(one.result.task.id, None)
                self._recent[one.result.task.id] = int(now_s // DAY_S), one.site, one.kind
        while len(self._recent) > MAX_RECENT:
            del self._recent[next(iter(self._recent))]
        self._is_kept = self._is_kept and not results
        self._save_all_time()
        self.save_periodically(now_s)

    def add_gains(self, gains: Iterable[FetchGain]) -> None:
        """Add measured search gains to the spending log, for fetches whose purpose is remembered."""
        for one in gains:
            entry = self._recent.get(one.page)
            if entry is not None and one.gain is not None and isfinite(one.gain):
                self._add(*entry, FetchStats(measured=1.0, gain=one.gain))
                self._is_kept = False

    def get_today(self, now_s: float) -> DaySpending:
        """Return today's spending."""
        number = int(now_s // DAY_S)
        day = self._day or DaySpending.from_json(self._store.get_value(_day_key(number)))
        return day if day is not None and day.number == number else DaySpending(number, {})

    def save_periodically(self, now_s: float) -> None:
        """Save the spending log if anything was counted and it is time."""
        if not self._is_kept and (self._kept_s is None or abs(now_s - self._kept_s) >= SAVE_EVERY_S):
            self.save(now_s)

    def save(self, now_s: float) -> None:
        """Save the spending log."""
        self._is_kept = True
        if self._day is not None:
            self._store.set_value(_day_key(self._day.number), self._day.to_json())
        self._save_all_time()
        self._kept_s = now_s

    def _save_all_time(self) -> None:
        self._store.set_value(ALL_TIME_KEY, json.dumps({kind: _pack(spent) for kind, spent in self.all_time.items()}))

    def _add(self, number: int, site: str, kind: FetchKind, spent: FetchStats) -> None:
        self.all_time[kind] = self.all_time.get(kind, FetchStats()) + spent
        if self._day is None or number > self._day.number:
            if self._day is not None:
                self._store.set_value(_day_key(self._day.number), self._day.to_json())
            day = DaySpending.from_json(self._store.get_value(_day_key(number)))
            self._day = day if day is not None and day.number == number else DaySpending(number, {})
        # A late result for a finished day counts with today: it is a matter of minutes.
        self._day.add(site, kind, spent)


def load_days(book: CrawlStore, now_s: float, count: int) -> list[DaySpending]:
    """Load the spending of the last days, the earliest first; days without fetches are left out."""
    today = int(now_s // DAY_S)
    found = (
        DaySpending.from_json(book.get_value(_day_key(number)))
        for number in range(today - min(count, DAYS) + 1, today + 1)
    )
    return sorted(
        (day for day in found if day is not None and today - count < day.number <= today), key=lambda day: day.number
    )


def load_all_time(book: CrawlStore) -> StatsByKind:
    """Load all-time spending by kind of fetch, since counting began."""
    try:
        return _unpack_kinds(json.loads(book.get_value(ALL_TIME_KEY) or "{}"))
    except (TypeError, ValueError, AttributeError):
        return {}


def _day_key(number: int) -> str:
    """Return the storage key of a day's spending; keys rotate, so old days are overwritten."""
    return f"{SPENDING_KEY} {number % DAYS}"


def _compute_stats(one: CountedResult, found: int) -> FetchStats:
    result = one.result
    spent = FetchStats(fetches=1.0, seconds=result.connection_s, found=float(found))
    if not isinstance(result, FetchSuccess):
        return replace(spent, failed=1.0)
    is_well = result.status == 304 or (is_good(result.status) and not result.location)
    changed = is_well and one.kind != "robots" and has_changed(result, one.row)
    return replace(spent, bytes=float(result.body_bytes), failed=float(not is_well), changed=float(changed))


def _pack(spent: FetchStats) -> list[float]:
    return [round(each, 6) for each in _get_values(spent)]


def _unpack_kinds(data: Mapping[str, Sequence[float]]) -> StatsByKind:
    rows = {str(kind): [float(each) for each in row] for kind, row in data.items() if kind in FETCH_KINDS}
    return {kind: FetchStats(*row) for kind, row in rows.items() if len(row) == _WIDTH and all(map(isfinite, row))}
