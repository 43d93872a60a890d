"""Gateway of a cluster's search: ask all shards, and merge what they found into one slate.

Shards score their candidates with the statistics of all shards (``engine.search.shard_search``), so that the scores are
comparable, and the gateway orders them as one index would: copies and releases are folded, and sites spread. Only the
owners of the results on the page build them. A shard that does not reply in time is left out, and the slate says so.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

from vedette.engine.search.ports import PageSignals
from vedette.engine.search.scoring import ALL_FEATURES, ScoredCandidates
from vedette.engine.search.search import (
    CANDIDATE_WINDOW,
    DEEP_WINDOW,
    DEEPEST,
    EXAMPLES,
    IN_ORDER,
    MAX_HOMES,
    MIN_RESULTS,
    NEWEST,
    NO_PHRASE_NOTE,
    SHALLOW,
    SMALL_WINDOW,
    SPELLING_THRESHOLD,
    ResultOrder,
    apply_filters,
    order_results,
    suggest_query,
)
from vedette.engine.search.shard_search import (
    Correction,
    Cosines,
    Description,
    Glance,
    ShardCandidates,
    ShownResults,
    ShownRow,
    Statistics,
    WordStatistics,
    name_looser,
)
from vedette.engine.search.word_forms import MAX_UNKNOWN, is_plain, quote_words, replace_words
from vedette.index.feedback import score_feedback
from vedette.index.fields import PUBLIC
from vedette.index.query.parser import ParsedQuery, format_query, parse_query, unquote
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.index.query.vocabulary import is_stop_word
from vedette.policy import Floats, Ints
from vedette.serve.rank.reputation import Reputation
from vedette.serve.slate import Reason, SearchRequest, SearchResult, Slate

# The id of a page in all shards has its shard in the upper bits; it is exact as a number in JavaScript, too.
ID_BITS = 40
STATISTICS_TTL_S = 30.0
MAX_CACHED_WORDS = 50_000
# The index of a shard measures lengths by those of its own pages, so its scores are not quite comparable: more
# candidates than in one index are scored. Twice as many found no more of its results in bench/cluster_search.py.
WIDER = 1.5
# Numbers of hosts and groups are below this in each shard.
_HOST_BITS = 32
_HOME = next(column for column, feature in enumerate(ALL_FEATURES) if feature.key == "home")
_FEEDBACK_NAME = next(feature.words for feature in ALL_FEATURES if feature.key == "feedback")


class Shards(Protocol):
    """Port to the search processes of all shards."""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of all shards, whether they run or not."""

    def ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a verb in several shards at once; return the replies of those that responded in time."""


def join_id(shard: int, id_: int) -> int:
    """Return the id of a shard's page in all shards.

    >>> split_id(join_id(3, 17))
    (3, 17)
    """
    return shard << ID_BITS | id_


def split_id(id_: int) -> tuple[int, int]:
    """Return the shard of a page, and its id there."""
    return id_ >> ID_BITS, id_ & ((1 << ID_BITS) - 1)


def join_host(shard: int, host: int) -> int:
    """Return the number of a shard's host in all shards."""
    return shard << _HOST_BITS | host


class _Merged(NamedTuple):
    """Candidates of all shards: their scores and signals in one order, the pinned ones, and how many are hidden."""

    scored: ScoredCandidates
    pins: Ints
    hidden: int
    feedback: Floats


