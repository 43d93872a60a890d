"""Tantivy query: the index's fields, and the translation of query trees to Tantivy's queries.

Words are passed on unchanged, and anything that would exhaust Tantivy is refused beforehand. A phrase of one word would
cause a panic that ``except Exception`` does not catch, so it is never built.
"""

from functools import lru_cache
from math import inf
from typing import assert_never

import tantivy
from tantivy import Occur, Query

from vedette.index.query.retrieval import (
    EXACT_FIELDS,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    And,
    AndNot,
    DisMax,
    Node,
    Or,
    Phrase,
    Range,
    Term,
    TermSet,
)

MAX_DEPTH = 12
MAX_NODES = 2000
# Translated words of queries: most occur in several parts of a query, and in many queries.
MAX_CACHED_PHRASES = 4096
MAX_SLOP = 1000
MAX_ID = 2**63 - 1  # ids are stored in arrays of int64

ANALYZER = "spaced"
WORD_FIELDS = (*TEXT_FIELDS, *EXACT_FIELDS)
_NUMBERS = {
    "id": (tantivy.FieldType.Unsigned, 0, MAX_ID),
    "date": (tantivy.FieldType.Integer, -(2**63), 2**63 - 1),
}


def _build_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name=ANALYZER, index_option="position")
    for name in EXACT_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("id", indexed=True, fast=True)
    builder.add_integer_field("date", indexed=True, fast=True)
    return builder.build()


SCHEMA = _build_schema()


def to_tantivy_query(node: Node) -> Query:
    """Translate a query tree to a Tantivy query; one too large or deep, or an unknown field, raises ``ValueError``."""
    _check_size(node)
    return _translate(node)


def _check_size(node: Node) -> None:
    """Check that a query tree is not too large or deep for Tantivy; words and filter values count as nodes."""
    waiting, seen = [(node, 1)], 0
    while waiting:
        part, depth = waiting.pop()
        inner, words = _list_children(part)
        seen += 1 + words
        if depth > MAX_DEPTH or seen + len(waiting) + len(inner) > MAX_NODES:
            raise ValueError(
                f"the query is too complex: more than {MAX_DEPTH} levels deep or more than {MAX_NODES} parts"
            )
        waiting += [(each, depth + 1) for each in inner]


def _list_children(node: Node) -> tuple[tuple[Node, ...], int]:
    """Return the children of a query tree node, and how many words or values it has itself."""
    match node:
        case Or(parts) | DisMax(parts):
            return parts, 0
        case And(parts, wishes):
            return parts + wishes, 0
        case AndNot(wanted, unwanted):
            return (wanted, *unwanted), 0
        case Phrase(words=words) | TermSet(values=words):
            return (), len(words)
        case Term() | Range():
            return (), 0
    assert_never(node)


def _translate(node: Node) -> Query:
    match node:
        case Or(parts, at_least):
            return _translate_or(parts, at_least)
        case And(parts, wishes):
            return _translate_and(parts, wishes)
        case DisMax(parts, tie):
            return Query.disjunction_max_query([_translate(part) for part in parts], _check_weight(tie))
        case AndNot(wanted, unwanted):
            return Query.boolean_query([(Occur.Must, _translate(wanted)), *_build_clauses(Occur.MustNot, unwanted)])
        case _:
            return _translate_leaf(node)


def _translate_leaf(node: Term | Phrase | TermSet | Range) -> Query:
    match node:
        case Term(field, word, boost):
            return _build_phrase(field, (word,), boost, 0)
        case Phrase(field, words, boost, slop):
            return _build_phrase(field, words, boost, slop)
        case TermSet(field, values):
            check_field(field, EXACT_FIELDS)
            return _build_constant_score(_build_term_set(field, [value for value in values if is_utf8(value)]))
        case Range(field, low, high):
            return _build_range(field, low, high)
    assert_never(node)


def _build_term_set(field: str, values: list[str]) -> Query:
    """Build a Tantivy query for a set of field values.

    A set is looked up in the whole dictionary, which takes ten times as long as one value.
    """
    if len(values) == 1:
        return Query.term_query(SCHEMA, field, values[0])
    return Query.term_set_query(SCHEMA, field, values)


@lru_cache(MAX_CACHED_PHRASES)
def _build_phrase(field: str, words: tuple[str, ...], boost: float, slop: int) -> Query:
    check_field(field, TEXT_FIELDS)
    _check_weight(boost)
    if not 0 <= slop <= MAX_SLOP:
        raise ValueError(f"slop must be between 0 and {MAX_SLOP} words, not {slop}")
    if not words or not all(map(is_utf8, words)):
        return Query.empty_query()
    if len(words) == 1:
        query = Query.term_query(SCHEMA, field, words[0])
    else:
        query = Query.phrase_query(SCHEMA, field, list(words), slop)
    return query if boost == 1 else Query.boost_query(query, boost)


def _build_range(field: str, low: int, high: int) -> Query:
    check_field(field, NUMBER_FIELDS)
    kind, least, largest = _NUMBERS[field]
    low, high = max(low, least), min(high, largest)
    if low > high:
        return Query.empty_query()
    return _build_constant_score(Query.range_query(SCHEMA, field, kind, low, high))


def _translate_or(parts: tuple[Node, ...], at_least: int) -> Query:
    if at_least <= 0:
        return _translate_and((), parts)
    if at_least > len(parts):
        return Query.empty_query()
    return Query.boolean_query(_build_clauses(Occur.Should, parts), minimum_number_should_match=at_least)


def _translate_and(parts: tuple[Node, ...], wishes: tuple[Node, ...]) -> Query:
    """Translate an AND node with optional parts to Tantivy.

    Without a required part, the optional ones alone would become a condition.
    """
    musts = _build_clauses(Occur.Must, parts) or [(Occur.Must, _build_constant_score(Query.all_query()))]
    return Query.boolean_query(musts + _build_clauses(Occur.Should, wishes))


def _build_clauses(occur: Occur, parts: tuple[Node, ...]) -> list[tuple[Occur, Query]]:
    return [(occur, _translate(part)) for part in parts]


def _build_constant_score(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)


def check_field(field: str, fields: tuple[str, ...]) -> None:
    """Check that a field exists in the Tantivy schema; raise ``ValueError`` if not."""
    if field not in fields:
        raise ValueError(f"unknown field: {field}; choose one of {', '.join(fields)}")


def _check_weight(weight: float) -> float:
    if not 0 <= weight < inf:
        raise ValueError(f"a weight must be at least 0, not {weight}")
    return weight


def is_utf8(word: str) -> bool:
    """Check that a query word is valid UTF-8: Tantivy would raise for half a surrogate pair, which JSON can contain."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
