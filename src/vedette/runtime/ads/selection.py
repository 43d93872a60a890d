"""Ad selection for search results: chosen by the configured policy, charged in the ledger.

``serve.ads.selection`` decides; here it gets the stored campaigns, the ledger, the clock and visitors. Each
server process selects independently from the counts of all, reloaded every second; the ledger decides what it may
promise. If anything fails here, the search continues without ads.
"""

import secrets
import sys
import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

from vedette.adapters.ads.ledger_store import Ledger
from vedette.config import Serve
from vedette.errors import ClusterError, StoreError
from vedette.policy import rng_for
from vedette.runtime.ads.storage import AdMarket, AdStorage
from vedette.serve.ads.by_score import ScorePolicy
from vedette.serve.ads.click_validity import ClickRejection
from vedette.serve.ads.ledger import AdImpression
from vedette.serve.ads.live_policies import create_ad_policy
from vedette.serve.ads.selection import AdSelection, AdTerms, Moment, moment_of
from vedette.web.commands.ads_text import check_landing_url
from vedette.web.public.ads import ClickOutcome, ShownAd
from vedette.web.public.visits import Visitor, hash_clicker

REFRESH_EVERY_S = 1.0
_UNAVAILABLE = "the ads are not available right now"


class AdSettings(NamedTuple):
    """The configured settings of ads: terms, the policy that chooses, how much it explores, the time zone of days."""

    terms: AdTerms
    policy: str
    exploration: float
    zone: ZoneInfo

    def create_policy(self, chosen: str) -> ScorePolicy:
        """Create the policy that the operator has chosen at runtime, else the configured one."""
        return create_ad_policy(chosen or self.policy, self.exploration)


def build_settings(serve: Serve) -> AdSettings:
    """Build the settings of ad selection from the configuration."""
    terms = AdTerms(serve.sponsored_slots, Decimal(serve.sponsored_reserve))
    return AdSettings(terms, serve.sponsored_policy, serve.sponsored_exploration / 100, ZoneInfo(serve.time_zone))


class LiveAdServer:
    """A ``web.public.ads.AdServer`` over stored ads: selects ads and charges clicks.

    ``seed`` is for draws between equal ads; random unless a test sets it.
    """

    def __init__(
        self,
        storage: AdStorage,
        settings: AdSettings,
        salt: Callable[[str], bytes],
        wall: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        self._storage, self._settings, self._salt, self._wall = storage, settings, salt, wall
        self._ledger: Ledger | None = None
        self._market = AdMarket({}, {}, {})
        rng = rng_for(secrets.randbits(63) if seed is None else seed, "serve/sponsor")
        self._selection = AdSelection(storage.reader, settings.create_policy(""), settings.terms, rng)
        self._refreshed_s = float("-inf")
        self._trouble = ""

    # the port

    def choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:
        """Choose the ads for a search query and record their impressions; none for bots."""
        if visit.filter_reason or not query:
            return ()
        try:
            found = self._choose_ads(query, visit)
        except (StoreError, ClusterError, OSError) as error:
            self._report_trouble(str(error))
            return ()
        self._report_trouble("")
        return found

    def charge_click(self, showing: str, visit: Visitor) -> ClickOutcome:
        """Charge an ad click in the ledger and return its target URL.

        It is charged at once or not at all; the user is redirected either way, unless the ad was revoked.
        """
        try:
            return self._record_click(showing, visit)
        except (StoreError, ClusterError, OSError) as error:
            self._report_trouble(str(error))
            return ClickOutcome(refusal=_UNAVAILABLE)

    def count_forged_click(self) -> None:
        """Count an ad click with a forged token, so that the operator sees it."""
        try:
            self._open_ledger().count_refused_click(self._get_moment().day, ClickRejection.FORGED.value)
        except (StoreError, ClusterError, OSError) as error:
            self._report_trouble(str(error))

    def _choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:
        now = self._get_moment()
        self._refresh(now)
        shown = self._selection.show(
            query, self._hash_address(visit, now), now, self._open_ledger(), lambda: secrets.token_hex(16)
        )
        return tuple(self._build_ad(showing) for showing in shown)

    def _build_ad(self, showing: AdImpression) -> ShownAd:
        ad = self._market.ads[showing.ad]
        return ShownAd(showing.token, showing.at_s, ad.title, ad.text, ad.url, showing.phrase)

    def _record_click(self, token: str, visit: Visitor) -> ClickOutcome:
        now = self._get_moment()
        self._refresh(now)
        ledger = self._open_ledger()
        showing = ledger.find_impression(token)
        if showing is None:
            return ClickOutcome(refusal=ClickRejection.FORGED.value)
        visitor = self._hash_address(visit, now)
        clicked = self._selection.click(showing, visitor, now, ledger, is_bot=bool(visit.filter_reason))
        why = clicked.objection.value if clicked.objection else ""
        ad = self._market.ads.get(showing.ad)
        if ad and self._selection.is_running(showing.ad, showing.phrase):
            return ClickOutcome(ad.url, why)
        # A click on a revoked ad is reported as such, whatever else is wrong with it.
        return ClickOutcome(refusal=(check_landing_url(ad.url) if ad else "") or ClickRejection.OFF_TARGET.value)

    def _refresh(self, now: Moment) -> None:
        """Reload running ads and ledger counts for ad selection, at most once a second; revoked ads drop out."""
        if 0 <= now.at_s - self._refreshed_s < REFRESH_EVERY_S:
            return
        before, self._market = self._market, self._storage.load_market()
        if self._market.policy != before.policy:
            self._selection.use_policy(self._settings.create_policy(self._market.policy))
        self._selection.set_market(self._market.list_running(now.day), self._market.get_budgets())
        self._selection.refresh(now)
        self._refreshed_s = now.at_s

    def _hash_address(self, visit: Visitor, now: Moment) -> str:
        return hash_clicker(visit.address, self._salt(time.strftime("%Y-%m-%d", time.gmtime(now.at_s))))

    def _open_ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = self._storage.open_ledger()
        return self._ledger

    def _get_moment(self) -> Moment:
        return moment_of(datetime.fromtimestamp(self._wall(), self._settings.zone))

    def _report_trouble(self, trouble: str) -> None:
        """Report a problem of ad selection on stderr, once until it is resolved."""
        if trouble and trouble != self._trouble:
            sys.stderr.write(f"vedette: no sponsored results for now: {trouble}\n")
            sys.stderr.flush()
        self._trouble = trouble