class Gateway:
    """Search all shards of a cluster. ``name`` is the gateway's own: shards keep its searches apart from others'.

    ``reputation`` is what was learned from clicks, if anything.
    """

    def __init__(self, shards: Shards, name: str = "") -> None:
        self._shards, self._name = shards, name
        self.reputation: Reputation | None = None
        self._pages = 0
        self._words: dict[str, WordStatistics] = {}
        self._forms: dict[str, WordStatistics] = {}
        self._counted_s = float("-inf")
        self._serials = count(1)

    def search(self, wish: SearchRequest, now_s: float) -> Slate:
        """Answer a search request from all shards that respond."""
        asked = apply_filters(parse_query(wish.query, now_s), wish)
        if asked.is_empty:
            return Slate(wish, 0, notes=asked.notes)
        statistics, missing = self._gather_statistics(asked, wish, now_s)
        run = _Run(self._shards, f"{self._name} {next(self._serials)}", wish, statistics, now_s, missing)
        slate = self._search(run, asked)
        if not slate.total and (plain := unquote(asked)) != asked:
            words = wish._replace(query=format_query(plain))
            run = _Run(self._shards, f"{self._name} {next(self._serials)}", words, statistics, now_s, run.missing)
            slate = self._search(run, plain._replace(notes=(*asked.notes, NO_PHRASE_NOTE)))
        slate = slate._replace(request=wish, notes=(*slate.notes, *self.describe_missing(run.missing)))
        if not statistics.corrections or not slate.results:
            return slate
        corrected, verbatim = replace_words(asked, statistics.corrections), quote_words(asked, statistics.corrections)
        return slate._replace(suggestion="", corrected=corrected, verbatim=verbatim)

    def describe_missing(self, missing: frozenset[int]) -> tuple[str, ...]:
        """Describe in a note which part of the index a slate lacks; nothing if it is complete."""
        if not missing:
            return ()
        parts = len(self._shards.numbers)
        return (f"Some results may be missing: {len(missing)} of {parts} parts of the index did not respond.",)

    def _search(self, run: "_Run", asked: ParsedQuery) -> Slate:
        found = run.find()
        merged = run.score(found)
        if found.has_meaning:
            merged = run.compare_meaning(merged)
        if not len(merged.scored.ids):
            return Slate(run.wish, 0, (), asked.notes)
        shown = order_results(merged.scored, run.wish, merged.pins, self.reputation, is_spread=not asked.sites)
        results, missing = run.show(merged, shown, is_loose=found.is_loose)
        relaxed = tuple(word for word in dict.fromkeys(asked.words) if word in missing)
        total = max(0, found.total - merged.hidden)
        suggestion = ""
        if (total < SPELLING_THRESHOLD or found.is_loose) and not run.wish.is_partial:
            suggestion = suggest_query(asked, results, lambda words: self._suggest(words, (), run.wish)[1])
        return Slate(run.wish, total, results, asked.notes, suggestion, relaxed)

    # Statistics

    def _gather_statistics(
        self, asked: ParsedQuery, wish: SearchRequest, now_s: float
    ) -> tuple[Statistics, frozenset[int]]:
        """Gather what shards must know of the query's words, and which shards did not respond."""
        if not 0 <= now_s - self._counted_s < STATISTICS_TTL_S or len(self._words) > MAX_CACHED_WORDS:
            self._words.clear()
            self._forms.clear()
            self._counted_s = now_s
        words = list(dict.fromkeys(asked.words))
        unknown = [word for word in words if word not in self._words]
        missing = frozenset[int]()
        if unknown or not self._pages:
            numbers = self._shards.numbers
            replies: dict[int, Description] = self._shards.ask("describe", dict.fromkeys(numbers, (unknown,)))
            missing = frozenset(numbers) - replies.keys()
            self._pages = sum(reply.pages for reply in replies.values())
            self._merge_words(unknown, list(replies.values()))
        known = {word: self._words[word] for word in words}
        parts = {part for about in known.values() for form, _ in about.forms for part in form.split()}
        known |= {part: self._forms[part] for part in sorted(parts) if part in self._forms and part not in known}
        return Statistics(self._pages, known, self._find_corrections(asked, known, wish)), missing

    def _merge_words(self, asked: Sequence[str], replies: Sequence[Description]) -> None:
        for name in dict.fromkeys(name for reply in replies for name in reply.words):
            told = [reply.words[name] for reply in replies if name in reply.words]
            forms: dict[str, float] = {}
            for about in told:
                for form, weight in about.forms:
                    forms[form] = max(weight, forms.get(form, 0.0))
            df = tuple(sum(column) for column in zip(*(about.df for about in told), strict=True))
            into = self._words if name in asked else self._forms
            into[name] = WordStatistics(df, tuple(forms.items()), any(about.is_known for about in told))
        for word in asked:
            self._words.setdefault(word, WordStatistics())

    def _find_corrections(
        self, asked: ParsedQuery, known: Mapping[str, WordStatistics], wish: SearchRequest
    ) -> dict[str, str]:
        """Find the words of the query that are on no page that the user may see, and how they are probably spelled."""
        plain = [group[0].words[0] for group in asked.every if is_plain(group)]
        checked = [word for word in dict.fromkeys(plain) if not (wish.is_partial and word == plain[-1])]
        unknown = [word for word in checked if not (is_stop_word(word) or known[word].is_known or known[word].forms)]
        if not unknown or len(unknown) > MAX_UNKNOWN:
            return {}
        found, better = self._suggest(plain, unknown, wish)
        if better is None or len(better) != len(plain):
            return {}
        return {
            word: meant
            for word, meant in zip(plain, better, strict=True)
            if word in unknown and word not in found and word != meant
        }

    def _suggest(
        self, words: Sequence[str], unknown: Sequence[str], wish: SearchRequest
    ) -> tuple[frozenset[str], tuple[str, ...] | None]:
        """Return which unknown words some page has after all, and the spelling that most pages support."""
        access = (PUBLIC, *wish.allowed)
        arguments = dict.fromkeys(self._shards.numbers, (tuple(words), tuple(unknown), access))
        replies: dict[int, Correction] = self._shards.ask("correct", arguments)
        found = frozenset(word for reply in replies.values() for word in reply.found)
        best = max(replies.values(), key=lambda reply: reply.pages, default=Correction())
        return found, best.words or None


