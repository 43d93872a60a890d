"""Search logs of a gateway: share what its servers recorded, and log what other gateways recorded.

Each gateway gets all searches and clicks, so it learns the same ranking, and knows the searches whose clicks it
receives. An event that arrives twice is counted once.
"""

from pathlib import Path

from vedette.adapters.event_store.search_log import EventLog, list_logs, open_logs
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.shared_log import (
    create_tables,
    load_places,
    read_lines,
    save_places,
    share_lines,
)
from vedette.learn.events import decode_event

OWN = "server-"
BATCH_BYTES = 256 << 10
# The name under which the number of the others' last line is kept.
_OTHERS = ""


class SearchLogExchange:
    """The exchange of a gateway's search logs with the other gateways."""

    def __init__(self, folder: Path, dsn: str, node: str) -> None:
        self._folder, self._dsn, self._node = folder, dsn, node
        self._log = EventLog(folder, "cluster")
        with connect(dsn) as connection:
            create_tables(connection)

    def step(self) -> bool:
        """Share new events of this gateway, and log new events of others; return whether there may be more."""
        with connect(self._dsn) as connection:
            places = load_places(connection, self._node)
            others = places.pop(_OTHERS, 0)
            with open_logs(self._folder, places) as files:
                own = [file for file in files if file.path.name.startswith(OWN)]
                lines = [b"\n".join(file.read_lines(BATCH_BYTES)) for file in own]
                if any(lines):
                    share_lines(connection, self._node, [each for each in lines if each.strip()])
                found = {file.path.name: file.at for file in own if file.at != places.get(file.path.name, 0)}
                has_more = any(file.unread_bytes > BATCH_BYTES for file in own)
            received = read_lines(connection, self._node, others)
            for _, each in received:
                for event in map(decode_event, each.split(b"\n")):
                    if event is not None:
                        self._log.append(event)
            if received:
                found[_OTHERS] = received[-1][0]
            gone = places.keys() - set(list_logs(self._folder))
            if found or gone:
                save_places(connection, self._node, found, gone)
        return has_more or bool(received)

    def close(self) -> None:
        """Close the log of other gateways' events."""
        self._log.close()
