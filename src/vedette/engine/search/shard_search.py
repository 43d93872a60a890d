"""Search in one shard of a cluster: find candidates and score them with the statistics of all shards.

A gateway (``engine.search.gateway``) asks every shard the same, in a few rounds, and merges the replies:

1. *describe*: in how many pages of this shard each word of the query occurs, and which other forms it has here.
2. *look*: the scores of the shard's best pages by the index, once per way of finding candidates. The index weighs words
   by their frequency in this shard; boosts correct that to their frequency in all shards, so that scores of different
   shards are comparable.
3. *score*: the candidates that are among the best of all shards, scored as in one index.
4. *get_examples*, *measure*, *rescore*: if a model compares meaning, the candidates scored again by that, too.
5. *show*: the results on the page, with snippets and reasons.

What a search found is kept until its results were shown. All replies are plain values, which travel as MessagePack.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import xxhash

from vedette.engine.search.ports import IndexSnapshot
from vedette.engine.search.scoring import IndexHints, ScoredCandidates, build_slots, score_candidates
from vedette.engine.search.search import (
    CANDIDATE_WINDOW,
    DEEP_WINDOW,
    DEEPEST,
    FEW_WORDS,
    IN_ORDER,
    MAX_HOMES,
    NEWEST,
    SHALLOW,
    SIMILAR,
    SMALL_WINDOW,
    Searcher,
    apply_filters,
)
from vedette.engine.search.word_forms import CORRECTION_WEIGHT, build_forms, find_completions, is_found
from vedette.index.features import compute_idf
from vedette.index.feedback import cut_heads
from vedette.index.fields import PUBLIC
from vedette.index.query.parser import parse_query
from vedette.index.query.planner import RetrievalPlan, WordForms, build_plan
from vedette.index.query.retrieval import (
    TEXT_FIELDS,
    And,
    AndNot,
    DisMax,
    ForwardTokens,
    Hits,
    Node,
    Or,
    Phrase,
    Range,
    Term,
)
from vedette.index.semantic.latent_space import Vectors
from vedette.index.semantic.similarity import Similarity, scale_cosines
from vedette.policy import Floats, Ints
from vedette.serve.rank.rules import NO_RULES, SearchRules
from vedette.serve.slate import SearchRequest, SearchResult

MAX_KEPT = 256
# Pages with the same text in several shards are copies, if they have at least this many words.
MIN_COPY_WORDS = 20
_BODY = TEXT_FIELDS.index("body")

Forms = tuple[tuple[str, float], ...]


class WordStatistics(NamedTuple):
    """A word in one or all shards: its document frequency by text field, other forms, and if public pages have it."""

    df: tuple[int, ...] = (0,) * len(TEXT_FIELDS)
    forms: Forms = ()
    is_known: bool = False


class Statistics(NamedTuple):
    """What a shard must know of all others to answer a query: the number of pages, and the words of the query.

    ``corrections`` are words that no page has, and what is searched instead.
    """

    pages: int
    words: dict[str, WordStatistics]
    corrections: dict[str, str]


class Description(NamedTuple):
    """A shard's pages, and what it knows of some words."""

    pages: int
    words: dict[str, WordStatistics]


class Correction(NamedTuple):
    """A shard's spelling of a query's words, the pages that support it, and unknown words that some page has."""

    words: tuple[str, ...] = ()
    pages: int = 0
    found: tuple[str, ...] = ()


class WayHits(NamedTuple):
    """What one way to find candidates found in a shard: the number of pages, and keys by which the best are chosen."""

    total: int
    keys: tuple[float, ...]


class Glance(NamedTuple):
    """A shard's first reply to a query: what each way found, and how many looser plans there are."""

    ways: dict[str, WayHits]
    looser: int = 0
    has_unquoted: bool = False
    is_question: bool = False
    has_meaning: bool = False
    window: int = CANDIDATE_WINDOW