class _Found(NamedTuple):
    """How many candidates of each way each shard shall score, the total, and whether looser plans added pages.

    ``has_meaning`` says whether some shard can compare the meaning of pages.
    """

    takes: dict[int, dict[str, int]]
    total: int
    is_loose: bool
    has_meaning: bool = False


class _Run:
    """One search over all shards, round by round."""

    def __init__(
        self,
        shards: Shards,
        id_: str,
        wish: SearchRequest,
        statistics: Statistics,
        now_s: float,
        missing: frozenset[int],
    ) -> None:
        self._shards, self._id, self.wish, self._statistics, self._now_s = shards, id_, wish, statistics, now_s
        self.missing = missing

    def find(self) -> _Found:
        """Find candidates in all shards, and choose the best of each way as one index would."""
        wish = self.wish
        arguments = (self._id, wish, self._statistics, self._now_s)
        glances: dict[int, Glance] = self._ask("look", dict.fromkeys(self._running(), arguments))
        glances = {shard: glance for shard, glance in glances.items() if glance.ways}  # without those with no index
        takes: dict[int, dict[str, int]] = {shard: {} for shard in glances}
        if not glances:
            return _Found(takes, 0, is_loose=False)
        first = next(iter(glances.values()))
        wanted = min(max(wish.n, 1) * max(wish.page, 1), DEEPEST)
        total = sum(glance.ways["strict"].total for glance in glances.values())
        for name, most in (("strict", max(first.window, wanted)), ("in_order", IN_ORDER)):
            _choose(takes, glances, name, most)
        if total > first.window:
            for name, most in (("newest", NEWEST), ("address", MAX_HOMES), ("named", IN_ORDER)):
                _choose(takes, glances, name, most)
        few, is_loose = max(MIN_RESULTS, wanted), False
        window = SMALL_WINDOW if wish.is_partial else CANDIDATE_WINDOW if wanted <= SHALLOW else DEEP_WINDOW
        for number in range(first.looser) if total < few or first.is_question else ():
            name = name_looser(number)
            looser = glances if name in first.ways else self._loosen(glances, number)
            matching = _choose(takes, looser, name, window)
            if total < few:
                is_loose |= matching > total
                total = max(total, matching)
            if total >= few:
                break
        if first.has_unquoted and total < MIN_RESULTS:
            unquoted = self._loosen(glances, first.looser)
            total = max(total, _choose(takes, unquoted, name_looser(first.looser), first.window))
            is_loose = True
        return _Found(takes, total, is_loose, any(glance.has_meaning for glance in glances.values()))

    def score(self, found: _Found) -> _Merged:
        """Have the chosen candidates scored, and merge them."""
        arguments = {shard: (self._id, takes) for shard, takes in found.takes.items() if takes}
        return _merge(self._ask("score", arguments))

    def compare_meaning(self, merged: _Merged) -> _Merged:
        """Have the candidates scored again by their meaning, compared with the query and the best pages by words."""
        running = self._running()
        best = np.argsort(-merged.scored.scores, kind="stable")[:EXAMPLES].tolist()
        examples: dict[int, tuple[list[int], list[float]]] = {}
        for row in best:
            shard, id_ = split_id(int(merged.scored.ids[row]))
            ids, scores = examples.setdefault(shard, ([], []))
            ids.append(id_)
            scores.append(max(float(merged.scored.scores[row]), 0.0))
        found: dict[int, bytes] = self._ask(
            "get_examples", {shard: (self._id, *values) for shard, values in examples.items()}
        )
        vectors = [np.frombuffer(each, np.float32) for each in found.values() if each]
        total = b"" if not vectors or len({len(each) for each in vectors}) > 1 else np.sum(vectors, axis=0).tobytes()
        cosines: dict[int, Cosines] = self._ask("measure", dict.fromkeys(running, (self._id, total)))
        pages = sum(each.pages for each in cosines.values())
        if not pages:
            return merged
        mean = sum(each.total for each in cosines.values()) / pages
        spread = max(sum(each.squares for each in cosines.values()) / pages - mean**2, 0.0) ** 0.5
        return _merge(self._ask("rescore", dict.fromkeys(cosines, (self._id, mean, spread))))

    def show(
        self, merged: _Merged, shown: ResultOrder, *, is_loose: bool
    ) -> tuple[tuple[SearchResult, ...], frozenset[str]]:
        """Have the results of the page built by their shards; return them with query words that some lack."""
        wish = self.wish
        start = (max(wish.page, 1) - 1) * max(wish.n, 1)
        rows = shown.rows[start : start + max(wish.n, 1)].tolist() if start < DEEPEST else []
        ids = merged.scored.ids
        wanted: dict[int, list[ShownRow]] = {}
        for row in rows:
            shard, id_ = split_id(int(ids[row]))
            others = tuple(split_id(int(ids[other]))[1] for other in shown.versions.get(row, ()))
            wanted.setdefault(shard, []).append(ShownRow(id_, others))
        arguments = {shard: (self._id, tuple(each), is_loose) for shard, each in wanted.items()}
        replies: dict[int, ShownResults] = self._ask("show", arguments)
        built = {
            join_id(shard, row.id): result
            for shard, reply in replies.items()
            for row, result in zip(wanted[shard], reply.results, strict=True)
            if result is not None
        }
        results = [self._complete(built[int(ids[row])], merged, shown, row) for row in rows if int(ids[row]) in built]
        return tuple(results), frozenset(word for reply in replies.values() for word in reply.missing)

    def _complete(self, result: SearchResult, merged: _Merged, shown: ResultOrder, row: int) -> SearchResult:
        """Add to a result what only the gateway knows: its id in all shards, copies in others, feedback and notes."""
        points = float(merged.feedback[row])
        result = result._replace(
            id=int(merged.scored.ids[row]),
            score=float(merged.scored.scores[row]),
            similar=max(result.similar, shown.similar.get(row, 0)),
        )
        if points:
            result = result._replace(features=(*result.features, ("feedback", points)))
        if self.wish.is_partial:
            return result
        is_added = points and self.wish.is_explained
        why = (*result.why, Reason(_FEEDBACK_NAME, points, 1.0, points)) if is_added else result.why
        result = result._replace(note=shown.notes.get(row, ""), why=why)
        learned = shown.learned
        return learned.annotate(result, row, self.wish.is_explained) if learned.believed else result

    def _running(self) -> list[int]:
        return [shard for shard in self._shards.numbers if shard not in self.missing]

    def _loosen(self, glances: Mapping[int, Glance], number: int) -> dict[int, Glance]:
        return self._ask("loosen", dict.fromkeys(glances, (self._id, number)))

    def _ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        replies = self._shards.ask(verb, arguments) if arguments else {}
        self.missing |= arguments.keys() - replies.keys()
        return replies


