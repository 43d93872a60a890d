"""A search, from what somebody typed to a slate of results with reasons.

1. The query is read, and what was chosen beside it is added; a plan says what to ask the index.
2. *Candidates* are the best pages by the index's own scores. Pages that are too new for anybody to link to, and home
   pages of sites that the query names, come on ways of their own. Where too few have all words, looser plans add some.
3. Candidates are weighed by their words, order and nearness of words, and by what else is known of them.
4. What people made of pages before counts beside their words, and pages that few have seen get a chance.
5. The operator's rules, copies and the share of each site decide what is shown; deeper pages of results go on in the
   order of the index.

What a reader may not see is left out by the index, and again before anything is shown.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vedette.engine.search.learned_order import Learned, learned_order
from vedette.engine.search.ports import Shelf
from vedette.engine.search.scoring import Known, Weighed, weigh
from vedette.index.fields import PUBLIC, places_of
from vedette.index.query.parser import Asked, Part, read_query, spoken
from vedette.index.query.planner import Forms, Plan, plan_of
from vedette.index.query.retrieval import All, Any, Between, Node, OneOf
from vedette.index.snippets import snippet_of
from vedette.index.stored_text import Stored
from vedette.model import origin_of
from vedette.policy import Ints
from vedette.serve.rank.diversity import NOTE, folded, spread
from vedette.serve.rank.reputation import Reputation
from vedette.serve.rank.rules import NO_RULES, PINNED, Rules
from vedette.serve.slate import Result, Slate, Snippet, Wish
from vedette.text import number_of

__all__ = ["Searcher", "snippet_for"]

WINDOW = 100
# Many words tell the index more, so that fewer pages need a closer look.
FEW_WORDS, SMALL_WINDOW = 5, 60
NEWEST = 30
HOMES = 10
IN_ORDER = 30
DEEPEST = 1000
# With fewer pages than these, looser plans are tried as well.
FEW = 20
# With fewer than these, another spelling is looked for.
SUSPICIOUS = 3
MOST_PINS = 5
SYNONYM = 0.8
SNIPPET = 200
# Of a very long text only so much is looked through for a piece to show.
MOST_READ = 30_000
_LIMIT = "max-snippet:"
_MAX_HITS = 50


class _Found(NamedTuple):
    """Candidates, those behind them in the order of the index, how many there are, and whether all have all words."""

    ids: Ints
    behind: Ints
    total: int
    is_loose: bool
    known: Known


class _Shown(NamedTuple):
    """Rows of candidates in the order in which they are shown, how many each stands for, and what is said of some."""

    rows: Ints
    similar: dict[int, int]
    notes: dict[int, str]
    learned: Learned


class Searcher:
    """Searches one shelf under the operator's rules, by what people taught. It keeps nothing between searches."""

    def __init__(self, shelf: Shelf, rules: Rules = NO_RULES, reputation: Reputation | None = None) -> None:
        self._shelf = shelf
        self._rules = rules
        self._reputation = reputation

    def search(self, wish: Wish, now_s: float) -> Slate:
        """What is shown; never an error, whatever the query."""
        asked = _narrowed(read_query(wish.query, now_s), wish)
        if asked.is_empty:
            return Slate(wish, 0, notes=asked.notes)
        access = (PUBLIC, *wish.allowed)
        plan = plan_of(asked, self._forms(), access)
        found = self._found(plan, wish)
        words = tuple(word for group in asked.every for part in group for word in part.words)
        pins = self._pages_at(self._rules.pins(words), access)
        found = self._permitted(found, access, self._rules.hides(words), pins)
        weighed = weigh(found.ids, plan.wanted, self._shelf, now_s, found.known, self._rules.favoured)
        shown = _shown(weighed, wish, pins, self._reputation, is_spread=not asked.sites)
        return self._slate(wish, asked, plan, found, weighed, shown)

    def matching(self, wish: Wish, ids: Sequence[int], now_s: float) -> list[int]:
        """Those of these pages, a few hundred at most, that have all that a query asks for; no looser plan counts."""
        asked = _narrowed(read_query(wish.query, now_s), wish)
        if asked.is_empty or not ids:
            return []
        access = (PUBLIC, *wish.allowed)
        words = tuple(word for group in asked.every for part in group for word in part.words)
        hidden = self._pages_at(tuple(sorted(self._rules.hides(words))), access).tolist()
        among = Any(tuple(Between("id", id_, id_) for id_ in ids))
        found = self._shelf.finder.find(All((plan_of(asked, self._forms(), access).node, among)), len(ids)).ids
        return [id_ for id_ in ids if id_ in found.tolist() and id_ not in hidden]

    # --- Candidates ---

    def _forms(self) -> Forms:
        """Synonyms of a word, and the forms that the index has of it."""
        rules, shelf = self._rules, self._shelf
        known: dict[str, Sequence[tuple[str, float]]] = {}

        def forms(word: str) -> Sequence[tuple[str, float]]:
            if word not in known:
                named = dict.fromkeys(rules.means((word,)), SYNONYM)
                known[word] = tuple((dict(shelf.forms_of(word)) | named).items())
            return known[word]

        return forms

    def _found(self, plan: Plan, wish: Wish) -> _Found:
        finder = self._shelf.finder
        wanted = min(max(wish.n, 1) * max(wish.page, 1), DEEPEST)
        window = WINDOW if len(plan.wanted) <= FEW_WORDS else SMALL_WINDOW
        most = max(window, 2 * wanted)
        hits = finder.find(plan.node, most, count=True)
        first, behind, total = hits.ids[:window], hits.ids[window:], hits.total
        ways, with_all = [first], first
        if total > window:
            ways.append(finder.newest(plan.node, NEWEST).ids)
            with_all = np.concatenate(ways)
            if plan.address is not None:
                ways.append(finder.find(plan.address, HOMES).ids)
        in_order = finder.find(plan.in_order, window).ids if plan.in_order is not None else first[:0]
        ways.append(in_order[:IN_ORDER])
        known = Known(with_all, in_order)
        is_loose = False
        for node in plan.looser if total < FEW else ():
            looser = finder.find(node, SMALL_WINDOW, count=True)
            ways.append(looser.ids)
            is_loose |= looser.total > total
            total = max(total, looser.total)
            if total >= FEW:
                break
        return _Found(_each_once(ways), behind, total, is_loose, known)

    def _permitted(self, found: _Found, access: Sequence[str], hides: frozenset[str], pins: Ints) -> _Found:
        """The candidates that may be shown, pinned ones among them; what is hidden is not."""
        hidden = self._pages_at(tuple(sorted(hides)), access)
        ids = _each_once([found.ids, pins])
        ids = ids[~np.isin(ids, hidden)]
        ids = ids[[held in access for held in self._shelf.access(ids)]] if len(ids) else ids
        behind = found.behind[~np.isin(found.behind, np.concatenate((ids, hidden)))]
        return found._replace(ids=ids, behind=behind, total=max(0, found.total - len(hidden)))

    def _pages_at(self, urls: Sequence[str], access: Sequence[str]) -> Ints:
        """The pages at these URLs that the reader may see."""
        found = []
        for url in urls[:MOST_PINS]:
            node: Node = All((OneOf("site", tuple(places_of(url)[-1:])), OneOf("access", tuple(access))))
            ids = self._shelf.finder.find(node, _MAX_HITS).ids
            found += [
                id_
                for id_, stored in zip(ids.tolist(), self._shelf.stored(ids), strict=True)
                if stored is not None and stored.url == url
            ][:1]
        return np.array(found, np.int64)

    # --- What is shown ---

    def _slate(self, wish: Wish, asked: Asked, plan: Plan, found: _Found, weighed: Weighed, shown: _Shown) -> Slate:
        start = (max(wish.page, 1) - 1) * max(wish.n, 1)
        rows = shown.rows[start : start + max(wish.n, 1)].tolist() if start < DEEPEST else []
        needed = [slot for slot in plan.wanted if slot.is_needed] or plan.wanted  # small words show nothing
        wanted = [[word for word, _ in slot.words] for slot in needed]
        words = " ".join(slot.words[0][0] for slot in plan.wanted)
        results = [
            shown.learned.told(
                _result(stored, weighed, row, wanted)._replace(
                    sentence=weighed.sentence(row, words),
                    note=shown.notes.get(row, ""),
                    similar=shown.similar.get(row, 0),
                ),
                row,
            )
            for row, stored in zip(rows, self._shelf.stored(weighed.ids[rows]), strict=True)
            if stored is not None
        ]
        deeper = self._deeper(wish, found, len(shown.rows), wanted)
        return Slate(
            wish,
            found.total,
            (*results, *deeper),
            asked.notes,
            self._suggestion(asked) if found.total < SUSPICIOUS or found.is_loose else "",
            self._missing(weighed.ids[rows], plan) if found.is_loose else (),
        )

    def _deeper(self, wish: Wish, found: _Found, weighed: int, wanted: Sequence[Sequence[str]]) -> list[Result]:
        """What stands behind the candidates that were weighed, unweighed."""
        start = max(0, (wish.page - 1) * wish.n - weighed)
        end = min(wish.page * wish.n, DEEPEST) - weighed
        ids = found.behind[start : max(start, end)]
        if not len(ids):
            return []
        bare = weigh(ids, (), self._shelf, 0.0)
        may = [held in (PUBLIC, *wish.allowed) for held in self._shelf.access(ids)]
        return [
            _result(stored, bare, row, wanted)
            for row, stored in enumerate(self._shelf.stored(ids))
            if stored is not None and may[row]
        ]

    def _suggestion(self, asked: Asked) -> str:
        """The query in another spelling; quoted words are meant as they are."""
        plain = [group[0].words[0] for group in asked.every if _is_plain(group)]
        better = self._shelf.corrected(plain) if plain else None
        if better is None or list(better) == plain:
            return ""
        kept = tuple(group for group in asked.every if not _is_plain(group))
        return spoken(asked._replace(every=(*((Part((word,)),) for word in better), *kept)))

    def _missing(self, ids: Ints, plan: Plan) -> tuple[str, ...]:
        """The words that not all of these pages have."""
        if not len(ids):
            return ()
        forward = self._shelf.forward(ids)
        pages = np.repeat(np.arange(len(ids)), forward.lengths.sum(axis=1))
        missing = []
        for slot in plan.wanted:
            has = np.logical_or.reduce([forward.words == number_of(word) for word, _ in slot.words])
            if slot.is_needed and len(np.unique(pages[has])) < len(ids):
                missing.append(slot.words[0][0])
        return tuple(dict.fromkeys(missing))


