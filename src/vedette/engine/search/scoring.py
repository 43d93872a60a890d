"""Scoring: rank search candidates by words, page signals and learned click quality, with reasons.

Orders results by relevance and by what was learned from clicks, and explains the order.

Pages that the operator pinned stay in place. No unproven page is explored if the query names a site: a search for a
home page wants that page. If nothing was learned, or for a user of the control group, results are in order of
relevance.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.engine.search.ports import IndexSnapshot, PageSignals
from vedette.index.features import (
    BODY_FEATURES,
    FEATURES,
    Feature,
    Slot,
    TextFeatures,
    compute_idf,
    read_texts,
)
from vedette.index.feedback import score_feedback
from vedette.index.fields import MAX_WORDS
from vedette.index.query.planner import QueryWord
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.index.semantic.similarity import Similarity
from vedette.learn.clicks.reputations import LearnedQuality
from vedette.model import fingerprint
from vedette.policy import Floats, Ints, rng_for
from vedette.serve.rank.explore.candidates import Candidates, UserPopulation
from vedette.serve.rank.explore.prospect import Prospect
from vedette.serve.rank.reputation import PageBeliefs, Reputation, pair_keys
from vedette.serve.rank.reranking import UNPROVEN, TrialLimits, reorder
from vedette.serve.rank.scoring import (
    blend_weights,
    explain_rank,
    score_features,
    score_fresh_intent,
    score_freshness,
    score_home,
)
from vedette.serve.rank.weights import WEIGHTS
from vedette.serve.slate import Audience, Reason, SearchResult
from vedette.text import hash_words, split_words

NEUTRAL = 0.5
MIN_CONTRIBUTION = 0.005
# A title with the words of the query, and hardly any other, names its site.
MIN_TITLE_SHARE = 0.7
LIST_LENGTH = 100  # pages on the list that a young page is assumed to appear in

STATIC_FEATURES: tuple[Feature, ...] = (
    Feature("home", "home page of the site that the query names"),
    Feature("fresh", "a fresh page for a query about recent things"),
    Feature("importance", "links from important pages"),
    Feature("host_importance", "an important site"),
    Feature("popularity", "chosen by users"),
    Feature("shallow", "a short path in the address"),
    Feature("spam", "looks like spam"),
    Feature("favoured", "raised or lowered by the operator"),
    Feature("feedback", "words that the best results share"),
    Feature("meaning", "close in meaning"),
)
ALL_FEATURES = FEATURES + STATIC_FEATURES
_KEYS = tuple(feature.key for feature in ALL_FEATURES)
_HOME = _KEYS.index("home")
_BODY = TEXT_FIELDS.index("body")
_NAMING = ("url_coverage", "title_coverage", "title_exact")
_FEEDBACK = _KEYS.index("feedback")
_TEXT = {feature.key: column for column, feature in enumerate(FEATURES)}


class IndexHints(NamedTuple):
    """Hints from the index for scoring: pages with all needed words, and those with the query in order in their text.

    The latter are looked up only if a text is truncated.
    """

    with_all: Ints
    in_order: Callable[[], Ints]


NO_HINTS = IndexHints(np.zeros(0, np.int64), lambda: np.zeros(0, np.int64))


class CandidateTexts(NamedTuple):
    """The words of candidates, the features of their texts, and which slots of the query these have, by row."""

    forward: ForwardTokens
    features: Floats
    has_slot: npt.NDArray[np.bool_]

    def join(self, others: "CandidateTexts") -> "CandidateTexts":
        """Return these texts, followed by the others."""
        forward = ForwardTokens(
            np.concatenate((self.forward.words, others.forward.words)),
            np.concatenate((self.forward.lengths, others.forward.lengths)),
        )
        features, has_slot = np.concatenate((self.features, others.features)), (self.has_slot, others.has_slot)
        return CandidateTexts(forward, features, np.concatenate(has_slot))


class ScoredCandidates(NamedTuple):
    """Scored search candidates with their features; rows are positions in ``ids``."""

    ids: Ints
    signals: PageSignals
    features: Floats
    contributions: Floats
    scores: Floats
    weights: Mapping[str, float] = WEIGHTS
    texts: CandidateTexts | None = None

    def list_reasons(self, row: int) -> tuple[Reason, ...]:
        """List the reasons for a candidate's score, the most important first."""
        added, values = self.contributions[row].tolist(), self.features[row].tolist()
        columns = [column for column, points in enumerate(added) if abs(points) >= MIN_CONTRIBUTION]
        return tuple(
            Reason(ALL_FEATURES[column].words, values[column], self.weights.get(_KEYS[column], 0.0), added[column])
            for column in sorted(columns, key=lambda column: -abs(added[column]))
        )

    def list_features(self, row: int) -> tuple[tuple[str, float], ...]:
        """List every scoring feature of a candidate that counted: its short name and value."""
        added, values = self.contributions[row].tolist(), self.features[row].tolist()
        return tuple((key, value) for key, value, points in zip(_KEYS, values, added, strict=True) if points)

    def find_missing_words(self, rows: Sequence[int], wanted: Sequence[QueryWord]) -> tuple[str, ...]:
        """Find the needed words of the query that some of these candidates lack."""
        if self.texts is None or not len(rows):
            return ()
        is_everywhere = np.all(self.texts.has_slot[rows], axis=0).tolist()
        pairs = zip(wanted, is_everywhere, strict=False)  # words beyond the most that are scored are not known
        return tuple(dict.fromkeys(slot.words[0][0] for slot, is_found in pairs if slot.is_needed and not is_found))

    @property
    def is_navigational(self) -> bool:
        """Check whether the query names a site whose home page is among the candidates."""
        return bool((self.features[:, _HOME] >= MIN_TITLE_SHARE).any())

    def explain(self, row: int, words: str) -> str:
        """Explain the score of a search result: why it ranks where it does."""
        added = dict(zip(_KEYS, self.contributions[row].tolist(), strict=True))
        covered = {field: float(self.features[row, _TEXT[f"{field}_coverage"]]) for field in TEXT_FIELDS}
        return explain_rank(added, words, covered)


