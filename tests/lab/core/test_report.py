"""Reports follow from the rows: means, intervals if seeds differ, pairs and plots."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.lab.lab_modules import EXPERIMENT, written

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Experiment, Span
from vedette.lab.core.registry import find_experiment
from vedette.lab.core.report import LIVE_WORLD_NOTE, FinishedRun, read_run, write_report
from vedette.lab.core.run_folder import Row, write_rows
from vedette.lab.core.summary import build_tables, compare_policies

TINY = "tiny_reports:EXPERIMENT"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Return the experiment that these rows belong to: freshness (higher is better) and fetches."""
    written(tmp_path, "tiny_reports", EXPERIMENT)
    monkeypatch.syspath_prepend(tmp_path)
    return find_experiment(TINY)


def row(policy: str, seed: int, freshness: float, **more: float) -> Row:
    """Return a row of the tiny experiment."""
    return Row(Cell(TINY, "made:tiny", policy, 1.0, seed), {"freshness": freshness, **more})


def run_of(rows: list[Row], name: str = "one") -> FinishedRun:
    """Return a finished run."""
    answer: Mapping[str, object] = {
        "command": "vedette lab run x",
        "versions": {"vedette": "1"},
        "worlds": {"made:tiny": "ab"},
    }
    return FinishedRun(name, answer, rows)


def test_means_are_over_seeds_with_an_interval_where_seeds_differ(tiny: Experiment) -> None:
    """0.2, 0.3 and 0.4 have the mean 0.3 and an interval; 0.5 with every seed is a single number."""
    rows = [row("random", seed, 0.1 + seed / 10) for seed in (1, 2, 3)] + [row("default", seed, 0.5) for seed in (1, 2)]
    (table,) = build_tables(rows, tiny)
    lots, fixed = (line.metrics["freshness"] for line in table.lines)
    assert lots.mean == pytest.approx(0.3)
    assert 0.199 < lots.low < 0.3 < lots.high < 0.401
    assert (fixed.mean, fixed.n) == (0.5, 1)
    assert math.isnan(fixed.low)


def test_hosts_are_resampled_with_their_means(tiny: Experiment) -> None:
    """Two hosts with two seeds each are two values: (0.1 + 0.3) / 2 and (0.5 + 0.7) / 2, with the mean 0.4."""
    had = {(1, 0): 0.1, (2, 0): 0.3, (1, 1): 0.5, (2, 1): 0.7}
    (table,) = build_tables([row("random", seed, value, host=host) for (seed, host), value in had.items()], tiny)
    assert table.over == "hosts"
    assert table.lines[0].metrics["freshness"].mean == pytest.approx(0.4)
    assert table.lines[0].metrics["freshness"].n == 2


def test_coordinates_make_tables_of_their_own(tiny: Experiment) -> None:
    """Rows with a column k are reported for each k, in addition to rows without one."""
    found = build_tables([row("random", 1, 0.1), row("random", 1, 0.2, k=1), row("random", 1, 0.3, k=2)], tiny)
    assert [table.coordinates for table in found] == [(), ("k",)]
    assert [line.coordinates for line in found[1].lines] == [(1,), (2,)]


def test_policies_are_compared_run_by_run(tiny: Experiment) -> None:
    """``default`` gains 0.1 and 0.3 on its pairs: mean 0.2, p = 2/4 (of four sign patterns, ++ and --). No bounds."""
    rows = [row("random", 1, 0.1), row("random", 2, 0.9), row("bound-best", 1, 1.0), row("bound-best", 2, 1.0)]
    rows += [row("default", 1, 0.2), row("default", 2, 1.2)]
    (found,) = compare_policies(rows, tiny)
    assert (found.policy, found.other) == ("default", "random")
    assert found.paired.mean == pytest.approx(0.2)
    assert (found.paired.p, found.p_holm) == (0.5, 0.5)


