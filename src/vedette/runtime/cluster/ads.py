"""Ads of a cluster: all gateways share one market and one ledger in PostgreSQL."""

import secrets
import time
from collections.abc import Callable
from datetime import date, timedelta

from vedette.adapters.ads.campaign_store import AdvertiserRow, CampaignStore
from vedette.adapters.ads.ledger_store import Ledger
from vedette.adapters.ads.postgres_ledger import AdDatabase, PostgresLedger, PostgresLedgerReader, get_shared_salt
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.adapters.registry.command_log import CommandReply, list_replies, log_command, log_reply
from vedette.errors import ClusterError, StoreError, UsageError
from vedette.runtime.ads.storage import AdMarket, read_market
from vedette.runtime.commands.ads_commands import AdCommands
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import CommandResult, command_to_json

# Commands on ads are recorded in the command log, but no shard executes them.
NO_SHARD = -1


class ClusterAdStorage:
    """The ``AdStorage`` of a cluster.

    ``list_keys`` lists the user keys, and ``get_policy`` returns the policy that the operator has chosen at runtime.
    """

    def __init__(self, dsn: str, list_keys: Callable[[], list[UserKeyRow]], get_policy: Callable[[], str]) -> None:
        self._list_keys, self._get_policy = list_keys, get_policy
        self._database = AdDatabase(dsn)
        self.reader = PostgresLedgerReader(self._database)
        self._salts: dict[str, bytes] = {}

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def open_ledger(self) -> Ledger:
        """Open the ledger of the cluster."""
        return PostgresLedger(self._database)

    def load_market(self) -> AdMarket:
        """Load the advertisers, campaigns and ads of the cluster."""
        policy = self._get_policy()
        with self._database.read() as db:
            return read_market(CampaignStore(db), policy)

    def list_advertisers(self) -> list[AdvertiserRow]:
        """List the advertisers of the cluster."""
        with self._database.read() as db:
            return CampaignStore(db).list_advertisers()

    def list_keys(self) -> list[UserKeyRow]:
        """List the user keys that exist on all shards."""
        return self._list_keys()

    def run_command(self, command: AdCommand, by: str, id_: str) -> CommandResult:
        """Execute an ad command on this gateway, once per ``id_``, and log its outcome."""
        keys = self._list_keys()
        with self._database.write() as db:
            number = log_command(db.connection, id_ or secrets.token_hex(16), command_to_json(command), by, NO_SHARD)
            reply = next(iter(list_replies(db.connection, number)), None)
            if reply is None:
                reply = _execute(AdCommands(CampaignStore(db), lambda: keys, time.time()), command)
                log_reply(db.connection, number, reply)
        if reply.is_error:
            raise UsageError(reply.words)
        return CommandResult(reply.words, number)

    def get_salt(self, day: str) -> bytes:
        """Return the salt of visitor hashes of a day, so that a visitor has the same hash on each gateway."""
        if day not in self._salts:
            yesterday = (date.fromisoformat(day) - timedelta(days=1)).isoformat()
            try:
                self._salts = {day: get_shared_salt(self._database, day, yesterday)}
            except ClusterError as error:
                raise StoreError(str(error)) from error
        return self._salts[day]


def _execute(commands: AdCommands, command: AdCommand) -> CommandReply:
    try:
        return CommandReply(NO_SHARD, commands.execute(command)[0], is_error=False)
    except UsageError as error:  # it is checked as a whole before anything is written
        return CommandReply(NO_SHARD, str(error), is_error=True)
