"""Query planner: turn a parsed query into index queries, first strict and then looser.

Every group of the query must occur in some text field of a page. A word also matches other forms of it and synonyms,
which count less. Common words ("the", "of") are ignored, unless there is nothing else. If more pages have all words
than are scored afterwards, those with the words in order are looked up as well.

If too few pages have everything, ``looser`` has plans that drop some groups. A query of many words is a question:
hardly any page has them all, so pages with any of them are candidates from the start, and the number of matched words
is a ranking feature. Field filters ("intitle:") are never dropped, and quoted phrases only if hardly any page has what
a whole question quotes.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from vedette.index.fields import version_value
from vedette.index.query.parser import ParsedQuery, QueryField, QueryPart
from vedette.index.query.retrieval import TEXT_FIELDS, And, AndNot, Node, Or, Phrase, Range, Term, TermSet
from vedette.index.query.vocabulary import is_stop_word
from vedette.index.versions import list_spellings

# Weights of a word by field at retrieval. Next to the ranking features these matter little: they only have to bring the
# right page among the first few hundred.
BOOSTS = {"title": 2.0, "headings": 1.0, "anchors": 1.5, "url": 0.5, "body": 1.0}
# Other forms of a word are searched only in the fields where a page most likely has nothing else.
FORM_FIELDS = ("title", "body")
# In a question the same word in title, headings and text is counted once for the most part.
QUESTION_BOOSTS = {"title": 0.5, "headings": 0.2, "anchors": 0.3, "url": 0.2, "body": 1.0}
NAMING_FIELDS = {"title": 2.0, "headings": 1.0, "anchors": 1.0}
# Words beyond this are of scripts without capital letters, or without spaces.
COMPOUND_END = "\u0590"
JOINED_WEIGHT = 0.8
MAX_ORDERED = 16
MAX_EXPANDED = 48  # words of a query; with more, other forms and the pieces of compounds would make it too large
NAMING_WORDS = 4
# A query of more groups than this is a question; so is one with more words, including common ones ("how do I ...").
FEW_GROUPS, FEW_WORDS = 3, 4
# In a query of more words than this, common words do not count: it is no title.
LONG = 12
EARLIEST_S, LATEST_S = -(2**62), 2**62
MAX_CACHED_WORDS = 4096

WordForms = Callable[[str], Sequence[tuple[str, float]]]


class QueryWord(NamedTuple):
    """One word of the query with all its alternatives: words and their weights, its own first."""

    words: tuple[tuple[str, float], ...]
    is_needed: bool = True


class RetrievalPlan(NamedTuple):
    """What to query the index for, what to query if that finds too little, and the wanted words, in order.

    ``address`` finds pages by words of their URLs alone, the shortest first, if the query may name a site; ``in_order``
    finds those with the whole query in order in their text, and ``named`` those with it in title, headings or links;
    ``is_question`` means that looser plans are always worth running; ``unquoted`` finds pages with any word of a
    question, even if they lack a phrase that is quoted in it.
    ``within`` has all that a page must meet whatever its words: filters, quoted phrases, exclusions.
    """

    node: Node
    looser: tuple[Node, ...]
    wanted: tuple[QueryWord, ...]
    address: Node | None = None
    in_order: Node | None = None
    named: Node | None = None
    is_question: bool = False
    unquoted: Node | None = None
    within: Node = And(())


def build_plan(asked: ParsedQuery, forms: WordForms, access: Sequence[str]) -> RetrievalPlan:
    """Build the plan of a query; ``forms`` lists alternatives of a word. Without ``access``, every page may be seen."""
    needed = _list_needed(asked)
    if sum(len(part.words) for group in asked.every for part in group) > MAX_EXPANDED:
        forms = _no_forms
    words = asked.words[:MAX_ORDERED]
    fixed = [_build_group(group, forms) for group in needed if _is_strict(group)]
    free_groups = [group for group in needed if not _is_strict(group)]
    free = [_build_group(group, forms) for group in free_groups]
    # Among pages with any of many words, the order of two of them would count too much.
    is_question = len(free) > FEW_GROUPS or (len(free) > 1 and len(words) > FEW_WORDS)
    filters = tuple(_build_filters(asked, access))
    unwanted = tuple(_build_part(part, _no_forms) for part in asked.none) + tuple(_build_exclusions(asked))

    def node(parts: Sequence[Node], wishes: tuple[Node, ...] = ()) -> Node:
        found = And((*parts, *filters), wishes)
        return AndNot(found, unwanted) if unwanted else found

    unquoted = None
    if is_question:
        any_word = Or(tuple(term for group in free_groups for term in _build_question(group, forms)))
        looser = [node([*fixed, any_word])]
        if fixed and not any(part.place != "any" for group in needed for part in group):
            unquoted = node([Or(tuple(term for group in needed for term in _build_question(group, forms)))])
    else:
        looser = [node([*fixed, Or(tuple(free), most)]) for most in _relax_counts(len(free))]
    if fixed and free:
        looser.append(node(fixed, tuple(free)))
    address = And((*_build_url_parts(needed), *filters)) if 0 < len(needed) <= NAMING_WORDS and not unwanted else None
    in_order = named = None
    if len(words) > 1:
        in_order = node([*fixed, Phrase("body", words)])
        named = node([*fixed, Or(tuple(Phrase(field, words, boost) for field, boost in NAMING_FIELDS.items()))])
    wanted = _build_query_words(asked, needed, forms)
    if len(wanted) > LONG:
        wanted = tuple(word for word in wanted if not is_stop_word(word.words[0][0])) or wanted
    first, within = node([*fixed, *free]), node(fixed)
    return RetrievalPlan(first, tuple(looser), wanted, address, in_order, named, is_question, unquoted, within)


def _list_needed(asked: ParsedQuery) -> list[tuple[QueryPart, ...]]:
    """List the groups that a page must have: all but common words, unless there is nothing else."""
    return [group for group in asked.every if not _is_stop_group(group)] or list(asked.every)


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
        phrases = tuple(Phrase(field, part.words, BOOSTS[field]) for field in fields)
        return Or((*phrases, *_build_pieces(part, forms)) if is_compound(part) and forms is not _no_forms else phrases)
    if not part.words:
        return Or(())
    return _build_word(part.words[0], part.place, () if part.quoted else tuple(forms(part.words[0])))


@lru_cache(MAX_CACHED_WORDS)
def _build_word(word: str, place: QueryField, others: tuple[tuple[str, float], ...]) -> Node:
    """Match pages with a word, or with one of its other forms, in a searched field."""
    fields, places = (TEXT_FIELDS, FORM_FIELDS) if place == "any" else ((place,), (place,))
    own = tuple(Term(field, word, BOOSTS[field]) for field in fields)
    forms = (_build_form(field, form, BOOSTS[field] * weight) for form, weight in others for field in places)
    return Or((*own, *forms))


def _build_pieces(part: QueryPart, forms: WordForms) -> Iterator[Node]:
    """Match pages that write a compound such as "data-base" as separate words, or as one."""
    yield And(tuple(_build_part(QueryPart((word,)), forms) for word in part.words))
    yield from (Term(field, "".join(part.words), BOOSTS[field]) for field in TEXT_FIELDS)


def _build_question(group: Sequence[QueryPart], forms: WordForms) -> Iterator[Node]:
    """Match pages with any word of a group, for a question: flat, so that the index can skip hopeless pages."""
    for part in group:
        for word in part.words if len(part.words) == 1 else [word for word in part.words if not is_stop_word(word)]:
            yield from _build_question_word(word, tuple(forms(word)) if _has_forms(part) else ())


@lru_cache(MAX_CACHED_WORDS)
def _build_question_word(word: str, others: tuple[tuple[str, float], ...]) -> tuple[Node, ...]:
    """Match pages with a word of a question, or with one of its other forms."""
    own = (Term(field, word, boost) for field, boost in QUESTION_BOOSTS.items())
    forms = (_build_form(field, form, QUESTION_BOOSTS[field] * each) for form, each in others for field in FORM_FIELDS)
    return (*own, *forms)


def _has_forms(part: QueryPart) -> bool:
    """Check whether the words of a part may have other forms: not in quotes, nor if they are pieces of a number."""
    return not part.quoted and (not part.is_phrase or is_compound(part))


def is_compound(part: QueryPart) -> bool:
    """Check whether a part is several words joined by the writer ("multi-targeted"), in a script with spaces.

    >>> [is_compound(QueryPart(words)) for words in (("multi", "targeted"), ("3", "9"), ("日", "本"))]
    [True, False, False]
    """
    is_joined = part.is_phrase and not part.quoted and part.place == "any"
    return is_joined and all(word.isalpha() and word < COMPOUND_END for word in part.words)


def _build_form(field: str, form: str, boost: float) -> Node:
    """Match another word, or several that replace one."""
    words = tuple(form.split())
    return Phrase(field, words, boost) if len(words) > 1 else Term(field, form, boost)


def _build_url_parts(groups: Sequence[Sequence[QueryPart]]) -> list[Node]:
    return [Or(tuple(Phrase("url", part.words) for part in group)) for group in groups]


def _no_forms(_word: str) -> Sequence[tuple[str, float]]:
    return ()


# --- Filters ---


def _build_filters(asked: ParsedQuery, access: Sequence[str]) -> Iterator[Node]:
    if access:
        yield TermSet("access", tuple(access))
    for field, values in _list_exact(asked.sites, asked.kinds, asked.languages, asked.versions):
        yield TermSet(field, values)
    if asked.after_s is not None or asked.before_s is not None:
        low = EARLIEST_S if asked.after_s is None else _clamp_time(asked.after_s)
        yield Range("date", low, LATEST_S if asked.before_s is None else _clamp_time(asked.before_s) - 1)


def _clamp_time(time_s: float) -> int:
    return int(min(max(time_s, EARLIEST_S), LATEST_S))


def _build_exclusions(asked: ParsedQuery) -> Iterator[Node]:
    exact = _list_exact(asked.not_sites, asked.not_kinds, asked.not_languages, asked.not_versions)
    yield from (TermSet(field, values) for field, values in exact)


def _list_exact(*filters: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the exact fields to filter by, and the values: sites, kinds, languages, versions."""
    *plain, versions = filters
    spellings = (spelling for version in versions for spelling in list_spellings(version))
    values = (*plain, tuple(map(version_value, spellings)))
    yield from ((field, each) for field, each in zip(("site", "kind", "language", "site"), values, strict=True) if each)


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
    others = forms(word) if _has_forms(part) else ()
    found = {word: 1.0} | ({"".join(part.words): JOINED_WEIGHT} if is_compound(part) else {})
    for form, weight in others:
        pieces = form.split()
        for piece in pieces:
            found.setdefault(piece, weight / len(pieces))
    return tuple(found.items())
