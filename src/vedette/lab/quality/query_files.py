"""Query files for measuring search quality: what people search for, and how often.

Three kinds of files are read, line by line:

- *timed*: twelve digits (yymmddhhmmss), a tab and a query, as in logs of early search engines. A query counts as often
  as it occurs there;
- *counted*: the format of ``vedette.learn.query_logs`` (a query, a tab, how often);
- *plain*: one query per line. Frequencies are unknown, so Zipf's law is used: the query at position i of an order drawn
  by the seed has frequency 1/i, relative to the first one. Which queries are frequent is then arbitrary; that few are
  and most are not is what every log shows.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vedette.errors import UsageError
from vedette.lab.quality.corpus import Corpus, concat_ranges
from vedette.lab.visitors.queries import zipf_shares
from vedette.learn.query_logs import ImportedQuery, parse_queries
from vedette.policy import Floats, Ints, rng_for
from vedette.text import WordHashes, hash_words, normalize_words, split_words

# By the kind of queries (``queries_from``).
QUERY_FILES = ("trec-million-query.txt", "excite-1997.tsv")
ZIPF_EXPONENT = 1.0
_TIMESTAMP = re.compile(r"[0-9]{12}\t")


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries of a query file: ``q`` has the words ``term[start[q]:start[q + 1]]``, ascending, ``frequency[q]`` times.

    ``model`` says where the frequencies come from: "asked" (counted in the file) or "zipf".
    """

    texts: tuple[str, ...]
    start: Ints
    term: WordHashes
    frequency: Floats
    model: str = "asked"

    def __len__(self) -> int:
        return len(self.texts)

    def get_terms(self, query: int) -> WordHashes:
        """Return the word hashes of a query."""
        return self.term[self.start[query] : self.start[query + 1]]

    def select(self, rows: Ints) -> "Queries":
        """Select some of the queries by row."""
        starts, ends = self.start[rows], self.start[rows + 1]
        start = np.append(0, np.cumsum(ends - starts))
        texts = tuple(self.texts[row] for row in rows.tolist())
        return Queries(texts, start, self.term[concat_ranges(starts, ends)], self.frequency[rows], self.model)


def find_query_file(name: str) -> Path | None:
    """Find a query file by name in the data folder (VEDETTE_DATA); None if there is none."""
    folder = os.environ.get("VEDETTE_DATA")
    path = Path(folder or "") / "queries" / name
    return path if folder and path.is_file() else None


def read_query_file(path: Path, seed: int = 0) -> Queries:
    """Read the queries of a query file, most frequent first; the seed matters for plain files only."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            return _parse_lines(lines, seed)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise UsageError(f"{path}: {reason}; a query file has one query per line") from error


def build_queries(searches: Iterable[tuple[str, float]], model: str = "asked") -> Queries:
    """Build the arrays of queries from texts and frequencies.

    >>> build_queries([("low tide", 3.0), ("tide", 1.0)]).start.tolist()
    [0, 2, 3]
    """
    texts, frequency = zip(*searches, strict=True) if (searches := list(searches)) else ((), ())
    forms = [normalize_words(text) for text in texts]
    owner = np.repeat(np.arange(len(forms)), [len(form.split()) for form in forms])
    terms = hash_words(b" ".join(form for form in forms if form))
    order = np.lexsort((terms, owner))
    owner, terms = owner[order], terms[order]
    first = np.append(True, (owner[1:] != owner[:-1]) | (terms[1:] != terms[:-1]))[: len(terms)]
    start = np.searchsorted(owner[first], np.arange(len(forms) + 1))
    return Queries(tuple(texts), start, terms[first], np.array(frequency, np.float64), model)


def select_answerable(queries: Queries, corpus: Corpus) -> Queries:
    """Select the queries that some version of the corpus can answer: it has all of their words."""
    is_known = np.isin(queries.term, np.unique(corpus.term))
    lacking = np.append(0, np.cumsum(~is_known))
    return queries.select(np.flatnonzero(lacking[queries.start[1:]] == lacking[queries.start[:-1]]))


def split_into_terms(queries: Queries) -> Queries:
    """Split queries into one-word queries, each searched as often as the queries that have the word (section 4.6.1).

    >>> apart = split_into_terms(build_queries([("low tide", 3.0), ("tide", 1.0)]))
    >>> apart.texts, apart.frequency.tolist()
    (('low', 'tide'), [3.0, 4.0])
    """
    times: dict[str, float] = {}
    for text, frequency in zip(queries.texts, queries.frequency.tolist(), strict=True):
        for word in dict.fromkeys(split_words(text)):
            times[word] = times.get(word, 0.0) + frequency
    return build_queries(times.items(), queries.model)


def _parse_lines(lines: Iterable[str], seed: int) -> Queries:
    times: dict[str, int] = {}
    counted = False
    for line in _normalize_lines(lines):
        counted |= "\t" in line or line.startswith("{")
        for noted in parse_queries([line], 0.0):
            if isinstance(noted, ImportedQuery):
                times[noted.words] = times.get(noted.words, 0) + noted.times
    if counted:
        ordered = sorted(times.items(), key=lambda item: -item[1])
        return build_queries((words, float(count)) for words, count in ordered)
    words = list(times)
    order = rng_for(seed, "lab/query-frequencies").permutation(len(words)).tolist()
    shares = zipf_shares(len(words), ZIPF_EXPONENT).tolist()
    return build_queries(((words[at], share) for at, share in zip(order, shares, strict=True)), "zipf")


def _normalize_lines(lines: Iterable[str]) -> Iterator[str]:
    """Normalize the lines of a timed query file to lines with a count of one; drop empty queries."""
    for line in lines:
        query = line[13:].strip()
        if not _TIMESTAMP.match(line):
            yield line
        elif query:
            yield f"{query}\t1"
