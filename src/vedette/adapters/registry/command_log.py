"""Command log of a cluster: the operators' commands, which each shard executes once, and the shards' replies.

A command without a shard is for all shards. A shard's exchanger executes the commands without a reply from it, in
in order, so that a shard that was down, or is new, catches up. After a start it repeats the latest ones, since its
state may be from before them; those that it has executed have no effect.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from vedette.adapters.registry.database import fetch_row, parse_object
from vedette.errors import UsageError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]


# Less than a shard remembers its answers (KEEP_ANSWERS_S).
REPEAT_S = 300.0
# When a command was undone; one that every shard refused to undo was not.
_UNDONE = """
    (SELECT extract(epoch FROM min(undo.at))::float8 FROM vedette.command AS undo WHERE undo.undoes = %s
     AND (EXISTS (SELECT FROM vedette.command_reply AS reply WHERE reply.number = undo.number AND NOT is_error)
          OR NOT EXISTS (SELECT FROM vedette.command_reply AS reply WHERE reply.number = undo.number)))
"""


class LoggedCommand(NamedTuple):
    """A command in the log: its number, the command as JSON, who gave it, when, and whether and when it was undone.

    ``undoes`` is the number of the command that it undoes, 0 for none.
    """

    number: int
    command: dict[str, Any]
    actor: str
    at_s: float = 0.0
    can_be_undone: bool = False
    undone_s: float | None = None
    undoes: int = 0


class CommandReply(NamedTuple):
    """What a shard replied to a command: what was done, or why it was refused.

    ``action`` is its number in the shard's log of actions, 0 if it cannot be undone.
    """

    shard: int
    words: str
    is_error: bool
    action: int = 0


def log_command(
    connection: "Connection",
    id_: str,
    command: Mapping[str, object],
    actor: str,
    shard: int | None,
    undoes: int | None = None,
) -> int:
    """Log a command once per ``id_``, for one shard or all; return its number."""
    sql = """
        INSERT INTO vedette.command (id, shard, command, actor, undoes) VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT (id) DO NOTHING
    """
    connection.execute(sql, (id_, shard, json.dumps(command), actor, undoes))
    (number,) = fetch_row(connection, "SELECT number FROM vedette.command WHERE id = %s", (id_,))
    return int(number)


def find_command_to_undo(connection: "Connection", number: int) -> int | None:
    """Find the shard that a command to be undone was for, None for all; refuse what cannot be undone."""
    row = fetch_row(connection, "SELECT shard FROM vedette.command WHERE number = %s FOR UPDATE", (number,))
    if row is None:
        raise UsageError(f"there is no action {number} in the log")
    if fetch_row(connection, f"SELECT 1 WHERE {_UNDONE} IS NOT NULL", (number,)):
        raise UsageError(f"action {number} has already been undone")
    if not any(reply.action for reply in list_replies(connection, number)):
        raise UsageError(f"action {number} cannot be undone")
    shard: int | None = row[0]
    return shard


def find_reply(connection: "Connection", number: int, shard: int) -> CommandReply | None:
    """Find what a shard replied to a command; None if it has not."""
    return next((reply for reply in list_replies(connection, number) if reply.shard == shard), None)


def list_commands(connection: "Connection", shard: int, repeat_s: float = 0.0) -> list[LoggedCommand]:
    """List the commands that a shard has not replied to, and all of the last seconds to be repeated, in order."""
    sql = """
        SELECT number, command, actor, coalesce(undoes, 0) FROM vedette.command WHERE (shard IS NULL OR shard = %s)
        AND (at > clock_timestamp() - make_interval(secs => %s) OR NOT EXISTS
        (SELECT FROM vedette.command_reply AS reply WHERE reply.number = command.number AND reply.shard = %s))
        ORDER BY number
    """
    rows = connection.execute(sql, (shard, repeat_s, shard))
    return [
        LoggedCommand(number, parse_object(command), actor, undoes=undoes) for number, command, actor, undoes in rows
    ]


def log_reply(connection: "Connection", number: int, reply: CommandReply) -> None:
    """Log a shard's reply to a command."""
    sql = """
        INSERT INTO vedette.command_reply VALUES (%s, %s, %s, %s, %s) ON CONFLICT (number, shard) DO UPDATE
        SET words = EXCLUDED.words, is_error = EXCLUDED.is_error, action = EXCLUDED.action
    """
    connection.execute(sql, (number, *reply))


def list_replies(connection: "Connection", number: int) -> list[CommandReply]:
    """List the replies to a command, by shard."""
    sql = "SELECT shard, words, is_error, action FROM vedette.command_reply WHERE number = %s ORDER BY shard"
    return [CommandReply(*row) for row in connection.execute(sql, (number,))]


def list_latest(connection: "Connection", most: int, before: int | None) -> list[tuple[LoggedCommand, str]]:
    """List the latest commands, newest first, each with its first successful reply."""
    sql = f"""
        SELECT number, command, actor, extract(epoch FROM at)::float8,
        EXISTS (SELECT FROM vedette.command_reply AS reply WHERE reply.number = command.number AND action > 0),
        {_UNDONE.replace("%s", "command.number")}, coalesce(
            (SELECT words FROM vedette.command_reply AS reply
             WHERE reply.number = command.number ORDER BY is_error, shard LIMIT 1), 'not done yet')
        FROM vedette.command WHERE %s::bigint IS NULL OR number < %s ORDER BY number DESC LIMIT %s
    """  # noqa: S608 - our own text
    rows = connection.execute(sql.encode(), (before, before, most)).fetchall()
    return [
        (LoggedCommand(number, parse_object(one), actor, at_s, can_be_undone and undone_s is None, undone_s), words)
        for number, one, actor, at_s, can_be_undone, undone_s, words in rows
    ]
