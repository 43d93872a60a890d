"""Poll schedule: ask the discovery policy which sources to poll now, and forecast the polls of the others.

    with a common price   polls compete with refreshes: each that is worth the price of a fetch is made
    without one           polls are a share of all requests, none worth less than the free price

Without a budget, or if the refresh policy has no price, there is no common price. A list (feed, sitemap, home page) is
fetched again only when it is chosen; its due time is a forecast. Other sources are also refreshed.
"""

from collections.abc import Sequence
from math import isfinite

from vedette.discover.polling.poll_value import compute_urgency_after
from vedette.engine.ports import CrawlStore, DuePage, KnownPage
from vedette.engine.scheduling.polling import ASK_EVERY_S, MIN_GAP_S, PAGE_WORTH, SourcePoller
from vedette.engine.scheduling.schedule import is_good, is_rescheduled, is_source
from vedette.timeutil import HOUR_S

MAX_PRICED_S = 600.0
# How many polls may start at a time where a price decides.
MAX_POLLS = 1_000
# However few other requests there are, each host gets a poll in this many times the shortest pace; but if other
# requests do not earn it, it must be worth this many times the free price.
FLOOR_PACES, FLOOR_WORTH = 3.0, 8.0


def find_free_price(source_interval_s: float) -> float:
    """Find the minimum worth of a poll where there is no common price, in new pages lost by waiting.

    A source that shows a new link an hour, for days, is worth it at the shortest pace; one that shows a link a day
    after about five times as long. Paces longer than the usual one are enforced only by the delay between polls.
    """
    return float(compute_urgency_after(min(source_interval_s, MAX_PRICED_S) / HOUR_S)[-1])


class PollSchedule:
    """Schedule polls of discovery sources: which are polled now, and the forecast due times of lists."""

    def __init__(self, poller: SourcePoller, store: CrawlStore, source_interval_s: float) -> None:
        self._poller, self._store, self._interval_s = poller, store, source_interval_s
        self._min_gap_s = source_interval_s

    def ask(self, due: Sequence[DuePage], price: float | None, now_s: float) -> bool:
        """Ask the discovery policy, if it is time, which sources to poll; return whether more pages are due now.

        ``price`` is the common price of fetches. ``due`` are pages that are due anyway: if a source is among them, its
        forecast time has come.
        """
        poller = self._poller
        is_forecast = any(poller.is_source(one.id) and not poller.is_pending(one.id) for one in due)
        if not poller.should_ask(now_s, is_forecast=is_forecast):
            return False
        chosen = self.choose(price, now_s)
        stored = {look.page.id for look in self._store.get_known_pages(chosen)}
        poller.forget([id_ for id_ in chosen if id_ not in stored])
        dated = {one.id for one in due}
        self._store.save_due_times([(id_, now_s) for id_ in chosen if id_ in stored and id_ not in dated])
        self._update_forecasts(now_s)
        return bool(chosen)

    def choose(self, price: float | None, now_s: float) -> list[int]:
        """Choose the sources to poll now: at the common price, or as many as are allowed if there is none."""
        if price is not None:
            self._min_gap_s = min(MIN_GAP_S, self._interval_s)
            return self._poller.choose(price / PAGE_WORTH, MAX_POLLS, now_s, self._min_gap_s)
        self._min_gap_s, allowance = self._interval_s, self._poller.allowance
        most = allowance.advance(now_s, self._floor_rate)
        least = find_free_price(self._interval_s) * (FLOOR_WORTH if allowance.is_floor else 1.0)
        chosen = self._poller.choose(least, most, now_s, self._min_gap_s)
        allowance.take(len(chosen))
        return chosen

    def forecast(self, looks: Sequence[KnownPage], now_s: float) -> dict[int, float]:
        """Forecast the next poll of those of these pages that are fetched again only by choice, if not now."""
        return self._forecast([look.page.id for look in looks if self._is_polled(look)], now_s)

    def _forecast(self, ids: Sequence[int], now_s: float) -> dict[int, float]:
        soonest_s = max(now_s + ASK_EVERY_S, self._poller.allowance.find_next_s(now_s))
        times = self._poller.forecast(ids, now_s, self._min_gap_s)
        return {id_: max(at_s, soonest_s) for id_, at_s in times.items()}

    @property
    def _floor_rate(self) -> float:
        return self._poller.count_hosts() / (FLOOR_PACES * self._interval_s)

    def _is_polled(self, look: KnownPage) -> bool:
        """Check whether a page is a stored list that is known as a source."""
        is_list = is_source(look.url, look.page.kind) and is_good(look.page.status)
        return is_list and self._poller.is_source(look.page.id)

    def _update_forecasts(self, now_s: float) -> None:
        """Redo forecasts that are old or were made at another price; save those of lists."""
        times = self._forecast(self._poller.list_outdated(now_s), now_s)
        looks = [look for look in self._store.get_known_pages(list(times)) if self._is_polled(look)]
        dated = [
            (look.page.due_s, look.page.id) for look in looks if now_s < look.page.due_s and isfinite(look.page.due_s)
        ]
        self._store.save_due_times(
            [(id_, times[id_]) for due_s, id_ in dated if is_rescheduled(due_s, times[id_], now_s)]
        )
