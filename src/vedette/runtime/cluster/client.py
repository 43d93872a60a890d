"""Commands to all shards of a cluster, through the log in PostgreSQL, for console, API and command line."""

import secrets
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from vedette.adapters.registry.command_log import CommandReply, find_command_to_undo, list_replies, log_command
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.registry import ShardStatus, list_shards, load_cluster
from vedette.engine.coordinator.shard import ShardMap
from vedette.errors import CommandPending, UsageError
from vedette.model import origin_of, partition_of
from vedette.runtime.cluster.console import ClusterSites, ConsoleShards
from vedette.runtime.cluster.gateway import ClusterDirectory
from vedette.web.commands.commands import Command, CommandResult, FetchNow, RetryFailed, Undo, command_to_json
from vedette.web.console.ports.monitoring import RuntimeSettings

COMMAND_TIMEOUT_S = 5.0
POLL_EVERY_S = 0.05


def run_in_cluster(dsn: str, command: Command, by: str, id_: str = "") -> CommandResult:
    """Have the shards execute a command, once per ``id_``; shards that are down execute it when they are back."""
    with connect(dsn) as connection:
        shards, running = load_cluster(connection).shards, _list_running(list_shards(connection))
        undoes = command.action if isinstance(command, Undo) else None
        parts = (
            _route_command(command, shards) if undoes is None else {find_command_to_undo(connection, undoes): command}
        )
        id_ = id_ or secrets.token_hex(16)
        numbers = {
            log_command(connection, f"{id_} {shard}", command_to_json(part), by, shard, undoes): shard
            for shard, part in parts.items()
        }
    until_s = time.monotonic() + COMMAND_TIMEOUT_S
    while True:
        with connect(dsn) as connection:
            replies = {number: list_replies(connection, number) for number in numbers}
        awaited = [
            (running if shard is None else running & {shard}) - {reply.shard for reply in replies[number]}
            for number, shard in numbers.items()
        ]
        if not any(awaited) or time.monotonic() >= until_s:
            break
        time.sleep(POLL_EVERY_S)  # PostgreSQL is asked rarely enough
    every = [reply for each in replies.values() for reply in each]
    return _sum_up(every, frozenset[int]().union(*awaited), max(numbers))


def _list_running(shards: list[ShardStatus]) -> frozenset[int]:
    return frozenset(shard.number for shard in shards if shard.owner)


def _route_command(command: Command, shards: ShardMap) -> dict[int | None, Command]:
    """Divide a command among the shards that must execute it; None is for all."""

    def find(url: str) -> int:
        return shards.find(partition_of(origin_of(url).host))

    if isinstance(command, RetryFailed) and command.target:  # all hosts of a site are in one shard
        return {find(command.target): command}
    if not isinstance(command, FetchNow):
        return {None: command}
    parts: dict[int | None, list[str]] = {}
    for url in command.urls:
        parts.setdefault(find(url), []).append(url)
    return {shard: FetchNow(tuple(urls)) for shard, urls in parts.items()}


def _sum_up(replies: Sequence[CommandReply], awaited: frozenset[int], number: int) -> CommandResult:
    """Combine the replies of shards; if all of them refused the command, it fails."""
    done = [reply for reply in replies if not reply.is_error]
    if not done and replies:
        raise UsageError(replies[0].words)
    if not done:
        raise CommandPending("not done yet: no shard has responded; the command runs as soon as one does")
    words = "; ".join(_describe_replies(done))
    late = f"; {_name_shards(awaited)} will do so when available" if awaited else ""
    return CommandResult(f"{words}{late}", number)


def _describe_replies(replies: Sequence[CommandReply]) -> Iterator[str]:
    """Yield what shards replied, with the shards if they replied differently.

    >>> list(_describe_replies([CommandReply(0, "nothing", False), CommandReply(1, "2 URLs", False)]))
    ['nothing (shard 0)', '2 URLs (shard 1)']
    """
    by_words: dict[str, list[int]] = {}
    for reply in replies:
        by_words.setdefault(reply.words, []).append(reply.shard)
    for words, shards in by_words.items():
        yield words if len(by_words) == 1 else f"{words} ({_name_shards(shards)})"


def _name_shards(shards: Sequence[int] | frozenset[int]) -> str:
    return f"shard{'' if len(shards) == 1 else 's'} {', '.join(map(str, sorted(shards)))}"


class ClusterClient:
    """A cluster as the command line uses it, in place of a data folder."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    @cached_property
    def sites(self) -> ClusterSites:
        """The sites, rules and URLs of all shards."""
        return ClusterSites(self._shards)

    @cached_property
    def _shards(self) -> ConsoleShards:
        return ConsoleShards(ClusterDirectory(self._dsn))

    def run_command(self, command: Command, actor: str) -> dict[str, Any]:
        """Execute a command and return what was done, as for a data folder with a running coordinator."""
        return {"done": run_in_cluster(self._dsn, command, actor).words, "running": True}

    def get_settings(self) -> RuntimeSettings:
        """Return the runtime settings, which are the same on all shards."""
        found: RuntimeSettings | None = self._shards.ask_any("monitoring.get_runtime_settings")
        if found is None:
            raise UsageError("no shard is responding: start a node with vedette cluster join")
        return found

    def check_complete(self) -> None:
        """Raise ``UsageError`` if a shard did not respond, rather than show incomplete results."""
        if missing := self._shards.describe_missing():
            raise UsageError(missing[0].lower() + missing[1:].rstrip("."))
