"""Are gains measured by what search serves? Overlap@10 on an index of your own.

Titles and headings of the pages of a data folder, drawn by a fixed seed, and single words of them are searched; the
same queries are watched as by the indexer, over all pages. Reported are the share of the first ten served results that
are among the first ten measured, by the kind of query, and the cost of measuring per page. The last line is one JSON
object.

    python bench/overlap.py FOLDER [--queries N]
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from time import process_time, time

import numpy as np

from vedette.adapters.index_store.generations import Generations
from vedette.engine.search.answer_scores import AnswerScorer, read_query
from vedette.engine.search.search import Searcher
from vedette.index.quality.watched_queries import build_watched
from vedette.policy import rng_for
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.serve.slate import SearchRequest
from vedette.text import normalize_words

SEED, AT_ONCE, FIRST, MIN_LETTERS = 1, 500, 10, 4


def drawn(shelf: LiveIndexSnapshot, count: int) -> Iterator[tuple[str, str]]:
    """Yield kinds and queries: this many titles, headings and words, each once."""
    rng, seen = rng_for(SEED, "bench/overlap"), set[str]()
    left = {"title": count, "heading": count, "word": count}
    for id_ in rng.permutation(shelf.table.indexed).tolist():
        stored = shelf.table.read_stored(id_)
        if stored is None or not any(left.values()):
            continue
        found = [("title", stored.title), *(("heading", text) for text in stored.headings[1:2])]
        words = [word for word in normalize_words(stored.title).decode().split() if len(word) >= MIN_LETTERS]
        found += [("word", str(rng.choice(words)))] if words else []
        for kind, text in found:
            query = normalize_words(text).decode()
            if left[kind] and query and query not in seen:
                seen.add(query)
                left[kind] -= 1
                yield kind, query


def main() -> None:
    """Search, measure, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=50, help="of each kind")
    asked = parser.parse_args()
    generation = Generations(asked.folder).current()
    if generation is None:
        raise SystemExit(f"{asked.folder} has no index")
    shelf, now_s = LiveIndexSnapshot(generation), time()
    read = [(kind, text, read_query(text, shelf, now_s)) for kind, text in drawn(shelf, asked.queries)]
    kept = [(kind, text, one) for kind, text, one in read if one is not None]
    scorer, ids, began_s = (
        AnswerScorer(build_watched([(one, 1.0) for _, _, one in kept])),
        shelf.table.indexed,
        process_time(),
    )
    found = []
    for begin in range(0, len(ids), AT_ONCE):
        some = ids[begin : begin + AT_ONCE]
        scores = scorer.score(shelf.forward(some), shelf.get_signals(some))
        found.append((some[scores.page], scores.query, scores.score))
    took_ms = 1000 * (process_time() - began_s) / max(len(ids), 1)
    page, query, score = (np.concatenate(each) for each in zip(*found, strict=True))
    searcher, shares = Searcher(shelf), dict[str, list[float]]()
    for row, (kind, text, _) in enumerate(kept):
        mine = np.flatnonzero(query == row)
        first = page[mine[np.lexsort((page[mine], -score[mine]))][:FIRST]].tolist()
        shown = [result.id for result in searcher.search(SearchRequest(text), now_s).results][:FIRST]
        if shown:
            shares.setdefault(kind, []).append(len({*first} & {*shown}) / len(shown))
    told = {kind: round(float(np.mean(each)), 3) for kind, each in shares.items()}
    told["all"] = round(float(np.mean([one for each in shares.values() for one in each])), 3)
    print(f"{len(ids)} pages, {len(kept)} queries ({len(read) - len(kept)} too long), overlap@10 {told}")
    print(f"{len(page) / max(len(ids), 1):.1f} pairs and {took_ms:.2f} CPU ms a page")
    print(json.dumps({"pages": len(ids), "overlap": told, "ms_a_page": round(took_ms, 3)}))


if __name__ == "__main__":
    main()
