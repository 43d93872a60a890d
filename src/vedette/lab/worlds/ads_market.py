"""Synthetic ad markets: who bids what for which phrase, which queries come when, and what would be clicked.

    market:few       8 days of 3 000 queries, budgets half of what could be earned without any
    market:new-ads   the same, and a tenth of the ads is replaced by new ones each day
    market:tight     10 days of 10 000 queries, a tenth new each day, budgets 0.15 of it
    market:shift     8 days of 6 000 queries, and the queries change in the course of the day

There are 40 phrases, queried by Zipf's law with exponent 0.8, and 60 advertisers, each on 6 phrases; six in ten have a
daily budget. Money is in whole cents, so that sums are exact. Budgets are invented: no public table has any. They add
up to the stated share of what the best ads would earn by their true rates. Bids and click-through rates have the
quantiles of a search account of an airline (2 664 keywords); how much of a rate is due to the phrase and to the
advertiser is from a sample of the KDD Cup 2012 (two ads of one keyword share about 0.45 of the variance of an ad, two
of one advertiser about 0.07), as are the factors of lower slots; the hours of the day are from public traffic shares of
classified ads.

Variants follow a +: ``flat`` (all slots are equally visible, as Pandey08 assumes), ``alone`` (rates of ads are
independent), ``ample`` (budgets five times as large), ``clusters`` (a third of the variance is the cluster's),
``life-L`` (40 days, in which ads live L days on average and come back as new ads) and ``prior-P-V`` (P percent of the
ads have a prior of accuracy V percent, section 6.8.1). ``live`` charges like a server (``--charge live``;
``vedette.lab.runs.ads.live_market``), and ``flood-A``, ``replay-A``, ``drain-A``, ``subnet-A`` and ``swarm-A`` do so
with an attack by A addresses on one advertiser. ``market:cells``, ``market:mix`` and ``market:bpol`` are many small
ones, see ``vedette.lab.experiments.ads_promises``.

Common random numbers: whether an ad would be clicked at a query is determined before any policy chooses.
"""

import re
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.errors import UsageError
from vedette.lab.baselines.ads.ad_statistics import AdOffers
from vedette.policy import Floats, Ints, rng_for
from vedette.timeutil import DAY_S

# For an ad of rate c and accuracy v, the prior's mean mu is drawn from the Beta distribution of mean c and variance c
# (1 - v); the prior is the one of mean mu and variance mu (1 - v). The variance of a Beta distribution is mean (1 -
# mean) / (alpha + beta + 1), so alpha + beta = (1 - mean) / (1 - v) - 1. This is only positive if v is above the mean:
# so mu is drawn again unless v > mu, and c must be below v. The paper calls the variance sigma, and says that for c =
# 0.2 and v = 0.9 the mean is within 0.1 of c with probability 0.58; by these formulas it is 0.49.


MAX_DRAWS = 1_000


