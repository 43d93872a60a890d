"""How many pages may be given out: so many a second in all, and of that its part for a site that has a share.

Token buckets in world time. A bucket fills at a steady pace up to its burst, and each page takes one of the bucket of
all. A site with a share has a bucket of its own beside it. While that has something the site goes before those without
a share. When it is empty the site may *borrow* what nobody else takes: what would soon overflow the bucket of all. As
soon as others have work nothing overflows, so a borrower is held to its share; and it takes nothing that others of a
share had a right to. What must not wait (robots.txt, and what somebody asked for by name) leaves in any case and is
counted; what it takes in advance is bounded, so that it can slow the rest down and not stop it. A page that comes back
unasked is given back.

This is a limit that holds at every moment. Which fetches are worth it is for the price to say (``vedette.pricing``):
what is not worth that does not come here.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import floor, inf

from vedette.engine.coordinator.state import CrawlRules, HostState

# The bucket of everybody; those of sites are named by their starts.
ALL_SITES = ""
MIN_SITE_BURST = 2.0


@dataclass(slots=True)
class TokenBucket:
    """So many a second, and ``burst`` at once; what was taken is counted from when it was last full.

    Counting from there, and not from one look to the next, keeps rounding small where times are large. ``ready_s`` is
    the one measure of whether anything is there, so that whoever comes back at that time finds something.

    >>> bucket = TokenBucket(per_s=2.0, burst=3.0)
    >>> [bucket.count_available(10.0), *(bucket.take(10.0) for _ in range(3)), bucket.count_available(10.0)]
    [3, None, None, None, 0]
    >>> bucket.ready_s, bucket.count_available(10.5), bucket.count_available(99.0)
    (10.5, 1, 3)
    """

    per_s: float
    burst: float
    taken: float = 0.0
    full_s: float = -inf
    seen_s: float = -inf

    @property
    def ready_s(self) -> float:
        """When the next may be taken; in the past where it may be now."""
        lacking = self.taken + 1.0 - self.burst
        return self.full_s + lacking / self.per_s if lacking > 0 else -inf

    def count_available(self, now_s: float) -> int:
        """How many may be taken now."""
        self._sync_clock(now_s)
        return max(1, floor(self._level())) if now_s >= self.ready_s else 0

    def take(self, now_s: float) -> None:
        """One is taken; it is for the caller to know that it may be."""
        self._sync_clock(now_s)
        if self._level() >= self.burst:
            self.full_s, self.taken = now_s, 0.0
        self.taken += 1.0

    @property
    def spare_s(self) -> float:
        """When one may be taken that nobody else would: half of a burst stays, or all but the one that is taken."""
        lacking = self.taken + 1.0 + min(self.burst / 2, self.burst - 1.0) - self.burst
        return self.full_s + lacking / self.per_s if lacking > 0 else -inf

    def count_spare(self, now_s: float) -> int:
        """How many may be taken that nobody else would.

        >>> bucket = TokenBucket(per_s=2.0, burst=8.0)
        >>> bucket.count_spare(10.0), [bucket.take(10.0) for _ in range(4)], bucket.count_spare(10.0), bucket.spare_s
        (4, [None, None, None, None], 0, 10.5)
        """
        self._sync_clock(now_s)
        kept = min(self.burst / 2, self.burst - 1.0)
        return max(1, floor(self._level() - kept)) if now_s >= self.spare_s else 0

    def refund(self) -> None:
        """One that was taken was not used; what is there never exceeds the burst."""
        self.taken = max(self.taken - 1.0, 0.0)

    def overdraw(self, now_s: float) -> None:
        """One is taken in any case; no more is owed than comes back in the time of one burst."""
        self._sync_clock(now_s)
        if self._level() > -self.burst:
            self.take(now_s)

    def set_rate(self, per_s: float, burst: float) -> None:
        """Another pace from now on; what is there stays, as far as there is room for it."""
        if self.full_s > -inf:
            self.full_s, self.taken = self.seen_s, max(burst - self._level(), 0.0)
        self.per_s, self.burst = per_s, burst

    def _level(self) -> float:
        back = (self.seen_s - self.full_s) * self.per_s if self.taken else inf
        return min(self.burst, self.burst + back - self.taken)

    def _sync_clock(self, now_s: float) -> None:
        """A clock that was put back takes nothing away and adds nothing."""
        if now_s < self.seen_s:
            self.full_s -= self.seen_s - now_s
        self.seen_s = now_s


class BudgetBuckets:
    """The bucket of all, and those of the sites with a share. ``borrows``: nobody else waits for the bucket of all.

    >>> allowance = BudgetBuckets()
    >>> allowance.set_rates(per_s=10.0, burst_s=1.0, shares={"https://example.org/": 0.2})
    >>> [allowance.count_available("https://example.org/", 0.0, borrows=borrows) for borrows in (False, True)]
    [2, 5]
    >>> allowance.count_available("https://example.com/", 0.0, borrows=True)
    10
    """

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}

    def set_rates(self, per_s: float, burst_s: float, shares: Mapping[str, float]) -> None:
        """So many pages a second; sites by their starts, each with its part of it. What was taken stays taken."""
        before, self._buckets = self._buckets, {}
        for name, share in {ALL_SITES: 1.0, **shares}.items():
            # Of its own a site may save two: so what it cannot have while the bucket of all is empty is not lost to it.
            pace, burst = per_s * share, max(1.0 if name == ALL_SITES else MIN_SITE_BURST, per_s * share * burst_s)
            bucket = self._buckets[name] = before.get(name) or TokenBucket(pace, burst)
            bucket.set_rate(pace, burst)

    def count_available(self, site: str, now_s: float, *, borrows: bool) -> int:
        """How many pages of a site may be given out now."""
        own = min(bucket.count_available(now_s) for bucket in self._buckets_for(site))
        return max(own, self._buckets[ALL_SITES].count_spare(now_s)) if borrows else own

    def find_empty(self, site: str, now_s: float, *, borrows: bool) -> str | None:
        """The name of the bucket that keeps a site waiting: its own before that of all; None where none does."""
        if borrows and self._buckets[ALL_SITES].count_spare(now_s):
            return None
        names = (site, ALL_SITES) if site in self._buckets else (ALL_SITES,)
        return next((name for name in names if not self._buckets[name].count_available(now_s)), None)

    def has_share_left(self, site: str, now_s: float) -> bool:
        """Whether a site has something left of a share of its own."""
        return site != ALL_SITES and site in self._buckets and self._buckets[site].count_available(now_s) > 0

    def has_room(self, name: str, now_s: float, *, borrows: bool) -> bool:
        """Whether those who wait for a bucket may have something."""
        return self._buckets[name].count_available(now_s) > 0 or (
            borrows and self._buckets[ALL_SITES].count_spare(now_s) > 0
        )

    def ready_s(self, site: str) -> float:
        """When a page of a site may be given out, if none is before."""
        return min(max(bucket.ready_s for bucket in self._buckets_for(site)), self._buckets[ALL_SITES].spare_s)

    def take(self, site: str, now_s: float, *, borrows: bool) -> bool:
        """A page of a site is given out, if it may be: of its own, or borrowed."""
        if self.find_empty(site, now_s, borrows=borrows) is not None:
            return False
        for bucket in self._buckets_for(site):
            if bucket is self._buckets[ALL_SITES] or bucket.count_available(now_s):
                bucket.take(now_s)
        return True

    def refund(self, site: str) -> None:
        """A page of a site that was given out came back unasked."""
        for bucket in self._buckets_for(site):
            bucket.refund()

    def overdraw(self, site: str, now_s: float) -> None:
        """Something that must not wait is given out."""
        for bucket in self._buckets_for(site):
            bucket.overdraw(now_s)

    def _buckets_for(self, site: str) -> tuple[TokenBucket, ...]:
        """What a page of a site takes from."""
        return tuple(self._buckets[name] for name in dict.fromkeys((site, ALL_SITES)) if name in self._buckets)


# A host for which nothing is left stands in line: in that of everybody, or in that of its site where the site's share
# is spent. It is not in the calendar then, or thousands of hosts would be looked at with each page that may leave.
# Lines move as buckets fill; who was there first comes first, and takes no more than leaves something for those
# behind it. Who has news comes before all others: a page that was born today is what a watcher waits for. Then come
# those whose site has something left of its share. Who waits for a share may borrow where nobody stands in the line
# of everybody.


BUDGET_SPENT = "waiting for the fetch budget"
SHARE_SPENT = "its site's share of the fetch budget is spent"
# What may leave at once: as much as comes in so many times as tasks leave ahead. With the usual two
# seconds that is a fiftieth of a minute, so that what was saved never makes a minute dearer than 102 % of its budget.
BURST_TIMES = 0.6


class FetchBudget:
    """Pages that may be given out, and the hosts that wait for them."""

    def __init__(self) -> None:
        self._allowance = BudgetBuckets()
        self._lines: dict[str, deque[HostState]] = {}
        self._rights: dict[str, None] = {}

    def apply_rules(self, rules: CrawlRules) -> None:
        """Other rules from now on. Nobody stands in line any more: the caller looks at everybody again."""
        shares = {site.start: site.share for site in rules.sites if site.share is not None}
        self._allowance.set_rates(rules.budget_per_s, BURST_TIMES * rules.ahead_s, shares)
        self._lines.clear()
        self._rights.clear()

    def get_quota(self, sites: Sequence[str], now_s: float) -> int:
        """How many pages a host may be asked for in its turn, of whichever of its sites."""
        return max((self._fair_share(site, now_s) for site in sites), default=0)

    def take(self, site: str, now_s: float, *, at_once: bool) -> bool:
        """Whether a page of a site may be given out, which it is then; what somebody waits for always may."""
        if at_once:
            self._allowance.overdraw(site, now_s)
        return at_once or self._allowance.take(site, now_s, borrows=self._can_borrow)

    def refund(self, site: str) -> None:
        """A page of a site that was given out came back unasked, so another may be."""
        self._allowance.refund(site)

    @property
    def _can_borrow(self) -> bool:
        """Whether nobody waits for what is there for all."""
        return not self._lines.get(ALL_SITES)

    def ready_s(self, site: str) -> float:
        """When a page of a site may be given out, as far as is known now."""
        return self._allowance.ready_s(site)

    def charge_robots(self, count: int, now_s: float) -> None:
        """So many robots.txt files are asked for."""
        for _ in range(count):
            self._allowance.overdraw(ALL_SITES, now_s)

    def enqueue(self, host: HostState, sites: Sequence[str], now_s: float) -> None:
        """A host of sites for which nothing is left stands in line, where it moves first."""
        lacking = (self._allowance.find_empty(site, now_s, borrows=self._can_borrow) for site in sites)
        names = [name for name in lacking if name is not None]
        if names and not host.budget_wait:
            name = min(names, key=self._allowance.ready_s)
            host.budget_wait = BUDGET_SPENT if name == ALL_SITES else SHARE_SPENT
            line = self._lines.setdefault(name, deque())
            has_right = name == ALL_SITES and any(self._allowance.has_share_left(site, now_s) for site in sites)
            if has_right:
                self._rights[host.name] = None
            line.insert(self._queue_position(line, host), host)

    def prioritize(self, host: HostState) -> None:
        """A host that stands in line has news: it goes before those that have none."""
        for line in self._lines.values():
            if host in line:
                line.remove(host)
                line.insert(self._queue_position(line, host), host)

    def pop_ready(self, now_s: float) -> HostState | None:
        """The next host that has waited and need not any more."""
        for name in (ALL_SITES, *(name for name in self._lines if name != ALL_SITES)):
            line = self._lines.get(name)
            if line and self._allowance.has_room(name, now_s, borrows=self._can_borrow):
                host = line.popleft()
                host.budget_wait = ""
                self._rights.pop(host.name, None)
                return host
        return None

    def next_s(self) -> float | None:
        """When somebody in line has a turn."""
        return min((self._allowance.ready_s(name) for name, line in self._lines.items() if line), default=None)

    def _fair_share(self, site: str, now_s: float) -> int:
        """All that there is, divided by those who wait for it; one page at least where there is one."""
        room = self._allowance.count_available(site, now_s, borrows=self._can_borrow)
        waiting = sum(len(self._lines.get(name, ())) for name in dict.fromkeys((site, ALL_SITES)))
        return max(1, room // (1 + waiting)) if room else 0

    def _queue_position(self, line: Iterable[HostState], host: HostState) -> int:
        """Behind all that come before a host or stood there first: news, then who has a right, then the others."""
        rank = self._rank(host)
        return sum(1 for _ in takewhile(lambda other: self._rank(other) <= rank, line))

    def _rank(self, host: HostState) -> int:
        return 0 if host.new_urls else 1 if host.name in self._rights else 2