def test_seeds_that_change_nothing_are_no_evidence(tiny: Experiment) -> None:
    """The same difference with each of ten seeds is a single observation, so it has no p."""
    rows = [row(policy, seed, value) for seed in range(10) for policy, value in (("default", 0.5), ("random", 0.4))]
    (found,) = compare_policies(rows, tiny)
    assert found.paired.n == 1
    assert math.isnan(found.p_holm)


def test_other_parts_of_a_world_are_not_mixed(tiny: Experiment) -> None:
    """A run on one year and a run on another are two lines."""
    early = row("random", 1, 0.1)
    late = Row(early.cell._replace(span=Span("2023-01-01")), {"freshness": 0.9})
    (table,) = build_tables([early, late], tiny)
    assert [line.metrics["freshness"].mean for line in table.lines] == [0.1, 0.9]


@pytest.mark.usefixtures("tiny")
def test_a_report_is_a_page_with_plots_that_it_links_to(tmp_path: Path) -> None:
    """Every written plot is on the page, and every plot on the page is written; doing it twice gives the same bytes."""
    rows = [row(policy, seed, seed / 10) for policy in ("default", "random", "bound-best") for seed in (1, 2, 3)]
    files = write_report([run_of(rows)], tmp_path / "out")
    page, plots = files[0].read_text(encoding="utf-8"), files[1:-1]
    assert (files[0].name, files[-1].name) == ("lab-tiny-reports-experiment.md", "lab-tiny-reports-experiment.json")
    assert [file.name for file in plots if f"({file.name})" not in page] == []
    assert page.count("](") == len(plots) > 0
    assert "    vedette lab run x" in page
    before = [file.read_bytes() for file in files]
    assert [file.read_bytes() for file in write_report([run_of(rows)], tmp_path / "out")] == before
    assert sorted(files) == sorted((tmp_path / "out").iterdir())


@pytest.mark.usefixtures("tiny")
def test_the_same_is_written_as_plain_values(tmp_path: Path) -> None:
    """The JSON has the question, commands, plots with their tables, and every line of the page, but no path."""
    rows = [row(policy, seed, seed / 10) for policy in ("default", "random") for seed in (1, 2, 3)]
    page, *plots, data = write_report([run_of(rows)], tmp_path / "out")
    answer = json.loads(data.read_text(encoding="utf-8"))
    assert (answer["title"], answer["commands"]) == ("tiny", ["vedette lab run x"])
    assert [plot["file"] for plot in answer["plots"]] == [path.name for path in plots]
    assert all(0 <= plot["table"] < len(answer["tables"]) for plot in answer["plots"])
    lines = [line.replace("`", "") for line in page.read_text(encoding="utf-8").splitlines()]
    for table in answer["tables"]:
        assert {f"| {' | '.join(row)} |" for row in (table["columns"], *table["rows"])} <= set(lines)
    assert str(tmp_path) not in data.read_text(encoding="utf-8")


@pytest.mark.usefixtures("tiny")
def test_an_interval_keeps_its_thousands(tmp_path: Path) -> None:
    """The lower end of a large interval is written in full, in any unit."""
    rows = [row("random", seed, 50.0 + seed) for seed in (1, 2, 3)]  # a share of 50 is 5000%
    *_, data = write_report([run_of(rows)], tmp_path / "out")
    (table,) = json.loads(data.read_text(encoding="utf-8"))["tables"]
    ends = re.search(r"\[(.*), (.*)\]", table["rows"][0][3].replace("\u2009", ""))
    assert ends is not None
    assert 5_050 < float(ends[1]) < 5_200


@pytest.mark.usefixtures("tiny")
def test_a_page_of_a_person_is_not_written_over(tmp_path: Path) -> None:
    """Only files that a report has written are overwritten."""
    (tmp_path / "lab-tiny-reports-experiment.md").write_text("My own words.")
    with pytest.raises(UsageError, match="not generated by this command"):
        write_report([run_of([row("random", 1, 0.1)])], tmp_path)


