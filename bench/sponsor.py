"""What does it cost to choose among a hundred ads, and does a day of a million queries give the same balances again?

The first part times the choice of the default policy among candidates of one phrase, and with it prices and reasons for
three slots: CPU microseconds, medians. The ceiling is what no policy can do without, in the same run: a product of two
columns and the place of its maximum. The second part serves a day with the book and the ledger: each query shows an ad,
holds its bid, and one in fifty is clicked and charged. The entries are then replayed into a new ledger, and
both are held against sums made from the entries alone. The last line is one JSON object.

    python bench/sponsor.py [--candidates 100] [--times 5000] [--queries 1000000]
"""

import argparse
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from statistics import median
from time import perf_counter_ns, process_time

import numpy as np

from vedette.lab.baselines.ads.ad_statistics import AdOffers, AdStats
from vedette.policy import rng_for
from vedette.serve.ads.ledger import EntryKind, Ledger, sum_balances
from vedette.serve.ads.placement import place_ads
from vedette.serve.ads.policies.bayes_greedy import BayesGreedy

SEED = 1
MINIMUM = Decimal("0.05")
DAY = date(2024, 1, 1)
PHRASES, ADVERTISERS, BEAT = 40, 60, 5_000
FACTORS = np.array([1.0, 0.55, 0.38])


def book_of(phrases: int, candidates: int, advertisers: int) -> AdStats:
    """Ads with any bids; half of the advertisers have a budget."""
    rng = rng_for(SEED, "bench/sponsor")
    phrase = np.repeat(np.arange(phrases), candidates)
    advertiser = np.concatenate([rng.permutation(advertisers)[:candidates] for _ in range(phrases)])
    bid = rng.integers(20, 900, len(phrase)).astype(np.float64)
    offers = AdOffers(phrase, advertiser, advertiser, bid, *np.zeros((2, len(phrase))))
    budget = np.where(rng.random(advertisers) < 0.5, 1_000_000.0, np.inf)
    return AdStats(offers, budget, FACTORS)


def microseconds(work: Callable[[], object], times: int) -> float:
    """The median of many."""
    taken = []
    for _ in range(times):
        begun = perf_counter_ns()
        work()
        taken.append((perf_counter_ns() - begun) / 1e3)
    return median(taken)


def choice(candidates: int, times: int) -> dict[str, float]:
    """The ceiling, the choice alone, and the choice with prices and reasons."""
    book, policy, rng = (
        book_of(1, candidates, max(candidates, ADVERTISERS)),
        BayesGreedy(),
        rng_for(SEED, "bench/choice"),
    )
    state = policy.observe(policy.start(None), book.all_ads(), 0.0)
    options = book.get_options(0)
    return {
        "ceiling_us": microseconds(lambda: int((options.bid * options.views).argmax()), times),
        "choose_us": microseconds(lambda: policy.choose(state, options, 1, 0.0, rng), times),
        "choose_3_us": microseconds(lambda: policy.choose(state, options, 3, 0.0, rng), times),
        "place_3_us": microseconds(lambda: place_ads(policy, state, options, 3, MINIMUM, 0.0, rng), times),
    }


def served(queries: int) -> Ledger:
    """A day's queries, one after the other, into a ledger."""
    book, policy, ledger = book_of(PHRASES, 9, ADVERTISERS), BayesGreedy(), Ledger()
    rng = rng_for(SEED, "bench/day")
    phrases, lucky = rng.integers(0, PHRASES, queries).tolist(), (rng.random(queries) < 0.02).tolist()
    state = policy.start(None)
    none = np.zeros(0, np.int64)
    for query, (phrase, clicked) in enumerate(zip(phrases, lucky, strict=True)):
        at_s = query / queries * 86_400.0
        if query % BEAT == 0:
            state = policy.observe(state, book.all_ads(), at_s)
            ledger.expire_holds(at_s - 600.0, at_s)
        options = book.get_options(phrase)
        rows = policy.choose(state, options, 1, at_s, rng).rows
        if not len(rows):
            book.record_query(phrase, none, none.astype(bool), FACTORS)
            continue
        cents, payer = float(options.bid[rows[0]]), int(options.advertiser[rows[0]])
        budget = Decimal("10000.00") if np.isfinite(options.budget[rows[0]]) else None
        held = ledger.hold(f"t{query}", f"a{payer}", DAY, int(cents) * Decimal("0.01"), budget, at_s)
        paid = clicked and held is not None and ledger.charge(f"t{query}", at_s) is not None
        book.record_query(phrase, rows, np.array([paid]), options.bid[rows])
    return ledger


def main() -> None:
    """Run it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("--candidates", 100), ("--times", 5_000), ("--queries", 1_000_000)):
        arguments.add_argument(name, type=int, default=usual)
    asked = arguments.parse_args()
    told = choice(asked.candidates, asked.times)
    for name, value in told.items():
        print(f"{name:12}{value:10.1f}")
    begun = process_time()
    ledger = served(asked.queries)
    serve_s = process_time() - begun
    begun = process_time()
    again = Ledger(ledger.entries)
    replay_s = process_time() - begun
    sums = sum_balances(ledger.entries)
    same = again.entries == ledger.entries and all(
        again.get_balance(*key) == ledger.get_balance(*key) == found for key, found in sums.items()
    )
    charged = sum((each.charged for each in sums.values()), Decimal("0.00"))
    clicks = sum(entry.kind is EntryKind.CHARGED for entry in ledger.entries)
    print(
        f"{asked.queries} queries served in {serve_s:.0f} s of CPU, {len(ledger.entries)} entries, {clicks} clicks, "
        f"{charged} charged; replayed in {replay_s:.1f} s: {'the same' if same else 'OTHER'} balances"
    )
    print(
        json.dumps(
            {**told, "serve_s": serve_s, "replay_s": replay_s, "same": same, "charged": str(charged), **vars(asked)}
        )
    )


if __name__ == "__main__":
    main()
