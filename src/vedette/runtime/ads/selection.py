"""Ad selection for the search results of a data folder: chosen by the default policy, charged in the ledger.

Each server process selects on its own from the counts of all, reloaded every second; the ledger decides what it may
promise. Whatever goes wrong here, the search goes on without ads.
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

from vedette.adapters.ads.campaign_store import AdRow, CampaignStore
from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import (
    AdImpression,
    AdQuery,
    ClickContext,
    ImpressionOffer,
    LedgerStore,
    LostImpression,
)
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.config import Serve
from vedette.errors import StoreError
from vedette.policy import rng_for
from vedette.runtime.ads.learning import SlotLearner, build_traffic, to_local_s
from vedette.serve.ads.catalog import AdCatalog, AdMatch, RunningAd
from vedette.serve.ads.click_validity import ClickRejection, ClickRules
from vedette.serve.ads.matching import MatchType
from vedette.serve.ads.pacing import is_resting
from vedette.serve.ads.placement import Placement, place_ads
from vedette.serve.ads.policies.bayes_greedy import AdMemory, PacedGreedy
from vedette.web.commands.ads_text import check_landing_url
from vedette.web.public.ads import ClickOutcome, ShownAd
from vedette.web.public.visits import Visitor, hash_visitor

REFRESH_EVERY_S = 1.0
LEARN_EVERY_S = 30.0
MAX_CANDIDATES = 200
# A click counts for ten minutes: so long its price is held, which nobody else can be promised meanwhile.
CLICK_RULES = ClickRules(max_delay_s=600.0)
_UNAVAILABLE = "the ads cannot be looked up just now"


class AdTerms(NamedTuple):
    """Terms of ad selection: ads per page, minimum cost of a click, time zone of days, and how much is explored."""

    slots: int
    reserve: Decimal
    zone: ZoneInfo
    exploration: float = 1.0


def build_terms(serve: Serve) -> AdTerms:
    """Build the terms of ad selection from the operator's settings."""
    exploration = serve.sponsored_exploration / 100
    return AdTerms(serve.sponsored_slots, Decimal(serve.sponsored_reserve), ZoneInfo(serve.time_zone), exploration)


