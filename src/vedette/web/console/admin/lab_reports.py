"""The console's pages on the lab: its reports, and each with its question, its plots and its tables.

Plots are files of whoever wrote them. A page shows them as pictures, in which browsers run and load nothing; and they
are sent with a policy by which that holds where somebody opens one by itself.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.console.ports.lab_reports import ReportLine, Reports, ReportTable
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.tables import Cell, Column, Seen, Table, csv_answer
from vedette.web.rendering import SECURITY

__all__ = ["Amount", "Row", "amount_of", "as_csv", "reporting_routes", "table_of"]

Row = tuple[str, ...]
ROWS = 30
NOTHING = ("", "\N{EN DASH}")
LONGEST = 120  # of an amount
_NUMBER = r"-?[0-9]{1,3}(?:\u2009?[0-9]{3}){0,5}(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?"
_UNIT = r"(?:\u2009[^\[\]\s0-9][^\[\]\s]{0,20})?"
_AMOUNT = re.compile(rf"({_NUMBER})({_UNIT})(?: \[({_NUMBER}), ({_NUMBER}){_UNIT}\])?")


class Amount(NamedTuple):
    """A number as reports write it, with its unit and its interval; None where it has none."""

    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None


def amount_of(text: str) -> Amount | None:
    """The number that a text says; None where it says something else.

    >>> amount_of("4\u2009997 [4\u2009994, 4\u2009999]"), amount_of("1.12\u2009d"), amount_of("made:tiny")
    (Amount(value=4997, unit='', low=4994, high=4999), Amount(value=1.12, unit='d', low=None, high=None), None)
    """
    found = _AMOUNT.fullmatch(text) if len(text) <= LONGEST else None
    if found is None:
        return None
    value, unit, low, high = found.groups()
    return Amount(_number(value), unit.strip(), *(None if end is None else _number(end) for end in (low, high)))


def _number(text: str) -> float:
    """As it was written: 5 000 is 5000, and not 5000.0."""
    bare = text.replace("\u2009", "")
    return float(bare) if "." in bare or "e" in bare else int(bare)


def table_of(told: ReportTable, key: str) -> Table[Row]:
    """The table as pages show it: a column of numbers is sorted as such."""
    numbers = _number_columns(told)
    columns = (
        Column(f"c{place}", _headed(title), _sorted_by(place, is_number=numbers[place]), numbers[place])
        for place, title in enumerate(told.columns)
    )
    return Table(tuple(columns), key=key, rows=ROWS)


def _headed(title: str) -> str:
    """With a capital, as in all tables; but p and n are written small everywhere."""
    return title if title[1:2] in {"", " "} else f"{title[0].upper()}{title[1:]}"


def _number_columns(told: ReportTable) -> list[bool]:
    found = []
    for place in range(len(told.columns)):
        texts = [row[place] for row in told.rows if row[place] not in NOTHING]
        found.append(bool(texts) and all(amount_of(text) for text in texts))
    return found


def _sorted_by(place: int, *, is_number: bool) -> Callable[[Row], Cell]:
    def text_of(row: Row) -> Cell:
        return row[place]

    def value_of(row: Row) -> Cell:
        amount = amount_of(row[place])
        return None if amount is None else amount.value

    return value_of if is_number else text_of


def as_csv(request: Request, told: ReportTable, table: Table[Row], name: str) -> Response:
    """The rows that the filter leaves, in the order asked for. Intervals take two more columns, units stand above."""
    whole = Table(table.columns, key=table.key, rows=max(len(told.rows), 1))
    rows = whole.seen(request, told.rows).rows
    columns = [column for place, each in enumerate(table.columns) for column in _taken(told, place, each)]
    titles = [title for title, _ in columns]
    return csv_answer(name, titles, [[of(row) for _, of in columns] for row in rows])


def _taken(told: ReportTable, place: int, column: Column[Row]) -> Iterator[tuple[str, Callable[[Row], Cell]]]:
    """A column as one or several: its number, the ends of its interval, and its unit where lines differ in it."""

    def amount(row: Row) -> Amount:
        return amount_of(row[place]) or Amount(0.0)

    amounts = [amount(row) for row in told.rows] if column.is_number else []
    units = [unit for unit in dict.fromkeys(each.unit for each in amounts) if unit]
    unit = f" ({units[0]})" if len(units) == 1 else ""
    yield f"{column.title}{unit}", column.of
    if any(each.low is not None for each in amounts):
        yield f"{column.title}, low{unit}", lambda row: amount(row).low
        yield f"{column.title}, high{unit}", lambda row: amount(row).high
    if len(units) > 1:
        yield f"{column.title}, unit", lambda row: amount(row).unit


POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
PLOT_HEADERS: Final = SECURITY | {"content-security-policy": POLICY}
_LIST: Table[ReportLine] = Table(
    (
        Column("report", "Report", lambda line: line.name),
        Column("question", "Question", lambda line: line.problem or line.question),
        Column("written", "Written", lambda line: line.at_s, is_number=True),
    )
)


class _Shown(NamedTuple):
    """A table of a report, and what is seen of it under its key."""

    key: str
    told: ReportTable
    table: Table[Row]
    seen: Seen[Row]


def reporting_routes(shell: Shell, reports: Reports, wall: Callable[[], float]) -> list[Route]:
    """The page Lab and those below it; ``wall`` is the clock by which files are dated."""
    pages = _Pages(shell, reports, wall)
    return [
        Route("/lab", pages.listed),
        Route("/lab/{name}", pages.report),
        Route("/lab/{name}/{file}", pages.plot),
    ]


@dataclass(frozen=True, slots=True)
class _Pages:
    """The handlers, with what they need."""

    shell: Shell
    reports: Reports
    wall: Callable[[], float]

    async def listed(self, request: Request) -> Response:
        """All reports, or how to make one."""
        lines = await run_in_threadpool(self.reports.listed)
        if _LIST.wants_csv(request):
            return _LIST.csv(request, lines, "reports")
        told: dict[str, Any] = {"seen": _LIST.seen(request, lines), "wall_s": self.wall()}
        return self.shell.page("lab.html", request, here="lab", title="Lab", **told)

    async def report(self, request: Request) -> Response:
        """One of them, or a table of it as CSV."""
        name = request.path_params["name"]
        report = await run_in_threadpool(self.reports.report, name)
        if report is None:
            return await self._none(request, name)
        tables = [(f"t{number}", told) for number, told in enumerate(report.tables, 1)]
        shown = await run_in_threadpool(lambda: [_shown(request, key, told) for key, told in tables])
        for each in shown:
            if each.table.wants_csv(request):
                return as_csv(request, each.told, each.table, f"{name}-{each.key}")
        values: dict[str, Any] = {"name": name, "report": report, "shown": shown}
        return self.shell.page("report.html", request, here="lab", title=f"Lab: {report.title}", **values)

    async def _none(self, request: Request, name: str) -> Response:
        """There is no such report; or there is, and why it cannot be shown."""
        lines = await run_in_threadpool(self.reports.listed)
        said = next((line.problem for line in lines if line.name == name), "")
        return self.shell.nothing_here(request, said=f"This report cannot be shown: {said}." if said else "")

    async def plot(self, request: Request) -> Response:
        """A plot as a picture."""
        name, file = request.path_params["name"], request.path_params["file"]
        drawing = await run_in_threadpool(self.reports.plot, name, file)
        if drawing is None:
            return self.shell.nothing_here(request)
        return Response(drawing, headers=PLOT_HEADERS, media_type="image/svg+xml")


def _shown(request: Request, key: str, told: ReportTable) -> _Shown:
    table = table_of(told, key)
    return _Shown(key, told, table, table.seen(request, told.rows))
