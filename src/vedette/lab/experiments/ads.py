"""Ads experiment (``sponsor``): which ads to show, so that revenue is highest and no budget is exceeded?

On synthetic ad markets (``vedette.lab.worlds.ads_market``): each query shows as many ads as the budget says (slots),
clicks are charged at the bid as in Pandey08, chapter 6, and all policies get the same queries and click draws.
``bound-lp`` is the fluid optimum of each day, ``bound-known`` the default with true rates. ``revenue`` is in units of
money, over all days; rows with ``day`` are of one.

Markets with ``+live`` (``--charge live``) are charged like on a server, with second prices, holds and late clicks:
``of_holds_free`` is the share of the revenue that holds and limits on clicks leave, and attacks, on the last day,
report their effect on the victim. ``--to`` limits markets to their first days.

Seeds come in blocks of ``BLOCK_SIZE`` that run side by side, since that takes little longer than one seed; the rows of
a seed depend only on its number.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from vedette.errors import UsageError
from vedette.lab.bounds.ads_lp import solve_days
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.core.registry import DEFAULT, find_policy, load_policies
from vedette.lab.runs.ads.live_market import Attack, find_victim, run_live_market
from vedette.lab.runs.ads.lockstep import run_lockstep
from vedette.lab.runs.ads.run import PERIODS_PER_DAY, MarketOutcome, run_market, with_known_rates
from vedette.lab.worlds.ads_market import AD_MARKETS, SLOTS, AdMarketDay, draw_market_days, parse_ad_market
from vedette.policy import Floats
from vedette.serve.ads.by_score import ScorePolicy
from vedette.serve.ads.live_policies import DEFAULT_AD_POLICY

STAGE, DEFAULT_POLICY, LIVE_POLICY = "ads", "believed", DEFAULT_AD_POLICY
BOUNDS = ("bound-known", "bound-lp")
BLOCK_SIZE = 20
METRIC_NAMES = ("revenue", "overspend")
OWN_METRICS: Mapping[str, Metric] = {
    "of_lp": Metric("revenue as a share of the fluid optimum", "share", True),
    "of_known": Metric("revenue as a share of what the default earns with known rates", "share", True),
    "ctr": Metric("clicks per impression", "share", None),
    "used": Metric("share of all budgets that was spent", "share", None),
    "off_plan": Metric("distance from even spending over the day's traffic, by budget and hour, in budgets", "share"),
    "ahead": Metric("the part of it that was spent too early", "share", False),
    "of_holds_free": Metric("revenue as a share of that without holds and limits on clicks (live)", "share", True),
    "free_clicks": Metric("share of clicks that found the budget spent (live)", "share", False),
    "victim_shown": Metric(
        "impressions of the victim for honest visitors, relative to a run without an attack", "share", True
    ),
    "taken": Metric("share of the victim's budget spent on attackers' clicks", "share", False),
    "slots_off": Metric("mean error of the learned factors of lower slots at the end", "", False),
}
# It has its own elements for each market; see ``runs.ads.lockstep``.
_NOT_BATCHED = ("two-level",)


def _parse_slots(cell: Cell) -> int:
    if cell.budget != int(cell.budget) or not 1 <= cell.budget <= len(SLOTS):
        raise UsageError(f"the budget for {cell.experiment} must be a number of slots from 1 to {len(SLOTS)}")
    return int(cell.budget)


def _revenue_metrics(revenue: float, lp: float, known_revenue: float) -> dict[str, float]:
    return {"revenue": revenue / 100, "of_lp": revenue / lp, "of_known": revenue / known_revenue}


def _build_day_rows(revenue: Floats) -> list[dict[str, float]]:
    return [{"day": float(day), "revenue": cents / 100} for day, cents in enumerate(revenue.tolist(), 1)]


def _spending_metrics(found: MarketOutcome) -> dict[str, float]:
    limited = np.isfinite(found.budget[0])
    share = found.spent[:, :, limited] / found.budget[:, None, limited]
    # Beats are of equal numbers of queries, so the traffic so far is their number.
    off = share - (np.arange(1, PERIODS_PER_DAY + 1) / PERIODS_PER_DAY)[:, None]
    return {
        "overspend": found.overspend / 100,
        "ctr": float(found.clicked.sum() / max(found.shown.sum(), 1.0)),
        "used": float(found.spent[:, -1, limited].sum() / found.budget[:, limited].sum()),
        "off_plan": float(np.abs(off).mean()),
        "ahead": float(np.maximum(off, 0.0).mean()),
    }


def _run_seed(name: str, policy: str, slots: int, seed: int) -> MarketOutcome:
    """Run a seed of the ads experiment with the rest of its block, or alone if the policy cannot be batched."""
    block, at = divmod(seed - 1, BLOCK_SIZE)
    chosen = find_policy(STAGE, DEFAULT_POLICY if policy in (DEFAULT, "bound-known") else policy)
    if isinstance(chosen, ScorePolicy) and chosen.name not in _NOT_BATCHED:
        return _run_block(name, policy, slots, block)[at]
    return run_market(_load_markets(name, block)[at], chosen, slots, _slot_factors(name), seed)


@lru_cache(maxsize=2)  # cells of one world come one after the other
def _load_markets(name: str, block: int) -> list[list[AdMarketDay]]:
    setting = parse_ad_market(name)
    return [draw_market_days(setting, seed) for seed in range(1 + block * BLOCK_SIZE, 1 + (block + 1) * BLOCK_SIZE)]


@lru_cache(maxsize=8)
def _run_block(name: str, policy: str, slots: int, block: int) -> list[MarketOutcome]:
    markets = _load_markets(name, block)
    if policy == "bound-known":
        markets = [with_known_rates(days) for days in markets]
    chosen = find_policy(STAGE, DEFAULT_POLICY if policy in (DEFAULT, "bound-known") else policy)
    return run_lockstep(markets, chosen, slots, _slot_factors(name), block)


@lru_cache(maxsize=4 * BLOCK_SIZE)
def _compute_lp_revenue(name: str, slots: int, seed: int) -> Floats:
    days = _load_markets(name, (seed - 1) // BLOCK_SIZE)[(seed - 1) % BLOCK_SIZE]
    return solve_days(days, slots, _slot_factors(name))


def _slot_factors(name: str) -> Floats:
    return np.array(parse_ad_market(name).factors)


def _run_live(cell: Cell, slots: int) -> list[Measurements]:
    """Run a market that is charged like on a server; an attack is compared with the same market without it."""
    name = cell.world.partition(":")[2]
    setting = parse_ad_market(name)
    days = draw_market_days(setting, cell.seed)[: _count_days(cell)]
    policy = find_policy(STAGE, LIVE_POLICY if cell.policy == DEFAULT else cell.policy)
    if not isinstance(policy, ScorePolicy):
        return []  # it does not run live
    terms = policy, slots, _slot_factors(name), cell.seed
    usual = run_live_market(days, *terms, limits=bool(setting.attack))
    limited = np.isfinite(usual.budget)
    victim = find_victim(days[0])
    # On the last day, when click rates are known.
    attack = Attack(setting.attack, setting.addresses, victim, len(days) - 1) if setting.attack else None
    found = run_live_market(days, *terms, attack)
    metrics = {
        "revenue": float((found.spent - found.attacked).sum()) / 100,
        "overspend": found.overspend / 100,
        "used": float(found.spent[limited].sum() / found.budget[limited].sum()),
        "free_clicks": found.free / max(found.clicked, 1),
    }
    if attack is None:
        return [metrics | {"of_holds_free": float(found.spent.sum() / usual.spent.sum())}]
    taken_share = found.attacked[-1, victim] / found.budget[-1, victim]
    shown_share = found.shown[-1, victim] / max(usual.shown[-1, victim], 1.0)
    return [metrics | {"victim_shown": float(shown_share), "taken": float(taken_share)}]


def _count_days(cell: Cell) -> int | None:
    end = cell.span.end
    if (end and not end.isdecimal()) or cell.span.begin not in ("", "0"):
        raise UsageError("a live market starts on its first day: drop --from and set --to to the number of days")
    return int(end) if end else None


class Ads(Experiment):
    """The ads experiment (``sponsor``)."""

    name = "sponsor"
    about = "Which sponsored results to show, with unknown click rates and daily budgets? (budget: slots)"
    worlds = ("market",)
    usual_worlds = tuple(f"market:{name}" for name in AD_MARKETS)
    metrics = (*METRIC_NAMES, *OWN_METRICS)
    own = OWN_METRICS
    budgets = (1.0,)
    figures = (("revenue", "day"),)

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the policies of the ads experiment: the default, all ad policies, and the bounds."""
        return (DEFAULT, *load_policies(STAGE), *BOUNDS)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the ads experiment on a cell; return the row of a market, and one for each of its days."""
        name, slots = cell.world.partition(":")[2], _parse_slots(cell)
        if parse_ad_market(name).live:
            return [] if cell.policy in BOUNDS else _run_live(cell, slots)
        bound = _run_seed(name, "bound-known", slots, cell.seed)
        lp = _compute_lp_revenue(name, slots, cell.seed)
        if cell.policy == "bound-lp":
            return [_revenue_metrics(lp.sum(), lp.sum(), bound.revenue.sum()), *_build_day_rows(lp)]
        found = _run_seed(name, cell.policy, slots, cell.seed)
        metrics = _revenue_metrics(found.revenue.sum(), lp.sum(), bound.revenue.sum()) | _spending_metrics(found)
        if slots > 1 and cell.policy in (DEFAULT, DEFAULT_POLICY):
            metrics["slots_off"] = float(np.abs(found.slot_factors - _slot_factors(name)[:slots])[1:].mean())
        return [metrics, *_build_day_rows(found.revenue)]


EXPERIMENT = Ads()
