"""The page table: written by one process, read by others at the same time."""

from collections.abc import Iterator
from contextlib import closing
from math import isnan, nan
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.index_store import chunk_sums, page_table
from vedette.adapters.index_store.page_table import (
    FILES,
    ROW_FILES,
    PageFacts,
    PageTable,
    PageTableWriter,
    write_rank,
)
from vedette.index.fields import IndexEntry, StoredPage, number_tokens, pack_page, tokenize_entry
from vedette.index.versions import NO_VERSION, VersionKey
from vedette.text import hash_word

FACTS = PageFacts(3, 7, 120, -5, nan, 10.0, 20.0, 2, 0.25, "public", "en", "html")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[PageTableWriter]:
    """The only writer of an empty table."""
    with closing(PageTableWriter(tmp_path)) as writer:
        yield writer


def put(table: PageTableWriter, id_: int, title: str, body: str, links: list[int] | None = None) -> None:
    """Add a page with these words."""
    url = f"http://example.org/{id_}"
    words = number_tokens(tokenize_entry(IndexEntry(id_, url, title, body=body)))
    blob = pack_page(StoredPage(url, title, body=body))
    table.put(id_, FACTS, blob, words, np.array(links, np.int64) if links is not None else None)


def test_what_was_put_is_read(writer: PageTableWriter, tmp_path: Path) -> None:
    """Text, words by field, links, facts and names are read back; a missing page has nothing."""
    put(writer, 5, "Title", "some more words", [11, -12])
    table = PageTable(tmp_path)
    stored = table.read_stored(5)
    assert stored is not None
    assert (stored.title, stored.body) == ("Title", "some more words")
    assert table.read_links(5).tolist() == [11, -12]
    assert table.indexed.tolist() == [5]
    assert [table.is_indexed(id_) for id_ in (4, 5, 10**7)] == [False, True, False]
    assert table.read_stored(4) is table.read_stored(10**7) is None
    forward = table.read_forward(np.array([5, 4, 10**7]))
    assert forward.lengths.tolist() == [[1, 0, 0, 3, 3], [0] * 5, [0] * 5]
    assert forward.words[[0, 4, 6]].tolist() == [hash_word(word) for word in ("title", "some", "words")]
    signals = table.read_signals(np.array([5]))
    assert (signals.host[0], signals.group[0], signals.depth[0], signals.spam[0]) == (3, 7, 2, 0.25)
    assert isnan(signals.date_s[0])
    assert table.read_access(np.array([5])) == ["public"]


def test_a_reader_sees_what_is_written_after_it_was_opened(writer: PageTableWriter, tmp_path: Path) -> None:
    """New pages appear after a refresh, new versions of known ones at once, and new names as well."""
    put(writer, 1, "old", "old")
    table = PageTable(tmp_path)
    put(writer, 1, "new", "new words")
    put(writer, 70_000, "far", "far away")
    writer.update(1, FACTS._replace(access="http://intranet.test/", fetched_s=99.0))
    table.refresh()
    assert [stored.title for id_ in (1, 70_000) if (stored := table.read_stored(id_))] == ["new", "far"]
    assert table.read_access(np.array([1])) == ["http://intranet.test/"]
    assert table.read_signals(np.array([1])).fetched_s[0] == 99.0
    assert table.unused_share() > 0


def test_a_dropped_page_keeps_only_its_links(writer: PageTableWriter, tmp_path: Path) -> None:
    """It has neither text nor a place in the index, but its links still count."""
    put(writer, 1, "gone", "gone", [8])
    writer.remove(1)
    writer.remove(900_000)
    table = PageTable(tmp_path)
    assert table.indexed.tolist() == []
    assert table.read_stored(1) is None
    assert table.read_links(1).tolist() == [8]


def test_a_new_start_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    """Nothing is overwritten, and names keep their numbers."""
    first = PageTableWriter(tmp_path)
    put(first, 1, "one", "first page")
    first.close()
    second = PageTableWriter(tmp_path)
    put(second, 2, "two", "second page")
    second.close()
    table = PageTable(tmp_path)
    assert [stored.body for id_ in (1, 2) if (stored := table.read_stored(id_))] == ["first page", "second page"]
    assert table.read_forward(np.array([1, 2])).lengths[:, -1].tolist() == [2, 2]
    assert table.read_access(np.array([1, 2])) == ["public", "public"]


