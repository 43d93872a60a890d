"""Notifier process: publish new pages for alerts as soon as they are searchable, and call webhooks.

Neither the crawl nor any search waits for it. An undeliverable message is retried at growing intervals, for two days,
and then given up; its outcome is in the alert store, for the console. A kill loses no message: one whose response was
not recorded is sent again, under the same id.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from vedette.adapters.alerts.alert_store import ALERTS_FILE, AlertStore, Delivery
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.net.webhook import PostResult
from vedette.errors import ClusterError
from vedette.runtime.alerts.publisher import AlertClaims, AlertMatcher
from vedette.runtime.alerts.webhooks import WebhookSender
from vedette.runtime.processes.loop import StepLoop, StoreGuard
from vedette.runtime.processes.settings import RuntimeSettings

if TYPE_CHECKING:
    from vedette.runtime.cluster.lease import ShardSettings

CHECK_EVERY_S = 0.25
TIDY_EVERY_S = 60.0
# Messages being sent at once, one per alert.
MAX_IN_FLIGHT = 8
# Delay after each try; after the last the message is given up. Wall time.
RETRY_DELAYS_S = (5.0, 30.0, 120.0, 600.0, 3600.0, 3 * 3600.0, 8 * 3600.0, 12 * 3600.0, 24 * 3600.0)


class Notifier:
    """Publish new pages and deliver webhook messages of a data folder, step by step; survives its errors."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._settings = settings
        self._folder = settings.folder
        self._sender = WebhookSender(settings)
        self._pool = ThreadPoolExecutor(MAX_IN_FLIGHT, "webhook")
        self._in_flight: dict[str, tuple[Delivery, Future[PostResult]]] = {}
        self._store_and_matcher: tuple[AlertStore, AlertMatcher] | None = None
        self._tidy_s = 0.0
        self._guard = StoreGuard(
            settings.folder,
            ALERTS_FILE,
            trouble="alerts are not being sent",
            recovered="alerts are being sent again",
        )

    def step(self) -> bool:
        """Do what is due in the notifier; return whether there may be more at once."""
        return self._guard.run(self._run_step, self._close_store)

    def close(self) -> None:
        """Close the notifier; webhook messages without a response yet will be sent again."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._close_store()

    def _run_step(self) -> bool:
        if self._store_and_matcher is None:
            book = AlertStore(self._folder)
            claims = _open_claims(self._settings.shard) if self._settings.shard else None
            self._store_and_matcher = book, AlertMatcher(self._folder, self._settings.clock, book, claims)
        book, telling = self._store_and_matcher
        try:
            told = telling.step()
        except ClusterError:  # the exchanger reports it
            told = 0
        self._collect_results(book)
        self._send_due(book)
        if time.monotonic() >= self._tidy_s:
            self._tidy_s = time.monotonic() + TIDY_EVERY_S
            book.prune(self._settings.clock.now(), time.time())
        return told > 0

    def _collect_results(self, book: AlertStore) -> None:
        """Collect and record the results of webhook messages that were being sent."""
        for mark in [mark for mark, (_, future) in self._in_flight.items() if future.done()]:
            delivery, future = self._in_flight.pop(mark)
            posted, wall_s = future.result(), time.time()
            is_over = posted.is_good or delivery.tries >= len(RETRY_DELAYS_S)
            next_s = None if is_over else wall_s + RETRY_DELAYS_S[delivery.tries]
            given_up = "" if posted.is_good or not is_over else f"; given up after {delivery.tries + 1} tries"
            book.record_attempt(delivery.id, posted.status, f"{posted.error}{given_up}", wall_s, next_s)

    def _send_due(self, book: AlertStore) -> None:
        if not (waiting := book.list_waiting_alerts()):
            return
        watches = self._load_alerts()
        for mark in waiting:
            if mark not in watches or not watches[mark].webhook:
                book.abandon_deliveries(mark, "the watch was removed", time.time())
        for delivery in book.list_due(time.time(), list(self._in_flight), MAX_IN_FLIGHT - len(self._in_flight)):
            watch = watches.get(delivery.watch)
            if watch is not None:
                message = self._sender.build_message(delivery, watch, book)
                self._in_flight[delivery.watch] = delivery, self._pool.submit(self._sender.send, watch, message)

    def _load_alerts(self) -> dict[str, AlertRow]:
        with read_state(self._folder) as db:
            return {watch.alert_id: watch for watch in CrawlStore(db).list_alerts()}

    def _close_store(self) -> None:
        if self._store_and_matcher is not None:
            self._store_and_matcher[0].close()
        self._store_and_matcher = None


def _open_claims(shard: "ShardSettings") -> AlertClaims:
    from vedette.runtime.cluster.alert_claims import ShardClaims  # one machine imports nothing of a cluster

    return ShardClaims(shard)


def run_notifier(settings: RuntimeSettings) -> int:
    """Run the notifier process until SIGTERM."""
    loop = StepLoop(CHECK_EVERY_S)
    loop.wait_for_folder(settings.folder)
    with closing(Notifier(settings)) as notifier:
        loop.run(notifier.step)
    return 0
