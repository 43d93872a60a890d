"""Does a search over four shards find what one index of all pages finds, and what does it cost?

Pages are those of real sites (``VEDETTE_HISTORIES``), and queries those of ``bench/known_item.py``: titles, texts of
links, headings, and four words in a row. One index has all pages; the shards have one site each, as in a cluster, where
a registrable domain belongs to one shard. The gateway asks the shards in this process, with every message encoded and
decoded; the cost of sockets between processes is not included.

Which of many equal pages is among the first ten depends on the order in which they were indexed. To see how much, a
second index has the same pages in another order.

    VEDETTE_HISTORIES=FOLDER python bench/cluster_search.py [--pages N]
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.known_item import Asking, Judge, by_kind, drawn, vedette
from bench.peers.known_pages import NOW_S, SITES, KnownPage, Link, known_pages

from vedette.adapters.index_store.page_table import write_rank
from vedette.engine.search.gateway import Gateway
from vedette.engine.search.search import Searcher
from vedette.engine.search.shard_search import ShardSearcher
from vedette.runtime.cluster.search_wire import call_verb, decode_call, decode_reply, encode_call, encode_reply
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.serve.slate import SearchRequest, Slate

FOURTH = ("apache+httpd-site", "output/", "httpd.apache.org")
SEED = 5
ROUNDS = 3


class LocalShard:
    """A shard's search, as its process offers it."""

    def __init__(self, shelf: LiveIndexSnapshot) -> None:
        self.pages = len(shelf.finder)
        self._searcher = ShardSearcher(shelf)
        self.show = self._searcher.show

    def get_searcher(self) -> ShardSearcher:
        """Its searcher."""
        return self._searcher


