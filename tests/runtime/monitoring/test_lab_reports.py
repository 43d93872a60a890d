"""The lab's reports in a data folder: existing ones are listed, and no name opens anything else."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from vedette.runtime.monitoring.lab_reports import MAX_PLOT_BYTES, MAX_REPORT_BYTES, FolderReports

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><title>Ours</title></svg>'
TABLE = {"title": "T", "about": "", "meanings": [], "columns": ["a", "b"], "rows": [["1", "2"]], "left_out": 0}
GOOD: dict[str, Any] = {
    "format": 1,
    "title": "refresh",
    "question": "How current?",
    "commands": ["vedette lab run refresh"],
    "versions": "vedette 1",
    "worlds": ["made:tiny (ab)"],
    "tables": [TABLE],
    "plots": [{"file": "lab-refresh-age.svg", "caption": "Age", "table": 0}],
}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The folder of reports, with a report and its plot."""
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "lab-refresh.json").write_text(json.dumps(GOOD))
    (tmp_path / "lab" / "lab-refresh-age.svg").write_text(SVG)
    return tmp_path / "lab"


def test_a_report_is_listed_and_told_with_its_plots(lab: Path) -> None:
    """Reports are the same after loading; a plot without a file is listed as missing."""
    reports = FolderReports(lab.parent)
    os.utime(lab / "lab-refresh.json", (1_000.0, 1_000.0))
    assert reports.has_any()
    assert [tuple(line) for line in reports.list_reports()] == [("refresh", "How current?", 1_000.0, "")]
    report = reports.load_report("refresh")
    assert report is not None
    assert report.tables[0].rows == (("1", "2"),)
    assert reports.load_plot("refresh", report.plots[0].file) == SVG.encode()
    (lab / "lab-refresh-age.svg").unlink()
    report = reports.load_report("refresh")
    assert report is not None
    assert (report.plots, report.missing) == ((), ("Age",))


def test_a_folder_without_reports_is_told_as_empty(tmp_path: Path) -> None:
    """Nothing fails if the folder is missing or is not a folder."""
    reports = FolderReports(tmp_path)
    assert (reports.has_any(), reports.list_reports(), reports.load_report("x"), reports.load_plot("x", "y")) == (
        False,
        [],
        None,
        None,
    )
    (tmp_path / "lab").write_text("a file")
    assert (reports.has_any(), reports.list_reports()) == (False, [])


def test_what_was_written_anew_is_read_anew(lab: Path) -> None:
    """The latest comes first, with its current content."""
    reports = FolderReports(lab.parent)
    reports.list_reports()
    (lab / "lab-second.json").write_text(json.dumps({**GOOD, "question": "Second?"}))
    (lab / "lab-refresh.json").write_text(json.dumps({**GOOD, "question": "Other?"}))
    os.utime(lab / "lab-second.json", (1_000.0, 1_000.0))
    os.utime(lab / "lab-refresh.json", (2_000.0, 2_000.0))
    assert [line.question for line in reports.list_reports()] == ["Other?", "Second?"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"format": ' + b"9" * 5_000 + b"}",
        json.dumps({**GOOD, "format": 2}).encode(),
        json.dumps({**GOOD, "title": {"a": 1}}).encode(),
        json.dumps({**GOOD, "commands": "one"}).encode(),
        json.dumps({**GOOD, "tables": [TABLE] * 1_000}).encode(),
        json.dumps({**GOOD, "tables": [{**TABLE, "rows": [["1"]]}]}).encode(),
        json.dumps({**GOOD, "tables": [{**TABLE, "rows": [["1", 2]]}]}).encode(),
        json.dumps({**GOOD, "tables": [{**TABLE, "columns": [], "rows": [[]]}]}).encode(),
        json.dumps({**GOOD, "tables": [{**TABLE, "meanings": [["one"]]}]}).encode(),
        json.dumps({**GOOD, "tables": [{**TABLE, "left_out": -1}]}).encode(),
        json.dumps({**GOOD, "tables": [7]}).encode(),
        json.dumps({**GOOD, "plots": [7]}).encode(),
        b" " * (MAX_REPORT_BYTES + 1),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(lab: Path, data: bytes) -> None:
    """The message is readable; other reports are listed as usual, and the broken one can't be opened."""
    (lab / "lab-broken.json").write_bytes(data)
    reports = FolderReports(lab.parent)
    problems = {line.name: line.problem for line in reports.list_reports()}
    assert problems["refresh"] == ""
    assert len(problems["broken"]) > 10
    assert reports.load_report("broken") is None


def test_no_name_leads_out_of_the_folder(lab: Path) -> None:
    """This is true for URLs, reports and links; only reports and plots are served."""
    (lab.parent / "lab-secret.json").write_text(json.dumps(GOOD))
    (lab.parent / "secret.svg").write_text(SVG)
    (lab / "lab-linked.json").symlink_to(lab.parent / "lab-secret.json")
    (lab / "lab-refresh-linked.svg").symlink_to(lab.parent / "secret.svg")
    os.mkfifo(lab / "lab-refresh-pipe.svg")
    names = ["../secret.svg", "lab-refresh-linked.svg", "lab-refresh-pipe.svg", "lab-refresh.json", "/etc/passwd", ""]
    plots = [{"file": name, "caption": name, "table": 0} for name in names]
    (lab / "lab-refresh.json").write_text(json.dumps({**GOOD, "plots": plots}))
    reports = FolderReports(lab.parent)
    assert [line.name for line in reports.list_reports()] == ["refresh"]
    assert [reports.load_report(name) for name in ("../lab-secret", "..", "linked", "secret", "", "refresh\0")] == [
        None
    ] * 6
    assert [reports.load_plot("refresh", name) for name in names] == [None] * len(names)
    assert reports.load_plot("../lab", "lab-refresh-age.svg") is None
    report = reports.load_report("refresh")
    assert report is not None
    assert report.plots == ()


@pytest.mark.parametrize(
    "drawing",
    [
        "",
        "<html><script>alert(1)</script></html>",
        '<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg >&a;</svg>',
        '<svg ><!DOCTYPE x [<!ENTITY a "a">]></svg>',
        "<svg " + " " * MAX_PLOT_BYTES + "></svg>",
    ],
)
def test_what_is_no_drawing_of_ours_is_not_given_out(lab: Path, drawing: str) -> None:
    """This excludes other kinds of files, entities, and huge files."""
    (lab / "lab-refresh-age.svg").write_text(drawing)
    assert FolderReports(lab.parent).load_plot("refresh", "lab-refresh-age.svg") is None


def test_long_texts_are_cut(lab: Path) -> None:
    """A page has space for a title, but not for a book."""
    (lab / "lab-refresh.json").write_text(json.dumps({**GOOD, "title": "x" * 10**6, "question": "y" * 10**6}))
    report = FolderReports(lab.parent).load_report("refresh")
    assert report is not None
    assert len(report.title) < 1_000
    assert len(report.question) < 10_000
