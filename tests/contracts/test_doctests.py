"""Every example in a docstring does what it shows."""

import doctest
import importlib
import pkgutil

import vedette

MODULES = tuple(
    found.name for found in pkgutil.walk_packages(vedette.__path__, "vedette.") if not found.name.endswith("__main__")
)


def test_examples_show_what_happens() -> None:
    """Every module can be imported, and each of its examples prints what the docstring says."""
    wrong = [name for name in MODULES if doctest.testmod(importlib.import_module(name)).failed]
    assert wrong == [], "the report above shows what was expected and what came"


def test_examples_are_found() -> None:
    """Discovery reaches every kind of module, so that examples do not rot unseen."""
    assert {"vedette.model", "vedette.frontier.policies.breadth", "vedette.cli.main"} <= set(MODULES)
    finder = doctest.DocTestFinder()
    found = (test for name in MODULES for test in finder.find(importlib.import_module(name)))
    assert sum(bool(test.examples) for test in found) >= 20
