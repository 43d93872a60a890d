"""Poll schedule: ask the discovery policy which sources to poll now, and forecast the polls of the others.

    with a common price   polls compete with refreshes: each that is worth the price of a fetch is made
    without one           polls are a share of all requests, none worth less than the free price

Without a budget, or if the refresh policy has no price, there is no common price. A list (feed, sitemap, home page) is
fetched again when it is chosen, or in the idle time of its host, since its dates say which pages changed; its due time
is a forecast. Other sources are also refreshed.
"""

from collections.abc import Sequence
from math import isfinite

import numpy as np

from vedette.discover.polling.poll_value import compute_urgency_after
from vedette.engine.ports import CrawlStore, DuePage, KnownPage
from vedette.engine.scheduling.idle_refresh import IdleRefresh
from vedette.engine.scheduling.polling import ASK_EVERY_S, MIN_GAP_S, PAGE_WORTH, SourcePoller
from vedette.engine.scheduling.schedule import is_good, is_rescheduled, is_source
from vedette.policy import Floats
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

    def __init__(self, poller: SourcePoller, store: CrawlStore, source_interval_s: float, idle: IdleRefresh) -> None:
        self._poller, self._store, self._interval_s, self._idle = poller, store, source_interval_s, idle
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
        lists, chosen_s = self._forecast_lists(looks, now_s)
        return self._add_idle_time(lists, chosen_s, now_s)

    def defer(self, looks: Sequence[KnownPage], now_s: float, rng: np.random.Generator) -> dict[int, float]:
        """Defer those of these due pages that are fetched again by choice, if neither that nor idle time has come."""
        return self._idle.wake(*self._forecast_lists(looks, now_s), now_s, rng)[1]

    def _forecast_lists(self, looks: Sequence[KnownPage], now_s: float) -> tuple[list[KnownPage], Floats]:
        """Forecast when the lists among these pages are chosen next."""
        lists = [look for look in looks if self._is_polled(look)]
        times = self._forecast([look.page.id for look in lists], now_s)
        return lists, np.array([times[look.page.id] for look in lists])

    def _add_idle_time(self, lists: Sequence[KnownPage], chosen_s: Floats, now_s: float) -> dict[int, float]:
        """Return when lists are polled next, by id: when they are chosen, or in idle time if that is sooner."""
        idle_s = np.maximum(self._idle.compute_due_times(lists), now_s)
        return dict(zip((look.page.id for look in lists), np.minimum(chosen_s, idle_s).tolist(), strict=True))

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
        dated = [look for look in looks if now_s < look.page.due_s and isfinite(look.page.due_s)]
        due_s = self._add_idle_time(dated, np.array([times[look.page.id] for look in dated]), now_s)
        self._store.save_due_times(
            [
                (look.page.id, due_s[look.page.id])
                for look in dated
                if is_rescheduled(look.page.due_s, due_s[look.page.id], now_s)
            ]
        )
