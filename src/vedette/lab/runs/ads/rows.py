"""A run of a market in numbers: what was earned, against what could be; how budgets were spent in the course of a day.

Seeds come in blocks of ``BLOCK`` that are run side by side, since that takes little longer than one seed; what a seed
gives depends on nothing but its number. ``revenue`` is in units of money, over all days; rows with ``day`` tell of one.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from vedette.errors import UsageError
from vedette.lab.bounds.ads_lp import best_revenue
from vedette.lab.core.experiment import Cell, Measured, Metric
from vedette.lab.core.registry import DEFAULT, policies, policy_named
from vedette.lab.runs.ads.lockstep import run_lockstep
from vedette.lab.runs.ads.run import BEATS, Outcome, knowing, run_market
from vedette.lab.worlds.ads_market import SLOTS, MarketDay, Setting, market_days, setting_of
from vedette.policy import Floats
from vedette.serve.ads.by_score import ByScore

__all__ = ["BOUNDS", "MEASURED", "OURS", "OWN", "market_rows", "names_of_policies"]

STAGE, OURS = "ads", "believed"
BOUNDS = ("bound-known", "bound-lp")
BLOCK = 20
MEASURED = ("revenue", "overspend")
OWN: Mapping[str, Metric] = {
    "of_lp": Metric("revenue as a share of the fluid optimum", "share", True),
    "of_known": Metric("revenue as a share of what the default earns with known rates", "share", True),
    "ctr": Metric("clicks by showings", "share", None),
    "used": Metric("share of all budgets that was spent", "share", None),
    "off_plan": Metric(
        "distance from budget times the day's traffic so far, by budgets and hours, in budgets", "share"
    ),
    "ahead": Metric("the part of it that was spent too soon", "share", False),
    "slots_off": Metric("how far learned factors of lower slots are from the truth in the end, on average", "", False),
}
# One with elements of its own for each market; see ``market_lockstep``.
_ALONE = ("two-level",)


def names_of_policies() -> tuple[str, ...]:
    """The default, all policies, and the bounds."""
    return (DEFAULT, *policies(STAGE), *BOUNDS)


def market_rows(cell: Cell) -> list[Measured]:
    """The row of a cell, and one for each of its days."""
    name, slots = cell.world.partition(":")[2], _slots(cell)
    known = _outcome(name, "bound-known", slots, cell.seed)
    lp = _best(name, slots, cell.seed)
    if cell.policy == "bound-lp":
        return [_earned(lp.sum(), lp.sum(), known.revenue.sum()), *_by_day(lp)]
    found = _outcome(name, cell.policy, slots, cell.seed)
    told = _earned(found.revenue.sum(), lp.sum(), known.revenue.sum()) | _spending(found)
    if slots > 1 and cell.policy in (DEFAULT, OURS):
        told["slots_off"] = float(np.abs(found.seen - _factors(setting_of(name))[:slots])[1:].mean())
    return [told, *_by_day(found.revenue)]


def _slots(cell: Cell) -> int:
    if cell.budget != int(cell.budget) or not 1 <= cell.budget <= len(SLOTS):
        raise UsageError(f"a budget of {cell.experiment} is a number of slots, from 1 to {len(SLOTS)}")
    return int(cell.budget)


def _earned(revenue: float, lp: float, known: float) -> dict[str, float]:
    return {"revenue": revenue / 100, "of_lp": revenue / lp, "of_known": revenue / known}


def _by_day(revenue: Floats) -> list[dict[str, float]]:
    return [{"day": float(day), "revenue": cents / 100} for day, cents in enumerate(revenue.tolist(), 1)]


def _spending(found: Outcome) -> dict[str, float]:
    limited = np.isfinite(found.budget[0])
    share = found.spent[:, :, limited] / found.budget[:, None, limited]
    # Beats are of equal numbers of queries, so the traffic so far is their number.
    off = share - (np.arange(1, BEATS + 1) / BEATS)[:, None]
    return {
        "overspend": found.overspend / 100,
        "ctr": float(found.clicked.sum() / max(found.shown.sum(), 1.0)),
        "used": float(found.spent[:, -1, limited].sum() / found.budget[:, limited].sum()),
        "off_plan": float(np.abs(off).mean()),
        "ahead": float(np.maximum(off, 0.0).mean()),
    }


def _outcome(name: str, policy: str, slots: int, seed: int) -> Outcome:
    """One by one where it must be, else with the rest of its block."""
    block, at = divmod(seed - 1, BLOCK)
    chosen = policy_named(STAGE, OURS if policy in (DEFAULT, "bound-known") else policy)
    if isinstance(chosen, ByScore) and chosen.name not in _ALONE:
        return _outcomes(name, policy, slots, block)[at]
    return run_market(_markets(name, block)[at], chosen, slots, _factors(setting_of(name)), seed)


@lru_cache(maxsize=2)  # cells of one world come one after the other
def _markets(name: str, block: int) -> list[list[MarketDay]]:
    setting = setting_of(name)
    return [market_days(setting, seed) for seed in range(1 + block * BLOCK, 1 + (block + 1) * BLOCK)]


@lru_cache(maxsize=8)
def _outcomes(name: str, policy: str, slots: int, block: int) -> list[Outcome]:
    markets = _markets(name, block)
    factors = _factors(setting_of(name))
    if policy == "bound-known":
        return run_lockstep([knowing(days) for days in markets], policy_named(STAGE, OURS), slots, factors, block)
    return run_lockstep(markets, policy_named(STAGE, OURS if policy == DEFAULT else policy), slots, factors, block)


@lru_cache(maxsize=4 * BLOCK)
def _best(name: str, slots: int, seed: int) -> Floats:
    days = _markets(name, (seed - 1) // BLOCK)[(seed - 1) % BLOCK]
    return best_revenue(days, slots, _factors(setting_of(name)))


def _factors(setting: Setting) -> Floats:
    return np.array(setting.factors)
