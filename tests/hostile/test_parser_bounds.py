"""Pages designed to hurt their parser, parsed within limits on time and memory that the kernel enforces.

The limits are ``cpu_limit_s`` and ``memory_limit_bytes`` of ``reading_child``, both in proportion to the page. The
output is limited, too: text by the page size, everything else by fixed numbers.
"""

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.hostile.reading_child import MIB, MONSTERS
from tests.tree_runs import PROVE

SIZE_BYTES = 10 * MIB if PROVE else MIB // 4
LARGE_BYTES = 50 * MIB if PROVE else MIB
LARGE = (
    "deep divs",
    "links",
    "one attribute",
    "attributes in one tag",
    "attributes in many tags",
    "text",
    "ampersands",
)
MOST_LINKS = 10_000
MOST_OTHERS = 3_000
LONGEST_STRING = 10_000

Told = dict[str, dict[str, Any]]


def read(size_bytes: int, *names: str) -> Told:
    """Return the outcome for each page."""
    command = [sys.executable, "-m", "tests.hostile.reading_child", str(size_bytes), *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {told["name"]: told for told in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def told() -> Told:
    """Parse all monsters."""
    return read(SIZE_BYTES)


@pytest.fixture(scope="module")
def told_of_large() -> Told:
    """Parse those whose size is the attack."""
    return read(LARGE_BYTES, *LARGE)


def is_bounded(page: dict[str, Any]) -> bool:
    """Check whether a page was parsed within its limits."""
    assert "ended" not in page, f"its reader ended with {page['ended']}"
    assert page["text"] <= page["body"]
    assert page["main"] <= page["text"]
    assert page["links"] <= MOST_LINKS
    assert page["others"] <= MOST_OTHERS
    assert page["longest"] <= LONGEST_STRING
    return True


@pytest.mark.parametrize("name", MONSTERS)
def test_a_monster_is_read_within_bounds(told: Told, name: str) -> None:
    """Time and memory are proportional to the size, nothing raises an error, and the output is bounded."""
    assert is_bounded(told[name])


@pytest.mark.parametrize("name", LARGE)
def test_a_large_one_too(told_of_large: Told, name: str) -> None:
    """The same is true if size itself is the attack: deep nesting, links, attributes, references, or one text."""
    assert is_bounded(told_of_large[name])


def test_a_million_links_are_some_of_them(told_of_large: Told) -> None:
    """Only the first links are kept if there are more than anyone follows; the page keeps its text."""
    assert told_of_large["links"]["links"] > 1_000
    assert told_of_large["links"]["text"] > 1_000
