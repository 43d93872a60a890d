"""The console's lab pages with real files: valid and hostile reports."""

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.small_operator import Console, signed_in

from vedette.runtime.monitoring.lab_reports import FolderReports
from vedette.web.console.admin.lab_reports import parse_amount

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><image href="http://evil.test/x"/></svg>'
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202eevil'
ROWS = [
    ["made:tiny", "50", "default", "75.4\u2009%", "5\u2009000"],
    ["made:tiny", "200", "random", "9.1\u2009% [8.3, 10\u2009%]", "900"],
    ["made:tiny", "1\u2009000", "bound-known", "", "12\u2009000"],
]
TABLE = {
    "title": "By policy",
    "about": "Each number is a mean.",
    "meanings": [["freshness", "share of pages"]],
    "columns": ["world", "budget", "policy", "freshness", "fetches"],
    "rows": ROWS,
    "left_out": 3,
}
REPORT: Mapping[str, Any] = {
    "format": 1,
    "title": "refresh",
    "question": "How current are copies?",
    "commands": ["vedette lab run refresh --seeds 3"],
    "versions": "vedette 1",
    "worlds": ["made:tiny (ab)"],
    "tables": [TABLE, {**TABLE, "title": "Compared", "meanings": []}],
    "plots": [{"file": "lab-refresh-age.svg", "caption": "Age in made:tiny", "table": 0}],
}


