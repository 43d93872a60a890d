"""Idle refresh: without a fetch budget, refresh known pages in the idle time of their hosts.

    wait = max(min(first interval + unchanged / 2, two weeks), pages of the host * its delay / share)

``unchanged`` is how long a page has gone without a change, so each fetch that finds none makes the wait 1.5 times as
long: 1, 1.5, 2.25 … days. The second term limits large hosts to their share of the requests that their delay allows.
A list (home page, sitemap, feed), and a page that one reports as changed since its fetch, waits for the first interval
only. Pages that are all overdue at once, as after a long stop, are spread by a bucket per host. The busy hours of a
site are not idle time.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.ports import CrawlStore, KnownPage, PageRow
from vedette.engine.scheduling.fetch_cost import BusySites
from vedette.engine.scheduling.policy_memory import RefreshResult
from vedette.engine.scheduling.schedule import has_changed, is_good, is_source
from vedette.model import origin_of
from vedette.policy import Floats
from vedette.timeutil import DAY_S

MAX_INTERVAL_S = 14 * DAY_S
# An hour of a host's share may be used at once: the pages of a small site are due together, since they were first
# fetched together.
BURST_S = 3_600.0
# When to retry a page whose host has an empty bucket; about an hour, to spread retries.
RETRY_S = 3_600.0
# Due times are saved only if they differ by more than this.
TOLERANCE = 0.03
IDLE_KEY = "idle refresh"


def compute_idle_waits(unchanged_s: Floats, first_interval_s: float) -> Floats:
    """Compute how long pages wait after a fetch if their hosts have idle time.

    >>> (compute_idle_waits(np.array([0.0, 1.0, 2.5, 99.0]) * DAY_S, DAY_S) / DAY_S).tolist()
    [1.0, 1.5, 2.25, 14.0]
    """
    longest_s = max(MAX_INTERVAL_S, first_interval_s)
    waits_s: Floats = np.minimum(first_interval_s + np.maximum(unchanged_s, 0.0) / 2, longest_s)
    return waits_s


class IdleRefresh:
    """Idle refresh of the pages of all hosts: due times by the rule above, and a bucket per host.

    ``gap_s`` returns the shortest time between two requests to a host. Pages are counted by host, round by round.
    """

    def __init__(self, rules: CrawlRules, gap_s: Callable[[str], float]) -> None:
        self.rules, self._gap_s = rules, gap_s
        self.busy = BusySites(rules.sites)
        self._pages: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._buckets: dict[str, tuple[float, float]] = {}
        self._saved: CrawlRules | None = None

    def apply_rules(self, rules: CrawlRules) -> None:
        """Apply changed crawl rules to idle refresh."""
        self.rules = rules
        self.busy.set_sites(rules.sites)

    @property
    def is_on(self) -> bool:
        """Whether the crawl rules give idle time to known pages: only without a fetch budget."""
        return self.rules.idle_share > 0 and not self.rules.budget_per_s > 0

    def save(self, book: CrawlStore) -> None:
        """Save the first interval, or None, for explanations in other processes."""
        if self._saved is not self.rules:
            self._saved = self.rules
            book.set_value(IDLE_KEY, repr(self.rules.idle_interval_s) if self.is_on else "")

    def count(self, looks: Sequence[KnownPage]) -> None:
        """Count the next pages of a round over all pages, by their hosts."""
        if self.is_on:
            self._counted.update(origin_of(look.url).host for look in looks)

    def end_round(self) -> None:
        """End a round: its counts apply until the next one ends."""
        self._pages, self._counted = self._counted, Counter()

    def bring_forward(self, results: Sequence[RefreshResult], times: Mapping[int, float]) -> dict[int, float]:
        """Bring forward the due times of just fetched pages, by id, to when their hosts have idle time."""
        if not self.is_on:
            return dict(times)
        some = [one for one in results if one.result.task.id in times]
        idle_s = self._compute_times(
            [one.result.task.host for one in some],
            [one.result.ended_s for one in some],
            [_find_change_s(one) for one in some],
        )
        pairs = zip((one.result.task.id for one in some), idle_s.tolist(), strict=True)
        return {id_: min(at_s, times[id_]) for id_, at_s in pairs}

    def compute_due_times(self, looks: Sequence[KnownPage]) -> Floats:
        """Compute when pages are due by idle time alone; never if it is not used."""
        if not self.is_on:
            return np.full(len(looks), np.inf)
        pages = [look.page for look in looks]
        return self._compute_times(
            [origin_of(look.url).host for look in looks],
            [page.fetched_s for page in pages],
            [page.fetched_s if _is_urgent(look) else page.changed_s for look, page in zip(looks, pages, strict=True)],
        )

    def wake(
        self, due: Sequence[KnownPage], worth_s: Floats, now_s: float, rng: np.random.Generator
    ) -> tuple[list[KnownPage], dict[int, float]]:
        """Wake due pages that their hosts have time for; return the others worth their price, and new due times.

        ``worth_s`` is when each becomes worth it. A page whose host has no time is tried again in about an hour.
        """
        paid, later = list[KnownPage](), dict[int, float]()
        times = zip(self.compute_due_times(due).tolist(), worth_s.tolist(), strict=True)
        busy = self.busy.find_factors([look.url for look in due], now_s) > 1
        for look, (idle_s, paid_s), is_busy in zip(due, times, busy.tolist(), strict=True):
            if idle_s <= now_s and not is_busy and self._take(origin_of(look.url).host, now_s):
                continue
            if paid_s <= now_s:
                paid.append(look)
            else:
                again_s = idle_s if idle_s > now_s else now_s + RETRY_S * float(rng.uniform(0.5, 1.5))
                later[look.page.id] = min(paid_s, again_s)
        return paid, later

    def _compute_times(self, hosts: Sequence[str], fetched_s: Sequence[float], changed_s: Sequence[float]) -> Floats:
        last_s, unchanged_s = np.array(fetched_s), np.array(fetched_s) - np.array(changed_s)
        pages = [max(self._pages[host], self._counted[host]) for host in hosts]
        gaps_s = [self._gap_s(host) / self.rules.idle_share for host in hosts]
        waits_s = np.maximum(compute_idle_waits(unchanged_s, self.rules.idle_interval_s), np.multiply(pages, gaps_s))
        due_s: Floats = last_s + waits_s
        return due_s

    def _take(self, host: str, now_s: float) -> bool:
        """Take one fetch from the bucket of a host; return whether one was available."""
        rate = self.rules.idle_share / self._gap_s(host)
        most = max(rate * BURST_S, 1.0)
        left, at_s = self._buckets.get(host, (most, now_s))
        left = min(left + rate * max(now_s - at_s, 0.0), most)
        self._buckets[host] = (left - 1.0 if left >= 1.0 else left, now_s)
        return left >= 1.0


def explain_idle_wait(book: CrawlStore, url: str, row: PageRow) -> str:
    """Explain that a page is due by idle time, in the crawl that last ran here; empty if another rule applies."""
    first_interval_s, wait_s = float(book.get_value(IDLE_KEY) or 0.0), row.due_s - row.fetched_s
    if not first_interval_s or not is_good(row.status) or is_source(url, row.kind) or not np.isfinite(wait_s):
        return ""
    idle_s = compute_idle_waits(np.array([row.fetched_s - row.changed_s]), first_interval_s)[0]
    if wait_s < (1 - TOLERANCE) * idle_s:
        return ""
    return f"idle time: its host has time to fetch it after {wait_s / DAY_S:.2g} d, before it is worth the price"


def _is_urgent(look: KnownPage) -> bool:
    """Check whether a known page does not wait longer if it did not change: a list, or reported as changed since."""
    signal_s = look.state.signal_s
    return is_source(look.url, look.page.kind) or (signal_s is not None and signal_s > look.page.fetched_s)


def _find_change_s(one: RefreshResult) -> float:
    """Return when a fetched page last changed, as far as fetches have shown."""
    if one.earlier is None or has_changed(one.result, one.earlier):
        return one.result.ended_s
    return one.earlier.changed_s
