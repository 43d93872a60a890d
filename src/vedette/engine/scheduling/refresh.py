"""When known pages are fetched again: the refresh policy at work, with its memory and its price.

    judged    what fetches found is learned, and each page gets the time at which it is worth its price
    signalled something said that pages have changed: they are asked about at once
    due       pages whose time has come are asked about once more: the price may have risen
    step      time goes by: the price moves, and some pages are asked about, so that every one is about once an hour
    gained    what fetches turned out to have brought to search is learned; a change that searches must notice to count
              is learned from only then, or at the next fetch

A due time is only as good as the price and the groups by which it was worked out. Both move, so due times are thin:
whoever wakes a page asks again, and a round goes over all pages for ever.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite

import numpy as np

from vedette.engine.coordinator.state import Rules
from vedette.engine.decision_record import Witness
from vedette.engine.messages import Fetched, Result
from vedette.engine.ports import Book, Due, Gained, Look, PageRow, Remembered, Signal
from vedette.engine.scheduling.deferred import Turns
from vedette.engine.scheduling.forecast import Forecast
from vedette.engine.scheduling.gone_pages import GonePages
from vedette.engine.scheduling.policy_memory import (
    Asked,
    Came,
    Made,
    Recollection,
    is_latest,
    told_of,
    until_before,
    with_gain,
)
from vedette.engine.scheduling.policy_runner import Mind
from vedette.engine.scheduling.polling import Looking
from vedette.engine.scheduling.price_controller import (
    DEFAULT_SPAN_S,
    PURSE,
    Askers,
    Purse,
    clearing_price,
    starting_price,
)
from vedette.engine.scheduling.refresh_policies import policy_named
from vedette.engine.scheduling.schedule import ORDINARY, is_good, is_source, kind_after
from vedette.policy import Floats, rng_for
from vedette.pricing import MOST_OVERSPENT
from vedette.refresh.known_pages import Bools

__all__ = ["Refreshing"]

FORECAST = "refresh forecast"
ROUND_S = 3_600.0
MOST_ASKED = 200
# So often each source may be looked at, on average, where a budget is large.
LOOK_SPAN_S = 1_800.0
LEAST_ASKED_PER_S = 1.0
SAMPLE = 1_000
# Another due time is worth a write if it differs by this part of the wait that is left, or by a minute.
SAME_PART, SAME_S = 0.02, 60.0
# Who has measured nothing for so long does not measure.
MEASURING_S = 86_400.0
SLOWEST_PACE = 1e-9
# By then all lists of an earlier crawl have been looked at once.
CLEARED_AFTER_S = 1_800.0
# A date that lies further ahead than clocks differ says nothing.
AHEAD_S = 86_400.0
NO_LINKS: Mapping[int, int] = {}


class Refreshing:
    """The policy, what it remembers of groups, and the price; what it remembers of pages is in the book."""

    def __init__(self, rules: Rules, book: Book, seed: int = 1, witness: Witness | None = None) -> None:
        self._book, self._seed, self._witness = book, seed, witness
        self._rules = rules
        self._gone = GonePages(book)
        self.looking = Looking(book, seed)
        self._begin()

    def _begin(self) -> None:
        book, self._mind = self._book, Mind(policy_named(self._rules.refresh))
        self._memory = Recollection(self._mind, book, self._seed, self._witness)
        self._purse = Purse.from_json(book.life(PURSE), self._mind.policy.name)
        self.forecast = self._forecast_kept = Forecast.from_json(book.life(FORECAST))
        self._pages = book.remembered_count()
        self._cursor, self._to_ask = 0, 0.0
        self._turns = Turns()
        self._has_cleared = False
        self._measured_s: float | None = None

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self._mind.policy.name

    @property
    def price(self) -> float | None:
        """What a fetch must be worth; None where the policy asks no price, or there is none yet."""
        return self._purse.price if self._mind.is_priced else None

    @property
    def _wanting(self) -> float:
        """How many pages there are to be fetched again, a source counting for as many as it is looked at more often."""
        looks = len(self.looking) * DEFAULT_SPAN_S / LOOK_SPAN_S
        return self._pages + (looks if self.is_thrifty else 0.0)

    @property
    def is_thrifty(self) -> bool:
        """Whether lists are looked at by the price, too; without a budget they come round at a fixed pace."""
        return self._mind.is_priced and self._rules.budget_per_s > 0

    def rule(self, rules: Rules) -> None:
        """Other rules from now on. Another policy begins anew: what one remembers, none other can read."""
        before, self._rules = self._rules, rules
        if rules.refresh != before.refresh:
            self._book.drop_groups()
            self._begin()
        elif rules.budget_per_s != before.budget_per_s:
            self._purse = self._purse.rebudgeted()

    # what answers bring

    def judged(
        self, answers: Sequence[Fetched], earlier: Mapping[int, PageRow], links: Mapping[int, int] = NO_LINKS
    ) -> dict[int, float]:
        """When each of these is due again that is no source; ``links`` is how often each was named."""
        ids = [result.errand.id for result in answers]
        kept = self._book.remembered(ids)
        if self._weigh_unmeasured(kept):
            kept = self._book.remembered(ids)
        came = [self._came(result, earlier, kept, links) for result in answers]
        came = [one for one in came if not _is_source(one) and (one.is_known or not one.is_gone)]
        gone = self._gone.judged(answers, earlier, self.price or ORDINARY)
        measuring = self._is_measuring
        now = [one for one in came if not (measuring and one.is_unweighed)]
        later = [one for one in came if measuring and one.is_unweighed]
        return gone | (self._learned(now) if now else {}) | (self._put_off(later) if later else {})

    @property
    def _is_measuring(self) -> bool:
        """Whether somebody measures what fetches bring."""
        return self._measured_s is not None and (self._purse.seen_s or 0.0) - self._measured_s < MEASURING_S

    def _put_off(self, came: Sequence[Came]) -> dict[int, float]:
        """When these are due as far as is known; from what they found is learned when searches have weighed it."""
        made = self._memory.of_answers(came)
        due_s = self._ask_of(made, float(made.batch.last_fetch_s.max()))
        self._memory.keep(made, made.memory, [one.remembered for one in came], unweighed=True)
        return {one.result.errand.id: at_s for one, at_s in zip(came, due_s.tolist(), strict=True)}

    def _weigh_unmeasured(self, kept: Mapping[int, Remembered]) -> bool:
        """What was put off and never measured counts as it was found; whether there was any."""
        ids = [id_ for id_, one in kept.items() if self._memory.awaits(one)]
        looks = [look for look in self._book.looks(ids) if self._memory.judges(look)] if ids else []
        self._weigh(looks, None)
        return bool(looks)

    def _weigh(self, looks: Sequence[Look], noticed: Bools | None) -> None:
        """Learn from changes that were put off; ``noticed`` says whether searches noticed, None that nobody knows."""
        if not looks:
            return
        made = self._memory.of_looks(looks)
        made = made if noticed is None else made._replace(batch=replace(made.batch, changed=noticed))
        now_s = float(made.batch.last_fetch_s.max())
        self._foresee(made, now_s)
        after = self._mind.observe(made.memory, made.batch, now_s)
        due_s = self._memory.dated("fetched", made, after, now_s, self._purse.value)
        self._memory.keep(made, after, [look.kept for look in looks])
        pairs = zip(looks, due_s.tolist(), strict=True)
        self._book.keep_due([(look.page.id, at_s) for look, at_s in pairs if isfinite(look.page.due_s)])

    def _learned(self, came: Sequence[Came]) -> dict[int, float]:
        """When the pages among these are due; what is gone now teaches the policy, too."""
        made = self._memory.of_answers(came)
        now_s = float(made.batch.last_fetch_s.max())
        self._foresee(made, now_s)
        after = self._mind.observe(made.memory, made.batch, now_s)
        self._price_first(made._replace(memory=after))
        due_s = self._memory.dated("fetched", made, after, now_s, self._purse.value)
        self._memory.keep(made, after, [one.remembered for one in came])
        self._keep_count(came)
        return {one.result.errand.id: at_s for one, at_s in zip(came, due_s.tolist(), strict=True) if not one.is_gone}

    def _came(
        self,
        result: Fetched,
        earlier: Mapping[int, PageRow],
        kept: Mapping[int, Remembered],
        links: Mapping[int, int],
    ) -> Came:
        id_ = result.errand.id
        own = kept.get(id_) or Remembered(id_, result.ended_s)
        return Came(result, earlier.get(id_), own, self._memory.knows(own), links.get(id_))

    def _foresee(self, made: Made, now_s: float) -> None:
        """What was expected of refreshes, held against what they found."""
        batch = made.batch
        looked = ~batch.first_fetch & ~batch.gone
        if looked.any():
            some = batch.some(looked)
            chance = self._mind.chance(made.memory, until_before(some), some.last_fetch_s)
            self.forecast = self.forecast.after(chance, some.changed, now_s)

    def _keep_count(self, came: Sequence[Came]) -> None:
        gone = [one.result.errand.id for one in came if one.is_gone]
        self._book.drop_remembered(gone)
        self._pages += sum(not one.kept.memory and not one.is_gone for one in came) - len(gone)

    def _price_first(self, made: Made) -> None:
        """The first pages of all say where the price begins."""
        if self._mind.is_priced and self._purse.price is None:
            self._purse = self._purse.priced(self._price_of(made, max(self._wanting, float(len(made.batch)))))

    # what is said of pages

    def signalled(self, signals: Sequence[Signal], now_s: float) -> int:
        """Something said that pages have changed; of how many that was news. Those are asked about at once, or soon."""
        said = [one._replace(at_s=min(one.at_s, now_s)) for one in signals if one.at_s <= now_s + AHEAD_S]
        news = list(self._book.signal(said))
        looks = self._book.looks(news[:MOST_ASKED])
        self._date_again([look for look in looks if self._memory.judges(look)], now_s)
        self._gone.named_anew([look.page.id for look in looks if not is_good(look.page.status)], now_s)
        return len(news)

    def named_anew(self, ids: Sequence[int], now_s: float) -> None:
        """Links lead to these URLs that did not before."""
        self._gone.named_anew(ids, now_s)

    # what happens as time goes by

    def spent(self, refreshes: int = 0, others: int = 0) -> None:
        """So many pages were woken to be fetched again, and so many other things are fetched."""
        self._purse = self._purse.spent(refreshes, others)

    def step(self, now_s: float) -> None:
        """Move the price where enough has happened, and ask about the next pages of the round."""
        seen_s = self._purse.seen_s
        passed_s = max(now_s - seen_s, 0.0) if seen_s is not None else 0.0
        self._purse = self._purse.at(now_s).saving(passed_s, self._pace())
        if self._is_to_clear and self._purse.span_s >= CLEARED_AFTER_S:
            self._clear_price(now_s)
        if self._purse.due_move(self._rules.budget_per_s, self._wanting):
            self._move_price()
        self._to_ask = min(self._to_ask + passed_s * max(self._pages / ROUND_S, LEAST_ASKED_PER_S), MOST_ASKED)
        if self._to_ask >= 1.0:
            self._ask_round(int(self._to_ask), now_s)
        if passed_s or seen_s is None:
            self._book.set_life(PURSE, self._purse.to_json())
        if self.forecast is not self._forecast_kept:
            self._forecast_kept = self.forecast
            self._book.set_life(FORECAST, self.forecast.to_json())

    @property
    def _is_to_clear(self) -> bool:
        return self.is_thrifty and not self._purse.is_settled and not self._has_cleared and len(self.looking) > 0

    def _clear_price(self, now_s: float) -> None:
        """Begin where refreshes and looks would together spend the budget, if there is such a price; tried once."""
        self._has_cleared, self._pages = True, self._book.remembered_count()
        made = self._sampled()
        if made is not None:
            askers = Askers(self._waits_of(made), self._pages / len(made.batch), partial(self.looking.pace, now_s))
            price = clearing_price(askers, self._purse.target(self._rules.budget_per_s, self._wanting))
            self._purse = self._purse.priced(price, settled=True) if price is not None else self._purse

    def _move_price(self) -> None:
        self._pages = self._book.remembered_count()
        if self._mind.is_priced and not self._purse.is_settled:
            made = self._sampled()
            if made is not None:
                self._purse = self._purse.priced(self._price_of(made, self._wanting), settled=True)
        self._purse = self._purse.moved(self._rules.budget_per_s, self._wanting)

    def _sampled(self) -> Made | None:
        """Some of the pages that the policy knows; None where it knows none."""
        looks = [look for look in self._book.looks_after(self._cursor, SAMPLE) if self._memory.knows(look.kept)]
        return self._memory.of_looks(looks) if looks else None

    def _price_of(self, made: Made, pages: float) -> float:
        """The price at which these would wait as long as a page of so many does, if the budget is spent."""
        return starting_price(self._waits_of(made), pages / self._purse.target(self._rules.budget_per_s, pages))

    def _waits_of(self, made: Made) -> Callable[[float], Floats]:
        def waits_s(price: float) -> Floats:
            rng, batch = rng_for(1, "refresh/starting-price"), made.batch
            return self._mind.due(made.memory, batch, float(batch.last_fetch_s.max()), price, rng) - batch.last_fetch_s

        return waits_s

    def _ask_round(self, most: int, now_s: float) -> None:
        looks = self._book.looks_after(self._cursor, most)
        self._cursor = looks[-1].page.id if len(looks) == most else 0
        self._to_ask -= most
        judged = [look for look in looks if not is_source(look.url, look.page.kind)]
        self._adopt([look for look in judged if not self._memory.knows(look.kept)], now_s)
        self._date_again([look for look in judged if self._memory.knows(look.kept)], now_s)

    def _date_again(self, known: Sequence[Look], now_s: float) -> None:
        """But for those whose time has come and that wait for their turn: else they would be put off ever again."""
        known = [look for look in known if not self._turns.holds(look.page.id, look.page.due_s)]
        pairs = zip(known, self._ask(known, now_s).tolist(), strict=True)
        self._book.keep_due([(look.page.id, at_s) for look, at_s in pairs if _differs(look.page.due_s, at_s, now_s)])

    def _adopt(self, looks: Sequence[Look], now_s: float) -> None:
        """Pages that nobody remembers (imported, or of another policy) begin as if they had been fetched once."""
        if not looks:
            return
        looks = [look._replace(kept=look.kept._replace(before_s=None)) for look in looks]
        made = self._memory.of_looks(looks)
        after = self._mind.observe(made.memory, made.batch, now_s)
        self._price_first(made._replace(memory=after))
        due_s = self._memory.dated("fetched", made, after, now_s, self._purse.value)
        self._memory.keep(made, after, [look.kept for look in looks])
        self._pages += sum(not look.kept.memory for look in looks)
        self._book.keep_due([(look.page.id, at_s) for look, at_s in zip(looks, due_s.tolist(), strict=True)])

    def due(self, now_s: float, most: int) -> tuple[list[Due], frozenset[int]]:
        """What is to be fetched again now; and the ids of those among it that were judged."""
        self._call_early(now_s)
        due = self._book.due(now_s, most)
        if not due:
            return [], frozenset()
        known = {look.page.id: look for look in self._book.looks([one.id for one in due])}
        judged = [known[one.id] for one in due if one.id in known and self._memory.judges(known[one.id])]
        later = self._later(judged, now_s)
        self._book.keep_due(list(later.items()))
        looks = frozenset(one.id for one in due if self.is_thrifty and self.looking.is_source(one.id))
        return [one for one in due if one.id not in later], frozenset(look.page.id for look in judged) | looks

    def _call_early(self, now_s: float) -> None:
        """Who is first in line comes now if there is a fetch for it already; who was fetched meanwhile has left."""
        early = self._turns.early(self._purse.saved, now_s)
        looks = self._book.looks(early) if early else []
        held = [look.page.id for look in looks if self._turns.holds(look.page.id, look.page.due_s)]
        self._turns.leave(set(early) - set(held))
        self._book.keep_due([(id_, now_s) for id_ in held])

    def _later(self, judged: Sequence[Look], now_s: float) -> dict[int, float]:
        """Those that are not due at this price, or by their turn, and when they are."""
        later: dict[int, float] = {}
        if self._mind.is_priced:
            times = zip(judged, self._ask(judged, now_s).tolist(), strict=True)
            later = {look.page.id: at_s for look, at_s in times if at_s > now_s}
        unpaid = [look.page.id for look in judged if look.page.id not in later]
        wait_s = 1.0 / max(self._pace(), SLOWEST_PACE)
        return later | self._turns.lined_up(unpaid, self._purse.saved, wait_s, now_s)

    def _pace(self) -> float:
        """How many refreshes a second there may be at most; a price is to see that there are too many."""
        target = self._purse.target(self._rules.budget_per_s, self._wanting)
        return target * MOST_OVERSPENT if self._mind.is_priced else target

    # what fetches turned out to have brought

    def gained(self, gains: Sequence[Gained], now_s: float) -> None:
        """Learn from it, where it is about the latest fetch of a page; each page is named once."""
        self._measured_s = now_s if gains else self._measured_s
        by_page = {one.page: one for one in gains}
        found = [look for look in self._book.looks(list(by_page)) if self._memory.judges(look)]
        looks = [with_gain(look, by_page[look.page.id]) for look in found if is_latest(look, by_page[look.page.id])]
        awaited = [look for look in looks if self._memory.awaits(look.kept)]
        weighed = [look for look in awaited if look.kept.gain is not None]
        self._weigh(weighed, np.array([look.kept.gain != 0.0 for look in weighed], np.bool_))
        looks = [look for look in looks if not self._memory.awaits(look.kept)]
        if not looks:
            return
        made = self._memory.of_looks(looks)
        after = self._mind.gained(made.memory, made.batch, now_s)
        self._memory.tell("gained", made, after, now_s, {})
        self._memory.keep(made, after, [look.kept for look in looks])

    # for people

    def asked_of(self, look: Look, now_s: float) -> Asked | None:
        """What the policy says of a page; None where another rule has it."""
        if not self._memory.judges(look):
            return None
        return told_of(self._mind, self._memory.of_looks([look]), now_s, self.price)

    def costs(self, results: Sequence[Result]) -> Floats:
        """What these fetches cost, in ordinary ones."""
        return self._memory.costs(results)

    def _ask(self, looks: Sequence[Look], now_s: float) -> Floats:
        """When pages are due at the price of the moment."""
        if not looks:
            return np.zeros(0)
        due_s = self._ask_of(self._memory.of_looks(looks), now_s)
        # Some of them are worth a look for what they link to before that.
        looked_s = self.looking.due_s([look.page.id for look in looks], self.price, now_s)
        sooner: Floats = np.minimum(due_s, [looked_s.get(look.page.id, inf) for look in looks])
        return sooner

    def _ask_of(self, made: Made, now_s: float) -> Floats:
        return self._memory.dated("asked", made, made.memory, now_s, self._purse.value)


def _is_source(one: Came) -> bool:
    return is_source(one.result.errand.url, kind_after(one.result, one.earlier))


def _differs(before_s: float, after_s: float, now_s: float) -> bool:
    """Whether another due time is worth writing down."""
    if not (np.isfinite(before_s) and np.isfinite(after_s)):
        return before_s != after_s
    return abs(after_s - before_s) > max(SAME_S, SAME_PART * (after_s - now_s))
