"""Query planner: turn a parsed query into index queries, first strict and then looser.

Every group of the query must occur in some text field of a page. A word also matches other forms of it and synonyms,
which count less. Common words ("the", "of") are optional, unless there is nothing else. The order of the words is
optional too: it promotes pages into the few hundred that are scored afterwards.

If too few pages have everything, ``looser`` has plans that drop some groups. A query of many words is a question:
hardly any page has them all, so pages with any of them are candidates from the start, and the number of matched words
is a ranking feature. Quoted phrases and field filters ("intitle:") are never dropped.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from vedette.index.query.parser import ParsedQuery, QueryPart
from vedette.index.query.retrieval import TEXT_FIELDS, And, AndNot, Node, Or, Phrase, Range, Term, TermSet
from vedette.index.query.vocabulary import is_stop_word

# Weights of a word by field at retrieval. Next to the ranking features these matter little: they only have to bring the
# right page among the first few hundred.
BOOSTS = {"title": 2.0, "headings": 1.0, "anchors": 1.5, "url": 0.5, "body": 1.0}
# Other forms of a word are searched only in the fields where a page most likely has nothing else.
FORM_FIELDS = ("title", "body")
PHRASE_FIELDS = {"title": 2.0, "headings": 1.0, "anchors": 1.0, "body": 3.0}
PIECE_SHARE = 0.5
PAIR_FIELDS = {"title": 0.5, "body": 0.7}
MAX_PAIRS = 8
MAX_WISHED = 16
NAMING_WORDS = 4
# A query of more groups than this is a question; so is one with more words, including common ones ("how do I ...").
FEW_GROUPS, FEW_WORDS = 3, 4
EARLIEST_S, LATEST_S = -(2**62), 2**62

WordForms = Callable[[str], Sequence[tuple[str, float]]]


class QueryWord(NamedTuple):
    """One word of the query with all its alternatives: words and their weights, its own first."""

    words: tuple[tuple[str, float], ...]
    is_needed: bool = True


class RetrievalPlan(NamedTuple):
    """What to query the index for, what to query if that finds too little, and the wanted words, in order.

    ``address`` finds pages by words of their URLs alone, the shortest first, if the query may name a site; ``in_order``
    finds those with the whole query in order in their text; ``is_question`` means that looser plans are always worth
    running.
    """

    node: Node
    looser: tuple[Node, ...]
    wanted: tuple[QueryWord, ...]
    address: Node | None = None
    in_order: Node | None = None
    is_question: bool = False


def build_plan(asked: ParsedQuery, forms: WordForms, access: Sequence[str]) -> RetrievalPlan:
    """Build the plan of a query, within what the reader may see; ``forms`` lists alternatives of a word."""
    needed, wished = _split_groups(asked)
    words = asked.words[:MAX_WISHED]
    fixed = [_build_group(group, forms) for group in needed if _is_strict(group)]
    free_groups = [group for group in needed if not _is_strict(group)]
    free = [_build_group(group, forms) for group in free_groups]
    wishes = (*(_build_group(group, forms) for group in wished), *_build_order_wishes(words))
    filters = tuple(_build_filters(asked, access))
    unwanted = tuple(_build_part(part, _no_forms) for part in asked.none) + tuple(_build_exclusions(asked))

    def node(parts: Sequence[Node], wishes: tuple[Node, ...]) -> Node:
        found = And((*parts, *filters), wishes)
        return AndNot(found, unwanted) if unwanted else found

    # Among pages with any of many words, the order of two of them would count too much.
    is_question = len(free) > FEW_GROUPS or (len(free) > 1 and len(words) > FEW_WORDS)
    loose_wishes = () if is_question else wishes
    loose = tuple(Or((one, *_build_pieces(group))) for one, group in zip(free, free_groups, strict=True))
    counts = [1] if is_question else _relax_counts(len(free))
    looser = [node([*fixed, Or(loose, most)], loose_wishes) for most in counts]
    if fixed and free:
        looser.append(node(fixed, (*wishes, *free)))
    address = And((*_build_url_parts(needed), *filters)) if 0 < len(needed) <= NAMING_WORDS and not unwanted else None
    in_order = And((Phrase("body", words), *filters)) if len(words) > 1 and not unwanted else None
    wanted = _build_query_words(asked, needed, forms)
    return RetrievalPlan(node([*fixed, *free], wishes), tuple(looser), wanted, address, in_order, is_question)


def _split_groups(asked: ParsedQuery) -> tuple[list[tuple[QueryPart, ...]], list[tuple[QueryPart, ...]]]:
    """Return the groups that a page must have, and the optional ones."""
    telling = [group for group in asked.every if not _is_stop_group(group)]
    if not telling:
        return list(asked.every), []
    return telling, [group for group in asked.every if _is_stop_group(group)]


def _is_stop_group(group: Sequence[QueryPart]) -> bool:
    return all(
        not part.quoted and part.place == "any" and all(is_stop_word(word) for word in part.words) for part in group
    )


def _is_strict(group: Sequence[QueryPart]) -> bool:
    return any(part.quoted or part.place != "any" for part in group)


def _relax_counts(groups: int) -> list[int]:
    """Return how many groups looser plans require: all but one, then half.

    >>> _relax_counts(2), _relax_counts(3), _relax_counts(1)
    ([1], [2, 1], [])
    """
    return sorted({max(1, groups - 1), max(1, groups // 2)}, reverse=True) if groups > 1 else []


# --- Required parts ---


def _build_group(group: Sequence[QueryPart], forms: WordForms) -> Node:
    nodes = tuple(_build_part(part, forms) for part in group)
    return nodes[0] if len(nodes) == 1 else Or(nodes)


def _build_part(part: QueryPart, forms: WordForms) -> Node:
    """Match pages with a part in a searched field."""
    fields = TEXT_FIELDS if part.place == "any" else (part.place,)
    if part.is_phrase:
        return Or(tuple(Phrase(field, part.words, BOOSTS[field]) for field in fields))
    own = tuple(Term(field, part.words[0], BOOSTS[field]) for field in fields if part.words)
    others = () if part.quoted or not part.words else forms(part.words[0])
    where = FORM_FIELDS if part.place == "any" else fields
    return Or(
        own + tuple(_build_form(field, word, BOOSTS[field] * weight) for word, weight in others for field in where),
    )


def _build_pieces(group: Sequence[QueryPart]) -> list[Node]:
    """Match pages with one word of a compound, such as "multi-targeted"."""
    words = [word for part in group if part.is_phrase for word in part.words if not is_stop_word(word)]
    return [Term(field, word, PIECE_SHARE * BOOSTS[field]) for word in words for field in FORM_FIELDS]


def _build_form(field: str, form: str, boost: float) -> Node:
    """Match another word, or several that replace one."""
    words = tuple(form.split())
    return Phrase(field, words, boost) if len(words) > 1 else Term(field, form, boost)


def _build_url_parts(groups: Sequence[Sequence[QueryPart]]) -> list[Node]:
    return [Or(tuple(Phrase("url", part.words) for part in group)) for group in groups]


def _no_forms(_word: str) -> Sequence[tuple[str, float]]:
    return ()


# --- Optional parts ---


def _build_order_wishes(words: tuple[str, ...]) -> Iterator[Node]:
    """Match the words in query order: all of them, and each pair of neighbors."""
    if len(words) < 2:
        return
    for field, boost in PHRASE_FIELDS.items():
        yield Phrase(field, words, boost)
    if len(words) > 2:
        for pair in list(pairwise(words))[:MAX_PAIRS]:
            if not all(is_stop_word(word) for word in pair):
                yield from (Phrase(field, pair, boost) for field, boost in PAIR_FIELDS.items())


# --- Filters ---


def _build_filters(asked: ParsedQuery, access: Sequence[str]) -> Iterator[Node]:
    yield TermSet("access", tuple(access))
    for field, values in (("site", asked.sites), ("kind", asked.kinds), ("language", asked.languages)):
        if values:
            yield TermSet(field, values)
    if asked.after_s is not None or asked.before_s is not None:
        low = EARLIEST_S if asked.after_s is None else _clamp_time(asked.after_s)
        yield Range("date", low, LATEST_S if asked.before_s is None else _clamp_time(asked.before_s) - 1)


def _clamp_time(time_s: float) -> int:
    return int(min(max(time_s, EARLIEST_S), LATEST_S))


def _build_exclusions(asked: ParsedQuery) -> Iterator[Node]:
    exact = (("site", asked.not_sites), ("kind", asked.not_kinds), ("language", asked.not_languages))
    yield from (TermSet(field, values) for field, values in exact if values)


# --- Slots for scoring ---


def _build_query_words(
    asked: ParsedQuery, needed: Sequence[tuple[QueryPart, ...]], forms: WordForms
) -> tuple[QueryWord, ...]:
    """Build a slot for each word. Alternatives of the query ("a OR b") have separate optional slots.

    So a page with both is better than one with either; and a pasted title, with a bar before the name of its site, is
    found by all its words in order.
    """
    return tuple(
        QueryWord(_list_alternatives(word, part, forms), len(group) == 1 and group in needed)
        for group in asked.every
        for part in group
        for word in part.words
    )


def _list_alternatives(word: str, part: QueryPart, forms: WordForms) -> tuple[tuple[str, float], ...]:
    """Return the word and its alternatives; of an alternative with several words, each counts a little."""
    others = () if part.quoted or part.is_phrase else forms(word)
    found = {word: 1.0}
    for form, weight in others:
        pieces = form.split()
        for piece in pieces:
            found.setdefault(piece, weight / len(pieces))
    return tuple(found.items())
