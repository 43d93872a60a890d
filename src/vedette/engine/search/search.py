"""Search engine: from the query that a user typed to a slate of results with reasons.

1. The query is parsed, and the filters chosen beside it are added; a plan says what to look up in the index.
2. *Candidates* are the best pages by the index's own scores. Pages too new to have in-links, and home pages of sites
   that the query names, are added separately. If too few have all words, looser plans add some.
3. Candidates are scored by their words, word order and proximity, and by page signals. If pages have vectors, those
   closest in meaning join the candidates, and similarity is one more feature.
4. Learned click quality is added to the score, and pages that few people have seen get a chance.
5. The operator's rules, folding of copies and the share of each site decide what is shown; deeper pages of results
   follow in index order.

Pages that a user may not see are excluded by the index, and again before anything is shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from vedette.engine.search.ports import IndexSnapshot
from vedette.engine.search.scoring import (
    CandidateTexts,
    IndexHints,
    LearnedOrder,
    ScoredCandidates,
    order_by_learning,
    score_candidates,
)
from vedette.engine.search.word_forms import (
    CORRECTION_WEIGHT,
    build_forms,
    find_completions,
    find_corrections,
    is_plain,
    quote_words,
    replace_words,
)
from vedette.index.fields import PUBLIC, StoredPage, list_site_values
from vedette.index.query.parser import ParsedQuery, QueryPart, format_query, parse_query, unquote
from vedette.index.query.planner import RetrievalPlan, build_plan
from vedette.index.query.retrieval import And, Node, Or, Range, TermSet
from vedette.index.sections import choose_sections, outline_text
from vedette.index.semantic.similarity import Similarity
from vedette.index.snippets import cut_snippet, search_text
from vedette.index.versions import find_releases, match_releases, split_version
from vedette.model import origin_of
from vedette.policy import Ints
from vedette.serve.rank.diversity import MOVED_NOTE, fold_copies, fold_versions, join_families, spread_sites
from vedette.serve.rank.reputation import Reputation
from vedette.serve.rank.rules import NO_RULES, PINNED, SearchRules
from vedette.serve.slate import SNIPPET_LENGTH, PageVersion, ResultSection, SearchRequest, SearchResult, Slate, Snippet
from vedette.text import split_words

CANDIDATE_WINDOW = 100
# Candidates of a question, if more than the first few pages of results are requested.
SHALLOW, DEEP_WINDOW = 50, 200
# With many words the index is more precise, so fewer pages need scoring.
FEW_WORDS, SMALL_WINDOW = 5, 60
NEWEST = 30
MAX_HOMES = 10
IN_ORDER = 30
# Pages that are candidates by their meaning alone, and pages found by words that say what is meant.
SIMILAR, EXAMPLES = 30, 5
DEEPEST = 1000
# With fewer results than this, looser plans are tried as well.
MIN_RESULTS = 20
# With fewer than this, another spelling is suggested.
SPELLING_THRESHOLD = 3
NO_PHRASE_NOTE = "No page contains the exact phrase, so the search is done without the quotes."
MAX_PINS = 5
_LIMIT = "max-snippet:"
MAX_VERSIONS = 8
MAX_CACHED_RELEASES = 8192
_MAX_HITS = 50


class _Candidates(NamedTuple):
    """Search candidates, the hits behind them, the total, and whether looser plans added pages."""

    ids: Ints
    rest: Ints
    total: int
    is_loose: bool
    known: IndexHints


class ResultOrder(NamedTuple):
    """Rows of search candidates in the order shown, with copies and other versions folded under each, and notes."""

    rows: Ints
    similar: dict[int, int]
    versions: dict[int, tuple[int, ...]]
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

    @property
    def is_learned(self) -> bool:
        """Whether results depend on learned quality, and so on the audience."""
        return self._reputation is not None

    def search(self, wish: SearchRequest, now_s: float) -> Slate:
        """Answer a search request with a slate of results; never raises, whatever the query."""
        asked = apply_filters(parse_query(wish.query, now_s), wish)
        if asked.is_empty:
            return Slate(wish, 0, notes=asked.notes)
        access = (PUBLIC, *wish.allowed)
        forms = build_forms(self._snapshot, self._rules)
        more = find_completions(asked, self._snapshot) if wish.is_partial else {}
        corrections = find_corrections(asked, forms, self._snapshot, access, more)
        more |= {word: [(meant, CORRECTION_WEIGHT)] for word, meant in corrections.items()}
        within = () if self._snapshot.finder.is_public else access
        plan = build_plan(asked, build_forms(self._snapshot, self._rules, more) if more else forms, within)
        found = self._find_candidates(plan, wish)
        if not found.total and (plain := unquote(asked)) != asked:
            asked = plain._replace(notes=(*asked.notes, NO_PHRASE_NOTE))
            plan = build_plan(asked, forms, within)
            found = self._find_candidates(plan, wish)
        pins = self._find_pages(self._rules.get_pinned(asked.words) if self._rules.pinned else (), access)
        hidden = self._rules.get_hidden(asked.words) if self._rules.hidden else frozenset()
        found = self._filter_permitted(found, access, hidden, pins)
        score = partial(self._score, plan, now_s)
        weighed = score(found)
        near = self._compare_meaning(asked, weighed)
        if near is not None:
            similar = self._filter_permitted(self._find_similar(found, plan, near), access, hidden, pins[:0])
            found = found._replace(
                ids=_dedupe([found.ids, similar.ids]), rest=found.rest[~np.isin(found.rest, similar.ids)]
            )
            weighed = score(found, near, weighed.texts)
        shown = order_results(weighed, wish, pins, self._reputation, is_spread=not asked.sites)
        slate = self._build_slate(wish, asked, plan, found, weighed, shown)
        if not corrections or not slate.results:
            return slate
        return slate._replace(
            suggestion="", corrected=replace_words(asked, corrections), verbatim=quote_words(asked, corrections)
        )

    def filter_matching(self, wish: SearchRequest, ids: Sequence[int], now_s: float) -> list[int]:
        """Filter a few hundred pages to those that match all of a query (for alerts); no looser plan counts."""
        asked = apply_filters(parse_query(wish.query, now_s), wish)
        if asked.is_empty or not ids:
            return []
        access = (PUBLIC, *wish.allowed)
        hidden = self._find_pages(tuple(sorted(self._rules.get_hidden(asked.words))), access).tolist()
        among = Or(tuple(Range("id", id_, id_) for id_ in ids))
        found = self._snapshot.finder.find(
            And((build_plan(asked, build_forms(self._snapshot, self._rules), access).node, among)), len(ids)
        ).ids
        return [id_ for id_ in ids if id_ in found.tolist() and id_ not in hidden]

    # --- Candidates ---

    def _find_candidates(self, plan: RetrievalPlan, wish: SearchRequest) -> _Candidates:
        finder = self._snapshot.finder
        wanted = min(max(wish.n, 1) * max(wish.page, 1), DEEPEST)
        window = CANDIDATE_WINDOW if len(plan.wanted) <= FEW_WORDS and not wish.is_partial else SMALL_WINDOW
        most = max(window, 2 * wanted)
        hits = finder.find(plan.node, most, count=True)
        first, behind, total = hits.ids[:window], hits.ids[window:], hits.total
        ways, with_all = [first], first

        @cache
        def find_in_order() -> Ints:
            return finder.find(plan.in_order, window).ids if plan.in_order is not None and total else first[:0]

        if total > window and not wish.is_partial:
            ways.append(finder.newest(plan.node, NEWEST).ids)
            with_all = np.concatenate(ways)
            if plan.address is not None:
                ways.append(finder.find(plan.address, MAX_HOMES).ids)
            if plan.named is not None:
                ways.append(finder.find(plan.named, IN_ORDER).ids)
        if total > window:
            ways.append(find_in_order()[:IN_ORDER])
        known = IndexHints(with_all, find_in_order)
        is_loose = False
        few = max(MIN_RESULTS, wanted)
        loose_window = SMALL_WINDOW if wish.is_partial else CANDIDATE_WINDOW if wanted <= SHALLOW else DEEP_WINDOW
        for node in plan.looser if total < few or plan.is_question else ():
            looser = finder.find(node, loose_window, count=True)
            ways.append(looser.ids)
            if total < few:
                is_loose |= looser.total > total
                total = max(total, looser.total)
            if total >= few:
                break
        if plan.unquoted is not None and total < MIN_RESULTS:
            unquoted = finder.find(plan.unquoted, window, count=True)
            ways.append(unquoted.ids)
            is_loose, total = True, max(total, unquoted.total)
        return _Candidates(_dedupe(ways), behind, total, is_loose, known)

    def _score(
        self,
        plan: RetrievalPlan,
        now_s: float,
        found: _Candidates,
        near: Similarity | None = None,
        read: CandidateTexts | None = None,
    ) -> ScoredCandidates:
        shelf, favoured = self._snapshot, self._rules.favoured
        return score_candidates(found.ids, plan.wanted, shelf, now_s, found.known, favoured, near, read=read)

    def _compare_meaning(self, asked: ParsedQuery, weighed: ScoredCandidates) -> Similarity | None:
        """Compare the meaning of pages with that of a query and of the best pages by words; None if that is off."""
        if not asked.words:
            return None
        best = np.argsort(-weighed.scores, kind="stable")[:EXAMPLES]
        return self._snapshot.compare_meaning(asked.words, weighed.ids[best], np.maximum(weighed.scores[best], 0.0))

    def _find_similar(self, found: _Candidates, plan: RetrievalPlan, near: Similarity) -> _Candidates:
        """Find further pages that are closest in meaning, as far as the query's filters let them."""
        ids = near.best(SIMILAR)
        among = Or(tuple(Range("id", id_, id_) for id_ in ids[~np.isin(ids, found.ids)].tolist()))
        hits = self._snapshot.finder.find(And((plan.within, among)), SIMILAR).ids if among.parts else ids[:0]
        return found._replace(ids=hits, rest=found.rest[:0])

    def _filter_permitted(
        self, found: _Candidates, access: Sequence[str], hides: frozenset[str], pins: Ints
    ) -> _Candidates:
        """Filter search candidates to those that may be shown, pinned ones included, hidden ones not."""
        hidden = self._find_pages(tuple(sorted(hides)), access)
        ids = _dedupe([found.ids, pins]) if len(pins) else found.ids
        ids = ids[~np.isin(ids, hidden)] if len(hidden) else ids
        ids = ids[[held in access for held in self._snapshot.get_access(ids)]] if len(ids) else ids
        behind = found.rest
        behind = behind[~np.isin(behind, np.concatenate((ids, hidden)))] if len(behind) else behind
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
        shown: ResultOrder,
    ) -> Slate:
        start = (max(wish.page, 1) - 1) * max(wish.n, 1)
        rows = shown.rows[start : start + max(wish.n, 1)].tolist() if start < DEEPEST else []
        versions = {row: weighed.ids[list(shown.versions.get(row, ()))] for row in rows}
        results = []
        for row, result in zip(rows, self._build_results(wish, plan, weighed, rows, versions, shown), strict=True):
            if result is not None:
                learned = shown.learned
                results.append(learned.annotate(result, row, wish.is_explained) if learned.believed else result)
        is_doubtful = found.total < SPELLING_THRESHOLD or found.is_loose
        deeper = self._build_deeper(wish, found, len(shown.rows), _list_wanted(plan)) if len(found.rest) else []
        return Slate(
            wish,
            found.total,
            (*results, *deeper),
            asked.notes,
            suggest_query(asked, results, self._snapshot.suggest_spelling)
            if is_doubtful and not wish.is_partial
            else "",
            weighed.find_missing_words(rows, plan.wanted) if found.is_loose else (),
        )

    def _build_results(
        self,
        wish: SearchRequest,
        plan: RetrievalPlan,
        weighed: ScoredCandidates,
        rows: Sequence[int],
        versions: Mapping[int, Ints],
        shown: ResultOrder | None = None,
    ) -> Iterator[SearchResult | None]:
        """Build the results at these rows, each with the other releases that are folded under it; None if gone.

        Notes and the number of copies are added if it is known what is ``shown``.
        """
        wanted, words = _list_wanted(plan), " ".join(slot.words[0][0] for slot in plan.wanted)
        for row, stored in zip(rows, self._snapshot.get_stored(weighed.ids[list(rows)]), strict=True):
            if stored is None:
                yield None
                continue
            about: dict[str, Any] = {}
            if not wish.is_partial:  # then only what is listed while typing
                about = self._describe_versions(stored, versions[row])
                if shown is not None:
                    about |= {"note": shown.notes.get(row, ""), "similar": shown.similar.get(row, 0)}
                if wish.is_explained:
                    about |= {"sentence": weighed.explain(row, words), "why": weighed.list_reasons(row)}
            yield build_result(stored, weighed, row, wanted, wish.snippet_length, about)

    def _describe_versions(self, stored: StoredPage, others: Ints) -> dict[str, Any]:
        """Describe a result's release and the other releases that are folded under it."""
        urls = self._snapshot.get_urls(others[:MAX_VERSIONS]) if len(others) else ()
        return {
            "version": _get_release(stored.url),
            "versions": len(others),
            "other_versions": tuple(PageVersion(_get_release(url), url) for url in urls if url),
        }

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
            build_result(stored, bare, row, wanted, wish.snippet_length)
            for row, stored in enumerate(self._snapshot.get_stored(ids))
            if stored is not None and may[row]
        ]


