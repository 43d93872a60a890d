"""Polling: run the discovery policy: which known pages to poll for new links, and when.

Sources are found, not configured. Feeds, sitemaps and home pages are sources from their first fetch on; any other page
becomes one when a later fetch of it shows an unknown URL. The policy (``discover.policies.accrual``) is the one that
the lab runs: about every minute it chooses which of all sources to poll now, and nothing else decides. Another policy
(``discover.live_policies``) may make the choice; then the default only decides how many.

    with a budget      polls and refreshes have one price, and every poll worth it is made
    without one        polls are a share of all requests, and the best of them are made (``PollAllowance``)

The next poll of a source is a forecast for people, updated as prices and beliefs move.

What is learned about sources is held in memory and saved periodically: a crash loses some minutes of it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.discover.live_policies import DEFAULT_DISCOVERY_POLICY, PublishedChooser, is_published
from vedette.discover.policies.accrual import Accrual, compute_exploration_turn, estimate_usual_yield
from vedette.discover.polling.belief_codec import StoredAccrual, pack, unpack
from vedette.discover.polling.overlap import estimate_unique_rates
from vedette.discover.polling.poll_value import estimate_rates, estimate_yield, get_weekly_pace
from vedette.discover.polling.sources import PollResults, Sources
from vedette.engine.scheduling.poll_counts import AlertInterest, PollAllowance, PollCounts, PollStore, SourceCount
from vedette.policy import Floats, Ints, rng_for
from vedette.pricing import DEFAULT_WORTH
from vedette.timeutil import DAY_S

SOURCES_KEY, COUNTS_KEY, PACE_KEY, ALLOWANCE_KEY = "sources", "look counts", "look pace", "poll allowance"
POLICY_KEY, POLICY_STATE_KEY = "discovery policy", "discovery policy state"
# A page that is missing for a day counts for this many ordinary changes that are missing for a day, as in a first
# fetch.
PAGE_WORTH = DEFAULT_WORTH
# When full, the least valuable sources leave, this fraction at a time.
MAX_SOURCES, EVICTED_SHARE = 100_000, 0.01
# For how many links of a page we remember which other sources show them; initially for how many lists of how many
# hosts.
MAX_LINKS, MAX_LISTS, MAX_HOSTS = 1_000, 8, 200
SAVE_EVERY_S = 600.0
# The policy runs every minute; with many sources, only so often that its time stays a small part of the total. The same
# applies to saving and to learning, which otherwise happens at once.
ASK_EVERY_S, ASK_S_PER_SOURCE, MANY_SOURCES = 60.0, 3e-3, 2_000
# How often a source may be polled under a common price.
MIN_GAP_S = 300.0
# A source that was chosen but not fetched within this time is chosen again.
LOST_AFTER_S = DAY_S
FORECAST_VALID_S, PRICE_TOLERANCE, MAX_FORECASTS = 900.0, 0.05, 200
# The worth of the last chosen poll moves the going price by this fraction.
PRICE_STEP = 0.1
# Sample size for estimating the number of polls.
RATE_SAMPLE = 300
# For display: sources that share this fraction of links are similar; hours with this many times the mean are busy.
MIN_OVERLAP, MAX_SIMILAR, BUSY = 0.2, 3, 1.5


WAITS = "due now: waiting for its host"


class PollResult(NamedTuple):
    """Result of a discovery poll: page, host, whether it got a response, and the links it showed.

    ``links`` are the ids of the URLs it links to; ``new`` is how many of them were unknown. ``is_list`` means that the
    page exists for its links; ``is_site_list`` that they cover its whole site, as in feeds, sitemaps and home pages;
    ``is_refetch`` that it was fetched before. ``cost`` is in ordinary fetches.
    """

    id: int
    host: int
    ok: bool
    is_list: bool
    is_refetch: bool
    links: Sequence[int] = ()
    new: int = 0
    cost: float = 1.0
    is_site_list: bool = False


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
    """Hours of the day in UTC, the busiest first; empty if no hour is known to differ."""
    alike: tuple[int, ...]
    """Sources that show many of the same links."""
    alike_share: tuple[float, ...]
    """The share of this source's links that each of them shows."""
    watched: float
    """The share of its links at places that alerts watch."""


