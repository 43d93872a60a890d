"""Are questions answered as people judged it? Public test collections, compared with plain BM25.

``VEDETTE_DATA/relevance`` has a folder for each collection: ``docs.jsonl``, ``queries.jsonl`` and ``qrels.tsv``.
Documents are parsed as pages of a site and indexed like fetched pages; questions are searched as typed. Printed are
nDCG@10, the mean average precision and the recall of the first 100, and for nDCG the 95 % interval of the difference to
the best rival (paired bootstrap over questions). Rivals get the same titles and texts: tantivy and SQLite's FTS5 as
they are, and bm25s, which leaves out stop words. The last line is one JSON object.

The weights for questions are part of the product, and were fitted to the available collections. ``--fit`` shows how
much that flatters: for each collection it fits weights to all the others and the long known items of
``bench/known_item.py`` (with ``VEDETTE_HISTORIES``), evaluates those, and prints the weights of all together, which is
how the product's were fitted.

    VEDETTE_DATA=FOLDER python bench/relevance.py [--fit]
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.known_item import vedette
from bench.peers.judged import NOW_S, Collection, Judged, read_collection
from bench.peers.known_rivals import Rival, bm25s, fts5, tantivy_plain
from bench.peers.question_weights import fit_weights, record_candidates

from vedette.engine.search.search import Searcher
from vedette.policy import Floats, rng_for
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.serve.slate import SearchRequest

SHOWN = 100
TOP = 10
DRAWS = 2000
SEED = 7


def ndcg(ranked: Sequence[int], grades: Mapping[int, float]) -> float:
    """The normalised discounted cumulative gain of the first ten."""
    gains = [grades.get(place, 0.0) for place in ranked[:TOP]]
    return _discounted(gains) / _discounted(sorted(grades.values(), reverse=True)[:TOP])


def _discounted(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(rank + 2) for rank, gain in enumerate(gains)))


def average_precision(ranked: Sequence[int], grades: Mapping[int, float]) -> float:
    """The mean, over relevant documents, of the precision where each is found."""
    right = [rank for rank, place in enumerate(ranked) if place in grades]
    return sum((found + 1) / (rank + 1) for found, rank in enumerate(right)) / len(grades)


def recall(ranked: Sequence[int], grades: Mapping[int, float]) -> float:
    """The share of the relevant documents among the first hundred."""
    return len(grades.keys() & set(ranked[:SHOWN])) / len(grades)


def product(shelf: LiveIndexSnapshot) -> Rival:
    """Vedette's own search, a hundred results deep."""
    searcher = Searcher(shelf)
    return lambda text: [result.id - 1 for result in searcher.search(SearchRequest(text, n=SHOWN), NOW_S).results]


def rivals(collection: Collection) -> dict[str, Rival]:
    """Plain BM25 in three libraries; one that is not installed is left out."""
    titles = [page.stored.title for page in collection.pages]
    bodies = [page.stored.body for page in collection.pages]
    made: dict[str, Rival] = {}
    for name, make in {"tantivy": tantivy_plain, "bm25s": bm25s, "fts5": fts5}.items():
        try:
            made[name] = make(titles, bodies, SHOWN)
        except ModuleNotFoundError as missing:
            print(f"{name} is left out: pip install {missing.name}")
    return made


def judge(rival: Rival, questions: Sequence[Judged]) -> tuple[list[list[int]], float]:
    """The results for each question, and the CPU milliseconds of one."""
    started_s = process_time()
    found = [rival(question.text) for question in questions]
    return found, 1000 * (process_time() - started_s) / len(questions)


def measure(collection: Collection, shelf: LiveIndexSnapshot) -> dict[str, float]:
    """Print a row for each engine; return the figures of the last line."""
    questions = collection.questions
    print(f"\n{collection.name}: {len(collection.pages)} documents, {len(questions)} questions")
    print(f"{'':10}{'nDCG@10':>9}{'MAP':>8}{'recall':>8}{'nothing':>9}{'CPU ms':>8}")
    figures: dict[str, float] = {}
    gains: dict[str, Floats] = {}
    for name, rival in {"vedette": product(shelf), **rivals(collection)}.items():
        found, cpu_ms = judge(rival, questions)

        def mean(
            score: Callable[[Sequence[int], Mapping[int, float]], float], found: Sequence[list[int]] = found
        ) -> float:
            return float(np.mean([score(ranked, each.grades) for ranked, each in zip(found, questions, strict=True)]))

        gains[name] = np.array([ndcg(ranked, each.grades) for ranked, each in zip(found, questions, strict=True)])
        empty = sum(not ranked for ranked in found)
        print(f"{name:10}{mean(ndcg):9.3f}{mean(average_precision):8.3f}{mean(recall):8.3f}{empty:9}{cpu_ms:8.1f}")
        if name == "vedette":
            figures |= {"ndcg10": mean(ndcg), "map": mean(average_precision), "recall100": mean(recall), "empty": empty}
        else:
            figures[f"ndcg10_{name}"] = mean(ndcg)
    best = max((name for name in gains if name != "vedette"), key=lambda name: float(gains[name].mean()))
    low, high = _interval(gains["vedette"] - gains[best])
    print(f"nDCG@10 beside {best}: {low:+.3f} to {high:+.3f}")
    return {key: round(value, 4) for key, value in figures.items()} | {"low": round(low, 4), "high": round(high, 4)}


def _interval(differences: Floats) -> tuple[float, float]:
    """The 95 % interval of a mean difference, by a bootstrap over questions."""
    chance = rng_for(SEED, "bench/relevance")
    drawn = differences[chance.integers(len(differences), size=(DRAWS, len(differences)))].mean(axis=1)
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def main() -> None:
    """Read, index and judge each collection; print tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit weights to all but one, and judge that one")
    arguments = parser.parse_args()
    root = Path(os.environ.get("VEDETTE_DATA", "")) / "relevance"
    if "VEDETTE_DATA" not in os.environ or not root.is_dir():
        sys.exit("VEDETTE_DATA must name a folder with relevance/NAME/docs.jsonl, queries.jsonl and qrels.tsv")
    collections = [read_collection(folder) for folder in sorted(root.iterdir()) if (folder / "docs.jsonl").exists()]
    figures, recorded = {}, {}
    for collection in collections:
        with tempfile.TemporaryDirectory() as folder:
            _, shelf = vedette(Path(folder), collection.pages, [])
            figures[collection.name] = measure(collection, shelf)
            recorded[collection.name] = record_candidates(shelf, collection) if arguments.fit else []
    if arguments.fit:
        fit_weights(recorded, ndcg)
    print(json.dumps({"collections": figures}))


if __name__ == "__main__":
    main()