def suggest_query(
    asked: ParsedQuery,
    results: Sequence[SearchResult],
    suggest: Callable[[Sequence[str]], tuple[str, ...] | None],
) -> str:
    """Suggest another spelling of the query; quoted words and words in the title of a result are kept."""
    plain = [group[0].words[0] for group in asked.every if is_plain(group)]
    better = suggest(plain) if plain else None
    doubted = set(plain).difference(better or plain)
    titles = {word for result in results for word in split_words(result.title)}
    if better is None or list(better) == plain or doubted <= titles:
        return ""
    kept = tuple(group for group in asked.every if not is_plain(group))
    return format_query(asked._replace(every=(*((QueryPart((word,)),) for word in better), *kept)))


def apply_filters(asked: ParsedQuery, wish: SearchRequest) -> ParsedQuery:
    """Apply the search request's filters to the parsed query; its site filter replaces the query's."""
    after = [moment for moment in (asked.after_s, wish.after_s) if moment is not None]
    before = [moment for moment in (asked.before_s, wish.before_s) if moment is not None]
    site = wish.site.lower().removeprefix("https://").removeprefix("http://").rstrip("/")
    return asked._replace(
        sites=(site,) if site else asked.sites,
        kinds=(wish.kind.lower(),) if wish.kind else asked.kinds,
        languages=(wish.language.lower(),) if wish.language else asked.languages,
        versions=(wish.version.lower(),) if wish.version else asked.versions,
        after_s=max(after, default=None),
        before_s=min(before, default=None),
    )


