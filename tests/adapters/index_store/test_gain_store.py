"""The gain store: written by one process, read by others, bounded, and never renumbered."""

import sqlite3
from contextlib import closing
from pathlib import Path

from vedette.adapters.index_store.gain_store import FILE, Gain, GainStore, read_gains_since, read_scale


def gains(*pages: int) -> list[Gain]:
    """Return one row for each page."""
    return [Gain(0, page, 100.0 + page, "again", page / 8, page / 16, page / 4) for page in pages]


def test_what_was_committed_is_read_in_order_by_whoever_asks(tmp_path: Path) -> None:
    """Readers see committed rows from any number on, this many at a time; reading deletes nothing."""
    assert read_gains_since(tmp_path, 0, 10) == []
    with closing(GainStore(tmp_path)) as book:
        book.append(gains(1, 2))
        assert read_gains_since(tmp_path, 0, 10) == []
        book.commit()
        book.append(gains(3))
        book.commit()
        first, second = read_gains_since(tmp_path, 0, 2)
        assert (first._replace(seq=0), second._replace(seq=0)) == tuple(gains(1, 2))
        assert [gain.page for gain in read_gains_since(tmp_path, second.seq, 10)] == [3]
        assert len(read_gains_since(tmp_path, 0, 10)) == 3


def test_the_scale_of_gains_is_kept_beside_them(tmp_path: Path) -> None:
    """The gain of a view is unknown at first, and the latest measurement counts; an earlier file lacks it."""
    assert read_scale(tmp_path) is None
    with closing(GainStore(tmp_path)) as book:
        assert read_scale(tmp_path) is None
        book.save_scale(0.5)
        book.save_scale(0.25)
    assert read_scale(tmp_path) == 0.25
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute("DROP TABLE scale")
    assert read_scale(tmp_path) is None
    with closing(GainStore(tmp_path)) as book:
        book.save_scale(0.75)
    assert read_scale(tmp_path) == 0.75


def test_views_may_be_unknown(tmp_path: Path) -> None:
    """A page's anchor texts say nothing about its own views."""
    with closing(GainStore(tmp_path)) as book:
        book.append([Gain(0, 7, 1.0, "names", 0.5, 0.0, None)])
        book.commit()
        assert read_gains_since(tmp_path, 0, 1)[0].views is None


def test_what_was_not_committed_is_forgotten(tmp_path: Path) -> None:
    """The next writer continues after the durable rows."""
    with closing(GainStore(tmp_path)) as book:
        book.append(gains(1))
        book.commit()
        book.append(gains(2))
    with closing(GainStore(tmp_path)) as book:
        book.append(gains(3))
        book.commit()
        assert [gain.page for gain in read_gains_since(tmp_path, 0, 10)] == [1, 3]


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path) -> None:
    """The store stays small even if no one reads it."""
    with closing(GainStore(tmp_path, most=5)) as book:
        for page in range(100):
            book.append(gains(page))
            book.commit()
        kept = [gain.page for gain in read_gains_since(tmp_path, 0, 100)]
        assert kept[-5:] == [95, 96, 97, 98, 99]
        assert len(kept) < 12


def test_numbers_go_on_when_the_file_was_lost_or_is_damaged(tmp_path: Path) -> None:
    """A reader with an old number gets everything new."""
    last = 0
    for loss in ("none", "lost", "damaged"):
        for path in sorted(tmp_path.glob(f"{FILE}*")):
            path.unlink()
        if loss == "damaged":
            (tmp_path / FILE).write_bytes(b"not a database" * 100)
            assert read_gains_since(tmp_path, 0, 10) == []
        with closing(GainStore(tmp_path)) as book:
            book.append(gains(1))
            book.commit()
            (found,) = read_gains_since(tmp_path, last, 10)
            last = found.seq
