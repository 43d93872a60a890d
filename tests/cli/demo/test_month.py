"""``vedette demo --days``: what it says to wrong input, what it writes, and that it leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tree_runs import PROVE, children, kill_all, patiently, remains

from vedette.cli.demo.month import MonthReport, check_report_folder, format_text, to_dict, write_report
from vedette.cli.main import main
from vedette.errors import UsageError
from vedette.lab.judge.live_quality import CrawlQuality, FetchKind, QualitySample
from vedette.runtime.monitoring.lab_reports import FolderReports

TREES = 3


def month(used: int = 100) -> MonthReport:
    """A run of one day, by hand."""
    looks = (QualitySample(0.5, 0.9, 0.95, 0.9, 0.93), QualitySample(1.0, 0.8, 0.85, 0.8, 0.83))
    others: dict[FetchKind, int] = {"first": 10, "gone": 0, "source": 5, "robots": 5}
    run = CrawlQuality("uniform", looks, used - 20, 20, others, 400)
    return MonthReport("vedette demo --days 1 --report", "made:month:1:calm", 1, 5000.0, 100, 400, [run])


@pytest.mark.parametrize("option", ["--report", "--json"])
def test_what_needs_days_says_what_to_type(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with a command that works, exit code 2."""
    assert main(["demo", option]) == UsageError.exit_code
    assert f"vedette demo --days 30 {option}" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--for", "1min"], ["--world", "made:tiny"]])
def test_what_does_not_go_with_days_is_said(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that was typed is silently left out."""
    assert main(["demo", "--days", "1", *more]) == UsageError.exit_code
    assert f"leave out {more[0]}" in capsys.readouterr().err


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "many", "9999", "٣"])
def test_days_are_a_number_of_days(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is refused, and it is said what to write."""
    assert main(["demo", "--days", days]) == UsageError.exit_code
    assert "such as 30" in capsys.readouterr().err


def test_a_page_that_a_person_wrote_is_never_written_over(tmp_path: Path) -> None:
    """It is said before anything is run, and the page stays."""
    page = tmp_path / "lab-refresh-live.md"
    page.write_text("mine")
    with pytest.raises(UsageError, match="written by a person"):
        check_report_folder(tmp_path)
    assert page.read_text() == "mine"


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    """A file is no folder."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--report DIR"):
        check_report_folder(tmp_path / "file")


def test_the_console_shows_the_report(tmp_path: Path) -> None:
    """What is written to the lab folder of a data folder can be read there, with its plots; and be written again."""
    for _ in range(2):
        check_report_folder(tmp_path / "lab")
        write_report(month(), tmp_path / "lab")
    report = FolderReports(tmp_path).load_report("refresh-live")
    assert report is not None
    assert report.tables[0].rows[0][0] == "uniform"
    assert len(report.plots) == 2
    assert report.missing == ()


def test_means_are_over_all_looks_and_gains_are_per_refresh() -> None:
    """The numbers of the JSON follow from the looks."""
    told = to_dict(month())["policies"]["uniform"]
    assert told["quality"] == pytest.approx(0.9)
    assert told["gain_per_refresh"] == pytest.approx((0.9 - 0.85) / 80)
    assert told["budget_used"] == pytest.approx(1.0)


def test_a_crawler_that_does_not_spend_its_budget_is_named() -> None:
    """Whoever reads the table is told that this one fell behind, or had nothing to do."""
    assert "Less than" not in format_text(month())
    assert "of the budget was used by uniform" in format_text(month(used=60))


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """The program in a session of its own."""
    command = [sys.executable, "-m", "vedette", "demo", "--days", "2", "--data", str(folder / "data"), *more]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        return subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM] if PROVE else [signal.SIGINT])
def test_an_interrupt_ends_all_crawlers_and_servers(number: signal.Signals, tmp_path: Path) -> None:
    """No process is left, and it is said that nothing was measured."""
    process = start(tmp_path)
    try:
        patiently(lambda: "vedette w0" in children(process.pid), seconds=60)
        pids = _below(process.pid)
        os.kill(process.pid, number)
        assert process.wait(30) == 130
        patiently(lambda: not remains(pids))
    finally:
        kill_all(process)
    assert "nothing was measured" in (tmp_path / "err").read_text()


def _below(pid: int) -> list[int]:
    """The children, also those that share a name."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not PROVE, reason="two days of three crawlers take a minute: make prove")
def test_days_of_three_crawlers_are_measured(tmp_path: Path) -> None:
    """All three spend about their budget, hold nearly all pages, and none does worse than not refreshing at all."""
    process = start(tmp_path, "--json", "--report", str(tmp_path / "report"))
    try:
        assert process.wait(600) == 0, (tmp_path / "err").read_text()
    finally:
        kill_all(process)
    told = json.loads((tmp_path / "out").read_text())
    assert len(told["policies"]) == TREES
    for policy, numbers in told["policies"].items():
        assert 0.5 < numbers["budget_used"] < 1.5, policy
        assert numbers["refreshes"] > 0, policy
        assert numbers["quality"] >= numbers["quality_unrefreshed"] - 0.01, policy
        assert len(numbers["looks"]) == 4, policy
    assert (tmp_path / "report" / "lab-refresh-live.md").is_file()
