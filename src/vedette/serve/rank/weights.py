"""Ranking weights, learned from known items and from human judgments.

``WEIGHTS`` are for queries that name a page. They were fitted to known items of three real sites
(``bench/known_item.py``, pages other than those it measures): a logistic model that predicts the wanted page among
candidates, then single weights up and down as long as the mean reciprocal rank rose, none of them below zero, so that
every match counts in favor of a page; rounded at the end. Many features that help alone add nothing besides the others,
and have no weight. Those below the line, and ``url_exact``, are judgment calls: no known item shows whether a page is
fresh or its site important. They decide what words leave open, and a home page goes first when the query is the name of
its site.

``WORD_WEIGHTS`` are the same for a single word, which has no order: what a phrase adds is added by the word.

``QUESTION_WEIGHTS`` are for questions of many words, as printed by

    VEDETTE_DATA=FOLDER python bench/relevance.py --fit

from judged collections, none below zero. It also judges each collection by weights that were fitted without it. Whole
phrases and titles count as in ``WEIGHTS``: a long query may still be the name of a page.
"""

from collections.abc import Mapping
from types import MappingProxyType

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "title_exact": 3.5,
        "title_is": 3.0,
        "title_phrase": 3.5,
        "headings_phrase": 1.2,
        "headings_pairs": 1.2,
        "headings_short": 3.0,
        "anchors_exact": 1.5,
        "anchors_phrase": 2.0,
        "anchors_pairs": 0.8,
        "url_bm25": 2.3,
        "body_has": 3.0,
        "body_short": 3.0,
        "body_phrase": 0.3,
        "body_pairs": 0.4,
        "body_bm25": 0.3,
        "body_near": 0.3,
        "body_early": 1.0,
        "anywhere": 6.0,
        "outside": 0.7,
        # ---
        "url_exact": 2.0,
        "home": 12.0,
        "fresh": 3.0,
        "importance": 0.2,
        "host_importance": 0.1,
        "popularity": 1.0,
        "shallow": 0.2,
        "spam": -2.0,
        "favoured": 4.0,
        "meaning": 1.0,
    }
)
_ORDER = {key for key in WEIGHTS if key.endswith(("_phrase", "_pairs", "_short"))} | {"body_has", "body_near"}
WORD_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {key: weight for key, weight in WEIGHTS.items() if key not in _ORDER}
    | {
        "url_exact": 5.0,
        "title_bm25": WEIGHTS["title_phrase"],
        "headings_bm25": WEIGHTS["headings_phrase"],
        "body_bm25": WEIGHTS["body_bm25"] + WEIGHTS["body_phrase"],
        "body_coverage": WEIGHTS["body_has"] + WEIGHTS["body_near"],
    }
)
QUESTION_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {key: WEIGHTS[key] for key in ("home", "fresh", "importance", "host_importance", "popularity", "shallow", "spam")}
    | {
        "favoured": WEIGHTS["favoured"],
        **{key: WEIGHTS[key] for key in ("title_phrase", "title_is", "headings_phrase", "headings_short")},
        **{key: WEIGHTS[key] for key in ("anchors_phrase", "anchors_exact", "body_has", "body_short")},
        "title_bm25": 2.0,
        "body_bm25": 3.9,
        "title_pairs": 0.3,
        "body_pairs": 1.1,
        "body_near": 0.1,
        "anywhere": 1.4,
        "outside": 1.8,
        "feedback": 3.7,
        "meaning": 10.0,
    }
)
