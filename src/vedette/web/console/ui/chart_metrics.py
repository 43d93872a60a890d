"""Prometheus metrics for the console's bar and dot charts: one number for each bar or dot.

Time series have metrics by name (``web.metrics``); these are amounts by reason. Reasons are mostly our own words; a
server may have written one, so their number and their length are limited.
"""

import math
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from vedette.web.console.crawl.forecast import build_calibration_rows
from vedette.web.console.ports.monitoring import BudgetReport, CalibrationBin, CrawlStatus, Monitoring

MAX_REASONS = 40
MAX_REASON = 100
OTHER = "other"
Family = GaugeMetricFamily | CounterMetricFamily


def export_reason_counts(monitoring: Monitoring) -> bytes:
    """Export the amounts in the console's bar and dot charts as Prometheus text; may take a moment."""
    return format_families(
        [
            *_collect_crawl(monitoring.get_crawl_status()),
            _collect_filtered(monitoring.count_filtered()),
            *_collect_calibration(monitoring.get_refresh_status().calibration),
            *_collect_budget(monitoring.get_budget_report(1)),
        ]
    )


def format_families(families: Iterable[Family]) -> bytes:
    """Format Prometheus metric families as text; families without samples are left out."""
    registry = CollectorRegistry()
    registry.register(_StaticCollector([family for family in families if family.samples]))
    return generate_latest(registry)


class _StaticCollector(Collector):
    """Prometheus collector of metric families that were computed already."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        """Return the computed Prometheus metric families."""
        return self._families


def _collect_crawl(crawl: CrawlStatus) -> Iterable[GaugeMetricFamily]:
    yield _build_gauge("hosts_waiting", "hosts with queued URLs, by what they wait for", "why", crawl.waiting_why)
    yield _build_gauge("answers", "responses since the start, by status", "status", crawl.statuses)
    yield _build_gauge("fetches_failed", "fetches without a response since the start, by reason", "why", crawl.failures)
    failing = {one.role: one.failures for one in crawl.failing}
    yield _build_gauge("process_failures", "recent failures of processes that keep failing, by role", "role", failing)
    refused = {one.name: one.refused for one in crawl.exceeded}
    words = "requests not sent today because the daily limit is used up, by address or domain"
    yield _build_gauge("requests_over_limit", words, "name", refused)
    yield _build_gauge("urls_refused", "URLs not fetched since the start, by reason", "why", crawl.refusals)


def _collect_filtered(counts: Mapping[str, int]) -> GaugeMetricFamily:
    words = "searches, views and clicks of the last day excluded as bots, by reason"
    return _build_gauge("searches_left_out", words, "why", counts)


def _collect_calibration(tenths: tuple[CalibrationBin, ...]) -> Iterable[GaugeMetricFamily]:
    """Collect metrics for the dots of the forecast calibration chart; bins without data have none."""
    lines = build_calibration_rows(tenths)
    names = [f"{10 * line.place}-{10 * line.place + 10}" for line in lines]
    for name, words, values in (
        (
            "forecast_said",
            "mean predicted probability of a change for refreshed pages",
            [line.predicted for line in lines],
        ),
        ("forecast_found", "share of these pages that had changed", [line.found for line in lines]),
        ("forecast_refreshes", "number of these refreshes, decaying", [line.refreshes for line in lines]),
    ):
        yield _build_gauge(
            name, f"{words}, by decile of the prediction in percent", "chance", dict(zip(names, values, strict=True))
        )


def _collect_budget(report: BudgetReport) -> Iterable[CounterMetricFamily]:
    """Collect metrics for the fetch budget chart: cost and results of each kind of fetch, of all time."""
    columns: dict[str, tuple[str, list[float]]] = {
        "fetches": ("fetches", [line.fetches for line in report.ever]),
        "seconds": ("connection time in seconds", [line.seconds for line in report.ever]),
        "bytes": ("bytes downloaded", [line.bytes for line in report.ever]),
        "gain": ("measured gain in search quality", [max(line.gain, 0.0) for line in report.ever]),
    }
    for name, (words, values) in columns.items():
        family = CounterMetricFamily(f"vedette_budget_{name}", f"{words}, by purpose", labels=["kind"])
        for line, value in zip(report.ever, values, strict=True):
            family.add_metric([line.name], value)
        yield family


def _build_gauge(name: str, words: str, label: str, counts: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"vedette_{name}", words, labels=[label])
    for reason, amount in _limit_reasons(counts).items():
        family.add_metric([reason], amount)
    return family


def _limit_reasons(counts: Mapping[str, float]) -> dict[str, float]:
    """Limit a metric's reasons to the largest, with the rest summed up as "other".

    >>> _limit_reasons({f"why {number}": float(number) for number in range(43)})["other"]
    3.0
    """
    largest = sorted(
        ((str(reason), float(amount)) for reason, amount in counts.items() if math.isfinite(amount)),
        key=lambda row: (-row[1], row[0]),
    )
    top = dict(row for row in largest[:MAX_REASONS] if len(row[0]) <= MAX_REASON)
    rest = math.fsum(amount for reason, amount in largest if reason not in top)
    return top | ({OTHER: top.get(OTHER, 0.0) + rest} if rest else {})
