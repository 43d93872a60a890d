"""What does a search cost, in CPU time of one process, compared with another version of Vedette?

The two search the same folder of real pages (``bench/peers/search_folder.py``), through the port that the server uses,
in turns of a hundred queries each. Four kinds of queries fit the pages: titles, headings, texts of links, and four
words in a row of a text. The fifth are real ones from the web (``VEDETTE_DATA`` has
``queries/trec-million-query.txt``); most match little here. No query is searched twice, except by *again*: popular
queries come again and again (by Zipf's law), as people search.

Results are compared as well: the bench fails if any differ. The last line is one JSON object.

    VEDETTE_HISTORIES=FOLDER VEDETTE_DATA=FOLDER python bench/search_cost.py --old TREE [--pages N] [--queries N]
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import IO, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.search import folder_with, needed, queries_in

from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.indexer_store import read_anchors
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.index_store.tantivy_index import open_reader
from vedette.index.query.retrieval import Or, Term
from vedette.model import fingerprint
from vedette.text import split_words

ROOT = Path(__file__).resolve().parent.parent
SEED = 5
SPAN_WORDS = 4
AT_ONCE = 100
POPULAR, ZIPF = 200, 1.0
FITTING = ("title", "heading", "anchor", "span")
MOST_ANCHORS = 5


def fitting(generation: Path, many: int) -> dict[str, list[str]]:
    """Queries that fit the pages, by kind, each once."""
    table, chance = PageTable(generation), random.Random(SEED)  # noqa: S311 -- the same each time, no secret
    ids = table.indexed.tolist()
    chance.shuffle(ids)
    found: dict[str, dict[str, None]] = {kind: {} for kind in FITTING}
    for id_ in ids:
        stored = table.read_stored(id_)
        if stored is None:
            continue
        words = split_words(stored.body)
        at = chance.randrange(max(1, len(words) - SPAN_WORDS))
        anchors = [text for _, text in read_anchors(generation, [fingerprint(stored.url)], MOST_ANCHORS)]
        for kind, texts in (
            ("title", [stored.title]),
            ("heading", stored.headings),
            ("anchor", anchors),
            ("span", [" ".join(words[at : at + SPAN_WORDS])]),
        ):
            if usable := [text for text in texts if split_words(text) and text not in found[kind]]:
                found[kind].setdefault(chance.choice(usable))
        if all(len(texts) >= many for texts in found.values()):
            break
    return {kind: list(texts)[:many] for kind, texts in found.items()}


def popular(queries: Sequence[str], many: int) -> list[str]:
    """Draw popular queries more often, as people search."""
    some = list(queries[:POPULAR])
    shares = 1.0 / np.arange(1, len(some) + 1) ** ZIPF
    drawn = np.random.default_rng(SEED).choice(len(some), many, p=shares / shares.sum())
    return [some[place] for place in drawn.tolist()]


class Tree:
    """A process that searches with the code of one tree."""

    def __init__(self, tree: Path, folder: Path, queries: Path) -> None:
        command = [sys.executable, str(ROOT / "bench" / "peers" / "search_worker.py"), str(folder), str(queries)]
        environment = os.environ | {"PYTHONPATH": str(tree / "src")}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def turn(self, kind: str, start: int, end: int) -> Any:  # noqa: ANN401 - parsed JSON
        """Search some queries; CPU seconds, or the results."""
        sending, receiving = self._process.stdin, self._process.stdout
        assert sending is not None
        assert receiving is not None
        return _ask(sending, receiving, f"{kind} {start} {end}\n")

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _ask(sending: IO[str], receiving: IO[str], line: str) -> Any:  # noqa: ANN401 - parsed JSON
    sending.write(line)
    sending.flush()
    answer = receiving.readline()
    if not answer:
        sys.exit("a searching process ended early")
    return json.loads(answer)


def pieces(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts that are searched in one turn."""
    yield from ((at, min(at + AT_ONCE, end)) for at in range(start, end, AT_ONCE))


def alone_ms(generation: Path, queries: Sequence[str]) -> float:
    """CPU milliseconds of tantivy alone: any word in title or body, the best ten."""
    reader = open_reader(generation / "tantivy")
    nodes = [
        Or(tuple(Term(field, word) for word in split_words(query) for field in ("title", "body"))) for query in queries
    ]
    before_s = process_time()
    for node in nodes:
        reader.find(node, 10)
    return 1000 * (process_time() - before_s) / len(queries)


def measure(running: dict[str, Tree], kinds: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """CPU milliseconds of a search by kind and tree: the median turn."""
    spent: dict[str, dict[str, float]] = {}
    start = 0
    for kind, queries in kinds.items():
        turns = [
            [1000 * tree.turn("search", *piece) / (piece[1] - piece[0]) for tree in running.values()]
            for piece in pieces(start, start + len(queries))
        ]
        spent[kind] = dict(zip(running, map(median, zip(*turns, strict=True)), strict=True))
        start += len(queries)
    return spent


def differing(running: dict[str, Tree], queries: Sequence[str]) -> list[str]:
    """The queries that the trees answer in different ways."""
    found = []
    for start, end in pieces(0, len(queries)):
        old, new = (tree.turn("results", start, end) for tree in running.values())
        found += [query for query, one, other in zip(queries[start:end], old, new, strict=True) if one != other]
    return found


def main() -> int:
    """Search with both trees in turns; print a table and a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--old", type=Path, help="the source tree of another version; without it, only this is measured"
    )
    parser.add_argument("--pages", type=int, default=12_000, help="versions of pages to search")
    parser.add_argument("--queries", type=int, default=400, help="of each kind")
    parser.add_argument("--folder", type=Path, help="a data folder with an index, instead of one made of histories")
    options = parser.parse_args()
    folder = options.folder or folder_with(options.pages, needed("VEDETTE_HISTORIES", "of bare repositories"))
    generation = Generations(folder).current()
    assert generation is not None
    kinds = fitting(generation, options.queries)
    real = queries_in(needed("VEDETTE_DATA", "with queries/trec-million-query.txt"))
    kinds["web"] = random.Random(SEED).sample(real, options.queries)  # noqa: S311 -- the same each time, no secret
    once = [query for queries in kinds.values() for query in queries]
    kinds["again"] = popular(kinds["heading"], 2 * options.queries)
    trees = {"old": options.old.resolve(), "new": ROOT} if options.old else {"new": ROOT}
    with TemporaryDirectory() as scratch:
        listed = Path(scratch) / "queries.json"
        listed.write_text(json.dumps([*once, *kinds["again"]]), "utf-8")
        running = {name: Tree(tree, folder, listed) for name, tree in trees.items()}
        spent = measure(running, kinds)
        other = differing(running, once) if options.old else []
        for tree in running.values():
            tree.close()
    raw_ms = alone_ms(generation, [query for kind in FITTING for query in kinds[kind]])
    print(f"{'CPU ms a search':16}" + "".join(f"{name:>9}" for name in trees))
    for kind, costs in spent.items():
        print(f"{kind:16}" + "".join(f"{cost_ms:9.2f}" for cost_ms in costs.values()))
    print(f"tantivy alone, {raw_ms:.2f} ms; of {len(once)} queries, {len(other)} have other results than before")
    print("\n".join(other[:10]))
    facts: dict[str, object] = {
        kind: {name: round(cost, 3) for name, cost in each.items()} for kind, each in spent.items()
    }
    facts |= {"tantivy_ms": round(raw_ms, 3), "queries": len(once), "differing": len(other)}
    print(json.dumps(facts))
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
