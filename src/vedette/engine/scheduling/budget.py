"""Fetch budget: token buckets that limit pages per second, in total and by site share.

Token buckets in world time. A bucket fills at a steady rate up to its burst, and each page takes one token of the
shared bucket. A site with a share also has a bucket of its own. While that has tokens, the site goes before those
without a share. When it is empty, the site may *borrow* tokens that would otherwise be lost because the shared bucket
is about to overflow. As soon as others have work nothing overflows, so a borrower is limited to its share, and it never
takes tokens reserved for other shares. Urgent fetches (robots.txt, pages requested by name) always leave and are
counted; their debt is bounded, so they can slow the rest down but not stop it. A page that comes back unsent is
refunded.

This limit applies at every moment. Which fetches are worth it is decided by the price (``vedette.pricing``): what is
not worth the price never gets here.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import floor, inf

from vedette.engine.coordinator.state import CrawlRules, HostState

# The shared bucket; those of sites are named by their start URLs.
ALL_SITES = ""
MIN_SITE_BURST = 2.0
# A whole number summed from fractions may be slightly too small.
ROUNDING = 1e-6


@dataclass(slots=True)
class TokenBucket:
    """Token bucket of the fetch budget: ``per_s`` pages a second, ``burst`` at once.

    Taken tokens are counted from when the bucket was last full.

    Counting from there, and not from call to call, keeps rounding errors small for large times. ``ready_s`` is the only
    test of whether a token is available, so a caller that returns at that time finds one.

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
        """When the next token of the bucket may be taken; in the past if one is available now."""
        lacking = self.taken + 1.0 - self.burst
        return self.full_s + lacking / self.per_s if lacking > 0 else -inf

    def count_available(self, now_s: float) -> int:
        """Count the tokens that may be taken from the bucket now."""
        self._sync_clock(now_s)
        return max(1, floor(self._level())) if now_s >= self.ready_s else 0

    def take(self, now_s: float) -> None:
        """Take one token from the bucket; the caller must know that one is available."""
        self._sync_clock(now_s)
        if self._level() >= self.burst:
            self.full_s, self.taken = now_s, 0.0
        self.taken += 1.0

    @property
    def spare_s(self) -> float:
        """When a token may be borrowed from the bucket: half a burst must remain, or all but the one taken."""
        lacking = self.taken + 1.0 + min(self.burst / 2, self.burst - 1.0) - self.burst
        return self.full_s + lacking / self.per_s if lacking > 0 else -inf

    def count_spare(self, now_s: float) -> int:
        """Count the tokens that may be borrowed from the bucket because no one else would take them.

        >>> bucket = TokenBucket(per_s=2.0, burst=8.0)
        >>> bucket.count_spare(10.0), [bucket.take(10.0) for _ in range(4)], bucket.count_spare(10.0), bucket.spare_s
        (4, [None, None, None, None], 0, 10.5)
        """
        self._sync_clock(now_s)
        reserve = min(self.burst / 2, self.burst - 1.0)
        return max(1, floor(self._level() - reserve)) if now_s >= self.spare_s else 0

    def refund(self) -> None:
        """Return an unused token to the bucket; it never holds more than its burst."""
        self.taken = max(self.taken - 1.0, 0.0)

    def overdraw(self, now_s: float) -> None:
        """Take a token from the bucket unconditionally; the debt is at most what one burst's time refills."""
        self._sync_clock(now_s)
        if self._level() > -self.burst:
            self.take(now_s)

    def set_rate(self, per_s: float, burst: float) -> None:
        """Change the rate and burst of the bucket; its tokens stay, as far as they fit."""
        if self.full_s > -inf:
            self.full_s, self.taken = self.seen_s, max(burst - self._level(), 0.0)
        self.per_s, self.burst = per_s, burst

    def _level(self) -> float:
        back = (self.seen_s - self.full_s) * self.per_s if self.taken else inf
        return min(self.burst, self.burst + back - self.taken)

    def _sync_clock(self, now_s: float) -> None:
        """Adjust the bucket to a clock that was set back, which neither adds nor removes tokens."""
        if now_s < self.seen_s:
            self.full_s -= self.seen_s - now_s
        self.seen_s = now_s


