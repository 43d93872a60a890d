"""Servers shared by the tests of a cluster: PostgreSQL, and an S3-compatible storage."""

from collections.abc import Iterator

import pytest
from tests.postgres_server import Postgres, run_postgres
from tests.s3_server import MISSING, Storage, find_weed, run_s3


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of a module."""
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    """An S3-compatible storage for the tests of a module."""
    if find_weed() is None:
        pytest.skip(MISSING)
    with run_s3() as server:
        yield server
