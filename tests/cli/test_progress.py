"""Progress of a crawl in 80 columns and in a log: whole numbers, no long lines, and the age of old numbers."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from vedette.cli.progress import LINE_WIDTH, Screen

LONG = "a-very-long-host-name." * 6 + "example.org"
NUMBERS: dict[str, Any] = {
    "pages": 123_456_789,
    "new_pages": 120_000_000,
    "unchanged": 345_678,
    "bytes": 10**13,
    "requests": 234_567_890,
    "urls_waiting": 123_456_789,
    "urls_known": 223_456_789,
    "hosts": 1_234_567,
    "hosts_waiting": {
        "waiting for a response": 123_456,
        "waiting for its delay": 1_234_567,
        "waiting for its name": 12_345,
    },
    "refusals": {"disallowed by robots.txt": 99_999, "held back as a trap": 1_234_567},
    "failures": {"answered with status 500 three times in a row": 1_234},
    "hosts_in_trouble": {LONG: "the name server did not answer within the time that it had for that"},
    "trouble": f"only 12 MB are free in /{LONG}",
    "age_s": 12.4,
}


@pytest.fixture
def screen() -> Screen:
    """Progress of a site with a long name in a folder with a long name."""
    return Screen(f"https://{LONG}/ and 12 more", quiet=False, note=f"Ctrl-C to stop   /home/{LONG}")


def rows_of(screen: Screen) -> Iterator[str]:
    """Return the rows on a terminal of 80 columns."""
    console = Console(width=80, file=StringIO(), force_terminal=False)
    with console.capture() as capture:
        console.print(screen.build_table(NUMBERS, 12.0, 98_765.0))
    yield from capture.get().splitlines()


def test_the_screen_fits_80_columns(screen: Screen) -> None:
    """Each row is one line with a whole number; only words are cut, and the age of the numbers is visible."""
    rows = [row for row in rows_of(screen) if row.strip()]
    assert max(map(len, rows)) <= 80
    assert len(rows) == len({"title", "pages", "waiting", "hosts", "refused", "failed", "trouble", "paused", "note"})
    assert "as of 12 s ago" in rows[0]
    assert "123\u2009456\u2009789" in rows[1]


def test_lines_of_a_log_fit_80_columns(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    """Problems are on separate lines."""
    screen._shown_s = float("-inf")
    screen.update(NUMBERS)
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= LINE_WIDTH
    assert any("as of 12 s ago" in line for line in lines)
    assert any("hosts in trouble" in line for line in lines)