@dataclass(slots=True)
class GrantedPages:
    """The shared bucket of a shard: pages that the pool of its cluster has granted, and no others.

    It never fills by itself: when it is empty, only a grant helps. ``most`` limits the debt of urgent fetches. As long
    as the pool ``has_spare``, no shard lacks a page, so pages may be borrowed.

    >>> bucket = GrantedPages(most=2.0)
    >>> bucket.pages += 1.5
    >>> bucket.count_available(0.0), bucket.take(0.0), bucket.count_available(0.0), bucket.ready_s
    (1, None, 0, inf)
    """

    most: float
    pages: float = 0.0
    has_spare: bool = False

    @property
    def ready_s(self) -> float:
        """When the next page may be taken: now, or only after a grant."""
        return -inf if self.pages >= 1.0 - ROUNDING else inf

    @property
    def spare_s(self) -> float:
        """When a page may be borrowed: now, or only after a grant."""
        return self.ready_s if self.has_spare else inf

    def count_available(self, _now_s: float) -> int:
        """Count the pages that may be taken."""
        return max(floor(self.pages + ROUNDING), 0)

    def count_spare(self, now_s: float) -> int:
        """Count the pages that may be borrowed."""
        return self.count_available(now_s) if self.has_spare else 0

    def take(self, _now_s: float) -> None:
        """Take one page; the caller must know that one is available."""
        self.pages -= 1.0

    def refund(self) -> None:
        """Return a page that was taken and not used."""
        self.pages += 1.0

    def overdraw(self, _now_s: float) -> None:
        """Take a page unconditionally; the debt is bounded."""
        if self.pages > -self.most:
            self.pages -= 1.0


class BudgetBuckets:
    """The token bucket of the whole fetch budget, and those of sites with a share.

    ``borrows`` means that no other host waits for the shared bucket.

    >>> allowance = BudgetBuckets()
    >>> allowance.set_rates(per_s=10.0, burst_s=1.0, shares={"https://example.org/": 0.2})
    >>> [allowance.count_available("https://example.org/", 0.0, borrows=borrows) for borrows in (False, True)]
    [2, 5]
    >>> allowance.count_available("https://example.com/", 0.0, borrows=True)
    10
    """

    def __init__(self) -> None:
        self._timed: dict[str, TokenBucket] = {}
        self._buckets: dict[str, TokenBucket | GrantedPages] = {}

    def set_rates(
        self, per_s: float, burst_s: float, shares: Mapping[str, float], granted: GrantedPages | None = None
    ) -> None:
        """Set the fetch budget in pages a second and the shares of sites; what was taken stays taken.

        The shared bucket of a shard is the one with ``granted`` pages.
        """
        before, self._timed = self._timed, {}
        for name, share in {ALL_SITES: 1.0, **shares}.items():
            # A site may save two tokens of its own, so its share is not lost while the shared bucket is empty.
            pace, burst = per_s * share, max(1.0 if name == ALL_SITES else MIN_SITE_BURST, per_s * share * burst_s)
            bucket = self._timed[name] = before.get(name) or TokenBucket(pace, burst)
            bucket.set_rate(pace, burst)
        self._buckets = {**self._timed, ALL_SITES: granted or self._timed[ALL_SITES]}

    def count_available(self, site: str, now_s: float, *, borrows: bool) -> int:
        """Count the pages of a site that the budget buckets allow now."""
        own = min(bucket.count_available(now_s) for bucket in self._buckets_for(site))
        return max(own, self._buckets[ALL_SITES].count_spare(now_s)) if borrows else own

    def find_empty(self, site: str, now_s: float, *, borrows: bool) -> str | None:
        """Find the empty budget bucket that makes a site wait: its own share first; None if none does."""
        if borrows and self._buckets[ALL_SITES].count_spare(now_s):
            return None
        names = (site, ALL_SITES) if site in self._buckets else (ALL_SITES,)
        return next((name for name in names if not self._buckets[name].count_available(now_s)), None)

    def has_share_left(self, site: str, now_s: float) -> bool:
        """Check whether a site has tokens left in a budget share of its own."""
        return site != ALL_SITES and site in self._buckets and self._buckets[site].count_available(now_s) > 0

    def has_room(self, name: str, now_s: float, *, borrows: bool) -> bool:
        """Check whether hosts waiting for a budget bucket may have a page now."""
        return self._buckets[name].count_available(now_s) > 0 or (
            borrows and self._buckets[ALL_SITES].count_spare(now_s) > 0
        )

    def ready_s(self, site: str) -> float:
        """Return when the budget buckets allow a page of a site at the earliest."""
        return min(max(bucket.ready_s for bucket in self._buckets_for(site)), self._buckets[ALL_SITES].spare_s)

    def take(self, site: str, now_s: float, *, borrows: bool) -> bool:
        """Take a page of a site from the budget buckets, if allowed: from its share, or borrowed."""
        if self.find_empty(site, now_s, borrows=borrows) is not None:
            return False
        for bucket in self._buckets_for(site):
            if bucket is self._buckets[ALL_SITES] or bucket.count_available(now_s):
                bucket.take(now_s)
        return True

    def refund(self, site: str) -> None:
        """Refund a page of a site to the budget buckets that was given back unsent."""
        for bucket in self._buckets_for(site):
            bucket.refund()

    def overdraw(self, site: str, now_s: float) -> None:
        """Charge the budget buckets for a fetch that must not wait."""
        for bucket in self._buckets_for(site):
            bucket.overdraw(now_s)

    def _buckets_for(self, site: str) -> tuple[TokenBucket | GrantedPages, ...]:
        """Return the budget buckets that a page of a site is taken from."""
        return tuple(self._buckets[name] for name in dict.fromkeys((site, ALL_SITES)) if name in self._buckets)