def put(folder: Path, name: str, report: object) -> None:
    """Write a report with a plot."""
    (folder / "lab").mkdir(exist_ok=True)
    (folder / "lab" / f"lab-{name}.json").write_text(report if isinstance(report, str) else json.dumps(report))
    (folder / "lab" / f"lab-{name}-age.svg").write_text(SVG)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with one report."""
    put(tmp_path, "refresh", REPORT)
    return tmp_path


@pytest.fixture
def console(folder: Path) -> Console:
    """A console for it, signed in."""
    return signed_in(reports=FolderReports(folder))


def places(page: str) -> list[str]:
    """Return the entries of the navigation, in order."""
    return re.findall(r'<li><a href="/console/[^"]*"[^>]*>([^<]+)</a>', page.partition("</nav>")[0])


def rows_of(text: str) -> list[list[str]]:
    """Parse a CSV file."""
    return list(csv.reader(io.StringIO(text)))


def test_the_lab_is_in_the_navigation_where_it_has_something_to_show(console: Console, tmp_path: Path) -> None:
    """It comes before Actions, the last entry; without a report it is missing, and its page says how to create one."""
    assert places(console.client.get("/console/").text)[-2:] == ["Lab", "Actions"]
    bare = signed_in(reports=FolderReports(tmp_path / "elsewhere"))
    assert "Lab" not in places(bare.client.get("/console/").text)
    page = bare.client.get("/console/lab")
    assert page.status_code == 200
    assert "vedette lab report --data" in page.text
    assert signed_in().client.get("/console/lab").status_code == 200


def test_reports_require_a_session(folder: Path) -> None:
    """Neither the list nor a report nor its plots are visible."""
    stranger = Console(reports=FolderReports(folder)).client
    for path in ("/console/lab", "/console/lab/refresh", "/console/lab/refresh/lab-refresh-age.svg"):
        answer = stranger.get(path)
        assert answer.status_code == 303
        assert "signin" in answer.headers["location"]


def test_reports_are_listed_with_question_and_time(console: Console, folder: Path) -> None:
    """Each links to its page; a broken one is listed with its problem, without a link."""
    put(folder, "broken", "{")
    page = console.client.get("/console/lab").text
    assert '<a href="/console/lab/refresh">refresh</a>' in page
    assert "How current are copies?" in page
    assert page.count("<time ") == 2
    assert "Cannot be shown: the file is damaged" in page
    assert 'href="/console/lab/broken"' not in page
    answer = console.client.get("/console/lab/broken")
    assert (answer.status_code, "the file is damaged" in answer.text) == (404, True)
    assert [row[0] for row in rows_of(console.client.get("/console/lab?csv=1&sort=report").text)[1:]] == [
        "broken",
        "refresh",
    ]


def test_a_report_has_question_command_plots_and_tables(console: Console) -> None:
    """The plot is an image with a caption and a link to its table; omitted rows are counted."""
    page = console.client.get("/console/lab/refresh").text
    for words in ("How current are copies?", "vedette lab run refresh --seeds 3", "made:tiny (ab)", "3 more lines"):
        assert words in page
    assert '<img src="/console/lab/refresh/lab-refresh-age.svg" alt="Age in made:tiny"' in page
    assert 'href="#t1"' in page
    assert '<h2 id="t1">' in page
    assert "<svg" not in page


def test_tables_sort_by_their_numbers_and_each_for_itself(console: Console) -> None:
    """12,000 is more than 5,000 and 900, whatever the first digit; cells without a number come last."""

    def policies(query: str) -> list[list[str]]:
        page = console.client.get(f"/console/lab/refresh?{query}").text
        bodies = re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
        return [re.findall(r"<bdi>(default|random|bound-known)</bdi>", body) for body in bodies]

    asis = ["default", "random", "bound-known"]
    assert policies("") == [asis, asis]
    assert policies("t1-sort=-c4") == [["bound-known", "default", "random"], asis]
    assert policies("t2-sort=c3") == [asis, ["random", "default", "bound-known"]]
    assert policies("t1-filter=bound") == [["bound-known"], asis]


def test_a_table_is_taken_away_as_numbers(console: Console) -> None:
    """In the CSV file, units are in the header, and intervals have separate columns, in the requested order."""
    head, *rows = rows_of(console.client.get("/console/lab/refresh?csv=t1&t1-sort=-c4").text)
    assert head == [
        "World",
        "Budget",
        "Policy",
        "Freshness (%)",
        "Freshness, low (%)",
        "Freshness, high (%)",
        "Fetches",
    ]
    assert rows == [
        ["made:tiny", "1000", "bound-known", "", "", "", "12000"],
        ["made:tiny", "50", "default", "75.4", "", "", "5000"],
        ["made:tiny", "200", "random", "9.1", "8.3", "10", "900"],
    ]


def test_numbers_of_several_units_say_which(console: Console, folder: Path) -> None:
    """If rows of a column have different units, the unit gets its own column."""
    rows = [["age", "-0.2\u2009d"], ["freshness", "4.7\u2009points"]]
    put(folder, "refresh", {**REPORT, "tables": [{**TABLE, "columns": ["metric", "difference"], "rows": rows}]})
    head, *lines = rows_of(console.client.get("/console/lab/refresh?csv=t1").text)
    assert head == ["Metric", "Difference", "Difference, unit"]
    assert lines == [["age", "-0.2", "d"], ["freshness", "4.7", "points"]]


def test_a_plot_can_do_nothing(console: Console) -> None:
    """It is served as an image with a policy that allows no scripts or requests, even when opened directly."""
    answer = console.client.get("/console/lab/refresh/lab-refresh-age.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"]
    assert "sandbox;" in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"script-src|allow-scripts|img-src|https?:", policy)


def test_texts_of_an_enemy_are_texts(console: Console, folder: Path) -> None:
    """Everything in a report is escaped, and CSV files contain no formulas."""
    table = {**TABLE, "title": EVIL, "about": EVIL, "meanings": [[EVIL, EVIL]], "columns": ["=1+1", EVIL]}
    evil = {
        **REPORT,
        **dict.fromkeys(("title", "question", "versions"), EVIL),
        "commands": [EVIL, "\ud800"],
        "worlds": [EVIL, "\ud800"],
        "tables": [{**table, "rows": [[EVIL, "=cmd()"], ["@x", "\ud800"]]}],
        "plots": [{"file": f"lab-evil-{kind}.svg", "caption": EVIL, "table": 10**8} for kind in ("age", "none")],
    }
    put(folder, "evil", evil)
    for path in ("/console/lab", "/console/lab/evil", "/console/lab/evil?t1-sort=-c0&t1-filter=%22%3E%3Cscript%3E"):
        page = console.client.get(path)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
    cells = [cell for row in rows_of(console.client.get("/console/lab/evil?csv=t1").text) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "@", "+", "-"))] == []


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "lab-refresh", "refresh.json", "refresh%00", "%ff", "a" * 3_000]
)
def test_other_names_are_nobodys(console: Console, name: str) -> None:
    """The response is a console page or a redirect to the first one."""
    for path in (f"/console/lab/{name}", f"/console/lab/refresh/{name}", f"/console/lab/{name}/lab-refresh-age.svg"):
        answer = console.client.get(path)
        assert answer.status_code in {404, 200, 307, 308, 400}
        assert "root:" not in answer.text
        assert b"<svg" not in answer.content


@given(st.text(max_size=200))
def test_any_text_is_an_amount_or_none(text: str) -> None:
    """Parsing never fails, and a parsed amount starts with a digit or a minus."""
    assert parse_amount(text) is None or text[0] in "-0123456789"


@given(st.floats(-1e9, 1e9), st.sampled_from(["", "\u2009%", "\u2009d"]))
def test_an_amount_is_read_as_it_was_written(value: float, unit: str) -> None:
    """This includes whole numbers with thin spaces between thousands, with or without a unit."""
    written = f"{round(value):,}".replace(",", "\u2009")
    found = parse_amount(f"{written}{unit}")
    assert found is not None
    assert (found.value, found.unit) == (round(value), unit.strip())
