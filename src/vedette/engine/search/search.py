"""Search engine: from the query that a user typed to a slate of results with reasons.

1. The query is parsed, and the filters chosen beside it are added; a plan says what to look up in the index.
2. *Candidates* are the best pages by the index's own scores. Pages too new to have in-links, and home pages of sites
   that the query names, are added separately. If too few have all words, looser plans add some.
3. Candidates are scored by their words, word order and proximity, and by page signals.
4. Learned click quality is added to the score, and pages that few people have seen get a chance.
5. The operator's rules, folding of copies and the share of each site decide what is shown; deeper pages of results
   follow in index order.

Pages that a user may not see are excluded by the index, and again before anything is shown.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vedette.engine.search.ports import IndexSnapshot
from vedette.engine.search.scoring import (
    IndexHints,
    LearnedOrder,
    ScoredCandidates,
    order_by_learning,
    score_candidates,
)
from vedette.index.fields import PUBLIC, StoredPage, list_site_values
from vedette.index.query.parser import ParsedQuery, QueryPart, format_query, parse_query, unquote
from vedette.index.query.planner import RetrievalPlan, WordForms, build_plan
from vedette.index.query.retrieval import And, Node, Or, Range, TermSet
from vedette.index.snippets import choose_sections, cut_snippet, find_hits, split_sections
from vedette.model import origin_of
from vedette.policy import Ints
from vedette.serve.rank.diversity import MOVED_NOTE, find_newest, fold_copies, spread_sites
from vedette.serve.rank.reputation import Reputation
from vedette.serve.rank.rules import NO_RULES, PINNED, SearchRules
from vedette.serve.slate import SNIPPET_LENGTH, ResultSection, SearchRequest, SearchResult, Slate, Snippet
from vedette.text import hash_word, split_words

CANDIDATE_WINDOW = 100
# With many words the index is more precise, so fewer pages need scoring.
FEW_WORDS, SMALL_WINDOW = 5, 60
NEWEST = 30
MAX_HOMES = 10
IN_ORDER = 30
DEEPEST = 1000
# With fewer results than this, looser plans are tried as well.
MIN_RESULTS = 20
# With fewer than this, another spelling is suggested.
SPELLING_THRESHOLD = 3
NO_PHRASE_NOTE = "No page contains the exact phrase, so the search is done without the quotes."
MAX_PINS = 5
SYNONYM_WEIGHT = 0.8
_LIMIT = "max-snippet:"
# A query that names a release wants that one, not the newest.
_NAMES_RELEASE = re.compile(r"\d")
_MAX_HITS = 50


class _Candidates(NamedTuple):
    """Search candidates, the hits behind them, the total, and whether looser plans added pages."""

    ids: Ints
    rest: Ints
    total: int
    is_loose: bool
    known: IndexHints


class _Ordering(NamedTuple):
    """Rows of search candidates in the order shown, how many copies and versions each folds, and notes."""

    rows: Ints
    similar: dict[int, int]
    versions: dict[int, int]
    notes: dict[int, str]
    learned: LearnedOrder


class Searcher:
    """Search one index snapshot under the operator's rules and learned reputation; keeps no state."""

    def __init__(
        self, shelf: IndexSnapshot, rules: SearchRules = NO_RULES, reputation: Reputation | None = None
    ) -> None:
        self._snapshot = shelf
        self._rules = rules
        self._reputation = reputation

    def search(self, wish: SearchRequest, now_s: float) -> Slate:
        """Answer a search request with a slate of results; never raises, whatever the query."""
        asked = _apply_filters(parse_query(wish.query, now_s), wish)
        if asked.is_empty:
            return Slate(wish, 0, notes=asked.notes)
        access = (PUBLIC, *wish.allowed)
        plan = build_plan(asked, self._build_forms(), access)
        found = self._find_candidates(plan, wish)
        if not found.total and (plain := unquote(asked)) != asked:
            asked = plain._replace(notes=(*asked.notes, NO_PHRASE_NOTE))
            plan = build_plan(asked, self._build_forms(), access)
            found = self._find_candidates(plan, wish)
        pins = self._find_pages(self._rules.get_pinned(asked.words) if self._rules.pinned else (), access)
        hidden = self._rules.get_hidden(asked.words) if self._rules.hidden else frozenset()
        found = self._filter_permitted(found, access, hidden, pins)
        weighed = score_candidates(found.ids, plan.wanted, self._snapshot, now_s, found.known, self._rules.favoured)
        shown = _order_results(weighed, wish, pins, self._reputation, is_spread=not asked.sites)
        return self._build_slate(wish, asked, plan, found, weighed, shown)

    def filter_matching(self, wish: SearchRequest, ids: Sequence[int], now_s: float) -> list[int]:
        """Filter a few hundred pages to those that match all of a query (for alerts); no looser plan counts."""
        asked = _apply_filters(parse_query(wish.query, now_s), wish)
        if asked.is_empty or not ids:
            return []
        access = (PUBLIC, *wish.allowed)
        hidden = self._find_pages(tuple(sorted(self._rules.get_hidden(asked.words))), access).tolist()
        among = Or(tuple(Range("id", id_, id_) for id_ in ids))
        found = self._snapshot.finder.find(
            And((build_plan(asked, self._build_forms(), access).node, among)), len(ids)
        ).ids
        return [id_ for id_ in ids if id_ in found.tolist() and id_ not in hidden]

    # --- Candidates ---

    def _build_forms(self) -> WordForms:
        """Build the lookup of a query word's synonyms and of its forms in the index."""
        rules, shelf = self._rules, self._snapshot
        known: dict[str, Sequence[tuple[str, float]]] = {}

        def forms(word: str) -> Sequence[tuple[str, float]]:
            if word not in known:
                synonyms = rules.get_synonyms((word,)) if rules.synonyms else ()
                named = dict.fromkeys(synonyms, SYNONYM_WEIGHT)
                known[word] = tuple((dict(shelf.get_word_forms(word)) | named).items())
            return known[word]

        return forms

    def _find_candidates(self, plan: RetrievalPlan, wish: SearchRequest) -> _Candidates:
        finder = self._snapshot.finder
        wanted = min(max(wish.n, 1) * max(wish.page, 1), DEEPEST)
        window = CANDIDATE_WINDOW if len(plan.wanted) <= FEW_WORDS else SMALL_WINDOW
        most = max(window, 2 * wanted)
        hits = finder.find(plan.node, most, count=True)
        first, behind, total = hits.ids[:window], hits.ids[window:], hits.total
        ways, with_all = [first], first
        if total > window:
            ways.append(finder.newest(plan.node, NEWEST).ids)
            with_all = np.concatenate(ways)
            if plan.address is not None:
                ways.append(finder.find(plan.address, MAX_HOMES).ids)
        in_order = finder.find(plan.in_order, window).ids if plan.in_order is not None else first[:0]
        ways.append(in_order[:IN_ORDER])
        known = IndexHints(with_all, in_order)
        is_loose = False
        for node in plan.looser if total < MIN_RESULTS or plan.is_question else ():
            looser = finder.find(node, CANDIDATE_WINDOW, count=True)
            ways.append(looser.ids)
            if total < MIN_RESULTS:
                is_loose |= looser.total > total
                total = max(total, looser.total)
            if total >= MIN_RESULTS:
                break
        return _Candidates(_dedupe(ways), behind, total, is_loose, known)

    def _filter_permitted(
        self, found: _Candidates, access: Sequence[str], hides: frozenset[str], pins: Ints
    ) -> _Candidates:
        """Filter search candidates to those that may be shown, pinned ones included, hidden ones not."""
        hidden = self._find_pages(tuple(sorted(hides)), access)
        ids = _dedupe([found.ids, pins])
        ids = ids[~np.isin(ids, hidden)]
        ids = ids[[held in access for held in self._snapshot.get_access(ids)]] if len(ids) else ids
        behind = found.rest[~np.isin(found.rest, np.concatenate((ids, hidden)))]
        return found._replace(ids=ids, rest=behind, total=max(0, found.total - len(hidden)))

    def _find_pages(self, urls: Sequence[str], access: Sequence[str]) -> Ints:
        """Find the pages at these URLs that the user may see (pins, hidden results)."""
        found = []
        for url in urls[:MAX_PINS]:
            node: Node = And((TermSet("site", tuple(list_site_values(url)[-1:])), TermSet("access", tuple(access))))
            ids = self._snapshot.finder.find(node, _MAX_HITS).ids
            found += [
                id_
                for id_, stored in zip(ids.tolist(), self._snapshot.get_stored(ids), strict=True)
                if stored is not None and stored.url == url
            ][:1]
        return np.array(found, np.int64)

    # --- What is shown ---

    def _build_slate(
        self,
        wish: SearchRequest,
        asked: ParsedQuery,
        plan: RetrievalPlan,
        found: _Candidates,
        weighed: ScoredCandidates,
        shown: _Ordering,
    ) -> Slate:
        start = (max(wish.page, 1) - 1) * max(wish.n, 1)
        rows = shown.rows[start : start + max(wish.n, 1)].tolist() if start < DEEPEST else []
        needed = [slot for slot in plan.wanted if slot.is_needed] or plan.wanted  # common words show nothing
        wanted = [[word for word, _ in slot.words] for slot in needed]
        words = " ".join(slot.words[0][0] for slot in plan.wanted)
        results = []
        for row, stored in zip(rows, self._snapshot.get_stored(weighed.ids[rows]), strict=True):
            if stored is not None:
                result = _build_result(stored, weighed, row, wanted, wish.snippet_length)._replace(
                    sentence=weighed.explain(row, words),
                    note=shown.notes.get(row, ""),
                    similar=shown.similar.get(row, 0),
                    versions=shown.versions.get(row, 0),
                )
                results.append(shown.learned.annotate(result, row) if shown.learned.believed else result)
        deeper = self._build_deeper(wish, found, len(shown.rows), wanted) if len(found.rest) else []
        return Slate(
            wish,
            found.total,
            (*results, *deeper),
            asked.notes,
            self._suggest_query(asked, results) if found.total < SPELLING_THRESHOLD or found.is_loose else "",
            self._find_missing_words(weighed.ids[rows], plan) if found.is_loose else (),
        )

    def _build_deeper(
        self, wish: SearchRequest, found: _Candidates, weighed: int, wanted: Sequence[Sequence[str]]
    ) -> list[SearchResult]:
        """Build the deeper results behind the scored candidates, in index order."""
        start = max(0, (wish.page - 1) * wish.n - weighed)
        end = min(wish.page * wish.n, DEEPEST) - weighed
        ids = found.rest[start : max(start, end)]
        if not len(ids):
            return []
        bare = score_candidates(ids, (), self._snapshot, 0.0)
        may = [held in (PUBLIC, *wish.allowed) for held in self._snapshot.get_access(ids)]
        return [
            _build_result(stored, bare, row, wanted, wish.snippet_length)
            for row, stored in enumerate(self._snapshot.get_stored(ids))
            if stored is not None and may[row]
        ]

    def _suggest_query(self, asked: ParsedQuery, results: Sequence[SearchResult]) -> str:
        """Suggest another spelling of the query; quoted words and words in the title of a result are kept."""
        plain = [group[0].words[0] for group in asked.every if _is_plain(group)]
        better = self._snapshot.suggest_spelling(plain) if plain else None
        doubted = set(plain).difference(better or plain)
        titles = {word for result in results for word in split_words(result.title)}
        if better is None or list(better) == plain or doubted <= titles:
            return ""
        kept = tuple(group for group in asked.every if not _is_plain(group))
        return format_query(asked._replace(every=(*((QueryPart((word,)),) for word in better), *kept)))

    def _find_missing_words(self, ids: Ints, plan: RetrievalPlan) -> tuple[str, ...]:
        """Find the query words that some of these results lack."""
        if not len(ids):
            return ()
        forward = self._snapshot.forward(ids)
        pages = np.repeat(np.arange(len(ids)), forward.lengths.sum(axis=1))
        missing = []
        for slot in plan.wanted:
            has = np.logical_or.reduce([forward.words == hash_word(word) for word, _ in slot.words])
            if slot.is_needed and len(np.unique(pages[has])) < len(ids):
                missing.append(slot.words[0][0])
        return tuple(dict.fromkeys(missing))


