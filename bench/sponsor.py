"""What does it cost to choose among a hundred ads, and to serve a day of searches?

The first part times the choice of the default policy among candidates of one phrase, and with it prices and reasons for
three slots: CPU microseconds, medians. The ceiling is what no policy can do without, in the same run: a product of two
columns and the place of its maximum. The second part serves a day as a server does, counts read again for every search,
with a ledger in memory: CPU microseconds a search. The last line is one JSON object.

    python bench/sponsor.py [--candidates 100] [--times 5000] [--queries 20000]
"""

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from statistics import median
from time import perf_counter_ns, process_time

import numpy as np

from vedette.lab.baselines.ads.ad_statistics import AdOffers, AdStats
from vedette.lab.runs.ads.live_market import MemoryLedger
from vedette.policy import rng_for
from vedette.serve.ads.catalog import RunningAd
from vedette.serve.ads.ledger import PayerBudget
from vedette.serve.ads.matching import MatchType
from vedette.serve.ads.policies.bayes_greedy import BayesGreedy, PacedGreedy
from vedette.serve.ads.selection import AdSelection, AdTerms, moment_of, place_ads

SEED = 1
MINIMUM = Decimal("0.05")
START_S = 1_704_067_200.0  # 2024-01-01
PHRASES, ADVERTISERS = 40, 60
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


def served(queries: int) -> tuple[float, MemoryLedger]:
    """A day's searches selected as on a server, with a ledger in memory; CPU seconds, and the ledger's content."""
    rng = rng_for(SEED, "bench/day")
    phrases, lucky = rng.integers(0, PHRASES, queries).tolist(), (rng.random(queries) < 0.02).tolist()
    running = [
        RunningAd(number, f"a{number % ADVERTISERS}", ((MatchType.EXACT, f"p{number % PHRASES}", 20 + number % 800),))
        for number in range(9 * PHRASES)
    ]
    ledger, tokens = MemoryLedger(), count()
    selection = AdSelection(ledger, PacedGreedy(), AdTerms(1, MINIMUM), rng)
    selection.set_market(running, {f"a{number}": PayerBudget(Decimal("100.00")) for number in range(ADVERTISERS)})
    begun = process_time()
    for query, (phrase, clicked) in enumerate(zip(phrases, lucky, strict=True)):
        now = moment_of(datetime.fromtimestamp(START_S + query / queries * 86_400.0, UTC))
        selection.refresh(now)
        shown = selection.show(f"p{phrase}", f"v{query}", now, ledger, lambda: str(next(tokens)))
        if clicked and shown:
            after = moment_of(datetime.fromtimestamp(now.at_s + 1.0, UTC))
            selection.click(shown[0], f"v{query}", after, ledger, is_bot=False)
    return process_time() - begun, ledger


def main() -> None:
    """Run it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("--candidates", 100), ("--times", 5_000), ("--queries", 20_000)):
        arguments.add_argument(name, type=int, default=usual)
    asked = arguments.parse_args()
    told = choice(asked.candidates, asked.times)
    for name, value in told.items():
        print(f"{name:12}{value:10.1f}")
    serve_s, ledger = served(asked.queries)
    balances = ledger.read_balances(datetime.fromtimestamp(START_S, UTC).date()).values()
    charged, most = sum(each.charged for each in balances), max(each.charged for each in balances)
    told["search_us"] = serve_s / asked.queries * 1e6
    print(f"{'search_us':12}{told['search_us']:10.1f}   {charged} charged, {most} of 100.00 at most")
    print(json.dumps({**told, "charged": str(charged), **vars(asked)}))


if __name__ == "__main__":
    main()
