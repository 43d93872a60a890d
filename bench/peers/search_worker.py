"""Searches a data folder in turns, for ``bench/search_cost.py``: with the code of whichever tree is on the path.

Reads a line for each turn, ``ROUND START END``, and answers with the CPU seconds that these queries took; ``results
START END`` answers with the results themselves.

    python search_worker.py FOLDER QUERIES
"""

import gc
import json
import sys
from pathlib import Path
from time import process_time

from vedette.adapters.clock import start_clock
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import SearchRequest

NOW_S = 1_750_100_000.0


def main() -> None:
    """Serve turns until the input ends."""
    queries = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    search = FolderSearch(Path(sys.argv[1]), start_clock(NOW_S, 1e-6))  # hardly any time passes, so that scores agree
    search.get_overview(())
    gc.freeze()
    for line in sys.stdin:
        kind, start, end = line.split()
        some = queries[int(start) : int(end)]
        if kind == "results":
            print(json.dumps([_describe(search, query) for query in some]), flush=True)
            continue
        before_s = process_time()
        for query in some:
            search.search(_request(query))
        print(json.dumps(process_time() - before_s), flush=True)


def _request(query: str) -> SearchRequest:
    """A search as by the API, which explains results only on request; older trees always do."""
    request = SearchRequest(query)
    return request._replace(is_explained=False) if hasattr(request, "is_explained") else request


def _describe(search: FolderSearch, query: str) -> list[object]:
    """All that a search shows, except for what depends on the moment."""
    slate = search.search(SearchRequest(query))
    results = [
        [
            result.url,
            round(result.score, 9),
            result.title,
            result.snippet,
            [(part.heading, part.url, part.snippet, round(part.share, 9)) for part in result.sections],
            [list(reason[:1]) + [round(value, 9) for value in reason[1:]] for reason in result.why],
            result.sentence,
            result.note,
            result.similar,
            result.versions,
            result.version,
            result.other_versions,
            [(key, round(value, 9)) for key, value in result.features],
        ]
        for result in slate.results
    ]
    return [slate.total, results, slate.notes, slate.suggestion, slate.relaxed, slate.corrected, slate.verbatim]


if __name__ == "__main__":
    main()
