"""The console's pages on the lab: its reports, and each with its question, its plots and its tables.

Plots are files of whoever wrote them. A page shows them as pictures, in which browsers run and load nothing; and they
are sent with a policy by which that holds where somebody opens one by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.console.admin.report_tables import Row, as_csv, table_of
from vedette.web.console.ports.lab_reports import ReportLine, Reports, ReportTable
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.tables import Column, Seen, Table
from vedette.web.rendering import SECURITY

__all__ = ["reporting_routes"]

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
