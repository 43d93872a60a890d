"""Alert claims of a shard: it claims alerts in PostgreSQL before sending them, so that each is sent once."""

from collections.abc import Collection
from functools import cache

from vedette.adapters.registry.alert_claims import AlertPage, claim_pages, mark_sent
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.directory import read_secret
from vedette.runtime.cluster.lease import ShardSettings


@cache
def load_signing_secret(dsn: str) -> bytes:
    """Load the secret from which the keys of alerts are derived; all shards have the same one."""
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
        """Record that these pairs were saved, so that they are never sent again."""
        with connect(self._shard.dsn) as connection:
            mark_sent(connection, pairs)