def _choose(takes: dict[int, dict[str, int]], glances: Mapping[int, Glance], name: str, most: int) -> int:
    """Choose the best hits of a way in all shards; return how many pages it matches."""
    ways = {shard: glance.ways[name] for shard, glance in glances.items() if name in glance.ways}
    pairs = [(-key, shard) for shard, way in ways.items() for key in way.keys]
    for shard, hits in Counter(shard for _, shard in sorted(pairs)[: round(WIDER * most)]).items():
        takes[shard][name] = hits
    return sum(way.total for way in ways.values())


def _merge(replies: Mapping[int, ShardCandidates]) -> _Merged:
    """Merge the candidates of shards; hosts, groups and families are numbered by each shard."""
    shards = sorted(replies)
    parts = [replies[shard] for shard in shards]
    owner = np.repeat(np.array(shards, np.int64), [len(part.ids) for part in parts])

    def join(name: str, dtype: type) -> Any:  # noqa: ANN401 - an array of this type
        return np.array([value for part in parts for value in getattr(part, name)], dtype)

    def number(name: str) -> Ints:
        column = join(name, np.int64)
        joined: Ints = np.where(column > 0, owner << _HOST_BITS | column, 0)
        return joined

    ids = owner << ID_BITS | join("ids", np.int64)
    scores, neutral = join("scores", np.float64), PageSignals.neutral(len(ids))
    signals = neutral._replace(
        host=owner << _HOST_BITS | join("hosts", np.int64),
        group=_join_copies(number("groups"), join("texts", np.int64), owner),
        family=join("families", np.int64),  # a hash, the same in each shard
        release=join("releases", np.float64),
        is_canonical=join("canonical", np.bool_),
    )
    feedback = _score_feedback(parts, scores)
    none = np.zeros((len(ids), len(ALL_FEATURES)))
    features = none.copy()
    if any(part.is_navigational for part in parts):
        features[:, _HOME] = 1.0
    pins = np.array([join_id(shard, pin) for shard in shards for pin in replies[shard].pinned], np.int64)
    scored = ScoredCandidates(ids, signals, features, none, scores + feedback)
    return _Merged(scored, pins, sum(part.hidden for part in parts), feedback)


