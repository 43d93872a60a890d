"""The operator in a cluster, for the console of a gateway: rights come from its folder, commands go to all shards."""

from pathlib import Path

from vedette.adapters.registry.command_log import list_latest
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.directory import read_secret
from vedette.runtime.cluster.client import run_in_cluster
from vedette.runtime.commands.operator import FolderOperator
from vedette.web.commands.commands import Command, CommandResult, LogSignIn, ReplaceToken
from vedette.web.console.ports.sites import ActionLine


class ClusterOperator(FolderOperator):
    """The console's ``AdminService`` in a cluster.

    Commands go to all shards, or to the one that owns what they name. Sessions and the operator's token belong to this
    gateway.
    """

    def __init__(self, folder: Path, dsn: str) -> None:
        super().__init__(folder)
        self._dsn = dsn

    def get_signing_secret(self) -> bytes:
        """Return the cluster's secret: a link that one gateway signed is valid at all gateways."""
        if not self._secret:
            with connect(self._dsn) as connection:
                self._secret = read_secret(connection)
        return self._secret

    def run_command(self, command: Command, by: str, id_: str = "") -> CommandResult:
        """Have the shards execute a command, once per ``id_``; shards that are down execute it when they are back."""
        if isinstance(command, LogSignIn | ReplaceToken):
            return super().run_command(command, by, id_)
        return run_in_cluster(self._dsn, command, by, id_)

    def list_actions(self, most: int, before: int | None = None) -> list[ActionLine]:
        """List the latest commands to shards, newest first."""
        with connect(self._dsn) as connection:
            latest = list_latest(connection, most, before)
        return [
            ActionLine(one.number, one.at_s, words, one.actor, one.can_be_undone, one.undone_s) for one, words in latest
        ]