def _narrowed(asked: Asked, wish: Wish) -> Asked:
    """The query with the filters chosen beside it. A site chosen there goes before those of the query."""
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


def _is_plain(group: Sequence[Part]) -> bool:
    part = group[0]
    return len(group) == 1 and len(part.words) == 1 and not part.quoted and part.place == "any"


def _each_once(ways: Sequence[Ints]) -> Ints:
    """All ids in the order in which they first come."""
    ids = np.concatenate(ways) if ways else np.zeros(0, np.int64)
    _, first = np.unique(ids, return_index=True)
    return ids[np.sort(first)]


def _shown(weighed: Weighed, wish: Wish, pins: Ints, reputation: Reputation | None, *, is_spread: bool) -> _Shown:
    """The order of results: pins, then by score and by what was learned, copies folded and sites spread."""
    order = np.argsort(-weighed.scores, kind="stable")
    pinned = [int(row) for pin in pins for row in np.flatnonzero(weighed.ids == pin)]
    order = np.array([*pinned, *(row for row in order.tolist() if row not in pinned)], np.int64)
    similar: dict[int, int] = {}
    if wish.folded:
        kept = folded(order, weighed.signals.group)
        order, similar = kept.rows, dict(zip(kept.rows.tolist(), kept.similar.tolist(), strict=True))
    first, rest = order[: len(pinned)], order[len(pinned) :]
    learned = learned_order(rest, weighed, wish.query, reputation, wish.audience)
    notes = learned.notes() | dict.fromkeys(pinned, PINNED)
    rest = learned.rows
    if is_spread:
        apart = spread(rest, weighed.signals.host)
        rest = apart.rows
        notes |= dict.fromkeys(sorted(apart.moved), NOTE)
    return _Shown(np.concatenate((first, rest)), similar, notes, learned)


