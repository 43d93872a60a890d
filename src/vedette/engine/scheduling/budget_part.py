"""The fetch budget at work: which hosts wait for it, and whose turn it is.

A host for which nothing is left stands in line: in that of everybody, or in that of its site where the site's share is
spent. It is not in the calendar then, or thousands of hosts would be looked at with each page that may leave. Lines
move as buckets fill; who was there first comes first, and takes no more than leaves something for those behind it. Who
has news comes before all others: a page that was born today is what a watcher waits for. Then come those whose site
has something left of its share. Who waits for a share may borrow where nobody stands in the line of everybody.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import takewhile

from vedette.engine.coordinator.state import KeptHost, Rules
from vedette.engine.scheduling.budget import ALL, Allowance

__all__ = ["Budget"]

SPENT = "waiting for the fetch budget"
SHARE_SPENT = "its site's share of the fetch budget is spent"
# What may leave at once: as much as comes in so many times as errands leave ahead. With the usual two
# seconds that is a fiftieth of a minute, so that what was saved never makes a minute dearer than 102 % of its budget.
BURST_TIMES = 0.6


class Budget:
    """Pages that may be given out, and the hosts that wait for them."""

    def __init__(self) -> None:
        self._allowance = Allowance()
        self._lines: dict[str, deque[KeptHost]] = {}
        self._rights: dict[str, None] = {}

    def rule(self, rules: Rules) -> None:
        """Other rules from now on. Nobody stands in line any more: the caller looks at everybody again."""
        shares = {site.start: site.share for site in rules.sites if site.share is not None}
        self._allowance.set_pace(rules.budget_per_s, BURST_TIMES * rules.ahead_s, shares)
        self._lines.clear()
        self._rights.clear()

    def offer(self, sites: Sequence[str], now_s: float) -> int:
        """How many pages a host may be asked for in its turn, of whichever of its sites."""
        return max((self._fair(site, now_s) for site in sites), default=0)

    def take(self, site: str, now_s: float, *, at_once: bool) -> bool:
        """Whether a page of a site may be given out, which it is then; what somebody waits for always may."""
        if at_once:
            self._allowance.overdraw(site, now_s)
        return at_once or self._allowance.take(site, now_s, borrows=self._borrows)

    def give_back(self, site: str) -> None:
        """A page of a site that was given out came back unasked, so another may be."""
        self._allowance.give_back(site)

    @property
    def _borrows(self) -> bool:
        """Whether nobody waits for what is there for all."""
        return not self._lines.get(ALL)

    def ready_s(self, site: str) -> float:
        """When a page of a site may be given out, as far as is known now."""
        return self._allowance.ready_s(site)

    def took_files(self, count: int, now_s: float) -> None:
        """So many robots.txt files are asked for."""
        for _ in range(count):
            self._allowance.overdraw(ALL, now_s)

    def wait(self, host: KeptHost, sites: Sequence[str], now_s: float) -> None:
        """A host of sites for which nothing is left stands in line, where it moves first."""
        lacking = (self._allowance.lacking(site, now_s, borrows=self._borrows) for site in sites)
        names = [name for name in lacking if name is not None]
        if names and not host.short_of:
            name = min(names, key=self._allowance.ready_s)
            host.short_of = SPENT if name == ALL else SHARE_SPENT
            line = self._lines.setdefault(name, deque())
            has_right = name == ALL and any(self._allowance.has_right(site, now_s) for site in sites)
            if has_right:
                self._rights[host.name] = None
            line.insert(self._place(line, host), host)

    def hasten(self, host: KeptHost) -> None:
        """A host that stands in line has news: it goes before those that have none."""
        for line in self._lines.values():
            if host in line:
                line.remove(host)
                line.insert(self._place(line, host), host)

    def released(self, now_s: float) -> KeptHost | None:
        """The next host that has waited and need not any more."""
        for name in (ALL, *(name for name in self._lines if name != ALL)):
            line = self._lines.get(name)
            if line and self._allowance.has_room(name, now_s, borrows=self._borrows):
                host = line.popleft()
                host.short_of = ""
                self._rights.pop(host.name, None)
                return host
        return None

    def next_s(self) -> float | None:
        """When somebody in line has a turn."""
        return min((self._allowance.ready_s(name) for name, line in self._lines.items() if line), default=None)

    def _fair(self, site: str, now_s: float) -> int:
        """All that there is, divided by those who wait for it; one page at least where there is one."""
        room = self._allowance.room(site, now_s, borrows=self._borrows)
        waiting = sum(len(self._lines.get(name, ())) for name in dict.fromkeys((site, ALL)))
        return max(1, room // (1 + waiting)) if room else 0

    def _place(self, line: Iterable[KeptHost], host: KeptHost) -> int:
        """Behind all that come before a host or stood there first: news, then who has a right, then the others."""
        rank = self._rank(host)
        return sum(1 for _ in takewhile(lambda other: self._rank(other) <= rank, line))

    def _rank(self, host: KeptHost) -> int:
        return 0 if host.news else 1 if host.name in self._rights else 2
