"""``vedette lab``: its output, its files, and its errors of one line with exit code 2."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.data_folders import write_sample
from tests.lab.lab_modules import EXPERIMENT, POLICIES, written
from tests.lab.small_frontpages import front

from vedette.cli.main import main
from vedette.lab.worlds.frontpages.files import save_frontpages
from vedette.runtime.monitoring.lab_reports import FolderReports

TINY = ("lab", "run", "tiny_verbs:EXPERIMENT", "--world", "made:tiny")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an experiment, and no recorded worlds."""
    written(tmp_path, "tiny_verbs", EXPERIMENT)
    written(tmp_path, "verbs_policies", POLICIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("VEDETTE_DATA", "VEDETTE_HISTORIES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_rows_as_json_have_policy_world_budget_seed_and_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output has one object per row and nothing else; a missing world is reported on standard error."""
    pytest.importorskip("pyarrow", reason='rows are kept with pyarrow: pip install "vedette[lab]"')
    command = [*TINY[:-1], "made:tiny,live:nowhere", "--budget", "2", "--policies", "random", "--seeds", "2", "--json"]
    assert main(command) == 0
    answer = capsys.readouterr()
    rows = [json.loads(line) for line in answer.out.splitlines()]
    known = [(row["policy"], row["world"], row["budget"], row["seed"]) for row in rows]
    assert known == [("random", "made:tiny", 2.0, 1), ("random", "made:tiny", 2.0, 2)]
    assert all(0 <= row["freshness"] <= 1 for row in rows)
    assert "live:nowhere not found" in answer.err


def test_a_run_prints_the_next_command_and_it_works(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a table of policies, where the rows are, and the command that writes a report."""
    pytest.importorskip("pyarrow", reason='rows are kept with pyarrow: pip install "vedette[lab]"')
    assert main([*TINY, "--seeds", "2", "--policies", "default,random", "--budget", "4"]) == 0
    head, *table, first, following = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["policy", "freshness"]
    assert [line.split()[0] for line in table[:2]] == ["default", "random"]
    assert (here / first.rpartition(": ")[2]).is_file()
    assert main(following.partition("vedette ")[2].replace("DIR", "out").split()) == 0
    written_files = capsys.readouterr().out.split()
    assert all((here / name).is_file() for name in written_files)
    assert main(["lab", "report", "--to", "out"]) == 0


@pytest.mark.usefixtures("here")
def test_a_table_names_worlds_and_budgets_where_they_differ_and_stays_away_where_it_is_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Constant columns are left out; wide tables are for a report; quiet runs print nothing."""
    pytest.importorskip("pyarrow", reason='rows are kept with pyarrow: pip install "vedette[lab]"')
    assert main([*TINY, "--seeds", "1", "--policies", "default", "--budget", "2,4"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["budget", "policy", "freshness"]
    assert [line.split()[:2] for line in lines[:2]] == [["2", "default"], ["4", "default"]]
    many = ",".join(str(number) for number in range(1, 42))
    assert main([*TINY, "--seeds", "1", "--policies", "default", "--budget", many]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main([*TINY, "--seeds", "1", "--policies", "default", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("here")
def test_refresh_runs_as_live_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--as-live``, a line says so, and the same experiment runs."""
    pytest.importorskip("pyarrow", reason='rows are kept with pyarrow: pip install "vedette[lab]"')
    command = ["lab", "run", "refresh", "--as-live", "--world", "made:tiny", "--to", "2026-01-12", "--budget", "20"]
    assert main([*command, "--policies", "uniform", "--seeds", "1", "--jobs", "1", "--json"]) == 0
    answer = capsys.readouterr()
    assert "the crawler's own policy runner and price controller" in answer.err
    assert {json.loads(line)["experiment"] for line in answer.out.splitlines()} == {"refresh"}


@pytest.mark.usefixtures("here")
def test_ads_as_live_are_charged_like_on_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    """``--as-live`` means ``--charge live``: a bound that does not run live has no rows."""
    pytest.importorskip("pyarrow", reason='rows are kept with pyarrow: pip install "vedette[lab]"')
    command = ["lab", "run", "sponsor", "--as-live", "--world", "market:few", "--policies", "bound-lp", "--seeds", "1"]
    assert main([*command, "--jobs", "1"]) == 0
    assert "1 cell, 0 rows" in capsys.readouterr().out


def test_headlines_hold_a_policy_against_a_rival(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It reads runs of ``discovery-per-host``; an error names a missing rival."""
    pytest.importorskip("pyarrow", reason='rows are kept with pyarrow: pip install "vedette[lab]"')
    rows = [(source, 13 * hour + source, hour, hour + 1) for hour in range(48) for source in range(13)]
    save_frontpages(front(rows, snapshots=48, hosts=[0] * 13), here / "front.npz")
    run = [
        "lab",
        "run",
        "discovery",
        "--per-host",
        "--world",
        f"frontpages:{here}/front.npz",
        "--budget",
        "2",
        "--seeds",
        "1",
    ]
    assert main([*run, "--policies", "round-robin,random", "--out", "runs", "--quiet"]) == 0
    assert main(["lab", "headlines", "runs", "--policy", "round-robin", "--rival", "random", "--json"]) == 0
    (answer,) = capsys.readouterr().out.splitlines()
    assert json.loads(answer)["coverage_ratio"][0] == 1.0  # every poll finds the one page that its source has then
    assert main(["lab", "headlines", "runs", "--policy", "round-robin", "--rival", "pham"]) == 2
    assert "pham" in capsys.readouterr().err


def test_a_report_is_put_where_the_console_of_a_data_folder_finds_it(here: Path) -> None:
    """With ``--data`` alone, the report goes to the configured folder, with the same content."""
    pytest.importorskip("pyarrow", reason='rows are kept with pyarrow: pip install "vedette[lab]"')
    write_sample(here / "mine")
    (here / "vedette.toml").write_text('[store]\ndata = "mine"\n')
    assert main([*TINY, "--seeds", "2", "--policies", "default,random", "--out", "run"]) == 0
    assert main(["lab", "report", "run", "--to", "out", "--data"]) == 0
    (line,) = FolderReports(here / "mine").list_reports()
    assert (line.question, line.problem) == ("What do lots bring?", "")
    report = FolderReports(here / "mine").load_report(line.name)
    assert report is not None
    assert (bool(report.plots), report.missing) == (True, ())
    copies = {path.name: path.read_bytes() for path in (here / "mine" / "lab").iterdir()}
    assert copies == {path.name: path.read_bytes() for path in (here / "out").iterdir()}


@pytest.mark.usefixtures("here")
def test_list_names_experiments_policies_bounds_and_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    """They are listed both as text and as JSON."""
    assert main(["lab", "list"]) == 0
    assert "made:tiny" in capsys.readouterr().out
    assert main(["lab", "list", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "made:tiny" in answer["worlds"]
    assert all(each["policies"] and each["about"] for each in answer["experiments"].values())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["lab", "run"], "NAME"),
        (["lab", "run", "nothing"], "Available:"),
        (["lab", "run", "tiny_verbs:NOTHING"], "package.module:Name"),
        (["lab", "run", "refresh", "--per-host", "--world", "made:tiny"], "discovery-per-host"),
        (TINY[:3], "missing --world; available: made:tiny"),
        ([*TINY, "--policies", "randon"], "did you mean random?"),
        ([*TINY, "--policies", "verbs_policies:Silent"], "reason"),
        ([*TINY[:-1], "made:tinny"], "did you mean tiny?"),
        ([*TINY[:-1], "moon:tiny"], "made:NAME"),
        ([*TINY[:-1], "live:nowhere"], "vedette crawl"),
        ([*TINY[:-1], "git:nobody/nothing"], "VEDETTE_HISTORIES"),
        ([*TINY, "--budget", "0"], "above 0"),
        ([*TINY, "--budget", "-3"], "above 0"),
        ([*TINY, "--budget", "nan"], "above 0"),
        ([*TINY, "--budget", "much"], "above 0"),
        ([*TINY, "--seeds", "0"], "above 0"),
        ([*TINY, "--seeds", "-1"], "above 0"),
        ([*TINY, "--seeds", "9999999"], "100000"),
        ([*TINY, "--jobs", "x"], "above 0"),
        ([*TINY, "--from", "2023-02-01", "--to", "2023-01-01"], "empty"),
        ([*TINY, "--from", "tomorrow"], "2023-01-31"),
        ([*TINY, "--sedes", "3"], "did you mean --seeds?"),
        ([*TINY, "--out", "."], "not a run folder"),
        (["lab", "report", "--to", "out"], "lab-runs"),
        (["lab", "report", "nothing", "--to", "out"], "no finished run"),
        (["lab", "report"], "--to"),
        (["lab", "headlines", "nothing"], "no finished run"),
        (["lab", "report", "--data", "nowhere"], "nowhere is not a data folder"),
        (["lab", "serve", "made:tiny", "--port", "99999"], "up to 65535"),
        (["lab", "serve", "made:tiny", "--log", "."], "an existing folder"),
        (["lab", "serve", "made:tiny", "--hosts", "nowhere/hosts.txt"], "an existing folder"),
        (["lab", "report", "--data"], "vedette-data is not a data folder"),
        (["lab", "import-git", "nowhere", "out"], "not found"),
        (["lab", "import-git", ".", "."], "already exists"),
        (["lab", "import-frontpages", ".", "."], "already exists"),
        (["lab", "import-frontpages", "nowhere", "out"], "not found"),
        (["lab", "import-frontpages", ".", "nowhere/out"], "an existing folder"),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_input_gets_one_line_that_helps(
    arguments: Sequence[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, nothing on standard output, and the valid values, with the nearest one if there is one."""
    assert main(list(arguments)) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert text in answer.err