class ShardCandidates(NamedTuple):
    """Scored candidates of a shard, as columns. ``texts`` has a hash of each page's text, 0 for short ones.

    ``heads`` are the words that feedback compares, empty if it does not count for the query.
    """

    ids: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    hosts: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    families: tuple[int, ...] = ()
    releases: tuple[float, ...] = ()
    canonical: tuple[bool, ...] = ()
    texts: tuple[int, ...] = ()
    pinned: tuple[int, ...] = ()
    hidden: int = 0
    feedback_weight: float = 0.0
    known: tuple[int, ...] = ()
    heads: bytes = b""
    head_lengths: bytes = b""
    is_navigational: bool = False


class ShownRow(NamedTuple):
    """A candidate that is shown, and the other releases folded under it."""

    id: int
    versions: tuple[int, ...] = ()


class ShownResults(NamedTuple):
    """Results of a shard as they are shown, by the order asked for, and query words that some of them lack."""

    results: tuple[SearchResult | None, ...] = ()
    missing: tuple[str, ...] = ()


class SharedMeaning(Protocol):
    """Port to the vectors of a shard's pages, which a model has made that all shards have."""

    def get_examples(self, best: Ints, scores: Floats) -> Vectors | None:
        """Return the sum of the vectors of pages, by their scores; None if none has one."""

    def compare_cosines(self, words: Sequence[str], examples: Vectors | None) -> tuple[Ints, Floats] | None:
        """Compare all pages with a query and examples; None if there are no vectors."""


class Cosines(NamedTuple):
    """How similar a shard's pages are to a query: their number, and the sums of cosines and of their squares."""

    pages: int = 0
    total: float = 0.0
    squares: float = 0.0


class _Session(NamedTuple):
    """A search in progress: the request, its plan, and what was found so far."""

    wish: SearchRequest
    now_s: float
    plan: RetrievalPlan
    words: tuple[str, ...]
    statistics: Statistics
    access: tuple[str, ...]
    hits: dict[str, Hits]
    scored: list[ScoredCandidates]
    takes: dict[str, int]
    cosines: list[tuple[Ints, Floats]]


