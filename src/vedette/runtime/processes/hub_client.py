"""The process that calls hubs: it looks through the feeds that were fetched for hubs, and asks those to push.

It writes nothing itself. What it found goes to the keeper, which decides; what the keeper wants asked, it asks, one hub
after the other, so that neither the crawl nor a server ever waits for a hub.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from vedette.adapters.archive.replay import Old, body_of
from vedette.adapters.archive.warc_reader import read_place
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.net.ipc import Gone
from vedette.adapters.push.push_store import FeedRow, PushBook
from vedette.discover.formats.feeds import read_feed
from vedette.discover.push.websub import Offer, offered
from vedette.errors import StoreError
from vedette.model import Failure
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.push_calls import HubCaller
from vedette.runtime.processes.settings import LiveSettings
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.runtime.push.subscriptions import HubErrand

__all__ = ["Caller", "run_push"]

EVERY_S = 1.0
FEEDS_AT_ONCE = 50
READ_BYTES = 10 << 20
MOST_SEEN = 200_000
NICENESS = 5


class Caller:
    """One round after the other; each tells the keeper of some feeds, and asks some hubs."""

    def __init__(self, settings: LiveSettings, ask: Callable[[Path, Call], dict[str, object]] = ask_keeper) -> None:
        self._settings, self._folder, self._ask = settings, settings.folder, ask
        self._cursor = 0
        self._seen: dict[int, str] = {}
        self._is_told = False

    def round(self) -> None:
        """Look, tell, ask. A keeper that is away is told the next time."""
        try:
            self._look_at_feeds()
            self._call_hubs()
        except (OSError, Gone, StoreError):
            return

    def _look_at_feeds(self) -> None:
        feeds = self._next_feeds()
        offers = [(feed.url, *offer) for feed in feeds if (offer := self._offer(feed)) is not None]
        if offers:
            self._ask(self._folder, Call("push", {"what": "offers", "offers": offers}))
            self._say_what_is_missing(len(offers))
        self._seen |= {feed.id: feed.digest for feed in feeds}
        if len(self._seen) > MOST_SEEN:
            self._seen.clear()

    def _next_feeds(self) -> list[FeedRow]:
        """Those of the next few that are new, or say something else than before."""
        with read_state(self._folder) as db:
            book = PushBook(db)
            feeds = book.feeds_after(self._cursor, FEEDS_AT_ONCE) if book.is_there() else []
        self._cursor = feeds[-1].id if len(feeds) == FEEDS_AT_ONCE else 0
        return [feed for feed in feeds if self._seen.get(feed.id) != feed.digest]

    def _offer(self, feed: FeedRow) -> Offer | None:
        """What the archived feed offers; one that cannot be read offers nothing."""
        if feed.place is None:
            return None
        try:
            found = read_place(self._folder / "warc", feed.place)
        except StoreError:
            return None
        body = body_of(Old(feed.url, 0.0, found.status, found.headers, found.payload, ""), READ_BYTES)
        if isinstance(body, Failure):
            return None
        links = [value for name, value in found.headers if name == "link"]
        return offered(feed.url, read_feed(body, feed.url, feed.content_type), links)

    def _say_what_is_missing(self, hubs: int) -> None:
        if not self._settings.config.serve.public_url and not self._is_told:
            self._is_told = True
            feeds = "1 feed names a hub" if hubs == 1 else f"{hubs} feeds name a hub"
            sys.stderr.write(f"vedette: {feeds}, which cannot reach this server: set serve.public_url to subscribe\n")
            sys.stderr.flush()

    def _call_hubs(self) -> None:
        if not self._settings.config.serve.public_url:
            return
        reply = self._ask(self._folder, Call("push", {"what": "errands"}))
        errands = cast("list[HubErrand]", reply.get("errands", []))
        if not errands:
            return
        with HubCaller(self._settings) as caller:
            for errand in errands:
                trouble = caller.post(errand.hub, errand.form)
                told = {"what": "came", "token": errand.token, "trouble": trouble}
                self._ask(self._folder, Call("push", told))


def run_push(settings: LiveSettings) -> int:
    """The life of the process; it ends when it is told to."""
    os.nice(NICENESS)
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    _until(lambda: bool(ending), Caller(settings))
    return 0


def _until(is_over: Callable[[], bool], caller: Caller) -> None:
    while not is_over():
        caller.round()
        time.sleep(EVERY_S)  # hubs are in no hurry, and the keeper has other things to do