# A host without budget waits in a queue: the shared one, or its site's if the site's share is spent. It is not in the
# calendar meanwhile, or thousands of hosts would be checked for each page that may leave. Queues move as buckets fill,
# first come first served, and each host leaves something for those behind it. Hosts with new pages come first, since
# alerts wait for them; then hosts whose site has some of its share left. A host that waits for a share may borrow if
# the shared queue is empty.


BUDGET_SPENT = "waiting for the fetch budget"
SHARE_SPENT = "its site's share of the fetch budget is spent"
# The burst: as much as arrives in this many times the task lead time. With the usual two seconds that is a fiftieth of
# a minute, so savings never push a minute above 102% of its budget.
BURST_TIMES = 0.6
# The debt of a shard is at most this many pages, or what arrives in a lead time.
MIN_DEBT = 2.0
# A shard that takes many pages between two grants asks for this many times as many in advance.
ADVANCE_TIMES = 2.0


class FetchBudget:
    """The fetch budget: pages that may be assigned now, and the queues of hosts that wait for it."""

    def __init__(self) -> None:
        self._allowance = BudgetBuckets()
        self._lines: dict[str, deque[HostState]] = {}
        self._rights: dict[str, None] = {}
        self._rules = CrawlRules()
        self._granted: GrantedPages | None = None
        self._taken, self._pace = 0, 0.0

    def apply_rules(self, rules: CrawlRules) -> None:
        """Apply changed crawl rules to the fetch budget; the queues of waiting hosts are emptied.

        The caller must check all hosts again.
        """
        self._rules = rules
        self._set_rates()
        self._lines.clear()
        self._rights.clear()

    def _set_rates(self) -> None:
        per_s, ahead_s = self._rules.budget_per_s, self._rules.ahead_s
        if self._granted is not None:
            self._granted.most = max(MIN_DEBT, per_s * ahead_s)
        shares = {site.start: site.share for site in self._rules.sites if site.share is not None}
        self._allowance.set_rates(per_s, BURST_TIMES * ahead_s, shares, self._granted)

    def grant(self, pages: float, *, has_spare: bool) -> None:
        """Spend only what is granted from now on, and these pages: shards of a cluster share the budget.

        ``has_spare`` means that more is left than all shards want.
        """
        if self._granted is None:
            self._granted = GrantedPages(MIN_DEBT)
            self._set_rates()
        self._granted.pages += pages
        self._granted.has_spare = has_spare

    def settle(self) -> float:
        """Return how many pages this shard lacks to spend without waiting for the next grant.

        What it has beyond that is given back: the result is negative.
        """
        assert self._granted is not None, "only a shard waits for grants"
        self._pace, self._taken = max(float(self._taken), self._pace / 2), 0
        lines = self._lines if self._granted.has_spare else (ALL_SITES,)
        waiting = sum(len(self._lines.get(name, ())) for name in lines)
        lacking = waiting + max(ADVANCE_TIMES * (self._pace - 1.0), 0.0) - self._granted.pages
        if lacking < 0:
            self._granted.pages += lacking
        return lacking

    def get_quota(self, sites: Sequence[str], now_s: float) -> int:
        """Return how many pages a host may be assigned from the fetch budget in its turn, over its sites."""
        return max((self._fair_share(site, now_s) for site in sites), default=0)

    def take(self, site: str, now_s: float, *, at_once: bool) -> bool:
        """Take a page of a site from the fetch budget if allowed; requested pages always are."""
        if at_once:
            self._allowance.overdraw(site, now_s)
        is_taken = at_once or self._allowance.take(site, now_s, borrows=self._can_borrow)
        self._taken += is_taken
        return is_taken

    def refund(self, site: str) -> None:
        """Refund a page of a site to the fetch budget that a fetcher gave back unsent."""
        self._allowance.refund(site)

    @property
    def _can_borrow(self) -> bool:
        """Whether no host waits for the shared part of the fetch budget."""
        return not self._lines.get(ALL_SITES)

    def ready_s(self, site: str) -> float:
        """Return when the fetch budget allows a page of a site, as far as known now."""
        return self._allowance.ready_s(site)

    def charge_robots(self, count: int, now_s: float) -> None:
        """Charge the fetch budget for robots.txt requests."""
        self._taken += count
        for _ in range(count):
            self._allowance.overdraw(ALL_SITES, now_s)

    def enqueue(self, host: HostState, sites: Sequence[str], now_s: float) -> None:
        """Queue a host whose sites have no fetch budget left, in the queue that moves first."""
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
        """Move a host with newly published URLs ahead of others in the fetch budget's queues."""
        for line in self._lines.values():
            if host in line:
                line.remove(host)
                line.insert(self._queue_position(line, host), host)

    def pop_ready(self, now_s: float) -> HostState | None:
        """Pop the next waiting host that the fetch budget has a page for."""
        for name in (ALL_SITES, *(name for name in self._lines if name != ALL_SITES)):
            line = self._lines.get(name)
            if line and self._allowance.has_room(name, now_s, borrows=self._can_borrow):
                host = line.popleft()
                host.budget_wait = ""
                self._rights.pop(host.name, None)
                return host
        return None

    def next_s(self) -> float | None:
        """Return when the fetch budget next has a page for a waiting host."""
        times = (self._allowance.ready_s(name) for name, line in self._lines.items() if line)
        return min((time_s for time_s in times if time_s < inf), default=None)

    def _fair_share(self, site: str, now_s: float) -> int:
        """Divide the available fetch budget by the number of waiting hosts; at least one page if any."""
        room = self._allowance.count_available(site, now_s, borrows=self._can_borrow)
        waiting = sum(len(self._lines.get(name, ())) for name in dict.fromkeys((site, ALL_SITES)))
        return max(1, room // (1 + waiting)) if room else 0

    def _queue_position(self, line: Iterable[HostState], host: HostState) -> int:
        """Find a host's position in a fetch budget queue: hosts with news, then with a share, then the rest."""
        rank = self._rank(host)
        return sum(1 for _ in takewhile(lambda other: self._rank(other) <= rank, line))

    def _rank(self, host: HostState) -> int:
        return 0 if host.new_urls else 1 if host.name in self._rights else 2
