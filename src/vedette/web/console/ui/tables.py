"""Console tables that sort, filter, page and export to CSV by links: their state is in the URL's parameters.

A table is defined once by its columns; each request then selects which of its rows are shown.
"""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from vedette.web.auth.access import get_path

ROWS_PER_PAGE = 50
MAX_FILTER_LENGTH = 200
MAX_PAGES = 1_000_000
Row = TypeVar("Row")
Cell = str | float | int | None
# A spreadsheet treats cells that begin like this as formulas, and our cells contain untrusted text.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0")


class Column(NamedTuple, Generic[Row]):
    """A table column: key in URLs, title, cell getter, and whether it is numeric (largest first)."""

    name: str
    title: str
    get_cell: Callable[[Row], Cell]
    is_number: bool = False


class ColumnHead(NamedTuple):
    """A table column's head: its sort link, and its current sort direction (1 up, -1 down, 0 not sorted)."""

    title: str
    address: str
    sorted: int
    is_number: bool


@dataclass(frozen=True, slots=True)
class TablePage(Generic[Row]):
    """The shown page of a table: its rows, and links to other pages. Links are empty if there is no page."""

    rows: Sequence[Row]
    heads: tuple[ColumnHead, ...]
    total: int
    all: int
    first: int
    typed: str
    fields: tuple[tuple[str, str], ...]
    action: str
    before: str
    after: str
    csv: str


@dataclass(frozen=True)  # without slots, so that Table[Row](…) can be written
class Table(Generic[Row]):
    """A console table of one type of row that sorts, filters and shows ``page_size`` rows a page.

    ``default_sort`` names the column it is sorted by at first, with a minus for the largest first. ``prefix`` is put
    before the names of its parameters, so that a page can have several tables.
    """

    columns: tuple[Column[Row], ...]
    default_sort: str = ""
    prefix: str = ""
    page_size: int = ROWS_PER_PAGE

    def paginate(self, request: Request, rows: Sequence[Row]) -> TablePage[Row]:
        """Return the table's page of rows that the request's sort, filter and page parameters select."""
        params = request.query_params
        found = self._filter_rows(rows, self._get_filter_text(params))
        page = min(
            _parse_page(params.get(self._prefix_parameter("page"), "")), max(0, len(found) - 1) // self.page_size
        )
        way = _PageUrl(get_path(request), params)
        column, order = self._parse_sort(params)
        start, end = page * self.page_size, (page + 1) * self.page_size
        return TablePage(
            rows=_sort_rows(found, column, order)[start:end],
            heads=tuple(self._build_head(each, way, column, order) for each in self.columns),
            total=len(found),
            all=len(rows),
            first=start,
            typed=self._get_filter_text(params),
            fields=way.list_hidden_fields(self._prefix_parameter("filter"), self._prefix_parameter("page")),
            action=way.path,
            before=way.with_changes({self._prefix_parameter("page"): str(page)}) if page else "",
            after=way.with_changes({self._prefix_parameter("page"): str(page + 2)}) if end < len(found) else "",
            csv=way.with_changes({"csv": self.prefix or "1"}),
        )

    def wants_csv(self, request: Request) -> bool:
        """Check whether the request exports this table as CSV."""
        return request.query_params.get("csv") == (self.prefix or "1")

    def csv_response(self, request: Request, rows: Sequence[Row], name: str) -> Response:
        """Return the table's filtered and sorted rows as a CSV file."""
        column, order = self._parse_sort(request.query_params)
        found = _sort_rows(self._filter_rows(rows, self._get_filter_text(request.query_params)), column, order)
        titles = [each.title for each in self.columns]
        return csv_response(name, titles, [[each.get_cell(row) for each in self.columns] for row in found])

    def _prefix_parameter(self, parameter: str) -> str:
        return f"{self.prefix}-{parameter}" if self.prefix else parameter

    def _get_filter_text(self, params: QueryParams) -> str:
        return params.get(self._prefix_parameter("filter"), "")[:MAX_FILTER_LENGTH].strip()

    def _filter_rows(self, rows: Sequence[Row], typed: str) -> Sequence[Row]:
        """Return the table rows in which some cell contains the filter text."""
        wanted = typed.casefold()
        if not wanted:
            return rows
        texts = [each for each in self.columns if not each.is_number]
        return [row for row in rows if any(wanted in str(each.get_cell(row) or "").casefold() for each in texts)]

    def _parse_sort(self, params: QueryParams) -> tuple[Column[Row] | None, int]:
        typed = params.get(self._prefix_parameter("sort"), "") or self.default_sort
        order = -1 if typed.startswith("-") else 1
        return next((each for each in self.columns if each.name == typed.removeprefix("-")), None), order

    def _build_head(self, own: Column[Row], way: "_PageUrl", column: Column[Row] | None, order: int) -> ColumnHead:
        now = order if own is column else 0
        first = -1 if own.is_number else 1
        then = "-" if (-now if now else first) < 0 else ""
        leave = {self._prefix_parameter("sort"): then + own.name, self._prefix_parameter("page"): ""}
        return ColumnHead(own.title, way.with_changes(leave), now, own.is_number)


class _PageUrl(NamedTuple):
    """The URL of the current table page, from which links to sort, filter and page are built."""

    path: str
    params: QueryParams

    def with_changes(self, changes: dict[str, str]) -> str:
        params = {name: value for name, value in self.params.items() if name not in {"done", "csv"}}
        query = urlencode({name: value for name, value in {**params, **changes}.items() if value}, errors="replace")
        return f"{self.path}?{query}" if query else self.path

    def list_hidden_fields(self, *without: str) -> tuple[tuple[str, str], ...]:
        left_out = {"done", "csv", *without}
        return tuple((name, value) for name, value in self.params.items() if name not in left_out)


def find_csv(request: Request, *tables: tuple[Table[Any], Sequence[Any], str]) -> Response | None:
    """Return the CSV file of the table that the request exports, if it is one of the given tables; else None."""
    wanted = (one for one in tables if one[0].wants_csv(request))
    return next((table.csv_response(request, rows, name) for table, rows, name in wanted), None)


def csv_response(name: str, titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Response:
    """Return a table's titles and rows as a CSV file to download."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([_escape_formula(cell) for cell in row] for row in (titles, *rows))
    headers = {"content-disposition": f'attachment; filename="{name}.csv"', "x-content-type-options": "nosniff"}
    body = text.getvalue().encode("utf-8", "replace")
    return Response(body, headers=headers, media_type="text/csv; charset=utf-8")


def _escape_formula(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell


def _parse_page(typed: str) -> int:
    """Parse a table's page number, from 0; the first page if it is not a number."""
    if not (typed.isascii() and typed.isdigit()):
        return 0
    return max(0, min(int(typed[:12]), MAX_PAGES) - 1)


def _sort_rows(rows: Sequence[Row], column: Column[Row] | None, order: int) -> Sequence[Row]:
    """Sort table rows by a column; rows without a value are last in either direction."""
    if column is None:
        return rows
    empty = [row for row in rows if column.get_cell(row) is None]
    others = [row for row in rows if column.get_cell(row) is not None]
    return sorted(others, key=lambda row: _sort_key(column.get_cell(row)), reverse=order < 0) + empty


def _sort_key(cell: Cell) -> tuple[float, str]:
    if isinstance(cell, str):
        return 0.0, cell.casefold()
    number = float(cell or 0)
    return (0.0 if math.isnan(number) else number), ""  # which cannot be ordered among numbers