def _result(stored: Stored, weighed: Weighed, row: int, wanted: Sequence[Sequence[str]]) -> Result:
    signals = weighed.signals
    return Result(
        id=int(weighed.ids[row]),
        url=stored.url,
        title=stored.title,
        snippet=snippet_for(stored, wanted),
        site=origin_of(stored.url).host,
        kind=stored.kind,
        language=stored.language,
        fetched_s=float(signals.fetched_s[row]),
        born_s=float(signals.born_s[row]),
        date_s=stored.published_s,
        score=float(weighed.scores[row]),
        why=weighed.reasons(row),
        has_copy="noarchive" not in stored.marks.split(", "),
        features=weighed.counted(row),
    )


def snippet_for(stored: Stored, wanted: Sequence[Sequence[str]]) -> Snippet:
    """A piece of the text, as long as the page's owner lets it be."""
    marks = stored.marks.split(", ")
    most = SNIPPET
    for mark in marks:
        number = mark.removeprefix(_LIMIT)
        if mark.startswith(_LIMIT) and number.isdecimal():
            most = min(most, int(number))
    if "nosnippet" in marks or most == 0:
        return Snippet()
    is_plain = stored.is_plain if stored.body else None
    piece = snippet_of((stored.body or stored.description)[:MOST_READ], wanted, most, is_plain=is_plain)
    return Snippet(piece.text, piece.marks)