def build_slots(wanted: Sequence[QueryWord], df_of: Callable[[str], int], pages: int) -> list[Slot]:
    """Convert the words of a query to numbers with their idf weights, for scoring.

    If no page has a word itself, it weighs as much as the commonest of its forms.
    """
    slots = []
    for numbers, slot in zip(_hash_slots(wanted), wanted, strict=True):
        words = [word for word, _ in slot.words]
        df = df_of(words[0]) or max((df_of(word) for word in words[1:]), default=0)
        slots.append(Slot(numbers, tuple(weight for _, weight in slot.words), compute_idf(df, pages)))
    return slots


def _hash_slots(wanted: Sequence[QueryWord]) -> list[tuple[int, ...]]:
    """Hash the words of each slot to their numbers, all at once."""
    words = [word for slot in wanted for word, _ in slot.words]
    numbers = iter(hash_words(" ".join(words).encode("utf-8", "replace")).tolist())
    return [tuple(islice(numbers, len(slot.words))) for slot in wanted]


def score_candidates(  # noqa: PLR0913 - most have a default
    ids: Ints,
    wanted: Sequence[QueryWord],
    shelf: IndexSnapshot,
    now_s: float,
    known: IndexHints = NO_HINTS,
    favoured: Mapping[int, float] = MappingProxyType({}),
    near: Similarity | None = None,
    *,
    slots: Sequence[Slot] | None = None,
    is_full: bool = False,
    read: CandidateTexts | None = None,
) -> ScoredCandidates:
    """Score search candidates for the words of a query, and for its meaning if that was compared.

    The operator boosts some hosts, by number. ``slots`` have other document frequencies than the snapshot's: of all
    shards, whose candidates are compared, so that feedback is left to who has them. Features without a weight are
    computed only if it ``is_full``. The texts of the first candidates may have been ``read`` before.
    """
    own = build_slots(wanted, shelf.df, len(shelf.finder)) if slots is None else slots
    new = ids if read is None else ids[len(read.features) :]
    forward = shelf.forward(new)
    found = read_texts(forward, own)
    text = found.tabulate(None if is_full else _list_used(len(wanted)))
    _fill_truncated(text, np.flatnonzero(forward.lengths[:, _BODY] >= MAX_WORDS), new, known)
    texts = CandidateTexts(forward, text, found.has_slot)
    forward, text, _ = texts = texts if read is None else read.join(texts)
    signals = shelf.get_signals(ids)
    wish = score_fresh_intent([slot.words[0][0] for slot in wanted], signals.date_s, now_s)
    fresh = wish * score_freshness(np.where(np.isnan(signals.date_s), signals.born_s, signals.date_s), now_s)
    favours = np.array([favoured.get(host, 0.0) for host in signals.host.tolist()]) if favoured else None
    meaning = near.look_up(ids) if near is not None else None
    result = explain_texts(text, signals, len(wanted), fresh, favours, meaning)
    return ScoredCandidates(ids, signals, *(_add_feedback(result, forward, own) if slots is None else result), texts)


@cache
def _list_used(words: int) -> frozenset[str]:
    """List the features of texts that count for a query of this many words, or are needed to explain its results."""
    weighed = {key for key, weight in blend_weights(words).items() if weight}
    return frozenset((*weighed, *_NAMING, *(f"{field}_coverage" for field in TEXT_FIELDS)))


