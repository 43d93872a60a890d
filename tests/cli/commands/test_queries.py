"""Recorded queries on the command line, with a real folder and an ingested log."""

import json
import os
import pty
import shutil
import sys
from contextlib import chdir, closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import pytest
from tests.data_folders import opened

from vedette.adapters.event_store.reader import EventReader
from vedette.adapters.event_store.search_log import EventLog
from vedette.adapters.event_store.store import EventStore
from vedette.cli.main import main
from vedette.learn.events import ClickEvent, SearchEvent, ShownResult

DAY_S = 86_400.0
END_OF_SCREEN = "~ the screen ends here ~"
VISITORS = tuple(f"{number:016x}" for number in range(1, 40))


class Done(NamedTuple):
    """The result of a command line."""

    returncode: int
    stdout: str
    stderr: str


def vedette(*arguments: str, cwd: Path) -> Done:
    """Run a command line in this process, without a terminal, to save the startup time."""
    out, err, before = StringIO(), StringIO(), sys.stdin
    sys.stdin = StringIO("")
    try:
        with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
    finally:
        sys.stdin = before
    return Done(code, out.getvalue(), err.getvalue())


def run_json(*arguments: str, cwd: Path) -> Any:
    """Return its JSON output: one object."""
    done = vedette(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def complaint(*arguments: str, cwd: Path) -> str:
    """Return the one-line error of an invalid command."""
    done = vedette(*arguments, cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    return done.stderr


def search(number: int, words: str, days_ago: float, *, total: int = 3, doubt: str = "") -> SearchEvent:
    """Return a search as a server records it."""
    at_s = time() - days_ago * DAY_S
    shown = (ShownResult(7, 1, 2.5),) if total else ()
    visitor = VISITORS[number % len(VISITORS)]
    return SearchEvent(f"{number:032x}", at_s, words.title(), words, total, visitor, results=shown, filter_reason=doubt)


def a_month() -> list[SearchEvent]:
    """Return thirty days of searches for tides, for a storm on the last day, and a few without results for ferries."""
    usual = [f"low tide {number % 7}" for number in range(300)]
    searches = [search(number, words, 1.0 + number / 10) for number, words in enumerate(usual)]
    searches += [search(1000 + number, "storm warning", number / 100) for number in range(40)]
    searches += [search(2000 + number, "ferry to nowhere", number / 4, total=0) for number in range(4)]
    return [*searches, search(3000, "machine made", 0.1, doubt="says it is a program")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a data folder with recorded searches; it is copied, never changed."""
    place = tmp_path_factory.mktemp("recorded")
    data = place / "vedette-data"
    with opened(data):
        pass
    log = EventLog(data, "s0")
    for record in a_month():
        log.append(record)
    log.append(ClickEvent(f"{1000:032x}", "click", 7, time(), 3.0, VISITORS[1000 % len(VISITORS)]))
    log.close()
    with closing(EventStore(data)) as book:
        book.ingest_logs()
    return place


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """A copy that can be changed."""
    return shutil.copytree(recorded, tmp_path / "copy")


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    """The path of a data folder without searches."""
    with opened(tmp_path / "vedette-data"):
        pass
    return tmp_path


def read_counts(cwd: Path) -> set[str]:
    """Return everything that the log counts."""
    return {row.words for row in EventReader(cwd / "vedette-data").list_top_queries(0.0, 1000)}


def test_the_most_frequent_queries_are_listed(recorded: Path) -> None:
    """They have counts and are shown as typed, most frequent first, without those of programs."""
    rows = run_json("queries", "list", "--days", "1", cwd=recorded)["queries"]
    assert [(row["query"], row["searches"], row["clicks"]) for row in rows[:1]] == [("Storm Warning", 40, 1)]
    assert "machine made" not in {row["words"] for row in rows}
    text = vedette("queries", "list", "--n", "1", cwd=recorded).stdout.splitlines()
    assert text[0].split() == ["searches", "clicks", "no", "results", "query"]
    assert text[1].split() == ["40", "1", "0", "Storm", "Warning"]
    assert len(text) == 2


def test_queries_without_results_are_listed(recorded: Path) -> None:
    """Only queries without results."""
    rows = run_json("queries", "empty", cwd=recorded)["queries"]
    assert [(row["words"], row["empty"]) for row in rows] == [("ferry to nowhere", 4)]


def test_rising_queries_and_drift_are_shown(recorded: Path) -> None:
    """A storm that everyone searches for today is rising, and shifts the mix of queries."""
    rising = run_json("queries", "rising", cwd=recorded)["queries"]
    assert [each["words"] for each in rising] == ["storm warning"]
    assert rising[0]["recent_per_day"] > rising[0]["usual_per_day"]
    assert "storm warning   " in vedette("queries", "rising", cwd=recorded).stdout
    drift = run_json("queries", "drift", cwd=recorded)
    assert drift["is_notable"]
    assert "storm" in {mover["term"] for mover in drift["movers"]}
    assert "has shifted" in vedette("queries", "drift", cwd=recorded).stdout


@pytest.mark.parametrize("verb", ["list", "empty", "rising", "drift"])
def test_a_folder_without_searches_is_reported(verb: str, quiet: Path) -> None:
    """If no one has searched yet, each command says so and creates no file."""
    done = vedette("queries", verb, cwd=quiet)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert not (quiet / "vedette-data" / "record.db").exists()


def test_queries_are_imported_and_dropped(quiet: Path) -> None:
    """Good lines are imported, bad ones counted and listed; importing again changes nothing; all can be dropped."""
    lines = [
        "# from the old engine",
        "Low Tide\t12\t2026-01-31",
        "low tide\t3\t2026-01-31",
        "Ebb",
        "bad\tnone",
        "\x1b\t1",
    ]
    (quiet / "old.tsv").write_text("\n".join([*lines, *["?"] * 9]))
    done = vedette("queries", "import", "old.tsv", cwd=quiet)
    assert done.returncode == 0
    assert "16" in done.stdout
    assert 'line 5: "none" is not a count' in done.stderr
    assert "more unusable lines" in done.stderr
    assert "\x1b" not in done.stderr
    again = run_json("queries", "import", "old.tsv", cwd=quiet)
    assert (again["wrong"], again["first_wrong"][0]["number"]) == (11, 5)
    view = EventReader(quiet / "vedette-data")
    assert {(words, times) for words, _, times in view.list_imported()} == {("low tide", 15), ("ebb", 1)}
    assert run_json("queries", "drop-imported", cwd=quiet)["dropped"] >= 2
    assert view.list_imported() == []


def test_an_import_without_a_good_line_has_failed(quiet: Path) -> None:
    """Exit code 1 if nothing could be used, 2 if the file cannot be read."""
    (quiet / "bad.txt").write_bytes(b"\xff\xfe?\n!!\n")
    assert vedette("queries", "import", "bad.txt", cwd=quiet).returncode == 1
    assert "choose a readable file" in complaint("queries", "import", "none.txt", cwd=quiet)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("queries",), "choose list"),
        (("queries", "list", "--n", "many"), "is not a number"),
        (("queries", "list", "--days", "0"), "is not a number"),
        (("forget",), "is required"),
        (("forget", "--all", "--query", "x"), "not allowed with"),
        (("forget", "--query", "?!", "--yes"), "has no word"),
        (("forget", "--visitor", "me", "--yes"), "not a visitor hash"),
        (("forget", "--before", "tomorrow", "--yes"), "is not a date"),
        (("forget", "--all"), "add --yes"),
        (("forget", "--all", "--json"), "add --yes"),
    ],
)
def test_wrong_usage_gets_one_line_with_advice(arguments: tuple[str, ...], words: str, recorded: Path) -> None:
    """Nothing is deleted."""
    before = read_counts(recorded)
    assert words in complaint(*arguments, cwd=recorded)
    assert read_counts(recorded) == before


@pytest.mark.parametrize("arguments", [("queries", "list"), ("queries", "drop-imported"), ("forget", "--all", "--yes")])
def test_a_folder_without_a_crawl_is_left_alone(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A mistyped folder is reported, and not created."""
    assert "has no crawl yet" in complaint(*arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_query_is_forgotten_in_all_spellings(folder: Path) -> None:
    """Its counts and searches are deleted, those of others stay."""
    before = read_counts(folder)
    assert run_json("forget", "--query", "STÓRM  warning!", "--yes", cwd=folder)["rows"] > 40
    assert read_counts(folder) == before - {"storm warning"}
    records = list(EventReader(folder / "vedette-data").iter_searches(0.0))
    assert records
    assert not [record for record in records if record.words == "storm warning"]


def test_a_visitor_is_forgotten(folder: Path) -> None:
    """No search with that hash is left, whatever its case."""
    mark = VISITORS[12]
    run_json("forget", "--visitor", mark.upper(), "--yes", cwd=folder)
    visitors = [record.visitor for record in EventReader(folder / "vedette-data").iter_searches(0.0)]
    assert visitors
    assert mark not in visitors


def test_old_times_are_forgotten(folder: Path) -> None:
    """Everything before a day is deleted, or everything."""
    run_json("forget", "--before", "2999-01-01", "--yes", cwd=folder)
    assert read_counts(folder) == set()
    text = vedette("forget", "--all", "--yes", cwd=folder)
    assert (text.returncode, text.stderr) == (0, "")


def read_up_to_the_end(screen: int) -> str:
    """Return the whole output; a terminal delivers it in pieces, starting with the echo of the input."""
    shown = b""
    while END_OF_SCREEN.encode() not in shown:
        shown += os.read(screen, 4000)
    return shown.decode()


def on_a_terminal(answer: bytes, cwd: Path) -> tuple[int, str]:
    """Run a command on a terminal with this answer typed in; return its exit code and output."""
    own, its = pty.openpty()
    os.write(own, answer)
    before = sys.stdin
    with os.fdopen(its) as keyboard, os.fdopen(os.dup(its), "w") as screen:
        sys.stdin = keyboard
        try:
            with chdir(cwd), redirect_stdout(screen):
                code = main(("forget", "--all"))
                screen.write(END_OF_SCREEN)
                screen.flush()
            return code, read_up_to_the_end(own)
        finally:
            sys.stdin = before
            os.close(own)


def test_it_asks_for_confirmation_on_a_terminal(folder: Path) -> None:
    """It says what will be deleted, and deletes it only after a yes."""
    code, shown = on_a_terminal(b"no\n", folder)
    assert "all recorded searches" in shown
    assert (code, bool(read_counts(folder))) == (1, True)
    code, _ = on_a_terminal(b"yes\n", folder)
    assert (code, bool(read_counts(folder))) == (0, False)
