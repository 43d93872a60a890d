"""The lab's reports in a data folder, for the console: files that ``vedette lab report --data`` has written.

A name that somebody asks for is never made into a path: it is looked up among the files that are there. Links are not
followed, and only so much of a file is ever read.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from vedette.web.console.ports.lab_reports import Report, ReportLine, ReportPlot, ReportTable

__all__ = ["FOLDER", "BrokenReport", "FolderReports", "report_in"]

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


FOLDER = "lab"
MOST_ENTRIES = 20_000
MOST_REPORTS = 200
MOST_REPORT_BYTES = 4_000_000
MOST_PLOT_BYTES = 1_000_000
# What a report's writer calls its files; a name in addresses is the part between.
_REPORT = re.compile(r"lab-([a-z0-9][a-z0-9-]{0,200})\.json")
_PLOT = re.compile(r"lab-[a-z0-9][a-z0-9-]{0,240}\.svg")

Stamp = tuple[int, int]


class FolderReports:
    """A ``web.console.report_ports.Reports`` over one data folder; safe to be asked by several threads."""

    def __init__(self, folder: Path) -> None:
        self._place = folder / FOLDER
        self._lock = Lock()
        self._lines: dict[str, tuple[Stamp, ReportLine]] = {}

    def has_any(self) -> bool:
        """Whether some file is named like a report."""
        return any(_REPORT.fullmatch(entry.name) for entry in self._entries())

    def listed(self) -> list[ReportLine]:
        """The latest reports first; a file is read again only when it has changed."""
        with self._lock:
            found = sorted(self._found().items(), key=lambda each: (-each[1][0], each[0]))[:MOST_REPORTS]
            self._lines = {name: (stamp, self._line(name, stamp)) for name, stamp in found}
            return [line for _, line in self._lines.values()]

    def report(self, name: str) -> Report | None:
        """A report that is there and can be shown, with those of its plots that are there."""
        if name not in self._found():
            return None
        try:
            report = self._read(name)
        except BrokenReport:
            return None
        files = frozenset(entry.name for entry in self._entries())
        there = [plot.file in files and _is_plot_of(name, plot.file) for plot in report.plots]
        pairs = list(zip(report.plots, there, strict=True))
        return report._replace(
            plots=tuple(plot for plot, is_there in pairs if is_there),
            missing=tuple(plot.caption for plot, is_there in pairs if not is_there),
        )

    def plot(self, name: str, file: str) -> bytes | None:
        """A drawing, if its file is there and looks like one of ours: without declarations, whose entities can grow."""
        if not _is_plot_of(name, file) or all(entry.name != file for entry in self._entries()):
            return None
        drawing = _start_of(self._place / file, MOST_PLOT_BYTES)
        is_ours = drawing is not None and drawing.startswith(b"<svg ") and b"<!" not in drawing
        return drawing if is_ours else None

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        """The plain files of the folder; none where there is no folder."""
        try:
            with os.scandir(self._place) as entries:
                yield from (entry for entry in islice(entries, MOST_ENTRIES) if entry.is_file(follow_symlinks=False))
        except OSError:
            return

    def _found(self) -> dict[str, Stamp]:
        """The names of all reports, with when each was written (in nanoseconds) and how large it is."""
        found = {}
        for entry in self._entries():
            if match := _REPORT.fullmatch(entry.name):
                with suppress(FileNotFoundError):  # it went just now
                    stat = entry.stat(follow_symlinks=False)
                    found[match[1]] = (stat.st_mtime_ns, stat.st_size)
        return found

    def _line(self, name: str, stamp: Stamp) -> ReportLine:
        kept = self._lines.get(name)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        at_s = stamp[0] / 1e9
        try:
            return ReportLine(name, self._read(name).question, at_s)
        except BrokenReport as broken:
            return ReportLine(name, "", at_s, str(broken))

    def _read(self, name: str) -> Report:
        data = _start_of(self._place / f"lab-{name}.json", MOST_REPORT_BYTES)
        if data is None:
            raise BrokenReport(f"it cannot be read, or has more than {MOST_REPORT_BYTES // 10**6} MB")
        return report_in(data)


def _is_plot_of(name: str, file: str) -> bool:
    return _PLOT.fullmatch(file) is not None and file.startswith(f"lab-{name}-")


def _start_of(path: Path, most: int) -> bytes | None:
    """A file of at most so many bytes; None where it is larger, gone, or another's."""
    try:
        # It may have become a link or a pipe since it was listed: neither is followed nor waited for.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            data = opened.read(most + 1)
    except OSError:
        return None
    return data if data is not None and len(data) <= most else None