def _list_wanted(plan: RetrievalPlan) -> list[list[str]]:
    """List the words to show in snippets, with their alternatives; common words show nothing."""
    needed = [slot for slot in plan.wanted if slot.is_needed] or plan.wanted
    return [[word for word, _ in slot.words] for slot in needed]


def _dedupe(ways: Sequence[Ints]) -> Ints:
    """Concatenate arrays of candidate ids without repeats, in the order of first occurrence."""
    return np.array(list(dict.fromkeys(id_ for ids in ways for id_ in ids.tolist())), np.int64)


@lru_cache(MAX_CACHED_RELEASES)
def _get_release(url: str) -> str:
    """Return the label of the release that a URL names; empty if it names none."""
    return split_version(url).label


def order_results(
    weighed: ScoredCandidates, wish: SearchRequest, pins: Ints, reputation: Reputation | None, *, is_spread: bool
) -> ResultOrder:
    """Order search results: pins first, then by score and learning, copies folded and sites spread."""
    order = np.argsort(-weighed.scores, kind="stable")
    pinned = [int(row) for pin in pins for row in np.flatnonzero(weighed.ids == pin)]
    order = np.array([*pinned, *(row for row in order.tolist() if row not in pinned)], np.int64)
    similar: dict[int, int] = {}
    versions: dict[int, tuple[int, ...]] = {}
    host, group, family, release = (getattr(weighed.signals, name) for name in ("host", "group", "family", "release"))
    if wish.folded and family is not None and release is not None:
        is_named = match_releases(release, find_releases(wish.query))
        # A number that names no release may be a section's, and then every release has another one.
        if is_named.any() or not any(map(str.isdigit, wish.query)):
            families = join_families(family, release, group)
            order, versions = fold_versions(order, families, release, weighed.scores, is_named)
    if wish.folded:
        kept = fold_copies(order, group, weighed.signals.is_canonical, weighed.scores)
        order, similar = kept.rows, kept.count_by_row()
    first, rest = order[: len(pinned)], order[len(pinned) :]
    learned = order_by_learning(rest, weighed, wish.query, reputation, wish.audience)
    notes = learned.list_notes() | dict.fromkeys(pinned, PINNED)
    rest = learned.rows
    if is_spread:
        apart = spread_sites(rest, host)
        rest = apart.rows
        notes |= dict.fromkeys(sorted(apart.moved), MOVED_NOTE)
    return ResultOrder(np.concatenate((first, rest)), similar, versions, notes, learned)


