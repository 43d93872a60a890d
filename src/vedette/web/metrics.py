"""Numbers for those who watch the server, in the text format of Prometheus. No label comes from what readers send."""

import os
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.event_store.time_series import SERIES
from vedette.learn.events import EventKind, Via
from vedette.model import Site
from vedette.serve.slate import Result, Slate, Wish
from vedette.web.console.ports.monitoring import READ_OFF
from vedette.web.ports import CachedCopy, Overview, Search

__all__ = ["Metrics", "TimedSearch"]

_MEASURES = {**SERIES, **READ_OFF}
_OTHERWISE = {"pages": "pages_kept"}  # the name is taken, by those that can be found
_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Metrics:
    """What is counted, in a registry of its own: two servers in one process do not mix."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        self._requests = Counter("vedette_requests", "requests answered", ["route", "status"], registry=registry)
        self._searches = Histogram("vedette_search_seconds", "time of a search", registry=registry, buckets=_BUCKETS_S)
        self._calls = Counter("vedette_mcp_calls", "tools called by models", ["tool", "outcome"], registry=registry)
        told = ["kind", "outcome"]
        self._slates = Counter("vedette_slates", "searches written down", ["via"], registry=registry)
        self._events = Counter("vedette_events", "views and clicks told, and what came of it", told, registry=registry)
        latest: Literal["mostrecent"] = "mostrecent"
        pages, age = "pages that can be found", "time since the newest page was fetched"
        self._pages = Gauge("vedette_pages", pages, registry=registry, multiprocess_mode=latest)
        self._age = Gauge("vedette_index_age_seconds", age, registry=registry, multiprocess_mode=latest)
        self._series: dict[str, Gauge] = {}

    def answered(self, route: str, status: int) -> None:
        """Counts a request; ``route`` is the pattern of its path, never the path."""
        self._requests.labels(route, str(status)).inc()

    def searched(self, took_s: float) -> None:
        """Counts a search."""
        self._searches.observe(took_s)

    def called(self, tool: str, outcome: str) -> None:
        """Counts a call of a tool by a language model; ``tool`` is the name of one that there is."""
        self._calls.labels(tool, outcome).inc()

    def shown(self, via: Via) -> None:
        """Counts a search that was written down."""
        self._slates.labels(via).inc()

    def told(self, kind: EventKind, outcome: str) -> None:
        """Counts an event; ``outcome`` is "taken", or the code of the refusal."""
        self._events.labels(kind, outcome).inc()

    def route(
        self,
        search: Search,
        latest: Callable[[], Mapping[str, float]] = dict,
        by_reason: Callable[[], bytes] = bytes,
    ) -> Route:
        """Shows it all at ``/metrics``. Private pages are not counted.

        ``latest`` tells the last of each number that is kept over time, ``by_reason`` what is counted by reasons, in
        the same format; both may take a moment.
        """

        async def shown(_request: Request) -> Response:
            self._measured(await run_in_threadpool(latest))
            reasons = await run_in_threadpool(by_reason)
            told = search.overview(())
            self._pages.set(told.pages)
            self._age.set(max(search.now_s() - told.newest_s, 0.0) if told.newest_s else 0.0)
            return Response(generate_latest(self._all()) + reasons, media_type=CONTENT_TYPE_LATEST)

        return Route("/metrics", shown)

    def _measured(self, latest: Mapping[str, float]) -> None:
        """A gauge for each number that there is; one without a value would say 0, which is wrong."""
        for name, value in latest.items():
            if name not in _MEASURES:
                continue
            if name not in self._series:
                words, own = _MEASURES[name].words, f"vedette_{_OTHERWISE.get(name, name)}"
                self._series[name] = Gauge(own, words, registry=self._registry, multiprocess_mode="mostrecent")
            self._series[name].set(value)

    def _all(self) -> CollectorRegistry:
        """What all servers counted that share a folder for it, else what this one did."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return self._registry
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]  # the library has no types here
        return together


class TimedSearch:
    """A search whose every search is timed, whoever asks for it: pages or API."""

    def __init__(self, search: Search, metrics: Metrics) -> None:
        self._search = search
        self._metrics = metrics

    def search(self, wish: Wish) -> Slate:
        """Results, timed."""
        started_s = perf_counter()
        slate = self._search.search(wish)
        self._metrics.searched(perf_counter() - started_s)
        return slate

    def suggest(self, typed: str, most: int, site: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """As the search itself."""
        return self._search.suggest(typed, most, site, allowed)

    def overview(self, allowed: tuple[str, ...]) -> Overview:
        """As the search itself."""
        return self._search.overview(allowed)

    def copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """As the search itself."""
        return self._search.copy(id_, allowed)

    def find(self, url: str, allowed: tuple[str, ...]) -> int | None:
        """As the search itself."""
        return self._search.find(url, allowed)

    def similar(self, id_: int, allowed: tuple[str, ...]) -> tuple[Result, ...]:
        """As the search itself."""
        return self._search.similar(id_, allowed)

    def sites(self) -> tuple[Site, ...]:
        """As the search itself."""
        return self._search.sites()

    def is_behind(self) -> str:
        """As the search itself."""
        return self._search.is_behind()

    def now_s(self) -> float:
        """As the search itself."""
        return self._search.now_s()
