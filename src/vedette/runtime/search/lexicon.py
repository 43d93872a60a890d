"""Lexicon of words that users may see: other forms of a word, spelling corrections, query completions.

It is built from public pages alone, so that no one learns a word of a private page by misspelling it. It is computed in
the background, stored in its index generation, and read by the servers.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.adapters.files.atomic import replace_file
from vedette.adapters.files.npz import UNREADABLE
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.index_store.stemming import LANGUAGES, stem
from vedette.adapters.index_store.tantivy_index import IndexReader, open_reader
from vedette.index.fields import PUBLIC
from vedette.index.query.retrieval import TermSet
from vedette.index.query.spelling import ROW_MASK, DeletionIndex, SpellChecker, build_spell_checker
from vedette.index.query.suggestions import Suggestions, build_suggestions
from vedette.index.query.vocabulary import Vocabulary, build_vocabulary
from vedette.policy import Ints

FILE = "lexicon"
FORMAT = 2  # 1 was a pickle, which is never read: it is built again
MAX_WORDS = 300_000
MAX_PHRASES = 100_000
# The number of pages a language needs to count.
MIN_LANGUAGE_SHARE = 0.02
MAX_LANGUAGES = 4
_WORD_ARRAYS = ("starts", "df", "stem_keys", "stem_rows")
_SPELLING_ARRAYS = ("lengths", "letters", "pairs", "entries")
_PHRASE_ARRAYS = ("starts", "filed", "table")
_PHRASE_TEXTS = ("phrases", "forms", "words")


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
    save_lexicon(generation, Lexicon(vocabulary, build_spell_checker(vocabulary), phrases))


def save_lexicon(generation: Path, lexicon: Lexicon) -> None:
    """Save a lexicon in an index generation: arrays and text in a zip file, which has a checksum of each."""
    words, deletions, phrases = lexicon.vocabulary, lexicon.spelling.deletions, lexicon.suggestions
    about = {"format": FORMAT, "languages": words.languages, "most_pages": lexicon.spelling.most_pages}
    columns = {f"words_{name}": getattr(words, name) for name in _WORD_ARRAYS}
    columns |= {f"spelling_{name}": getattr(deletions, name) for name in _SPELLING_ARRAYS}
    columns |= {f"phrases_{name}": getattr(phrases, name) for name in _PHRASE_ARRAYS}
    texts = {
        "about": json.dumps(about).encode(),
        "words_text": words.text,
        "spelling_words": _join_lines(deletions.words),
        **{f"phrases_{name}": _join_lines(getattr(phrases, name)) for name in _PHRASE_TEXTS},
    }
    columns |= {name: np.frombuffer(text, np.uint8) for name, text in texts.items()}
    columns["spelling_pages"] = np.array(lexicon.spelling.pages, np.int64)
    with replace_file(generation / FILE) as file:
        np.savez(file, allow_pickle=False, **columns)


def read_lexicon(generation: Path) -> Lexicon | None:
    """Read the lexicon of an index generation; None if there is none, it is damaged, or of another version."""
    try:
        # The file may come from someone else's folder: nothing in it is ever executed.
        with (generation / FILE).open("rb") as file, np.load(file, allow_pickle=False) as columns:
            return _build_lexicon({name: columns[name] for name in columns.files})
    except UNREADABLE:
        return None


def _build_lexicon(columns: dict[str, np.ndarray]) -> Lexicon | None:
    """Build the lexicon from the columns of its file; None if they do not fit together."""
    about = json.loads(columns["about"].tobytes())
    if about["format"] != FORMAT:
        return None
    word_arrays, spelling_arrays, phrase_arrays = (
        {name: columns[f"{part}_{name}"] for name in names}
        for part, names in (("words", _WORD_ARRAYS), ("spelling", _SPELLING_ARRAYS), ("phrases", _PHRASE_ARRAYS))
    )
    text = columns["words_text"].tobytes()
    vocabulary = Vocabulary(text=text, languages=tuple(about["languages"]), stem=stem, **word_arrays)
    known = DeletionIndex(words=_split_lines(columns["spelling_words"]), **spelling_arrays)
    texts = [_split_lines(columns[f"phrases_{name}"]) for name in _PHRASE_TEXTS]
    phrases = Suggestions(texts[0], texts[1], texts[2], **phrase_arrays, vocabulary=vocabulary)
    pages = columns["spelling_pages"].tolist()
    fits = (
        _is_index(vocabulary.starts, len(vocabulary), len(text))
        and _is_index(phrases.starts, len(phrases.words), len(phrases.filed))
        and len(vocabulary.stem_keys) == len(vocabulary.stem_rows)
        and bool((vocabulary.stem_rows < len(vocabulary)).all())
        and len(known.words) == len(known.lengths) == len(known.letters) == len(known.pairs) == len(pages)
        and bool(((known.entries & ROW_MASK) < len(known.words)).all())
        and len(phrases.phrases) == len(phrases.forms) == len(phrases.table)
        and bool(((phrases.filed >= 0) & (phrases.filed < len(phrases.forms))).all())
    )
    return (
        Lexicon(vocabulary, SpellChecker(vocabulary, known, pages, int(about["most_pages"])), phrases) if fits else None
    )


def _is_index(starts: Ints, rows: int, end: int) -> bool:
    """Check whether the starts of a lexicon's rows go up from 0 to the end of what they index."""
    return len(starts) == rows + 1 and starts[0] == 0 and starts[-1] == end and bool((np.diff(starts) >= 0).all())


def _join_lines(texts: tuple[str, ...]) -> bytes:
    """Join the texts of a lexicon; they have no line breaks."""
    return "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")


def _split_lines(column: np.ndarray) -> tuple[str, ...]:
    return tuple(column.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1])


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
