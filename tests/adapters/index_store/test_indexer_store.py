"""The indexer store: anchor texts, aliases and titles."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.indexer_store import IndexerStore, follow_aliases
from vedette.errors import StoreBusy, StoreError


@pytest.fixture
def book(tmp_path: Path) -> Iterator[IndexerStore]:
    """An empty store."""
    with closing(IndexerStore(tmp_path)) as book:
        yield book


def test_a_store_that_was_replaced_is_an_error_of_its_own(tmp_path: Path) -> None:
    """A background job can tell from damage that its generation was deleted in the meantime."""
    with pytest.raises(StoreError, match="newer generation"):
        follow_aliases(tmp_path / "gone", np.array([1]))


def test_names_are_counted_and_the_most_frequent_come_first(book: IndexerStore) -> None:
    """A page that is indexed again does not count twice; empty texts are ignored."""
    book.add_anchors([(1, "docs"), (1, "")], again=False)
    book.add_anchors([(1, "docs")], again=False)
    book.add_anchors([(1, "manual")], again=False)
    book.add_anchors([(1, "docs"), (1, "guide")], again=True)
    assert book.top_anchors(1, 2) == (("docs", 2), ("guide", 1))
    assert book.top_anchors(2, 2) == ()


def test_a_known_page_with_a_new_name_is_to_be_indexed_anew_once(book: IndexerStore) -> None:
    """A text that it already had, and an unfetched URL, change nothing."""
    book.add_page(1, 100)
    book.add_anchors([(1, "docs"), (9, "unknown")], again=False)
    assert book.pop_renamed(10) == [100]
    book.add_anchors([(1, "docs")], again=False)
    assert book.pop_renamed(10) == []


def test_a_page_inherits_the_names_of_what_leads_to_it(book: IndexerStore) -> None:
    """Redirects and copies count as well, with texts from before and after, while the URL is an alias."""
    book.add_page(2, 200)
    book.add_anchors([(1, "old name")], again=False)
    book.add_alias(1, 2)
    assert book.pop_renamed(10) == [200]
    assert book.top_anchors(2, 5) == (("old name", 1),)
    book.add_anchors([(1, "another")], again=False)
    assert book.pop_renamed(10) == [200]
    book.remove_alias(1)
    assert book.top_anchors(2, 5) == ()


def test_only_what_was_committed_is_there_after_a_crash(tmp_path: Path) -> None:
    """Texts, progress and aliases return to the last commit together."""
    book = IndexerStore(tmp_path)
    book.set_progress("seq", 7)
    book.add_alias(1, 2)
    book.commit()
    book.set_progress("seq", 8)
    book.add_alias(3, 4)
    book.close()
    with closing(IndexerStore(tmp_path)) as again:
        assert again.get_progress("seq") == 7
        assert again.get_progress("nothing of the kind") == 0
    assert follow_aliases(tmp_path, np.array([1, 3, 5])).tolist() == [2, 3, 5]


def test_titles_are_counted_by_host(book: IndexerStore) -> None:
    """Each host is separate; reading does not count."""
    assert [book.count_title(1, 5, count=True) for _ in range(3)] == [1, 2, 3]
    assert book.count_title(2, 5, count=True) == 1
    assert book.count_title(1, 5, count=False) == 3
    assert book.count_title(9, 9, count=False) == 0


def test_generations_follow_each_other(tmp_path: Path) -> None:
    """A new one serves once it is switched to; the previous one is deleted, unless it is being written."""
    generations = Generations(tmp_path)
    assert generations.current() is None
    assert generations.min_indexed_seq() is None
    first = generations.begin()
    generations.activate(first)
    lock = generations.lock(first)
    with pytest.raises(StoreBusy, match="another vedette"):
        generations.lock(first)
    second = generations.begin()
    assert generations.current() == first
    generations.activate(second)
    generations.remove_old()
    assert first.exists()
    lock.close()
    generations.remove_old()
    assert (generations.current(), first.exists()) == (second, False)


def test_what_was_given_up_half_way_is_removed(tmp_path: Path) -> None:
    """The next attempt starts again; a generation in progress is left alone."""
    generations = Generations(tmp_path)
    generations.activate(generations.begin())
    given_up = generations.begin()
    (given_up / "rubbish").touch()
    going_on = generations.begin()
    assert not (going_on / "rubbish").exists()
    with generations.lock(going_on):
        assert generations.begin() != going_on
        assert going_on.exists()


def test_news_is_needed_until_every_generation_has_it(tmp_path: Path) -> None:
    """A generation in progress keeps the changes it has not seen; an abandoned one does not."""
    generations = Generations(tmp_path)
    first = generations.begin()
    generations.activate(first)
    generations.save_seq(first, 10)
    assert generations.min_indexed_seq() == 10
    second = generations.begin()
    assert generations.min_indexed_seq() == 10
    with generations.lock(second):
        assert generations.min_indexed_seq() == 0
        generations.save_seq(second, 25)
        assert generations.min_indexed_seq() == 10
