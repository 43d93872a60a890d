"""Search by meaning, with a real model file and with vectors learned from the pages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.runtime.indexing.test_index_builder import Web, page, web
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from vedette.adapters.clock import start_clock
from vedette.adapters.index_store.embedding_model import EmbeddingModel
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.index_store.vector_store import find_vector_damage, read_vector_info
from vedette.cli.main import main
from vedette.errors import UsageError
from vedette.index.fields import StoredPage, unpack_page
from vedette.runtime.indexing import embedding
from vedette.runtime.indexing.embedding import EmbeddingJob, make_vectors
from vedette.runtime.search.meaning import MeaningComparer, describe_meaning
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import SearchRequest

__all__ = ["web"]
# Words on one line mean the same to the tiny model; others mean nothing.
MEANINGS = (("car", "automobile", "vehicle"), ("repair", "mending", "fix"), ("tide", "ebb"), ("bread", "loaf", "bake"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in ONNX format, written by this test."""
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


def write_model(folder: Path, turn: int = 0) -> Path:
    """Write a folder with a model whose word vectors are looked up in a table."""
    (folder / "1_Pooling").mkdir(parents=True)
    words = {"[UNK]": 0, "[PAD]": 1} | {
        word: 2 + place for place, word in enumerate(word for line in MEANINGS for word in line)
    }
    tokenizer: Any = Tokenizer(WordLevel(words, unk_token="[UNK]"))  # noqa: S106 - the word for unknown words
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.zeros((len(words), len(MEANINGS)), np.float32)
    for meaning, line in enumerate(MEANINGS):
        table[[words[word] for word in line], (meaning + turn) % len(MEANINGS)] = 1.0
    shape: list[int | str] = ["batch", "length"]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, len(MEANINGS)])],
        [numpy_helper.from_array(table, "table")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, str(folder / "model.onnx"))
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    return folder


def write_pages(web: Web) -> None:
    """Write two relevant pages among others with other meanings."""
    pages = {
        "garage": page("Garage", "automobile mending"),
        "harbor": page("Harbor", "ebb"),
        "private": page("Bakery", "loaf", '<meta name="robots" content="noindex">'),
    }
    pages |= {f"other/{n}": page(f"Other {n}", f"number{n} of many") for n in range(30)}
    web.all_answer(pages)
    web.index()


def search(web: Web, setting: str, query: str, **filters: Any) -> list[str]:
    """Return the paths of results."""
    found = FolderSearch(web.folder, start_clock(web.now_s, 1.0), embedding_model=setting)
    return [each.url.rpartition("example.org/")[2] for each in found.search(SearchRequest(query, **filters)).results]


def embed(web: Web, setting: str, max_cpu_s: float = 60.0) -> None:
    """Run the background job once."""
    index = web.folder / "index"
    make_vectors(index, index / (index / "current").read_text().strip(), setting, max_cpu_s)


def test_a_model_finds_a_page_without_any_word_of_the_query(web: Web, model: Path) -> None:
    """Without vectors, nothing is found; with them, the right page comes first, within the filters, with a reason."""
    write_pages(web)
    assert search(web, "off", "car repair") == []
    assert search(web, str(model), "car repair") == []
    embed(web, str(model))
    assert search(web, str(model), "car repair")[:1] == ["garage"]
    assert search(web, str(model), "car repair", site="elsewhere.example") == []
    assert search(web, str(model), "car repair -mending") == []
    assert "private" not in search(web, str(model), "bread")
    found = FolderSearch(web.folder, start_clock(web.now_s, 1.0), embedding_model=str(model))
    why = found.search(SearchRequest("car repair")).results[0].why
    assert "close in meaning" in [reason.feature for reason in why]


def test_changed_pages_and_changed_models_are_embedded_again(web: Web, model: Path, tmp_path: Path) -> None:
    """A run without changes embeds nothing; changed pages and models are noticed by their checksums."""
    write_pages(web)
    index = web.folder / "index"
    embed(web, str(model))
    before = read_vector_info(index)
    assert before is not None
    assert (before.model, before.pages, before.wanted) == ("tiny", 32, 32)
    assert before.checksum == EmbeddingModel(model).checksum
    size = (index / before.file).stat().st_size
    embed(web, str(model))
    assert (index / before.file).stat().st_size == size
    web.answers("harbor", page("Harbor", "bake a loaf"))
    web.index()
    embed(web, str(model))
    assert search(web, str(model), "bread")[:1] == ["harbor"]
    other = write_model(tmp_path / "other", turn=1)
    assert search(web, str(other), "car repair") == []
    embed(web, str(other))
    assert read_vector_info(index) != before
    assert search(web, str(other), "car repair")[:1] == ["garage"]
    assert f"model other ({EmbeddingModel(other).checksum[:12]}); 32 pages" in describe_meaning(index, str(other))