class ShardSearcher(Searcher):
    """Answer the rounds of a gateway over one index snapshot; several searches may be in progress at once."""

    def __init__(
        self, shelf: IndexSnapshot, rules: SearchRules = NO_RULES, meaning: SharedMeaning | None = None
    ) -> None:
        super().__init__(shelf, rules)
        self._sessions: dict[str, _Session] = {}
        self._meaning = meaning

    def describe(self, words: Sequence[str]) -> Description:
        """Return how many pages the shard has, and what it knows of the words and their other forms."""
        forms, found = build_forms(self._snapshot, self._rules), dict[str, WordStatistics]()
        for word in words:
            found[word] = self._describe_word(word, tuple(forms(word)))
            for form, _ in found[word].forms:
                for part in form.split():
                    if part not in found:
                        found[part] = self._describe_word(part, ())
        return Description(len(self._snapshot.finder), found)

    def _describe_word(self, word: str, forms: Forms) -> WordStatistics:
        df = tuple(self._snapshot.finder.df(field, word) for field in TEXT_FIELDS)
        return WordStatistics(df, forms, self._snapshot.is_known(word))

    def correct(self, words: Sequence[str], unknown: Sequence[str], access: Sequence[str]) -> Correction:
        """Spell the words of a query as this shard would, and return the unknown ones that a visible page has."""
        better = self._snapshot.suggest_spelling(words) or ()
        changed = [word for word in better if word not in words]
        pages = min((self._snapshot.df(word) for word in changed), default=0)
        found = tuple(word for word in unknown if is_found(word, self._snapshot, access))
        return Correction(tuple(better), pages, found)

    def look(self, id_: str, wish: SearchRequest, statistics: Statistics, now_s: float) -> Glance:
        """Find the pages that have the query's words, and those in its order; for a question also those with some."""
        asked = apply_filters(parse_query(wish.query, now_s), wish)
        access = (PUBLIC, *wish.allowed)
        more = find_completions(asked, self._snapshot) if wish.is_partial else {}
        more |= {word: [(meant, CORRECTION_WEIGHT)] for word, meant in statistics.corrections.items()}
        plan = build_plan(
            asked, _build_global_forms(statistics, build_forms(self._snapshot, self._rules), more), access
        )
        session = _Session(wish, now_s, plan, asked.words, statistics, access, {}, [], {}, [])
        self._sessions[id_] = session
        while len(self._sessions) > MAX_KEPT:
            del self._sessions[next(iter(self._sessions))]
        window = CANDIDATE_WINDOW if len(plan.wanted) <= FEW_WORDS and not wish.is_partial else SMALL_WINDOW
        strict = self._find(session, "strict", plan.node, max(window, _count_wanted(wish)))
        finder = self._snapshot.finder
        if strict.total > window and not wish.is_partial:
            session.hits["newest"] = finder.newest(plan.node, NEWEST)
            if plan.address is not None:
                session.hits["address"] = finder.find(plan.address, MAX_HOMES)
            if plan.named is not None:
                self._find(session, "named", plan.named, IN_ORDER)
        if plan.in_order is not None:
            self._find(session, "in_order", plan.in_order, window)
        if plan.is_question and plan.looser:
            self._loosen(session, 0)
        ways = {name: _list_keys(hits, name) for name, hits in session.hits.items()}
        has_meaning = self._meaning is not None and bool(asked.words)
        return Glance(ways, len(plan.looser), plan.unquoted is not None, plan.is_question, has_meaning, window)

    def loosen(self, id_: str, number: int) -> Glance:
        """Find pages with fewer of the words, by the looser plan of this number; the last is without quotes."""
        session = self._sessions[id_]
        name = self._loosen(session, number)
        return Glance({name: _list_keys(session.hits[name], name)})

    def _loosen(self, session: _Session, number: int) -> str:
        plan, wanted = session.plan, _count_wanted(session.wish)
        node = plan.looser[number] if number < len(plan.looser) else plan.unquoted
        assert node is not None
        window = SMALL_WINDOW if session.wish.is_partial else CANDIDATE_WINDOW if wanted <= SHALLOW else DEEP_WINDOW
        name = name_looser(number)
        self._find(session, name, node, window)
        return name

    def _find(self, session: _Session, name: str, node: Node, most: int) -> Hits:
        balanced = self._balance(node, session.statistics)
        session.hits[name] = self._snapshot.finder.find(balanced, most, count=True)
        return session.hits[name]

    def score(self, id_: str, takes: Mapping[str, int]) -> ShardCandidates:
        """Score the first candidates of each way, and those that the operator pinned."""
        session = self._sessions[id_]
        session.takes.update(takes)
        return self._score_candidates(session, None)

    def get_examples(self, id_: str, ids: Sequence[int], scores: Sequence[float]) -> bytes:
        """Return the sum of the vectors of some of the best pages of all shards; empty if there are none."""
        if self._meaning is None or not self._sessions[id_].words:
            return b""
        found = self._meaning.get_examples(np.array(ids, np.int64), np.array(scores))
        return b"" if found is None else found.astype(np.float32).tobytes()

    def measure(self, id_: str, examples: bytes) -> Cosines:
        """Compare all pages of the shard with the query and the examples of all shards."""
        session = self._sessions[id_]
        if self._meaning is None or not session.words:
            return Cosines()
        vector = np.frombuffer(examples, np.float32) if examples else None
        found = self._meaning.compare_cosines(session.words, vector)
        if found is None:
            return Cosines()
        session.cosines[:] = [found]
        return Cosines(len(found[0]), float(found[1].sum()), float((found[1] ** 2).sum()))

    def rescore(self, id_: str, mean: float, spread: float) -> ShardCandidates:
        """Score the candidates again, with those that are closest in meaning, by the cosines of all shards."""
        session = self._sessions[id_]
        near = scale_cosines(*session.cosines[0], mean, spread) if session.cosines else None
        return self._score_candidates(session, near)

    def _score_candidates(self, session: _Session, near: Similarity | None) -> ShardCandidates:
        hits, takes = session.hits, session.takes
        ways = [hits[name].ids[:most] for name, most in takes.items() if name in hits]
        ids = np.array(list(dict.fromkeys(id_ for way in ways for id_ in way.tolist())), np.int64)
        if near is not None:
            close = near.best(SIMILAR)
            among = Or(tuple(Range("id", each, each) for each in close[~np.isin(close, ids)].tolist()))
            if among.parts:
                found = self._snapshot.finder.find(And((session.plan.within, among)), SIMILAR)
                ids = np.concatenate((ids, found.ids))
        none = np.zeros(0, np.int64)
        newest, in_order = (hits[name].ids if name in hits else none for name in ("newest", "in_order"))
        hints = IndexHints(np.concatenate((hits["strict"].ids, newest)), lambda: in_order)
        ids, pins, hidden = self._permit(session, ids)
        pages, words = session.statistics.pages, session.statistics.words
        slots = build_slots(session.plan.wanted, lambda word: self._count_df(word, words), pages)
        favoured = self._rules.favoured
        scored = score_candidates(
            ids, session.plan.wanted, self._snapshot, session.now_s, hints, favoured, near, slots=slots
        )
        session.scored[:] = [scored]
        forward = self._snapshot.forward(ids)
        weight = scored.weights.get("feedback", 0.0)
        heads = cut_heads(forward) if weight else None
        known = tuple(number for slot in slots for number in slot.numbers) if weight else ()
        signals = scored.signals
        return ShardCandidates(
            tuple(ids.tolist()),
            tuple(scored.scores.tolist()),
            tuple(signals.host.tolist()),
            tuple(signals.group.tolist()),
            tuple(np.zeros(len(ids), np.int64).tolist() if signals.family is None else signals.family.tolist()),
            tuple(np.zeros(len(ids)).tolist() if signals.release is None else signals.release.tolist()),
            tuple([True] * len(ids) if signals.is_canonical is None else signals.is_canonical.tolist()),
            _hash_texts(forward),
            tuple(pins.tolist()),
            hidden,
            weight,
            known,
            heads.words.tobytes() if heads is not None else b"",
            heads.lengths.astype(np.int32).tobytes() if heads is not None else b"",
            bool(len(ids)) and scored.is_navigational,
        )

    def _permit(self, session: _Session, ids: Ints) -> tuple[Ints, Ints, int]:
        """Return the candidates that may be shown, with those that the operator pinned, and how many are hidden."""
        rules, words, access = self._rules, session.words, session.access
        pins = self._find_pages(rules.get_pinned(words) if rules.pinned else (), access)
        hides = rules.get_hidden(words) if rules.hidden else frozenset()
        hidden = self._find_pages(tuple(sorted(hides)), access)
        if len(pins):
            ids = np.array(list(dict.fromkeys([*ids.tolist(), *pins.tolist()])), np.int64)
        if len(hidden):
            ids = ids[~np.isin(ids, hidden)]
        if len(ids):
            ids = ids[[held in access for held in self._snapshot.get_access(ids)]]
        return ids, pins, len(hidden)

    def show(self, id_: str, rows: Sequence[ShownRow], finds_missing: bool) -> ShownResults:  # noqa: FBT001 - as it is sent
        """Build the results at these rows; one that is gone is None."""
        session = self._sessions.pop(id_)
        scored, plan, wish = session.scored[0], session.plan, session.wish
        places = {number: place for place, number in enumerate(scored.ids.tolist())}
        known = [row for row in rows if row.id in places]
        built = dict(
            zip(
                (row.id for row in known),
                self._build_results(
                    wish,
                    plan,
                    scored,
                    [places[row.id] for row in known],
                    {places[row.id]: np.array(row.versions, np.int64) for row in known},
                ),
                strict=True,
            )
        )
        missing = scored.find_missing_words([places[row.id] for row in known], plan.wanted) if finds_missing else ()
        return ShownResults(tuple(built.get(row.id) for row in rows), missing)

    # Statistics of all shards

    def _count_df(self, word: str, words: Mapping[str, WordStatistics]) -> int:
        """Return in how many pages of all shards a word is, or of this one if the gateway did not ask for it."""
        return words[word].df[_BODY] if word in words else self._snapshot.df(word)

    def _balance(self, node: Node, statistics: Statistics) -> Node:
        """Correct the boosts of words from their idf in this shard to that in all shards."""
        finder, known = self._snapshot.finder, dict[tuple[str, str], tuple[float, float]]()
        pages = len(finder)

        def weigh(field: str, word: str) -> tuple[float, float]:
            """The idf of a word in all shards, and in this one."""
            if (field, word) not in known:
                own = compute_idf(finder.df(field, word), pages)
                about = statistics.words.get(word)
                shared = own if about is None else compute_idf(about.df[TEXT_FIELDS.index(field)], statistics.pages)
                known[field, word] = shared, own
            return known[field, word]

        return _balance_node(node, weigh)