@pytest.mark.usefixtures("tiny")
def test_runs_that_contradict_each_other_are_not_mixed(tmp_path: Path) -> None:
    """The same cell in two runs counts once; if its numbers differ, it is refused."""
    one, same, other = (run_of([row("random", 1, value)], name) for name, value in (("a", 0.1), ("b", 0.1), ("c", 0.2)))
    write_report([one, same], tmp_path / "out")
    with pytest.raises(UsageError, match="a and c"):
        write_report([one, other], tmp_path / "out")


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    """The error for an unfinished run says how to continue it."""
    with pytest.raises(UsageError, match="vedette lab run"):
        read_run(tmp_path)
    (tmp_path / "command").write_text("vedette lab run x")
    with pytest.raises(UsageError, match="run the command"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("manifest.json", b"{"),
        ("manifest.json", b"\xff"),
        ("manifest.json", b"[]"),
        ("manifest.json", b'{"command": "x", "versions": [], "worlds": {}}'),
        ("rows.parquet", b""),
        ("rows.parquet", b"PAR1 torn"),
    ],
)
def test_a_damaged_run_is_refused_in_words(tmp_path: Path, file: str, content: bytes) -> None:
    """Whatever the damage to its files, the error says how to get a readable run."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_rows([row("random", 1, 0.1)], ["freshness"], folder / "rows.parquet")
    (folder / "manifest.json").write_text(json.dumps(run_of([]).manifest))
    assert read_run(folder).rows == [row("random", 1, 0.1)]
    (folder / file).write_bytes(content)
    with pytest.raises(UsageError, match="run the command that"):
        read_run(folder)


@pytest.mark.usefixtures("tiny")
def test_a_report_needs_a_folder(tmp_path: Path) -> None:
    """If a file has the folder's name, the error says so, and the file is not changed."""
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="choose another folder"):
            write_report([run_of([row("random", 1, 0.1)])], place)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.usefixtures("tiny")
def test_one_number_is_no_figure(tmp_path: Path) -> None:
    """A single value, or the same one for all policies, is in the table but not drawn."""
    write_report([run_of([row("random", 1, 0.1), row("default", 1, 0.1)])], tmp_path / "one")
    assert [path.name for path in (tmp_path / "one").glob("*.svg")] == []
    write_report([run_of([row("random", 1, 0.1), row("default", 1, 0.2)])], tmp_path / "two")
    assert [path.name for path in (tmp_path / "two").glob("*.svg")] != []


@pytest.mark.usefixtures("tiny")
def test_what_a_crawl_of_ones_own_cannot_say_is_said(tmp_path: Path) -> None:
    """Only the page about a live world explains its births and changes."""
    for world in ("live:mine", "made:tiny"):
        run = run_of([row("random", 1, 0.1)])
        write_report([run._replace(manifest={**run.manifest, "worlds": {world: "ab"}})], tmp_path / world[:4])
    (mine,) = (tmp_path / "live").glob("*.md")
    (made,) = (tmp_path / "made").glob("*.md")
    assert LIVE_WORLD_NOTE in mine.read_text()
    assert LIVE_WORLD_NOTE not in made.read_text()


def test_an_interval_that_an_experiment_tells_is_drawn(tmp_path: Path) -> None:
    """If a number does not depend on seeds, the experiment's own interval is drawn."""
    cell = Cell("importance", "live:mine", "pagerank", 10.0, 1)
    answer = {"spearman": 0.5, "spearman_low": 0.4, "spearman_high": 0.7}
    rows = [Row(cell, answer), Row(cell._replace(policy="in-links"), {**answer, "spearman": 0.6})]
    write_report([run_of(rows)], tmp_path)
    ends = re.findall(
        r'<line x1="([\d.]+)" x2="([\d.]+)"', (tmp_path / "lab-importance-live-mine-spearman-by-policy.svg").read_text()
    )
    assert len(ends) == 2
    assert all(float(low) < float(high) for low, high in ends)
