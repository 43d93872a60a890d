"""The table of known URLs: exact, small, and impossible to crowd without its secret."""

import doctest
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.url_store import hash_table as url_table
from vedette.adapters.url_store import queues as url_queues
from vedette.adapters.url_store.hash_table import HASH_BITS, MIN_BUCKETS, UInt64s, UrlTable, _Shape
from vedette.adapters.url_store.queues import HostQueues
from vedette.errors import StoreError

SECRET = 0x1F2E_3D4C_5B6A_7988
BUDGET_BYTES = 16


def words(*values: int) -> UInt64s:
    """Return fingerprints."""
    return np.array(values, np.uint64)


def in_batches(fingerprints: UInt64s, size: int) -> Iterator[UInt64s]:
    """Add the same ones, a few at a time."""
    for start in range(0, len(fingerprints), size):
        yield fingerprints[start : start + size]


def filled(fingerprints: UInt64s, batch: int = 1000) -> UrlTable:
    """Return a table with these."""
    table = UrlTable(SECRET)
    for piece in in_batches(fingerprints, batch):
        table.add(piece)
    return table


@pytest.mark.parametrize("module", [url_table, url_queues])
def test_examples(module: object) -> None:
    """The examples in the documentation work."""
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # a parametrised module is an object to mypy


def test_first_of_equals_is_new() -> None:
    """Within a batch only the first of equal URLs is new, and ids follow the order of first appearance."""
    table = UrlTable(SECRET)
    table.add(words(5))
    added = table.add(words(9, 5, 3, 9, 3, 1))
    assert added.new.tolist() == [True, False, True, False, False, True]
    assert added.ids.tolist() == [2, 1, 3, 2, 3, 4]


def test_empty_batch() -> None:
    """A batch without links changes nothing."""
    table = UrlTable(SECRET)
    assert len(table.add(words()).ids) == len(table.find(words())) == len(table) == 0


def test_extreme_fingerprints() -> None:
    """Zero and the largest number are valid fingerprints."""
    table, extremes = UrlTable(SECRET), words(0, 2**64 - 1)
    assert table.find(extremes).tolist() == [0, 0]
    table.add(extremes)
    assert table.find(extremes).tolist() == [1, 2]


@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), max_size=60), max_size=12))
def test_agrees_with_a_dictionary(batches: list[list[int]]) -> None:
    """Whatever is added in whatever batches, ids and novelty are those of a dictionary."""
    table = UrlTable(SECRET)
    known: dict[int, int] = {}
    for batch in batches:
        added = table.add(words(*batch))
        expected = []
        for value in batch:
            expected.append(value not in known)
            known.setdefault(value, len(known) + 1)
        assert added.new.tolist() == expected
        assert added.ids.tolist() == [known[value] for value in batch]
    assert table.find(words(*known)).tolist() == list(known.values())


@pytest.mark.parametrize("batch", [1, 7, 1000, 30_000])
def test_growth_loses_nothing(batch: int) -> None:
    """Through many growths every URL keeps its id, and no other appears."""
    rng = np.random.default_rng(4)
    inside = rng.integers(0, 2**63, 60_000 if batch > 1 else 3000, dtype=np.uint64)
    table = filled(inside, batch)
    assert np.array_equal(table.find(inside), np.arange(1, len(inside) + 1))
    assert not table.find(inside + np.uint64(2**63)).any()


