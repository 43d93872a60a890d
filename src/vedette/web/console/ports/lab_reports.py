"""Ports of the console's pages on the lab: reports as plain values, which come from files.

Nobody knows who wrote the files, so whatever is in these values is shown as text.
"""

from typing import Final, NamedTuple, Protocol


class ReportLine(NamedTuple):
    """A report in a list: its name in addresses, what it asks, when it was written (by the wall's clock).

    ``problem`` says in words why it cannot be shown; then nothing else is known of it.
    """

    name: str
    question: str
    at_s: float
    problem: str = ""


class ReportTable(NamedTuple):
    """A table: how to read it, what its columns mean, and its rows as texts. ``left_out`` rows were too many."""

    title: str
    about: str
    meanings: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


class ReportPlot(NamedTuple):
    """A plot: its file beside the report, what it shows, and the number of the table that has its numbers."""

    file: str
    caption: str
    table: int


class Report(NamedTuple):
    """A report. ``missing`` are captions of plots whose files are not there."""

    title: str
    question: str
    commands: tuple[str, ...]
    versions: str
    worlds: tuple[str, ...]
    tables: tuple[ReportTable, ...]
    plots: tuple[ReportPlot, ...]
    missing: tuple[str, ...] = ()


class ReportStore(Protocol):
    """Whoever has them. Anything but ``has_any`` may take a moment, so it is asked in a thread."""

    def has_any(self) -> bool:
        """Whether there is something to list; it is asked for every page."""

    def list_reports(self) -> list[ReportLine]:
        """All, the latest first."""

    def load_report(self, name: str) -> Report | None:
        """One of them, by its name; None for any other name, and for one that cannot be shown."""

    def load_plot(self, name: str, file: str) -> bytes | None:
        """The drawing of a report's plot; None for anything else."""


class _NoReports:
    """Nobody has any."""

    def has_any(self) -> bool:
        return False

    def list_reports(self) -> list[ReportLine]:
        return []

    def load_report(self, _name: str) -> Report | None:
        return None

    def load_plot(self, _name: str, _file: str) -> bytes | None:
        return None


NO_REPORTS: Final[ReportStore] = _NoReports()
