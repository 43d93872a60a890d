"""Capabilities use only each other's public names; every import of the source is checked, without exemptions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import vedette

SOURCE = Path(vedette.__file__).parent


def private_imports(source: str, module: str) -> Iterator[str]:
    """Yield the private names that a module imports from another capability."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("vedette"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("vedette")]
        else:
            continue
        yield from (name for name in names if _capability(name) != _capability(module) and _is_private(name))


def _capability(name: str) -> tuple[str, ...]:
    """Return the layer and sub-package of a dotted name, such as ``("adapters", "ads")``."""
    parts = name.split(".")[1:-1]
    return tuple(parts[:2])


def _is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def test_capabilities_meet_through_public_names() -> None:
    """No module imports a private name of another capability."""
    paths = sorted(SOURCE.rglob("*.py"))
    assert [(path, name) for path in paths for name in private_imports(path.read_text("utf-8"), _module(path))] == []


def _module(path: Path) -> str:
    return ".".join(("vedette", *path.relative_to(SOURCE).with_suffix("").parts))


@pytest.mark.parametrize(
    "line",
    [
        "from vedette.adapters.ads.ledger_store import _entry",
        "def f():\n    from vedette.adapters._hidden import store",
        "import vedette.adapters.ads._rows",
    ],
)
def test_a_planted_violation_is_named(line: str) -> None:
    """Each way to reach a private name is found, so a passing test means something."""
    assert list(private_imports(line, "vedette.adapters.archive.warc_reader"))


def test_a_capability_may_use_its_own_private_names() -> None:
    """Files of one capability may use each other's private names."""
    line = "from vedette.adapters.ads.ledger_store import _entry"
    assert not list(private_imports(line, "vedette.adapters.ads.ledger_reader"))
