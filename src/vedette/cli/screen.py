"""Progress: one screen that does not scroll away on a terminal, plain lines elsewhere, nothing with ``--quiet``."""

import sys
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vedette.cli.words import amount, bytes_in_words, kinds, span
from vedette.ring.state import Crawl

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

__all__ = ["Screen", "numbers"]

RATE_OVER_S = 5.0


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


def numbers(crawl: Crawl) -> dict[str, object]:
    """The state of a crawl as plain numbers, for ``--json``."""
    tally = crawl.tally
    return {
        "pages": tally.pages,
        "bytes": tally.bytes,
        "requests": tally.requests,
        "robots_requests": tally.robots,
        "redirects": tally.redirects,
        "urls_known": len(crawl.known),
        "urls_waiting": len(crawl.frontier),
        "hosts": len(crawl.hosts),
        "statuses": _sorted({str(status): count for status, count in tally.statuses.items()}),
        "failures": _sorted(tally.failures),
        "refusals": _sorted(tally.refusals),
        "hosts_in_trouble": {host.name: str(host.trouble) for host in crawl.hosts.values() if host.trouble},
    }


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return {str(key): counts[key] for key in sorted(counts)}


class Screen:
    """Shows a crawl while it runs; a context manager."""

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

    def look(self, crawl: Crawl) -> None:
        """Draw anew, if it is time to."""
        now_s = time.monotonic()
        if self._quiet or now_s - self._shown_s < (0.125 if self._live else 5.0):
            return
        self._shown_s = now_s
        rate = self._rate.add(now_s, crawl.tally.pages)
        if self._live is None:
            print(self._line(crawl, rate, now_s), file=sys.stderr)
        else:
            self._live.update(self.table(crawl, rate, now_s - self._started_s), refresh=True)

    def table(self, crawl: Crawl, rate: float, elapsed_s: float) -> "Table":
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
        for name, value, text in _rows(crawl, rate):
            table.add_row(name, value, Text(text))
        return table

    def _line(self, crawl: Crawl, rate: float, now_s: float) -> str:
        standing = crawl.frontier.standings()
        return (
            f"{span(now_s - self._started_s):>8}  {amount(crawl.tally.pages)} pages, {rate:.0f}/s, "
            f"{amount(len(crawl.frontier))} URLs waiting, {standing['busy']} of {len(crawl.hosts)} hosts being asked, "
            f"{amount(crawl.tally.failures.total())} failed"
        )


def _rows(crawl: Crawl, rate: float) -> list[tuple[str, str, str]]:
    tally = crawl.tally
    rows = [
        (
            "pages",
            amount(tally.pages),
            f"{rate:.0f}/s   {bytes_in_words(tally.bytes)}   {amount(tally.requests)} requests",
        ),
        ("waiting", amount(len(crawl.frontier)), f"URLs of {amount(len(crawl.known))} known"),
        ("hosts", amount(len(crawl.hosts)), _standing(crawl)),
        ("refused", amount(tally.refusals.total()), kinds(tally.refusals)),
        ("failed", amount(tally.failures.total()), kinds(tally.failures)),
    ]
    trouble = Counter(str(host.trouble) for host in crawl.hosts.values() if host.trouble)
    return [*rows, ("trouble", amount(trouble.total()), kinds(trouble))]


def _standing(crawl: Crawl) -> str:
    standing = crawl.frontier.standings()
    unnamed = len(crawl.hosts) - standing.total()
    parts = [
        (standing["busy"], "being asked"),
        (standing["timed"], "resting"),
        (standing["in line"], "in line for a shared address"),
        (standing["held"], "held"),
        (unnamed, "without address"),
        (standing["idle"], "done"),
    ]
    return ", ".join(f"{count} {text}" for count, text in parts if count)
