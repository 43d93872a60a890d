"""The band table: a small and fast dictionary that outlives its process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.crawl_store.minhash_bands import BandTable, Ids, UInt64s

SECRET = 0x0123_4567_89AB_CDEF
BANDS = 16

WRITER = """
import os, signal, sys
from pathlib import Path
import numpy as np
from vedette.adapters.crawl_store.minhash_bands import BandTable
table = BandTable(Path(sys.argv[1]), secret=int(sys.argv[2]))
bands = np.arange(1, 3201, dtype=np.uint64).reshape(200, 16) << np.uint64(20)
table.match_or_add(np.arange(1, 101, dtype=np.uint32), bands[:100])
table.match_or_add(np.arange(101, 201, dtype=np.uint32), bands[100:])
os.kill(os.getpid(), signal.SIGKILL)
"""


def ids(*numbers: int) -> Ids:
    """Return page ids."""
    return np.array(numbers, np.uint32)


def count(first: int, size: int) -> Ids:
    """Return consecutive page ids."""
    return np.arange(first, first + size, dtype=np.uint32)


def random_bands(seed: int, size: int) -> UInt64s:
    """Return bands that no other page has."""
    return np.random.default_rng(seed).integers(0, 2**64, (size, BANDS), dtype=np.uint64)


class Model:
    """The expected table, as a dictionary."""

    def __init__(self) -> None:
        self.first: dict[tuple[int, int], int] = {}

    def match_or_add(self, pages: Ids, bands: UInt64s) -> list[list[int]]:
        """Row by row, band by band."""
        return [list(self._row(page, row)) for page, row in zip(pages.tolist(), bands.tolist(), strict=True)]

    def _row(self, page: int, bands: list[int]) -> Iterator[int]:
        for key in enumerate(bands):
            first = self.first.setdefault(key, page)
            yield 0 if first == page else first


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a table."""
    return tmp_path / "bands"


@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=40), max_size=8))
def test_agrees_with_a_dictionary(batches: list[list[int]]) -> None:
    """Whatever pages come in whatever batches, each band has the same page as in a dictionary."""
    table, model, page = BandTable(None, SECRET), Model(), 1
    for batch in batches:
        bands = np.array([[value + (at % 3) * (value < 9) for at in range(BANDS)] for value in batch], np.uint64)
        pages, page = count(page, len(batch)), page + len(batch)
        assert table.match_or_add(pages, bands.reshape(-1, BANDS)).tolist() == model.match_or_add(
            pages, bands.reshape(-1, BANDS)
        )
    assert len(table) == len(model.first)


