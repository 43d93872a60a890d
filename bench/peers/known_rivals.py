"""What Vedette is held against in finding known items: tantivy and SQLite's FTS5, on titles and texts."""

import sqlite3
from collections.abc import Callable, Sequence

import tantivy
from tantivy import Occur, Query

__all__ = ["Rival", "fts5", "tantivy_plain", "tantivy_with_phrase"]

SHOWN = 10
MOST_WORDS = 64
# From a query to the places of the ten best pages.
Rival = Callable[[str], list[int]]
_FIELDS = ("title", "body")


def tantivy_plain(titles: Sequence[str], bodies: Sequence[str], shown: int = SHOWN) -> Rival:
    """BM25 of title and body, any word."""
    index = _Index(titles, bodies, shown)
    return lambda query: index.best(_words_anywhere(index, query, 1.0))


def tantivy_with_phrase(titles: Sequence[str], bodies: Sequence[str]) -> Callable[[float, float], Rival]:
    """The same with the title boosted, and the whole query as a phrase on top; both weights are tuned."""
    index = _Index(titles, bodies)

    def tuned(title: float, phrase: float) -> Rival:
        return lambda query: index.best(
            _words_anywhere(index, query, title) + _phrases(index, query, {"title": title * phrase, "body": phrase})
        )

    return tuned


class _Index:
    def __init__(self, titles: Sequence[str], bodies: Sequence[str], shown: int = SHOWN) -> None:
        self._shown = shown
        builder = tantivy.SchemaBuilder()
        for field in _FIELDS:
            builder.add_text_field(field, index_option="position")
        builder.add_unsigned_field("id", fast=True)
        self.schema = builder.build()
        index = tantivy.Index(self.schema)
        writer = index.writer(128_000_000, 1)
        for place, (title, body) in enumerate(zip(titles, bodies, strict=True)):
            row = {"id": place, "title": title, "body": body}
            writer.add_document(tantivy.Document.from_dict(row, self.schema))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._searcher = index.searcher()
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        self._analyzer = words.filter(tantivy.Filter.remove_long(40)).filter(tantivy.Filter.lowercase()).build()

    def words(self, query: str) -> list[str]:
        """As its default analyzer cuts them."""
        return self._analyzer.analyze(query)[:MOST_WORDS]

    def best(self, parts: list[Query]) -> list[int]:
        """The places of the best pages."""
        if not parts:
            return []
        found = self._searcher.search(Query.boolean_query([(Occur.Should, part) for part in parts]), self._shown)
        return [int(id_ or 0) for id_ in self._searcher.fast_field_values("id", [address for _, address in found.hits])]


def _words_anywhere(index: _Index, query: str, title: float) -> list[Query]:
    boosts = {"title": title, "body": 1.0}
    return [
        Query.boost_query(Query.term_query(index.schema, field, word), boosts[field])
        for word in index.words(query)
        for field in _FIELDS
    ]


def _phrases(index: _Index, query: str, boosts: dict[str, float]) -> list[Query]:
    words: list[str | tuple[int, str]] = [*index.words(query)]
    if len(words) < 2:
        return []
    return [Query.boost_query(Query.phrase_query(index.schema, field, words), boost) for field, boost in boosts.items()]


def fts5(titles: Sequence[str], bodies: Sequence[str], shown: int = SHOWN) -> Rival:
    """BM25 of title and body, any word."""
    rows = sqlite3.connect(":memory:")
    rows.execute("CREATE VIRTUAL TABLE page USING fts5(title, body)")
    pairs = zip(titles, bodies, strict=True)
    rows.executemany("INSERT INTO page (rowid, title, body) VALUES (?, ?, ?)", ((n, *p) for n, p in enumerate(pairs)))
    ask = f"SELECT rowid FROM page WHERE page MATCH ? ORDER BY rank LIMIT {shown}"  # noqa: S608 -- a number

    def best(query: str) -> list[int]:
        words = ["".join(letter if letter.isalnum() else " " for letter in word) for word in query.split()]
        terms = [f'"{word}"' for word in " ".join(words).split()[:MOST_WORDS]]
        return [int(place) for (place,) in rows.execute(ask, (" OR ".join(terms),))] if terms else []

    return best
