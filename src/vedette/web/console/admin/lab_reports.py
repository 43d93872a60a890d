"""The console's lab report pages: the list of reports, and each report with its question, plots and tables.

Plot files are not trusted. A page shows them as images, in which browsers run and load nothing; and they are sent with
a content security policy that has the same effect when one is opened directly.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from vedette.web.console.ports.lab_reports import ReportLine, ReportStore, ReportTable
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.tables import Cell, Column, Table, TablePage, csv_response, find_csv
from vedette.web.rendering import SECURITY_HEADERS

Row = tuple[str, ...]
ROWS_PER_PAGE = 30
EMPTY_CELLS = ("", "\N{EN DASH}")
MAX_AMOUNT_LENGTH = 120  # of an amount
_NUMBER = r"-?[0-9]{1,3}(?:\u2009?[0-9]{3}){0,5}(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?"
_UNIT = r"(?:\u2009[^\[\]\s0-9][^\[\]\s]{0,20})?"
_AMOUNT = re.compile(rf"({_NUMBER})({_UNIT})(?: \[({_NUMBER}), ({_NUMBER}){_UNIT}\])?")


class Amount(NamedTuple):
    """A number in a lab report's table, with its unit and its interval; bounds are None without an interval."""

    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None


def parse_amount(text: str) -> Amount | None:
    """Parse a lab report's table cell as a number with unit and interval; None if it is not one.

    >>> parse_amount("4\u2009997 [4\u2009994, 4\u2009999]"), parse_amount("1.12\u2009d"), parse_amount("made:tiny")
    (Amount(value=4997, unit='', low=4994, high=4999), Amount(value=1.12, unit='d', low=None, high=None), None)
    """
    found = _AMOUNT.fullmatch(text) if len(text) <= MAX_AMOUNT_LENGTH else None
    if found is None:
        return None
    value, unit, low, high = found.groups()
    return Amount(
        _parse_number(value), unit.strip(), *(None if end is None else _parse_number(end) for end in (low, high))
    )


def _parse_number(text: str) -> float:
    """Parse a number of a lab report as an int or a float, as it is written: 5 000 is 5000, not 5000.0."""
    bare = text.replace("\u2009", "")
    return float(bare) if "." in bare or "e" in bare else int(bare)


def build_table(report_table: ReportTable, key: str) -> Table[Row]:
    """Build the sortable console table for a lab report's table; number columns sort numerically."""
    numbers = _find_number_columns(report_table)
    columns = (
        Column(f"c{place}", _capitalize(title), _make_sort_key(place, is_number=numbers[place]), numbers[place])
        for place, title in enumerate(report_table.columns)
    )
    return Table(tuple(columns), prefix=key, page_size=ROWS_PER_PAGE)


def _capitalize(title: str) -> str:
    """Capitalize a lab report's column title, except single letters such as p and n."""
    return title if title[1:2] in {"", " "} else f"{title[0].upper()}{title[1:]}"


def _find_number_columns(report_table: ReportTable) -> list[bool]:
    found = []
    for place in range(len(report_table.columns)):
        texts = [row[place] for row in report_table.rows if row[place] not in EMPTY_CELLS]
        found.append(bool(texts) and all(parse_amount(text) for text in texts))
    return found


def _make_sort_key(place: int, *, is_number: bool) -> Callable[[Row], Cell]:
    def get_amount(row: Row) -> Cell:
        amount = parse_amount(row[place])
        return None if amount is None else amount.value

    return get_amount if is_number else lambda row: row[place]


def export_csv(request: Request, report_table: ReportTable, table: Table[Row], name: str) -> Response:
    """Export the filtered and sorted rows of a lab report's table as CSV.

    An interval takes two more columns, and units are part of the column titles.
    """
    whole = Table(table.columns, prefix=table.prefix, page_size=max(len(report_table.rows), 1))
    rows = whole.paginate(request, report_table.rows).rows
    columns = [
        column for place, each in enumerate(table.columns) for column in _expand_column(report_table, place, each)
    ]
    titles = [title for title, _ in columns]
    return csv_response(name, titles, [[of(row) for _, of in columns] for row in rows])


def _expand_column(
    report_table: ReportTable, place: int, column: Column[Row]
) -> Iterator[tuple[str, Callable[[Row], Cell]]]:
    """Split a lab report's column into CSV columns: number, interval bounds, and unit if rows differ in it."""

    def amount(row: Row) -> Amount:
        return parse_amount(row[place]) or Amount(0.0)

    amounts = [amount(row) for row in report_table.rows] if column.is_number else []
    units = [unit for unit in dict.fromkeys(each.unit for each in amounts) if unit]
    unit = f" ({units[0]})" if len(units) == 1 else ""
    yield f"{column.title}{unit}", column.get_cell
    if any(each.low is not None for each in amounts):
        yield f"{column.title}, low{unit}", lambda row: amount(row).low
        yield f"{column.title}, high{unit}", lambda row: amount(row).high
    if len(units) > 1:
        yield f"{column.title}, unit", lambda row: amount(row).unit


PLOT_POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
PLOT_HEADERS: Final = SECURITY_HEADERS | {"content-security-policy": PLOT_POLICY}
_REPORT_LIST: Table[ReportLine] = Table(
    (
        Column("report", "Report", lambda line: line.name),
        Column("question", "Question", lambda line: line.problem or line.question),
        Column("written", "Written", lambda line: line.at_s, is_number=True),
    )
)


class _ReportSection(NamedTuple):
    """A lab report's table with its key in URLs and the part of it that is shown."""

    key: str
    report_table: ReportTable
    table: Table[Row]
    seen: TablePage[Row]


@dataclass(frozen=True, slots=True)
class LabPages:
    """The console's lab pages: list of lab reports, one report, and its plots.

    ``wall_clock`` is the clock that dates report files.
    """

    shell: ConsoleShell
    reports: ReportStore
    wall_clock: Callable[[], float]

    def show_list(self, request: Request) -> Response:
        """Show the list of lab reports, or how to create one."""
        lines = self.reports.list_reports()
        if file := find_csv(request, (_REPORT_LIST, lines, "reports")):
            return file
        seen = _REPORT_LIST.paginate(request, lines)
        return self.shell.render_page("lab.html", request, here="lab", title="Lab", seen=seen, wall_s=self.wall_clock())

    def show_report(self, request: Request) -> Response:
        """Show a lab report, or export one of its tables as CSV."""
        name = request.path_params["name"]
        report = self.reports.load_report(name)
        if report is None:
            problem = next((line.problem for line in self.reports.list_reports() if line.name == name), "")
            return self.shell.not_found_page(
                request, message=f"This report cannot be shown: {problem}." if problem else ""
            )
        shown = [
            _build_section(request, f"t{number}", report_table) for number, report_table in enumerate(report.tables, 1)
        ]
        for each in shown:
            if each.table.wants_csv(request):
                return export_csv(request, each.report_table, each.table, f"{name}-{each.key}")
        title = f"Lab: {report.title}"
        return self.shell.render_page(
            "report.html", request, here="lab", title=title, name=name, report=report, shown=shown
        )

    def show_plot(self, request: Request) -> Response:
        """Send a lab report's plot as an SVG image."""
        drawing = self.reports.load_plot(request.path_params["name"], request.path_params["file"])
        if drawing is None:
            return self.shell.not_found_page(request)
        return Response(drawing, headers=PLOT_HEADERS, media_type="image/svg+xml")


def _build_section(request: Request, key: str, report_table: ReportTable) -> _ReportSection:
    table = build_table(report_table, key)
    return _ReportSection(key, report_table, table, table.paginate(request, report_table.rows))
