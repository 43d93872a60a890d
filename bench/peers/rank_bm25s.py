"""BM25 of title and body together, without stop words, by the library bm25s; runs in ``.venv-peers``.

.venv-peers/bin/python bench/peers/rank_bm25s.py < {"texts": [...], "queries": [...], "shown": N} > ANSWER.json
"""

import json
import sys
from importlib import import_module
from time import process_time
from typing import Any

__all__: list[str] = []


def main() -> None:
    """Read texts and queries, and print the positions of the best texts for each with the CPU time it took."""
    library: Any = import_module("bm25s")
    given = json.load(sys.stdin)
    index = library.BM25()
    index.index(library.tokenize(given["texts"], stopwords="en", show_progress=False), show_progress=False)
    start_s, ranked = process_time(), []
    for query in given["queries"]:
        words = library.tokenize(query, stopwords="en", show_progress=False)
        found, scores = index.retrieve(words, k=min(given["shown"], len(given["texts"])), show_progress=False)
        ranked.append([int(place) for place, score in zip(found[0], scores[0], strict=True) if score > 0])
    json.dump({"ranked": ranked, "cpu_s": process_time() - start_s}, sys.stdout)


if __name__ == "__main__":
    main()
