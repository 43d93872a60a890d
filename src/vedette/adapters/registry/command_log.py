"""Command log of a cluster: the operators' commands, which each shard executes once, and the shards' replies.

A command without a shard is for all shards. A shard's exchanger executes the commands without a reply from it, in
order, so that new shards and shards that were down catch up.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from vedette.adapters.registry.database import fetch_row, parse_object

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]


class LoggedCommand(NamedTuple):
    """A command in the log: its number, the command as JSON, its author, and its time."""

    number: int
    command: dict[str, Any]
    actor: str
    at_s: float = 0.0


class CommandReply(NamedTuple):
    """A shard's reply to a command: what was done, or why it was refused."""

    shard: int
    words: str
    is_error: bool


def log_command(
    connection: "Connection", id_: str, command: Mapping[str, object], actor: str, shard: int | None
) -> int:
    """Log a command once per ``id_``, for one shard or all; return its number."""
    sql = "INSERT INTO vedette.command (id, shard, command, actor) VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"
    connection.execute(sql, (id_, shard, json.dumps(command), actor))
    (number,) = fetch_row(connection, "SELECT number FROM vedette.command WHERE id = %s", (id_,))
    return int(number)


def list_commands(connection: "Connection", shard: int) -> list[LoggedCommand]:
    """List the commands to which a shard has not replied, in order."""
    sql = """
        SELECT number, command, actor FROM vedette.command WHERE (shard IS NULL OR shard = %s) AND NOT EXISTS
        (SELECT FROM vedette.command_reply AS reply WHERE reply.number = command.number AND reply.shard = %s)
        ORDER BY number
    """
    rows = connection.execute(sql, (shard, shard))
    return [LoggedCommand(number, parse_object(command), actor) for number, command, actor in rows]


def log_reply(connection: "Connection", number: int, reply: CommandReply) -> None:
    """Log a shard's reply to a command."""
    sql = "INSERT INTO vedette.command_reply VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
    connection.execute(sql, (number, *reply))


def list_replies(connection: "Connection", number: int) -> list[CommandReply]:
    """List the replies to a command, by shard."""
    sql = "SELECT shard, words, is_error FROM vedette.command_reply WHERE number = %s ORDER BY shard"
    return [CommandReply(*row) for row in connection.execute(sql, (number,))]


def list_latest(connection: "Connection", most: int, before: int | None) -> list[tuple[LoggedCommand, str]]:
    """List the latest commands, newest first, each with its first successful reply."""
    sql = """
        SELECT number, command, actor, extract(epoch FROM at)::float8, coalesce(
            (SELECT words FROM vedette.command_reply AS reply
             WHERE reply.number = command.number ORDER BY is_error, shard LIMIT 1), 'not done yet')
        FROM vedette.command WHERE %s::bigint IS NULL OR number < %s ORDER BY number DESC LIMIT %s
    """
    rows = connection.execute(sql, (before, before, most))
    return [(LoggedCommand(number, parse_object(one), actor, at_s), words) for number, one, actor, at_s, words in rows]
