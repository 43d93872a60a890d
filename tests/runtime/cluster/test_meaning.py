"""Searches by meaning over several shards: vectors of one model are compared across all of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.indexing.test_index_builder import SITE, Web, page
from tests.runtime.search.test_meaning import embed, search, write_model

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.store import SiteRow
from vedette.engine.search.gateway import Gateway
from vedette.runtime.cluster.search_wire import call_verb, decode_call, decode_reply, encode_call, encode_reply
from vedette.runtime.processes.shard_search import ShardFolderSearch
from vedette.serve.slate import SearchRequest, SearchResult

PAGES = {
    "garage": page("Garage", "automobile mending"),
    "harbor": page("Harbor", "ebb"),
    "bakery": page("Bakery", "loaf"),
    "workshop": page("Workshop", "vehicle fix for everyone"),
} | {f"other/{n}": page(f"Other {n}", f"number{n} of many") for n in range(30)}


class Shards:
    """Shards over folders, called with encoded messages."""

    def __init__(self, webs: Sequence[Web], setting: str) -> None:
        self._searches = [ShardFolderSearch(web.folder, start_clock(web.now_s, 1.0), setting) for web in webs]

    @property
    def numbers(self) -> Sequence[int]:
        """Return all shards."""
        return range(len(self._searches))

    def ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a verb in some shards."""
        return {
            shard: decode_reply(
                verb, encode_reply(call_verb(self._searches[shard], *decode_call(encode_call(verb, values))))
            )
            for shard, values in arguments.items()
        }


def build(folder: Path, pages: dict[str, str], model: str) -> Web:
    """Return a folder with these pages, embedded."""
    web = Web(folder)
    with web.state() as state:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=web.now_s))
    web.all_answer(pages)
    web.index()
    embed(web, model)
    return web


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a tiny model."""
    return str(write_model(tmp_path_factory.mktemp("models") / "tiny"))


def test_pages_close_in_meaning_are_found_in_any_shard(tmp_path: Path, model: str) -> None:
    """The first results and their reason are the same as in one index; without a model, nothing is found."""
    one = build(tmp_path / "one", PAGES, model)
    halves = [dict(list(PAGES.items())[number::2]) for number in range(2)]
    webs = [build(tmp_path / f"shard-{number}", half, model) for number, half in enumerate(halves)]
    gateway = Gateway(Shards(webs, model))

    def find(query: str) -> tuple[SearchResult, ...]:
        return gateway.search(SearchRequest(query), webs[0].now_s).results

    for query in ("car repair", "tide", "bread", "vehicle mending", "everyone"):
        paths = [result.url.rpartition("example.org/")[2] for result in find(query)]
        expected = search(one, model, query)
        assert paths[:2] == expected[:2], query
    assert "close in meaning" in [reason.feature for reason in find("car repair")[0].why]
    assert Gateway(Shards(webs, "off")).search(SearchRequest("car repair"), webs[0].now_s).results == ()
    assert Gateway(Shards(webs, "learned")).search(SearchRequest("car repair"), webs[0].now_s).results == ()
