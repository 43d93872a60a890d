"""The words of versions as arrays, and the frequencies in query files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.histories import Kept, Life, small_history

from vedette.errors import UsageError
from vedette.lab.quality import query_files
from vedette.lab.quality.corpus import load_corpus
from vedette.lab.quality.query_files import build_queries, read_query_file, select_answerable
from vedette.text import hash_word, hash_words


def test_words_of_versions() -> None:
    """A corpus has each version's words with their counts, reads equal contents once, and is only built once."""
    history = small_history([Life([(0, "Low, low tide"), (1, "ebb")]), Life([(0, "ebb")])])
    corpus = load_corpus(history)
    assert load_corpus(history) is corpus
    assert isinstance(history.texts, Kept)
    assert history.texts.asked == corpus.rows == 2
    row = int(corpus.row_of[0])
    found = slice(corpus.start[row], corpus.start[row + 1])
    times = dict(zip(corpus.term[found].tolist(), corpus.count[found].tolist(), strict=True))
    assert times == {hash_word("low"): 2, hash_word("tide"): 1}
    assert corpus.row_of[1] == corpus.row_of[2] != row


def test_words_that_nobody_asks_for_are_left_out_but_counted() -> None:
    """Only searched words are kept; the length of a text stays the same."""
    history = small_history([Life([(0, "Low, low tide")])])
    corpus = load_corpus(history, only=hash_words(b"tide ebb"))
    assert corpus.term.tolist() == [hash_word("tide")]
    assert corpus.length.tolist() == [3]
    assert load_corpus(history, only=np.zeros(0, np.uint32)).term.tolist() == []


def test_a_timed_query_file_is_counted(tmp_path: Path) -> None:
    """Each line with a time is a search; equal words are one query, and empty searches do not count."""
    path = tmp_path / "log.tsv"
    path.write_text("970916001949\tYahoo chat\n970916001954\tyahoo, chat\n970916105432\t+md foods\n970916105433\t\n")
    queries = read_query_file(path)
    assert (queries.texts, queries.frequency.tolist()) == (("yahoo chat", "md foods"), [2.0, 1.0])
    assert queries.model == "asked"


def test_a_counted_query_file_is_believed(tmp_path: Path) -> None:
    """Counts in the file are frequencies."""
    path = tmp_path / "log.tsv"
    path.write_text('low tide\t2\n{"query": "ebb", "count": 5}\n\n')
    queries = read_query_file(path)
    assert (queries.texts, queries.frequency.tolist()) == (("ebb", "low tide"), [5.0, 2.0])


def test_a_plain_query_file_gets_frequencies_by_zipfs_law(tmp_path: Path) -> None:
    """The i-th query, in an order drawn by the seed, is searched 1/i times as often as the first."""
    path = tmp_path / "plain.txt"
    path.write_text("\n".join(f"query {at}" for at in range(50)))
    queries = read_query_file(path, seed=3)
    assert queries.model == "zipf"
    assert (queries.frequency[0] / queries.frequency).tolist() == pytest.approx(list(range(1, 51)))
    assert queries.texts == read_query_file(path, seed=3).texts
    assert queries.texts != read_query_file(path, seed=4).texts
    assert sorted(queries.texts) == sorted(f"query {at}" for at in range(50))


def test_a_query_file_that_is_not_there(tmp_path: Path) -> None:
    """The message names the file and what it should contain."""
    with pytest.raises(UsageError, match=r"nothing\.txt.*one query per line"):
        read_query_file(tmp_path / "nothing.txt")


@given(st.lists(st.text(max_size=30), max_size=10))
def test_whatever_a_query_file_says_it_is_read(lines: list[str]) -> None:
    """No line makes reading fail; every query that is read has words, each once, and a frequency."""
    queries = query_files._parse_lines(lines, 0)
    for query in range(len(queries)):
        terms = queries.get_terms(query).tolist()
        assert terms == sorted(set(terms)) != []
    assert (queries.frequency > 0).all()


def test_only_queries_that_can_be_answered_are_kept() -> None:
    """A query with a word that no version ever has is left out; the others keep their frequencies."""
    corpus = load_corpus(small_history([Life([(0, "low"), (1, "tide")])]))
    kept = select_answerable(build_queries([("low tide", 1.0), ("high tide", 2.0), ("tide", 3.0)]), corpus)
    assert (kept.texts, kept.frequency.tolist()) == (("low tide", "tide"), [1.0, 3.0])
