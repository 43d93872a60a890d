"""The alert store: each page once, even after kills and rebuilds; messages are kept until they are delivered."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data_folders import write_sample

from vedette.adapters.alerts import alert_store as watch_book
from vedette.adapters.alerts.alert_store import (
    ALERTS_NAME,
    MAX_NEWS_AGE_S,
    RETENTION_S,
    AlertItem,
    AlertReader,
    AlertStore,
    Delivery,
    MatchedItem,
    NewPage,
)
from vedette.adapters.files.backup import create_backup, restore_backup
from vedette.errors import StoreCorrupt, StoreNewer

NOW_S = 1_800_000_000.0


def fresh(print_: int, found_s: float = NOW_S) -> NewPage:
    """Return a new page."""
    return NewPage(print_, 1000 + print_, found_s, "feed", "https://a.test/feed", NOW_S)


def match_page(print_: int, *watches: str, hooks: tuple[str, ...] = (), at_s: float = NOW_S + 5) -> MatchedItem:
    """Return a page that matches these alerts and some webhooks."""
    item = AlertItem(0, 1000 + print_, f"https://a.test/{print_}", "A title", "Text", NOW_S, "feed", "", None, at_s)
    return MatchedItem(print_, item, watches, hooks)


def publish_pages(book: AlertStore, *pages: MatchedItem) -> None:
    """Publish pages completely."""
    book.add_new_pages([fresh(one.print) for one in pages], (), (), NOW_S)
    book.publish(pages, (), NOW_S)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[AlertStore]:
    """An empty store."""
    with closing(AlertStore(tmp_path)) as book:
        yield book


def seqs(folder: Path, after: int = 0, watch: str | None = None) -> list[int]:
    """Return the numbers after a cursor."""
    return [item.seq for item in AlertReader(folder).list_items(after, 100, watch)]


def test_a_page_is_told_once_however_often_it_is_noted(tmp_path: Path, book: AlertStore) -> None:
    """After an indexer or notifier was killed, or the index was rebuilt, there is still one item."""
    book.add_new_pages([fresh(1)], (), (), NOW_S)
    book.add_new_pages([fresh(1)], (), (), NOW_S)
    assert [one.print for one in book.list_new_pages(10)] == [1]
    book.publish([match_page(1, "w")], (), NOW_S)
    book.publish([match_page(1, "w")], (), NOW_S)
    book.add_new_pages([fresh(1)], (), (), NOW_S)
    assert book.list_new_pages(10) == []
    assert seqs(tmp_path) == [1]


def test_copies_moves_and_what_is_late_are_told_to_nobody(book: AlertStore) -> None:
    """A copy that later gets its own content isn't new, either."""
    book.add_new_pages([fresh(1), fresh(2), fresh(3, NOW_S - MAX_NEWS_AGE_S - 1)], [4], [2], NOW_S)
    book.add_new_pages([fresh(4)], (), (), NOW_S)
    assert [one.print for one in book.list_new_pages(10)] == [1]


@settings(max_examples=12)
@given(st.lists(st.lists(st.integers(1, 30), max_size=5), max_size=8), st.integers(1, 4))
def test_whoever_follows_the_cursor_sees_each_page_once(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], most: int
) -> None:
    """This is true whatever arrives between two requests, and for any number of items per request."""
    folder = tmp_path_factory.mktemp("cursor")
    seen: list[int] = []
    cursor = 0
    with closing(AlertStore(folder)) as book:
        for batch in batches:
            publish_pages(book, *(match_page(print_) for print_ in dict.fromkeys(batch)))
            for item in AlertReader(folder).list_items(cursor, most):
                seen.append(item.page)
                cursor = item.seq
        seen += [item.page for item in AlertReader(folder).list_items(cursor, 1000)]
    assert seen == [1000 + print_ for print_ in dict.fromkeys(print_ for batch in batches for print_ in batch)]


