"""Shared state in PostgreSQL: commands that each shard executes once, alerts sent by one shard, and addresses."""

from collections.abc import Iterator

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.registry.alert_claims import claim_pages, mark_sent
from vedette.adapters.registry.command_log import (
    REPEAT_S,
    CommandReply,
    find_command_to_undo,
    list_commands,
    list_latest,
    list_replies,
    log_command,
    log_reply,
)
from vedette.adapters.registry.database import LeaseLost, connect
from vedette.adapters.registry.directory import list_search_addresses, publish_search, read_secret
from vedette.adapters.registry.registry import create_cluster, list_shards, list_sites
from vedette.errors import VedetteError
from vedette.web.commands.commands import command_from_json

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    with run_postgres() as server:
        yield server


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    """Return a cluster of two shards, each owned at epoch 1."""
    dsn = postgres.create_database()
    create_cluster(dsn, 2, 600.0)
    with connect(dsn) as connection:
        connection.execute("UPDATE vedette.shard SET owner = 'a', epoch = 1")
        connection.execute("UPDATE vedette.lease SET until = 'infinity'")
    return dsn


def test_each_shard_executes_a_command_once(dsn: str) -> None:
    """A command stays on a shard's list until the shard has replied, no matter how often it was given."""
    with connect(dsn) as connection:
        every = log_command(connection, "one", {"order": "x"}, "a test", None)
        assert log_command(connection, "one", {"order": "x"}, "a test", None) == every
        alone = log_command(connection, "two", {"order": "y"}, "a test", 1)
        assert [[one.number for one in list_commands(connection, shard)] for shard in (0, 1)] == [
            [every],
            [every, alone],
        ]
        log_reply(connection, every, CommandReply(0, "not here", is_error=True))
        log_reply(connection, every, CommandReply(1, "done", is_error=False))
        assert [one.number for one in list_commands(connection, 1)] == [alone]
        assert [reply.words for reply in list_replies(connection, every)] == ["not here", "done"]
        latest = [(one.number, words) for one, words in list_latest(connection, 9, None)]
        assert latest == [(alone, "not done yet"), (every, "done")]
        assert [one.number for one, _ in list_latest(connection, 9, alone)] == [every]


def test_a_restored_shard_repeats_the_latest_commands(dsn: str) -> None:
    """Its state may be from before them; the replies that it gave then are replaced."""
    with connect(dsn) as connection:
        number = log_command(connection, "one", {"order": "x"}, "a test", None)
        log_reply(connection, number, CommandReply(0, "done", is_error=False, action=7))
        assert list_commands(connection, 0) == []
        assert [one.number for one in list_commands(connection, 0, REPEAT_S)] == [number]
        log_reply(connection, number, CommandReply(0, "done", is_error=False, action=8))
        assert [reply.action for reply in list_replies(connection, number)] == [8]


def test_a_command_is_undone_once(dsn: str) -> None:
    """Only if a shard can undo it; again if all shards refused."""
    with connect(dsn) as connection:
        number = log_command(connection, "one", {"order": "x"}, "a test", 1)
        log_reply(connection, number, CommandReply(1, "done", is_error=False))
        with pytest.raises(VedetteError, match="cannot be undone"):
            find_command_to_undo(connection, number)
        log_reply(connection, number, CommandReply(1, "done", is_error=False, action=7))
        for place, is_error in enumerate((True, False)):
            assert find_command_to_undo(connection, number) == 1
            undo = log_command(connection, f"undo {place}", {"order": "undo"}, "a test", 1, number)
            with pytest.raises(VedetteError, match="already been undone"):
                find_command_to_undo(connection, number)
            log_reply(connection, undo, CommandReply(1, "undone", is_error=is_error))
        with pytest.raises(VedetteError, match="already been undone"):
            find_command_to_undo(connection, number)
        (listed,) = [one for one, _ in list_latest(connection, 9, None) if one.number == number]
        assert (listed.can_be_undone, listed.undone_s is not None) == (False, True)


@pytest.mark.parametrize("row", ["no JSON", "[1]", "null", "[" * 100_000])
def test_a_row_that_is_no_command_does_not_stop_the_next(dsn: str, row: str) -> None:
    """Invalid commands, sites and numbers are returned empty, and the coordinator refuses them."""
    with connect(dsn) as connection:
        sql = "INSERT INTO vedette.command (id, command, actor) VALUES ('x', %s, 'them')"
        connection.execute(sql, (row,))
        connection.execute("INSERT INTO vedette.site (start, command) VALUES ('x', %s)", (row,))
        connection.execute("UPDATE vedette.shard SET numbers = %s", (row,))
        log_command(connection, "one", {"order": "x"}, "a test", None)
        assert [one.command for one in list_commands(connection, 0)] == [{}, {"order": "x"}]
        assert [one.command for one, _ in list_latest(connection, 9, None)] == [{"order": "x"}, {}]
        assert list_sites(connection) == [(1, {})]
        assert [shard.numbers for shard in list_shards(connection)] == [{}, {}]
    with pytest.raises(VedetteError):
        command_from_json({})


def test_an_alert_is_sent_by_one_shard(dsn: str) -> None:
    """No other shard sends it; its own shard may, until it has confirmed that it did."""
    pair = {("an alert", 7)}
    with connect(dsn) as connection:
        assert claim_pages(connection, 0, 1, pair) == pair
        assert claim_pages(connection, 1, 1, pair) == set()
        assert claim_pages(connection, 0, 1, pair) == pair
        mark_sent(connection, pair)
        assert claim_pages(connection, 0, 1, [*pair, ("an alert", -8)]) == {("an alert", -8)}


def test_an_earlier_owner_neither_sends_nor_is_searched(dsn: str) -> None:
    """Both are refused at an epoch other than the shard's."""
    with pytest.raises(LeaseLost), connect(dsn) as connection:
        claim_pages(connection, 0, 2, {("an alert", 7)})
    with pytest.raises(LeaseLost), connect(dsn) as connection:
        publish_search(connection, 0, 2, "127.0.0.1:1")
    with connect(dsn) as connection:
        publish_search(connection, 1, 1, "127.0.0.1:2")
        assert list_search_addresses(connection) == {0: "", 1: "127.0.0.1:2"}


def test_all_have_one_secret(dsn: str) -> None:
    """It is created when it is first needed."""
    with connect(dsn) as one, connect(dsn) as other:
        assert len(read_secret(one)) == 32
        one.commit()
        assert read_secret(other) == read_secret(one)
