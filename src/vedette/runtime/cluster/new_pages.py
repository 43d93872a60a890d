"""New pages of all shards, merged by the time they were reported, with one cursor for all shards.

Each shard numbers its own new pages. A cursor contains the number of each shard in separate bits, so that no page is
left out or shown twice, however late a shard responds.
"""

from collections.abc import Callable, Mapping
from typing import Any

from vedette.adapters.alerts.alert_store import AlertItem
from vedette.web.public.new_page_ports import ItemBatch

SEQ_BITS = 40
MAX_SEQ = (1 << SEQ_BITS) - 1

Ask = Callable[..., dict[int, Any]]


def join_cursor(positions: Mapping[int, int]) -> int:
    """Return the cursor for these positions in shards.

    >>> split_cursor(join_cursor({0: 7, 2: 5}), (0, 1, 2))
    {0: 7, 1: 0, 2: 5}
    """
    return sum(min(position, MAX_SEQ) << SEQ_BITS * shard for shard, position in positions.items())


def split_cursor(cursor: int, shards: tuple[int, ...]) -> dict[int, int]:
    """Return the position in each shard."""
    return {shard: cursor >> SEQ_BITS * shard & MAX_SEQ for shard in shards}


class ClusterNewPages:
    """A ``web.public.new_page_ports.NewPages`` over all shards.

    ``ask`` calls a verb in shards with the arguments for each of them, and ``list_shards`` returns their numbers.
    """

    def __init__(self, ask: Ask, list_shards: Callable[[], tuple[int, ...]], has_alert: Callable[[str], bool]) -> None:
        self._ask, self._list_shards, self._has_alert = ask, list_shards, has_alert

    def has_alert(self, name: str) -> bool:
        """Check whether an alert of this name exists."""
        return self._has_alert(name)

    def list_after(self, cursor: int | None, most: int, watch: str, allowed: tuple[str, ...]) -> ItemBatch:
        """List new pages after a cursor, oldest first; without one, return an empty batch with the latest cursor."""
        shards = self._list_shards()
        positions = dict.fromkeys(shards, MAX_SEQ) if cursor is None else split_cursor(cursor, shards)
        arguments = {shard: (position, most, watch, allowed) for shard, position in positions.items()}
        found: dict[int, ItemBatch] = self._ask("news.list_after", arguments)
        rows = sorted(
            ((item, shard) for shard, batch in found.items() for item in batch.items),
            key=lambda row: (row[0].told_s, row[1], row[0].seq),
        )
        items, more = [], len(rows) > most or any(batch.more for batch in found.values())
        for item, shard in rows[:most]:
            positions[shard] = item.seq
            items.append(item._replace(seq=join_cursor(positions)))
        if len(rows) <= most:  # what the user may not see is skipped, too
            positions |= {shard: batch.cursor for shard, batch in found.items()}
        if cursor is None:  # a shard that does not respond is not at its end: what it has now is shown later
            positions = {shard: position if shard in found else 0 for shard, position in positions.items()}
        return ItemBatch(tuple(items), join_cursor(positions), more, any(batch.missed for batch in found.values()))

    def list_latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> ItemBatch:
        """List the latest new pages, newest first."""
        shards = self._list_shards()
        starts = dict.fromkeys(shards, None) if before is None else split_cursor(before, shards)
        arguments = {shard: (most, watch, allowed, start) for shard, start in starts.items()}
        found: dict[int, ItemBatch] = self._ask("news.list_latest", arguments)
        rows = sorted(
            ((item, shard) for shard, batch in found.items() for item in batch.items),
            key=lambda row: (-row[0].told_s, -row[1], -row[0].seq),
        )
        # Until something of a shard is shown, everything in it is older than the place.
        place = {shard: MAX_SEQ if start is None else start for shard, start in starts.items()}
        heads = _list_heads(rows)
        items = []
        for number, (item, shard) in enumerate(rows[:most]):
            place[shard] = item.seq
            items.append(item._replace(seq=join_cursor(heads[number])))
        if len(rows) <= most:
            place |= {shard: min(batch.cursor, place[shard]) for shard, batch in found.items()}
        more = len(rows) > most or any(batch.more for batch in found.values())
        return ItemBatch(tuple(items), join_cursor(place), more)


def _list_heads(rows: list[tuple[AlertItem, int]]) -> list[dict[int, int]]:
    """Return, for each row, newest first, the latest position in each shard that is not newer than the row."""
    heads: list[dict[int, int]] = []
    latest: dict[int, int] = {}
    for item, shard in reversed(rows):
        latest = latest | {shard: item.seq}
        heads.append(latest)
    return heads[::-1]
