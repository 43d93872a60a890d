"""How soon does a live crawl have what people search for: by impact, breadth first, or by in-links?

The real program crawls a synthetic web on loopback, with imported queries (``vedette queries import``). First 1 500
pages are crawled, as fast as possible. Queries are drawn from titles of those pages, with frequencies by Zipf's law,
and the impact of a page is how often it is among the first ten results of a search there. Then each order starts over,
and the server's log has the order of requests: the figure is the share of all impact in the first requests. Learning is
part of the run, in the background, while pages are fetched. The last line is one JSON object.

    python bench/order_live.py [--world WORLD] [--delay SECONDS] [--queries N] [--seed N] [--orders NAMES]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.engine.search.search import Searcher
from vedette.frontier.impact.sketches import TOP_K
from vedette.lab.judge.access_log import read_log
from vedette.lab.worlds.synthetic.server import start_server
from vedette.policy import rng_for
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.serve.slate import SearchRequest
from vedette.text import normalize_words

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
LONGEST_S = 1800
MOST = 1_500
SPEED = 20.0  # crawl-delays of the synthetic web run this much faster


def crawled(folder: Path, world: str, order: str, delay: str, queries: Path | None, most: int) -> list[str]:
    """Crawl a web in an order, up to this many pages; return the URLs in the order of their first request."""
    folder.mkdir(parents=True)
    log = folder / "access.log"
    with start_server(world, speed=SPEED, log_path=log) as web:
        (folder / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
        (folder / "vedette.toml").write_text(
            f'[crawl]\ndelay = "{delay}"\naddress_delay = "0s"\norder = "{order}"\ntimeout = "2s"\n'
        )
        sites = [f"http://{name}/" for name in web.hosts]
        common = ["--data", str(folder / "data")]
        command = [sys.executable, "-m", "vedette", "crawl", *sites, "--connect-to", f"@{folder / 'hosts.txt'}"]
        command += [
            "--allow-private",
            "--speed",
            str(SPEED),
            "--config",
            str(folder / "vedette.toml"),
            "--json",
            *common,
        ]
        if queries is not None:
            subprocess.run([*command, "--pages", "1"], check=True, stdout=subprocess.DEVNULL, timeout=LONGEST_S)
            told = [sys.executable, "-m", "vedette", "queries", "import", str(queries), *common]
            subprocess.run(told, check=True, stdout=subprocess.DEVNULL, timeout=LONGEST_S)
        subprocess.run([*command, "--pages", str(most)], check=False, stdout=subprocess.DEVNULL, timeout=LONGEST_S)
    asked = (entry.url for entry in read_log(log)[1] if entry.target != "/robots.txt")
    return list(dict.fromkeys(asked))


def drawn(folder: Path, count: int, seed: int) -> dict[str, int]:
    """Queries of two words of a title, with the frequency of each."""
    rng = rng_for(seed, "bench/order_live")
    table = PageTable(_generation(folder))
    titles = [(table.read_stored(id_) or _NOTHING).title for id_ in table.indexed.tolist()]
    words = [[word for word in normalize_words(title).decode().split() if len(word) > 3] for title in titles]
    some = [each for each in words if len(each) > 1]
    found: dict[str, int] = {}
    while len(found) < count:
        title = some[int(rng.integers(len(some)))]
        at = int(rng.integers(len(title) - 1))
        found.setdefault(" ".join(title[at : at + 2]), 1 + 10 * count // (1 + len(found)))
    return found


def impacts(folder: Path, queries: Mapping[str, int]) -> dict[str, float]:
    """How often each page is among the first results, by URL."""
    searcher, total = Searcher(LiveIndexSnapshot(_generation(folder))), sum(queries.values())
    found: dict[str, float] = {}
    for query, times in queries.items():
        for result in searcher.search(SearchRequest(query), time.time()).results[:TOP_K]:
            found[result.url] = found.get(result.url, 0.0) + times / total
    return found


class _Nothing:
    title = ""


_NOTHING = _Nothing()


def _generation(folder: Path) -> Path:
    generation = Generations(folder / "data").current()
    assert generation is not None, "it was crawled"
    return generation


def main() -> None:
    """Crawl, draw, crawl again, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", default="made:small:3:calm")
    parser.add_argument(
        "--delay", default="40s", help="in the time of the synthetic web, which runs twenty times as fast"
    )
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--orders", default="impact,breadth,inlinks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        every = crawled(folder / "all", options.world, "breadth", "0s", None, MOST)
        queries = drawn(folder / "all", options.queries, options.seed)
        (folder / "queries.tsv").write_text("".join(f"{words}\t{times}\n" for words, times in queries.items()))
        impact = impacts(folder / "all", queries)
        print(f"{len(every)} URLs, {len(impact)} of them among the first results of {len(queries)} queries")
        print(f"{'order':<10}" + "".join(f"{share:>8.0%}" for share in SHARES))
        told: dict[str, list[float]] = {}
        for order in options.orders.split(","):
            asked = crawled(
                folder / order,
                options.world,
                order,
                options.delay,
                folder / "queries.tsv",
                int(SHARES[-1] * len(every)),
            )
            gained = np.cumsum([impact.get(url, 0.0) for url in asked]) / max(sum(impact.values()), 1e-9)
            told[order] = [round(float(gained[min(int(share * len(every)), len(gained)) - 1]), 3) for share in SHARES]
            print(f"{order:<10}" + "".join(f"{each:>8.3f}" for each in told[order]), flush=True)
    print(json.dumps({"urls": len(every), "shares": SHARES, "captured": told}))


if __name__ == "__main__":
    main()
