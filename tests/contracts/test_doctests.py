"""Every docstring example works."""

import doctest
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import vedette

MODULES = tuple(
    found.name for found in pkgutil.walk_packages(vedette.__path__, "vedette.") if not found.name.endswith("__main__")
)


def test_examples_show_what_happens() -> None:
    """Every module can be imported, and each of its examples prints what the docstring says."""
    modules = [importlib.import_module(name) for name in MODULES]
    wrong = [each.__name__ for each in modules if has_examples(each) and doctest.testmod(each).failed]
    assert wrong == [], "the report above shows what was expected and what came"


def has_examples(module: ModuleType) -> bool:
    """Check the source first: looking for examples in every object of a module takes much longer."""
    if module.__file__ is None:
        return False
    place = Path(module.__file__)  # a compiled module has its source beside it, the library of all of them has none
    source = place if place.suffix == ".py" else place.with_name(f"{module.__name__.rpartition('.')[2]}.py")
    return source.is_file() and ">>> " in source.read_text(encoding="utf-8")


def test_examples_are_found() -> None:
    """Discovery reaches every kind of module, so that no example is skipped silently."""
    assert {"vedette.model", "vedette.frontier.policies.breadth", "vedette.cli.main"} <= set(MODULES)
    finder = doctest.DocTestFinder()
    modules = filter(has_examples, map(importlib.import_module, MODULES))
    assert sum(bool(test.examples) for module in modules for test in finder.find(module)) >= 20
