"""Click-through rates of ads, estimated from the counts of the ad, its phrase, its advertiser and all ads.

A rate is modeled as a product: the overall rate, times a factor of the phrase, times one of the advertiser, times one
of the ad itself. Each factor has a Gamma distribution of mean 1, whose variance is learned from all factors of its kind
(empirical Bayes): if phrases differ little, a phrase is assumed to be like the others until its counts show otherwise.
Clicks are Poisson, a good approximation for rates of a few percent. A variance is the likeliest of a few, given all
counts of its kind and a prior. The likelihood is unaffected by how often each ad was shown; moments are not: an ad that
seems bad is no longer shown, so counts seem to vary less and less.

How much the ads of one phrase differ is configured, not learned: for most phrases one or two ads are shown, so the
phrase's factor absorbs theirs, and all ads seem alike. A policy that believes this explores nothing.

With E clicks expected and K counted, and a variance v of its kind, the factor is (K + 1/v) / (E + 1/v). A policy shows
good ads most, so sums by impressions would overestimate all rates. Ads are therefore weighted by 1 / (1 + v E), as
maximum likelihood does for overdispersed counts: an ad that was shown ten thousand times says no more about its phrase
than that it is one ad of it.

Useful for: ads with little data, which is most of them. Not useful for: rates that change with time.
"""

from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.ads.candidates import AdCandidates

# Prior: one click in twenty views, with the weight of this many views. Its value hardly matters.
FIRST_RATE, FIRST_VIEWS = 0.05, 20.0
# Prior variances of phrases and of advertisers.
FIRST_VARIANCE = (0.5, 0.1)
# The variance of ads of one phrase and advertiser.
OWN_VARIANCE = 0.7
# The variances that are tried, and the width of the prior around the first, as factors of e.
VARIANCE_GRID: Floats = np.geomspace(0.03, 4.0, 8)
GUESS_SPREAD = 1.0
ROUNDS = 2


class Beliefs(NamedTuple):
    """Click rate beliefs: the overall rate, the factors of phrases and advertisers, and their variances."""

    rate: float
    phrase: Floats
    advertiser: Floats
    variance: tuple[float, float]


NEUTRAL_BELIEFS = Beliefs(FIRST_RATE, np.ones(0), np.ones(0), FIRST_VARIANCE)


def update_beliefs(before: Beliefs, ads: AdCandidates) -> Beliefs:
    """Update the click rate beliefs from the counts of all ads, starting from the previous beliefs.

    >>> update_beliefs(NEUTRAL_BELIEFS, AdCandidates(*np.zeros((16, 0)))).rate
    0.05
    """
    now = Beliefs(
        before.rate, _grow(before.phrase, ads.phrase), _grow(before.advertiser, ads.advertiser), before.variance
    )
    for _ in range(ROUNDS if len(ads) else 0):
        now = _update_once(now, ads)
    return _update_variances(now, ads) if len(ads) else now


def get_prior(beliefs: Beliefs, ads: AdCandidates) -> tuple[Floats, Floats]:
    """Return the prior of each ad's click rate as equivalent clicks and views, before counting its own."""
    clicks = np.full(len(ads), 1 / OWN_VARIANCE)
    return clicks, clicks / _rates(beliefs, ads)


def _update_once(now: Beliefs, ads: AdCandidates) -> Beliefs:
    """Improve the click rate beliefs by one step: overall rate, then phrases, then advertisers."""
    expected = _rates(now, ads) * ads.views
    weight = 1 / (1 + OWN_VARIANCE * expected)
    counted, expected = ads.clicked * weight, expected * weight
    # The prior is this many views, with a share of clicks.
    rate = now.rate * (counted.sum() + FIRST_RATE * FIRST_VIEWS) / (expected.sum() + now.rate * FIRST_VIEWS)
    expected *= rate / now.rate
    phrase = _factors(now.phrase, ads.phrase, counted, expected, now.variance[0])
    expected *= (phrase / now.phrase)[ads.phrase]
    advertiser = _factors(now.advertiser, ads.advertiser, counted, expected, now.variance[1])
    return Beliefs(rate, phrase, advertiser, now.variance)


def _factors(now: Floats, of: Ints, counted: Floats, expected: Floats, variance: float) -> Floats:
    """Compute the click rate factors of a kind. ``expected`` includes the current factors."""
    clicks, neutral = _neutral_counts(now, of, counted, expected)
    return (clicks + 1 / variance) / (neutral + 1 / variance)


def _neutral_counts(now: Floats, of: Ints, counted: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Sum clicks counted and expected for each of a kind, as if its factor were 1."""
    clicks, neutral = (np.bincount(of, each, len(now)).astype(np.float64) for each in (counted, expected))
    return clicks, neutral / now


def _update_variances(now: Beliefs, ads: AdCandidates) -> Beliefs:
    expected = _rates(now, ads) * ads.views
    weight = 1 / (1 + OWN_VARIANCE * expected)
    counted, expected = ads.clicked * weight, expected * weight
    phrases = fit_variance(*_neutral_counts(now.phrase, ads.phrase, counted, expected), FIRST_VARIANCE[0])
    advertisers = fit_variance(*_neutral_counts(now.advertiser, ads.advertiser, counted, expected), FIRST_VARIANCE[1])
    return now._replace(variance=(phrases, advertisers))


def fit_variance(counted: Floats, expected: Floats, first: float) -> float:
    """Fit the variance of Gamma click rate factors to counts by likelihood, with a prior.

    >>> fit_variance(np.full(100, 10.0), np.full(100, 10.0), 1.0) < fit_variance(np.arange(100.0), np.full(100, 50.0),
    ...     1.0)
    True
    """
    seen = expected > 0
    counted, expected, shape = counted[seen], expected[seen], 1 / VARIANCE_GRID[:, None]
    some = counted > 0
    logs = -np.log1p(expected / shape).sum(axis=1) / VARIANCE_GRID
    logs -= np.log(shape + expected[some]) @ counted[some]
    logs += (_log_gamma(counted[some] + shape) - _log_gamma(shape)).sum(axis=1)
    logs -= 0.5 * (np.log(VARIANCE_GRID / first) / GUESS_SPREAD) ** 2
    return float(VARIANCE_GRID[logs.argmax()])


def _log_gamma(value: Floats) -> Floats:
    """Compute the log Gamma function of positive numbers, by Stirling's series from 6 on.

    >>> _log_gamma(np.array([3.0, 5.0])).round(6).tolist()
    [0.693147, 3.178054]
    """
    high = value + 6.0
    product = value * (value + 1) * (value + 2) * (value + 3) * (value + 4) * (value + 5)
    series = (high - 0.5) * np.log(high) - high + 0.9189385332046727 + 1 / (12 * high) - 1 / (360 * high**3)
    found: Floats = series - np.log(product)
    return found


def _rates(beliefs: Beliefs, ads: AdCandidates) -> Floats:
    found: Floats = beliefs.rate * beliefs.phrase[ads.phrase] * beliefs.advertiser[ads.advertiser]
    return found


def _grow(factors: Floats, numbers: Ints) -> Floats:
    """Extend factors to cover every number; new ones get the neutral factor."""
    more = int(numbers.max(initial=-1)) + 1 - len(factors)
    return np.append(factors, np.ones(more)) if more > 0 else factors.copy()
