"""Progress: one screen that does not scroll away on a terminal, plain lines elsewhere, nothing with ``--quiet``."""

import sys
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from vedette.cli.output import amount, bytes_in_words, kinds, span

__all__ = ["Gauge", "Numbers", "Screen"]

EVERY_S = 0.1


class Gauge:
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

    def look(self, done: int, total: int) -> None:
        """So much of so much."""
        if not self._shown or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        print(f"\r\x1b[K{self._what} {100 * done // max(total, 1)} %", end="", file=sys.stderr, flush=True)

    def look_at(self, part: str, done: int, total: int) -> None:
        """The same for one of several parts."""
        self._what = part
        self.look(done, total)


if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


RATE_OVER_S = 5.0
Numbers = Mapping[str, Any]


@dataclass(slots=True)
class _Rate:
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
        self._rate = _Rate()
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

    def look(self, told: Numbers) -> None:
        """Draw anew, if it is time to."""
        now_s = time.monotonic()
        if self._quiet or "pages" not in told or now_s - self._shown_s < (0.125 if self._live else 5.0):
            return
        self._shown_s = now_s
        rate = self._rate.add(now_s, told["pages"])
        if self._live is None:
            print(self._line(told, rate, now_s), file=sys.stderr)
        else:
            self._live.update(self.table(told, rate, now_s - self._started_s), refresh=True)

    def table(self, told: Numbers, rate: float, elapsed_s: float) -> "Table":
        """The screen itself; plain text, since what comes from the web must not be read as markup."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        table.title = Text.assemble(("vedette", "bold"), f"  {self._headline}  ", (span(elapsed_s), "dim"))
        table.title_justify = "left"
        table.caption, table.caption_justify = Text(f"\n{self._note}", "dim"), "left"
        table.add_column(style="dim", width=9)
        table.add_column(justify="right", width=9)
        table.add_column(no_wrap=True, overflow="ellipsis")
        table.add_row()
        for name, value, text in _rows(told, rate):
            table.add_row(name, value, Text(text))
        return table

    def _line(self, told: Numbers, rate: float, now_s: float) -> str:
        asked = told["hosts_waiting"].get("being asked", 0)
        return (
            f"{span(now_s - self._started_s):>8}  {amount(told['pages'])} pages, {rate:.0f}/s, "
            f"{amount(told['urls_waiting'])} URLs waiting, {asked} of {told['hosts']} hosts being asked, "
            f"{amount(sum(told['failures'].values()))} failed{_in_trouble(told)}{_trouble(told, '; ')}"
        )


def _rows(told: Numbers, rate: float) -> list[tuple[str, str, str]]:
    size, requests = bytes_in_words(told["bytes"]), amount(told["requests"])
    trouble = Counter(told["hosts_in_trouble"].values())
    return [
        ("pages", amount(told["pages"]), f"{rate:.0f}/s   {size}   {requests} requests   {_again(told)}".rstrip()),
        ("waiting", amount(told["urls_waiting"]), f"URLs of {amount(told['urls_known'])} known"),
        ("hosts", amount(told["hosts"]), kinds(told["hosts_waiting"])),
        ("refused", amount(sum(told["refusals"].values())), kinds(told["refusals"])),
        ("failed", amount(sum(told["failures"].values())), kinds(told["failures"])),
        ("trouble", amount(trouble.total()), kinds(trouble)),
        *([("paused", "", _trouble(told))] if _trouble(told) else []),
    ]


def _in_trouble(told: Numbers) -> str:
    """Hosts that do not answer as they should, by reason."""
    trouble = Counter(told["hosts_in_trouble"].values())
    return f"; hosts in trouble: {kinds(trouble)}" if trouble else ""


def _trouble(told: Numbers, before: str = "") -> str:
    """What is wrong with the machine itself, such as a full disk."""
    return f"{before}{told['trouble']}" if told.get("trouble") else ""


def _again(told: Numbers) -> str:
    again = told["pages"] - told["new_pages"]
    return f"{amount(again)} of them again, {amount(told['unchanged'])} unchanged" if again else ""
