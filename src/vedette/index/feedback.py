"""Pseudo-relevance feedback: score candidates by words that the best of them share.

Pages about a subject use words that the query does not have. The best candidates by the other features are assumed to
be about it; the words that several of them have, and few other candidates, are added to the query (Rocchio's idea, with
the term selection of Lavrenko and Croft's relevance models). Only candidates are compared, which are in memory anyway:
the index is not searched again.
"""

import numpy as np

from vedette.index.features import find_numbers
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.policy import Floats, Ints
from vedette.text import WordHashes

BEST = 10
TERMS = 30
MIN_CANDIDATES = 20
# Titles and this many words of each text are compared.
HEAD_WORDS = 256
SATURATION = 1.2
_TITLE, _BODY = TEXT_FIELDS.index("title"), TEXT_FIELDS.index("body")


def score_feedback(forward: ForwardTokens, order: Ints, known: WordHashes) -> Floats:
    """Score how much candidates share the words of the best, 0 to 1; ``order`` has all rows, best first.

    ``known`` are the query's own words, which count elsewhere.
    """
    rows = len(forward.lengths)
    if rows < MIN_CANDIDATES:
        return np.zeros(rows)
    places, owners = _find_heads(forward)
    words = forward.words[places]
    terms = _list_terms(words, owners, order[:BEST], known)
    if not len(terms):
        return np.zeros(rows)
    counts = _count_terms(words, owners, terms, rows)
    df = np.count_nonzero(counts, axis=0)
    idf = np.log1p((rows - df + 0.5) / (df + 0.5))
    present = counts / (counts + SATURATION)
    trust = 1 / np.sqrt(np.arange(2, 2 + min(BEST, rows)))
    weights = (trust @ present[order[:BEST]]) * idf**2
    best = np.argsort(-weights, kind="stable")[:TERMS]
    return np.asarray(present[:, best] @ weights[best] / max(float(weights[best].sum()), 1e-9))


def cut_heads(forward: ForwardTokens) -> ForwardTokens:
    """Return of each page only the words that are compared, for feedback among the candidates of several shards."""
    places, owners = _find_heads(forward)
    lengths = np.zeros_like(forward.lengths)
    lengths[:, _TITLE] = forward.lengths[:, _TITLE]
    lengths[:, _BODY] = np.minimum(forward.lengths[:, _BODY], HEAD_WORDS)
    return ForwardTokens(forward.words[places[np.argsort(owners, kind="stable")]], lengths)


def _find_heads(forward: ForwardTokens) -> tuple[Ints, Ints]:
    """Find the positions of the words of titles and of the beginnings of texts, and the page of each."""
    lengths = forward.lengths
    ends = np.cumsum(lengths.sum(axis=1))
    starts = np.concatenate((ends - lengths.sum(axis=1), ends - lengths[:, _BODY]))
    sizes = np.concatenate((lengths[:, _TITLE], np.minimum(lengths[:, _BODY], HEAD_WORDS)))
    first = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return first + np.arange(len(first)), np.repeat(np.tile(np.arange(len(lengths)), 2), sizes)


def _list_terms(words: WordHashes, owners: Ints, best: Ints, known: WordHashes) -> WordHashes:
    """List the words that at least two of the best pages have, ascending."""
    is_best = np.zeros(int(owners.max(initial=0)) + 1, np.bool_)
    is_best[best[best < len(is_best)]] = True
    inside = np.flatnonzero(is_best[owners])
    pairs = words[inside].astype(np.uint64) << np.uint64(32) | owners[inside].astype(np.uint64)
    pairs.sort()
    terms = (pairs >> np.uint64(32)).astype(np.uint32)
    is_shared = (terms[1:] == terms[:-1]) & (pairs[1:] != pairs[:-1])  # with the page before
    terms = terms[1:][is_shared]
    terms = terms[np.append(terms[:-1] != terms[1:], True)[: len(terms)]]
    return np.asarray(terms[~np.isin(terms, known)])


def _count_terms(words: WordHashes, owners: Ints, terms: WordHashes, rows: int) -> Floats:
    """Count how often each page has each term."""
    places, which = find_numbers(words, terms)
    cells = owners[places] * len(terms) + which
    return np.bincount(cells, minlength=rows * len(terms)).reshape(rows, len(terms)).astype(np.float64)