def test_growth_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table too large to be sorted at once grows in pieces, and clusters at their borders stay complete."""
    monkeypatch.setattr(url_table, "STREAM_BUCKETS", 4)
    inside = np.random.default_rng(9).integers(0, 2**64, 30_000, dtype=np.uint64)
    assert np.array_equal(filled(inside).find(inside), np.arange(1, len(inside) + 1))


@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 40])
def test_structured_fingerprints_spread(step: int) -> None:
    """Fingerprints that agree in all lower or all upper bits take no more space than random ones."""
    count = 100_000
    structured = np.arange(count, dtype=np.uint64) * np.uint64(step)
    table = filled(structured)
    assert np.array_equal(table.find(structured), np.arange(1, count + 1))
    even = filled(np.random.default_rng(5).integers(0, 2**64, count, dtype=np.uint64))
    assert table.nbytes < 1.05 * even.nbytes


class Known(UrlTable):
    """A table with a known secret: fingerprints are chosen hashes."""

    def _hash(self, fingerprints: UInt64s) -> UInt64s:
        return fingerprints


@pytest.mark.parametrize("batch", [100, 3000])
def test_crowding_is_refused(batch: int) -> None:
    """With the secret, an attacker could crowd one bucket: the table reports it and does not use up memory."""
    table = Known(SECRET)
    pieces = in_batches(np.arange(3000, dtype=np.uint64), batch)
    with pytest.raises(StoreError, match="too many collisions"):
        list(map(table.add, pieces))
    assert table.nbytes < 1 << 20


def test_long_clusters_are_found() -> None:
    """URLs that overflow their bucket, up to the end of the table, are all found again."""
    top = 2**HASH_BITS - 1
    crowd = words(*(place - number for place in (400, top // 2, top) for number in range(400)))
    table = Known(SECRET)
    for piece in in_batches(np.random.default_rng(8).integers(0, 2**HASH_BITS, 20_000, dtype=np.uint64), 500):
        table.add(piece)
    ids = table.add(crowd).ids
    assert len(np.unique(ids)) == len(crowd)
    assert np.array_equal(table.find(crowd), ids)


@given(st.integers(MIN_BUCKETS, 1 << 28), st.integers(0, 2**HASH_BITS - 1), st.floats(0, 1))
def test_place_and_tag_give_the_hash(buckets: int, number: int, far: float) -> None:
    """However far a URL is from its home bucket, its hash can be read back."""
    shape, hashes = _Shape(buckets), words(number)
    row = shape.homes(hashes) + round(far * shape.reach)
    slots = shape.pack(hashes, np.array([1], np.uint32))
    assert shape.hashes(slots, row.astype(np.uint64)).tolist() == [number]


@given(st.integers(MIN_BUCKETS, 1 << 28))
def test_reach_is_long_enough(buckets: int) -> None:
    """A cluster of eight hundred URLs fits within reach, whatever the size of the table."""
    assert _Shape(buckets).reach * url_table.BUCKET_SLOTS > 800


def test_at_most_sixteen_bytes() -> None:
    """Table and queues together always stay within sixteen bytes per known URL."""
    rng = np.random.default_rng(6)
    table, queues = UrlTable(SECRET), HostQueues()
    worst = 0.0
    for batch in in_batches(rng.integers(0, 2**64, 400_000, dtype=np.uint64), 2000):
        ids = table.add(batch).ids
        queues.append(ids, rng.integers(0, 500, len(ids)), rng.integers(0, 8, len(ids)).astype(np.uint8))
        if len(table) >= 200_000:
            worst = max(worst, (table.nbytes + queues.nbytes) / len(table))
    assert 8 < worst <= BUDGET_BYTES


def test_names_are_counted_up_to_a_limit() -> None:
    """The count of a URL stops at the maximum of a byte."""
    table = UrlTable(SECRET)
    table.add(words(*[1] * 300, 2))
    table.add(words(1, 2, 2))
    assert table.mention_counts(np.array([1, 2], np.uint32)).tolist() == [255, 3]


def test_another_secret_names_differently() -> None:
    """Fingerprints of one data folder say nothing about those of another."""
    urls = ["https://example.org/", "https://example.org/a"]
    one, other = UrlTable(SECRET).fingerprints(urls), UrlTable(SECRET + 2).fingerprints(urls)
    assert len({*one.tolist(), *other.tolist()}) == 4


def test_arrays_make_the_same_table() -> None:
    """A table created from another one's arrays finds the same URLs and continues from there."""
    inside = np.random.default_rng(7).integers(0, 2**64, 5000, dtype=np.uint64)
    table = filled(inside)
    again = UrlTable.from_arrays(SECRET, table.to_arrays())
    assert np.array_equal(again.find(inside), table.find(inside))
    assert again.add(words(1, 2)).ids.tolist() == [5001, 5002]
