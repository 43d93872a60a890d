"""The herald process: tells of new pages as soon as they can be found, and sends messages to webhooks.

Neither the crawl nor any search waits for it. A message that cannot be delivered is tried again ever more rarely, for
two days, and then given up; what came of it is in the book, for the console to show. A kill costs no message: one whose
answer was not noted is sent again, under the same id.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from vedette.adapters.alerts.alert_store import WATCH_FILE, Delivery, WatchBook
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import WatchRow
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.net.webhook import Posted
from vedette.errors import StoreCorrupt, StoreError
from vedette.runtime.alerts.publisher import Telling
from vedette.runtime.alerts.webhooks import Sender

if TYPE_CHECKING:
    from vedette.runtime.processes.settings import LiveSettings

__all__ = ["PAUSES_S", "Herald", "run_herald"]

LOOK_EVERY_S = 0.25
TIDY_EVERY_S = 60.0
NICENESS = 5
# Messages on their way at once, one for each watch.
MOST_AT_ONCE = 8
# How long after each try the next one is made; after the last the message is given up. Wall time.
PAUSES_S = (5.0, 30.0, 120.0, 600.0, 3600.0, 3 * 3600.0, 8 * 3600.0, 12 * 3600.0, 24 * 3600.0)


class Herald:
    """The book of a data folder, told from step by step; whatever happens to it, the process goes on."""

    def __init__(self, settings: "LiveSettings") -> None:
        self._settings = settings
        self._folder = settings.folder
        self._sender = Sender(settings)
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, "webhook")
        self._out: dict[str, tuple[Delivery, Future[Posted]]] = {}
        self._opened: tuple[WatchBook, Telling] | None = None
        self._tidy_s = 0.0
        self._trouble = ""

    def step(self) -> bool:
        """Do what is due; whether there may be more at once."""
        return self._guarded(self._step)

    def close(self) -> None:
        """Let go; what is on its way and not answered yet will be sent again."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._shut()

    def _step(self) -> bool:
        if self._opened is None:
            book = WatchBook(self._folder)
            self._opened = book, Telling(self._folder, self._settings.clock, book)
        book, telling = self._opened
        told = telling.step()
        self._collect(book)
        self._send(book)
        if time.monotonic() >= self._tidy_s:
            self._tidy_s = time.monotonic() + TIDY_EVERY_S
            book.tidy(self._settings.clock.now(), time.time())
        return told > 0

    def _collect(self, book: WatchBook) -> None:
        """What came of messages that were on their way."""
        for mark in [mark for mark, (_, future) in self._out.items() if future.done()]:
            delivery, future = self._out.pop(mark)
            posted, wall_s = future.result(), time.time()
            is_over = posted.is_good or delivery.tries >= len(PAUSES_S)
            next_s = None if is_over else wall_s + PAUSES_S[delivery.tries]
            given_up = "" if posted.is_good or not is_over else f"; given up after {delivery.tries + 1} tries"
            book.tried(delivery.id, posted.status, f"{posted.error}{given_up}", wall_s, next_s)

    def _send(self, book: WatchBook) -> None:
        if not (waiting := book.waiting_watches()):
            return
        watches = self._watches()
        for mark in waiting:
            if mark not in watches or not watches[mark].webhook:
                book.abandon(mark, "the watch was removed", time.time())
        for delivery in book.due(time.time(), list(self._out), MOST_AT_ONCE - len(self._out)):
            watch = watches.get(delivery.watch)
            if watch is not None:
                message = self._sender.message(delivery, watch, book)
                self._out[delivery.watch] = delivery, self._pool.submit(self._sender.send, watch, message)

    def _watches(self) -> dict[str, WatchRow]:
        with read_state(self._folder) as db:
            return {watch.mark: watch for watch in StateBook(db).watches()}

    def _guarded(self, work: Callable[[], bool]) -> bool:
        try:
            more = work()
        except StoreCorrupt as error:
            self._shut()
            _say(f"{error}; it is kept as {WATCH_FILE.move_aside(self._folder).name}")
            return False
        except (StoreError, OSError) as error:
            self._tell(str(error))
            return False
        self._tell("")
        return more

    def _tell(self, trouble: str) -> None:
        """The same trouble is said once, until it is over."""
        if trouble and trouble != self._trouble:
            _say(f"nobody is told of new pages for now: {trouble}")
        elif self._trouble and not trouble:
            _say("new pages are told of again")
        self._trouble = trouble

    def _shut(self) -> None:
        if self._opened is not None:
            self._opened[0].close()
        self._opened = None


def run_herald(settings: "LiveSettings") -> int:
    """The life of the herald process; it ends when it is told to."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    os.nice(NICENESS)
    while not (settings.folder / "format").exists() and not stopping:
        time.sleep(LOOK_EVERY_S)  # the keeper is about to make the folder
    herald = Herald(settings)
    try:
        while not stopping:
            if not herald.step():
                time.sleep(LOOK_EVERY_S)  # nothing is new; this is how often we look
    finally:
        herald.close()
    return 0


def _say(words: str) -> None:
    sys.stderr.write(f"vedette: {words}\n")
    sys.stderr.flush()
