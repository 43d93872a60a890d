"""Where the fetch budget went: fetches by day, site and kind, what they cost, and what came of them.

    first     of a page that was never fetched          look      of a page for what it links to
    refresh   of a known page for its changes           gone      of what was gone or had moved
    asked     what the operator asked for by name       robots    robots.txt, which is no page

What a fetch brought to search is measured later, by the indexer; it is put down to the day, site and kind of the
fetch. A fetch that found nothing changed is not measured: it brought nothing. Days are of the world's clock, in UTC.
What is told here is written down now and then, and a crash loses a minute of it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from math import isfinite
from typing import Final, Literal, NamedTuple

from vedette.engine.messages import Fetched, Result
from vedette.engine.ports import Book, Gained, PageRow
from vedette.engine.scheduling.schedule import has_changed, is_good, is_source

__all__ = [
    "ALL_TIME",
    "DAYS",
    "KINDS",
    "OTHERS",
    "Day",
    "Kind",
    "Spending",
    "Spent",
    "days_kept",
    "ever_kept",
    "kind_of",
]

Kind = Literal["first", "refresh", "look", "gone", "asked", "robots"]
KINDS: Final[tuple[Kind, ...]] = ("first", "refresh", "look", "gone", "asked", "robots")
DAY_S = 86_400.0
DAYS = 31
KEEP_EVERY_S = 20.0
# Of one day so many sites are told apart; what is fetched of the others stands under no name.
MOST_SITES, OTHERS = 200, ""
# Gains come within minutes; of so many fetches it is remembered what they were for.
MOST_RECENT = 20_000
SPENDING, ALL_TIME = "spending", "spending of all time"


@dataclass(frozen=True, slots=True)
class Spent:
    """Fetches, how many of them had no good answer, what they took, what they found, and what that brought.

    ``changed`` is how many found a page new or changed, ``found`` how many unknown URLs they named, ``measured`` of how
    many it is known what they brought to search, and ``gain`` what that is together.
    """

    fetches: float = 0.0
    failed: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    changed: float = 0.0
    found: float = 0.0
    measured: float = 0.0
    gain: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


_WIDTH = len(fields(Spent))
Kinds = dict[str, Spent]


class Day(NamedTuple):
    """One day: what was spent, by site and kind."""

    number: int
    sites: dict[str, Kinds]

    @property
    def begin_s(self) -> float:
        """When it began."""
        return self.number * DAY_S

    def add(self, site: str, kind: str, spent: Spent) -> None:
        """So much more; a site too many counts with the others."""
        name = site if site in self.sites or len(self.sites) < MOST_SITES else OTHERS
        kinds = self.sites.setdefault(name, {})
        kinds[kind] = kinds.get(kind, Spent()) + spent

    def to_json(self) -> str:
        """For whoever looks, and for the next run."""
        sites = {site: {kind: _packed(spent) for kind, spent in kinds.items()} for site, kinds in self.sites.items()}
        return json.dumps({"day": self.number, "sites": sites})

    @classmethod
    def from_json(cls, text: str | None) -> "Day | None":
        """What was written; None where that makes no sense.

        >>> day = Day(7, {"https://a.test/": {"first": Spent(fetches=2.0, gain=0.5)}})
        >>> Day.from_json(day.to_json()) == day, Day.from_json("["), Day.from_json('{"day": 1, "sites": {"a": 3}}')
        (True, None, None)
        """
        try:
            kept = json.loads(text or "")
            sites = {str(site): _kinds(kinds) for site, kinds in kept["sites"].items()}
            return cls(int(kept["day"]), sites)
        except (TypeError, ValueError, KeyError, AttributeError):
            return None


def kind_of(result: Result, row: PageRow | None, *, wished: bool, is_looked_at: bool) -> Kind:
    """What a fetch was for; ``row`` is what was known of the page before."""
    if result.errand.robots_of is not None:
        return "robots"
    if wished:
        return "asked"
    if row is None:
        return "first"
    if not is_good(row.status):
        return "gone"
    return "look" if is_looked_at or is_source(result.errand.url, row.kind) else "refresh"


class _Came(NamedTuple):
    result: Result
    site: str
    kind: Kind
    row: PageRow | None


class Spending:
    """Counts what a report brings, and writes it down now and then."""

    def __init__(self, book: Book, site_of: Callable[[str], str], is_looked_at: Callable[[int], bool]) -> None:
        self._book, self._site_of, self._is_looked_at = book, site_of, is_looked_at
        self._rows: Mapping[int, PageRow] = {}
        self._came: list[_Came] = []
        self._recent: dict[int, tuple[int, str, Kind]] = {}
        self._day: Day | None = None
        self._kept_s: float | None = None
        self._is_kept = True
        self.ever = ever_kept(book)

    def expect(self, results: Sequence[Result]) -> None:
        """These came: what was known of their pages is asked now, before anything is learned from them."""
        ids = [result.errand.id for result in results if result.errand.robots_of is None]
        self._rows = self._book.copies(ids) if ids else {}

    def came(self, result: Result, *, wished: bool) -> None:
        """One of them counts: it was not taken from its worker meanwhile."""
        id_ = result.errand.id
        row = self._rows.get(id_) if result.errand.robots_of is None else None
        kind = kind_of(result, row, wished=wished, is_looked_at=row is not None and self._is_looked_at(id_))
        self._came.append(_Came(result, self._site_of(result.errand.url), kind, row))

    def ended(self, found: Callable[[str], int], now_s: float) -> None:
        """All that came is known; ``found`` says how many unknown URLs the page at a URL just named."""
        came, self._came, self._rows = self._came, [], {}
        for one in came:
            self._add(int(now_s // DAY_S), one.site, one.kind, _spent(one, found(one.result.errand.url)))
            if one.kind != "robots":
                self._recent.pop(one.result.errand.id, None)
                self._recent[one.result.errand.id] = int(now_s // DAY_S), one.site, one.kind
        while len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]
        self._is_kept = self._is_kept and not came
        self.keep_now_and_then(now_s)

    def gained(self, gains: Iterable[Gained]) -> None:
        """What fetches brought; of one that nobody remembers it is not known what it was for."""
        for one in gains:
            known = self._recent.get(one.page)
            if known is not None and one.gain is not None and isfinite(one.gain):
                self._add(*known, Spent(measured=1.0, gain=one.gain))
                self._is_kept = False

    def today(self, now_s: float) -> Day:
        """What was spent today."""
        number = int(now_s // DAY_S)
        kept = self._day or Day.from_json(self._book.life(_slot(number)))
        return kept if kept is not None and kept.number == number else Day(number, {})

    def keep_now_and_then(self, now_s: float) -> None:
        """Write down what was counted, if anything was and it is time."""
        if not self._is_kept and (self._kept_s is None or abs(now_s - self._kept_s) >= KEEP_EVERY_S):
            self.keep(now_s)

    def keep(self, now_s: float) -> None:
        """Write down what was counted."""
        self._is_kept = True
        if self._day is not None:
            self._book.set_life(_slot(self._day.number), self._day.to_json())
        self._book.set_life(ALL_TIME, json.dumps({kind: _packed(spent) for kind, spent in self.ever.items()}))
        self._kept_s = now_s

    def _add(self, number: int, site: str, kind: Kind, spent: Spent) -> None:
        self.ever[kind] = self.ever.get(kind, Spent()) + spent
        if self._day is None or number > self._day.number:
            if self._day is not None:
                self._book.set_life(_slot(self._day.number), self._day.to_json())
            kept = Day.from_json(self._book.life(_slot(number)))
            self._day = kept if kept is not None and kept.number == number else Day(number, {})
        # What comes late for a day that is over counts with today: it is a matter of minutes.
        self._day.add(site, kind, spent)


def days_kept(book: Book, now_s: float, count: int) -> list[Day]:
    """The last so many days, the earliest first; days on which nothing was fetched are left out."""
    today = int(now_s // DAY_S)
    found = (Day.from_json(book.life(_slot(number))) for number in range(today - min(count, DAYS) + 1, today + 1))
    return sorted((day for day in found if day is not None and today - count < day.number <= today), key=_number)


def ever_kept(book: Book) -> Kinds:
    """What was ever spent, by kind; from the day on that this was counted first."""
    try:
        return _kinds(json.loads(book.life(ALL_TIME) or "{}"))
    except (TypeError, ValueError, AttributeError):
        return {}


def _number(day: Day) -> int:
    return day.number


def _slot(number: int) -> str:
    """Days take turns in so many places, so that old ones go by themselves."""
    return f"{SPENDING} {number % DAYS}"


def _spent(one: _Came, found: int) -> Spent:
    result = one.result
    spent = Spent(fetches=1.0, seconds=result.held_s, found=float(found))
    if not isinstance(result, Fetched):
        return replace(spent, failed=1.0)
    is_well = result.status == 304 or (is_good(result.status) and not result.location)
    changed = is_well and one.kind != "robots" and has_changed(result, one.row)
    return replace(spent, bytes=float(result.body_bytes), failed=float(not is_well), changed=float(changed))


def _packed(spent: Spent) -> list[float]:
    return [round(each, 6) for each in astuple(spent)]


def _kinds(kept: Mapping[str, Sequence[float]]) -> Kinds:
    rows = {str(kind): [float(each) for each in row] for kind, row in kept.items() if kind in KINDS}
    return {kind: Spent(*row) for kind, row in rows.items() if len(row) == _WIDTH and all(map(isfinite, row))}
