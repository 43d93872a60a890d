"""Linear ranking scores: weighted sums of features, so that every point of a score can be explained.

Two features depend on the intent of a query. A home page counts if the query names its site. A recent date counts by
*fresh intent*: words of the query ("news", "release", this year), or matching pages that are recently dated far more
often than by chance. Both are between 0 and 1, and the larger counts. Pages without dates are never fresh.

``explain_rank`` explains the rank of a search result in one sentence.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.rank.weights import QUESTION_WEIGHTS, WEIGHTS, WORD_WEIGHTS
from vedette.timeutil import DAY_S

# The ranking version recorded with each search; changes with the weights.
POLICY = "linear/4"
# Up to this many words a query names a page; from this many on it is a question; in between it is interpolated.
NAME_WORDS, QUESTION_WORDS = 3, 6


def blend_weights(words: int) -> Mapping[str, float]:
    """Return the weights for a query of this many words.

    >>> blend_weights(2) == WEIGHTS, blend_weights(12) == QUESTION_WEIGHTS, blend_weights(1) == WORD_WEIGHTS
    (True, True, True)
    """
    if words <= 1:
        return WORD_WEIGHTS
    share = min(max((words - NAME_WORDS) / (QUESTION_WORDS - NAME_WORDS), 0.0), 1.0)
    if share in {0.0, 1.0}:
        return QUESTION_WEIGHTS if share else WEIGHTS
    keys = dict.fromkeys((*WEIGHTS, *QUESTION_WEIGHTS))
    return {key: (1 - share) * WEIGHTS.get(key, 0.0) + share * QUESTION_WEIGHTS.get(key, 0.0) for key in keys}


class LinearScores(NamedTuple):
    """The linear score of each page, and each feature's contribution: one row per page, one column per feature."""

    scores: Floats
    contributions: Floats


def score_features(features: Floats, keys: Sequence[str], weights: Mapping[str, float]) -> LinearScores:
    """Compute linear ranking scores: weights times features; a feature without a weight adds nothing.

    >>> score_features(np.array([[1.0, 0.5]]), ("title", "spam"), {"title": 2.0, "spam": -1.0}).scores.tolist()
    [1.5]
    """
    contributions = features * np.array([weights.get(key, 0.0) for key in keys])
    return LinearScores(contributions.sum(axis=1), contributions)


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

    In a long query a word such as "new" or "current" usually means something else: "a name for a new project".

    >>> score_fresh_intent(["kafka", "news"], np.array([]), 1.8e9), score_fresh_intent(["kafka"], np.array([]), 1.8e9)
    (1.0, 0.0)
    """
    year = datetime.fromtimestamp(min(max(now_s, 0.0), 4e9), UTC).year
    if any(word in STRONG or word == str(year) for word in words):
        return 1.0
    is_weak = str(year - 1) in words or (len(words) <= NAME_WORDS and not WEAK.isdisjoint(words))
    by_words = 0.5 if is_weak else 0.0
    return max(by_words, _score_dates(dates_s, now_s))


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
    is_known = np.isfinite(ages_s) & (ages_s >= -DAY_S)
    return np.where(is_known, HALF_S / (HALF_S + np.maximum(np.where(is_known, ages_s, 0.0), 0.0)), 0.0)


# Below this share of the total, a field is not worth mentioning.
WORTH_SAYING = 0.12
MAX_PLACES = 3
FULL_COVERAGE = 0.99
PLACES = {
    "title": "its title",
    "headings": "its headings",
    "anchors": "links to it",
    "url": "its address",
    "body": "its text",
}
OTHER_REASONS = {
    "home": "it is the home page of the site that the query names",
    "fresh": "it is recent",
    "importance": "important pages link to it",
    "host_importance": "its site is important",
    "popularity": "people often choose it",
    "feedback": "it shares words with other good results",
}
CAVEATS = {"spam": "though it looks a little like spam"}


def explain_rank(contributions: Mapping[str, float], words: str, covered: Mapping[str, float]) -> str:
    """Explain a result's rank: where the query's words occur, and what else counts, by score contributions.

    ``covered`` is the share of the words in each field; a field without all of them is described as having some.

    >>> added = {"title_phrase": 2.0, "title_bm25": 1.0, "anchors_phrase": 1.5, "body_bm25": 0.1}
    >>> explain_rank(added, "consumer lag", {"title": 1.0, "anchors": 1.0})
    'High because its title and links to it say “consumer lag”.'
    >>> explain_rank(added, "consumer lag", {"title": 1.0, "anchors": 0.5})
    'High because its title says “consumer lag” and links to it have words of it.'
    """
    total = sum(value for value in contributions.values() if value > 0)
    if total <= 0:
        return "Shown because nothing else matches better."
    places = _top_places(contributions, total)
    whole = [PLACES[place] for place in places if covered.get(place, 0.0) >= FULL_COVERAGE]
    partly = [PLACES[place] for place in places if PLACES[place] not in whole]
    besides = [reason for key, reason in OTHER_REASONS.items() if contributions.get(key, 0.0) >= WORTH_SAYING * total]
    against = [reason for key, reason in CAVEATS.items() if -contributions.get(key, 0.0) >= WORTH_SAYING * total]
    first = [f"{_join(whole)} {'say' if _is_plural(whole) else 'says'} “{words}”"] if whole else []
    of_it = "it" if whole else f"“{words}”"
    second = [f"{_join(partly)} {'have' if _is_plural(partly) else 'has'} words of {of_it}"] if partly else []
    reasons = _join(first + second + besides) or "its words match best"
    return f"High because {', '.join([reasons, *against])}."


_PLURALS = frozenset({PLACES["headings"], PLACES["anchors"]})


def _top_places(contributions: Mapping[str, float], total: float) -> list[str]:
    """Return the fields (title, links, body ...) with the query's words, by contribution, heaviest first."""
    added = dict.fromkeys(PLACES, 0.0)
    for key, value in contributions.items():
        if value and (place := _get_place(key)) in added:
            added[place] += value
    loudest = sorted(added, key=lambda place: -added[place])[:MAX_PLACES]
    return [place for place in loudest if added[place] >= WORTH_SAYING * total]


@cache
def _get_place(key: str) -> str:
    """Return the field that a feature is about, or its first word."""
    return key.partition("_")[0]


def _is_plural(places: list[str]) -> bool:
    return len(places) > 1 or places[0] in _PLURALS


def _join(things: list[str]) -> str:
    """Join phrases into a list, with "and" before the last."""
    return " and ".join(filter(None, [", ".join(things[:-1]), *things[-1:]]))
