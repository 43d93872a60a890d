"""Do models of clicks tell what people will click, and does ranking by what was learned bring better results up?

A recorded log (``clara2-search-log.tsv``) and its grades (``clara2-relevance.tsv``), in the folder clicks of the one
that VEDETTE_DATA names: see ``vedette.lab.runs.ranking.click_study``. Means over the searches of the later half, with
95 % intervals over its queries.

    python bench/clicks.py
"""

import os
import sys
from pathlib import Path

from vedette.lab.runs.ranking.click_study import compare_likelihoods, evaluate_reranking
from vedette.lab.visitors.recorded_clicks import read_grades, read_log


def main() -> None:
    """Fit to the earlier half, ask about the later one."""
    folder = Path(os.environ.get("VEDETTE_DATA", "")) / "clicks"
    log_path, grades_path = folder / "clara2-search-log.tsv", folder / "clara2-relevance.tsv"
    if not (log_path.is_file() and grades_path.is_file()):
        sys.exit("the log is not here: set VEDETTE_DATA to a folder that has clicks/clara2-search-log.tsv")
    with grades_path.open(encoding="utf-8") as lines:
        log = read_log(log_path, read_grades(lines))
    print(f"{len(log.query)} searches, {len(log.grade)} results")
    for title, found in (("log-likelihood", compare_likelihoods(log)), ("NDCG@10", evaluate_reranking(log))):
        for name, each in found.items():
            print(f"{title:16}{name:12}{each.mean:+.5f} [{each.low:+.5f}, {each.high:+.5f}] n = {each.n}")


if __name__ == "__main__":
    main()