class LocalShards:
    """The shards of this process, asked as those of other machines are."""

    def __init__(self, searchers: Mapping[int, LocalShard]) -> None:
        self._searchers = searchers
        self.messages = self.bytes = 0

    @property
    def numbers(self) -> Sequence[int]:
        """All of them."""
        return tuple(self._searchers)

    def ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a verb in some."""
        replies = {}
        for shard, values in arguments.items():
            sent = encode_call(verb, values)
            reply = encode_reply(call_verb(self._searchers[shard], *decode_call(sent)))
            self.messages += 2
            self.bytes += len(sent) + len(reply)
            replies[shard] = decode_reply(verb, reply)
        return replies


def divide(
    folder: Path, pages: Sequence[KnownPage], links: Sequence[Link], whole: LiveIndexSnapshot
) -> tuple[dict[int, LocalShard], dict[int, int]]:
    """One index for each host, with the importance of the whole; and the place of each of their pages."""
    searchers, places = dict[int, LocalShard](), dict[int, int]()
    for shard, host in enumerate(dict.fromkeys(page.host for page in pages)):
        own = [place for place, page in enumerate(pages) if page.host == host]
        row_of = {place: row for row, place in enumerate(own)}
        inside = [
            Link(row_of[link.source], row_of[link.target], link.text)
            for link in links
            if link.source in row_of and link.target in row_of
        ]
        (folder / str(shard)).mkdir()
        _, shelf = vedette(folder / str(shard), [pages[place] for place in own], inside)
        signals = whole.get_signals(np.array(own) + 1)
        zero = np.zeros(1)
        write_rank(
            shelf.generation,
            np.concatenate((zero, signals.importance)).astype(np.float32),
            np.concatenate((zero, signals.host_importance)).astype(np.float32),
        )
        shelf.refresh()
        searchers[shard] = LocalShard(shelf)
        places |= {shard << 40 | row + 1: place for row, place in enumerate(own)}
    return searchers, places


def reordered(folder: Path, pages: Sequence[KnownPage], links: Sequence[Link]) -> tuple[Searcher, Callable[[int], int]]:
    """One index of the same pages in another order, which decides between equal scores; and the place of a page."""
    order = random.Random(SEED).sample(range(len(pages)), len(pages))  # noqa: S311 -- the same each time, no secret
    row_of = {place: row for row, place in enumerate(order)}
    moved = [Link(row_of[link.source], row_of[link.target], link.text) for link in links]
    searcher, _ = vedette(folder, [pages[place] for place in order], moved)
    return searcher, lambda id_: order[id_ - 1]


class Engine(NamedTuple):
    """An engine to compare, and the place of a page by its id."""

    search: Callable[[SearchRequest, float], Slate]
    place_of: Callable[[int], int]


def main() -> None:
    """Index, search, compare; print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=500)
    arguments = parser.parse_args()
    if "VEDETTE_HISTORIES" not in os.environ:
        sys.exit("VEDETTE_HISTORIES must name a folder of bare repositories, such as apache+kafka-site/repo")
    pages, links = known_pages(Path(os.environ["VEDETTE_HISTORIES"]), (*SITES, FOURTH))
    asking, judge = Asking(pages, links), Judge(pages)
    queries = asking.queries(drawn(pages, arguments.pages)[0], "test")
    left = [link for link in links if link not in asking.taken_out]
    texts = list(dict.fromkeys(query.text for query in queries))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("one", "other"):
            (folder / name).mkdir()
        one, whole = vedette(folder / "one", pages, left)
        other, place_of = reordered(folder / "other", pages, left)
        searchers, places = divide(folder, pages, left, whole)
        shards = LocalShards(searchers)
        engines = {
            "one index": Engine(one.search, lambda id_: id_ - 1),
            "other order": Engine(other.search, place_of),
            "shards": Engine(Gateway(shards).search, places.__getitem__),
        }
        found, cost = compare(engines, pages, texts)
    print(f"{len(pages)} pages; in shards: {', '.join(str(each.pages) for each in searchers.values())}")
    mrr = {name: by_kind(judge.credit(each.__getitem__, queries).same, queries) for name, each in found.items()}
    kinds = "".join(f"{kind or 'mean':>10}" for kind in mrr["shards"])
    print(f"{'MRR@10':12}{kinds}{'shared':>10}{'same 1st':>10}{'CPU ms':>10}")
    shared, first = {}, {}
    for name, each in mrr.items():
        shared[name] = float(np.mean([_share(found["one index"][text], found[name][text]) for text in texts]))
        first[name] = float(np.mean([found["one index"][text][:1] == found[name][text][:1] for text in texts]))
        values = "".join(f"{value:10.4f}" for value in (*each.values(), shared[name], first[name]))
        print(f"{name:12}{values}{cost[name]:10.2f}")
    searches = len(texts) * ROUNDS
    figures = {
        "mrr_ratio": round(mrr["shards"][""] / mrr["one index"][""], 4),
        "first_ten_shared": round(shared["shards"], 4),
        "first_ten_shared_other_order": round(shared["other order"], 4),
        "first_same": round(first["shards"], 4),
        "cpu_ratio": round(cost["shards"] / cost["one index"], 3),
        "messages": round(shards.messages / searches, 1),
        "kilobytes": round(shards.bytes / searches / 1000, 1),
    }
    print(json.dumps(figures))


Found = dict[str, list[tuple[int, ...]]]


def compare(
    engines: Mapping[str, Engine], pages: Sequence[KnownPage], texts: Sequence[str]
) -> tuple[dict[str, Found], dict[str, float]]:
    """The places that each engine finds for each query, with other releases of a page; and CPU ms of a search."""
    urls = {page.url: place for place, page in enumerate(pages)}
    found: dict[str, Found] = {}
    spent: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(ROUNDS):
        for name, engine in engines.items():
            before_s = process_time()
            slates = [engine.search(SearchRequest(text), NOW_S) for text in texts]
            spent[name].append(1000 * (process_time() - before_s) / len(texts))
            found[name] = {
                text: [
                    (engine.place_of(result.id), *(urls[other.url] for other in result.other_versions))
                    for result in slate.results
                ]
                for text, slate in zip(texts, slates, strict=True)
            }
    return found, {name: float(np.median(each)) for name, each in spent.items()}


def _share(one: Sequence[tuple[int, ...]], other: Sequence[tuple[int, ...]]) -> float:
    """The share of the results of one that the other has, whatever release of a page it shows."""
    places = {place for each in other for place in each}
    return sum(bool(places.intersection(each)) for each in one) / len(one) if one else 1.0


if __name__ == "__main__":
    main()
