"""Push in the coordinator: handle requests about hub subscriptions, deliveries, pings and promises.

A server or the hub client asks with ``Request("push", {"what": …})``, whose arguments arrive as plain values; ``step``
is for the coordinator's own loop. Everything is committed together with the coordinator's other changes.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from msgspec import convert

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.push.push_store import PushStore
from vedette.discover.push.indexnow import Ping
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.errors import UsageError
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.push.indexnow import PingHandler
from vedette.runtime.push.promises import PromiseScheduler
from vedette.runtime.push.signals import Mention, SignalHandler
from vedette.runtime.push.subscriptions import SubscriptionManager, Verification

Response = dict[str, object]
OFFERS_AT_ONCE = 1_000


class PushHandler:
    """Handle push in the coordinator: subscriptions, signals, pings and promises over one state."""

    def __init__(
        self,
        settings: RuntimeSettings,
        state: State,
        coordinator: Coordinator,
        store: PushStore,
        signals: SignalHandler,
        subscriptions: SubscriptionManager,
        pings: PingHandler,
        promises: PromiseScheduler,
    ) -> None:
        self._settings, self._state, self._coordinator = settings, state, coordinator
        self.store, self.signals, self.subscriptions = store, signals, subscriptions
        self.pings, self.promises = pings, promises
        self._handlers: dict[str, Callable[..., Response]] = {
            "errands": self._take_hub_requests,
            "came": self._on_hub_answer,
            "offers": self._add_offers,
            "intent": self._verify,
            "delivered": self._on_delivery,
            "ignored": self._count_ignored,
            "pinged": self._on_ping,
        }

    def handle(self, now_s: float, what: str, **fields: Any) -> Response:  # noqa: ANN401 - requests differ
        """Handle a push request to the coordinator and return the response."""
        if what not in self._handlers:
            raise UsageError(
                f'unknown push request "{what[:40]}": the running vedette is older than this one; restart it'
            )
        if not self._state.db.in_transaction:
            self._state.db.execute("BEGIN IMMEDIATE")
        return self._handlers[what](now_s, **fields)

    def step(self, now_s: float) -> None:
        """Run the coordinator's periodic push work, about once a second: promises, pings and signals."""
        self.promises.step(now_s)
        self.pings.step(now_s)
        self.signals.step(now_s)

    def _take_hub_requests(self, _now_s: float) -> Response:
        return {"errands": self.subscriptions.take_requests(self._get_wall_s())}

    def _on_hub_answer(self, _now_s: float, token: str, trouble: str) -> Response:
        self.subscriptions.on_answer(token, trouble)
        return {}

    def _add_offers(self, _now_s: float, offers: Sequence[tuple[str, str, str]]) -> Response:
        wall_s = self._get_wall_s()
        return {"new": sum(self.subscriptions.add_offer(*offer, wall_s) for offer in offers[:OFFERS_AT_ONCE])}

    def _verify(self, now_s: float, token: str, intent: Sequence[object]) -> Response:
        why_not = self.subscriptions.verify(token, convert(intent, Verification), self._get_wall_s())
        return {"why_not": why_not, **(self._count_ignored(now_s, token, {why_not: 1}) if why_not else {})}

    def _on_delivery(self, now_s: float, token: str, said: Sequence[object]) -> Response:
        """Apply a feed that a WebSub hub pushed with a valid signature; it counts as a poll of the feed."""
        row = self.store.find_by_token(token)
        if row is None or row.standing == "ended" or self._coordinator.normalize_url(row.feed) is None:
            return {"status": 410}
        if row.lease_wall_s <= self._get_wall_s():
            self.store.count_ignored(f"websub {row.topic}", "the subscription no longer exists", 1, now_s)
            return {"status": 410}
        self.store.save_subscription(row._replace(heard_wall_s=self._get_wall_s()))
        outcome = self.signals.on_signals(f"websub {row.topic}", "feed", row.feed, convert(said, list[Mention]), now_s)
        self._postpone_poll(row.feed, now_s)
        return {"status": 202, **outcome._asdict()}

    def _postpone_poll(self, feed: str, now_s: float) -> None:
        """Postpone the next poll of a pushed feed, unless it is queued or being fetched already."""
        id_ = int(self._state.urls.find_ids([feed])[0])
        page = self._state.store.get_page(id_) if id_ else None
        if page is not None and page.due_s != inf:
            until_s = now_s + self._settings.config.crawl.source_interval_s
            self._state.store.postpone(id_, until_s)
            self._coordinator.refresher.poller.rest(id_, until_s)

    def _count_ignored(self, now_s: float, token: str, counts: dict[str, int]) -> Response:
        row = self.store.find_by_token(token)
        for why, times in counts.items():
            self.store.count_ignored(f"websub {row.topic}" if row else "websub", why, times, now_s)
        return {}

    def _on_ping(self, now_s: float, ping: Sequence[object], client: str = "") -> Response:
        return self.pings.on_ping(convert(ping, Ping), now_s, client)._asdict()

    def _get_wall_s(self) -> float:
        return self._settings.clock.wall_now()
