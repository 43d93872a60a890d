"""Push in the keeper: one door for what servers received, what hubs said, and what is to be asked of hubs.

A server or the process that calls hubs asks with ``Call("push", {"what": …})``; ``step`` is for the keeper's own
round. Everything is written with the keeper's other words and becomes durable with them.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.push.push_store import PushBook, create_push
from vedette.discover.push.indexnow import Ping
from vedette.engine.coordinator.coordinator import Keeper
from vedette.errors import UsageError
from vedette.runtime.processes.settings import LiveSettings
from vedette.runtime.push.indexnow import Pinging
from vedette.runtime.push.promises import Promising
from vedette.runtime.push.signals import Announced, Mention, Signalling
from vedette.runtime.push.subscriptions import Intent, Subscribing

__all__ = ["PushKeeping"]

Reply = dict[str, object]
OFFERS_AT_ONCE = 1_000


class PushKeeping:
    """Subscriptions, signals, pings and promises over one state."""

    def __init__(self, settings: LiveSettings, state: State, keeper: Keeper, announced: Announced) -> None:
        create_push(state.db)
        self._settings, self._state, self._keeper = settings, state, keeper
        self.book = PushBook(state.db)
        self.signalling = Signalling(self.book, state, keeper, announced)
        self.subscribing = Subscribing(self.book, keeper, settings.config.serve.public_url)
        self.pinging = Pinging(self.book, state, keeper, self.signalling)
        self.promising = Promising(state, keeper)
        self._answers: dict[str, Callable[..., Reply]] = {
            "errands": self._errands,
            "came": self._came,
            "offers": self._offers,
            "intent": self._intent,
            "delivered": self._delivered,
            "ignored": self._ignored,
            "pinged": self._pinged,
        }

    def answer(self, now_s: float, what: str, **told: Any) -> Reply:  # noqa: ANN401 - each question has its own words
        """What is told to whoever called."""
        if what not in self._answers:
            raise UsageError(f'the vedette that runs does not know push "{what[:40]}": it is older; restart it')
        if not self._state.db.in_transaction:
            self._state.db.execute("BEGIN IMMEDIATE")
        return self._answers[what](now_s, **told)

    def step(self, now_s: float) -> None:
        """What happens by itself, about once a second."""
        self.promising.step(now_s)
        self.pinging.step(now_s)
        self.signalling.step(now_s)

    def _errands(self, _now_s: float) -> Reply:
        return {"errands": self.subscribing.errands(self._wall_s())}

    def _came(self, _now_s: float, token: str, trouble: str) -> Reply:
        self.subscribing.came(token, trouble)
        return {}

    def _offers(self, _now_s: float, offers: Sequence[tuple[str, str, str]]) -> Reply:
        wall_s = self._wall_s()
        return {"new": sum(self.subscribing.offered(*offer, wall_s) for offer in offers[:OFFERS_AT_ONCE])}

    def _intent(self, now_s: float, token: str, intent: Intent) -> Reply:
        why_not = self.subscribing.verified(token, intent, self._wall_s())
        return {"why_not": why_not, **(self._ignored(now_s, token, {why_not: 1}) if why_not else {})}

    def _delivered(self, now_s: float, token: str, said: Sequence[Mention]) -> Reply:
        """A hub pushed a feed, and its signature was right: that counts as a look at the feed."""
        row = self.book.subscription_of(token)
        if row is None or row.standing == "ended" or self._keeper.sited(row.feed) is None:
            return {"status": 410}
        if row.lease_wall_s <= self._wall_s():
            self.book.ignore(f"websub {row.topic}", "nothing was subscribed to any more", 1, now_s)
            return {"status": 410}
        self.book.keep_subscription(row._replace(heard_wall_s=self._wall_s()))
        heard = self.signalling.heard(f"websub {row.topic}", "feed", row.feed, said, now_s)
        self._look_later(row.feed, now_s)
        return {"status": 202, **heard._asdict()}

    def _look_later(self, feed: str, now_s: float) -> None:
        """One that waits already, or is being fetched, is left alone."""
        id_ = int(self._state.urls.find([feed])[0])
        page = self._state.book.page_of(id_) if id_ else None
        if page is not None and page.due_s != inf:
            self._state.book.put_off(id_, now_s + self._settings.config.crawl.source_interval_s)

    def _ignored(self, now_s: float, token: str, counts: dict[str, int]) -> Reply:
        row = self.book.subscription_of(token)
        for why, times in counts.items():
            self.book.ignore(f"websub {row.topic}" if row else "websub", why, times, now_s)
        return {}

    def _pinged(self, now_s: float, ping: Ping) -> Reply:
        return self.pinging.pinged(ping, now_s)._asdict()

    def _wall_s(self) -> float:
        return self._settings.clock.wall()
