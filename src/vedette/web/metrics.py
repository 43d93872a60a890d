"""Prometheus metrics of the web server (``/metrics``). No label contains user input."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.event_store.time_series import SERIES
from vedette.learn.events import EventKind, Via
from vedette.web.console.ports.monitoring import DERIVED_SERIES
from vedette.web.ports import SearchService

_ALL_SERIES = {**SERIES, **DERIVED_SERIES}
_RENAMED_SERIES = {"pages": "pages_kept"}  # the name is already used, for searchable pages
_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Metrics:
    """The web server's Prometheus metrics, in a separate registry: two servers in one process do not mix."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        self._requests = Counter("vedette_requests", "requests answered", ["route", "status"], registry=registry)
        self._searches = Histogram("vedette_search_seconds", "search time", registry=registry, buckets=_BUCKETS_S)
        self._calls = Counter("vedette_mcp_calls", "tools called by models", ["tool", "outcome"], registry=registry)
        labels = ["kind", "outcome"]
        self._slates = Counter("vedette_slates", "searches recorded", ["via"], registry=registry)
        self._events = Counter("vedette_events", "views and clicks reported, by outcome", labels, registry=registry)
        latest: Literal["mostrecent"] = "mostrecent"
        pages, age = "searchable pages", "time since the newest page was fetched"
        self._pages = Gauge("vedette_pages", pages, registry=registry, multiprocess_mode=latest)
        self._age = Gauge("vedette_index_age_seconds", age, registry=registry, multiprocess_mode=latest)
        self._series: dict[str, Gauge] = {}

    def count_request(self, route: str, status: int) -> None:
        """Count a request in the metrics; ``route`` is the pattern of its path, never the path."""
        self._requests.labels(route, str(status)).inc()

    def observe_search(self, took_s: float) -> None:
        """Count a search in the metrics, with the seconds it took."""
        self._searches.observe(took_s)

    def count_tool_call(self, tool: str, outcome: str) -> None:
        """Count a language model's call of an MCP tool in the metrics; ``tool`` is a known tool's name."""
        self._calls.labels(tool, outcome).inc()

    def count_slate(self, via: Via) -> None:
        """Count a recorded search in the metrics."""
        self._slates.labels(via).inc()

    def count_event(self, kind: EventKind, outcome: str) -> None:
        """Count a view or click event in the metrics; ``outcome`` is "taken", or the code of the refusal."""
        self._events.labels(kind, outcome).inc()

    def describe_families(self) -> Iterable[Metric]:
        """Return every metric family of the server, a gauge for each monitored number included, for the docs."""
        self._update_series(dict.fromkeys(_ALL_SERIES, 0.0))
        return self._registry.collect()

    def metrics_route(
        self,
        search: SearchService,
        latest: Callable[[], Mapping[str, float]] = dict,
        by_reason: Callable[[], bytes] = bytes,
    ) -> Route:
        """Return the route that shows all metrics at ``/metrics``. Private pages are not counted.

        ``latest`` returns the last value of each monitored number, ``by_reason`` the counts by reason in the same
        format; both may take a moment.
        """

        async def show_metrics(_request: Request) -> Response:
            self._update_series(await run_in_threadpool(latest))
            reasons = await run_in_threadpool(by_reason)
            overview = search.get_overview(())
            self._pages.set(overview.pages)
            self._age.set(max(search.now_s() - overview.newest_s, 0.0) if overview.newest_s else 0.0)
            return Response(generate_latest(self._collect_registry()) + reasons, media_type=CONTENT_TYPE_LATEST)

        return Route("/metrics", show_metrics)

    def _update_series(self, latest: Mapping[str, float]) -> None:
        """Set a metrics gauge for each monitored number; a gauge without a value would wrongly show 0."""
        for name, value in latest.items():
            if name not in _ALL_SERIES:
                continue
            if name not in self._series:
                words, own = _ALL_SERIES[name].words, f"vedette_{_RENAMED_SERIES.get(name, name)}"
                self._series[name] = Gauge(own, words, registry=self._registry, multiprocess_mode="mostrecent")
            self._series[name].set(value)

    def _collect_registry(self) -> CollectorRegistry:
        """Return the metrics of all server processes that share a metrics folder, else of this one."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return self._registry
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]  # the library has no types here
        return together
