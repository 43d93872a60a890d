"""The full-text index: what is found, what survives a failure, and each pitfall of the library."""

import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tantivy
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tree_runs import PATIENCE_S

from vedette.adapters.index_store import tantivy_index
from vedette.adapters.index_store.tantivy_index import IndexReader, IndexWriter, open_reader, open_writer
from vedette.errors import StoreBusy, StoreCorrupt, StoreError
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
    Searcher,
    Term,
    TermSet,
)

HEAP_BYTES = 15_000_000  # the least that tantivy takes
EVERYTHING = And(())
NOTHING = Or(())

PAGES: dict[int, dict[str, object]] = {
    1: {"title": "kafka streams", "body": "a b c d", "site": ["a.org", "www.a.org"], "kind": ["html"], "date": 100},
    2: {"title": "kafka", "body": "a c b", "site": ["a.org"], "kind": ["pdf"], "language": "en", "date": -50},
    3: {"title": "flink", "body": "b a", "url": "flink org a", "site": ["b.org"], "kind": ["html"], "date": 300},
    4: {"headings": "streams of a", "body": "c c c", "language": "de", "access": "private", "date": 200},
    5: {"anchors": "kafka a b", "body": "d", "site": ["b.org", "x.b.org"], "language": "en"},
}


def page(page_id: int, **fields: object) -> dict[str, object]:
    """Return a page with these fields."""
    return {"id": page_id, **fields}


def filled(folder: Path, pages: Mapping[int, Mapping[str, object]] = PAGES) -> IndexReader:
    """Return a reader of an index with these pages."""
    writer = open_writer(folder, HEAP_BYTES)
    for page_id, fields in pages.items():
        writer.put({"id": page_id, **fields})
    assert writer.commit() == ()
    writer.close()
    return open_reader(folder)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> IndexReader:
    """The shared index of ``PAGES``; no test writes to it."""
    return filled(tmp_path_factory.mktemp("shared"))


def ids(reader: Searcher, node: Node, most: int = 1000) -> list[int]:
    """Return the pages found, by id."""
    return sorted(reader.find(node, most).ids.tolist())


