"""Sponsored results of a data folder: chosen by the default policy, held and charged in the ledger.

Each server process chooses by itself from what all have counted, looked at every second; what it may promise is for
the ledger to say. Whatever goes wrong here, the search goes on without ads.
"""

import secrets
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from vedette.adapters.ads.campaign_store import AdRow, MarketBook
from vedette.adapters.ads.ledger_reader import LedgerView
from vedette.adapters.ads.ledger_store import Asked, Clicking, LedgerBook, Losing, Offered, Showing
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.config import Serve
from vedette.errors import StoreError
from vedette.policy import rng_for
from vedette.runtime.ads.learning import SlotLearner, past_traffic
from vedette.serve.ads.catalog import Found, Running, Stall
from vedette.serve.ads.click_validity import ClickRules, Objection
from vedette.serve.ads.matching import Way
from vedette.serve.ads.pacing import rests
from vedette.serve.ads.placement import Placement, place
from vedette.serve.ads.policies.bayes_greedy import Memory, Paced
from vedette.web.commands.ads_text import landing_refusal
from vedette.web.public.ads import Landing, ShownAd
from vedette.web.public.visits import Visit, mark_of

__all__ = ["RULES", "FolderSponsor", "Terms", "terms_of"]

LOOK_EVERY_S = 1.0
LEARN_EVERY_S = 30.0
MOST_CANDIDATES = 200
# A click counts for ten minutes: so long its price is held, which nobody else can be promised meanwhile.
RULES = ClickRules(latest_s=600.0)
_TROUBLE = "the ads cannot be looked up just now"


class Terms(NamedTuple):
    """How many ads a page shows, what a click costs at least, where days begin, and how much is tried."""

    slots: int
    reserve: Decimal
    zone: ZoneInfo
    exploration: float = 1.0


def terms_of(serve: Serve) -> Terms:
    """As the operator set them."""
    exploration = serve.sponsored_exploration / 100
    return Terms(serve.sponsored_slots, Decimal(serve.sponsored_reserve), ZoneInfo(serve.time_zone), exploration)


