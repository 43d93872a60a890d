"""Query intent: detect queries that want fresh pages or a home page, and score pages for it.

Two signals indicate fresh intent: words of the query ("news", "release", this year), and matching pages that are
recently dated far more often than by chance. Both are between 0 and 1, and the larger counts.

Useful for: queries about current events. Not useful for: pages without dates, which are never fresh.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S

# A query with more words than this wants more than a site.
MAX_WORDS = 4
ALL = 1 - 1e-9


def score_home(in_address: Floats, in_title: Floats, title_share: Floats, depth: Ints, words: int) -> Floats:
    """Score home pages for a query: 1 if the URL has all query words; less if only the title has.

    ``in_address`` and ``in_title`` are shares of the query's words, ``title_share`` is the share of the title they make
    up.

    >>> score_home(np.array([1.0, 1.0]), np.zeros(2), np.zeros(2), np.array([0, 3]), 2).tolist()
    [1.0, 0.0]
    """
    if not 0 < words <= MAX_WORDS:
        return np.zeros(len(depth))
    named = np.where(in_address >= ALL, 1.0, np.where(in_title >= ALL, title_share, 0.0))
    return np.where(depth == 0, named, 0.0)


# Half-life of freshness.
HALF_S = 30 * DAY_S
LATELY_S = 30 * DAY_S
MIN_DATED = 8
STRONG = frozenset({"breaking", "latest", "news", "newest", "today", "yesterday", "tonight", "aktuell", "heute"})
WEAK = frozenset({"announcement", "changelog", "current", "recent", "release", "released", "releases", "update", "new"})


def score_fresh_intent(words: Sequence[str], dates_s: Floats, now_s: float) -> float:
    """Score how much a query wants fresh pages; ``dates_s`` are those of matching pages, NaN if unknown.

    >>> score_fresh_intent(["kafka", "news"], np.array([]), 1.8e9), score_fresh_intent(["kafka"], np.array([]), 1.8e9)
    (1.0, 0.0)
    """
    return max(_score_words(words, now_s), _score_dates(dates_s, now_s))


def _score_words(words: Sequence[str], now_s: float) -> float:
    year = datetime.fromtimestamp(min(max(now_s, 0.0), 4e9), UTC).year
    if any(word in STRONG or word == str(year) for word in words):
        return 1.0
    return 0.5 if any(word in WEAK or word == str(year - 1) for word in words) else 0.0


def _score_dates(dates_s: Floats, now_s: float) -> float:
    """Score how far the share of recent pages among dated matches exceeds a third, scaled so that all give 1."""
    dated = dates_s[np.isfinite(dates_s) & (dates_s <= now_s)]
    if len(dated) < MIN_DATED:
        return 0.0
    lately = float(np.mean(dated >= now_s - LATELY_S))
    return max(0.0, (lately - 1 / 3) * 1.5)


def score_freshness(dates_s: Floats, now_s: float) -> Floats:
    """Score the freshness of pages by date: 1 for now, half after a month; 0 without a past date.

    >>> score_freshness(np.array([0.0, -HALF_S, np.nan]), 0.0).tolist()
    [1.0, 0.5, 0.0]
    """
    ages_s = now_s - dates_s
    known = np.isfinite(ages_s) & (ages_s >= -DAY_S)
    return np.where(known, HALF_S / (HALF_S + np.maximum(np.where(known, ages_s, 0.0), 0.0)), 0.0)