@contextmanager
def disk_without_room(largest_bytes: int = 0) -> Iterator[None]:
    """Limit the file size of this process, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Careless(IndexWriter):
    """A writer that adds pages with the word "bad" without the schema, so that only the commit fails."""

    def _build_document(self, document: Mapping[str, object]) -> tantivy.Document:
        is_bad = document.get("title") == "bad"
        return tantivy.Document(**document) if is_bad else super()._build_document(document)


@pytest.fixture
def careless(tmp_path: Path) -> Iterator[Careless]:
    """A careless writer of a new index."""
    filled(tmp_path, {})
    index = tantivy_index._open_index(tmp_path)
    writer = Careless(tmp_path, index.writer(HEAP_BYTES, num_threads=1))
    yield writer
    writer.close()


# --- Results ---


def test_a_reader_is_a_finder(shared: IndexReader) -> None:
    """The search sees only the port, so the reader must implement it."""
    finder: Searcher = shared
    assert len(finder) == len(PAGES)


def test_every_field_can_be_asked(tmp_path: Path) -> None:
    """The index has the fields of the query tree, each with its own analysis."""
    words: dict[str, object] = dict.fromkeys(TEXT_FIELDS + EXACT_FIELDS, "word")
    reader = filled(tmp_path, {7: {**words, "date": 7}})
    for field in TEXT_FIELDS:
        assert ids(reader, Term(field, "word")) == [7]
    for field in EXACT_FIELDS:
        assert ids(reader, TermSet(field, ("word",))) == [7]
    for field in NUMBER_FIELDS:
        assert ids(reader, Range(field, 7, 7)) == [7]


def test_scores_and_ids_come_as_arrays_best_first(shared: IndexReader) -> None:
    """Ids are int64 and scores float64, best first, and hits are counted only on request."""
    found = shared.find(Or((Term("title", "kafka"), Term("title", "streams"))), 10)
    assert found.ids.dtype == np.int64
    assert found.scores.dtype == np.float64
    assert found.ids.tolist() == [1, 2]
    assert found.scores[0] > found.scores[1] > 0
    assert found.total == -1


def test_only_the_best_are_returned_and_all_are_counted(shared: IndexReader) -> None:
    """``most`` limits the hits, not the count."""
    found = shared.find(Term("body", "a"), 1, count=True)
    assert (len(found.ids), found.total) == (1, 3)


def test_a_boost_multiplies_the_score(shared: IndexReader) -> None:
    """Twice the boost is twice the score, for words and phrases."""
    for plain, boosted in (
        (Term("title", "flink"), Term("title", "flink", 2.0)),
        (Phrase("title", ("kafka", "streams")), Phrase("title", ("kafka", "streams"), 2.0)),
    ):
        once, twice = (shared.find(node, 1).scores[0] for node in (plain, boosted))
        assert twice == pytest.approx(2 * once)


def test_filters_let_through_and_score_nothing(shared: IndexReader) -> None:
    """With filters, a word scores the same as alone; filters alone score 0."""
    alone = shared.find(Term("title", "flink"), 1)
    filters = (TermSet("site", ("b.org",)), Range("date", 0, 999), EVERYTHING)
    assert shared.find(And((Term("title", "flink"), *filters)), 1).scores == pytest.approx(alone.scores)
    assert shared.find(And(filters), 1).scores.tolist() == [0.0]


def test_the_best_part_counts_and_a_share_of_the_others(shared: IndexReader) -> None:
    """``DisMax`` takes the highest score, plus the tie's share of the rest."""
    parts = (Term("title", "streams"), Term("body", "d"))
    scores = [shared.find(And((part, Range("id", 1, 1))), 1).scores[0] for part in parts]
    for tie in (0.0, 0.3):
        found = shared.find(And((DisMax(parts, tie), Range("id", 1, 1))), 1)
        assert found.scores[0] == pytest.approx(max(scores) + tie * min(scores))


def test_words_of_a_phrase_stand_next_to_each_other_in_order(shared: IndexReader) -> None:
    """A phrase is more than its words; slop allows words in between, and from 2 on also a swapped pair."""
    assert ids(shared, Phrase("body", ("a", "b"))) == [1]
    assert ids(shared, Phrase("body", ("a", "b"), slop=1)) == [1, 2]
    assert ids(shared, Phrase("body", ("a", "b"), slop=2)) == [1, 2, 3]
    assert ids(shared, Phrase("body", ("a", "b", "c", "d"))) == [1]


def test_wishes_raise_and_do_not_demand(shared: IndexReader) -> None:
    """A page without the optional word is found, after those with it."""
    found = shared.find(And((Term("body", "c"),), (Term("title", "streams", 9.0),)), 10)
    assert sorted(found.ids.tolist()) == [1, 2, 4]
    assert found.ids[0] == 1
    assert ids(shared, And((), (Term("title", "flink"),))) == sorted(PAGES)


