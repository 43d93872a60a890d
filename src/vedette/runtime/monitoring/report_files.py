"""What a file of ``vedette lab report`` says. Anybody may have written it: each value is looked at and cut to size."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from vedette.web.console.ports.lab_reports import Report, ReportPlot, ReportTable

__all__ = ["BrokenReport", "report_in"]

T = TypeVar("T")
Told = dict[str, Any]

FORMAT = 1
LONGEST = 2000  # of a text
LONGEST_TITLE = 200
MOST_TABLES, MOST_COLUMNS, MOST_ROWS = 50, 60, 5000
MOST_PLOTS = 200
MOST_OTHERS = 100  # of commands, worlds, meanings


class BrokenReport(ValueError):
    """Why a file is no report, in words that follow "it cannot be shown:"."""


def report_in(data: bytes) -> Report:
    """The report that a file holds."""
    told = _parsed(data)
    if told.get("format") != FORMAT:
        raise BrokenReport("it was written by another vedette; write it again with vedette lab report")
    return Report(
        title=_text(told, "title", LONGEST_TITLE),
        question=_text(told, "question"),
        commands=_each(told, "commands", MOST_OTHERS, _plain),
        versions=_text(told, "versions"),
        worlds=_each(told, "worlds", MOST_OTHERS, _plain),
        tables=_each(told, "tables", MOST_TABLES, _table),
        plots=_each(told, "plots", MOST_PLOTS, _plot),
    )


def _parsed(data: bytes) -> Told:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        raise BrokenReport("it is broken; write it again with vedette lab report") from None
    if not isinstance(told, dict):
        raise BrokenReport("it is no report")
    return told


def _table(told: object) -> ReportTable:
    if not isinstance(told, dict):
        raise BrokenReport("a table of it is none")
    columns = _each(told, "columns", MOST_COLUMNS, _plain)
    rows = _each(told, "rows", MOST_ROWS, _texts)
    if not columns or any(len(row) != len(columns) for row in rows):
        raise BrokenReport("a table of it has rows that do not fit its columns")
    return ReportTable(
        _text(told, "title", LONGEST_TITLE),
        _text(told, "about"),
        _each(told, "meanings", MOST_OTHERS, _meaning),
        columns,
        rows,
        _count(told, "left_out"),
    )


def _plot(told: object) -> ReportPlot:
    if not isinstance(told, dict):
        raise BrokenReport("a plot of it is none")
    return ReportPlot(_text(told, "file"), _text(told, "caption"), _count(told, "table"))


def _meaning(told: object) -> tuple[str, str]:
    match _texts(told):
        case (word, means):
            return word, means
    raise BrokenReport("what a metric of it means is not said in two texts")


def _text(told: Told, name: str, most: int = LONGEST) -> str:
    return _plain(told.get(name))[:most]


def _plain(value: object) -> str:
    if not isinstance(value, str):
        raise BrokenReport("something stands in it where a text should be")
    return value[:LONGEST]


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_COLUMNS:
        raise BrokenReport("something stands in it where a list of texts should be")
    return tuple(_plain(each) for each in value)


def _each(told: Told, name: str, most: int, of: Callable[[object], T]) -> tuple[T, ...]:
    values = told.get(name)
    if not isinstance(values, list) or len(values) > most:
        raise BrokenReport(f'its "{name}" are no list of at most {most}')
    return tuple(of(each) for each in values)


def _count(told: Told, name: str) -> int:
    value = told.get(name)
    if not isinstance(value, int) or not 0 <= value < 10**9:
        raise BrokenReport("something stands in it where a number should be")
    return value