def test_a_watch_has_its_own_items_and_messages(tmp_path: Path, book: AlertStore) -> None:
    """A message has the items of its alert that arrived together; the next one waits for it."""
    publish_pages(book, match_page(1, "w", "v", hooks=("w",)), match_page(2, "v"), match_page(3, "w", hooks=("w",)))
    publish_pages(book, match_page(4, "w", hooks=("w",)))
    assert seqs(tmp_path, 0, "w") == [1, 3, 4]
    assert AlertReader(tmp_path).count_by_alert() == {"v": 2, "w": 3}
    (first,) = book.list_due(NOW_S, [], 10)
    assert [item.seq for item in book.load_delivery_items(first, 10)] == [1, 3]
    assert book.list_due(NOW_S, ["w"], 10) == []
    book.record_attempt(first.id, 500, "it returned status 500", NOW_S, NOW_S + 60)
    assert book.list_due(NOW_S + 59, [], 10) == []
    assert [one.id for one in book.list_due(NOW_S + 61, [], 10)] == [first.id]
    book.record_attempt(first.id, 204, "", NOW_S + 61, None)
    (second,) = book.list_due(NOW_S + 61, [], 10)
    assert [item.seq for item in book.load_delivery_items(second, 10)] == [4]
    last = AlertReader(tmp_path).list_deliveries(10)[-1]
    assert (last.tries, last.status, last.error, last.next_s) == (2, 204, "", None)


def test_what_waits_is_bounded_and_what_is_given_up_says_so(
    tmp_path: Path, book: AlertStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver that is unreachable for long loses the oldest messages; a removed alert loses all waiting ones."""
    most = 3
    monkeypatch.setattr(watch_book, "MAX_WAITING", most)
    for number in range(1, most + 3):
        publish_pages(book, match_page(number, "w", hooks=("w",)))
    with closing(sqlite3.connect(tmp_path / ALERTS_NAME)) as db:
        assert db.execute("SELECT count(*) FROM delivery WHERE next_s IS NOT NULL").fetchone() == (most,)
        assert "too many" in db.execute("SELECT error FROM delivery ORDER BY number LIMIT 1").fetchone()[0]
    assert book.abandon_deliveries("w", "the watch was removed", NOW_S) == most
    assert book.list_waiting_alerts() == []


def test_old_items_go_but_never_those_that_wait_to_be_sent(tmp_path: Path, book: AlertStore) -> None:
    """A cursor stays valid, because numbers are never reused."""
    publish_pages(
        book, match_page(1, at_s=NOW_S), match_page(2, "w", hooks=("w",), at_s=NOW_S), match_page(3, at_s=NOW_S)
    )
    book.prune(NOW_S + RETENTION_S + 1, NOW_S)
    assert seqs(tmp_path) == [2, 3]
    book.abandon_deliveries("w", "gone", NOW_S)
    book.prune(NOW_S + RETENTION_S + 1, NOW_S)
    assert seqs(tmp_path) == []
    assert AlertReader(tmp_path).read_seq_range() == (4, 3)
    publish_pages(book, match_page(4))
    assert seqs(tmp_path) == [4]


def test_a_test_message_is_left_to_its_sender(tmp_path: Path, book: AlertStore) -> None:
    """The notifier does not send it as well."""
    book.add_test("t-1", "w", NOW_S)
    assert book.list_due(NOW_S + 1, [], 10) == []
    assert AlertReader(tmp_path).list_deliveries(10) == [Delivery("t-1", "w", 0, 0, NOW_S, None, 0, 0, "", None)]


def test_a_file_that_is_none_and_one_from_the_future(tmp_path: Path) -> None:
    """Both are rejected with a message, and not changed."""
    (tmp_path / ALERTS_NAME).write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreCorrupt, match="you can delete it"):
        AlertStore(tmp_path)
    (tmp_path / ALERTS_NAME).unlink()
    AlertStore(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / ALERTS_NAME)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreNewer, match="version 99"):
        AlertStore(tmp_path)


def test_where_nothing_was_ever_new(tmp_path: Path) -> None:
    """Reading creates no file."""
    assert (AlertReader(tmp_path).list_items(0, 10), AlertReader(tmp_path).read_seq_range()) == ([], (1, 0))
    assert not (tmp_path / ALERTS_NAME).exists()


def test_a_backup_has_it_and_a_restored_folder_goes_on(tmp_path: Path) -> None:
    """Items keep their numbers, and published ones are not published again."""
    write_sample(tmp_path / "data")
    with closing(AlertStore(tmp_path / "data")) as book:
        publish_pages(book, match_page(1, "w", hooks=("w",)))
        create_backup(tmp_path / "data", tmp_path / "copy", lambda *_: None)
    restore_backup(tmp_path / "copy", tmp_path / "again", lambda *_: None)
    assert seqs(tmp_path / "again") == [1]
    with closing(AlertStore(tmp_path / "again")) as book:
        publish_pages(book, match_page(1), match_page(2))
        assert book.list_waiting_alerts() == ["w"]
    assert seqs(tmp_path / "again") == [1, 2]
