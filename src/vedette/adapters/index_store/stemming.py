"""Stemming: the Snowball stemmers of Tantivy.

Nothing is stemmed in the index: stems are computed when a vocabulary is built, and for the words of a query
(``index.query.vocabulary``). So a stem is a key for comparison, and never shown.
"""

import re
from collections.abc import Sequence
from functools import cache

import tantivy

from vedette.adapters.index_store.tantivy_query import is_utf8

LANGUAGES = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
# What the tokenizer treats as a space, and nothing else.
_SPACE = re.compile(r"[ \t\n\f\r]")


def stem(language: str, words: Sequence[str]) -> list[str]:
    """Return the stem of each lower-case word in a language (ISO 639-1); other languages stem nothing.

    >>> stem("en", ["caches", "caching", "cached"])
    ['cach', 'cach', 'cach']
    >>> stem("zu", ["amanzi"])
    ['amanzi']
    """
    if language not in LANGUAGES or not words:
        return list(words)
    analyzer = _build_analyzer(language)
    text = " ".join(words)
    if all(words) and len(_SPACE.findall(text)) == len(words) - 1 and is_utf8(text):
        stems = analyzer.analyze(text)
        if len(stems) == len(words):
            return stems
    return [_stem_word(analyzer, word) for word in words]


@cache
def _build_analyzer(language: str) -> tantivy.TextAnalyzer:
    filter_ = tantivy.Filter.stemmer(LANGUAGES[language])
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).filter(filter_).build()


def _stem_word(analyzer: tantivy.TextAnalyzer, word: str) -> str:
    """Return the stem of a single word, and anything else unchanged."""
    stems = analyzer.analyze(word) if is_utf8(word) else []
    return stems[0] if len(stems) == 1 and not _SPACE.search(word) else word
