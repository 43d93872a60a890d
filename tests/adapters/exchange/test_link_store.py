"""The link store: a link is applied exactly once, even if it is sent again."""

import sqlite3

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.exchange.link_store import LinkStore, OutboxRow, create_exchange_tables, read_outbox
from vedette.engine.coordinator.shard import ForeignLinks


@pytest.fixture
def db() -> sqlite3.Connection:
    """A state with the tables of the exchange."""
    return open_db()


def open_db() -> sqlite3.Connection:
    """A state with the tables of the exchange."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create_exchange_tables(connection)
    return connection


def links(number: int) -> ForeignLinks:
    """Return a link with a number."""
    return ForeignLinks((f"http://a.test/{number}",), 1)


def rows_for(target: int, db: sqlite3.Connection) -> list[tuple[int, int, bytes]]:
    """Return the outbox rows of a target as the mailbox delivers them."""
    return [(row.epoch, row.sequence, row.links) for row in read_outbox(db, (0, 0), 1000) if row.target == target]


def test_a_page_that_is_rolled_back_sends_nothing(db: sqlite3.Connection) -> None:
    """Links are in the outbox if and only if the transaction of their page was committed."""
    db.execute("BEGIN")
    LinkStore(db, 1).put_links({2: [links(1)]})
    db.execute("ROLLBACK")
    assert read_outbox(db, (0, 0), 10) == []


def test_what_was_sent_is_dropped_and_its_number_never_used_again(db: sqlite3.Connection) -> None:
    """Rows up to the last one sent are deleted; the next row gets a higher number, even at the next epoch."""
    LinkStore(db, 1).put_links({2: [links(1)], 3: [links(2)]})
    last = read_outbox(db, (0, 0), 10)[-1]
    LinkStore(db).drop_sent((last.epoch, last.sequence))
    LinkStore(db, 2).put_links({2: [links(3)]})
    (row,) = read_outbox(db, (last.epoch, last.sequence), 10)
    assert row[:3] == OutboxRow(2, last.sequence + 1, 2, b"")[:3]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_overlapping_deliveries_are_applied_once_and_in_order(deliveries: list[tuple[int, int]]) -> None:
    """Whatever ranges are delivered, each link up to the last one is applied once, in the order of the outbox."""
    sender, receiver, applied = open_db(), open_db(), list[str]()
    for number in range(10):
        LinkStore(sender, 1 + number // 4).put_links({5: [links(number)]})
    rows = rows_for(5, sender)
    for first, last in deliveries:
        position = LinkStore(receiver).get_positions().get(9, (0, 0))
        start = min(first, sum(row[:2] <= position for row in rows))  # nothing is left out, as the mailbox is in order
        LinkStore(receiver).apply_once(
            9, rows[start : last + 1], lambda got: applied.extend(one.urls[0] for one in got)
        )
    assert applied == [links(number).urls[0] for number in range(len(applied))]


def test_a_position_is_saved_with_what_it_counts(db: sqlite3.Connection) -> None:
    """If applying is rolled back, the same rows are applied when they arrive again."""
    sender, applied = open_db(), list[ForeignLinks]()
    LinkStore(sender, 1).put_links({0: [links(1)]})
    db.execute("BEGIN")
    LinkStore(db).apply_once(3, rows_for(0, sender), applied.extend)
    db.execute("ROLLBACK")
    for _ in range(2):
        LinkStore(db).apply_once(3, rows_for(0, sender), applied.extend)
    assert applied == [links(1), links(1)]


BROKEN = (
    b"",
    b"\xc1",
    msgspec.msgpack.encode([links(1)])[:-1],
    msgspec.msgpack.encode([("http://a.test/", 1)]),
    msgspec.msgpack.encode([links(1)._replace(depth=-1)]),
    msgspec.msgpack.encode([links(1)._replace(depth=1 << 63)]),
    msgspec.msgpack.encode([links(1)._replace(front=8)]),
    msgspec.msgpack.encode([links(1)._replace(source="http://a.test:b/")]),
)


@given(st.sampled_from(BROKEN) | st.binary(max_size=40))
def test_a_row_that_cannot_be_read_is_passed_over(broken: bytes) -> None:
    """An unreadable row in the mailbox stops no shard: the rows around it are applied, and it is counted."""
    db, applied = open_db(), list[ForeignLinks]()
    good = [msgspec.msgpack.encode([links(number)]) for number in range(2)]
    rows = [(1, 1, good[0]), (1, 2, broken), (1, 3, good[1])]
    lost = LinkStore(db).apply_once(9, rows, applied.extend)
    assert [one for one in applied if one in {links(0), links(1)}] == [links(0), links(1)]
    assert lost == (len(applied) == 2 and broken != b"\x90")
    assert LinkStore(db).get_positions() == {9: (1, 3)}
