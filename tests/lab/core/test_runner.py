"""Runs are reproducible byte for byte: repeated, killed and resumed, or interrupted and resumed."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.lab.lab_modules import EXPERIMENT, written
from tests.tree_runs import PATIENCE_S

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Span
from vedette.lab.core.plan import RunPlan, RunRequest, build_plan, parse_span
from vedette.lab.core.run_folder import Row, RunFolder, default_folder, read_rows, to_dict, write_rows
from vedette.lab.core.runner import CellFailed, run_cells

pytest.importorskip("pyarrow", reason='rows are kept with pyarrow: pip install "vedette[lab]"')

TINY = "tiny_runs:EXPERIMENT"
COMMAND = ("lab", "run", TINY, "--world", "made:tiny", "--seeds", "3")
CELLS = 3 * 3 * 2  # policies, seeds, budgets
FINISHED = 3  # before a run is broken off


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the experiment in it, where everything is started."""
    written(tmp_path, "tiny_runs", EXPERIMENT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tiny_runs", raising=False)  # that of another test
    monkeypatch.chdir(tmp_path)
    return tmp_path


def started(here: Path, out: str) -> "subprocess.Popen[str]":
    """Start the real program in its own process group; only its first cells can finish."""
    report = {"TINY_CELLS": str(FINISHED + 1), "TINY_PIDS": str(here / f"{out}.pids")}
    return subprocess.Popen(
        [sys.executable, "-m", "vedette", *COMMAND, "--out", out, "--quiet"],
        cwd=here,
        env={**os.environ, **report},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def after_some_cells(here: Path, out: str) -> None:
    """Wait until some cells are finished and many are not."""
    until_s = time.monotonic() + PATIENCE_S
    cells, pids = here / out / "cells", here / f"{out}.pids"
    # The program has nothing left to do but to wait.
    while len(list(cells.glob("*.json"))) <= FINISHED or len(pids.read_text().split()) <= FINISHED + 1:
        assert time.monotonic() < until_s, "no cell was finished"
        time.sleep(0.01)


def have_ended(pids: Path) -> bool:
    """Check whether all processes that computed a cell end soon."""
    until_s = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}").exists() for pid in pids.read_text().split()):
        if time.monotonic() > until_s:
            return False
        time.sleep(0.01)
    return True


def files(folder: Path) -> Sequence[bytes]:
    """Return the bytes of rows and manifest."""
    return [(folder / name).read_bytes() for name in ("rows.parquet", "manifest.json")]


WANTED = RunRequest([TINY], ["made:tiny"], seeds=3)
SMALL = WANTED._replace(policies=["default"], budgets=[2.0])


def finished(plan: RunPlan, folder: Path, jobs: int = 1) -> RunFolder:
    """Return a run that was computed in processes of this one."""
    kept = RunFolder(folder, plan)
    run_cells(kept, len(plan.cells), lambda _done, _all, _cell: None, jobs)
    kept.finish()
    return kept


def test_a_run_survives_anything_and_comes_out_the_same(here: Path) -> None:
    """Uninterrupted, killed halfway or interrupted by Ctrl-C, a run writes the same bytes and leaves no process.

    This needs the real program twice.
    """
    plan = build_plan(WANTED)
    finished(plan, here / "whole", jobs=2)
    for out, how, code in (("killed", signal.SIGKILL, -9), ("stopped", signal.SIGINT, 130)):
        run = started(here, out)
        after_some_cells(here, out)
        # A terminal sends Ctrl-C to the whole group; a kill hits one.
        os.killpg(run.pid, how) if how == signal.SIGINT else run.kill()
        _, words = run.communicate(timeout=PATIENCE_S)
        assert run.returncode == code
        assert ("Run the same command to continue" in words) == (how == signal.SIGINT)
        assert have_ended(here / f"{out}.pids")
        assert not (here / out / "rows.parquet").exists()
        assert 0 < len(RunFolder(here / out, plan).list_pending()) <= CELLS - FINISHED
        finished(plan, here / out)
        assert files(here / out) == files(here / "whole")


def test_rows_and_manifest_say_everything_and_no_path(here: Path) -> None:
    """Rows are in the order of the plan; the manifest contains command, versions, worlds, seeds and the rows' hash."""
    plan = build_plan(SMALL)
    kept = finished(plan, here / "out", jobs=2)
    assert [row.cell for row in kept.load_rows()] == list(plan.cells)
    assert [row.cell for row in read_rows(here / "out" / "rows.parquet")] == list(plan.cells)
    manifest = json.loads((here / "out" / "manifest.json").read_text())
    assert manifest["command"] == f"vedette lab run {TINY} --world made:tiny --budget 2 --policies default --seeds 3"
    assert {"vedette", "python", "numpy", "pyarrow"} <= set(manifest["versions"])
    assert manifest["seeds"] == [1, 2, 3]
    rows, report = files(here / "out")
    assert manifest["rows"]["sha256"] == hashlib.sha256(rows).hexdigest()
    assert str(here).encode() not in rows + report


def test_a_finished_run_is_not_done_again(here: Path) -> None:
    """The same command reuses its cells; if the experiment's code has changed, all of them are computed again."""
    plan = build_plan(SMALL)
    finished(plan, here / "out")
    assert RunFolder(here / "out", plan).list_pending() == []
    written(here, "tiny_runs", f"{EXPERIMENT}\n# changed\n")
    assert len(RunFolder(here / "out", plan).list_pending()) == len(plan.cells)


def test_a_folder_of_something_else_is_left_alone(here: Path) -> None:
    """It writes neither to another run's folder nor to a folder with other files."""
    RunFolder(here / "out", build_plan(WANTED))
    with pytest.raises(UsageError, match="another run"):
        RunFolder(here / "out", build_plan(WANTED._replace(seeds=2)))
    with pytest.raises(UsageError, match="not a run folder"):
        RunFolder(here, build_plan(WANTED))


def test_a_cell_that_fails_is_named_and_the_rest_is_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the cell and the reason; finished cells are kept."""
    plan = build_plan(SMALL._replace(policies=["random", "default"]))
    monkeypatch.setenv("TINY_FAILS", "1")
    with pytest.raises(CellFailed, match=r"default.*the lots are gone.*kept"):
        finished(plan, here / "out")
    assert len(RunFolder(here / "out", plan).list_pending()) == len(plan.cells) - 3


@pytest.mark.usefixtures("here")
def test_cells_are_all_combinations_each_once() -> None:
    """Policies, budgets and seeds are those requested, or the experiment's defaults."""
    cells = build_plan(WANTED).cells
    assert len(cells) == len(set(cells)) == CELLS
    assert {cell.seed for cell in cells} == {1, 2, 3}
    assert default_folder(build_plan(WANTED)) == default_folder(build_plan(WANTED))
    assert default_folder(build_plan(WANTED)) != default_folder(build_plan(WANTED._replace(seeds=4)))


@pytest.mark.usefixtures("here")
def test_a_world_that_is_not_here_is_left_out_and_said() -> None:
    """The other worlds are run anyway; the recorded command does not contain the missing one."""
    plan = build_plan(WANTED._replace(worlds=["made:tiny", "live:nowhere"]))
    assert plan.worlds == ["made:tiny"]
    assert "nowhere" in plan.skipped[0]
    assert "nowhere" not in plan.command


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        ("2023-02-01", "2023-02-01", "empty"),
        ("2023-02-02", "2023-02-01", "empty"),
        ("9", "5", "empty"),
        ("2023-02-02", "7", "two dates or two numbers"),
        ("soon", "", "not a day or a number"),
        ("", "2023-13-01", "not a day or a number"),
    ],
)
def test_a_part_of_a_world_that_is_none_is_refused(begin: str, end: str, words: str) -> None:
    """An end before the beginning, a date mixed with a number, or neither: each has its own error."""
    with pytest.raises(UsageError, match=words):
        parse_span(begin, end)


def test_rows_come_back_from_parquet_as_they_were(tmp_path: Path) -> None:
    """Numbers are exact bit for bit, and missing ones stay missing; infinite ones are null in JSON."""
    one = Row(Cell("tiny", "made:tiny", "default", 1.5, 3, Span("1", "9")), {"b": 0.1 + 0.2, "a": float("inf")})
    two = Row(one.cell._replace(seed=4), {"c": 1e-300})
    write_rows([one, two], ["b"], tmp_path / "rows")
    assert read_rows(tmp_path / "rows") == [one, two]
    assert to_dict(one)["a"] is None
    assert list(to_dict(one))[:7] == ["experiment", "world", "policy", "budget", "seed", "from", "to"]