class SourceYield(NamedTuple):
    """Yield of a discovery source in a list: new links an hour with an interval, poll value, poll counts."""

    id: int
    an_hour: float
    low: float
    high: float
    expected: float
    counts: SourceCount


class SourcePoller:
    """Poll discovery sources: beliefs about their new links, and which of them to poll now."""

    def __init__(self, book: PollStore, seed: int = 1, policy: str | None = None) -> None:
        """Load what an earlier run learned; ``policy`` defaults to that run's."""
        self._store, self._seed = book, seed
        self._published: PublishedChooser | None = None
        self.use_policy(policy if policy is not None else book.get_value(POLICY_KEY) or DEFAULT_DISCOVERY_POLICY)
        stored = unpack(book.get_value(SOURCES_KEY))
        self._belief, self._history, self._ids = stored.state, stored.history, list(stored.ids)
        self._place = {id_: place for place, id_ in enumerate(self._ids)}
        self.counts = PollCounts.from_json(book.get_value(COUNTS_KEY))
        pace = _read_pace(book.get_value(PACE_KEY))
        self.allowance = PollAllowance.from_json(book.get_value(ALLOWANCE_KEY))
        self._policy = Accrual(price=pace["price"])
        # Facts of all sources at the last choice, for forecasts: the turn of exploration polls, the usual values.
        self._turn_s, self._usual = pace["turn_s"], pace["usual"]
        self._interest = AlertInterest(book)
        self._saved_s: float | None = None
        self._asked_s, self._pending = -inf, dict[int, float]()
        self._resting: dict[int, float] = {}
        self._unlearned: dict[int, PollResult] = {}
        self._unlearned_s = 0.0
        self._forecasts: dict[int, tuple[float, float]] = {}
        # Links at the first fetch, for a few lists of each of the hosts whose lists were found last.
        self._lists: dict[int, dict[int, Ints]] = {}
        self._assumed: list[tuple[int, int, float]] = []
        # Costs of polls in this run; a source that was not polled yet has the usual cost.
        self._costs: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def price(self) -> float:
        """The going price: what a poll must be worth, in new pages lost by waiting."""
        return self._policy.price

    def use_policy(self, name: str) -> None:
        """Switch to the policy of this name; it starts without memory, unless it ran last."""
        if (self._published.name if self._published else DEFAULT_DISCOVERY_POLICY) != name:
            state = self._store.get_value(POLICY_STATE_KEY) if self._store.get_value(POLICY_KEY) == name else None
            self._published = PublishedChooser(name, state) if is_published(name) else None

    def is_source(self, id_: int) -> bool:
        """Check whether a page is a discovery source, polled for its links."""
        return id_ in self._place

    def is_pending(self, id_: int) -> bool:
        """Check whether a source was chosen to be polled and has not been fetched since."""
        return id_ in self._pending

    # what polls bring

    def on_polls(self, polls: Sequence[PollResult], now_s: float) -> list[int]:
        """Learn from discovery polls; return the ids of the pages that are sources."""
        some = {poll.id: poll for poll in polls if self._is_candidate(poll)}
        if not some:
            return []
        self._add_sources([poll for poll in some.values() if poll.id not in self._place])
        if not self._unlearned.keys().isdisjoint(some):
            self._learn()
        for id_, poll in some.items():
            self._costs[id_] = (self._costs.get(id_, poll.cost) + poll.cost) / 2
            self._pending.pop(id_, None)
            self._forecasts.pop(id_, None)
            self._interest.invalidate(id_)
            if poll.is_refetch:
                self.counts.add(id_, new=poll.new, now_s=now_s)
        begun_s = self._unlearned_s if self._unlearned else now_s
        self._unlearned |= some
        if len(self._ids) <= MANY_SOURCES or now_s - begun_s >= ASK_S_PER_SOURCE * len(self._ids):
            self._unlearned_s = now_s
            self._learn()
        else:
            self._unlearned_s = begun_s
        self._save_periodically(now_s)
        return list(some)

    def rest(self, id_: int, until_s: float) -> None:
        """Do not poll a source until a time, since its links were delivered in another way."""
        self._resting[id_] = until_s

    def forget(self, ids: Sequence[int]) -> None:
        """Drop pages that are no longer stored."""
        self._learn()
        gone = {self._place[id_] for id_ in ids if id_ in self._place}
        self._keep(np.array([place for place in range(len(self._ids)) if place not in gone], np.int64))

    def _is_candidate(self, poll: PollResult) -> bool:
        return poll.id in self._place or (poll.ok and (poll.is_list or (poll.is_refetch and poll.new > 0)))

    def _add_sources(self, polls: Sequence[PollResult]) -> None:
        """Add new sources; when full, the least valuable ones leave."""
        missing = len(self._ids) + len(polls) - MAX_SOURCES
        if missing > 0:
            self._learn()
            every = np.arange(len(self._ids))
            value = estimate_unique_rates(self._belief.ensure_places(self._history.list_options()), every)
            order = np.argsort(value, kind="stable")
            self._keep(np.sort(order[max(missing, round(EVICTED_SHARE * MAX_SOURCES)) :]))
        places = self._history.add(np.array([poll.host for poll in polls], np.int64))
        self._ids += [poll.id for poll in polls]
        self._place |= {poll.id: place for poll, place in zip(polls, places.tolist(), strict=True)}
        for poll in polls:
            if poll.is_site_list and poll.links:
                self._assume_overlap(poll)

    def _assume_overlap(self, poll: PollResult) -> None:
        """Assume that lists of a host share new links in the same proportion as current ones."""
        own = np.unique(np.array(poll.links[:MAX_LINKS], np.int64))
        lists = self._lists.pop(poll.host, {})
        for id_, links in lists.items():
            share = len(np.intersect1d(own, links, assume_unique=True)) / min(len(own), len(links))
            if share >= MIN_OVERLAP and id_ in self._place:
                self._assumed.append((self._place[poll.id], self._place[id_], share))
        self._lists[poll.host] = dict([*lists.items(), (poll.id, own)][-MAX_LISTS:])
        self._lists = dict(islice(self._lists.items(), max(len(self._lists) - MAX_HOSTS, 0), None))

    def _keep(self, places: Ints) -> None:
        """Keep the sources at these positions, and drop the others."""
        if len(places) == len(self._ids):
            return
        self._belief = self._belief.ensure_places(self._history.list_options()).select(places)
        self._history, ids = self._history.select(places), self._ids
        self._ids = [ids[place] for place in places.tolist()]
        self._place = {id_: place for place, id_ in enumerate(self._ids)}
        if self._published:
            self._published.select(places)
        for id_ in ids:
            if id_ not in self._place:
                self.counts.forget(id_)
                self._interest.invalidate(id_)
                for table in (self._pending, self._resting, self._forecasts, self._costs):
                    table.pop(id_, None)

    def _learn(self) -> None:
        """Let the policy learn from the polls it has not seen yet."""
        polls, self._unlearned = list(self._unlearned.values()), {}
        if polls:
            batch = self._history.record(self._build_results(polls), self._unlearned_s)
            self._belief = self._policy.observe(self._belief, batch, self._unlearned_s)
            if self._published:
                self._published.observe(batch, self._unlearned_s)
        if self._assumed:
            pairs, self._assumed = self._assumed, []
            belief = self._belief.ensure_places(self._history.list_some(np.array([one for one, _, _ in pairs])))
            self._belief = belief._replace(overlap=belief.overlap.assume(pairs))

    def _build_results(self, polls: Sequence[PollResult]) -> PollResults:
        shown = [np.array(poll.links[:MAX_LINKS], np.int64) for poll in polls]
        new = [_mark_newest(*pair) for pair in zip(shown, (poll.new for poll in polls), strict=True)]
        return PollResults(
            place=np.array([self._place[poll.id] for poll in polls], np.int64),
            ok=np.array([poll.ok for poll in polls], np.bool_),
            start=np.concatenate([[0], np.cumsum([len(each) for each in shown])]).astype(np.int64),
            target=np.concatenate([np.zeros(0, np.int64), *shown]),
            new=np.concatenate([np.zeros(0, np.bool_), *new]),
        )

    # which are polled now

    def should_ask(self, now_s: float, *, is_forecast: bool = False) -> bool:
        """Check whether to run the policy again; ``is_forecast`` means that a source was forecast for now."""
        every_s = ASK_S_PER_SOURCE * len(self._ids) if is_forecast else ASK_EVERY_S
        return bool(self._ids) and not 0 <= now_s - self._asked_s <= max(every_s, ASK_S_PER_SOURCE * len(self._ids))

    def count_hosts(self) -> int:
        """Count the hosts that have sources."""
        return len(np.unique(self._history.to_columns()["host"]))

    def choose(self, price: float, most: int, now_s: float, min_gap_s: float = MIN_GAP_S) -> list[int]:
        """Choose up to this many sources to poll now, best first, each worth the price in new pages.

        They are pending until their polls are reported. A source is not polled for ``min_gap_s`` after a poll.
        """
        self._learn()
        self._asked_s = now_s
        self._pending = {id_: at_s for id_, at_s in self._pending.items() if 0 <= now_s - at_s < LOST_AFTER_S}
        self._resting = {id_: until_s for id_, until_s in self._resting.items() if until_s > now_s}
        if not self._ids or most < 1:
            return []
        options = self._history.list_options()
        weight = np.where(self._find_rest_s(options, min_gap_s) <= now_s, self._compute_weights(self._ids), 0.0)
        pending = np.zeros(len(options), np.bool_)
        pending[[self._place[id_] for id_ in self._pending]] = True
        options = replace(options, weight=weight, pending=pending)
        policy = replace(self._policy, price=price)
        rng = rng_for(self._seed, f"discover/{now_s}")
        rows = policy.choose(self._belief, options, most, now_s, rng).rows
        self._turn_s = compute_exploration_turn(options, most, now_s, is_priced=True)
        self._usual = estimate_usual_yield(options)
        self._move_price(policy, options.place[rows[most - 1 :]], now_s)
        if self._published:
            free = self._history.list_some(np.flatnonzero((weight > 0) & ~pending))
            rows = self._published.choose(free, len(rows), now_s, rng)
        chosen = [self._ids[row] for row in rows.tolist()]
        self._pending |= dict.fromkeys(chosen, now_s)
        return chosen

    def _move_price(self, policy: Accrual, last: Ints, now_s: float) -> None:
        """Move the going price to the worth of the last poll that the allowance permits, if there were enough."""
        price = policy.price
        if len(last) and price > 0:
            worth = self._compute_worth(policy, last, now_s)[0]
            before = max(self._policy.price, price)
            price = max(before * (max(worth, price) / before) ** PRICE_STEP, price)
        self._policy = replace(policy, price=price)

    def _compute_worth(self, policy: Accrual, places: Ints, now_s: float) -> Floats:
        options = self._list_some(places)
        state = self._belief.ensure_places(options)
        return policy.compute_values(state, options, self._turn_s, now_s, self._usual).total

    def _list_some(self, places: Ints) -> Sources:
        weight = self._compute_weights([self._ids[place] for place in places.tolist()])
        return replace(self._history.list_some(places), weight=weight)

    def _compute_weights(self, ids: Sequence[int]) -> Floats:
        """Compute how many ordinary pages, per ordinary fetch, a new page of each source counts for."""
        costs = np.array([self._costs.get(id_, 1.0) for id_ in ids], np.float64)
        return self._interest.get_weights(ids) / costs

    def _find_rest_s(self, options: Sources, min_gap_s: float) -> Floats:
        """Find until when each source must not be polled."""
        rest_s: Floats = options.last_poll_s + min_gap_s
        for id_, until_s in self._resting.items():
            place = self._place.get(id_)
            rows = np.flatnonzero(options.place == place) if place is not None else ()
            rest_s[rows] = np.maximum(rest_s[rows], until_s)
        return rest_s

    # when others will be

    def forecast(self, ids: Sequence[int], now_s: float, min_gap_s: float = MIN_GAP_S) -> dict[int, float]:
        """Forecast the next poll of those of these pages that are sources, at the going price."""
        known_ids = [id_ for id_ in ids if id_ in self._place]
        self._learn()
        options = self._list_some(np.array([self._place[id_] for id_ in known_ids], np.int64))
        times = (
            self._policy.forecast(self._belief, options, self._turn_s, now_s, self._usual) if known_ids else np.zeros(0)
        )
        times = np.maximum(times, self._find_rest_s(options, min_gap_s))
        for id_ in known_ids:
            self._forecasts.pop(id_, None)
            self._forecasts[id_] = (now_s, self.price)
        return {
            id_: now_s if id_ in self._pending else at_s for id_, at_s in zip(known_ids, times.tolist(), strict=True)
        }

    def list_outdated(self, now_s: float) -> list[int]:
        """List sources whose forecast is old or was made at another price, up to one batch."""
        old = [
            id_
            for id_, (made_s, price) in self._forecasts.items()  # the oldest first
            if not 0 <= now_s - made_s < FORECAST_VALID_S or abs(price - self.price) > PRICE_TOLERANCE * self.price
        ]
        never = (id_ for id_ in self._ids if id_ not in self._forecasts)
        return list(islice((id_ for id_ in chain(never, old) if id_ not in self._pending), MAX_FORECASTS))

    def estimate_poll_rate(self, now_s: float, price: float) -> float:
        """Estimate polls per second at a common price, from a sample of sources.

        Links that related sources share are not subtracted, so there will be fewer; the price adjusts by itself.
        """
        places = np.arange(0, len(self._ids), max(len(self._ids) // RATE_SAMPLE, 1))
        if not len(places):
            return 0.0
        options, policy = self._list_some(places), replace(self._policy, price=price / PAGE_WORTH)
        times = policy.forecast(self._belief, options, self._turn_s, now_s, self._usual)
        rates = 1.0 / np.maximum(times - options.last_poll_s, MIN_GAP_S)
        return float(rates.mean()) * len(self._ids)

    # for people

    def explain(self, ids: Sequence[int], now_s: float) -> dict[int, str]:
        """Explain why those of these pages that are sources are polled, or not polled yet."""
        known_ids = [id_ for id_ in ids if id_ in self._place]
        self._learn()
        batch = self._list_some(np.array([self._place[id_] for id_ in known_ids], np.int64))
        reasons = self._policy.explain(self._belief.ensure_places(batch), batch, self._turn_s, now_s, self._usual)
        if self._published:
            reasons = self._published.explain(batch, now_s)
        found = {
            id_: f"{one}; a poll must be worth {self.price:.2g}" for id_, one in zip(known_ids, reasons, strict=True)
        }
        return found | {
            id_: f"{WAITS}; {one}" for id_, one in zip(known_ids, reasons, strict=True) if id_ in self._pending
        }

    def summarize_source(self, id_: int, now_s: float) -> SourceSummary | None:
        """Summarize the poller's belief about a page; None if it is no discovery source."""
        self._learn()
        place = self._place.get(id_)
        if place is None:
            return None
        batch = self._history.list_some(np.array([place], np.int64))
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
            busiest_hours=_find_busiest_hours(get_weekly_pace(self._belief, int(batch.host[0]))),
            alike=tuple(self._ids[other] for other in alike),
            alike_share=tuple(alike.values()),
            watched=self._interest.get_shares([id_])[0],
        )

    def list_yields(self, now_s: float) -> list[SourceYield]:
        """List the yields of all discovery sources for the console, the best first."""
        self._learn()
        if not self._ids:
            return []
        batch = self._history.list_options()
        pace, expected = estimate_rates(self._belief, batch), estimate_yield(self._belief, batch, now_s)
        numbers = [each.tolist() for each in (pace.mean, pace.low, pace.high, expected)]
        counted = [self.counts.get(id_) for id_ in self._ids]
        rows = map(SourceYield, self._ids, *numbers, counted)
        return sorted(rows, key=lambda row: (-row.an_hour, row.id))

    def save(self, now_s: float) -> None:
        """Save the poller's beliefs about discovery sources."""
        self._learn()
        self._store.set_value(SOURCES_KEY, pack(StoredAccrual(self._belief, self._ids, self._history)))
        self._store.set_value(COUNTS_KEY, self.counts.to_json())
        pace = {"price": self.price, "turn_s": self._turn_s, "usual": self._usual}
        self._store.set_value(PACE_KEY, json.dumps(pace))
        self._store.set_value(ALLOWANCE_KEY, self.allowance.to_json())
        self._store.set_value(POLICY_KEY, self._published.name if self._published else DEFAULT_DISCOVERY_POLICY)
        if self._published:
            self._store.set_value(POLICY_STATE_KEY, self._published.pack())
        self._saved_s = now_s

    def _find_similar(self, place: int) -> dict[int, float]:
        """Find the discovery sources that show most of this one's links, and their overlap."""
        overlap = self._belief.overlap
        if place >= len(overlap.other):
            return {}
        share = overlap.estimate_share(np.array([place]))[0]
        order = np.argsort(-share, kind="stable")[:MAX_SIMILAR].tolist()
        return {
            int(overlap.other[place, column]): float(share[column]) for column in order if share[column] > MIN_OVERLAP
        }

    def _save_periodically(self, now_s: float) -> None:
        every_s = max(SAVE_EVERY_S, 10 * ASK_S_PER_SOURCE * len(self._ids))
        if self._saved_s is None or abs(now_s - self._saved_s) >= every_s:
            self.save(now_s)


def _read_pace(text: str | None) -> Mapping[str, float]:
    """Parse the saved going price and facts of all sources; defaults if invalid."""
    usual = {"price": 0.0, "turn_s": inf, "usual": 0.0}
    try:
        read = {name: float(json.loads(text or "{}")[name]) for name in usual}
    except (TypeError, ValueError, KeyError):
        return usual
    return read if all(value >= 0.0 for value in read.values()) else usual


def _mark_newest(links: Ints, count: int) -> npt.NDArray[np.bool_]:
    """Mark which links of a poll are the new ones: the highest ids, as ids follow the order of discovery.

    >>> _mark_newest(np.array([7, 9, 3]), 1).tolist()
    [False, True, False]
    """
    newest = np.zeros(len(links), np.bool_)
    newest[np.argsort(-links, kind="stable")[:count]] = True
    return newest


def _find_busiest_hours(week: Floats) -> tuple[int, ...]:
    """Find a source's three busiest hours of the day, if they bring 1.5 times the mean or more."""
    day = week.reshape(7, 24).mean(axis=0)
    order = np.argsort(-day, kind="stable")[:3]
    return tuple(int(hour) for hour in order if day[hour] > BUSY * day.mean())
