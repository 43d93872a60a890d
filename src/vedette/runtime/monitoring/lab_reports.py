"""Lab reports in a data folder, for the console: files written by ``vedette lab report --data``.

A requested name is never used as a path: it is looked up among the existing files. Links are not followed, and file
sizes are limited.
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

T = TypeVar("T")
JsonObject = dict[str, Any]

FORMAT = 1
MAX_TEXT = 2000  # of a text
MAX_TITLE = 200
MAX_TABLES, MAX_COLUMNS, MAX_ROWS = 50, 60, 5000
MAX_PLOTS = 200
MAX_OTHERS = 100  # of commands, worlds, meanings


class BrokenReport(ValueError):
    """A lab report file is invalid, with the reason in words that follow "it cannot be shown:"."""


def parse_report(data: bytes) -> Report:
    """Parse a lab report from the bytes of its JSON file; raise ``BrokenReport`` if it is invalid."""
    fields = _parse_json(data)
    if fields.get("format") != FORMAT:
        raise BrokenReport("it was written by another version of Vedette; recreate it with vedette lab report")
    return Report(
        title=_get_text(fields, "title", MAX_TITLE),
        question=_get_text(fields, "question"),
        commands=_parse_list(fields, "commands", MAX_OTHERS, _check_text),
        versions=_get_text(fields, "versions"),
        worlds=_parse_list(fields, "worlds", MAX_OTHERS, _check_text),
        tables=_parse_list(fields, "tables", MAX_TABLES, _parse_table),
        plots=_parse_list(fields, "plots", MAX_PLOTS, _parse_plot),
    )


def _parse_json(data: bytes) -> JsonObject:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise BrokenReport("the file is damaged; recreate it with vedette lab report") from None
    if not isinstance(value, dict):
        raise BrokenReport("the file is not a report")
    return value


def _parse_table(value: object) -> ReportTable:
    if not isinstance(value, dict):
        raise BrokenReport("one of its tables is invalid")
    columns = _parse_list(value, "columns", MAX_COLUMNS, _check_text)
    rows = _parse_list(value, "rows", MAX_ROWS, _parse_texts)
    if not columns or any(len(row) != len(columns) for row in rows):
        raise BrokenReport("one of its tables has rows that do not match its columns")
    return ReportTable(
        _get_text(value, "title", MAX_TITLE),
        _get_text(value, "about"),
        _parse_list(value, "meanings", MAX_OTHERS, _parse_meaning),
        columns,
        rows,
        _get_count(value, "left_out"),
    )


def _parse_plot(value: object) -> ReportPlot:
    if not isinstance(value, dict):
        raise BrokenReport("one of its plots is invalid")
    return ReportPlot(_get_text(value, "file"), _get_text(value, "caption"), _get_count(value, "table"))


def _parse_meaning(value: object) -> tuple[str, str]:
    match _parse_texts(value):
        case (word, means):
            return word, means
    raise BrokenReport("one of its metric descriptions is not a pair of texts")


def _get_text(fields: JsonObject, name: str, most: int = MAX_TEXT) -> str:
    return _check_text(fields.get(name))[:most]


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise BrokenReport("a value that should be a text is not")
    return value[:MAX_TEXT]


def _parse_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_COLUMNS:
        raise BrokenReport("a value that should be a list of texts is not")
    return tuple(_check_text(each) for each in value)


def _parse_list(fields: JsonObject, name: str, most: int, of: Callable[[object], T]) -> tuple[T, ...]:
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > most:
        raise BrokenReport(f'its "{name}" is not a list of at most {most}')
    return tuple(of(each) for each in values)


def _get_count(fields: JsonObject, name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or not 0 <= value < 10**9:
        raise BrokenReport("a value that should be a number is not")
    return value


FOLDER = "lab"
MAX_ENTRIES = 20_000
MAX_REPORTS = 200
MAX_REPORT_BYTES = 4_000_000
MAX_PLOT_BYTES = 1_000_000
# File names of a report; the name in URLs is the part between.
_REPORT = re.compile(r"lab-([a-z0-9][a-z0-9-]{0,200})\.json")
_PLOT = re.compile(r"lab-[a-z0-9][a-z0-9-]{0,240}\.svg")

Stamp = tuple[int, int]


class FolderReports:
    """The console's ``ReportStore`` port implemented over a data folder's lab report files; thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._lock = Lock()
        self._lines: dict[str, tuple[Stamp, ReportLine]] = {}

    def has_any(self) -> bool:
        """Check whether the data folder has any lab report files."""
        return any(_REPORT.fullmatch(entry.name) for entry in self._list_files())

    def list_reports(self) -> list[ReportLine]:
        """List the data folder's lab reports, latest first; a file is read again only if it has changed."""
        with self._lock:
            found = sorted(self._find_reports().items(), key=lambda each: (-each[1][0], each[0]))[:MAX_REPORTS]
            self._lines = {name: (stamp, self._build_line(name, stamp)) for name, stamp in found}
            return [line for _, line in self._lines.values()]

    def load_report(self, name: str) -> Report | None:
        """Load a lab report from its file in the data folder, with those of its plots that exist."""
        if name not in self._find_reports():
            return None
        try:
            report = self._load_report(name)
        except BrokenReport:
            return None
        files = frozenset(entry.name for entry in self._list_files())
        there = [plot.file in files and _is_plot_of(name, plot.file) for plot in report.plots]
        pairs = list(zip(report.plots, there, strict=True))
        return report._replace(
            plots=tuple(plot for plot, is_there in pairs if is_there),
            missing=tuple(plot.caption for plot, is_there in pairs if not is_there),
        )

    def load_plot(self, name: str, file: str) -> bytes | None:
        """Load a lab report's SVG plot file if it exists and seems to be ours.

        It must have no declarations, whose entities can expand.
        """
        if not _is_plot_of(name, file) or all(entry.name != file for entry in self._list_files()):
            return None
        drawing = _read_bounded(self._folder / file, MAX_PLOT_BYTES)
        is_ours = drawing is not None and drawing.startswith(b"<svg ") and b"<!" not in drawing
        return drawing if is_ours else None

    def _list_files(self) -> Iterator[os.DirEntry[str]]:
        """List the regular files of the lab report folder; none if there is no folder."""
        try:
            with os.scandir(self._folder) as entries:
                yield from (entry for entry in islice(entries, MAX_ENTRIES) if entry.is_file(follow_symlinks=False))
        except OSError:
            return

    def _find_reports(self) -> dict[str, Stamp]:
        """Find all lab report files by name, with modification time (in nanoseconds) and size."""
        found = {}
        for entry in self._list_files():
            if match := _REPORT.fullmatch(entry.name):
                with suppress(FileNotFoundError):  # it just disappeared
                    stat = entry.stat(follow_symlinks=False)
                    found[match[1]] = (stat.st_mtime_ns, stat.st_size)
        return found

    def _build_line(self, name: str, stamp: Stamp) -> ReportLine:
        cached = self._lines.get(name)
        if cached is not None and cached[0] == stamp:
            return cached[1]
        at_s = stamp[0] / 1e9
        try:
            return ReportLine(name, self._load_report(name).question, at_s)
        except BrokenReport as broken:
            return ReportLine(name, "", at_s, str(broken))

    def _load_report(self, name: str) -> Report:
        data = _read_bounded(self._folder / f"lab-{name}.json", MAX_REPORT_BYTES)
        if data is None:
            raise BrokenReport(f"it cannot be read, or is larger than {MAX_REPORT_BYTES // 10**6} MB")
        return parse_report(data)


def _is_plot_of(name: str, file: str) -> bool:
    return _PLOT.fullmatch(file) is not None and file.startswith(f"lab-{name}-")


def _read_bounded(path: Path, most: int) -> bytes | None:
    """Read a lab report file of at most ``most`` bytes; None if it is larger, missing, or unreadable."""
    try:
        # It may have become a link or a pipe since it was listed: neither is followed nor waited for.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            data = opened.read(most + 1)
    except OSError:
        return None
    return data if data is not None and len(data) <= most else None
