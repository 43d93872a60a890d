"""Observers in the coordinator: reserve their hosts for the observer hub, and execute the hub's requests.

The hub sends ``Request("observers", {"what": …})``. Everything is committed with the coordinator's other changes.

What fetches from home take is measured here. An observer may only get hosts by their costs that no one has assigned,
none of a private site, and all hosts at an address together.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.observers.registry import ObserverRegistry, create_observer_tables
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.engine.coordinator.hosts import OBSERVED
from vedette.engine.messages import FetchReport, FetchSuccess
from vedette.errors import UsageError
from vedette.fetch.observers.costs import LinkMeter
from vedette.model import origin_of
from vedette.runtime.observers.commands import revoke_observer

# Hosts whose fetches from home are measured, and how many of them the hub gets to choose from.
MAX_MEASURED, MAX_CANDIDATES = 5_000, 50
MIN_FETCHES = 5.0

Response = dict[str, object]


class ObserverReservations:
    """Reserve the hosts of observers for the hub, which is the worker after the last fetcher."""

    def __init__(self, state: State, coordinator: Coordinator, worker: int) -> None:
        create_observer_tables(state.db)
        self._state, self._coordinator, self._worker = state, coordinator, worker
        self._registry = ObserverRegistry(state.db)
        self._direct: dict[str, LinkMeter] = {}
        self._has_auto = False
        self._handlers: dict[str, Callable[..., Response]] = {
            "released": self._release,
            "assign": self._assign,
            "drop": self._drop,
            "refetch": self._refetch,
            "changed": self._request_changed,
            "colocate": self._colocate,
            "candidates": self._list_candidates,
        }

    def handle(self, now_s: float, what: str, **told: object) -> Response:
        """Handle a request of the observer hub and return the response."""
        if what not in self._handlers:
            raise UsageError(f'unknown request "{what[:40]}": the running vedette is older than this one; restart it')
        if not self._state.db.in_transaction:
            self._state.db.execute("BEGIN IMMEDIATE")
        return self._handlers[what](now_s, **told)

    def apply(self, now_s: float) -> None:
        """Reserve the hosts that are assigned to observers, and no others."""
        names = [row.host for row in self._registry.list_hosts()]
        self._coordinator.host_table.reserve(names, self._worker, now_s)
        self._has_auto = any(row.is_auto and row.revoked_s is None for row in self._registry.list_observers())

    def measure(self, worker: int, report: FetchReport) -> None:
        """Measure what fetches from home take, if an observer may get their hosts."""
        if not self._has_auto or worker == self._worker:
            return
        for result in report.results:
            host = result.task.host
            if not isinstance(result, FetchSuccess) or result.rendering is not None or result.connection_s <= 0:
                continue
            if host in self._direct or len(self._direct) < MAX_MEASURED:
                meter = self._direct.get(host, LinkMeter())
                self._direct[host] = meter.add(result.body_bytes, result.connection_s)

    def _list_candidates(self, _now_s: float) -> Response:
        """List the hosts that an observer may get by their costs, with what fetches from home take; the most first."""
        rows = {row.host: row for row in (*self._registry.list_hosts(), *self._registry.list_kept())}
        closed = {
            self._find_address(name) for name in self._coordinator.hosts if name in rows or self._is_private(name)
        }
        measured = [
            (name, meter)
            for name, meter in self._direct.items()
            if meter.count >= MIN_FETCHES and name not in rows and self._find_address(name) not in closed
        ]
        measured.sort(key=lambda one: (-one[1].seconds, one[0]))
        since_s = {name: row.since_s for name, _ in measured if (row := self._registry.find_host(name)) is not None}
        return {"hosts": {name: [astuple(meter), since_s.get(name, 0.0)] for name, meter in measured[:MAX_CANDIDATES]}}

    def _find_address(self, name: str) -> str | None:
        return self._coordinator.hosts[name].address if name in self._coordinator.hosts else None

    def _is_private(self, name: str) -> bool:
        """Check whether a private site may cover a host: no observer gets it unasked."""
        sites = self._coordinator.host_table.sites.find_by_host(name)
        return any(site.secrets or site.allow_private for site in sites)

    def _release(self, now_s: float, hosts: Sequence[str]) -> Response:
        self._registry.release(hosts, now_s)
        self.apply(now_s)
        return {}

    def _assign(self, now_s: float, hosts: Sequence[str], observer: str, why: str) -> Response:
        if observer:  # what home fetches from the same addresses goes with them
            addresses = {self._find_address(host) for host in hosts} - {None, OBSERVED}
            hosts = [*hosts, *(name for name, one in self._coordinator.hosts.items() if one.address in addresses)]
            hosts = list(dict.fromkeys(hosts))
        self._registry.assign(hosts, observer, now_s, why, by_hand=False)
        self.apply(now_s)
        return {}

    def _colocate(self, now_s: float, host: str, observer: str, address: str, others: Sequence[str]) -> Response:
        """Assign the other hosts at an address to the same observer, which keeps the delay between them.

        If one of them must stay where it is, the host goes home instead, unless an operator assigned it.
        """
        mine = [name for name, one in self._coordinator.hosts.items() if one.address == address]
        hosts = [name for name in dict.fromkeys((*mine, *others)) if name != host]
        row, placed = self._registry.find_host(host), [self._registry.find_host(name) for name in hosts]
        kept = [one.host for one in placed if one is not None and one.by_hand and one.observer != observer]
        kept += [name for name in hosts if self._is_private(name)]
        if kept and row is not None and not row.by_hand:
            why = f"shares the address {address} with {kept[0]}, which stays where it is"
            self._registry.assign([host], "", now_s, why, by_hand=False)
            self.apply(now_s)
        elif hosts and self._registry.find_observer(observer) is not None:
            why = f"shares the address {address} with {host}"
            self._registry.assign(hosts, observer, now_s, why, by_hand=False)
            self.apply(now_s)
        return {}

    def _drop(self, now_s: float, name: str, why: str) -> Response:
        row = self._registry.find_observer(name)
        if row is not None:
            revoke_observer(self._registry, row, now_s, why)
            self.apply(now_s)
        return {}

    def _refetch(self, _now_s: float, urls: Sequence[str]) -> Response:
        """Fetch pages again that a revoked observer reported, without their validators, which may be false, too."""
        ids: list[int] = [id_ for id_ in self._coordinator.urls.find_ids(list(urls)).tolist() if id_]
        self._state.store.forget_versions(ids)
        self._coordinator.urls.requeue(ids, priority=1)
        self._coordinator.host_table.wake(origin_of(url).host for url in urls)
        return {}

    def _request_changed(self, now_s: float, urls: Sequence[str]) -> Response:
        """Fetch pages whose files changed at the source, if they are in a site's scope."""
        known = [url for url in map(self._coordinator.normalize_url, urls) if url is not None]
        self._coordinator.request_urls(list(dict.fromkeys(known)), now_s)
        return {"taken": len(known)}
