"""The rank exchange on a real PostgreSQL: the newest blocks reach the other shards."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.exchange.rank_exchange import CHUNK_BYTES, fetch_block, list_versions, send_block
from vedette.adapters.index_store.rank_blocks import RankBlock, read_blocks, receive_block, unpack_block, write_block
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.registry import create_cluster

NO_NUMBERS = np.zeros(0)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    if find_programs() is None:
        pytest.skip(MISSING)
    with run_postgres() as server:
        yield server


def block(pages: int, flow: float = 0.25) -> RankBlock:
    """Return a block of some pages with one link to another block."""
    return RankBlock(np.arange(pages), 0.5, NO_NUMBERS, NO_NUMBERS, 3, np.array([-7]), np.array([flow]))


def test_the_newest_block_of_a_shard_is_fetched_whole(postgres: Postgres) -> None:
    """A block in several parts replaces the one before, and only the other shards see it."""
    dsn = postgres.create_database()
    create_cluster(dsn, 2, 600.0)
    large = bytes(range(256)) * (CHUNK_BYTES // 100)
    for version, packed in ((1, b"x" * (3 * CHUNK_BYTES)), (2, large)):
        with connect(dsn) as connection:
            send_block(connection, 0, version, packed)
    with connect(dsn) as connection:
        assert list_versions(connection, 1) == {0: 2}
        assert list_versions(connection, 0) == {}
        assert fetch_block(connection, 0) == large


def test_a_block_is_read_as_it_was_written_and_a_damaged_one_is_left_out(tmp_path: Path) -> None:
    """The other shards read what a shard has written; a truncated file counts as missing."""
    packed = block(4).pack()
    receive_block(tmp_path, 3, packed)
    receive_block(tmp_path, 5, packed[:100])
    (found,) = read_blocks(tmp_path).values()
    assert (found.prints.tolist(), found.dangling, found.hosts) == ([0, 1, 2, 3], 0.5, 3)
    assert (found.targets.tolist(), found.flows.tolist()) == ([-7], [0.25])


def test_a_block_that_says_almost_the_same_is_not_written_again(tmp_path: Path) -> None:
    """This is how the exchange between shards ends."""
    write_block(tmp_path, block(4))
    before = (tmp_path / "rank" / "out").stat().st_mtime_ns
    write_block(tmp_path, block(4, flow=0.2501))
    assert (tmp_path / "rank" / "out").stat().st_mtime_ns == before
    write_block(tmp_path, block(4, flow=0.3))
    written = unpack_block((tmp_path / "rank" / "out").read_bytes())
    assert written is not None
    assert written.flows.tolist() == [pytest.approx(0.3)]