def name_looser(number: int) -> str:
    """Name the way of finding candidates by a looser plan.

    >>> name_looser(1)
    'loose1'
    """
    return f"loose{number}"


def _count_wanted(wish: SearchRequest) -> int:
    return min(max(wish.n, 1) * max(wish.page, 1), DEEPEST)


def _list_keys(hits: Hits, name: str) -> WayHits:
    """Return what decides which of the hits are among the best of all shards; the newest have only their order."""
    keys = -np.arange(len(hits.ids)) if name == "newest" else np.round(hits.scores, 4)
    return WayHits(hits.total, tuple(keys.astype(float).tolist()))


def _build_global_forms(
    statistics: Statistics, own: WordForms, more: Mapping[str, Sequence[tuple[str, float]]]
) -> WordForms:
    """Build the lookup of a word's other forms in all shards; a word that the gateway did not ask for has its own."""

    def forms(word: str) -> Sequence[tuple[str, float]]:
        about = statistics.words.get(word)
        known = own(word) if about is None else about.forms
        return tuple((dict(known) | dict(more.get(word, ()))).items())

    return forms


def _balance_node(node: Node, weigh: Callable[[str, str], tuple[float, float]]) -> Node:  # noqa: PLR0911 - one for each kind of node
    match node:
        case Term(field, word, boost):
            shared, own = weigh(field, word)
            return Term(field, word, boost * shared / own)
        case Phrase(field, words, boost, slop):
            pairs = [weigh(field, word) for word in words]
            shared, own = (sum(side) for side in zip(*pairs, strict=True))
            return Phrase(field, words, boost * shared / own, slop)
        case Or(parts, at_least):
            return Or(tuple(_balance_node(part, weigh) for part in parts), at_least)
        case And(parts, wishes):
            return And(
                tuple(_balance_node(part, weigh) for part in parts),
                tuple(_balance_node(part, weigh) for part in wishes),
            )
        case AndNot(wanted, unwanted):
            return AndNot(_balance_node(wanted, weigh), unwanted)
        case DisMax(parts, tie):
            return DisMax(tuple(_balance_node(part, weigh) for part in parts), tie)
        case _:
            return node


def _hash_texts(forward: ForwardTokens) -> tuple[int, ...]:
    """Hash the text of each page, by which copies in different shards are found."""
    sizes = forward.lengths[:, _BODY]
    ends = np.cumsum(forward.lengths.sum(axis=1))
    data = memoryview(forward.words.tobytes())
    return tuple(
        xxhash.xxh3_64_intdigest(data[4 * (end - size) : 4 * end]) >> 1 if size >= MIN_COPY_WORDS else 0
        for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)
    )
