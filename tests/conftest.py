"""Hypothesis profiles, how programs are started, and which files run first.

``VEDETTE_PROVE=1`` tries many more examples and starts a fresh interpreter for every program; ``VEDETTE_QUICK=1`` tries
fewer. All profiles draw the same examples on every run, so failures are reproducible. There is no deadline, because the
time an example takes says more about the machine than about the code.
"""

import os
import signal
import sys
from pathlib import Path

# Compiled modules are kept for the next process: without them, every process of a test compiles the source again, which
# is half of what it takes to start; and pytest compiles Hypothesis in its own way.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell has programs in the background ignore Ctrl-C, and so would all that tests start and stop that way.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402 - see above
from hypothesis import HealthCheck, settings  # noqa: E402 - see above
from tests.fork_server import install  # noqa: E402 - see above

TESTS = Path(__file__).parent
QUICK_EXAMPLES = 10
MODEST_EXAMPLES = 30
PROVE_EXAMPLES = 2000
# Files that take longest go first, then those of slow folders, so that no process is left with one of them at the end.
# Most of them wait; between them are two that compute.
SLOW_FILES = (
    "hostile/test_traps_and_faults.py",
    "end_to_end/test_trap_budget.py",
    "engine/test_shocks.py",
    "end_to_end/test_cluster.py",
    "web/api/test_openapi.py",
    "end_to_end/test_disasters.py",
    "end_to_end/test_impact.py",
    "browser/test_rendering.py",
    "browser/test_demo.py",
    "end_to_end/test_cluster_storage.py",
    "end_to_end/test_kills.py",
)
SLOW_FOLDERS = ("end_to_end", "browser", "hostile", "cli", "runtime", "lab")

settings.register_profile(
    "test",
    max_examples=MODEST_EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # it measures the machine
)
settings.register_profile("prove", settings.get_profile("test"), max_examples=PROVE_EXAMPLES)
settings.register_profile("quick", settings.get_profile("test"), max_examples=QUICK_EXAMPLES)
PROVE = os.environ.get("VEDETTE_PROVE") == "1"
QUICK = os.environ.get("VEDETTE_QUICK") == "1"
settings.load_profile("prove" if PROVE else "quick" if QUICK else "test")
if not PROVE:
    install()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put slow files and the files of slow folders first."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    place = item.path.relative_to(TESTS)
    if place.as_posix() in SLOW_FILES:
        return SLOW_FILES.index(place.as_posix())
    folder = SLOW_FOLDERS.index(place.parts[0]) if place.parts[0] in SLOW_FOLDERS else len(SLOW_FOLDERS)
    return len(SLOW_FILES) + folder
