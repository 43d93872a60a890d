"""The console's Storage page: what takes disk space, how fast it grows, and how long the disk will last."""

from dataclasses import dataclass
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from vedette.timeutil import DAY_S
from vedette.web.console.ports.monitoring import Monitoring, StorageStatus
from vedette.web.console.ui.charts import render_stacked_bar
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.time_series import build_range_links, compute_daily_growth, parse_time_range, render_series

CHARTS = ("archive_bytes", "index_bytes", "disk_free_bytes")
GROWING_SERIES = ("archive_bytes", "index_bytes", "state_bytes", "record_bytes")
GROWTH_OVER_DAYS = 7
GROWTH_POINTS = 40
MAX_OUTLOOK_DAYS = 3650.0


class StorageForecast(NamedTuple):
    """Forecast of disk usage: growth in bytes per day, and days until the disk is full; None if unknown."""

    bytes_a_day: float | None = None
    full_in_days: float | None = None


def forecast_storage(storage: StorageStatus, growths: list[float | None]) -> StorageForecast:
    """Forecast when the disk is full from the daily growth of each stored part.

    Fetching pauses at the configured minimum of free space, so that counts as full.

    >>> forecast_storage(StorageStatus(free_bytes=1_100, min_free_bytes=100), [60.0, 40.0, None])
    StorageForecast(bytes_a_day=100.0, full_in_days=10.0)
    """
    measured = [growth for growth in growths if growth is not None]
    if not measured:
        return StorageForecast()
    grows = sum(measured)
    left = max(storage.free_bytes - storage.min_free_bytes, 0)
    days = left / grows if grows > 0 else MAX_OUTLOOK_DAYS
    return StorageForecast(grows, days if days < MAX_OUTLOOK_DAYS else None)


@dataclass(frozen=True, slots=True)
class StoragePage:
    """The console's Storage page."""

    shell: ConsoleShell
    monitoring: Monitoring

    def show(self, request: Request) -> Response:
        """Show the disk space that each part of the data folder takes, now and over the chosen time range."""
        over, now_s, storage = parse_time_range(request), self.shell.now_s(), self.monitoring.get_storage_status()
        since_s = now_s - GROWTH_OVER_DAYS * DAY_S
        growths = [
            compute_daily_growth(self.monitoring.load_series(name, since_s, GROWTH_POINTS)) for name in GROWING_SERIES
        ]
        sizes = [(part.name, part.size_bytes) for part in storage.parts]
        return self.shell.render_page(
            "storage.html",
            request,
            here="storage",
            title="Storage",
            storage=storage,
            used=sum(size for _, size in sizes),
            archive=sizes[0][1] if sizes else 0.0,
            outlook=forecast_storage(storage, growths),
            rows=list(zip(storage.parts, growths, strict=False)),
            stack=render_stacked_bar(sizes, "bytes", "Disk usage"),
            charts=[render_series(self.monitoring, name, over, now_s) for name in CHARTS],
            ways=build_range_links(request),
        )
