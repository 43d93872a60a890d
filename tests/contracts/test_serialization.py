"""Reading a file or a message can't run code: no module loads pickles, except those listed here with a reason."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "vedette"
UNSAFE = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "multiprocessing"}
# Modules that may, and why it cannot matter.
ALLOWED = {
    "lab/core/runner.py": "a parent and the children that it started talk over pipes without a name",
    "lab/worlds/git/repository.py": "as above",
    "runtime/cluster/remote_shards.py": "only bytes are sent and received, which are MessagePack",
    "runtime/processes/shard_search.py": "as above",
    "lab/core/conformance.py": "copies the state of a policy in memory; the bytes never leave the process",
}


def list_imports(file: Path) -> set[str]:
    """Return the top-level packages that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def allows_pickle(call: ast.Call) -> bool:
    """Check whether a call of numpy.load allows pickles, or leaves that to the default."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "load"):
        return False
    if not (isinstance(call.func.value, ast.Name) and call.func.value.id in {"np", "numpy"}):
        return False
    text = [word.value for word in call.keywords if word.arg == "allow_pickle"]
    return not (text and isinstance(text[0], ast.Constant) and text[0].value is False)


def test_no_module_loads_pickles() -> None:
    """Files of the data folder and messages between processes are plain data."""
    files = {str(file.relative_to(SOURCE)): list_imports(file) for file in SOURCE.rglob("*.py")}
    assert len(files) > 500
    assert {name for name, imports in files.items() if imports & UNSAFE} == set(ALLOWED)


def test_numpy_loads_no_objects() -> None:
    """Each numpy.load explicitly forbids pickles, so that this can't change by accident."""
    found = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and allows_pickle(node)
    ]
    assert found == []