class FolderSponsor:
    """A ``web.sponsor_ports.Sponsor`` over one data folder."""

    def __init__(
        self, folder: Path, terms: Terms, salt: Callable[[str], bytes], wall: Callable[[], float] = time.time
    ) -> None:
        self._folder, self._terms, self._salt, self._wall = folder, terms, salt, wall
        self._view = LedgerView(folder)
        self._book: LedgerBook | None = None
        self._stall = Stall()
        self._ads: dict[int, AdRow] = {}
        self._budgets: dict[str, Decimal] = {}
        self._charged: dict[str, Decimal] = {}
        self._policy = Paced(exploration=terms.exploration)
        self._memory: Memory = self._policy.start(None)
        self._slots = SlotLearner(terms.slots)
        self._rng = rng_for(secrets.randbits(63), "serve/sponsor")
        self._looked_s = self._learned_s = float("-inf")
        self._told = ""

    # the port

    def shown(self, query: str, visit: Visit) -> tuple[ShownAd, ...]:
        """For people only: what a program asks for is neither shown to anybody nor counted."""
        if visit.doubt or not query:
            return ()
        try:
            found = self._shown(query)
        except (StoreError, OSError) as error:
            self._tell(str(error))
            return ()
        self._tell("")
        return found

    def clicked(self, showing: str, visit: Visit) -> Landing:
        """Charged at once or not at all; a person is led on either way, unless the ad was taken back."""
        try:
            return self._clicked(showing, visit)
        except (StoreError, OSError) as error:
            self._tell(str(error))
            return Landing(refused=_TROUBLE)

    def forged(self) -> None:
        """Counted, so that the operator sees it."""
        try:
            self._ledger().refused(self._local().date(), Objection.FORGED.value)
        except (StoreError, OSError) as error:
            self._tell(str(error))

    # choosing

    def _shown(self, query: str) -> tuple[ShownAd, ...]:
        now_s, local = self._wall(), self._local()
        self._look(now_s, local)
        found = self._stall.found(query)[:MOST_CANDIDATES]
        if not found:
            return ()
        may, lost = self._sorted_out(found, local)
        placed = self._placed(may, local) if may else []
        lost += [_lost(each, "rank") for each in may if each.row not in [one.ad for one, _ in placed]]
        offered = [self._offered(one, each, now_s, local.date()) for one, each in placed]
        asked = Asked(local.date(), local.hour, tuple(dict.fromkeys(each.phrase for each in found)), lost)
        held = self._ledger().show(offered, asked, RULES)
        return tuple(self._ad_of(showing) for showing in held)

    def _sorted_out(self, found: Sequence[Found], local: datetime) -> tuple[list[Found], list[Losing]]:
        """Who may take part, and who not for want of money, for now or today, or because the bid is too low."""
        left = self._stall.rows([each.row for each in found]).remaining.tolist()
        resting = self._resting({each.running.payer for each in found}, local)
        least = int(self._terms.reserve * 100)
        may, lost = [], []
        for each, cents in zip(found, left, strict=True):
            if each.running.bid < least:
                lost.append(_lost(each, "reserve"))
            elif cents < least or each.running.payer in resting:
                lost.append(_lost(each, "budget"))
            else:
                may.append(each)
        return may, lost

    def _resting(self, payers: Iterable[str], local: datetime) -> set[str]:
        """Who has spent more of today's budget than may be by now; what is only held is not spent."""
        allowed = self._policy.allowed(self._memory, _clock_s(local))
        names = sorted(payers)
        budget = np.array([float(self._budgets[name]) for name in names])
        left = budget - np.array([float(self._charged.get(name, 0)) for name in names])
        return {name for name, rest in zip(names, rests(left, budget, allowed).tolist(), strict=True) if rest}

    def _placed(self, may: Sequence[Found], local: datetime) -> list[tuple[Placement, Found]]:
        options = self._stall.rows([each.row for each in may])
        by_row = {each.row: each for each in may}
        slots, reserve = self._terms.slots, self._terms.reserve
        chosen = place(self._policy, self._memory, options, slots, reserve, _clock_s(local), self._rng)
        return [(one, by_row[one.ad]) for one in chosen]

    def _offered(self, placed: Placement, found: Found, now_s: float, day: date) -> Offered:
        running = found.running
        showing = Showing(
            token=secrets.token_hex(16),
            at_s=now_s,
            day=day,
            payer=running.payer,
            ad=running.ad,
            phrase=found.phrase,
            slot=placed.slot,
            score=placed.score,
            propensity=placed.propensity,
            price=placed.charge,
            reason=placed.reason,
        )
        return Offered(showing, self._budgets[running.payer], float(self._slots.seen[placed.slot]))

    def _ad_of(self, showing: Showing) -> ShownAd:
        ad = self._ads[showing.ad]
        return ShownAd(showing.token, showing.at_s, ad.title, ad.text, ad.url, showing.phrase)

    # clicks

    def _clicked(self, token: str, visit: Visit) -> Landing:
        now_s, local = self._wall(), self._local()
        self._look(now_s, local)
        showing = self._ledger().showing(token)
        if showing is None:
            return Landing(refused=Objection.FORGED.value)
        mark = mark_of(Visit(visit.address), self._salt(time.strftime("%Y-%m-%d", time.gmtime(now_s))))
        runs = self._stall.runs(showing.ad, showing.phrase)
        clicked = self._ledger().click(token, Clicking(now_s, mark, bool(visit.doubt), runs), RULES)
        why = clicked.objection.value if clicked.objection else ""
        ad = self._ads.get(showing.ad)
        if ad and runs:
            return Landing(ad.url, why)
        # Who comes again after it was taken back is told so, whatever else is wrong with the click.
        return Landing(refused=(landing_refusal(ad.url) if ad else "") or Objection.OFF_TARGET.value)

    # looking

    def _look(self, now_s: float, local: datetime) -> None:
        """What runs and what was counted; looked at anew every second. An ad that is taken back is gone by then."""
        if 0 <= now_s - self._looked_s < LOOK_EVERY_S:
            return
        with read_state(self._folder) as db:
            market = MarketBook(db)
            ads, campaigns = market.ads(), {row.name: row for row in market.campaigns()}
        day = local.date()
        self._ads = {ad.id: ad for ad in ads}
        self._budgets = {name: row.most for name, row in campaigns.items()}
        self._stall.stock(
            [
                _running(ad, campaigns[ad.campaign].most)
                for ad in ads
                if ad.standing == "approved"
                and ad.campaign in campaigns
                and campaigns[ad.campaign].runs_on(day)
                # It was read strictly when it was submitted; nobody pays for what a fault of ours let through.
                and not landing_refusal(ad.url)
            ]
        )
        balances = self._view.balances(day)
        bound = {payer: int(balance.bound * 100) for payer, balance in balances.items()}
        self._charged = {payer: balance.charged for payer, balance in balances.items()}
        self._stall.count(self._view.counted(), self._view.asked(), bound)
        self._looked_s = now_s
        if not 0 <= now_s - self._learned_s < LEARN_EVERY_S:
            self._learn(local)
            self._slots.look(self._view, self._stall, self._policy.told(self._memory), now_s - RULES.latest_s)
            self._learned_s = now_s

    def _learn(self, local: datetime) -> None:
        """What all ads came to. The plan of traffic is made of the hours of past days, so a restart forgets nothing."""
        ads = self._stall.all_ads()
        if not len(ads):
            return
        hours = self._view.hours(local.date() - timedelta(days=14))
        traffic = past_traffic(hours, self._stall.phrase_numbers(), _clock_s(local))
        asked = np.zeros(len(self._stall.phrase_numbers()))
        asked[ads.phrase] = ads.asked
        # All that was asked until now is in the plan, so nothing of it is news.
        before = self._memory._replace(traffic=traffic._replace(asked=asked))
        self._memory = self._policy.observe(before, ads, _clock_s(local))

    def _ledger(self) -> LedgerBook:
        if self._book is None:
            self._book = LedgerBook(self._folder)
        return self._book

    def _local(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), self._terms.zone)

    def _tell(self, trouble: str) -> None:
        """The same trouble is said once, until it is over."""
        if trouble and trouble != self._told:
            sys.stderr.write(f"vedette: no sponsored results for now: {trouble}\n")
            sys.stderr.flush()
        self._told = trouble


def _clock_s(local: datetime) -> float:
    """Seconds of which whole days begin at midnight where the operator is."""
    offset = local.utcoffset() or timedelta()
    return local.timestamp() + offset.total_seconds()


def _running(ad: AdRow, budget: Decimal) -> Running:
    targets = tuple((Way(way), phrase) for way, phrase in ad.targets)
    return Running(ad.id, ad.campaign, int(Decimal(ad.bid) * 100), int(budget * 100), targets, ad.negatives)


def _lost(found: Found, to: str) -> Losing:
    return Losing(found.running.ad, found.phrase, found.running.payer, to)