@pytest.mark.parametrize("batch", [1, 8, 64, 1000])
def test_growth_loses_nothing(batch: int) -> None:
    """Through several doublings every band keeps its first page, and repeated pages match nothing."""
    size = 400 if batch == 1 else 6000
    table, model, bands = BandTable(None, SECRET), Model(), random_bands(4, size)
    bands[size // 2 :, 5] = bands[: size - size // 2, 5]
    small = table.nbytes
    for at in range(0, size, batch):
        pages = count(at + 1, len(bands[at : at + batch]))
        found = table.match_or_add(pages, bands[at : at + batch])
        assert found.tolist() == model.match_or_add(pages, bands[at : at + batch])
    assert len(table) == len(model.first)
    assert table.nbytes > small or batch == 1
    again = table.match_or_add(count(1, size), bands)
    assert again.tolist() == model.match_or_add(count(1, size), bands)
    assert len(table) == len(model.first)


def test_load_stays_bounded() -> None:
    """However the pages arrive, keys of eight bytes fill at most seven tenths of the table."""
    table = BandTable(None, SECRET)
    for seed in range(40):
        table.match_or_add(count(1 + 500 * seed, 500), random_bands(seed, 500))
        assert len(table) * 8 <= 0.7 * table.nbytes


def test_one_band_that_always_differs() -> None:
    """Pages that differ in only one band fill one region, and still find their first page."""
    table = BandTable(None, SECRET)
    bands = np.zeros((5000, BANDS), np.uint64)
    bands[:, 15] = np.arange(5000)
    found = table.match_or_add(count(1, 5000), bands)
    assert (found[1:, :15] == 1).all()
    assert not found[:, 15].any()
    assert np.array_equal(table.match_or_add(count(6001, 5000), bands)[:, 15], count(1, 5000))


def test_match_within_a_batch() -> None:
    """The first of equal rows is the one that later ones match; equal numbers in other bands don't count."""
    table, bands = BandTable(None, SECRET), random_bands(2, 4)
    bands[2] = bands[0]
    bands[3] = np.roll(bands[0], 1)
    found = table.match_or_add(ids(50, 60, 40, 70), bands)
    assert found.tolist() == [[0] * BANDS, [0] * BANDS, [50] * BANDS, [0] * BANDS]


def test_no_pages() -> None:
    """An empty batch gives an empty result."""
    table = BandTable(None, SECRET)
    assert table.match_or_add(ids(), random_bands(1, 0)).shape == (0, BANDS)
    assert len(table) == 0


@pytest.mark.parametrize("shift", [0, 20, 48])
def test_structured_bands_spread(shift: int) -> None:
    """Bands that agree in most bits take no more space than random ones, and are not confused."""
    table, even = BandTable(None, SECRET), BandTable(None, SECRET)
    structured = (np.arange(3000, dtype=np.uint64) << np.uint64(shift))[:, None].repeat(BANDS, 1)
    assert not table.match_or_add(count(1, 3000), structured).any()
    even.match_or_add(count(1, 3000), random_bands(7, 3000))
    assert table.nbytes == even.nbytes


def test_another_secret_is_another_order(path: Path) -> None:
    """The position of a key depends on the secret, so outsiders can't fill a bucket."""
    layouts = []
    for secret in (1, 2):
        with closing(BandTable(path, secret)) as table:
            table.match_or_add(count(1, 50), random_bands(3, 50))
        layouts.append(path.read_bytes())
    assert layouts[0][4096:] != layouts[1][4096:]


def test_reopened(path: Path) -> None:
    """A closed table that grew several times is complete and current when it is reopened."""
    bands = random_bands(9, 3000)
    with closing(BandTable(path, SECRET)) as table:
        assert not table.behind
        table.match_or_add(count(1, 3000), bands)
    with closing(BandTable(path, SECRET)) as table:
        assert not table.behind
        assert np.array_equal(table.match_or_add(count(5001, 3000), bands)[:, 0], count(1, 3000))
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_killed(path: Path) -> None:
    """A table whose process was killed says so; adding pages again is correct and harmless."""
    done = subprocess.run([sys.executable, "-c", WRITER, path, str(SECRET)], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    bands = np.arange(1, 3201, dtype=np.uint64).reshape(200, BANDS) << np.uint64(20)
    with closing(BandTable(path, SECRET)) as table:
        assert table.behind
        assert not table.match_or_add(count(101, 100), bands[100:]).any()
        assert len(table) == bands.size
    with closing(BandTable(path, SECRET)) as table:
        assert not table.behind


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _longer(content: bytes) -> bytes:
    return content + bytes(4096)


def _altered(content: bytes) -> bytes:
    return content[:30] + bytes([content[30] ^ 1]) + content[31:]


def _nothing(_: bytes) -> bytes:
    return b""


def _another(content: bytes) -> bytes:
    return b"SQLite format 3\0" + content[16:]


@pytest.mark.parametrize("damage", [_cut, _longer, _altered, _nothing, _another])
def test_torn_file_is_begun_anew(path: Path, damage: object) -> None:
    """A damaged file counts as missing: the table is empty."""
    with closing(BandTable(path, SECRET)) as table:
        table.match_or_add(count(1, 300), random_bands(1, 300))
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    with closing(BandTable(path, SECRET)) as table:
        assert len(table) == 0
        assert not table.match_or_add(count(1, 300), random_bands(1, 300)).any()


def test_file_of_another_secret_is_begun_anew(path: Path) -> None:
    """A file of another state is useless, because its keys can't be found."""
    with closing(BandTable(path, SECRET)) as table:
        table.match_or_add(count(1, 10), random_bands(1, 10))
    with closing(BandTable(path, SECRET + 1)) as table:
        assert len(table) == 0


def test_forget(path: Path) -> None:
    """A table that was cleared is small and empty, even when it is reopened."""
    with closing(BandTable(path, SECRET)) as table:
        small = table.nbytes
        table.match_or_add(count(1, 2000), random_bands(1, 2000))
        table.reset()
        assert (len(table), table.nbytes) == (0, small)
    with closing(BandTable(path, SECRET)) as table:
        assert len(table) == 0
