"""Lexicon of words that users may see: other forms of a word, spelling corrections, query completions.

It is built from public pages alone, so that no one learns a word of a private page by misspelling it. It is computed in
the background, stored in its index generation, and read by the servers.
"""

import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.index_store.stemming import LANGUAGES, stem
from vedette.adapters.index_store.tantivy_index import IndexReader, open_reader
from vedette.index.fields import PUBLIC
from vedette.index.query.retrieval import TermSet
from vedette.index.query.spelling import SpellChecker, build_spell_checker
from vedette.index.query.suggestions import Suggestions, build_suggestions
from vedette.index.query.vocabulary import Vocabulary, build_vocabulary

FILE = "lexicon"
MAX_WORDS = 300_000
MAX_PHRASES = 100_000
# The number of pages a language needs to count.
MIN_LANGUAGE_SHARE = 0.02
MAX_LANGUAGES = 4


class Lexicon(NamedTuple):
    """The lexicon of an index: vocabulary, spelling and query suggestions."""

    vocabulary: Vocabulary
    spelling: SpellChecker
    suggestions: Suggestions


def build_empty_lexicon() -> Lexicon:
    """Build the lexicon of an index without words."""
    vocabulary = build_vocabulary((), stem, ())
    return Lexicon(vocabulary, build_spell_checker(vocabulary), build_suggestions((), vocabulary))


def write_lexicon(generation: Path) -> None:
    """Build the lexicon of an index generation from its current pages, and write it there."""
    table, reader = PageTable(generation), open_reader(generation / "tantivy")
    vocabulary = build_vocabulary(_read_words(reader), stem, _find_languages(table))
    phrases = build_suggestions(_read_phrases(table), vocabulary)
    lexicon = Lexicon(vocabulary, build_spell_checker(vocabulary), phrases)
    draft = generation / f"{FILE}.new"
    draft.write_bytes(pickle.dumps(lexicon, protocol=5))
    draft.replace(generation / FILE)


def read_lexicon(generation: Path) -> Lexicon | None:
    """Read the lexicon of an index generation; None if there is none, or another program version wrote it."""
    try:
        lexicon = pickle.loads((generation / FILE).read_bytes())  # noqa: S301 - our own file, in a folder of our own
    except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, TypeError, ValueError):
        return None
    return lexicon if isinstance(lexicon, Lexicon) else None


def _read_words(reader: IndexReader) -> Iterator[tuple[str, int]]:
    public = TermSet("access", (PUBLIC,))
    only = public if reader.find(public, 1, count=True).total < len(reader) else None
    for field in ("body", "title"):
        yield from reader.list_terms(field, "", MAX_WORDS, only)


def _find_languages(table: PageTable) -> list[str]:
    ids = table.indexed
    numbers, counts = np.unique(table.rows["language"][ids], return_counts=True)
    pages = Counter({table.get_name(int(number)): int(count) for number, count in zip(numbers, counts, strict=True)})
    common = [
        name for name, count in pages.most_common() if name in LANGUAGES and count >= MIN_LANGUAGE_SHARE * len(ids)
    ]
    return common[:MAX_LANGUAGES]


def _read_phrases(table: PageTable) -> Iterator[tuple[str, float]]:
    """Yield titles and first headings of public pages for the lexicon, weighted by importance."""
    ids = table.indexed
    signals = table.read_signals(ids)
    best = np.argsort(-signals.importance, kind="stable")[:MAX_PHRASES]
    access = table.read_access(ids[best])
    for id_, weight, open_to in zip(ids[best].tolist(), signals.importance[best].tolist(), access, strict=True):
        stored = table.read_stored(id_) if open_to == PUBLIC else None
        if stored is not None:
            yield stored.title, 1.0 + weight
            yield from ((heading, 0.5 * weight) for heading in stored.headings[:2])
