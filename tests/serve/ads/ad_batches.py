"""Batches of ads for tests of ad policies."""

from dataclasses import replace
from typing import Any

import numpy as np

from vedette.serve.ads.candidates import AdCandidates

INTS = ("ad", "phrase", "advertiser", "cluster")
FLOATS = (
    *("bid", "asked", "shown", "views", "clicked", "prior_clicked", "prior_shown", "remaining", "budget"),
    *("asked_then", "shown_then", "clicked_then"),
)


def ads(rows: int, **columns: Any) -> AdCandidates:
    """Return ads of one phrase that were never shown, of different advertisers, with a bid of 1.00 and no budget."""
    usual: dict[str, Any] = {name: np.zeros(rows, np.int64) for name in INTS}
    usual |= {name: np.zeros(rows) for name in FLOATS}
    usual |= {"ad": np.arange(rows), "advertiser": np.arange(rows), "bid": np.full(rows, 100.0)}
    usual |= {"remaining": np.full(rows, np.inf), "budget": np.full(rows, np.inf)}
    given = {name: np.asarray(values, usual[name].dtype) for name, values in columns.items()}
    if "shown" in given and "views" not in given:
        given["views"] = given["shown"]
    return replace(AdCandidates(**usual), **given)


def drawn_ads(rng: np.random.Generator, rows: int) -> AdCandidates:
    """Draw any ads with any valid counts."""
    shown = rng.integers(0, 200, rows).astype(np.float64)
    budget = np.where(rng.random(rows) < 0.5, rng.integers(2_000, 9_000, rows), np.inf)
    return ads(
        rows,
        phrase=rng.integers(0, 3, rows),
        cluster=rng.integers(0, 2, rows),
        bid=rng.integers(1, 1_000, rows),
        asked=np.full(rows, 250.0),
        shown=shown,
        views=shown * rng.uniform(0.3, 1.0, rows),
        clicked=np.floor(shown * rng.random(rows)),
        remaining=np.where(np.isinf(budget), np.inf, np.maximum(budget - 500, 1_000)),
        budget=budget,
    )
