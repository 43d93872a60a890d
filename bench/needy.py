"""How few words are enough to measure the gains of new page versions? Needy ones against the most frequent.

Real pages with an older version and the newest (git histories in the folder that ``VEDETTE_HISTORIES`` names), and the
60 000 real queries of ``VEDETTE_DATA``, each word as often as it occurs there. A random half of the pages teaches which
words improve; the other half shows which share of the gains of its changes is measured by this many words, chosen by
learned neediness, and by frequency. CPU milliseconds for each change; all words are the ceiling in the same run. The
last line is one JSON object.

    VEDETTE_HISTORIES=FOLDER VEDETTE_DATA=FOLDER python bench/needy.py [--pages N]
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.quality import SEED, Page, pairs

from vedette.engine.search.answer_scores import AnswerScorer, read_words
from vedette.engine.search.needy_queries import QueryNeeds, compute_neediness, select_needy_queries
from vedette.engine.search.ports import PageSignals
from vedette.index.fields import IndexEntry, number_tokens, tokenize_entry
from vedette.index.quality.gains import ChangedPages, MeasuredGains, concatenate_words, measure_gains
from vedette.index.quality.query_curves import QueryCurveBuilder, QueryCurves
from vedette.index.quality.watched_queries import (
    PageWords,
    build_watched,
    count_naming_words,
    merge_scores,
    weigh_words,
)
from vedette.policy import rng_for
from vedette.text import hash_word, split_words

PageChange = tuple[PageWords, PageWords]
SHARES = (1.0, 0.3, 0.1, 0.03, 0.01)
AT_ONCE = 100


def words_in(page: Page) -> PageWords:
    """As the index has them."""
    stored = page.stored
    return number_tokens(tokenize_entry(IndexEntry(1, stored.url, stored.title, stored.headings, stored.body)))


def curves_of(pages: Sequence[PageWords]) -> QueryCurves:
    """Of real queries, over these pages."""
    path = Path(os.environ["VEDETTE_DATA"]) / "queries" / "trec-million-query.txt"
    lines = path.read_text("latin-1").splitlines()
    times = Counter(word for line in lines for word in set(split_words(line)))
    named = count_naming_words(concatenate_words(pages))
    numbers, shares = weigh_words({hash_word(word): float(count) for word, count in times.items()}, named, len(lines))
    watched = build_watched(list(zip(read_words(numbers, {}, lambda _word: ()), shares.tolist(), strict=True)))
    gathered, scorer = QueryCurveBuilder(watched), AnswerScorer(watched)
    for begin in range(0, len(pages), AT_ONCE):
        some = pages[begin : begin + AT_ONCE]
        gathered.add(
            scorer.score(concatenate_words(some), PageSignals.neutral(len(some))),
            np.full(len(some), 0.5),
        )
    return gathered.build(len(pages))


def gains_of(curves: QueryCurves, scorer: AnswerScorer, changes: Sequence[PageChange]) -> MeasuredGains:
    """The gains of changes, all measured at once."""
    signals = PageSignals.neutral(len(changes))
    old, new = (scorer.score(concatenate_words([change[side] for change in changes]), signals) for side in (0, 1))
    changed = ChangedPages(np.ones(len(changes), np.bool_), np.full(len(changes), 0.5))
    return measure_gains(curves, merge_scores(old, new, len(curves.watched)), changed)


def measured(curves: QueryCurves, changes: Sequence[PageChange]) -> tuple[float, float]:
    """The gains of changes by these words, and the CPU milliseconds for each."""
    scorer, began_s = AnswerScorer(curves.watched), process_time()
    gain = sum(
        float(np.maximum(gains_of(curves, scorer, changes[begin : begin + AT_ONCE]).gain, 0.0).sum())
        for begin in range(0, len(changes), AT_ONCE)
    )
    return gain, 1000 * (process_time() - began_s) / len(changes)


def main() -> None:
    """Learn on one half, tell of the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    versions = pairs(parser.parse_args().pages)
    words = [(words_in(before), words_in(after)) for before, after in versions]
    curves = curves_of([before for before, _ in words])
    lots = rng_for(SEED, "bench/needy").permutation(len(words))
    taught, asked = ([words[at] for at in half.tolist()] for half in np.array_split(lots, 2))
    brought = gains_of(curves, AnswerScorer(curves.watched), taught).by_query
    needs = QueryNeeds.empty().add_gains(curves.watched.prints, brought, len(taught))
    whole, ceiling_ms = measured(curves, asked)
    need = compute_neediness(curves, needs)
    assert need is not None, "there are enough pages"
    ranked = {
        name: np.argsort(-each, kind="stable")
        for name, each in (("needy", need), ("frequency", curves.watched.frequency))
    }
    chosen = select_needy_queries(curves, needs)
    print(f"{len(words)} pages, {len(curves.watched)} words; all words: {ceiling_ms:.3f} ms a change")
    told: dict[str, object] = {"words": len(curves.watched), "ceiling_ms": round(ceiling_ms, 3)}
    for name, order in ranked.items():
        for share in SHARES[1:]:
            gain, took_ms = measured(curves.select(np.sort(order[: int(share * len(order))])), asked)
            print(f"{name:10} {share:6.1%} of the words: {gain / whole:6.1%} of the gain, {took_ms:.3f} ms a change")
            told[f"{name}_{share}"] = round(gain / whole, 4)
    gain, took_ms = measured(curves.select(chosen), asked)
    part = len(chosen) / len(curves.watched)
    print(f"by rule    {part:6.1%} of the words: {gain / whole:6.1%} of the gain, {took_ms:.3f} ms a change")
    told |= {"rule_words": len(chosen), "rule_gain": round(gain / whole, 4), "rule_ms": round(took_ms, 3)}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
