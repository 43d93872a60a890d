"""New pages of several shards: each is listed once, in the order of reports, even if a shard is late."""

from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.alerts.alert_store import AlertItem
from vedette.runtime.cluster.new_pages import ClusterNewPages
from vedette.web.public.new_page_ports import ItemBatch


def item(seq: int, told_s: float, shard: int) -> AlertItem:
    """Return a new page of a shard."""
    return AlertItem(seq, seq, f"https://{shard}.test/{seq}", "", "", 0.0, "feed", "", None, told_s)


class Shards:
    """Shards with their new pages; ``silent`` ones do not respond."""

    def __init__(self, items: dict[int, list[AlertItem]]) -> None:
        self.items = items
        self.silent: set[int] = set()
        self.pages = ClusterNewPages(self.ask, lambda: tuple(self.items), lambda _name: False)

    def ask(self, verb: str, arguments: dict[int, tuple[int | None, ...]]) -> dict[int, ItemBatch]:
        """Respond from lists, as ``FolderNewPages`` does."""
        return {
            shard: self.list_after(shard, *values) if verb.endswith("after") else self.list_latest(shard, *values)  # type: ignore[arg-type]  # by the verb
            for shard, values in arguments.items()
            if shard not in self.silent
        }

    def list_after(self, shard: int, cursor: int, most: int, *_more: object) -> ItemBatch:
        """Return the items after a number."""
        cursor = min(cursor, len(self.items[shard]))
        found = [one for one in self.items[shard] if one.seq > cursor][:most]
        return ItemBatch(tuple(found), found[-1].seq if found else cursor, len(found) == most)

    def list_latest(self, shard: int, most: int, _watch: str, _allowed: object, before: int | None) -> ItemBatch:
        """Return the items before a number, newest first."""
        last = 1 << 60 if before is None else before
        found = [one for one in reversed(self.items[shard]) if one.seq < last][:most]
        return ItemBatch(tuple(found), found[-1].seq if found else last, len(found) == most)

    def urls(self) -> set[str]:
        """Return all URLs."""
        return {one.url for items in self.items.values() for one in items}


def follow(shards: Shards, cursor: int, most: int) -> tuple[list[AlertItem], int]:
    """Read from a cursor to the end."""
    seen: list[AlertItem] = []
    while True:
        batch = shards.pages.list_after(cursor, most, "", ())
        seen += batch.items
        cursor = batch.cursor
        if not batch.more and not batch.items:
            return seen, cursor


_TIMES = st.lists(st.integers(0, 5), max_size=7)


@given(st.lists(_TIMES, min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 3))
def test_each_page_is_listed_once(times: list[list[int]], most: int, silent: int) -> None:
    """A shard that is silent for a while delays its pages, but loses none; any item's cursor continues after it."""
    lists = {
        shard: [item(number, float(told), shard) for number, told in enumerate(sorted(each), 1)]
        for shard, each in enumerate(times)
    }
    shards = Shards(lists)
    shards.silent = {silent}
    first, cursor = follow(shards, 0, most)
    shards.silent = set()
    second, _ = follow(shards, cursor, most)
    urls = [one.url for one in first + second]
    assert sorted(urls) == sorted(shards.urls())
    every, _ = follow(shards, 0, most)
    for number, one in enumerate(every):
        rest, _ = follow(shards, one.seq, most)
        assert [each.url for each in rest] == [each.url for each in every[number + 1 :]]


@given(st.lists(_TIMES, min_size=1, max_size=4), st.integers(1, 5))
def test_the_latest_are_listed_page_by_page(times: list[list[int]], most: int) -> None:
    """Newest first, each once; the cursor of an item continues with what is newer."""
    lists = {
        shard: [item(number, float(told), shard) for number, told in enumerate(sorted(each), 1)]
        for shard, each in enumerate(times)
    }
    shards = Shards(lists)
    seen: list[AlertItem] = []
    before: int | None = None
    while True:
        batch = shards.pages.list_latest(most, "", (), before)
        seen += batch.items
        before = batch.cursor
        if not batch.more:
            break
    assert sorted(one.url for one in seen) == sorted(shards.urls())
    assert [one.told_s for one in seen] == sorted((one.told_s for one in seen), reverse=True)
    for number, one in enumerate(shards.pages.list_latest(most, "", ()).items):
        newer, _ = follow(shards, one.seq, most)
        assert {each.url for each in newer} == {each.url for each in seen[:number]}


def test_the_end_is_after_everything_that_responds() -> None:
    """New pages that are reported later are next; those of a silent shard are not skipped."""
    shards = Shards({0: [item(1, 1.0, 0)], 1: [item(1, 2.0, 1)]})
    shards.silent = {1}
    end = shards.pages.list_after(None, 1, "", ()).cursor
    shards.silent = set()
    assert [one.url for one in follow(shards, end, 9)[0]] == ["https://1.test/1"]
    shards.items[0].append(item(2, 3.0, 0))
    assert [one.url for one in follow(shards, end, 9)[0]] == ["https://1.test/1", "https://0.test/2"]
