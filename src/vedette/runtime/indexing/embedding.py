"""Embedding job: make the vectors of pages beside the indexer, in a background process with a budget of CPU time.

With ``serve.embedding_model = "learned"`` the vectors are learned from the crawled pages, all at once, when the index
has grown. With a model, each page that is new or has changed is embedded: pages that many people saw in results first,
then important ones. A run stops after ``MAX_CPU_S``, and the next one starts after a pause of several times that, so
that embedding takes a fixed share of one core at most, whatever the model costs.

python -m vedette.runtime.indexing.embedding INDEX GENERATION SETTING
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from time import process_time

import numpy as np
import xxhash

from vedette.adapters.index_store.embedding_model import EmbeddingModel, explain_unusable_model
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.index_store.vector_store import (
    MIN_USED_SHARE,
    VectorInfo,
    VectorReader,
    VectorWriter,
    find_vector_damage,
    read_vector_info,
    remove_vectors,
    seal_vectors,
    write_space,
    write_vector_info,
)
from vedette.errors import UsageError
from vedette.index.fields import PUBLIC, unpack_page
from vedette.index.semantic.latent_space import learn_space
from vedette.index.semantic.parts import split_parts
from vedette.policy import Ints, rng_for
from vedette.runtime.processes.background import BackgroundJob, run_in_background
from vedette.runtime.search.meaning import LEARNED, OFF
from vedette.runtime.search.reputation_store import ReputationFile

# A run uses this much CPU time, and the pause after it is this many times as long: a quarter of a core.
MAX_CPU_S, REST_FACTOR = 30.0, 3.0
# Vectors are searched one by one, in memory: of more pages, the most important ones have vectors.
MAX_PAGES = 200_000
# Fewer pages have too few words in common to learn from; more than this many are sampled.
MIN_PAGES, MAX_SAMPLE = 200, 20_000
RELEARN_SHARE = 0.2
PROJECTED = 2000
INFO_EVERY_PAGES = 500


class EmbeddingJob(BackgroundJob):
    """Background job that makes vectors of new and changed pages when due; none if ``setting`` is "off"."""

    def __init__(self, index: Path, setting: str) -> None:
        super().__init__("vedette.runtime.indexing.embedding", REST_FACTOR)
        self._index, self._setting = index, setting
        self._seen: tuple[int, int] = (0, 0)
        self._is_first = True

    def step(self, table: PageTable, now_s: float) -> None:
        """Start the embedding job if it is due."""
        if self._setting == OFF:
            if self._is_first:
                self._is_first = False
                remove_vectors(self._index)
            return
        if not self.is_ready(now_s):
            return
        rows = table.rows
        seen = len(table.indexed), int(rows["text_at"].max(initial=0))
        if seen[0] and self._is_due(seen):
            self._seen = seen
            self.start(now_s, str(self._index), str(table.folder), self._setting)

    def _is_due(self, seen: tuple[int, int]) -> bool:
        if self._setting == LEARNED:
            return seen[0] >= MIN_PAGES and abs(seen[0] - self._seen[0]) > RELEARN_SHARE * self._seen[0]
        info = read_vector_info(self._index)
        return seen != self._seen or info is None or (not info.problem and info.pages < info.wanted)


def make_vectors(index: Path, generation: Path, setting: str, max_cpu_s: float = MAX_CPU_S) -> None:
    """Make the vectors of pages that have none yet, as far as the budget of CPU time allows."""
    table = PageTable(generation)
    if setting == LEARNED:
        learn_vectors(index, table)
        return
    try:
        model = EmbeddingModel(Path(setting))
    except UsageError as error:
        write_vector_info(index, VectorInfo(setting, problem=str(error)))
        return
    _embed_pages(index, table, model, Path(setting).name, max_cpu_s)


def learn_vectors(index: Path, table: PageTable) -> None:
    """Learn the vectors of all pages from the words of public ones."""
    ids = table.indexed
    public = ids[[held == PUBLIC for held in table.read_access(ids)]] if len(ids) else ids
    if len(public) < MIN_PAGES:
        remove_vectors(index)
        return
    started_s = process_time()
    rng = rng_for(len(public), "index/latent_space")
    sample = np.sort(rng.choice(public, min(len(public), MAX_SAMPLE), replace=False))
    space = learn_space(table.read_forward(sample), rng)
    if space is None:
        remove_vectors(index)
        return
    ids = _order_pages(table)[:MAX_PAGES]
    checksum = sha256(space.axes.tobytes()).hexdigest()
    info = VectorInfo(LEARNED, checksum, space.axes.shape[1], f"vectors-{checksum[:16]}", len(ids), len(ids))
    remove_vectors(index, read_file_name(index))
    for name in (info.file, f"{info.file}.parts", f"{info.file}.space"):
        (index / name).unlink(missing_ok=True)  # readers may have mapped them
    write_space(index, info, space)
    with closing(VectorWriter(index, info)) as writer:
        for start in range(0, len(ids), PROJECTED):
            some = ids[start : start + PROJECTED]
            for id_, vector in zip(some.tolist(), space.project(table.read_forward(some)), strict=True):
                writer.add(id_, 0, (0,), vector)
    page_ms = round(1000 * (process_time() - started_s) / len(ids), 3)
    write_vector_info(index, seal_vectors(index, info)._replace(page_ms=page_ms))
    remove_vectors(index, info.file)


def read_file_name(index: Path) -> str:
    """Return the name of the current file of vectors; a placeholder if there is none."""
    info = read_vector_info(index)
    return info.file if info is not None and info.file else "none"


def _embed_pages(index: Path, table: PageTable, model: EmbeddingModel, name: str, max_cpu_s: float) -> None:
    """Embed pages that are new or have changed, the most important first; another model starts again."""
    info, ids = _open_info(index, model, name), _order_pages(table)[:MAX_PAGES]
    reader = VectorReader(index)
    reader.refresh()
    known = dict(zip(reader.parts.ids.tolist(), reader.prints.tolist(), strict=True))
    current = sum(id_ in known for id_ in ids.tolist())
    started_s, made = process_time(), 0
    with closing(VectorWriter(index, info)) as writer:
        for id_, print_, blob in _list_changed(table, ids, known):
            stored = unpack_page(blob)
            if stored is not None:
                parts = split_parts(stored)
                vectors = model.embed_passages([part.text for part in parts])
                writer.add(id_, print_, [part.start for part in parts], vectors)
                made, current = made + 1, current + (id_ not in known)
            used_s = process_time() - started_s
            if made % INFO_EVERY_PAGES == 0:
                write_vector_info(index, info._replace(pages=current, wanted=len(ids)))
            if used_s >= max_cpu_s:
                wanted = len(ids)
                break
        else:
            wanted = current  # the text of any others cannot be read
    page_ms = round(1000 * (process_time() - started_s) / made, 1) if made else info.page_ms
    sealed = seal_vectors(index, info) if made else info
    write_vector_info(index, sealed._replace(pages=current, wanted=wanted, page_ms=page_ms))


def _open_info(index: Path, model: EmbeddingModel, name: str) -> VectorInfo:
    """Return the current vectors if they are sound, of the same model, and few are outdated; start new ones if not."""
    info = read_vector_info(index)
    if info is not None and info.checksum == model.checksum and info.file and not find_vector_damage(index):
        reader = VectorReader(index)
        reader.refresh()
        if len(reader.parts.rows) >= MIN_USED_SHARE * len(reader.parts.vectors):
            return info._replace(model=name, problem="")
    remove_vectors(index)
    size = len(model.embed_query("size"))
    info = VectorInfo(name, model.checksum, size, f"vectors-{model.checksum[:16]}")
    write_vector_info(index, info)
    return info


def _list_changed(table: PageTable, ids: Ints, known: dict[int, int]) -> Iterator[tuple[int, int, bytes]]:
    """List the pages whose text has no vectors yet, with a fingerprint of the text and the text itself."""
    for id_ in ids.tolist():
        blob = table.read_blob(id_)
        print_ = xxhash.xxh64_intdigest(blob)
        if blob and known.get(id_) != print_:
            yield id_, print_, blob


def _order_pages(table: PageTable) -> Ints:
    """Order pages by how many people saw them in results, then by importance."""
    ids = table.indexed
    looks = np.zeros(len(ids))
    file = ReputationFile(table.folder)
    file.refresh()
    if file.reputation is not None and len(file.reputation.page):
        order = np.argsort(file.reputation.page, kind="stable")
        pages = file.reputation.page[order]
        places = np.minimum(np.searchsorted(pages, ids), len(pages) - 1)
        looks = np.where(pages[places] == ids, file.reputation.looks[order][places], 0.0)
    return ids[np.lexsort((ids, -table.read_signals(ids).importance, -looks))]


def explain_unusable_setting(setting: str) -> str:
    """Return why a value of ``serve.embedding_model`` cannot be used; empty if it can."""
    return "" if setting in {OFF, LEARNED} else explain_unusable_model(Path(setting))


if __name__ == "__main__":
    with run_in_background():
        make_vectors(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