class ScoredTexts(NamedTuple):
    """Features of texts for a query of this many words, their contributions, the scores, and the weights used."""

    features: Floats
    contributions: Floats
    scores: Floats
    weights: Mapping[str, float]


def _add_feedback(result: ScoredTexts, forward: ForwardTokens, slots: Sequence[Slot]) -> ScoredTexts:
    """Add to the scores how much candidates share the words of the best ones, if that counts for the query."""
    weight = result.weights.get("feedback", 0.0)
    if not weight:
        return result
    known = np.array([number for slot in slots for number in slot.numbers], np.uint32)
    order = np.argsort(-result.scores, kind="stable")
    result.features[:, _FEEDBACK] = score_feedback(forward, order, known)
    result.contributions[:, _FEEDBACK] = weight * result.features[:, _FEEDBACK]
    return result._replace(scores=result.scores + result.contributions[:, _FEEDBACK])


def explain_texts(
    text: Floats,
    signals: PageSignals,
    words: int,
    fresh: Floats,
    favours: Floats | None,
    meaning: Floats | None = None,
) -> ScoredTexts:
    """Score texts by their features for a query of this many words, and by page signals, with each contribution.

    ``fresh``, ``favours`` and ``meaning`` are added for queries that want fresh pages, for operator boosts, and for
    similarity in meaning.
    """
    static, none = _list_signals(signals), np.zeros(len(text))
    static["home"] = _score_home(lambda key: text[:, _TEXT[key]], signals.depth, words)
    static |= {"fresh": fresh, "favoured": none if favours is None else favours, "feedback": none}
    static["meaning"] = none if meaning is None else meaning
    features = np.column_stack([text, *(static[feature.key] for feature in STATIC_FEATURES)])
    weights = blend_weights(words)
    result = score_features(features, _KEYS, weights)
    return ScoredTexts(features, result.contributions, result.scores, weights)


def score_words(text: TextFeatures, depth: Ints, words: int, *, is_body_only: bool = False) -> Floats:
    """Score texts by their words, for queries without freshness; with ``score_signals`` as ``explain_texts`` does.

    Only features with a weight are computed, and if no text has words outside its body, only those of bodies.
    """
    points = np.zeros(text.texts)
    for key, weight in blend_weights(words).items():
        if weight and key in _TEXT and (key in BODY_FEATURES or not is_body_only):
            points += weight * text[key]
    home = blend_weights(words).get("home", 0.0)
    return points if is_body_only or not home else points + home * _score_home(text.__getitem__, depth, words)


def score_signals(signals: PageSignals, words: int) -> Floats:
    """Score pages by their signals alone, for any query of this many words."""
    weights, points = blend_weights(words), np.zeros(len(signals.depth))
    for key, values in _list_signals(signals).items():
        points += weights.get(key, 0.0) * values
    return points


def _score_home(text: Callable[[str], Floats], depth: Ints, words: int) -> Floats:
    in_address, in_title, title_share = (text(key) for key in _NAMING)
    return score_home(in_address, in_title, title_share, depth, words)


def _list_signals(signals: PageSignals) -> dict[str, Floats]:
    """List the features that come from page signals alone, without those of the moment."""
    return {
        "importance": signals.importance,
        "host_importance": signals.host_importance,
        "popularity": signals.popularity - NEUTRAL,
        "shallow": 1 / (1 + signals.depth),
        "spam": signals.spam,
    }


def _fill_truncated(text: Floats, rows: Ints, ids: Ints, known: IndexHints) -> None:
    """Trust the index that words occur in the texts whose stored forward tokens are truncated."""
    if not len(rows):
        return
    cut = list(zip(rows.tolist(), ids[rows].tolist(), strict=True))
    with_all, in_order = frozenset(known.with_all.tolist()), frozenset(known.in_order().tolist())
    text[[row for row, id_ in cut if id_ in with_all], _TEXT["anywhere"]] = 1.0
    is_ordered = [row for row, id_ in cut if id_ in in_order]
    for key in ("body_has", "body_near"):
        text[is_ordered, _TEXT[key]] = 1.0


QUALITY = "quality"
LIKED_REASON = "liked by people who saw it"
# Fewer views than this are not worth mentioning.
MIN_LOOKS = 3.0


_NOTHING: Floats = np.zeros(0)


