"""The lab's reports in a data folder, for the console: files that ``vedette lab report --data`` has written.

A name that somebody asks for is never made into a path: it is looked up among the files that are there. Links are not
followed, and only so much of a file is ever read.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Lock

from vedette.runtime.monitoring.report_files import BrokenReport, report_in
from vedette.web.console.ports.lab_reports import Report, ReportLine

__all__ = ["FOLDER", "FolderReports"]

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
