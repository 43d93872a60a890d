"""Do results agree with human relevance judgments? Public test collections, compared with plain BM25.

``VEDETTE_DATA/relevance`` has a folder for each collection: ``docs.jsonl``, ``queries.jsonl`` and ``qrels.tsv``.
Documents are parsed as pages of a site and indexed like fetched pages; questions are searched as typed. Printed are
nDCG@10, the mean average precision and the recall of the first 100, and for each the 95% interval of the difference to
the best rival (paired bootstrap over questions). "learned" is Vedette with vectors learned from the documents, its
default; "model" with those of the embedding model in the folder ``VEDETTE_MODEL``, if it is set. Rivals get the same
titles and texts: tantivy and SQLite's FTS5 as they are, and bm25s (in ``.venv-peers``), which leaves out stop words.
The last line is one JSON object; a figure that could not be measured is null.

The weights for questions are part of the product, and were fitted to the available collections. ``--fit`` shows how
much that flatters: for each collection it fits weights to all the others and evaluates those, and it prints the weights
of all together, which is how the product's were fitted.

    VEDETTE_DATA=FOLDER python bench/relevance.py [--fit]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.known_item import vedette
from bench.peers.environment import PYTHON, ROOT, install_rivals
from bench.peers.judged import NOW_S, Collection, Judged, list_collections, read_collection
from bench.peers.known_rivals import Rival, fts5, tantivy_plain
from bench.peers.question_weights import fit_weights, record_candidates

from vedette.engine.search.search import Searcher
from vedette.policy import Floats, rng_for
from vedette.runtime.indexing.embedding import make_vectors
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.runtime.search.meaning import LEARNED, MeaningComparer, describe_meaning
from vedette.serve.slate import SearchRequest

SHOWN = 100
TOP = 10
DRAWS = 2000
SEED = 7
OURS = ("vedette", "learned", "model")
RIVALS: dict[str, Callable[[Sequence[str], Sequence[str], int], Rival]] = {"tantivy": tantivy_plain, "fts5": fts5}
KEYS = ("ndcg10", "ndcg10_semantic", "ndcg10_tantivy", "ndcg10_bm25s", "ndcg10_fts5", "map", "recall100")


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


Ranker = Callable[[Sequence[str]], list[list[int]]]


def product(shelf: LiveIndexSnapshot) -> Ranker:
    """Vedette's own search, a hundred results deep."""
    searcher = Searcher(shelf)
    return one_by_one(lambda text: [hit.id - 1 for hit in searcher.search(SearchRequest(text, n=SHOWN), NOW_S).results])


def one_by_one(rival: Rival) -> Ranker:
    """Rank for one question after the other."""
    return lambda texts: [rival(text) for text in texts]


def semantic(shelf: LiveIndexSnapshot) -> dict[str, Ranker]:
    """Vedette's own search with vectors that were learned from the documents, and with a model's."""
    index = shelf.generation.parent
    settings = {"learned": LEARNED}
    if "VEDETTE_MODEL" in os.environ:
        settings["model"] = os.environ["VEDETTE_MODEL"]
    made: dict[str, Ranker] = {}
    for name, setting in settings.items():
        make_vectors(index, shelf.generation, setting, float("inf"))
        comparer = MeaningComparer(index, setting)
        made[name] = product(LiveIndexSnapshot(shelf.generation, comparer))
        print(f"{name}: {describe_meaning(index, setting)}")
    return made


def rivals(collection: Collection) -> dict[str, Ranker]:
    """Plain BM25 in three libraries; bm25s is left out if it cannot be installed."""
    titles = [page.stored.title for page in collection.pages]
    bodies = [page.stored.body for page in collection.pages]
    made = {name: one_by_one(make(titles, bodies, SHOWN)) for name, make in RIVALS.items()}
    if install_rivals({"bm25s": "bm25s"}):
        made["bm25s"] = partial(rank_bm25s, [f"{title} {body}" for title, body in zip(titles, bodies, strict=True)])
    return made


def rank_bm25s(texts: Sequence[str], queries: Sequence[str]) -> list[list[int]]:
    """Rank texts for each query with bm25s, in a process of its own."""
    given = json.dumps({"texts": texts, "queries": queries, "shown": SHOWN})
    command = [str(PYTHON), str(ROOT / "bench/peers/rank_bm25s.py")]
    done = subprocess.run(command, input=given.encode(), stdout=subprocess.PIPE, check=True)
    ranked: list[list[int]] = json.loads(done.stdout)["ranked"]
    return ranked


def judge(rank: Ranker, questions: Sequence[Judged]) -> tuple[list[list[int]], float]:
    """The results for each question, and the CPU milliseconds of one, unless another process took them."""
    started_s = process_time()
    found = rank([question.text for question in questions])
    return found, 1000 * (process_time() - started_s) / len(questions)


METRICS: dict[str, Callable[[Sequence[int], Mapping[int, float]], float]] = {
    "ndcg10": ndcg,
    "map": average_precision,
    "recall100": recall,
}


def measure(collection: Collection, shelf: LiveIndexSnapshot) -> dict[str, float | None]:
    """Print a row for each engine; return the figures of the last line."""
    questions = collection.questions
    print(f"\n{collection.name}: {len(collection.pages)} documents, {len(questions)} questions")
    print(f"{'':10}{'nDCG@10':>8}{'MAP':>8}{'recall':>8}{'nothing':>9}{'CPU ms':>8}")
    figures: dict[str, float] = {}
    scores: dict[str, dict[str, Floats]] = {}
    for name, rival in {"vedette": product(shelf), **semantic(shelf), **rivals(collection)}.items():
        found, cpu_ms = judge(rival, questions)
        scores[name] = mine = {
            metric: np.array([score(ranked, each.grades) for ranked, each in zip(found, questions, strict=True)])
            for metric, score in METRICS.items()
        }
        means = {metric: float(values.mean()) for metric, values in mine.items()}
        empty = sum(not ranked for ranked in found)
        print(f"{name:10}" + "".join(f"{mean:8.3f}" for mean in means.values()) + f"{empty:9}{cpu_ms:8.1f}")
        if name == "vedette":
            figures |= means
        else:
            figures[f"ndcg10_{name}"] = means["ndcg10"]
    for metric in METRICS:
        best = max((name for name in scores if name not in OURS), key=lambda name: float(scores[name][metric].mean()))
        for name in OURS:
            if name in scores:
                low, high = _interval(scores[name][metric] - scores[best][metric])
                gain = scores[name][metric].mean() / scores[best][metric].mean() - 1
                print(f"{metric} of {name} beside {best}: {gain:+.1%}, difference {low:+.3f} to {high:+.3f}")
    figures["ndcg10_semantic"] = figures.get("ndcg10_model", figures["ndcg10_learned"])
    return {key: round(figures[key], 4) if key in figures else None for key in KEYS}


def _interval(differences: Floats) -> tuple[float, float]:
    """The 95% interval of a mean difference, by a bootstrap over questions."""
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
    figures, recorded = {}, {}
    for each in list_collections(root):
        collection = read_collection(each)
        if not collection.questions:
            print(f"\n{collection.name} has no question with a relevant document.")
            continue
        with tempfile.TemporaryDirectory() as folder:
            _, shelf = vedette(Path(folder), collection.pages, [])
            figures[collection.name] = measure(collection, shelf)
            recorded[collection.name] = record_candidates(shelf, collection) if arguments.fit else []
    if arguments.fit:
        fit_weights(recorded, ndcg)
    print(json.dumps({"collections": figures}))


if __name__ == "__main__":
    main()
