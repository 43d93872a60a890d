"""Ads experiment (``sponsor-promises``): do ad policies keep their proven guarantees? A small market for each seed.

    market:cells   figure 6.2 of Pandey08: GREEDY and MSVV with known rates, in four cells: rates of 1 or any, without
                   and with budgets. A third of the markets is random, a third is a trap for GREEDY, and in a third
                   balancing can do no better than 1 - 1/e
    market:mix     theorem 4: how often MIX shows an ad that it should not
    market:bpol    theorem 3, with its constant: the revenue of BPOL of MIX against the fluid optimum

A row has what was ``reached`` and ``promised``; ``kept`` is 1 if the guarantee held, and ``empty`` is 1 if nothing was
guaranteed (a bound below 0).
"""

from collections.abc import Iterator, Mapping

import numpy as np

from vedette.errors import UsageError
from vedette.lab.baselines.ads.ad_statistics import AdOffers
from vedette.lab.baselines.ads.bpol import Bpol
from vedette.lab.bounds.ads_lp import solve_days
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.runs.ads.run import AdServer, run_market, with_known_rates
from vedette.lab.worlds.ads_market import AdMarketDay
from vedette.policy import Floats, Ints, rng_for
from vedette.serve.ads.policies.bmix import Mix
from vedette.serve.ads.policies.greedy import Greedy, Msvv
from vedette.timeutil import DAY_S

GUARANTEES = {"cells": ("greedy", "msvv"), "mix": ("mix",), "bpol": ("bpol",)}
FACTORS: Floats = np.ones(4)
QUERIES = 1_000
REPEATS = 4
MSVV_RATIO = 1 - np.exp(-1)


def build_guarantee_rows(world: str, policy: str, slots: int, seed: int) -> list[Measurements]:
    """Build the rows of the ad guarantees experiment for one small market."""
    rng = rng_for(seed, f"lab/market/{world}")
    if world == "cells":
        return [_run_cell(cell, policy, seed, rng) for cell in (1, 2, 3, 4)]
    return [_run_mix(slots, seed, rng)] if world == "mix" else [_run_bpol(seed, rng)]


def _build_row(reached: float, promised: float) -> dict[str, float]:
    is_kept = reached >= promised - 1e-9
    return {"reached": reached, "promised": promised, "kept": float(is_kept), "empty": float(promised <= 0)}


def _build_day(
    phrase: Ints, advertiser: Ints, bid: Floats, rate: Floats, budget: Floats, query: Ints, seed: int
) -> AdMarketDay:
    offers = AdOffers(phrase, advertiser, advertiser, bid, *np.zeros((2, len(bid))))
    place = np.array([np.count_nonzero(phrase[:at] == one) for at, one in enumerate(phrase.tolist())])
    at_s = np.linspace(0.0, DAY_S, len(query), endpoint=False)
    return AdMarketDay(offers, rate, np.zeros(0, np.int64), budget, query, at_s, place, seed, 0)


def _run_cell(cell: int, policy: str, seed: int, rng: np.random.Generator) -> Measurements:
    """Check an ad policy's guarantee in a market of figure 6.2: rates of 1 in cells 1 and 2, budgets in 2 and 4."""
    day = (_random_market, _greedy_trap_market, _triangular_market)[seed % 3](seed, rng)
    day = day._replace(rate=rng.uniform(0.1, 0.9, len(day.rate)) if cell > 2 else np.ones(len(day.rate)))
    if cell % 2:
        day = day._replace(budget=np.full(len(day.budget), np.inf))
    best = float(solve_days([day], 1, FACTORS).sum())
    chosen = Greedy() if policy == "greedy" else Msvv()
    # With rates of 1 nothing is random.
    lucks = [day._replace(seed=seed * REPEATS + luck) for luck in range(REPEATS if cell > 2 else 1)]
    earned = np.mean([run_market(with_known_rates([each]), chosen, 1, FACTORS, seed).revenue.sum() for each in lucks])
    share = 1.0 if cell % 2 else MSVV_RATIO if (policy, cell) == ("msvv", 2) else 0.5
    # The last click of each budget may not fit; and an average over few draws is no mean.
    slack = _unspent_share(day, best) if cell % 2 == 0 else 0.0
    chance = 3 * float(day.offers.bid.max()) * np.sqrt(len(day.query) / REPEATS) / best if cell > 2 else 0.0
    return {"cell": float(cell), **_build_row(float(earned) / best, share - slack - chance)}


def _unspent_share(day: AdMarketDay, best: float) -> float:
    return float(np.isfinite(day.budget).sum() * day.offers.bid.max() / 2 / best)


def _random_market(seed: int, rng: np.random.Generator) -> AdMarketDay:
    phrase, advertiser = (each.ravel() for each in np.meshgrid(np.arange(6), np.arange(5)))
    bid = rng.integers(1, 11, len(phrase)).astype(np.float64)
    query = rng.integers(0, 6, 600)
    return _build_day(
        phrase, advertiser, bid, np.ones(len(bid)), rng.integers(200, 1_500, 5).astype(np.float64), query, seed
    )


def _greedy_trap_market(seed: int, rng: np.random.Generator) -> AdMarketDay:
    """Build an ad market that traps GREEDY: the higher bidder for the first phrase is the only one for the second."""
    times = int(rng.integers(100, 300))
    bid = np.array([101.0, 100.0, 100.0])
    query = np.repeat([0, 1], times)
    return _build_day(np.array([0, 0, 1]), np.array([0, 1, 0]), bid, np.ones(3), np.full(2, 100.0 * times), query, seed)