def _apply_filters(asked: ParsedQuery, wish: SearchRequest) -> ParsedQuery:
    """Apply the search request's filters to the parsed query; its site filter replaces the query's."""
    after = [moment for moment in (asked.after_s, wish.after_s) if moment is not None]
    before = [moment for moment in (asked.before_s, wish.before_s) if moment is not None]
    site = wish.site.lower().removeprefix("https://").removeprefix("http://").rstrip("/")
    return asked._replace(
        sites=(site,) if site else asked.sites,
        kinds=(wish.kind.lower(),) if wish.kind else asked.kinds,
        languages=(wish.language.lower(),) if wish.language else asked.languages,
        after_s=max(after, default=None),
        before_s=min(before, default=None),
    )


def _is_plain(group: Sequence[QueryPart]) -> bool:
    part = group[0]
    return len(group) == 1 and len(part.words) == 1 and not part.quoted and part.place == "any"


def _dedupe(ways: Sequence[Ints]) -> Ints:
    """Concatenate arrays of candidate ids without repeats, in the order of first occurrence."""
    ids = np.concatenate(ways) if ways else np.zeros(0, np.int64)
    _, first = np.unique(ids, return_index=True)
    return ids[np.sort(first)]


def _order_results(
    weighed: ScoredCandidates, wish: SearchRequest, pins: Ints, reputation: Reputation | None, *, is_spread: bool
) -> _Ordering:
    """Order search results: pins first, then by score and learning, copies folded and sites spread."""
    order = np.argsort(-weighed.scores, kind="stable")
    pinned = [int(row) for pin in pins for row in np.flatnonzero(weighed.ids == pin)]
    order = np.array([*pinned, *(row for row in order.tolist() if row not in pinned)], np.int64)
    similar: dict[int, int] = {}
    versions: dict[int, int] = {}
    if wish.folded:
        kept = fold_copies(order, weighed.signals.group, weighed.signals.is_canonical)
        order, similar = kept.rows, kept.count_by_row()
    family, release = weighed.signals.family, weighed.signals.release
    if wish.folded and family is not None and release is not None and not _NAMES_RELEASE.search(wish.query):
        kept = fold_copies(order, family, find_newest(order, family, release, weighed.scores))
        order, versions = kept.rows, kept.count_by_row()
    first, rest = order[: len(pinned)], order[len(pinned) :]
    learned = order_by_learning(rest, weighed, wish.query, reputation, wish.audience)
    notes = learned.list_notes() | dict.fromkeys(pinned, PINNED)
    rest = learned.rows
    if is_spread:
        apart = spread_sites(rest, weighed.signals.host)
        rest = apart.rows
        notes |= dict.fromkeys(sorted(apart.moved), MOVED_NOTE)
    return _Ordering(np.concatenate((first, rest)), similar, versions, notes, learned)