class LearnedOrder(NamedTuple):
    """Rows of search results ordered by learned quality, with notes by row; empty if nothing was learned.

    For pinned rows, which were not ordered here, ``propensity`` is NaN. ``unproven`` rows are explored.
    """

    rows: Ints
    propensity: Floats = _NOTHING
    points: Floats = _NOTHING
    unproven: tuple[int, ...] = ()
    believed: PageBeliefs | None = None

    def annotate(self, result: SearchResult, row: int, is_explained: bool) -> SearchResult:  # noqa: FBT001 - a request's
        """Add a search result's propensity and what its learned quality added, with the reason if it is explained."""
        if self.believed is None or np.isnan(self.propensity[row]):
            return result
        points = float(self.points[row])
        result = result._replace(
            score=result.score + points,
            features=(*result.features, (QUALITY, points)),
            propensity=float(self.propensity[row]),
        )
        if not is_explained:
            return result
        return result._replace(
            why=(*result.why, Reason(LIKED_REASON, points, 1.0, points)) if points else result.why,
            sentence=f"{result.sentence} {_describe_likes(self.believed, row)}".strip(),
        )

    def list_notes(self) -> dict[int, str]:
        """List the notes shown beside unproven results that are explored."""
        return dict.fromkeys(self.unproven, UNPROVEN)


def hash_query(query: str) -> int:
    """Hash a query by its words: the same number for all queries with the same words.

    >>> hash_query("Red  KITES") == hash_query("red kites")
    True
    """
    return fingerprint(" ".join(split_words(query)))


def build_reputation(
    taught: LearnedQuality, groups: Sequence[str], tables: tuple[Floats, Floats] | None = None
) -> Reputation:
    """Build the reputation that searches look up from learned click quality, with the exploration tables.

    ``tables`` are reused from an earlier call; computing them takes longer than everything else.
    """
    numbers = np.array([hash_query(words) for words in groups], np.int64)
    by_number = np.argsort(numbers, kind="stable")
    pairs = pair_keys(numbers[taught.pair_group], taught.page[taught.pair_page])
    by_pair = np.argsort(pairs, kind="stable")
    teaching, ahead = _build_exploration(taught) if tables is None else tables
    return Reputation(
        taught.page,
        taught.likes,
        taught.looks,
        taught.mean,
        pairs[by_pair],
        taught.pair_mean[by_pair],
        taught.pair_likes[by_pair],
        taught.pair_looks[by_pair],
        numbers[by_number],
        taught.group_mean[by_number],
        taught.group_views[by_number],
        taught.host,
        taught.host_mean,
        teaching,
        ahead,
        taught.general,
        taught.people,
    )


def _build_exploration(taught: LearnedQuality) -> tuple[Floats, Floats]:
    """Build the default exploration policy's tables for one view a day and one day of life.

    They are for a list as long as people read.
    """
    ones = np.ones(len(taught.page))
    crowd = UserPopulation(taught.people, 1.0, 1.0)
    policy = Prospect()
    all_pages = Candidates(ones, taught.likes, taught.looks, taught.looks, ones, crowd)
    law = policy.observe(policy.start(None), all_pages, 0.0)
    # The list that a page would join is that of a search, with every kind of page.
    some = np.argsort(taught.mean, kind="stable")[
        np.linspace(0, len(ones) - 1, min(LIST_LENGTH, len(ones))).astype(np.int64)
    ]
    likes, looks = taught.likes[some], taught.looks[some]
    part = Candidates(ones[some], likes, looks, looks, ones[some], crowd)
    table = policy.observe(law, part, 0.0).table
    assert table is not None
    return table.teaching, table.ahead


def order_by_learning(
    rows: Ints, weighed: ScoredCandidates, query: str, reputation: Reputation | None, audience: Audience
) -> LearnedOrder:
    """Reorder rows from relevance order by what was learned from clicks, exploring unproven pages."""
    if reputation is None or not audience.is_learned or not len(rows):
        return LearnedOrder(rows)
    number = hash_query(query)
    believed = reputation.look_up(weighed.ids, weighed.signals.host, number)
    most = 0 if weighed.is_navigational else audience.unproven
    rng = rng_for(audience.seed, f"rank/{number}")
    chances = TrialLimits(audience.first, most, rng, audience.promotion)
    dealt = reorder(rows, weighed.scores, believed, reputation, chances)
    propensity, points = np.full((2, len(weighed.ids)), np.nan)
    propensity[dealt.rows], points[dealt.rows] = dealt.propensities, dealt.points
    return LearnedOrder(dealt.rows, propensity, points, tuple(dealt.rows[dealt.is_unproven].tolist()), believed)


def _describe_likes(believed: PageBeliefs, row: int) -> str:
    looks, likes = float(believed.looks[row]), float(believed.likes[row])
    if looks < MIN_LOOKS:
        return "Few people have seen it."
    return f"Of about {looks:.0f} people who saw it recently, {likes:.0f} liked it."