def test_newest_are_those_with_the_latest_dates(shared: IndexReader) -> None:
    """Latest first, including dates before 1970; a page without a date comes last."""
    assert shared.newest(EVERYTHING, 10).ids.tolist() == [3, 4, 1, 2, 5]
    found = shared.newest(Term("body", "a"), 2)
    assert found.ids.tolist() == [3, 1]
    assert found.scores.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (EVERYTHING, [1, 2, 3, 4, 5]),
        (NOTHING, []),
        (DisMax(()), []),
        (AndNot(EVERYTHING, (Term("title", "kafka"),)), [3, 4, 5]),
        (AndNot(EVERYTHING, ()), [1, 2, 3, 4, 5]),
        (AndNot(NOTHING, (Term("title", "kafka"),)), []),
        (And((AndNot(EVERYTHING, (Term("body", "a"),)), AndNot(EVERYTHING, (Term("body", "d"),)))), [4]),
        (Phrase("title", ("flink",)), [3]),
        (Phrase("title", ()), []),
        (TermSet("site", ()), []),
        (TermSet("site", ("a.org", "x.b.org")), [1, 2, 5]),
        (TermSet("site", ("A.ORG", "a")), []),
        (Range("date", -50, 100), [1, 2]),
        (Range("date", 100, -50), []),
        (Range("date", -(10**30), 10**30), [1, 2, 3, 4]),
        (Range("id", -5, 2), [1, 2]),
        (Range("id", 10**30, 10**31), []),
        (Or((Term("body", "a"), Term("body", "b"), Term("body", "d")), 2), [1, 2, 3]),
        (Or((Term("body", "a"), Term("body", "b"), Term("body", "d")), 3), [1]),
        (Or((Term("body", "a"),), 2), []),
        (Or((Term("body", "a"),), 0), [1, 2, 3, 4, 5]),
        (Or((Term("body", "a"), EVERYTHING)), [1, 2, 3, 4, 5]),
    ],
)
def test_the_meaning_of_each_node(shared: IndexReader, node: Node, expected: list[int]) -> None:
    """Empty parts, lone negations and unlimited ranges mean what they say."""
    assert ids(shared, node) == expected
    assert shared.find(node, 10, count=True).total == len(expected)


# --- The same, by a model ---


def words_of(page_id: int, field: str) -> list[str]:
    """Return the words of a page's field."""
    return str(PAGES[page_id].get(field, "")).split()


def values_of(page_id: int, field: str) -> list[str]:
    """Return the values of a page's exact field."""
    given = PAGES[page_id].get(field, [])
    return [given] if isinstance(given, str) else list(given)  # type: ignore[call-overload]  # lists of words only


def matches(node: Node, page_id: int) -> bool:
    """Check whether a page matches, in the simplest way."""
    match node:
        case Or(parts, at_least):
            return sum(matches(part, page_id) for part in parts) >= at_least
        case DisMax(parts):
            return any(matches(part, page_id) for part in parts)
        case And(parts):
            return all(matches(part, page_id) for part in parts)
        case AndNot(wanted, unwanted):
            return matches(wanted, page_id) and not any(matches(part, page_id) for part in unwanted)
        case _:
            return leaf_matches(node, page_id)


def leaf_matches(node: Term | Phrase | TermSet | Range, page_id: int) -> bool:
    """Do the same for leaf nodes. Phrases have two words here."""
    match node:
        case Term(field, word):
            return word in words_of(page_id, field)
        case Phrase(field, words):
            return words in list(pairwise(words_of(page_id, field)))
        case TermSet(field, values):
            return any(value in values_of(page_id, field) for value in values)
        case Range(field, low, high):
            number = {**PAGES[page_id], "id": page_id}.get(field)
            return isinstance(number, int) and low <= number <= high


a_field = st.sampled_from(TEXT_FIELDS)
a_word = st.sampled_from(("a", "b", "c", "d", "kafka", "streams", "absent"))
a_value = st.sampled_from(("a.org", "b.org", "x.b.org", "html", "pdf", "en", "de", "private", "absent"))
a_number = st.integers(-100, 400)
a_leaf: st.SearchStrategy[Node] = st.one_of(
    st.builds(Term, a_field, a_word, st.floats(0, 4)),
    st.builds(Phrase, a_field, st.tuples(a_word, a_word), st.floats(0, 4), st.just(0)),
    st.builds(TermSet, st.sampled_from(EXACT_FIELDS), st.lists(a_value, max_size=3).map(tuple)),
    st.builds(Range, st.sampled_from(NUMBER_FIELDS), a_number, a_number),
)


