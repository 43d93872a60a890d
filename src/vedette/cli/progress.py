"""Progress: one screen that does not scroll away on a terminal, plain lines elsewhere, nothing with ``--quiet``."""

import sys
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from vedette.cli.output import format_bytes, format_counts, format_duration, format_number

REDRAW_INTERVAL_S = 0.1


class ProgressLine:
    """Shows a share as it grows; a context manager."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._what = what
        self._shown = not quiet and sys.stderr.isatty()
        self._next_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def update(self, done: int, total: int) -> None:
        """So much of so much."""
        if not self._shown or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + REDRAW_INTERVAL_S
        print(f"\r\x1b[K{self._what} {100 * done // max(total, 1)} %", end="", file=sys.stderr, flush=True)

    def update_part(self, part: str, done: int, total: int) -> None:
        """The same for one of several parts."""
        self._what = part
        self.update(done, total)


if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


RATE_OVER_S = 5.0
StatusNumbers = Mapping[str, Any]


@dataclass(slots=True)
class _PageRate:
    """Pages a second over the last few seconds."""

    points: deque[tuple[float, int]] = field(default_factory=lambda: deque([(time.monotonic(), 0)]))

    def add(self, wall_s: float, pages: int) -> float:
        self.points.append((wall_s, pages))
        while len(self.points) > 2 and wall_s - self.points[1][0] > RATE_OVER_S:
            self.points.popleft()
        elapsed_s = wall_s - self.points[0][0]
        return (pages - self.points[0][1]) / elapsed_s if elapsed_s > 0.2 else 0.0


class Screen:
    """Shows a crawl while it runs, by the numbers that its keeper tells; a context manager."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, told: StatusNumbers) -> None:
        """Draw anew, if it is time to."""
        now_s = time.monotonic()
        if self._quiet or "pages" not in told or now_s - self._shown_s < (0.125 if self._live else 5.0):
            return
        self._shown_s = now_s
        rate = self._rate.add(now_s, told["pages"])
        if self._live is None:
            print(self._format_line(told, rate, now_s), file=sys.stderr)
        else:
            self._live.update(self.build_table(told, rate, now_s - self._started_s), refresh=True)

    def build_table(self, told: StatusNumbers, rate: float, elapsed_s: float) -> "Table":
        """The screen itself; plain text, since what comes from the web must not be read as markup."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        table.title = Text.assemble(("vedette", "bold"), f"  {self._headline}  ", (format_duration(elapsed_s), "dim"))
        table.title_justify = "left"
        table.caption, table.caption_justify = Text(f"\n{self._note}", "dim"), "left"
        table.add_column(style="dim", width=9)
        table.add_column(justify="right", width=9)
        table.add_column(no_wrap=True, overflow="ellipsis")
        table.add_row()
        for name, value, text in _table_rows(told, rate):
            table.add_row(name, value, Text(text))
        return table

    def _format_line(self, told: StatusNumbers, rate: float, now_s: float) -> str:
        asked = told["hosts_waiting"].get("being asked", 0)
        return (
            f"{format_duration(now_s - self._started_s):>8}  {format_number(told['pages'])} pages, {rate:.0f}/s, "
            f"{format_number(told['urls_waiting'])} URLs waiting, {asked} of {told['hosts']} hosts being asked, "
            f"{format_number(sum(told['failures'].values()))} failed{_describe_host_trouble(told)}{_describe_machine_trouble(told, '; ')}"
        )


def _table_rows(told: StatusNumbers, rate: float) -> list[tuple[str, str, str]]:
    size, requests = format_bytes(told["bytes"]), format_number(told["requests"])
    trouble = Counter(told["hosts_in_trouble"].values())
    return [
        (
            "pages",
            format_number(told["pages"]),
            f"{rate:.0f}/s   {size}   {requests} requests   {_describe_refetches(told)}".rstrip(),
        ),
        ("waiting", format_number(told["urls_waiting"]), f"URLs of {format_number(told['urls_known'])} known"),
        ("hosts", format_number(told["hosts"]), format_counts(told["hosts_waiting"])),
        ("refused", format_number(sum(told["refusals"].values())), format_counts(told["refusals"])),
        ("failed", format_number(sum(told["failures"].values())), format_counts(told["failures"])),
        ("trouble", format_number(trouble.total()), format_counts(trouble)),
        *([("paused", "", _describe_machine_trouble(told))] if _describe_machine_trouble(told) else []),
    ]


def _describe_host_trouble(told: StatusNumbers) -> str:
    """Hosts that do not answer as they should, by reason."""
    trouble = Counter(told["hosts_in_trouble"].values())
    return f"; hosts in trouble: {format_counts(trouble)}" if trouble else ""


def _describe_machine_trouble(told: StatusNumbers, before: str = "") -> str:
    """What is wrong with the machine itself, such as a full disk."""
    return f"{before}{told['trouble']}" if told.get("trouble") else ""


def _describe_refetches(told: StatusNumbers) -> str:
    again = told["pages"] - told["new_pages"]
    return f"{format_number(again)} of them again, {format_number(told['unchanged'])} unchanged" if again else ""
