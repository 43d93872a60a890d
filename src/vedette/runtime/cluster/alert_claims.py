"""Alert claims of a shard: what it sends is claimed in PostgreSQL first, so that no other shard sends it again."""

from collections.abc import Collection
from functools import cache

from vedette.adapters.registry.alert_claims import AlertPage, claim_pages, mark_sent
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.directory import read_secret
from vedette.runtime.cluster.lease import ShardSettings


@cache
def load_signing_secret(dsn: str) -> bytes:
    """Load the secret from which the keys of alerts derive, the same whichever shard sends a message."""
    with connect(dsn) as connection:
        return read_secret(connection)


class ShardClaims:
    """The ``runtime.alerts.publisher.AlertClaims`` of a shard."""

    def __init__(self, shard: ShardSettings) -> None:
        self._shard = shard

    def claim(self, pairs: Collection[AlertPage]) -> Collection[AlertPage]:
        """Return the pairs that this shard may send."""
        with connect(self._shard.dsn) as connection:
            return claim_pages(connection, self._shard.number, self._shard.epoch, pairs)

    def confirm(self, pairs: Collection[AlertPage]) -> None:
        """Note that these were saved, and are never sent again."""
        with connect(self._shard.dsn) as connection:
            mark_sent(connection, pairs)