def _build_result(
    stored: StoredPage, weighed: ScoredCandidates, row: int, wanted: Sequence[Sequence[str]], most: int
) -> SearchResult:
    signals = weighed.signals
    snippet, sections = build_excerpts(stored, wanted, most)
    return SearchResult(
        id=int(weighed.ids[row]),
        url=stored.url,
        title=stored.title,
        snippet=snippet,
        site=origin_of(stored.url).host,
        kind=stored.kind,
        language=stored.language,
        fetched_s=float(signals.fetched_s[row]),
        born_s=float(signals.born_s[row]),
        date_s=stored.published_s,
        score=float(weighed.scores[row]),
        why=weighed.list_reasons(row),
        has_copy="noarchive" not in stored.marks.split(", "),
        features=weighed.list_features(row),
        sections=sections,
    )


def build_excerpts(
    stored: StoredPage, wanted: Sequence[Sequence[str]], most: int = SNIPPET_LENGTH
) -> tuple[Snippet, tuple[ResultSection, ...]]:
    """Build the snippet of a search result and its best sections, as long as the page owner's directives allow."""
    most = _limit_snippet(stored, most)
    if not most:
        return Snippet(), ()
    is_plain = stored.is_plain if stored.body else None
    text, hits = find_hits(stored.body or stored.description, wanted, is_plain=is_plain)
    chosen = choose_sections(split_sections(stored, text), hits)
    snippets = [
        Snippet(*cut_snippet(text[part.start : part.end], hits.within(part.start, part.end), most)) for part in chosen
    ]
    sections = [
        ResultSection(part.heading, part.build_url(stored), snippet, part.share)
        for part, snippet in zip(chosen, snippets, strict=True)
        if part.heading
    ]
    first = snippets[0] if snippets else Snippet(*cut_snippet(text, hits, most))
    return first, tuple(sections)


def _limit_snippet(stored: StoredPage, most: int) -> int:
    """Limit the length of a snippet to what the page owner's directives allow."""
    marks = stored.marks.split(", ")
    for mark in marks:
        number = mark.removeprefix(_LIMIT)
        if mark.startswith(_LIMIT) and number.isdecimal():
            most = min(most, int(number))
    return 0 if "nosnippet" in marks else most
