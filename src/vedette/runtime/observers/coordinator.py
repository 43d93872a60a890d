"""Observers in the coordinator: reserve their hosts for the observer hub, and execute the hub's requests.

The hub sends ``Request("observers", {"what": …})``. Everything is committed with the coordinator's other changes.
"""

from collections.abc import Callable, Sequence

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.observers.registry import ObserverRegistry, create_observer_tables
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.errors import UsageError
from vedette.model import origin_of
from vedette.runtime.observers.commands import revoke_observer

Response = dict[str, object]


class ObserverReservations:
    """Reserve the hosts of observers for the hub, which is the worker after the last fetcher."""

    def __init__(self, state: State, coordinator: Coordinator, worker: int) -> None:
        create_observer_tables(state.db)
        self._state, self._coordinator, self._worker = state, coordinator, worker
        self._registry = ObserverRegistry(state.db)
        self._handlers: dict[str, Callable[..., Response]] = {
            "released": self._release,
            "assign": self._assign,
            "drop": self._drop,
            "refetch": self._refetch,
            "changed": self._request_changed,
            "colocate": self._colocate,
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

    def _release(self, now_s: float, hosts: Sequence[str]) -> Response:
        self._registry.release(hosts, now_s)
        self.apply(now_s)
        return {}

    def _assign(self, now_s: float, hosts: Sequence[str], observer: str, why: str) -> Response:
        self._registry.assign(hosts, observer, now_s, why, by_hand=False)
        self.apply(now_s)
        return {}

    def _colocate(self, now_s: float, host: str, observer: str, address: str, others: Sequence[str]) -> Response:
        """Assign the other hosts at an address to the same observer, which enforces the delay between them."""
        mine = [name for name, one in self._coordinator.hosts.items() if one.address == address]
        hosts = [name for name in dict.fromkeys((*mine, *others)) if name != host]
        if hosts and self._registry.find_observer(observer) is not None:
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
