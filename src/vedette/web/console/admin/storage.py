"""The console's page on room: what takes it, how fast it grows, and how long it will last."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.console.ports.monitoring import Part, Storage, Watch
from vedette.web.console.ui.charts import stacked
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.scales import said
from vedette.web.console.ui.time_series import OVERS, Over, chart, growth_per_day, over_of, ways

__all__ = ["Outlook", "outlook", "storing_routes"]

CHARTS = ("archive_bytes", "index_bytes", "disk_free_bytes")
GROWING = ("archive_bytes", "index_bytes", "state_bytes", "record_bytes")
GROWTH_OVER_DAYS = 7
GROWTH_POINTS = 40
FAR_DAYS = 3650.0


class Outlook(NamedTuple):
    """How much more room is taken each day, and in how many days there is none; None where that is not known."""

    bytes_a_day: float | None = None
    full_in_days: float | None = None


def outlook(storage: Storage, growths: list[float | None]) -> Outlook:
    """From how each part grows. Fetching pauses before the disk is full, so that is when it ends.

    >>> outlook(Storage(free_bytes=1_100, min_free_bytes=100), [60.0, 40.0, None])
    Outlook(bytes_a_day=100.0, full_in_days=10.0)
    """
    known = [growth for growth in growths if growth is not None]
    if not known:
        return Outlook()
    grows = sum(known)
    left = max(storage.free_bytes - storage.min_free_bytes, 0)
    days = left / grows if grows > 0 else FAR_DAYS
    return Outlook(grows, days if days < FAR_DAYS else None)


def storing_routes(shell: Shell, watch: Watch) -> list[Route]:
    """The page Storage."""
    return [Route("/storage", _Page(shell, watch).shown)]


class _Seen(NamedTuple):
    storage: Storage
    outlook: Outlook
    growths: list[float | None]
    charts: list[Markup]


@dataclass(frozen=True, slots=True)
class _Page:
    """The handler, with what it needs."""

    shell: Shell
    watch: Watch

    async def shown(self, request: Request) -> Response:
        """What takes room now, and what it did over the time that was chosen."""
        seen = await run_in_threadpool(self._seen, over_of(request))
        storage = seen.storage
        told: dict[str, Any] = {
            "storage": storage,
            "used": sum(part.size_bytes for part in storage.parts),
            "archive": _archive(storage.parts),
            "outlook": seen.outlook,
            "rows": list(zip(storage.parts, seen.growths, strict=False)),
            "stack": stacked([(part.name, part.size_bytes) for part in storage.parts], "bytes", "Room taken"),
            "charts": seen.charts,
            "ways": ways(request),
            "said": said,
        }
        return self.shell.page("storage.html", request, here="storage", title="Storage", **told)

    def _seen(self, over: Over) -> _Seen:
        now_s, storage = self.shell.now_s(), self.watch.storage()
        since_s = now_s - GROWTH_OVER_DAYS * OVERS[1].span_s
        growths = [growth_per_day(self.watch.points(name, since_s, GROWTH_POINTS)) for name in GROWING]
        charts = [chart(self.watch, name, over, now_s) for name in CHARTS]
        return _Seen(storage, outlook(storage, growths), growths, charts)


def _archive(parts: tuple[Part, ...]) -> float:
    return parts[0].size_bytes if parts else 0.0
