"""Refresh scheduler: when to fetch known pages again, by the refresh policy, its memory and the price.

    judged    learn from fetches, and set each page's due time: when it is worth its price
    signalled pages that reportedly changed are reviewed at once
    due       due pages are reviewed once more, since the price may have risen
    step      move the price, and review some pages, so that each is reviewed about once an hour
    gained    learn from measured search gains; a change that counts only if searches notice it is learned from then,
              or at the next fetch

A due time is only as good as the price and groups it was computed from. Both move, so due times are provisional: they
are checked again when a page wakes up, and a continuous round goes over all pages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite

import numpy as np

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.decision_record import DecisionRecorder
from vedette.engine.messages import FetchResult, FetchSuccess
from vedette.engine.ports import ChangeSignal, CrawlStore, DuePage, FetchGain, KnownPage, PageRow, RefreshState
from vedette.engine.scheduling.deferred import DeferredPages
from vedette.engine.scheduling.forecast import ChangeLoss, Forecast, Freshness, estimate_quality
from vedette.engine.scheduling.gone_pages import GonePages
from vedette.engine.scheduling.idle_refresh import IdleRefresh
from vedette.engine.scheduling.policy_memory import (
    PageBatch,
    PolicyMemory,
    PolicyVerdict,
    RefreshResult,
    explain_page,
    is_latest,
    rewind_batch,
    with_gain,
)
from vedette.engine.scheduling.policy_runner import PolicyRunner
from vedette.engine.scheduling.poll_schedule import PollSchedule
from vedette.engine.scheduling.polling import SourcePoller
from vedette.engine.scheduling.price_controller import (
    DEFAULT_INTERVAL_S,
    PRICE_KEY,
    CommonPrice,
    FetchDemand,
    PriceController,
    find_clearing_price,
    find_starting_price,
)
from vedette.engine.scheduling.refresh_policies import create_policy
from vedette.engine.scheduling.schedule import (
    DEFAULT_PRICE,
    is_good,
    is_rescheduled,
    is_source,
    kind_after,
    status_after,
)
from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import Bools

FORECAST_KEY, FRESHNESS_KEY, LOSS_KEY = "refresh forecast", "refresh current", "refresh loss"
ROUND_S = 3_600.0
MAX_REVIEWED = 200
# How often each source may be polled, on average, with a large budget.
POLL_INTERVAL_S = 1_800.0
MIN_REVIEWS_PER_S = 1.0
SAMPLE = 1_000
# After this long without a measurement, gains count as not measured.
MEASURING_S = 86_400.0
SLOWEST_PACE = 1e-9
# By then all lists of an earlier crawl have been polled once.
CLEAR_PRICE_AFTER_S = 1_800.0
# A date further in the future than clocks differ is ignored.
MAX_AHEAD_S = 86_400.0
NO_LINKS: Mapping[int, int] = {}


class RefreshScheduler:
    """Schedule refreshes of known pages: the policy, its group memory and the price.

    The policy's state of pages is in the crawl store.
    """

    def __init__(
        self,
        rules: CrawlRules,
        book: CrawlStore,
        seed: int = 1,
        witness: DecisionRecorder | None = None,
        gap_s: Callable[[str], float] = lambda _: 1.0,
        source_interval_s: float = 600.0,
    ) -> None:
        self._store, self._seed, self._recorder = book, seed, witness
        self._idle = IdleRefresh(rules, gap_s)
        self._rules = rules
        self._gone = GonePages(book)
        self.poller = SourcePoller(book, seed, rules.discovery)
        self.polls = PollSchedule(self.poller, book, source_interval_s, self._idle)
        self.spent, self.shards = (0, 0), 1
        self._load()

    def _load(self) -> None:
        book, self._runner = self._store, PolicyRunner(create_policy(self._rules.refresh))
        self._memory = PolicyMemory(self._runner, book, self._seed, self._recorder, self._idle.busy)
        self._price = PriceController.from_json(book.get_value(PRICE_KEY), self._runner.policy.name)
        self._common: CommonPrice | None = None
        self.forecast = Forecast.from_json(book.get_value(FORECAST_KEY))
        self.freshness = Freshness.from_json(book.get_value(FRESHNESS_KEY), self._runner.policy.name)
        self.loss = ChangeLoss.from_json(book.get_value(LOSS_KEY))
        self._saved = self._estimates
        self._pages = book.count_refresh_states()
        self._cursor, self._to_ask = 0, 0.0
        self._deferred = DeferredPages()
        self._has_cleared = False
        self._measured_s: float | None = None

    @property
    def policy(self) -> str:
        """The name of the refresh policy that runs."""
        return self._runner.policy.name

    @property
    def price(self) -> float | None:
        """The price that a refresh must be worth; None if the policy has none, or none yet."""
        return self._price.price if self._runner.is_priced else None

    @property
    def quality(self) -> float | None:
        """Estimated repository quality Q of the index (``forecast.estimate_quality``); None if unknown."""
        return estimate_quality(self.freshness, self.loss)

    @property
    def demand(self) -> float:
        """The number of pages to refresh; a discovery source counts as often as it is polled more often."""
        looks = len(self.poller) * DEFAULT_INTERVAL_S / POLL_INTERVAL_S
        return self._pages + (looks if self._common_price is not None else 0.0)

    @property
    def _common_price(self) -> float | None:
        """The common price of polls and refreshes; None without a budget, or if the policy has no price."""
        return self.price if self._rules.budget_per_s > 0 else None

    @property
    def has_settled(self) -> bool:
        """Whether the price is more than a first guess."""
        return self._price.is_settled

    def follow(self, price: CommonPrice) -> None:
        """Follow the price of a cluster instead of one of its own."""
        if price.policy == self.policy and (price.value is not None or not self._runner.is_priced):
            self._common = price
            self._price = self._price if price.value is None else self._price.with_price(price.value, settled=True)

    @property
    def _own_budget_per_s(self) -> float:
        """The part of the budget under which a shard finds a price of its own, as long as its cluster has none."""
        return self._rules.budget_per_s / self.shards

    def apply_rules(self, rules: CrawlRules) -> None:
        """Apply changed crawl rules to the refresh scheduler; a new policy starts without memory."""
        before, self._rules = self._rules, rules
        self._idle.apply_rules(rules)
        self.poller.use_policy(rules.discovery)
        if rules.refresh != before.refresh:
            self._store.delete_groups()
            self._load()
        elif rules.budget_per_s != before.budget_per_s:
            self._price = self._price.reset_age()

    # what responses bring

    def schedule(
        self, answers: Sequence[FetchSuccess], earlier: Mapping[int, PageRow], links: Mapping[int, int] = NO_LINKS
    ) -> dict[int, float]:
        """Schedule the next refresh of each fetched page that is no source.

        ``links`` is how often each was mentioned.
        """
        self._note_source_reads(answers, earlier)
        ids = [result.task.id for result in answers]
        states = self._store.get_refresh_states(ids)
        if self._learn_unmeasured(states):
            states = self._store.get_refresh_states(ids)
        own = [states.get(result.task.id) or RefreshState(result.task.id, result.ended_s) for result in answers]
        results = [
            RefreshResult(result, earlier.get(state.id), state, self._memory.has_memory(state), links.get(state.id))
            for result, state in zip(answers, own, strict=True)
        ]
        results = [one for one in results if one.is_known or not one.is_gone]
        results = [one for one in results if not is_source(one.result.task.url, kind_after(one.result, one.earlier))]
        gone = self._gone.schedule(answers, earlier, self.price or DEFAULT_PRICE)
        measuring = self._is_measuring
        now = [one for one in results if not (measuring and one.is_unmeasured)]
        later = [one for one in results if measuring and one.is_unmeasured]
        times = (self._learn(now) if now else {}) | (self._defer_results(later) if later else {})
        return gone | self._idle.bring_forward(results, times)

    def _note_source_reads(self, answers: Sequence[FetchSuccess], earlier: Mapping[int, PageRow]) -> None:
        """Record which feeds and sitemaps were read, so that silence is trusted up to then and no longer."""
        for result in answers:
            row = earlier.get(result.task.id)
            if kind_after(result, row) in {"feed", "sitemap"} and is_good(status_after(result, row)):
                self._memory.on_source_read(result.task.url, result.ended_s)

    @property
    def _is_measuring(self) -> bool:
        """Whether search gains of refreshes are being measured."""
        return self._measured_s is not None and (self._price.seen_s or 0.0) - self._measured_s < MEASURING_S

    def _defer_results(self, results: Sequence[RefreshResult]) -> dict[int, float]:
        """Compute due times of refreshed pages, and defer learning until their search gain is measured."""
        pages = self._memory.batch_results(results)
        due_s = self._compute_batch_due(pages, float(pages.batch.last_fetch_s.max()))
        self._memory.save(pages, pages.memory, [one.new_state for one in results], unweighed=True)
        return {one.result.task.id: at_s for one, at_s in zip(results, due_s.tolist(), strict=True)}

    def _learn_unmeasured(self, states: Mapping[int, RefreshState]) -> bool:
        """Learn from deferred refresh results that were never measured; return whether there were any."""
        ids = [id_ for id_, one in states.items() if self._memory.is_unmeasured(one)]
        looks = [look for look in self._store.get_known_pages(ids) if self._memory.is_eligible(look)] if ids else []
        self._learn_deferred(looks, None)
        return bool(looks)

    def _learn_deferred(self, looks: Sequence[KnownPage], noticed: Bools | None) -> None:
        """Learn from deferred changes; ``noticed`` says whether searches noticed them, None if unknown."""
        if not looks:
            return
        pages = self._memory.batch_pages(looks)
        pages = pages if noticed is None else pages._replace(batch=replace(pages.batch, changed=noticed))
        now_s = float(pages.batch.last_fetch_s.max())
        self._update_forecast(pages, now_s)
        after = self._runner.observe(pages.memory, pages.batch, now_s)
        due_s = self._memory.compute_due_times("fetched", pages, after, now_s, self._price.value)
        self._memory.save(pages, after, [look.state for look in looks])
        pairs = zip(looks, due_s.tolist(), strict=True)
        self._store.save_due_times([(look.page.id, at_s) for look, at_s in pairs if isfinite(look.page.due_s)])

    def _learn(self, results: Sequence[RefreshResult]) -> dict[int, float]:
        """Train the refresh policy with these results and return the pages' due times; gone pages count too."""
        pages = self._memory.batch_results(results)
        now_s = float(pages.batch.last_fetch_s.max())
        self._update_forecast(pages, now_s)
        after = self._runner.observe(pages.memory, pages.batch, now_s)
        self._set_first_price(pages._replace(memory=after))
        due_s = self._memory.compute_due_times("fetched", pages, after, now_s, self._price.value)
        self._memory.save(pages, after, [one.new_state for one in results])
        self._update_page_count(results)
        return {one.result.task.id: at_s for one, at_s in zip(results, due_s.tolist(), strict=True) if not one.is_gone}

    def _update_forecast(self, pages: PageBatch, now_s: float) -> None:
        """Update the refresh forecast: predicted changes against those found."""
        batch = pages.batch
        looked = ~batch.first_fetch & ~batch.gone
        if looked.any():
            some = batch.select(looked)
            chance = self._runner.chance(pages.memory, rewind_batch(some), some.last_fetch_s)
            self.forecast = self.forecast.observe(chance, some.changed, now_s)

    def _update_page_count(self, results: Sequence[RefreshResult]) -> None:
        gone = [one.result.task.id for one in results if one.is_gone]
        self._store.delete_refresh_states(gone)
        self._pages += sum(not one.state.memory and not one.is_gone for one in results) - len(gone)

    def _set_first_price(self, pages: PageBatch) -> None:
        """Set the first refresh price from the first pages of all."""
        if self._runner.is_priced and self._price.price is None:
            self._price = self._price.with_price(self._find_price(pages, max(self.demand, float(len(pages.batch)))))

    # change signals

    def on_signals(self, signals: Sequence[ChangeSignal], now_s: float) -> int:
        """Save change signals; return how many were new. Those pages are reviewed at once, or soon."""
        plausible = [one._replace(at_s=min(one.at_s, now_s)) for one in signals if one.at_s <= now_s + MAX_AHEAD_S]
        news = list(self._store.add_signals(plausible))
        looks = self._store.get_known_pages(news[:MAX_REVIEWED])
        self._update_due_times([look for look in looks if self._memory.is_eligible(look)], now_s)
        self._gone.on_new_links([look.page.id for look in looks if not is_good(look.page.status)], now_s)
        return len(news)

    def on_new_links(self, ids: Sequence[int], now_s: float) -> None:
        """Recheck gone pages that got new links."""
        self._gone.on_new_links(ids, now_s)

    # time passes

    def add_spent(self, refreshes: int = 0, others: int = 0) -> None:
        """Count requeued refreshes and other fetches against the price, and for the polls they earn."""
        self._price = self._price.add_spent(refreshes, others)
        self.spent = self.spent[0] + refreshes, self.spent[1] + others
        self.poller.allowance.add_requests(refreshes + others)

    def step(self, now_s: float) -> None:
        """Advance the refresh scheduler: move the price if due, and review the next pages of the round."""
        seen_s = self._price.seen_s
        passed_s = max(now_s - seen_s, 0.0) if seen_s is not None else 0.0
        self._price = self._price.advance(now_s).save_up(passed_s, self._max_rate())
        is_first = self._common_price is not None and not self._price.is_settled and not self._has_cleared
        if is_first and len(self.poller) > 0 and self._price.span_s >= CLEAR_PRICE_AFTER_S:
            self._clear_price(now_s)
        if self._common is None and self._price.should_move(self._own_budget_per_s, self.demand):
            self._move_price()
        self._to_ask = min(self._to_ask + passed_s * max(self._pages / ROUND_S, MIN_REVIEWS_PER_S), MAX_REVIEWED)
        if self._to_ask >= 1.0:
            self._review_pages(int(self._to_ask), now_s)
        if passed_s or seen_s is None:
            self._store.set_value(PRICE_KEY, self._price.to_json())
        self._idle.save(self._store)
        before, self._saved = self._saved, self._estimates
        for key, estimate in self._saved.items():
            if estimate != before[key]:
                self._store.set_value(key, estimate.to_json())

    @property
    def _estimates(self) -> dict[str, Forecast | Freshness | ChangeLoss]:
        return {FORECAST_KEY: self.forecast, FRESHNESS_KEY: self.freshness, LOSS_KEY: self.loss}

    def _clear_price(self, now_s: float) -> None:
        """Start at the price at which refreshes and polls together spend the budget, if any; tried once."""
        self._has_cleared, self._pages = True, self._store.count_refresh_states()
        pages = self._sample_pages()
        if pages is not None:
            askers = FetchDemand(
                self._runner.build_wait_function(pages.memory, pages.batch),
                self._pages / len(pages.batch),
                partial(self.poller.estimate_poll_rate, now_s),
            )
            price = find_clearing_price(askers, self._price.target(self._own_budget_per_s, self.demand))
            self._price = self._price.with_price(price, settled=True) if price is not None else self._price

    def _move_price(self) -> None:
        self._pages = self._store.count_refresh_states()
        if self._runner.is_priced and not self._price.is_settled:
            pages = self._sample_pages()
            if pages is not None:
                self._price = self._price.with_price(self._find_price(pages, self.demand), settled=True)
        self._price = self._price.move_price(self._own_budget_per_s, self.demand)

    def _sample_pages(self) -> PageBatch | None:
        """Sample pages that the refresh policy has state for; None if there are none."""
        looks = [
            look for look in self._store.scan_known_pages(self._cursor, SAMPLE) if self._memory.has_memory(look.state)
        ]
        return self._memory.batch_pages(looks) if looks else None

    def _find_price(self, pages: PageBatch, demand: float) -> float:
        """Find the refresh price at which sampled pages wait as long as the budget implies."""
        return find_starting_price(
            self._runner.build_wait_function(pages.memory, pages.batch),
            demand / self._price.target(self._own_budget_per_s, demand),
        )

    def _review_pages(self, most: int, now_s: float) -> None:
        looks = self._store.scan_known_pages(self._cursor, most)
        self._cursor = looks[-1].page.id if len(looks) == most else 0
        self._to_ask -= most
        judged = [look for look in looks if not is_source(look.url, look.page.kind)]
        self._idle.count(judged)
        if not self._cursor:
            self._idle.end_round()
        self._adopt([look for look in judged if not self._memory.has_memory(look.state)], now_s)
        with_memory = [look for look in judged if self._memory.has_memory(look.state)]
        self._measure_freshness(with_memory, now_s)
        self._update_due_times(with_memory, now_s)

    def _measure_freshness(self, looks: Sequence[KnownPage], now_s: float) -> None:
        """Measure the estimated freshness of these pages, including overdue ones that wait for a refresh."""
        if looks:
            pages = self._memory.batch_pages(looks)
            chance = self._runner.chance(pages.memory, pages.batch, np.full(len(looks), now_s))
            self.freshness = self.freshness.observe(chance, pages.batch.views)
        if not self._cursor:
            self.freshness = self.freshness.end_round()

    def _update_due_times(self, looks: Sequence[KnownPage], now_s: float) -> None:
        """Save new refresh due times, except for deferred pages, which would be postponed again and again."""
        looks = [look for look in looks if not self._deferred.is_deferred(look.page.id, look.page.due_s)]
        pairs = zip(looks, self._compute_due_times(looks, now_s).tolist(), strict=True)
        self._store.save_due_times(
            [(look.page.id, at_s) for look, at_s in pairs if is_rescheduled(look.page.due_s, at_s, now_s)]
        )

    def _adopt(self, looks: Sequence[KnownPage], now_s: float) -> None:
        """Adopt pages without policy memory (imported, or of another policy) as if fetched once."""
        if not looks:
            return
        looks = [look._replace(state=look.state._replace(before_s=None)) for look in looks]
        pages = self._memory.batch_pages(looks)
        after = self._runner.observe(pages.memory, pages.batch, now_s)
        self._set_first_price(pages._replace(memory=after))
        due_s = self._memory.compute_due_times("fetched", pages, after, now_s, self._price.value)
        self._memory.save(pages, after, [look.state for look in looks])
        self._pages += sum(not look.state.memory for look in looks)
        self._store.save_due_times([(look.page.id, at_s) for look, at_s in zip(looks, due_s.tolist(), strict=True)])

    def get_due(self, now_s: float, most: int) -> tuple[list[DuePage], dict[int, float]]:
        """Return the pages to refresh now, and the worth of a refresh for those the policy judged, by id."""
        self._wake_early(now_s)
        due = [*self._store.get_due(now_s, most)]
        if self.polls.ask(due, self._common_price, now_s):
            due += self._store.get_due(now_s, most)
        if not due:
            return [], {}
        looks = {look.page.id: look for look in self._store.get_known_pages([one.id for one in due])}
        polls = frozenset(one.id for one in due if self.poller.is_pending(one.id))
        pages = [looks[one.id] for one in due if one.id in looks and one.id not in polls]
        judged = [look for look in pages if self._memory.is_eligible(look)]
        later: dict[int, float] = {}
        rng = rng_for(self._seed, f"refresh/idle {now_s}")
        if self._idle.is_on:
            judged, later = self._idle.wake(judged, self._compute_worth_times(judged, now_s), now_s, rng)
        later |= self._defer_unpaid(judged, now_s)
        later |= self.polls.defer(pages, now_s, rng)
        self._store.save_due_times(list(later.items()))
        polled = [one.id for one in due if one.id in polls] if self._common_price is not None else []
        worth = dict.fromkeys(polled, self.price or DEFAULT_PRICE) | self._estimate_worths(judged, now_s)
        return [one for one in due if one.id not in later], worth

    def _estimate_worths(self, looks: Sequence[KnownPage], now_s: float) -> dict[int, float]:
        """Estimate the current worth of refreshing these pages, by id; the price if the policy does not say."""
        if not looks:
            return {}
        pages = self._memory.batch_pages(looks)
        worth = self._runner.value(pages.memory, pages.batch, now_s)
        values = np.full(len(looks), self.price or DEFAULT_PRICE) if worth is None else worth
        return dict(zip([look.page.id for look in looks], values.tolist(), strict=True))

    def _wake_early(self, now_s: float) -> None:
        """Wake deferred pages whose refresh can already be paid for; drop those fetched meanwhile."""
        early = self._deferred.list_early(self._price.saved, now_s)
        looks = self._store.get_known_pages(early) if early else []
        held = [look.page.id for look in looks if self._deferred.is_deferred(look.page.id, look.page.due_s)]
        self._deferred.remove(set(early) - set(held))
        self._store.save_due_times([(id_, now_s) for id_ in held])

    def _defer_unpaid(self, judged: Sequence[KnownPage], now_s: float) -> dict[int, float]:
        """Defer refreshes that are not due at this price or cannot be paid for; return their new due times."""
        later: dict[int, float] = {}
        if self._runner.is_priced:
            times = zip(judged, self._compute_worth_times(judged, now_s).tolist(), strict=True)
            later = {look.page.id: at_s for look, at_s in times if at_s > now_s}
        unpaid = [look.page.id for look in judged if look.page.id not in later]
        wait_s = 1.0 / max(self._max_rate(), SLOWEST_PACE)
        return later | self._deferred.defer(unpaid, self._price.saved, wait_s, now_s)

    def _max_rate(self) -> float:
        """Return the maximum refreshes per second; a priced policy may exceed its target, so that the price notices."""
        own = CommonPrice(self.policy, None, self._price.target(self._own_budget_per_s, self.demand), self.demand)
        return (self._common or own).max_rate(self.demand, is_priced=self._runner.is_priced)

    # measured gains

    def on_gains(self, gains: Sequence[FetchGain], now_s: float, per_view: float | None = None) -> None:
        """Train the refresh policy with measured gains of pages' latest fetches; each page occurs once.

        ``per_view`` is the value of a view of any result, in the unit of gains; None if unchanged.
        """
        self.loss = self.loss if per_view is None else replace(self.loss, per_view=per_view)
        self._measured_s = now_s if gains else self._measured_s
        by_page = {one.page: one for one in gains}
        found = [look for look in self._store.get_known_pages(list(by_page)) if self._memory.is_eligible(look)]
        looks = [with_gain(look, by_page[look.page.id]) for look in found if is_latest(look, by_page[look.page.id])]
        states = [look.state for look in looks if by_page[look.page.id].gain is not None]
        self.loss = self.loss.observe(
            *(np.array([getattr(one, name) for one in states], np.float64) for name in ("gain", "views"))
        )
        awaited = [look for look in looks if self._memory.is_unmeasured(look.state)]
        weighed = [look for look in awaited if look.state.gain is not None]
        self._learn_deferred(weighed, np.array([look.state.gain != 0.0 for look in weighed], np.bool_))
        looks = [look for look in looks if not self._memory.is_unmeasured(look.state)]
        if not looks:
            return
        pages = self._memory.batch_pages(looks)
        after = self._runner.learn_gains(pages.memory, pages.batch, now_s)
        self._memory.record_decision("gained", pages, after, now_s, {})
        self._memory.save(pages, after, [look.state for look in looks])

    # for people

    def explain_page(self, look: KnownPage, now_s: float) -> PolicyVerdict | None:
        """Explain the refresh policy's verdict on a page; None if another rule schedules it."""
        pages = self._memory.batch_pages([look]) if self._memory.is_eligible(look) else None
        return None if pages is None else explain_page(self._runner, pages, now_s, self.price)

    def estimate_costs(self, results: Sequence[FetchResult]) -> Floats:
        """Estimate the cost of these fetches in ordinary fetches, for the refresh scheduler's callers."""
        return self._memory.estimate_costs(results)

    def _compute_due_times(self, looks: Sequence[KnownPage], now_s: float) -> Floats:
        """Compute when pages are due: when they are worth the price, or in the idle time of their hosts."""
        due_s: Floats = np.minimum(self._compute_worth_times(looks, now_s), self._idle.compute_due_times(looks))
        return due_s

    def _compute_worth_times(self, looks: Sequence[KnownPage], now_s: float) -> Floats:
        """Compute when pages are worth a refresh at the current price."""
        return self._compute_batch_due(self._memory.batch_pages(looks), now_s) if looks else np.zeros(0)

    def _compute_batch_due(self, pages: PageBatch, now_s: float) -> Floats:
        return self._memory.compute_due_times("asked", pages, pages.memory, now_s, self._price.value)
