"""Embedding model: turn texts into vectors with a sentence encoder in ONNX format, from files of the operator.

The folder has ``model.onnx`` (or ``onnx/model.onnx``) and ``tokenizer.json``, as models for sentence-transformers are
published. Where they are present, ``1_Pooling/config.json`` says how words are pooled, ``sentence_bert_config.json``
how long a text may be, and ``config_sentence_transformers.json`` what to put before queries and passages. Nothing is
ever downloaded. The libraries of the extra ``semantic`` are imported when a model is opened, and not before.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from vedette.errors import UsageError
from vedette.index.semantic.latent_space import Vectors, normalize_rows

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
TOKENIZER_FILE = "tokenizer.json"
MAX_TOKENS = 256
BATCH = 16
_READ_BYTES = 1 << 20


def explain_unusable_model(folder: Path) -> str:
    """Return why a folder cannot be used as an embedding model, and what to do; empty if it can."""
    model = _find_model(folder)
    if model is None:
        return f"{folder} has no {MODEL_FILES[0]}: set serve.embedding_model to the folder of a model in ONNX format"
    if not (folder / TOKENIZER_FILE).is_file():
        return f"{folder} has no {TOKENIZER_FILE}: copy it from where the model came from"
    if missing := [name for name in ("onnxruntime", "tokenizers") if find_spec(name) is None]:
        return f"serve.embedding_model needs {' and '.join(missing)}: pip install 'vedette[semantic]'"
    return ""


def compute_checksum(folder: Path) -> str:
    """Compute the SHA-256 checksum of a model and its tokenizer; it identifies the vectors that they make."""
    digest = hashlib.sha256()
    for path in (_find_model(folder), folder / TOKENIZER_FILE):
        if path is not None:
            with path.open("rb") as file:
                while block := file.read(_READ_BYTES):
                    digest.update(block)
    return digest.hexdigest()


class EmbeddingModel:
    """A sentence encoder; runs on one core."""

    def __init__(self, folder: Path) -> None:
        if problem := explain_unusable_model(folder):
            raise UsageError(problem)
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(
                str(_find_model(folder)), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        except Exception as error:  # both libraries raise their own kinds
            reason = " ".join(str(error).split())[:200]
            raise UsageError(f"cannot load an embedding model from {folder}: {reason}") from error
        longest = _read_json(folder / "sentence_bert_config.json").get("max_seq_length")
        self._tokenizer.enable_truncation(min(longest, MAX_TOKENS) if isinstance(longest, int) else MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._is_first_word = bool(_read_json(folder / "1_Pooling" / "config.json").get("pooling_mode_cls_token"))
        prompts = _read_json(folder / "config_sentence_transformers.json").get("prompts")
        self._prompts: dict[str, str] = prompts if isinstance(prompts, dict) else {}
        self.checksum = compute_checksum(folder)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query."""
        vector: Vectors = self._embed([self._prompts.get("query", "") + text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of passages; texts of similar length are processed together."""
        before = self._prompts.get("passage") or self._prompts.get("document") or ""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        batches = [
            self._embed([before + texts[place] for place in order[start : start + BATCH]])
            for start in range(0, len(order), BATCH)
        ]
        vectors = np.concatenate(batches)
        result = np.empty_like(vectors)
        result[order] = vectors
        return result

    def _embed(self, texts: list[str]) -> Vectors:
        found = self._tokenizer.encode_batch(texts)
        ids = np.array([each.ids for each in found], np.int64)
        mask = np.array([each.attention_mask for each in found], np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        output = self._session.run(None, {name: given[name] for name in given if name in self._inputs})[0]
        if output.ndim == 2:  # the model pools by itself
            return normalize_rows(output)
        if self._is_first_word:
            return normalize_rows(output[:, 0])
        return normalize_rows((output * mask[..., None]).sum(axis=1) / np.maximum(mask.sum(axis=1, keepdims=True), 1))


def _find_model(folder: Path) -> Path | None:
    return next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)


def _read_json(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text("utf-8"))
        return found if isinstance(found, dict) else {}
    return {}