def branches(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Return nodes with such parts."""
    parts = st.lists(inner, max_size=4).map(tuple)
    return st.one_of(
        st.builds(Or, parts, st.integers(-1, 4)),
        st.builds(And, parts, parts),
        st.builds(DisMax, parts, st.floats(0, 1)),
        st.builds(AndNot, inner, parts),
    )


@given(st.recursive(a_leaf, branches, max_leaves=12))
def test_what_is_found_is_what_the_tree_says(shared: IndexReader, node: Node) -> None:
    """However nodes are nested, the pages found are those that match the tree."""
    expected = [page_id for page_id in PAGES if matches(node, page_id)]
    assert ids(shared, node) == expected
    assert sorted(shared.newest(node, 10).ids.tolist()) == expected


@given(st.text())
@example("OR")
@example("IN")
@example("it's")
@example("title:kafka")
@example('"open')
@example("((((")
@example("a b")
@example("")
@example("\ud800")
@example("x" * 100_000)
def test_any_text_is_a_word_and_nothing_more(shared: IndexReader, text: str) -> None:
    """Pitfall: tantivy's parser fails on plain words such as OR, IN and it's. Here text is only text."""
    nodes = (
        Term("body", text),
        Phrase("body", ("a", text)),
        Phrase("body", (text, text), slop=2),
        TermSet("site", (text,)),
    )
    is_word = text in {"a", "b", "c", "d"}
    assert ids(shared, Or(nodes)) == [page_id for page_id in PAGES if is_word and text in words_of(page_id, "body")]
    assert shared.df("body", text) == sum(text in words_of(page_id, "body") for page_id in PAGES)
    assert all(word.startswith(text) for word, _ in shared.list_terms("body", text, 5))


@pytest.mark.parametrize(
    "word", ["or", "OR", "IN", "NOT", "it's", "+", "-x", "c++", "a:b", '"', "(", "^2", "\\", "*", "語"]
)
def test_odd_words_are_found_where_they_stand(tmp_path: Path, word: str) -> None:
    """Pitfall: operators, quotes and brackets are words like any others."""
    reader = filled(tmp_path, {1: {"body": f"say {word} twice"}, 2: {"body": "say nothing twice"}})
    assert ids(reader, Term("body", word)) == [1]
    assert ids(reader, Phrase("body", ("say", word, "twice"))) == [1]
    assert ids(reader, AndNot(Term("body", "say"), (Term("body", word),))) == [2]


def test_no_text_is_parsed_by_tantivy() -> None:
    """Pitfall: its parsers change the meaning of queries, or crash the process. The source does not use them."""
    folder = Path(str(tantivy_index.__file__)).parent
    sources = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in ("tantivy_index", "tantivy_query")]
    assert re.findall(r"parse_query|regex_query|fuzzy", "".join(sources)) == []


# --- Bugs and bounds ---


@pytest.mark.parametrize(
    "node",
    [
        Term("text", "a"),
        Term("site", "a"),
        Phrase("kind", ("a", "b")),
        TermSet("title", ("a",)),
        Range("body", 1, 2),
        And((EVERYTHING, Or((Term("text", "a"),)))),
        Term("body", "a", float("nan")),
        Term("body", "a", -1.0),
        Phrase("body", ("a", "b"), slop=-1),
        Phrase("body", ("a", "b"), slop=2**40),
        DisMax((Term("body", "a"),), float("inf")),
    ],
)
def test_a_field_or_weight_that_cannot_be_is_a_bug(shared: IndexReader, node: Node) -> None:
    """It never reaches tantivy, which would find nothing, use it for ordering, or fail with its own message."""
    with pytest.raises(ValueError, match=r"unknown field|weight|slop"):
        shared.find(node, 10)


def nested(depth: int) -> Node:
    """Return a tree of this depth."""
    node: Node = Term("body", "a")
    for _ in range(depth - 1):
        node = And((node,))
    return node


def test_deep_trees_are_refused(shared: IndexReader) -> None:
    """Pitfall: thousands of nested parts crash the process. Twelve are enough, and more are a ``ValueError``."""
    assert ids(shared, nested(12)) == [1, 2, 3]
    for depth in (13, 5_000, 100_000):
        with pytest.raises(ValueError, match="too complex"):
            shared.find(nested(depth), 10)


def test_wide_trees_are_refused(shared: IndexReader) -> None:
    """The same for thousands of parts, words or values; also if few objects represent many parts."""
    term = Term("body", "a")
    assert ids(shared, Or((term,) * 1_900)) == [1, 2, 3]
    doubled: Node = term
    for _ in range(11):
        doubled = And((doubled, doubled))
    for node in (Or((term,) * 2_001), Phrase("body", ("a",) * 2_001), TermSet("site", ("a",) * 2_001), doubled):
        with pytest.raises(ValueError, match="more than"):
            shared.newest(node, 10)


@pytest.mark.parametrize("most", [0, -1, -(10**20)])
def test_none_asked_for_is_none_found(shared: IndexReader, most: int) -> None:
    """Pitfall: a limit of 0 panics in tantivy, which is not an ``Exception``. Here, it gives a count without hits."""
    assert len(shared.find(EVERYTHING, most).ids) == 0
    assert len(shared.newest(EVERYTHING, most).ids) == 0
    assert shared.list_terms("body", "", most) == []
    found = shared.find(EVERYTHING, most, count=True)
    assert (len(found.ids), found.total) == (0, len(PAGES))


@pytest.mark.parametrize("most", [6, 10**6, 2**62, 10**30])
def test_more_asked_for_than_there_are(shared: IndexReader, most: int) -> None:
    """Pitfall: memory for all requested hits is allocated in advance, with a panic if there is none."""
    assert ids(shared, EVERYTHING, most) == sorted(PAGES)
    assert len(shared.newest(EVERYTHING, most).ids) == len(PAGES)


def test_an_empty_index_answers(tmp_path: Path) -> None:
    """Before the first page there are no results and no error."""
    reader = filled(tmp_path, {})
    found = reader.find(EVERYTHING, 10, count=True)
    assert (found.ids.tolist(), found.total, len(reader), reader.deleted_share()) == ([], 0, 0, 0.0)
    assert reader.newest(EVERYTHING, 10).ids.tolist() == []
    assert reader.list_terms("body", "", 10) == []


def test_a_word_beyond_measure_is_left_out(tmp_path: Path) -> None:
    """Text is hostile: a word of a million characters is not indexed, but its neighbors are found."""
    reader = filled(tmp_path, {1: {"body": f"a {'x' * 1_000_000} b {'y' * 64}"}})
    assert [word for word, _ in reader.list_terms("body", "", 10)] == ["a", "b", "y" * 64]


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 1, "text": "no such field"},
        {"title": "no id"},
        {"id": "1"},
        {"id": -1},
        {"id": 2**63},
        {"id": [1, 2]},
        {"id": 1, "title": b"bytes"},
        {"id": 1, "title": "half a pair \ud800"},
        {"id": 1, "date": 1.5},
        {"id": 1, "site": ["a", None]},
    ],
)
def test_a_wrong_document_is_refused_at_once(tmp_path: Path, wrong: dict[str, object]) -> None:
    """Pitfall: tantivy ignores unknown fields silently. Here it is a ``ValueError``, and the batch is unaffected."""
    writer = open_writer(tmp_path, HEAP_BYTES)
    writer.put(page(8, title="kafka"))
    with pytest.raises(ValueError, match=r"."):
        writer.put(wrong)
    assert writer.commit() == ()
    writer.close()
    assert ids(open_reader(tmp_path), EVERYTHING) == [8]


# --- Words of the index ---


def test_terms_come_with_their_frequencies(shared: IndexReader) -> None:
    """Words with this prefix, most frequent first; for exact fields, values."""
    assert shared.list_terms("body", "", 2) == [("a", 3), ("b", 3)]
    assert shared.list_terms("title", "k", 10) == [("kafka", 2)]
    assert shared.list_terms("site", "a.", 10) == [("a.org", 2)]
    assert shared.df("body", "c") == 3
    assert shared.df("site", "b.org") == 2
    assert shared.df("body", "absent") == 0


@pytest.mark.parametrize("field", ["id", "date", "text"])
def test_numbers_have_no_words(shared: IndexReader, field: str) -> None:
    """Asking for the words of a number, or of an unknown field, is a bug."""
    with pytest.raises(ValueError, match="unknown field"):
        shared.list_terms(field, "", 1)
    with pytest.raises(ValueError, match="unknown field"):
        shared.df(field, "a")


# --- Writing ---


def test_a_page_replaces_the_one_with_its_id(tmp_path: Path) -> None:
    """Put also updates, within a batch and across commits and writers; remove deletes.

    Pitfall: deleting by the term of an unsigned field silently deletes nothing.
    """
    filled(tmp_path, {1: {"body": "old"}, 2: {"body": "old"}, 3: {"body": "old"}})
    writer = open_writer(tmp_path, HEAP_BYTES)
    writer.put(page(1, body="newer"))
    writer.put(page(1, body="newest"))
    writer.remove(2)
    writer.put(page(4, body="newer"))
    writer.remove(4)
    writer.remove(99)
    writer.commit()
    writer.close()
    reader = open_reader(tmp_path)
    assert ids(reader, EVERYTHING) == [1, 3]
    assert ids(reader, Term("body", "newest")) == [1]
    assert ids(reader, Term("body", "old")) == [3]


def test_what_is_not_committed_is_not_there(tmp_path: Path) -> None:
    """A writer that ends without a commit leaves the index unchanged."""
    filled(tmp_path, {1: {"body": "old"}})
    writer = open_writer(tmp_path, HEAP_BYTES)
    writer.put(page(1, body="new"))
    writer.close()
    assert ids(open_reader(tmp_path), Term("body", "old")) == [1]


def test_analyzers_are_there_at_each_open(tmp_path: Path) -> None:
    """Pitfall: analyzers are not stored, and without them a commit fails. Every opening registers them."""
    for page_id in (1, 2, 3):
        filled(tmp_path, {page_id: {"body": "cut at spaces"}})
    assert ids(open_reader(tmp_path), Phrase("body", ("at", "spaces"))) == [1, 2, 3]


def test_deleted_documents_count_until_they_are_merged(tmp_path: Path) -> None:
    """Pitfall: a replaced page counts twice in document frequencies. The number of pages and the share are right."""
    filled(tmp_path, {page_id: {"body": "word"} for page_id in range(10)})
    writer = open_writer(tmp_path, HEAP_BYTES)
    for page_id in range(5):
        writer.put(page(page_id, body="word"))
    writer.commit()
    writer.close()
    reader = open_reader(tmp_path)
    assert len(reader) == 10
    assert reader.find(Term("body", "word"), 99, count=True).total == 10
    assert reader.df("body", "word") == 15
    assert reader.deleted_share() == pytest.approx(5 / 15)


# --- Failures ---


def test_one_bad_page_takes_none_along(careless: Careless, tmp_path: Path) -> None:
    """Pitfall: a document without the schema fails the commit and loses the whole batch. Here only it is lost."""
    careless.put(page(1, title="good"))
    careless.commit()
    for page_id in range(2, 60):
        careless.put(page(page_id, title="bad" if page_id in {30, 57} else "good"))
    careless.remove(1)
    assert careless.commit() == (30, 57)
    assert ids(open_reader(tmp_path), EVERYTHING) == [i for i in range(2, 60) if i not in {30, 57}]


def test_the_commit_after_a_failure_works(careless: Careless, tmp_path: Path) -> None:
    """Pitfall: the commit after a failed one reports success and loses its pages. Here it does not."""
    careless.put(page(1, title="bad"))
    assert careless.commit() == (1,)
    for page_id in (2, 3):
        careless.put(page(page_id, title="good"))
        assert careless.commit() == ()
    assert ids(open_reader(tmp_path), EVERYTHING) == [2, 3]


def test_a_bad_page_leaves_its_old_version(careless: Careless, tmp_path: Path) -> None:
    """A page that can't be replaced stays, because an old page is better than none."""
    careless.put(page(1, title="good"))
    assert careless.commit() == ()
    careless.put(page(1, title="bad"))
    assert careless.commit() == (1,)
    assert ids(open_reader(tmp_path), Term("title", "good")) == [1]


def test_a_bad_page_far_before_the_commit(careless: Careless, tmp_path: Path) -> None:
    """The indexing thread dies long before the commit and accepts no more pages. They are kept in the meantime."""
    text = " ".join(f"word{number}" for number in range(2_000))
    careless.put(page(0, title="bad"))
    for page_id in range(1, 300):
        careless.put(page(page_id, body=text))
    assert careless.commit() == (0,)
    assert len(open_reader(tmp_path)) == 299


@pytest.mark.parametrize("largest_bytes", [0, 3_000])
def test_a_full_disk_loses_nothing(tmp_path: Path, largest_bytes: int) -> None:
    """Each attempt to commit says that the disk is full; with space again, the whole batch is committed."""
    reader = filled(tmp_path, {1: {"body": "old"}})
    writer = open_writer(tmp_path, HEAP_BYTES)
    for page_id in range(1, 9):
        writer.put(page(page_id, body=" ".join(f"new word{page_id}x{number}" for number in range(500))))
    with disk_without_room(largest_bytes):
        for _ in range(2):
            with pytest.raises(StoreError, match="Check the disk and permissions"):
                writer.commit()
    reader.refresh()
    assert ids(reader, Term("body", "old")) == [1]
    writer.put(page(9, body="new"))
    assert writer.commit() == ()
    writer.close()
    reader.refresh()
    assert ids(reader, Term("body", "new")) == list(range(1, 10))


def test_a_disk_that_fills_within_a_batch_loses_nothing(tmp_path: Path) -> None:
    """Tantivy writes to disk long before the commit, and its thread dies if it can't. Adding pages still works."""
    writer = open_writer(tmp_path, HEAP_BYTES)
    with disk_without_room(1_000):
        for page_id in range(300):
            writer.put(page(page_id, body=" ".join(f"word{page_id}x{number}" for number in range(600))))
        with pytest.raises(StoreError, match="Check the disk and permissions"):
            writer.commit()
    assert writer.commit() == ()
    writer.close()
    assert len(open_reader(tmp_path)) == 300


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """There is only one writer at a time."""
    writer = open_writer(tmp_path, HEAP_BYTES)
    with pytest.raises(StoreBusy, match="Another process is writing the index"):
        open_writer(tmp_path, HEAP_BYTES)
    writer.close()
    open_writer(tmp_path, HEAP_BYTES).close()


def test_other_fields_are_no_index_of_ours(tmp_path: Path) -> None:
    """Pitfall: the fields of an index can't change. Reader and writer say what to do instead."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("title")
    tantivy.Index(builder.build(), str(tmp_path))
    for opening in (open_reader, open_writer):
        with pytest.raises(StoreCorrupt, match="vedette reindex"):
            opening(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "{}", '{"segments": 5}'])
def test_damaged_files_are_told(tmp_path: Path, content: str) -> None:
    """Opening a damaged index reports the damage and how to rebuild it, in one line."""
    filled(tmp_path)
    (tmp_path / "meta.json").write_text(content)
    for opening in (open_reader, open_writer):
        with pytest.raises(StoreCorrupt, match="vedette reindex") as report:
            opening(tmp_path)
        assert "\n" not in str(report.value)


@pytest.mark.parametrize("kind", ["term", "idx", "fast"])
@pytest.mark.parametrize("fate", ["lost", "empty"])
def test_missing_and_empty_files_are_told(tmp_path: Path, kind: str, fate: str) -> None:
    """The same if a part of the index is missing."""
    filled(tmp_path)
    for file in tmp_path.glob(f"*.{kind}"):
        file.unlink()
        if fate == "empty":
            file.touch()
    with pytest.raises(StoreCorrupt, match="vedette reindex"):
        open_reader(tmp_path)


def test_a_reader_of_nothing_is_told_what_to_do(tmp_path: Path) -> None:
    """A missing or empty folder and a file are rejected; reading creates no index."""
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty", "file"):
        with pytest.raises(StoreError, match="vedette reindex"):
            open_reader(tmp_path / name)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["empty", "file"]
    with pytest.raises(StoreError, match="Check the disk and permissions"):
        open_writer(tmp_path / "file")


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """If the system refuses, the message says to check disk and permissions."""
    with disk_without_room(), pytest.raises(StoreError, match="disk and permissions"):
        open_writer(tmp_path / "new", HEAP_BYTES)
    with pytest.raises(StoreError, match="disk and permissions"):
        open_writer(Path("/proc/self/no-index"), HEAP_BYTES)


# --- Reading what others write ---


def test_a_refresh_brings_what_was_committed(tmp_path: Path) -> None:
    """Until then a reader sees the same as before; a refresh without changes says so."""
    reader = filled(tmp_path, {1: {"body": "a"}})
    writer = open_writer(tmp_path, HEAP_BYTES)
    writer.put(page(2, body="a"))
    assert not reader.refresh()
    writer.commit()
    assert ids(reader, EVERYTHING) == [1]
    assert reader.refresh()
    assert ids(reader, EVERYTHING) == [1, 2]
    assert not reader.refresh()
    writer.close()


CHILD = """
import sys
from pathlib import Path
from vedette.adapters.index_store.tantivy_index import open_writer
writer = open_writer(Path(sys.argv[1]))
for page_id in range(10, 20):
    writer.put({"id": page_id, "body": "a"})
    writer.commit()
writer.close()
"""


def test_another_process_may_write(tmp_path: Path) -> None:
    """After a refresh a reader sees another process's commits, even if its files were merged away."""
    reader = filled(tmp_path, {1: {"body": "a"}})
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], check=True, timeout=PATIENCE_S)
    assert ids(reader, Term("body", "a")) == [1]
    assert reader.refresh()
    assert ids(reader, Term("body", "a")) == [1, *range(10, 20)]


