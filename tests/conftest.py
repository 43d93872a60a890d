"""How hard the properties are tried, how programs are started, and which files go first.

``VEDETTE_PROVE=1`` tries many more examples and starts a fresh interpreter for every program. Both profiles draw the
same examples on every run, so a failure that one person sees is a failure that all see. There is no deadline: how long
an example takes says more about the machine than about the code.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.fork_server import install

# Compiled modules are kept for the next process: without them, every process of a test compiles the source again, which
# is half of what it takes to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

TESTS = Path(__file__).parent
MODEST_EXAMPLES = 30
PROVE_EXAMPLES = 2000
# Folders whose files take longest: they go first, so that no process is left with one of them at the end.
SLOW_FOLDERS = ("end_to_end", "browser", "hostile", "cli", "runtime", "lab")

settings.register_profile(
    "test",
    max_examples=MODEST_EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # it measures the machine
)
settings.register_profile("prove", settings.get_profile("test"), max_examples=PROVE_EXAMPLES)
PROVE = os.environ.get("VEDETTE_PROVE") == "1"
settings.load_profile("prove" if PROVE else "test")
if not PROVE:
    install()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of slow folders first."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(TESTS).parts[0]
    return SLOW_FOLDERS.index(folder) if folder in SLOW_FOLDERS else len(SLOW_FOLDERS)