@pytest.mark.parametrize("value", [b"\x00\x00\xc0\x7f", b"\xff\xff\x7f\x7f"])  # no number; the largest one
def test_damaged_vectors_are_made_again(web: Web, model: Path, value: bytes) -> None:
    """Until then, a search still finds pages by their words."""
    write_pages(web)
    index = web.folder / "index"
    embed(web, str(model))
    info = read_vector_info(index)
    assert info is not None
    (index / info.file).write_bytes(value * ((index / info.file).stat().st_size // 4))
    assert search(web, str(model), "automobile mending")[:1] == ["garage"]
    embed(web, str(model))
    assert find_vector_damage(index) == ""
    assert search(web, str(model), "car repair")[:1] == ["garage"]


def test_a_budget_ends_a_run_and_the_next_one_continues(web: Web, model: Path) -> None:
    """Without CPU time one page is embedded per run, and status says how many are missing."""
    write_pages(web)
    for pages in (1, 2):
        embed(web, str(model), 0.0)
        info = read_vector_info(web.folder / "index")
        assert info is not None
        assert (info.pages, info.wanted) == (pages, 32)
    assert "2 of 32 pages" in describe_meaning(web.folder / "index", str(model))


def test_an_unusable_model_is_reported_and_search_falls_back_to_words(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``vedette up`` refuses it in one line, and status says why; a server that lost its model searches by words."""
    write_pages(web)
    empty = tmp_path / "empty"
    embed(web, str(empty))
    assert "has no model.onnx" in describe_meaning(web.folder / "index", str(empty))
    assert search(web, str(empty), "automobile") == ["garage"]
    (tmp_path / "damaged").mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / "damaged" / name).write_text("no model")
    with pytest.raises(UsageError, match="cannot load an embedding model"):
        EmbeddingModel(tmp_path / "damaged")
    config = tmp_path / "vedette.toml"
    config.write_text(f"[serve]\nembedding_model = {json.dumps(str(empty))}\n")
    assert main(["up", "--config", str(config), "--data", str(tmp_path / "new")]) == 2
    assert "has no model.onnx" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_turning_it_off_removes_vectors_and_starts_nothing(web: Web, model: Path) -> None:
    """With "off", the indexer's job deletes what is left, and never starts a process."""
    write_pages(web)
    embed(web, str(model))
    index = web.folder / "index"
    job = EmbeddingJob(index, "off")
    job.step(PageTable(index / (index / "current").read_text().strip()), 1.0)
    job.close()
    assert not job.started_s
    assert not list(index.glob("vectors*"))


def test_learned_vectors_find_pages_like_those_that_words_find(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages on a question's topic come before others, even if they contain no word of it."""
    monkeypatch.setattr(embedding, "MIN_PAGES", 20)
    topics = {"sea": "tide ebb moon harbor wave salt", "bread": "oven flour yeast loaf crust dough"}
    pages = {}
    for topic, text in topics.items():
        words = text.split()
        for n in range(15):
            chosen = [words[(n + step) % len(words)] for step in (0, 1, 2)]
            pages[f"{topic}/{n}"] = page(f"{topic} {n}", " ".join(chosen))
    web.all_answer(pages)
    web.index()
    embed(web, "learned")
    assert "learned from these pages" in describe_meaning(web.folder / "index", "learned")
    question = "how does the moon with its tide and ebb work"
    off, learned = (search(web, setting, question, n=15) for setting in ("off", "learned"))
    assert all(path.startswith("sea/") for path in learned)
    assert len(learned) >= len(off)
    assert search(web, "learned", "moon") == search(web, "off", "moon")


def test_the_words_of_a_question_have_a_place_in_the_learned_space(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is projected into the space as pages are, even if no page matches its words."""
    monkeypatch.setattr(embedding, "MIN_PAGES", 20)
    pages = {
        f"{topic}/{n}": page(f"Page {topic} {n}", " ".join(f"{topic}{word}" for word in "abc" if word != "abc"[n]))
        for topic in ("tide", "bread", "moon", "car", "wool", "iron", "salt", "rain", "corn", "glass")
        for n in range(3)
    }
    web.all_answer(pages)
    web.index()
    embed(web, "learned")
    index = web.folder / "index"
    comparer = MeaningComparer(index, "learned")
    comparer.refresh()
    none = np.zeros(0, np.int64)
    question = ["where", "is", "saltb", "found"]
    near = comparer.compare(question, none, none.astype(float))
    assert near is not None
    urls = {each.url.rpartition("/")[0].rpartition("/")[2] for each in map(read_page(web), near.best(5).tolist())}
    assert urls == {"salt"}
    next(index.glob("vectors-*.space")).unlink()
    older = MeaningComparer(index, "learned")
    older.refresh()
    assert older.compare(question, none, none.astype(float)) is None


def read_page(web: Web) -> Callable[[int], StoredPage]:
    """Return a function that reads what the index stores for a page id."""
    index = web.folder / "index"
    table = PageTable(index / (index / "current").read_text().strip())

    def read(id_: int) -> StoredPage:
        stored = unpack_page(table.read_blob(id_))
        assert stored is not None
        return stored

    return read