def _join_copies(groups: Ints, texts: Ints, owner: Ints) -> Ints:
    """Give pages with the same text in different shards one group; 0 is a text too short to compare.

    >>> _join_copies(np.array([5, 6, 7, 8]), np.array([1, 1, 0, 2]), np.array([0, 1, 1, 1])).tolist()
    [5, 5, 7, 8]
    """
    joined, first, renamed = groups.tolist(), dict[int, int](), dict[int, int]()
    for row, text in enumerate(texts.tolist()):
        before = first.setdefault(text, row)
        if text and owner[before] != owner[row]:
            joined[before] = joined[before] or -1 - before  # a page without copies has no group in its shard
            renamed[joined[row] or -1 - row] = joined[before]
            joined[row] = joined[row] or -1 - row
    return np.array([renamed.get(group, group) for group in joined], np.int64)


def _score_feedback(parts: Sequence[ShardCandidates], scores: Floats) -> Floats:
    """Score how much candidates share the words of the best ones of all shards, if that counts for the query."""
    weight = max((part.feedback_weight for part in parts), default=0.0)
    if not weight or not len(scores):
        return np.zeros(len(scores))
    words = np.concatenate([np.frombuffer(part.heads, np.uint32) for part in parts])
    lengths = np.concatenate([np.frombuffer(part.head_lengths, np.int32) for part in parts])
    forward = ForwardTokens(words, lengths.reshape(-1, len(TEXT_FIELDS)).astype(np.int64))
    known = np.array([number for part in parts[:1] for number in part.known], np.uint32)
    return weight * score_feedback(forward, np.argsort(-scores, kind="stable"), known)