def draw_beta_priors(rate: Floats, accuracy: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw the beta prior of each ad's click rate: alpha, and alpha + beta; both 0 if no such accuracy exists.

    >>> alpha, both = draw_beta_priors(np.array([0.2]), 0.9, np.random.default_rng(1))
    >>> bool(0 < alpha[0] < both[0])
    True
    """
    fits = rate < accuracy
    weight = np.where(fits, (1 - rate) / (1 - accuracy) - 1, 1.0)
    mean = rng.beta(rate * weight, (1 - rate) * weight)
    for _ in range(MAX_DRAWS):
        again = fits & ~((mean < accuracy) & (mean > 0))
        if not again.any():
            break
        mean[again] = rng.beta((rate * weight)[again], ((1 - rate) * weight)[again])
    fits &= (mean < accuracy) & (mean > 0)
    shown = np.where(fits, (1 - mean) / (1 - accuracy) - 1, 0.0)
    return mean * shown, shown


ClickDraws = npt.NDArray[np.float32]

PHRASES, ADVERTISERS, PHRASES_EACH, CLUSTERS = 40, 60, 6, 10
ZIPF_EXPONENT, BUDGETED_SHARE = 0.8, 0.6
# Shares of the total and the values there; the ends are ours.
BIDS = ((0.0, 0.1, 0.5, 0.9, 1.0), (0.05, 0.24, 6.25, 8.75, 10.0))
RATES = ((0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0), (0.0005, 0.002, 0.0084, 0.022, 0.046, 0.124, 0.25))
PHRASE_VARIANCE, ADVERTISER_VARIANCE, CLUSTER_VARIANCE = 0.45, 0.07, 1 / 3
# Per mille of a day's queries in each hour.
HOURS = (14, 10, 8, 8, 10, 14, 20, 29, 44, 60, 71, 73, 73, 72, 69, 67, 63, 58, 54, 49, 44, 38, 31, 21)
SLOTS: Floats = np.array([1.0, 0.55, 0.38, 0.26, 0.18, 0.12, 0.08, 0.06])
BUDGET_SIGMA = 0.5  # of their logarithm
SWING = 0.9
LIFE_DAYS = 40
_VARIANT = re.compile(
    r"flat|alone|ample|clusters|live|life-(?P<life>\d{1,3})|prior-(?P<part>\d{1,3})-(?P<accuracy>\d{1,2})"
    r"|(?P<attack>flood|replay|drain|subnet|swarm)-(?P<addresses>\d{1,4})"
)


@dataclass(frozen=True, slots=True)
class AdMarketSetting:
    """Setting of a synthetic ad market before random draws; ``life_days`` and ``accuracy`` are 0 if unused.

    ``live`` markets are charged like on a server, ``attack`` is by this many ``addresses``.
    """

    days: int
    queries: int
    budget_share: float
    new_share: float = 0.0
    shifts: bool = False
    shares: tuple[float, float, float] = (PHRASE_VARIANCE, ADVERTISER_VARIANCE, 0.0)
    factors: tuple[float, ...] = tuple(SLOTS.tolist())
    life_days: float = 0.0
    prior_share: float = 0.0
    accuracy: float = 0.0
    live: bool = False
    attack: str = ""
    addresses: int = 0


AD_MARKETS = {
    "few": AdMarketSetting(8, 3_000, 0.5),
    "new-ads": AdMarketSetting(8, 3_000, 0.5, new_share=0.1),
    "tight": AdMarketSetting(10, 10_000, 0.15, new_share=0.1),
    "shift": AdMarketSetting(8, 6_000, 0.5, shifts=True),
}


# Those of ``vedette.lab.experiments.ads_promises``, which has a market for each seed.
SMALL_AD_MARKETS = ("cells", "mix", "bpol")


class AdMarketDay(NamedTuple):
    """One day of a synthetic ad market: ads with true rates, which are new, budgets, queries and potential clicks.

    ``click_draws()`` has one row per query and one column per ad of a phrase: ad ``a`` in slot ``s`` is clicked if
    ``click_draws[query, position[a]] < rate[a] * factors[s]``. It is drawn on demand, since it is large.
    """

    offers: AdOffers
    rate: Floats
    new: Ints
    budget: Floats
    query: Ints
    at_s: Floats
    position: Ints
    seed: int
    number: int

    def click_draws(self) -> ClickDraws:
        """Return the random draws that decide the clicks on this ad market day; the same at every call."""
        rng = rng_for(self.seed, f"lab/market/luck/{self.number}")
        return rng.random((len(self.query), int(self.position.max()) + 1), np.float32)


def check_ad_market(name: str) -> None:
    """Check that a synthetic ad market of this name exists; raise ``UsageError`` if not."""
    if name not in SMALL_AD_MARKETS:
        parse_ad_market(name)


def parse_ad_market(name: str) -> AdMarketSetting:
    """Parse the name of a synthetic ad market with its variants into its setting; ``UsageError`` if there is none.

    >>> parse_ad_market("few+life-3").days, parse_ad_market("tight").queries
    (40, 10000)
    """
    first, *variants = name.split("+")
    read = [_VARIANT.fullmatch(variant) for variant in variants]
    if first not in AD_MARKETS or not all(read):
        raise UsageError(
            f'there is no market "{name}"; choose one of {", ".join(AD_MARKETS)}, optionally with +flat or +life-3'
        )
    setting = AD_MARKETS[first]
    for variant in read:
        setting = _apply_variant(setting, variant)
    return setting


def _apply_variant(setting: AdMarketSetting, variant: re.Match[str] | None) -> AdMarketSetting:
    assert variant is not None, "checked before"
    if variant["life"]:
        return replace(setting, days=LIFE_DAYS, life_days=float(max(int(variant["life"]), 1)))
    if variant["part"]:
        return replace(setting, prior_share=int(variant["part"]) / 100, accuracy=int(variant["accuracy"]) / 100)
    if variant["attack"]:
        return replace(setting, live=True, attack=variant["attack"], addresses=int(variant["addresses"]))
    changed: dict[str, dict[str, object]] = {
        "live": {"live": True},
        "flat": {"factors": (1.0,) * len(SLOTS)},
        "alone": {"shares": (0.0, 0.0, 0.0)},
        "ample": {"budget_share": 5 * setting.budget_share},
        "clusters": {"shares": (PHRASE_VARIANCE, ADVERTISER_VARIANCE, CLUSTER_VARIANCE)},
    }
    return replace(setting, **changed[variant[0]])  # type: ignore[arg-type]  # each is of its field's type


def draw_market_days(setting: AdMarketSetting, seed: int) -> list[AdMarketDay]:
    """Draw all days of a synthetic ad market; the same seed gives the same days, whichever policy chooses."""
    rng = rng_for(seed, "lab/market")
    popularity: Floats = np.arange(1.0, PHRASES + 1) ** -ZIPF_EXPONENT
    popularity /= popularity.sum()
    phase = rng.random(PHRASES)
    ads = _draw_ads(setting, rng)
    budget = _draw_budgets(setting, ads, popularity, rng)
    place = _phrase_positions(ads.offers.phrase)
    days: list[AdMarketDay] = []
    for day in range(setting.days):
        ads, new = _replace_ads(setting, ads, rng) if day else (ads, np.zeros(0, np.int64))
        at_s, query = _draw_queries(setting, popularity, phase, rng)
        days.append(AdMarketDay(ads.offers, ads.rate, new, budget, query, day * DAY_S + at_s, place, seed, day))
    return days


class _Ads(NamedTuple):
    """Ads of a market with their rates.

    ``shared`` is the contribution of phrase and advertiser to a rate, ``days_left`` the days to live.
    """

    offers: AdOffers
    rate: Floats
    shared: Floats
    days_left: Ints


def _draw_ads(setting: AdMarketSetting, rng: np.random.Generator) -> _Ads:
    phrase = np.concatenate([np.sort(rng.permutation(PHRASES)[:PHRASES_EACH]) for _ in range(ADVERTISERS)])
    advertiser = np.repeat(np.arange(ADVERTISERS), PHRASES_EACH)
    cluster = advertiser % CLUSTERS
    shared = np.zeros(len(phrase))
    for share, of in zip(setting.shares, (phrase, advertiser, cluster), strict=True):
        shared += np.sqrt(share) * rng.standard_normal(int(of.max()) + 1)[of]
    rate, bid = _draw_rates_and_bids(setting, shared, rng)
    offers = AdOffers(phrase, advertiser, cluster, bid, *np.zeros((2, len(phrase))))
    return _Ads(_add_priors(setting, offers, rate, rng), rate, shared, _draw_lifetimes(setting, len(phrase), rng))


def _draw_rates_and_bids(setting: AdMarketSetting, shared: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw the click rates and bids (in cents) of a market's ads."""
    own = rng.standard_normal(len(shared)) * np.sqrt(1 - sum(setting.shares))
    rate = np.exp(np.interp(_normal_cdf(shared + own), RATES[0], np.log(RATES[1])))
    return rate, np.rint(100 * np.interp(rng.random(len(shared)), *BIDS))


def _normal_cdf(normal: Floats) -> Floats:
    """Return the standard normal distribution function of each number, for the ad market's rates and bids."""
    cdf = NormalDist().cdf
    return np.array([cdf(value) for value in normal.tolist()])


def _add_priors(setting: AdMarketSetting, offers: AdOffers, rate: Floats, rng: np.random.Generator) -> AdOffers:
    if not setting.prior_share:
        return offers
    has_prior = rng.random(len(rate)) < setting.prior_share
    clicked, shown = draw_beta_priors(rate, setting.accuracy, rng)
    return offers._replace(prior_clicked=np.where(has_prior, clicked, 0.0), prior_shown=np.where(has_prior, shown, 0.0))


def _draw_budgets(setting: AdMarketSetting, ads: _Ads, popularity: Floats, rng: np.random.Generator) -> Floats:
    """Draw the advertisers' daily budgets in whole cents for an ad market; infinite for those without one."""
    best = np.zeros(PHRASES)
    np.maximum.at(best, ads.offers.phrase, ads.offers.bid * ads.rate)
    earned = setting.queries * float(popularity @ best)
    limited = rng.permutation(ADVERTISERS)[: round(BUDGETED_SHARE * ADVERTISERS)]
    parts = rng.lognormal(0.0, BUDGET_SIGMA, len(limited))
    budget = np.full(ADVERTISERS, np.inf)
    budget[limited] = np.rint(setting.budget_share * earned * parts / parts.sum())
    return budget


def _phrase_positions(phrase: Ints) -> Ints:
    """Return the number of each ad among the ads of its phrase in the market."""
    order = np.argsort(phrase, kind="stable")
    counts = np.bincount(phrase, minlength=PHRASES)
    place = np.empty(len(phrase), np.int64)
    place[order] = np.arange(len(phrase)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place


def _draw_lifetimes(setting: AdMarketSetting, ads: int, rng: np.random.Generator) -> Ints:
    """Draw the days that each ad of the market has left: Poisson, redrawn if it is zero."""
    if not setting.life_days:
        return np.full(ads, np.iinfo(np.int64).max)
    lives = rng.poisson(setting.life_days, ads)
    while (lives == 0).any():
        lives = np.where(lives == 0, rng.poisson(setting.life_days, ads), lives)
    return lives


def _replace_ads(setting: AdMarketSetting, ads: _Ads, rng: np.random.Generator) -> tuple[_Ads, Ints]:
    """Replace expired ads of the market by new ones with their own rates, or by the same ads as if new."""
    if setting.life_days:
        left = ads.days_left - 1
        new = np.flatnonzero(left == 0)
        return ads._replace(days_left=np.where(left == 0, _draw_lifetimes(setting, len(left), rng), left)), new
    new = np.sort(rng.permutation(len(ads.rate))[: round(setting.new_share * len(ads.rate))])
    bid, rate = ads.offers.bid.copy(), ads.rate.copy()
    rate[new], bid[new] = _draw_rates_and_bids(setting, ads.shared[new], rng)
    return ads._replace(offers=ads.offers._replace(bid=bid), rate=rate), new


def _draw_queries(
    setting: AdMarketSetting, popularity: Floats, phase: Floats, rng: np.random.Generator
) -> tuple[Floats, Ints]:
    hours = np.array(HOURS) / sum(HOURS)
    at = np.sort((rng.choice(len(HOURS), setting.queries, p=hours) + rng.random(setting.queries)) / len(HOURS))
    swing = 1 + SWING * np.cos(2 * np.pi * (at[:, None] - phase)) if setting.shifts else np.ones((len(at), 1))
    weight = np.cumsum(popularity * swing, axis=1)
    query = (rng.random((len(at), 1)) * weight[:, -1:] > weight).sum(axis=1)
    return at * DAY_S, query.astype(np.int64)
