"""Progress on the terminal: a screen or bar that does not scroll, plain lines elsewhere, none with ``--quiet``."""

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from vedette.adapters.crawl_store.status_file import FRESH_S
from vedette.cli.output import format_bytes, format_count, format_counts, format_duration, format_number

if TYPE_CHECKING:
    from rich.live import Live
    from rich.progress import Progress
    from rich.table import Table

REDRAW_INTERVAL_S = 0.1
RATE_OVER_S = 5.0
LINE_WIDTH = 80
_ONE_LINE: Any = {"no_wrap": True, "overflow": "ellipsis"}
StatusNumbers = Mapping[str, Any]


class ProgressLine:
    """A progress line with the share that is done; a context manager."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._what = what
        self._shown = not quiet and sys.stderr.isatty()
        self._next_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def update(self, done: int, total: int) -> None:
        """Show how much of the total is done on the progress line."""
        if not self._shown or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + REDRAW_INTERVAL_S
        print(f"\r\x1b[K{self._what} {100 * done // max(total, 1)}%", end="", file=sys.stderr, flush=True)

    def update_part(self, part: str, done: int, total: int) -> None:
        """Show how much of one of several parts is done on the progress line."""
        self._what = part
        self.update(done, total)


class ProgressBar:
    """A progress bar on a terminal, an occasional line elsewhere; a context manager.

    The caller draws it: a separate thread would not survive forks.
    """

    def __init__(self, total: int, *, quiet: bool, interval_s: float) -> None:
        self._total, self._quiet, self._interval_s = total, quiet, interval_s
        self._bar: Progress | None = None
        self._began_s = self._printed_s = time.monotonic()

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
            from rich.table import Column

            # A cell's name is not markup, and may be long.
            fitted = Column(ratio=1, no_wrap=True, overflow="ellipsis")
            words = TextColumn("{task.description}", markup=False, table_column=fitted)
            columns = (MofNCompleteColumn(), BarColumn(20), TimeRemainingColumn(), words)
            self._bar = Progress(
                *columns, console=Console(stderr=True), transient=True, auto_refresh=False, expand=True
            )
            self._bar.start()
            self._bar.add_task("starting", total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def draw(self, done: int | None, words: str, line: Callable[[float], str], *, soon: bool = False) -> None:
        """Draw the progress bar with its words; without a terminal, print the line if one is due."""
        now_s = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, description=words, refresh=True)
        elif not self._quiet and (soon or now_s - self._printed_s >= self._interval_s):
            self._printed_s = now_s
            print(line(now_s - self._began_s), file=sys.stderr, flush=True)


@dataclass(slots=True)
class _PageRate:
    """The rate of fetched pages per second over the last few seconds, for the progress screen."""

    points: deque[tuple[float, int]] = field(default_factory=lambda: deque([(time.monotonic(), 0)]))

    def add(self, wall_s: float, pages: int) -> float:
        self.points.append((wall_s, pages))
        while len(self.points) > 2 and wall_s - self.points[1][0] > RATE_OVER_S:
            self.points.popleft()
        elapsed_s = wall_s - self.points[0][0]
        return (pages - self.points[0][1]) / elapsed_s if elapsed_s > 0.2 else 0.0


class Screen:
    """The progress screen of a running crawl, from the status numbers of its coordinator; a context manager."""

    def __init__(self, headline: str, *, quiet: bool, note: str = "") -> None:
        self._headline = headline
        self._note = note
        self._quiet = quiet
        self._live: Live | None = None
        self._rate = _PageRate()
        self._started_s = self._shown_s = time.monotonic()

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, status: StatusNumbers) -> None:
        """Draw the coordinator's latest status numbers on the progress screen, if a redraw is due."""
        now_s = time.monotonic()
        if self._quiet or "pages" not in status or now_s - self._shown_s < (0.125 if self._live else 5.0):
            return
        self._shown_s = now_s
        rate = self._rate.add(now_s, status["pages"])
        if self._live is None:
            print(self._format_line(status, rate, now_s), file=sys.stderr)
        else:
            self._live.update(self.build_table(status, rate, now_s - self._started_s), refresh=True)

    def build_table(self, status: StatusNumbers, rate: float, elapsed_s: float) -> "Table":
        """Build the progress screen's table as plain text: text from the web must not be read as markup."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2), expand=True)
        age = f"   as of {format_duration(status['age_s'])} ago" if status.get("age_s", 0.0) >= FRESH_S else ""
        table.title = Text.assemble(
            ("vedette", "bold"), f"  {format_duration(elapsed_s)}{age}  ", self._headline, **_ONE_LINE
        )
        table.title_justify = "left"
        table.caption, table.caption_justify = Text(f"\n{self._note}", "dim", **_ONE_LINE), "left"
        table.add_column(style="dim", width=7)
        table.add_column(justify="right", width=11, no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_row()
        for name, value, text in _table_rows(status, rate):
            table.add_row(name, value, Text(text))
        return table

    def _format_line(self, status: StatusNumbers, rate: float, now_s: float) -> str:
        pending = format_number(status["hosts_waiting"].get("waiting for a response", 0))
        age = f" (as of {format_duration(status['age_s'])} ago)" if status.get("age_s", 0.0) >= FRESH_S else ""
        line = (
            f"{format_duration(now_s - self._started_s):>11}  {format_number(status['pages'])} fetched, {rate:.0f}/s, "
            f"{format_number(status['urls_waiting'])} waiting, {pending} of {format_count(status['hosts'], 'host')}, "
            f"{format_number(sum(status['failures'].values()))} failed"
        )
        words = (age.strip(), _describe_host_trouble(status), _describe_machine_trouble(status))
        return "\n".join(_cut(each) for each in [line, *(f"{'':>13}{one}" for one in words if one)])


def _table_rows(status: StatusNumbers, rate: float) -> list[tuple[str, str, str]]:
    work = f"{rate:.0f}/s   {format_bytes(status['bytes'])}   {format_number(status['requests'])} requests"
    trouble = Counter(status["hosts_in_trouble"].values())
    return [
        ("fetched", format_number(status["pages"]), f"{work}   {_describe_refetches(status)}".rstrip()),
        ("waiting", format_number(status["urls_waiting"]), f"of {format_count(status['urls_known'], 'known URL')}"),
        ("hosts", format_number(status["hosts"]), format_counts(status["hosts_waiting"])),
        ("refused", format_number(sum(status["refusals"].values())), format_counts(status["refusals"])),
        ("failed", format_number(sum(status["failures"].values())), format_counts(status["failures"])),
        ("trouble", format_number(trouble.total()), format_counts(trouble)),
        *([("paused", "", _describe_machine_trouble(status))] if _describe_machine_trouble(status) else []),
    ]


def _describe_host_trouble(status: StatusNumbers) -> str:
    """Describe for the progress screen how many hosts fail to respond properly, by reason."""
    trouble = Counter(status["hosts_in_trouble"].values())
    return f"hosts in trouble: {format_counts(trouble)}" if trouble else ""


def _describe_machine_trouble(status: StatusNumbers) -> str:
    """Describe for the progress screen what is wrong with the machine itself, such as a full disk."""
    return str(status.get("trouble") or "")


def _cut(line: str) -> str:
    return line if len(line) <= LINE_WIDTH else f"{line[: LINE_WIDTH - 1]}…"


def _describe_refetches(status: StatusNumbers) -> str:
    again = status["pages"] - status["new_pages"]
    return f"{format_number(again)} refetched, {format_number(status['unchanged'])} unchanged" if again else ""