def _triangular_market(seed: int, rng: np.random.Generator) -> AdMarketDay:
    """Build a triangular ad market: each phrase has one bidder fewer, and comes as often as a budget lasts."""
    payers, times = 12, int(rng.integers(40, 80))
    pairs = [(phrase, payer) for phrase in range(payers) for payer in range(phrase, payers)]
    phrase, advertiser = (np.array(column) for column in zip(*pairs, strict=True))
    bid = np.full(len(pairs), 100.0)
    query = np.repeat(np.arange(payers), times)
    return _build_day(phrase, advertiser, bid, np.ones(len(bid)), np.full(payers, 100.0 * times), query, seed)


def _run_mix(slots: int, seed: int, rng: np.random.Generator) -> Measurements:
    """Check MIX's guarantee: showings of ads not among the best, against 8 ln N b^2 / gap^2 + 1 + pi^2/3 for each."""
    day = _small_market(phrases=1, ads=5, seed=seed, rng=rng)
    desk = AdServer(day, Mix(), slots, FACTORS, seed)
    paid = np.zeros(len(day.budget))
    for query in range(len(day.query)):
        desk.answer(query, paid)
    shown = desk.ad_store.all_ads().shown
    value = day.offers.bid * day.rate
    order = np.argsort(-value)
    wrong, worst = order[slots:], value[order[slots - 1]]
    bounds = _allowed_mistakes(len(day.query), day.offers.bid[wrong], worst - value[wrong])
    share = float((shown[wrong] / bounds).max())
    return {"reached": -share, "promised": -1.0, "kept": float(share <= 1), "empty": 0.0}


def _allowed_mistakes(queries: int, bid: Floats, gap: Floats) -> Floats:
    """Compute the mistakes that theorem 4 allows MIX with each ad."""
    found: Floats = np.ceil(8 * np.log(queries) * bid**2 / gap**2) + 1 + np.pi**2 / 3
    return found


def _run_bpol(seed: int, rng: np.random.Generator) -> Measurements:
    """Check BPOL: revenue against half the optimum, less (types + sum over phrases of batches x mistakes) r_max / 2."""
    # Nothing is guaranteed for close calls, so every other market has two ads per phrase that are far apart.
    ads = 3 if seed % 2 else 2
    day = _small_market(phrases=2, ads=ads, seed=seed, rng=rng)
    if ads == 2:
        far = np.where(day.offers.advertiser == day.offers.phrase, 0.7, 0.05)
        day = day._replace(rate=far + rng.uniform(0.0, 0.25, len(far)))
    budget = np.where(rng.random(ads) < 0.6, np.rint(rng.uniform(5_000, 30_000, ads)), np.inf)
    day = day._replace(budget=budget)
    best = float(solve_days([day], 1, FACTORS).sum())
    mistakes = sum(_count_batch_mistakes(day, phrase) for phrase in range(2))
    constant = float(day.offers.bid.max()) * (len(budget) + mistakes)
    earned = float(run_market([day], Bpol(), 1, FACTORS, seed).revenue.sum())
    return _build_row(earned / best, 0.5 - constant / 2 / best)


def _count_batch_mistakes(day: AdMarketDay, phrase: int) -> float:
    """Count the mistakes that BPOL's guarantee allows in all batches of a phrase: each ad against the next better."""
    own = day.offers.phrase == phrase
    bid, value = day.offers.bid[own], (day.offers.bid * day.rate)[own]
    queries = int(np.count_nonzero(day.query == phrase))
    return len(bid) * sum(
        float(_allowed_mistakes(queries, bid[at : at + 1], np.array([gap]))[0]) for at, gap in _iter_nearest_gaps(value)
    )


def _iter_nearest_gaps(value: Floats) -> Iterator[tuple[int, float]]:
    for at, one in enumerate(value.tolist()):
        better = value[value > one]
        if len(better):
            yield at, float(better.min() - one)


def _small_market(phrases: int, ads: int, seed: int, rng: np.random.Generator) -> AdMarketDay:
    phrase, advertiser = (each.ravel() for each in np.meshgrid(np.arange(phrases), np.arange(ads), indexing="ij"))
    bid = rng.integers(30, 101, len(phrase)).astype(np.float64)
    rate = rng.uniform(0.05, 0.95, len(phrase))
    query = rng.integers(0, phrases, QUERIES)
    return _build_day(phrase, advertiser, bid, rate, np.full(ads, np.inf), query, seed)


OWN_METRICS: Mapping[str, Metric] = {
    "reached": Metric(
        "revenue relative to the fluid optimum; for MIX, minus the worst ad's mistakes relative to those allowed"
    ),
    "promised": Metric("the proven lower bound"),
    "kept": Metric("share of markets in which the bound was reached", "share", True),
    "empty": Metric("share of markets without a guarantee", "share"),
}


class AdGuarantees(Experiment):
    """The ad guarantees experiment (``sponsor-promises``)."""

    name = "sponsor-promises"
    about = "Do greedy, msvv, mix and bpol keep their proven guarantees? (budget: slots, for mix)"
    worlds = ("market",)
    # If the command line names no world.
    usual_worlds = tuple(f"market:{name}" for name in GUARANTEES)
    metrics = tuple(OWN_METRICS)
    own = OWN_METRICS
    budgets = (1.0,)
    policies = tuple(name for names in GUARANTEES.values() for name in names)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the ad guarantees experiment on one small market; no rows if nothing is proven for the policy."""
        world = cell.world.partition(":")[2]
        if world not in GUARANTEES:
            raise UsageError(f"{self.name} runs only on market:{', market:'.join(GUARANTEES)}")
        return (
            build_guarantee_rows(world, cell.policy, int(cell.budget), cell.seed)
            if cell.policy in GUARANTEES[world]
            else []
        )


EXPERIMENT = AdGuarantees()