def test_an_old_view_keeps_working(tmp_path: Path) -> None:
    """A reader without a refresh still works, even if its pages were replaced and merged away."""
    old = filled(tmp_path, {page_id: {"body": "old"} for page_id in range(20)})
    writer = open_writer(tmp_path, HEAP_BYTES)
    for _ in range(12):
        for page_id in range(20):
            writer.put(page(page_id, body="new"))
        writer.commit()
    writer.close()
    assert ids(old, Term("body", "old")) == list(range(20))
    assert old.newest(Term("body", "new"), 10).ids.tolist() == []
    assert old.refresh()
    assert ids(old, Term("body", "old")) == []


def test_nothing_is_stored(tmp_path: Path) -> None:
    """Text is stored elsewhere, once; here it would be more than half of the index."""
    filled(tmp_path)
    fields = json.loads((tmp_path / "meta.json").read_text())["schema"]
    assert [field["name"] for field in fields if field["options"]["stored"]] == []


def test_too_little_memory_for_a_thread_is_no_damage(tmp_path: Path) -> None:
    """The index is not rebuilt in this case; the text is tantivy's message if memory is limited."""
    error = ValueError("System error.'Failed to spawn segment merging thread'")
    assert not isinstance(tantivy_index._to_store_error(tmp_path, error), StoreCorrupt)
