"""Ads live and in the lab: one history of searches and clicks, decisions compared bit for bit."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.runtime.ads.ads_folder import SERVE, ad, ordered, sponsor
from tests.runtime.ads.test_selection import START_S, Clock

from vedette.adapters.ads.campaign_store import AdTarget
from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.config import Serve
from vedette.lab.runs.ads.live_market import MemoryLedger
from vedette.policy import rng_for
from vedette.runtime.ads.storage import FolderAdStorage
from vedette.serve.ads.click_validity import ClickRejection
from vedette.serve.ads.ledger import AdImpression
from vedette.serve.ads.live_policies import AD_POLICIES
from vedette.serve.ads.selection import AdSelection, AdTerms, Moment, moment_of
from vedette.web.commands.ads_commands import AdCommand, ReviewAd, SaveAd, SaveAdvertiser, SaveCampaign
from vedette.web.commands.ads_text import parse_advertiser, parse_campaign
from vedette.web.public.visits import Visitor, hash_clicker

PHRASES = ("red shoes", "blue hats", "green tea")
SEED = 5


class Step(NamedTuple):
    """A search, which of the ads is clicked some seconds later, and how often."""

    wait_s: float
    query: str
    visitor: Visitor
    clicks: tuple[int, ...]


def history(size: int) -> Iterator[Step]:
    """Many people and one who searches and clicks excessively, over more than a day; second clicks are by programs."""
    rng = rng_for(SEED, "tests/ads/history")
    for number in range(size):
        who = 999 if number % 3 == 0 else number
        visitor = Visitor(f"198.51.{who // 250}.{who % 250}", "Browser")
        clicks = tuple(rng.integers(0, 3, 2).tolist()) if rng.random() < 0.4 else ()
        yield Step(float(rng.choice([2.0, 60.0, 700.0, 5_000.0])), str(rng.choice(PHRASES)), visitor, clicks)


def open_market(folder: Path) -> None:
    """Open five campaigns of two advertisers, one with a total budget; one phrase has its own bid."""
    orders: list[AdCommand] = [SaveAdvertiser(parse_advertiser("ann", budget="2.00"))]
    orders.append(SaveAdvertiser(parse_advertiser("bob")))
    for number in range(1, 6):
        name, owner = f"c{number}", "ann" if number % 2 else "bob"
        row = ad(name, f"0.{20 + 10 * number}", PHRASES[number % 3])
        more = AdTarget("exact", PHRASES[(number + 1) % 3], "0.35")
        row = row._replace(targets=(*row.targets, more))
        orders += [SaveCampaign(parse_campaign(name, owner, "1.50")), SaveAd(row), ReviewAd(number, "approved")]
    ordered(folder, *orders)


class LabAgent:
    """The lab's agent: the same selection with an in-memory ledger."""

    def __init__(self, folder: Path, serve: Serve) -> None:
        terms = AdTerms(serve.sponsored_slots, Decimal(serve.sponsored_reserve))
        policy, rng = AD_POLICIES[serve.sponsored_policy](), rng_for(SEED, "serve/sponsor")
        self.ledger = MemoryLedger()
        self._selection = AdSelection(self.ledger, policy, terms, rng)
        self._market, self._tokens = FolderAdStorage(folder).load_market(), count()

    def show(self, step: Step, now: Moment) -> list[AdImpression]:
        """Answer a search."""
        self._refresh(now)
        return self._selection.show(step.query, _mark(step), now, self.ledger, lambda: str(next(self._tokens)))

    def click(self, shown: AdImpression, step: Step, now: Moment, *, is_bot: bool) -> str:
        """Charge a click."""
        self._refresh(now)
        found = self._selection.click(shown, _mark(step), now, self.ledger, is_bot=is_bot)
        return found.objection.value if found.objection else ""

    def _refresh(self, now: Moment) -> None:
        self._selection.set_market(self._market.list_running(now.day), self._market.get_budgets())
        self._selection.refresh(now)


def _mark(step: Step) -> str:
    return hash_clicker(step.visitor.address, b"salt")


def _without_token(showings: list[AdImpression]) -> list[AdImpression]:
    return [one._replace(token="") for one in showings]


@pytest.mark.parametrize("name", AD_POLICIES)
def test_the_lab_decides_as_the_server_does(name: str, tmp_path: Path) -> None:
    """For every policy: ads, slots, scores, propensities, prices, holds, reasons, charges and refusals are the same."""
    serve = Serve(sponsored=True, sponsored_policy=name)
    assert serve.sponsored_slots == SERVE.sponsored_slots == 2
    open_market(tmp_path)
    clock = Clock(START_S)
    live, lab = sponsor(tmp_path, clock, serve, SEED), LabAgent(tmp_path, serve)
    refusals, counted = set[str](), set[bool]()
    for step in history(40):
        clock.now_s += step.wait_s
        there = lab.show(step, moment_of(datetime.fromtimestamp(clock.now_s, UTC)))
        here = live.choose_ads(step.query, step.visitor)
        known = {one.token: one for one in LedgerReader(tmp_path).read_latest(5)}
        assert _without_token([known[one.impression] for one in here]) == _without_token(there)
        counted.update(one.counted for one in there)
        for place, slot in enumerate(step.clicks):
            clock.now_s += 3
            if slot < len(here):
                now = moment_of(datetime.fromtimestamp(clock.now_s, UTC))
                visitor = step.visitor._replace(filter_reason="a program" if place else "")
                answer = live.charge_click(here[slot].impression, visitor)
                assert answer.refusal == lab.click(there[slot], step, now, is_bot=bool(place))
                refusals.add(answer.refusal)
    day = datetime.fromtimestamp(START_S, UTC).date()
    assert dict(LedgerReader(tmp_path).read_balances(day)) == dict(lab.ledger.read_balances(day))
    assert LedgerReader(tmp_path).read_counts() == dict(sorted(lab.ledger.read_counts().items()))
    assert {"", ClickRejection.BOT.value} < refusals  # charged and refused: the history is not empty
    assert len(counted) == 2  # one visitor searches more often than is counted
    assert sum(balance.charged for balance in lab.ledger.read_balances(day).values()) > Decimal(0)
