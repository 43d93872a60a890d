"""Meaning of queries: compare pages with a query by their vectors, as far as these were made."""

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from vedette.adapters.index_store.embedding_model import EmbeddingModel
from vedette.adapters.index_store.vector_store import VectorInfo, VectorReader, read_vector_info
from vedette.errors import UsageError
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.index.semantic.latent_space import Vectors
from vedette.index.semantic.similarity import Similarity, blend_query, compute_cosines, measure_similarity
from vedette.policy import Floats, Ints
from vedette.serve.rank.scoring import NAME_WORDS
from vedette.text import hash_word

# Values of serve.embedding_model besides the folder of a model.
OFF, LEARNED = "off", "learned"
# How much a learned space counts beside a model, which has read more than these pages, and how much the best pages by
# words count there beside the query.
LEARNED_TRUST, LEARNED_EXAMPLE_SHARE = 0.35, 1.0
REFRESH_EVERY_S = 5.0
MAX_CACHED_QUERIES = 256
SHOWN_CHECKSUM = 12


class MeaningComparer:
    """Compare pages with the meaning of a query; loads the model at the first query that needs it."""

    def __init__(self, index: Path, setting: str) -> None:
        self._reader = VectorReader(index)
        self._setting = setting
        self._model: EmbeddingModel | None = None
        self._is_unusable = False
        self._refreshed_s = float("-inf")
        self._embed = lru_cache(MAX_CACHED_QUERIES)(self._embed_query)

    def refresh(self) -> bool:
        """Load vectors that were made since, every few seconds; return whether there were any."""
        now_s = time.monotonic()
        if now_s - self._refreshed_s < REFRESH_EVERY_S:
            return False
        self._refreshed_s = now_s
        return self._reader.refresh()

    @np.errstate(invalid="ignore", over="ignore")  # damaged vectors
    def compare(self, words: Sequence[str], best: Ints, scores: Floats) -> Similarity | None:
        """Compare all pages with a query and the best pages by words; None if there is nothing to compare with.

        In a learned space, a name of a few words is found by its words alone.
        """
        parts, info = self._reader.parts, self._reader.info
        if info is None or not len(parts.ids):
            return None
        examples = parts.average(best, scores)
        if self._setting == LEARNED:
            if info.model != LEARNED or len(words) <= NAME_WORDS:
                return None
            query, trust = blend_query(self._project(words), examples, LEARNED_EXAMPLE_SHARE), LEARNED_TRUST
        else:
            query, trust = self._blend(words, examples, info.checksum), 1.0
        return None if query is None else measure_similarity(parts, query, trust)

    def get_examples(self, best: Ints, scores: Floats) -> Vectors | None:
        """Return the sum of the vectors of the best pages by words, by their scores; None if none has one."""
        return self._reader.parts.average(best, scores)

    @np.errstate(invalid="ignore", over="ignore")  # damaged vectors
    def compare_cosines(self, words: Sequence[str], examples: Vectors | None) -> tuple[Ints, Floats] | None:
        """Compare all pages with a query and examples from anywhere; None if a model has not embedded them."""
        parts, info = self._reader.parts, self._reader.info
        if info is None or not len(parts.ids) or self._setting == LEARNED:
            return None
        query = self._blend(words, examples, info.checksum)
        return None if query is None or not query.any() else (parts.ids, compute_cosines(parts, query))

    def _blend(self, words: Sequence[str], examples: Vectors | None, checksum: str) -> Vectors | None:
        """Blend the query's vector with examples; None if the vectors of pages were made by another model."""
        own = self._embed(" ".join(words), checksum)
        size = self._reader.parts.vectors.shape[1]
        if own is None or len(own) != size or (examples is not None and len(examples) != size):
            return None
        return blend_query(own, examples)

    def _project(self, words: Sequence[str]) -> Vectors | None:
        """Project the words of a query into the learned space; None if vectors were made without keeping it."""
        space = self._reader.space
        if space is None or not len(space.words):
            return None
        lengths = np.zeros((1, len(TEXT_FIELDS)), np.int64)
        lengths[0, TEXT_FIELDS.index("body")] = len(words)
        own: Vectors = space.project(ForwardTokens(np.array([hash_word(word) for word in words], np.uint32), lengths))[
            0
        ]
        return own

    def _embed_query(self, text: str, checksum: str) -> Vectors | None:
        """Embed a query; None if the vectors of pages were made by another model."""
        if self._model is None and not self._is_unusable:
            try:
                self._model = EmbeddingModel(Path(self._setting))
            except UsageError:  # the indexer reports it
                self._is_unusable = True
        if self._model is None or self._model.checksum != checksum:
            return None
        return self._model.embed_query(text)


def describe_meaning(index: Path, setting: str) -> str:
    """Describe in one line whether search compares meaning, and by what.

    >>> describe_meaning(Path("nowhere"), "off"), describe_meaning(Path("nowhere"), "learned")
    ('off', 'waiting for pages to learn from')
    """
    if setting == OFF:
        return "off"
    info = read_vector_info(index)
    if info is None:
        return "waiting for pages to learn from" if setting == LEARNED else "waiting for pages to embed"
    return f"off: {info.problem}" if info.problem else _describe_vectors(info)


def _describe_vectors(info: VectorInfo) -> str:
    by = "learned from these pages" if info.model == LEARNED else f"model {info.model}"
    pages = f"{info.pages:,}" if info.pages >= info.wanted else f"{info.pages:,} of {info.wanted:,}"
    return f"{by} ({info.checksum[:SHOWN_CHECKSUM]}); {pages} pages, {info.page_ms:g} ms of CPU time each"
