"""Pages made to hurt their parser, parsed within limits on time and memory that the kernel enforces.

The bounds are ``cpu_limit_s`` and ``memory_limit_bytes`` of ``reading_child``: both in proportion to the page. What a
page brings is bounded too: text by its size, everything else by numbers that no page can move.
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
    """What became of each page."""
    command = [sys.executable, "-m", "tests.hostile.reading_child", str(size_bytes), *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {told["name"]: told for told in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def told() -> Told:
    """All monsters."""
    return read(SIZE_BYTES)


@pytest.fixture(scope="module")
def told_of_large() -> Told:
    """Those whose size is what hurts."""
    return read(LARGE_BYTES, *LARGE)


def is_bounded(page: dict[str, Any]) -> bool:
    """Whether a page was parsed, within its limits."""
    assert "ended" not in page, f"its reader ended with {page['ended']}"
    assert page["text"] <= page["body"]
    assert page["main"] <= page["text"]
    assert page["links"] <= MOST_LINKS
    assert page["others"] <= MOST_OTHERS
    assert page["longest"] <= LONGEST_STRING
    return True


@pytest.mark.parametrize("name", MONSTERS)
def test_a_monster_is_read_within_bounds(told: Told, name: str) -> None:
    """It costs time and memory in proportion to its size, raises nothing, and brings bounded numbers of things."""
    assert is_bounded(told[name])


@pytest.mark.parametrize("name", LARGE)
def test_a_large_one_too(told_of_large: Told, name: str) -> None:
    """The same where size itself is the weapon: deep nesting, links, attributes, references, one text."""
    assert is_bounded(told_of_large[name])


def test_a_million_links_are_some_of_them(told_of_large: Told) -> None:
    """Of more links than anyone follows the first are kept; the page still has its text."""
    assert told_of_large["links"]["links"] > 1_000
    assert told_of_large["links"]["text"] > 1_000
