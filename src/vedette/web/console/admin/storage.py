"""The console's page on room: what takes it, how fast it grows, and how long it will last."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.console.ports.monitoring import Monitoring, StoragePart, StorageStatus
from vedette.web.console.ui.charts import render_stacked_bar
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_value
from vedette.web.console.ui.time_series import (
    TIME_RANGES,
    TimeRange,
    build_range_links,
    compute_daily_growth,
    parse_time_range,
    render_series,
)

CHARTS = ("archive_bytes", "index_bytes", "disk_free_bytes")
GROWING_SERIES = ("archive_bytes", "index_bytes", "state_bytes", "record_bytes")
GROWTH_OVER_DAYS = 7
GROWTH_POINTS = 40
MAX_OUTLOOK_DAYS = 3650.0


class StorageForecast(NamedTuple):
    """How much more room is taken each day, and in how many days there is none; None where that is not known."""

    bytes_a_day: float | None = None
    full_in_days: float | None = None


def forecast_storage(storage: StorageStatus, growths: list[float | None]) -> StorageForecast:
    """From how each part grows. Fetching pauses before the disk is full, so that is when it ends.

    >>> forecast_storage(StorageStatus(free_bytes=1_100, min_free_bytes=100), [60.0, 40.0, None])
    StorageForecast(bytes_a_day=100.0, full_in_days=10.0)
    """
    known = [growth for growth in growths if growth is not None]
    if not known:
        return StorageForecast()
    grows = sum(known)
    left = max(storage.free_bytes - storage.min_free_bytes, 0)
    days = left / grows if grows > 0 else MAX_OUTLOOK_DAYS
    return StorageForecast(grows, days if days < MAX_OUTLOOK_DAYS else None)


def storage_routes(shell: ConsoleShell, watch: Monitoring) -> list[Route]:
    """The page Storage."""
    return [Route("/storage", _StoragePage(shell, watch).show)]


class _StorageView(NamedTuple):
    storage: StorageStatus
    forecast: StorageForecast
    growths: list[float | None]
    charts: list[Markup]


@dataclass(frozen=True, slots=True)
class _StoragePage:
    """The handler, with what it needs."""

    shell: ConsoleShell
    monitoring: Monitoring

    async def show(self, request: Request) -> Response:
        """What takes room now, and what it did over the time that was chosen."""
        seen = await run_in_threadpool(self._load_view, parse_time_range(request))
        storage = seen.storage
        told: dict[str, Any] = {
            "storage": storage,
            "used": sum(part.size_bytes for part in storage.parts),
            "archive": _get_archive_bytes(storage.parts),
            "outlook": seen.forecast,
            "rows": list(zip(storage.parts, seen.growths, strict=False)),
            "stack": render_stacked_bar(
                [(part.name, part.size_bytes) for part in storage.parts], "bytes", "Room taken"
            ),
            "charts": seen.charts,
            "ways": build_range_links(request),
            "said": format_value,
        }
        return self.shell.render_page("storage.html", request, here="storage", title="Storage", **told)

    def _load_view(self, over: TimeRange) -> _StorageView:
        now_s, storage = self.shell.now_s(), self.monitoring.get_storage_status()
        since_s = now_s - GROWTH_OVER_DAYS * TIME_RANGES[1].span_s
        growths = [
            compute_daily_growth(self.monitoring.load_series(name, since_s, GROWTH_POINTS)) for name in GROWING_SERIES
        ]
        charts = [render_series(self.monitoring, name, over, now_s) for name in CHARTS]
        return _StorageView(storage, forecast_storage(storage, growths), growths, charts)


def _get_archive_bytes(parts: tuple[StoragePart, ...]) -> float:
    return parts[0].size_bytes if parts else 0.0
