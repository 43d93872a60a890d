"""Tables that sort, filter, page and can be taken away as CSV, all by links: what is looked at stands in the address.

A table is told once what its columns are; each request then says which rows of it are to be seen.
"""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from vedette.web.auth.access import path_of

__all__ = ["Column", "Head", "Seen", "Table", "csv_answer"]

ROWS = 50
LONGEST_FILTER = 200
MOST_PAGES = 1_000_000
Row = TypeVar("Row")
Cell = str | float | int | None
# A spreadsheet takes cells that begin so for formulas, and what stands in ours was written by strangers.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0")


class Column(NamedTuple, Generic[Row]):
    """A column: its short name in addresses, its title, what a row has in it, and whether the largest come first."""

    name: str
    title: str
    of: Callable[[Row], Cell]
    is_number: bool = False


class Head(NamedTuple):
    """The head of a column: where a click on it leads, and how the table is sorted by it now (1 up, -1 down, 0 not)."""

    title: str
    address: str
    sorted: int
    is_number: bool


@dataclass(frozen=True, slots=True)
class Seen(Generic[Row]):
    """What is seen of a table: the rows of one page, and the ways to the others. Addresses are empty where none is."""

    rows: Sequence[Row]
    heads: tuple[Head, ...]
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
    """A table of one kind of row. ``by`` names the column it is sorted by at first, with a minus for the largest first.

    ``key`` stands before the names of its parameters, so that several tables have room on one page.
    So many ``rows`` are shown at once.
    """

    columns: tuple[Column[Row], ...]
    by: str = ""
    key: str = ""
    rows: int = ROWS

    def seen(self, request: Request, rows: Sequence[Row]) -> Seen[Row]:
        """The rows that the request asks for."""
        asked = request.query_params
        found = self._found(rows, self._typed(asked))
        page = min(_page(asked.get(self._name("page"), "")), max(0, len(found) - 1) // self.rows)
        way = _Way(path_of(request), asked)
        column, order = self._sorting(asked)
        start, end = page * self.rows, (page + 1) * self.rows
        return Seen(
            rows=_sorted(found, column, order)[start:end],
            heads=tuple(self._head(each, way, column, order) for each in self.columns),
            total=len(found),
            all=len(rows),
            first=start,
            typed=self._typed(asked),
            fields=way.fields(self._name("filter"), self._name("page")),
            action=way.path,
            before=way.to({self._name("page"): str(page)}) if page else "",
            after=way.to({self._name("page"): str(page + 2)}) if end < len(found) else "",
            csv=way.to({"csv": self.key or "1"}),
        )

    def wants_csv(self, request: Request) -> bool:
        """Whether the request asks for this table as CSV."""
        return request.query_params.get("csv") == (self.key or "1")

    def csv(self, request: Request, rows: Sequence[Row], name: str) -> Response:
        """All rows that the filter leaves, in the order asked for, as a file."""
        column, order = self._sorting(request.query_params)
        found = _sorted(self._found(rows, self._typed(request.query_params)), column, order)
        titles = [each.title for each in self.columns]
        return csv_answer(name, titles, [[each.of(row) for each in self.columns] for row in found])

    def _name(self, parameter: str) -> str:
        return f"{self.key}-{parameter}" if self.key else parameter

    def _typed(self, asked: QueryParams) -> str:
        return asked.get(self._name("filter"), "")[:LONGEST_FILTER].strip()

    def _found(self, rows: Sequence[Row], typed: str) -> Sequence[Row]:
        """The rows of which some text holds what was typed."""
        wanted = typed.casefold()
        if not wanted:
            return rows
        texts = [each for each in self.columns if not each.is_number]
        return [row for row in rows if any(wanted in str(each.of(row) or "").casefold() for each in texts)]

    def _sorting(self, asked: QueryParams) -> tuple[Column[Row] | None, int]:
        typed = asked.get(self._name("sort"), "") or self.by
        order = -1 if typed.startswith("-") else 1
        return next((each for each in self.columns if each.name == typed.removeprefix("-")), None), order

    def _head(self, own: Column[Row], way: "_Way", column: Column[Row] | None, order: int) -> Head:
        now = order if own is column else 0
        first = -1 if own.is_number else 1
        then = "-" if (-now if now else first) < 0 else ""
        leave = {self._name("sort"): then + own.name, self._name("page"): ""}
        return Head(own.title, way.to(leave), now, own.is_number)


class _Way(NamedTuple):
    """The address of the page that is looked at, as a start for others like it."""

    path: str
    asked: QueryParams

    def to(self, changes: dict[str, str]) -> str:
        kept = {name: value for name, value in self.asked.items() if name not in {"done", "csv"}}
        query = urlencode({name: value for name, value in {**kept, **changes}.items() if value}, errors="replace")
        return f"{self.path}?{query}" if query else self.path

    def fields(self, *without: str) -> tuple[tuple[str, str], ...]:
        left_out = {"done", "csv", *without}
        return tuple((name, value) for name, value in self.asked.items() if name not in left_out)


def csv_answer(name: str, titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Response:
    """A table as a file to be saved."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([_tame(cell) for cell in row] for row in (titles, *rows))
    headers = {"content-disposition": f'attachment; filename="{name}.csv"', "x-content-type-options": "nosniff"}
    body = text.getvalue().encode("utf-8", "replace")
    return Response(body, headers=headers, media_type="text/csv; charset=utf-8")


def _tame(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


def _page(typed: str) -> int:
    """The number of a page, from 0; the first for what is no number."""
    if not (typed.isascii() and typed.isdigit()):
        return 0
    return max(0, min(int(typed[:12]), MOST_PAGES) - 1)


def _sorted(rows: Sequence[Row], column: Column[Row] | None, order: int) -> Sequence[Row]:
    """Rows without a value stand at the end, whichever way they are sorted."""
    if column is None:
        return rows
    empty = [row for row in rows if column.of(row) is None]
    others = [row for row in rows if column.of(row) is not None]
    return sorted(others, key=lambda row: _rank(column.of(row)), reverse=order < 0) + empty


def _rank(cell: Cell) -> tuple[float, str]:
    if isinstance(cell, str):
        return 0.0, cell.casefold()
    number = float(cell or 0)
    return (0.0 if math.isnan(number) else number), ""  # which has no place among numbers