class FolderAdServer:
    """A ``web.public.ads.AdServer`` over one data folder: selects ads and charges clicks."""

    def __init__(
        self, folder: Path, terms: AdTerms, salt: Callable[[str], bytes], wall: Callable[[], float] = time.time
    ) -> None:
        self._folder, self._terms, self._salt, self._wall = folder, terms, salt, wall
        self._reader = LedgerReader(folder)
        self._store: LedgerStore | None = None
        self._catalog = AdCatalog()
        self._ads: dict[int, AdRow] = {}
        self._budgets: dict[str, Decimal] = {}
        self._charged: dict[str, Decimal] = {}
        self._policy = PacedGreedy(exploration=terms.exploration)
        self._memory: AdMemory = self._policy.start(None)
        self._slots = SlotLearner(terms.slots)
        self._rng = rng_for(secrets.randbits(63), "serve/sponsor")
        self._refreshed_s = self._learned_s = float("-inf")
        self._trouble = ""

    # the port

    def choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:
        """Choose the ads for a search query and record their impressions; none for bots."""
        if visit.filter_reason or not query:
            return ()
        try:
            found = self._choose_ads(query)
        except (StoreError, OSError) as error:
            self._report_trouble(str(error))
            return ()
        self._report_trouble("")
        return found

    def charge_click(self, showing: str, visit: Visitor) -> ClickOutcome:
        """Charge an ad click in the ledger and return where it leads.

        It is charged at once or not at all; the person is led on either way, unless the ad was revoked.
        """
        try:
            return self._record_click(showing, visit)
        except (StoreError, OSError) as error:
            self._report_trouble(str(error))
            return ClickOutcome(refusal=_UNAVAILABLE)

    def count_forged_click(self) -> None:
        """Count an ad click with a forged token, so that the operator sees it."""
        try:
            self._open_ledger().count_refused_click(self._get_local_time().date(), ClickRejection.FORGED.value)
        except (StoreError, OSError) as error:
            self._report_trouble(str(error))

    # choosing

    def _choose_ads(self, query: str) -> tuple[ShownAd, ...]:
        now_s, local = self._wall(), self._get_local_time()
        self._refresh(now_s, local)
        found = self._catalog.find_ads(query)[:MAX_CANDIDATES]
        if not found:
            return ()
        may, lost = self._filter_candidates(found, local)
        placed = self._place_ads(may, local) if may else []
        lost += [_build_loss(each, "rank") for each in may if each.row not in [one.ad for one, _ in placed]]
        offered = [self._build_offer(one, each, now_s, local.date()) for one, each in placed]
        asked = AdQuery(local.date(), local.hour, tuple(dict.fromkeys(each.phrase for each in found)), lost)
        held = self._open_ledger().record_impressions(offered, asked, CLICK_RULES)
        return tuple(self._build_ad(showing) for showing in held)

    def _filter_candidates(
        self, found: Sequence[AdMatch], local: datetime
    ) -> tuple[list[AdMatch], list[LostImpression]]:
        """Split matching ads into those that may be shown and those lost for lack of budget or a low bid."""
        left = self._catalog.get_candidates([each.row for each in found]).remaining.tolist()
        resting = self._find_paused_payers({each.ad.payer for each in found}, local)
        least = int(self._terms.reserve * 100)
        may, lost = [], []
        for each, cents in zip(found, left, strict=True):
            if each.ad.bid < least:
                lost.append(_build_loss(each, "reserve"))
            elif cents < least or each.ad.payer in resting:
                lost.append(_build_loss(each, "budget"))
            else:
                may.append(each)
        return may, lost

    def _find_paused_payers(self, payers: Iterable[str], local: datetime) -> set[str]:
        """Find the payers whose ads pause because they spent more of today's budget than planned by now.

        What is only held is not spent.
        """
        allowed = self._policy.get_spend_limit(self._memory, to_local_s(local))
        names = sorted(payers)
        budget = np.array([float(self._budgets[name]) for name in names])
        left = budget - np.array([float(self._charged.get(name, 0)) for name in names])
        return {name for name, rest in zip(names, is_resting(left, budget, allowed).tolist(), strict=True) if rest}

    def _place_ads(self, may: Sequence[AdMatch], local: datetime) -> list[tuple[Placement, AdMatch]]:
        options = self._catalog.get_candidates([each.row for each in may])
        by_row = {each.row: each for each in may}
        slots, reserve = self._terms.slots, self._terms.reserve
        chosen = place_ads(self._policy, self._memory, options, slots, reserve, to_local_s(local), self._rng)
        return [(one, by_row[one.ad]) for one in chosen]

    def _build_offer(self, placed: Placement, found: AdMatch, now_s: float, day: date) -> ImpressionOffer:
        running = found.ad
        showing = AdImpression(
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
        return ImpressionOffer(showing, self._budgets[running.payer], float(self._slots.factors[placed.slot]))

    def _build_ad(self, showing: AdImpression) -> ShownAd:
        ad = self._ads[showing.ad]
        return ShownAd(showing.token, showing.at_s, ad.title, ad.text, ad.url, showing.phrase)

    # clicks

    def _record_click(self, token: str, visit: Visitor) -> ClickOutcome:
        now_s, local = self._wall(), self._get_local_time()
        self._refresh(now_s, local)
        showing = self._open_ledger().find_impression(token)
        if showing is None:
            return ClickOutcome(refusal=ClickRejection.FORGED.value)
        mark = hash_visitor(Visitor(visit.address), self._salt(time.strftime("%Y-%m-%d", time.gmtime(now_s))))
        runs = self._catalog.is_running(showing.ad, showing.phrase)
        clicked = self._open_ledger().record_click(
            token, ClickContext(now_s, mark, bool(visit.filter_reason), runs), CLICK_RULES
        )
        why = clicked.objection.value if clicked.objection else ""
        ad = self._ads.get(showing.ad)
        if ad and runs:
            return ClickOutcome(ad.url, why)
        # Who comes again after it was taken back is told so, whatever else is wrong with the click.
        return ClickOutcome(refusal=(check_landing_url(ad.url) if ad else "") or ClickRejection.OFF_TARGET.value)

    # looking

    def _refresh(self, now_s: float, local: datetime) -> None:
        """Reload running ads and ledger counts for ad selection, at most once a second; revoked ads drop out."""
        if 0 <= now_s - self._refreshed_s < REFRESH_EVERY_S:
            return
        with read_state(self._folder) as db:
            market = CampaignStore(db)
            ads, campaigns = market.list_ads(), {row.name: row for row in market.list_campaigns()}
        day = local.date()
        self._ads = {ad.id: ad for ad in ads}
        self._budgets = {name: row.daily_budget for name, row in campaigns.items()}
        self._catalog.set_ads(
            [
                _build_running(ad, campaigns[ad.campaign].daily_budget)
                for ad in ads
                if ad.standing == "approved"
                and ad.campaign in campaigns
                and campaigns[ad.campaign].runs_on(day)
                # It was read strictly when it was submitted; nobody pays for what a fault of ours let through.
                and not check_landing_url(ad.url)
            ]
        )
        balances = self._reader.read_balances(day)
        bound = {payer: int(balance.committed * 100) for payer, balance in balances.items()}
        self._charged = {payer: balance.charged for payer, balance in balances.items()}
        self._catalog.set_counts(self._reader.read_counts(), self._reader.count_queries(), bound)
        self._refreshed_s = now_s
        if not 0 <= now_s - self._learned_s < LEARN_EVERY_S:
            self._learn(local)
            self._slots.learn(
                self._reader, self._catalog, self._policy.get_ad_priors(self._memory), now_s - CLICK_RULES.max_delay_s
            )
            self._learned_s = now_s

    def _learn(self, local: datetime) -> None:
        """Update the ad policy from the outcomes of all ads.

        The traffic plan is built from the hours of past days, so a restart forgets nothing.
        """
        ads = self._catalog.all_ads()
        if not len(ads):
            return
        hours = self._reader.read_hourly_queries(local.date() - timedelta(days=14))
        traffic = build_traffic(hours, self._catalog.get_phrase_numbers(), to_local_s(local))
        asked = np.zeros(len(self._catalog.get_phrase_numbers()))
        asked[ads.phrase] = ads.asked
        # All that was asked until now is in the plan, so nothing of it is news.
        before = self._memory._replace(traffic=traffic._replace(asked=asked))
        self._memory = self._policy.observe(before, ads, to_local_s(local))

    def _open_ledger(self) -> LedgerStore:
        if self._store is None:
            self._store = LedgerStore(self._folder)
        return self._store

    def _get_local_time(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), self._terms.zone)

    def _report_trouble(self, trouble: str) -> None:
        """Report a problem of ad selection on stderr, once until it is over."""
        if trouble and trouble != self._trouble:
            sys.stderr.write(f"vedette: no sponsored results for now: {trouble}\n")
            sys.stderr.flush()
        self._trouble = trouble


def _build_running(ad: AdRow, budget: Decimal) -> RunningAd:
    targets = tuple((MatchType(way), phrase) for way, phrase in ad.targets)
    return RunningAd(ad.id, ad.campaign, int(Decimal(ad.bid) * 100), int(budget * 100), targets, ad.negatives)


def _build_loss(found: AdMatch, to: str) -> LostImpression:
    return LostImpression(found.ad.ad, found.phrase, found.ad.payer, to)
