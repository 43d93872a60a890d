"""Convert a BERT encoder from safetensors to ONNX, for machines that have only the former.

Models are usually offered in both formats; then this is not needed. It needs the package ``onnx``.

    python bench/peers/bert_onnx.py SOURCE TARGET    folders: of config.json, model.safetensors and tokenizer.json
"""

import json
import shutil
import struct
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from vedette.policy import Floats

OPSET = 20
_KINDS = {"F32": np.float32, "F16": np.float16, "I64": np.int64}


def read_tensors(path: Path) -> dict[str, Floats]:
    """Read the tensors of a safetensors file: the length of a JSON header, the header, and raw data."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    head, data = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    head.pop("__metadata__", None)
    found = {}
    for name, about in head.items():
        start, end = about["data_offsets"]
        found[name] = np.frombuffer(data[start:end], _KINDS[about["dtype"]]).reshape(about["shape"])
    return found


class _Graph:
    """Nodes and constants of an ONNX graph, with names made up as they are added."""

    def __init__(self, tensors: dict[str, Floats]) -> None:
        self.onnx: Any = import_module("onnx")
        self.tensors = tensors
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def add(self, kind: str, *inputs: str, **options: object) -> str:
        """Add a node; return the name of its output."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **options))
        return name

    def constant(self, value: object, name: str = "") -> str:
        """Add a constant; return its name."""
        name = name or f"constant_{len(self.constants)}"
        self.constants[name] = self.onnx.numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def linear(self, x: str, layer: str) -> str:
        """Apply a linear layer."""
        weights = self.constant(self.tensors[f"{layer}.weight"].T, f"{layer}.w")
        return self.add("Add", self.add("MatMul", x, weights), self.constant(self.tensors[f"{layer}.bias"]))

    def normalize(self, x: str, layer: str, epsilon: float) -> str:
        """Normalize a layer."""
        scale, bias = (self.constant(self.tensors[f"{layer}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)


def convert(source: Path, target: Path) -> None:
    """Write ``model.onnx`` and ``tokenizer.json`` of a BERT encoder into a folder."""
    config = json.loads((source / "config.json").read_text())
    graph = _Graph(read_tensors(source / "model.safetensors"))
    x, mask = _embed(graph, config["layer_norm_eps"])
    for layer in range(config["num_hidden_layers"]):
        x = _encode(graph, x, mask, f"encoder.layer.{layer}", config)
    graph.nodes.append(graph.onnx.helper.make_node("Identity", [x], ["last_hidden_state"]))
    target.mkdir(parents=True, exist_ok=True)
    _save(graph, target / "model.onnx", config["hidden_size"])
    shutil.copy(source / "tokenizer.json", target / "tokenizer.json")


def _embed(graph: _Graph, epsilon: float) -> tuple[str, str]:
    tables = [graph.constant(graph.tensors[f"embeddings.{kind}_embeddings.weight"], kind) for kind in _TABLES]
    length = graph.add("Gather", graph.add("Shape", "input_ids"), graph.constant(np.int64(1)))
    places = graph.add("Range", graph.constant(np.int64(0)), length, graph.constant(np.int64(1)))
    parts = [
        graph.add("Gather", table, row)
        for table, row in zip(tables, ("input_ids", places, "token_type_ids"), strict=True)
    ]
    x = graph.normalize(
        graph.add("Add", graph.add("Add", parts[0], parts[2]), parts[1]), "embeddings.LayerNorm", epsilon
    )
    shown = graph.add("Cast", graph.add("Unsqueeze", "attention_mask", graph.constant(np.array([1, 2]))), to=1)
    hidden = graph.add("Sub", graph.constant(np.float32(1)), shown)
    return x, graph.add("Mul", hidden, graph.constant(np.float32(-1e9)))


_TABLES = ("word", "position", "token_type")


def _encode(graph: _Graph, x: str, mask: str, layer: str, config: dict[str, Any]) -> str:
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    split = graph.constant(np.array([0, 0, heads, hidden // heads]))

    def part(name: str) -> str:
        flat = graph.linear(x, f"{layer}.attention.self.{name}")
        return graph.add("Transpose", graph.add("Reshape", flat, split), perm=[0, 2, 1, 3])

    queries, keys, values = part("query"), part("key"), part("value")
    dots = graph.add("MatMul", queries, graph.add("Transpose", keys, perm=[0, 1, 3, 2]))
    scaled = graph.add("Mul", dots, graph.constant(np.float32((hidden // heads) ** -0.5)))
    shares = graph.add("Softmax", graph.add("Add", scaled, mask), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", shares, values), perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", mixed, graph.constant(np.array([0, 0, hidden])))
    attended = graph.linear(joined, f"{layer}.attention.output.dense")
    x = graph.normalize(graph.add("Add", attended, x), f"{layer}.attention.output.LayerNorm", config["layer_norm_eps"])
    wide = graph.add("Gelu", graph.linear(x, f"{layer}.intermediate.dense"))
    narrow = graph.linear(wide, f"{layer}.output.dense")
    return graph.normalize(graph.add("Add", narrow, x), f"{layer}.output.LayerNorm", config["layer_norm_eps"])


def _save(graph: _Graph, path: Path, hidden: int) -> None:
    helper, types = graph.onnx.helper, graph.onnx.TensorProto
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, types.INT64, ["batch", "length"]) for name in names]
    outputs = [helper.make_tensor_value_info("last_hidden_state", types.FLOAT, ["batch", "length", hidden])]
    made = helper.make_graph(graph.nodes, "bert", inputs, outputs, list(graph.constants.values()))
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    graph.onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