def build_result(
    stored: StoredPage,
    weighed: ScoredCandidates,
    row: int,
    wanted: Sequence[Sequence[str]],
    most: int,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> SearchResult:
    """Build the result of a scored candidate, with its snippet and best sections, and what else is known of it."""
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
        has_copy="noarchive" not in stored.marks.split(", "),
        features=weighed.list_features(row),
        sections=sections,
        **about,
    )


def build_excerpts(
    stored: StoredPage, wanted: Sequence[Sequence[str]], most: int = SNIPPET_LENGTH
) -> tuple[Snippet, tuple[ResultSection, ...]]:
    """Build the snippet of a search result and its best sections, as long as the page owner's directives allow."""
    most = _limit_snippet(stored, most)
    if not most:
        return Snippet(), ()
    is_plain = stored.is_plain if stored.body else None
    text, found = search_text(stored.body or stored.description, wanted, is_plain=is_plain)
    chosen = choose_sections(outline_text(stored, text), found)
    snippets = [
        Snippet(*cut_snippet(text[part.start : part.end], found.within(part.start, part.end), most)) for part in chosen
    ]
    sections = [
        ResultSection(part.heading, part.build_url(stored), snippet, part.share)
        for part, snippet in zip(chosen, snippets, strict=True)
        if part.heading
    ]
    first = snippets[0] if snippets else Snippet(*cut_snippet(text, found.within(0, len(text)), most))
    return first, tuple(sections)


def _limit_snippet(stored: StoredPage, most: int) -> int:
    """Limit the length of a snippet to what the page owner's directives allow."""
    marks = stored.marks.split(", ")
    for mark in marks:
        number = mark.removeprefix(_LIMIT)
        if mark.startswith(_LIMIT) and number.isdecimal():
            most = min(most, int(number))
    return 0 if "nosnippet" in marks else most
