"""From what is asked of the index, a tree of plain values, to tantivy's own queries; and the fields that both speak of.

Nothing is parsed here: words are handed on as they are, and what would exhaust tantivy is refused before it sees it.
"""

from math import inf
from typing import assert_never

import tantivy
from tantivy import Occur, Query

from vedette.index.query.retrieval import (
    EXACT_FIELDS,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    All,
    Any,
    Best,
    Between,
    But,
    Node,
    OneOf,
    Phrase,
    Term,
)

__all__ = ["ANALYZER", "LARGEST_ID", "SCHEMA", "WORD_FIELDS", "check_field", "is_utf8", "query_of"]

DEEPEST = 12
MOST_NODES = 2000
MOST_SLOP = 1000
LARGEST_ID = 2**63 - 1  # ids travel in arrays of int64

ANALYZER = "spaced"
WORD_FIELDS = (*TEXT_FIELDS, *EXACT_FIELDS)
_NUMBERS = {
    "id": (tantivy.FieldType.Unsigned, 0, LARGEST_ID),
    "date": (tantivy.FieldType.Integer, -(2**63), 2**63 - 1),
}


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name=ANALYZER, index_option="position")
    for name in EXACT_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("id", indexed=True, fast=True)
    builder.add_integer_field("date", indexed=True, fast=True)
    return builder.build()


SCHEMA = _schema()


def query_of(node: Node) -> Query:
    """What tantivy is asked. A tree too large or deep for it, or an unknown field, is a bug: ``ValueError``."""
    _measure(node)
    return _translated(node)


def _measure(node: Node) -> None:
    """Refuse what would exhaust the stack or the machine; words of phrases and values of filters count as nodes."""
    waiting, seen = [(node, 1)], 0
    while waiting:
        part, depth = waiting.pop()
        inner, words = _inside(part)
        seen += 1 + words
        if depth > DEEPEST or seen + len(waiting) + len(inner) > MOST_NODES:
            raise ValueError(f"a query deeper than {DEEPEST} or with more than {MOST_NODES} parts")
        waiting += [(each, depth + 1) for each in inner]


def _inside(node: Node) -> tuple[tuple[Node, ...], int]:
    """The parts of a node, and how many words or values it has itself."""
    match node:
        case Any(parts) | Best(parts):
            return parts, 0
        case All(parts, wishes):
            return parts + wishes, 0
        case But(wanted, unwanted):
            return (wanted, *unwanted), 0
        case Phrase(words=words) | OneOf(values=words):
            return (), len(words)
        case Term() | Between():
            return (), 0
    assert_never(node)


def _translated(node: Node) -> Query:
    match node:
        case Any(parts, at_least):
            return _any(parts, at_least)
        case All(parts, wishes):
            return _all(parts, wishes)
        case Best(parts, tie):
            return Query.disjunction_max_query([_translated(part) for part in parts], _weight(tie))
        case But(wanted, unwanted):
            return Query.boolean_query([(Occur.Must, _translated(wanted)), *_each(Occur.MustNot, unwanted)])
        case _:
            return _leaf(node)


def _leaf(node: Term | Phrase | OneOf | Between) -> Query:
    match node:
        case Term(field, word, boost):
            return _phrase(field, (word,), boost, 0)
        case Phrase(field, words, boost, slop):
            return _phrase(field, words, boost, slop)
        case OneOf(field, values):
            check_field(field, EXACT_FIELDS)
            return _unscored(_one_of(field, [value for value in values if is_utf8(value)]))
        case Between(field, low, high):
            return _between(field, low, high)
    assert_never(node)


def _one_of(field: str, values: list[str]) -> Query:
    """A set is looked up in the whole dictionary, which takes ten times as long as one value does."""
    if len(values) == 1:
        return Query.term_query(SCHEMA, field, values[0])
    return Query.term_set_query(SCHEMA, field, values)


def _phrase(field: str, words: tuple[str, ...], boost: float, slop: int) -> Query:
    check_field(field, TEXT_FIELDS)
    _weight(boost)
    if not 0 <= slop <= MOST_SLOP:
        raise ValueError(f"a slop of {slop} words")
    if not words or not all(map(is_utf8, words)):
        return Query.empty_query()
    if len(words) == 1:
        query = Query.term_query(SCHEMA, field, words[0])
    else:
        query = Query.phrase_query(SCHEMA, field, list(words), slop)
    return query if boost == 1 else Query.boost_query(query, boost)


def _between(field: str, low: int, high: int) -> Query:
    check_field(field, NUMBER_FIELDS)
    kind, least, largest = _NUMBERS[field]
    low, high = max(low, least), min(high, largest)
    if low > high:
        return Query.empty_query()
    return _unscored(Query.range_query(SCHEMA, field, kind, low, high))


def _any(parts: tuple[Node, ...], at_least: int) -> Query:
    if at_least <= 0:
        return _all((), parts)
    if at_least > len(parts):
        return Query.empty_query()
    return Query.boolean_query(_each(Occur.Should, parts), minimum_number_should_match=at_least)


def _all(parts: tuple[Node, ...], wishes: tuple[Node, ...]) -> Query:
    """Without a part that must be there, wishes alone would be a condition."""
    musts = _each(Occur.Must, parts) or [(Occur.Must, _unscored(Query.all_query()))]
    return Query.boolean_query(musts + _each(Occur.Should, wishes))


def _each(occur: Occur, parts: tuple[Node, ...]) -> list[tuple[Occur, Query]]:
    return [(occur, _translated(part)) for part in parts]


def _unscored(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)


def check_field(field: str, fields: tuple[str, ...]) -> None:
    """A field that does not exist is a bug: ``ValueError``."""
    if field not in fields:
        raise ValueError(f"no field for this: {field}; there are {', '.join(fields)}")


def _weight(weight: float) -> float:
    if not 0 <= weight < inf:
        raise ValueError(f"a weight must be a number from 0 on, not {weight}")
    return weight


def is_utf8(word: str) -> bool:
    """Half a surrogate pair, which JSON can carry, is in no page; tantivy would raise."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
