"""MkDocs hook: generate the reference of HTTP API, metrics and Python names from the source."""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

import vedette
from vedette.version import __version__
from vedette.web.api.openapi import build_openapi
from vedette.web.console.ports.monitoring import CalibrationBin, CrawlStatus, Monitoring
from vedette.web.console.ui.chart_metrics import export_reason_counts
from vedette.web.metrics import Metrics

Json = Mapping[str, Any]
_ENDPOINTS: Final = (
    "A running server shows this page at `/api/docs`, and the same as OpenAPI 3.1 at `/api/openapi.json`."
)
_SCRAPED: Final = (
    "What `/metrics` returns for Prometheus, for all server processes together. A metric appears when it has its first "
    "value. [Monitoring](../deploying.md#monitoring) shows how to scrape it."
)
_NAMES: Final = (
    "Everything that `import vedette` gives you, with signatures and docstrings from the source. "
    "[Python API](../python-api.md) shows how to use it."
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference."""
    for name, write in {"api": write_api, "metrics": write_metrics, "python": write_python}.items():
        files.append(File.generated(config, f"reference/{name}.md", content=write()))
    return files


def write_api() -> str:
    """Write the reference of the HTTP API: one heading for each operation, then the objects that they use."""
    about = build_openapi("Vedette", "", __version__, with_ads=True)
    operations = (
        _write_operation(f"{method.upper()} {path}", operation)
        for path, methods in about["paths"].items()
        for method, operation in methods.items()
    )
    objects = (_write_object(name, schema) for name, schema in sorted(about["components"]["schemas"].items()))
    return "\n\n".join(
        ["# HTTP API", about["info"]["description"], _ENDPOINTS, *operations, "## Objects { #objects }", *objects]
    )


def _write_operation(name: str, operation: Json) -> str:
    security = "It needs no key." if operation.get("security") == [{}] else ""
    words = f"{operation['summary']}. {_plain(operation.get('description', ''))} {security}"
    parameters = (
        (f"`{each['name']}`", _kind(each["schema"]), _tick(each.get("required")), _plain(each.get("description", "")))
        for each in operation.get("parameters", ())
    )
    answers = (
        (f"`{status}`", _content(answer), _plain(answer["description"]))
        for status, answer in operation["responses"].items()
    )
    body = operation.get("requestBody", {})
    parts = [f"## `{name}`", words, _table("parameter|type|required|meaning", parameters)]
    parts += [f"Body: {_content(body)}" if body else "", _example("Example body", body)]
    parts += [_table("status|body|meaning", answers), _example("Example", operation["responses"].get("200", {}))]
    return "\n\n".join(part for part in parts if part)


def _write_object(name: str, schema: Json) -> str:
    kinds = "An object with one of these names as `order`, and these fields." if "oneOf" in schema else ""
    parts = [f"### {name}", _plain(schema.get("description", kinds))]
    for one in schema.get("oneOf", ()):
        fields = dict(one["properties"])
        parts += [f"#### `{fields.pop('order')['const']}`", _fields({**one, "properties": fields})]
    return "\n\n".join([*parts, _fields(schema)])


def _fields(schema: Json) -> str:
    needed = schema.get("required", ())
    rows = (
        (f"`{name}`", _kind(one), _tick(name in needed), _plain(one.get("description", "")))
        for name, one in schema.get("properties", {}).items()
    )
    return _table("field|type|required|meaning", rows)


def _content(message: Json) -> str:
    kinds = message.get("content", {}).items()
    return ", ".join(_kind(what["schema"]) if "$ref" in what["schema"] else f"`{kind}`" for kind, what in kinds)


def _example(title: str, message: Json) -> str:
    found = message.get("content", {}).get("application/json", {}).get("example")
    text = textwrap.indent(json.dumps(found, indent=2, ensure_ascii=False), "    ")
    return f'??? example "{title}"\n\n    ```json\n{text}\n    ```' if found else ""


def _kind(schema: Json) -> str:
    """Describe which values a schema allows, in a few words.

    >>> _kind({"type": "integer", "minimum": 1, "maximum": 50, "default": 10})
    'integer, 1 to 50 (default `10`)'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        kinds = schema.get("prefixItems") or [schema.get("items", {})]
        return f"array of {', '.join(_kind(one) for one in kinds)}"
    low, high = schema.get("minimum"), schema.get("maximum")
    limits = f", {low} to {high}" if high else f", {low} or more" if low is not None else ""
    default = f" (default `{json.dumps(schema['default'])}`)" if schema.get("default") else ""
    return f"{schema.get('format', schema.get('type', 'any'))}{limits}{default}"


def write_metrics() -> str:
    """Write the reference of ``/metrics``, from one sample of everything, so that all labels show."""
    metrics, one = Metrics(), {"": 1}
    metrics.count_request("", 200)
    metrics.count_tool_call("", "")
    metrics.count_slate("page")
    metrics.count_event("view", "")
    metrics.observe_search(0.0)
    spent = SimpleNamespace(name="", fetches=1, seconds=1, bytes=1, gain=1)
    monitoring = SimpleNamespace(
        get_crawl_status=lambda: CrawlStatus(waiting_why=one, statuses=one, failures=one, refusals=one),
        count_filtered=lambda: one,
        get_refresh_status=lambda: SimpleNamespace(calibration=[CalibrationBin(1e3, 1.0, 1.0)]),
        get_budget_report=lambda _days: SimpleNamespace(ever=[spent]),
    )
    reasons = text_string_to_metric_families(export_reason_counts(cast("Monitoring", monitoring)).decode())
    families = list(metrics.describe_families())
    crawl = [family for family in families if family.type == "gauge"]
    server = [family for family in families if family.type != "gauge"]
    parts = ["# Metrics", _SCRAPED, "## Server", _metrics(server), "## Crawl and search", _metrics(crawl)]
    parts += ["## Counts by reason", "One number for each bar of the console's charts.", _metrics(reasons)]
    return "\n\n".join(parts)


def _metrics(families: Iterable[Metric]) -> str:
    rows = []
    for family in families:
        labels = dict.fromkeys(label for sample in family.samples for label in sample.labels if label != "le")
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows.append(
            (f"`{name}`", family.type, " ".join(f"`{label}`" for label in labels), _plain(family.documentation))
        )
    return _table("metric|type|labels|meaning", rows)


def write_python() -> str:
    """Write the reference of the names that ``vedette`` exports."""
    names = [name for name in vedette.__all__ if not name.startswith("__")]
    pages = (_write_name(name, getattr(vedette, name)) for name in sorted(names, key=str.swapcase))
    return "\n\n".join(["# Python names", _NAMES, *pages])


def _write_name(name: str, value: Callable[..., object]) -> str:
    tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    if isinstance(tree, ast.FunctionDef):
        return f"## `vedette.{name}`\n\n{_write_function(tree)}"
    assert isinstance(tree, ast.ClassDef)
    fields = (
        (f"`{ast.unparse(node.target)}`", _cell(node.annotation), _cell(node.value))
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_")
    )
    methods = (
        f"### `{name}.{node.name}`\n\n{_write_function(node)}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    )
    words = _write_docstring(inspect.getdoc(value) or "")
    return "\n\n".join([f"## `vedette.{name}`", words, _table("field|type|default", fields), *methods])


def _write_function(tree: ast.FunctionDef) -> str:
    line = f"{tree.name}({ast.unparse(tree.args)})"
    arguments = [argument for argument in _arguments(tree.args) if argument != "self"]
    if len(line) > 70:
        line = f"{tree.name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"
    else:
        line = f"{tree.name}({', '.join(arguments)})"
    returns = f" -> {ast.unparse(tree.returns)}" if tree.returns else ""
    return f"```python\n{line}{returns}\n```\n\n{_write_docstring(ast.get_docstring(tree) or '')}"


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    """Yield each argument as the source has it."""
    plain = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    yield from (_argument(*pair) for pair in zip(arguments.args, plain, strict=True))
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{ast.unparse(arguments.vararg)}" if arguments.vararg else "*"
    yield from (_argument(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + (f" = {ast.unparse(default)}" if default else "")


def _write_docstring(text: str) -> str:
    """Write a docstring as Markdown: examples as sessions, lists of names as lists."""
    parts = []
    for part in text.replace("``", "`").split("\n\n"):
        if part.startswith(">>>"):
            parts.append(f"```pycon\n{part}\n```")
        else:
            parts.append(re.sub(r"^(\w+) {2,}", r"- `\1`: ", part, flags=re.MULTILINE))
    return "\n\n".join(parts)


def _cell(node: ast.expr | None) -> str:
    return "" if node is None or isinstance(node, ast.Call) else f"`{ast.unparse(node)}`"


def _tick(is_needed: object) -> str:
    return "yes" if is_needed else ""


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown without its empty columns, or nothing if it would have no rows."""
    columns = [column for column in zip(head.split("|"), *rows, strict=True) if any(column[1:])]
    lines = ["|" + "|".join(row) + "|" for row in zip(*columns, strict=True)]
    return "\n".join([lines[0], "|---" * len(columns) + "|", *lines[1:]]) if lines else ""


def _plain(text: str) -> str:
    """Return text that means nothing to Markdown, on one line."""
    return re.sub(r"([*|\[\]])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")