def test_files_cut_short_by_a_crash_of_the_machine_do_no_harm(writer: PageTableWriter, tmp_path: Path) -> None:
    """Rows that point beyond the end of a file have no words and no text, and nothing raises."""
    put(writer, 1, "title", "a longer text with several words", [1, 2, 3])
    writer.close()
    for name in ("text", "terms", "links"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:5])
    table = PageTable(tmp_path)
    assert table.read_stored(1) is None
    assert table.read_forward(np.array([1])).words.size == 0
    assert table.read_links(1).size == 0


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It is found anywhere in append-only files, even in parts added by later runs; half a commit is not damage."""
    monkeypatch.setattr(chunk_sums, "CHUNK_BYTES", 16)
    for id_ in (1, 2):
        with closing(PageTableWriter(tmp_path)) as writer:
            put(writer, id_, f"Title {id_}", "some more words", [11, -12, id_])
    with (tmp_path / name).open("ab") as file:
        file.write(b"half a page")
    whole = (tmp_path / name).read_bytes()
    assert PageTable(tmp_path).find_damage(10**6) == ""
    for at in range(0, len(whole) - 11, 5):
        (tmp_path / name).write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert PageTable(tmp_path).find_damage(10**6) == f"{name} has a wrong checksum"


def test_importance_is_neutral_until_it_is_known(writer: PageTableWriter, tmp_path: Path) -> None:
    """Pages added after it was computed get the middle rank."""
    put(writer, 1, "one", "one")
    table = PageTable(tmp_path)
    assert table.read_signals(np.array([1])).importance.tolist() == [0.5]
    write_rank(tmp_path, np.array([0, 1], np.float32), np.array([0, 0.75], np.float32))
    table.refresh()
    signals = table.read_signals(np.array([1, 2]))
    assert (signals.importance.tolist(), signals.host_importance.tolist()) == ([1.0, 0.5], [0.75, 0.5])


@given(st.lists(st.tuples(st.integers(0, 30), st.text(max_size=40)), max_size=20))
def test_the_last_word_counts(pages: list[tuple[int, str]]) -> None:
    """Whatever the order, each page has what was saved last."""
    with TemporaryDirectory() as name, closing(PageTableWriter(Path(name))) as writer:
        for id_, text in pages:
            put(writer, id_, text, text)
        table = PageTable(Path(name))
        for id_, text in dict(pages).items():
            stored = table.read_stored(id_)
            assert stored is not None
            assert stored.body == text.encode("utf-8", "replace").decode()


def test_a_table_of_an_older_vedette_has_no_versions(tmp_path: Path) -> None:
    """A generation from before there were versions can be read and written."""
    with closing(PageTableWriter(tmp_path)) as writer:
        put(writer, 1, "Title", "words")
    (tmp_path / "versions").unlink()
    assert PageTable(tmp_path).get_version(1) == NO_VERSION
    with closing(PageTableWriter(tmp_path)) as writer:
        writer.update(2, FACTS._replace(version=VersionKey(8, 2.5)))
    table = PageTable(tmp_path)
    assert (table.get_version(1), table.get_version(2)) == (NO_VERSION, VersionKey(8, 2.5))
    assert table.read_signals(np.array([1, 2, 10**7])).family is not None


@pytest.mark.parametrize("name", ROW_FILES)
def test_flipped_bits_in_rows_are_found(tmp_path: Path, name: str) -> None:
    """Any bit of a row that flips while no one writes is found; rows changed by a writer are not damage."""
    with closing(PageTableWriter(tmp_path)) as writer:
        put(writer, 5, "Title", "some more words")
    path = tmp_path / name
    whole = path.read_bytes()
    for at in range(0, len(whole), max(len(whole) // 50, 1)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert PageTable(tmp_path).find_damage(100)
    path.unlink()
    assert PageTable(tmp_path).find_damage(100)
    path.write_bytes(whole)
    writer = PageTableWriter(tmp_path)
    writer.update(5, FACTS._replace(fetched_s=99.0, version=VersionKey(7, 2.0)))
    writer.flush()
    assert PageTable(tmp_path).find_damage(100) == ""
    writer.close()
    assert PageTable(tmp_path).find_damage(100) == ""


def test_a_rank_with_any_flipped_bit_is_ignored_or_read(tmp_path: Path) -> None:
    """Whichever bit of its zip format flips, such as the one for encryption, loading raises nothing."""
    ranks = np.full((2, 3), 0.25, np.float32)
    write_rank(tmp_path, *ranks)
    path = tmp_path / "rank"
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            found = page_table._load_rank(path)
            assert not found.size or np.array_equal(found, ranks)
