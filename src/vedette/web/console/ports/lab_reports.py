"""Ports of the console's lab report pages: reports as plain values, which come from files.

The files are not trusted, so all of these values are shown as text.
"""

from typing import Final, NamedTuple, Protocol


class ReportLine(NamedTuple):
    """A lab report in the console's list: name in URLs, question, and when it was written (wall clock).

    ``problem`` says why it cannot be shown; then the other values are empty.
    """

    name: str
    question: str
    at_s: float
    problem: str = ""


class ReportTable(NamedTuple):
    """A table of a lab report: how to read it, its columns and its rows as texts.

    ``left_out`` counts the rows beyond the limit.
    """

    title: str
    about: str
    meanings: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


class ReportPlot(NamedTuple):
    """A plot of a lab report: its file, its caption, and the number of the table with its data."""

    file: str
    caption: str
    table: int


class Report(NamedTuple):
    """A lab report for the console. ``missing`` are captions of plots whose files do not exist."""

    title: str
    question: str
    commands: tuple[str, ...]
    versions: str
    worlds: tuple[str, ...]
    tables: tuple[ReportTable, ...]
    plots: tuple[ReportPlot, ...]
    missing: tuple[str, ...] = ()


class ReportStore(Protocol):
    """Port of the console's lab pages: the store of lab reports, implemented over a data folder.

    Anything but ``has_any`` may take a moment, so call it in a thread.
    """

    def has_any(self) -> bool:
        """Check whether there are lab reports to list; called for every console page."""

    def list_reports(self) -> list[ReportLine]:
        """List all lab reports for the console's lab page, latest first."""

    def load_report(self, name: str) -> Report | None:
        """Load a lab report by name for the console; None if there is none or it cannot be shown."""

    def load_plot(self, name: str, file: str) -> bytes | None:
        """Load the SVG of a lab report's plot for the console; None if there is none."""


class _NoReports:
    """Null implementation of the lab report port, for a console without reports."""

    def has_any(self) -> bool:
        return False

    def list_reports(self) -> list[ReportLine]:
        return []

    def load_report(self, _name: str) -> Report | None:
        return None

    def load_plot(self, _name: str, _file: str) -> bytes | None:
        return None


NO_REPORTS: Final[ReportStore] = _NoReports()
