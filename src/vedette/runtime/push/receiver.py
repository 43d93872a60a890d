"""Push as servers see it: signatures are checked and feeds are read here, and only what they name goes to the keeper.

A hub that floods or lies costs this process a little and the keeper nothing: what was refused is counted, and told with
the next call that is let through.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from math import ceil, isfinite
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.net.ipc import Gone
from vedette.adapters.push.push_store import PushBook, Subscription
from vedette.config import Rate
from vedette.discover.formats.feeds import is_feed, read_feed
from vedette.discover.push.indexnow import Ping
from vedette.discover.push.websub import linked
from vedette.errors import StoreError
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.runtime.push.signals import Mention
from vedette.runtime.push.subscriptions import Intent
from vedette.web.auth.rate_limits import Limits
from vedette.web.auth.tokens import is_signed
from vedette.web.push.ports import Delivery, PushLook, Told

__all__ = ["FolderPush"]

MOST_MENTIONS = 1_000
MOST_SHOWN = 200
LONGEST_CHALLENGE = 1_024
LONGEST_TOKEN = 64
# What one subscription may send; a feed that has news more often says several things at once.
DELIVERIES = Rate(30, 600.0)
PINGS = Rate(120, 60.0)
MOST_COUNTED = 1_000
_AWAY = Told(503, "The crawler does not answer. Try again in a moment.", 30)


class FolderPush:
    """A ``web.push_ports.Push`` over one data folder; ``ask`` puts a question to its keeper."""

    def __init__(
        self,
        folder: Path,
        public_url: str = "",
        clock: Callable[[], float] = time.monotonic,
        ask: Callable[[Path, Call], dict[str, object]] = ask_keeper,
    ) -> None:
        self._folder = folder
        self._put = ask
        self._public_url = public_url
        self._limits = Limits(clock)
        self._refused: dict[str, Counter[str]] = {}

    def asked_back(self, token: str, query: Mapping[str, str]) -> Told:
        """The challenge is echoed only if the keeper knows that it asked."""
        mode, challenge = query.get("hub.mode", ""), query.get("hub.challenge", "")
        if len(token) > LONGEST_TOKEN or not mode or len(challenge) > LONGEST_CHALLENGE:
            return Told(404)
        if wait_s := self._limits.wait_s(f"ask {token}", DELIVERIES):
            return Told(429, wait_s=ceil(wait_s))
        lease_s = _seconds(query.get("hub.lease_seconds", ""))
        intent = Intent(mode[:20], query.get("hub.topic", "")[:2_048], lease_s, query.get("hub.reason", "")[:200])
        reply = self._ask("intent", token=token, intent=intent)
        if reply is None:
            return _AWAY
        return Told(404) if reply.get("why_not") or "error" in reply else Told(200, challenge)

    def delivered(self, token: str, delivery: Delivery) -> Told:
        """A wrong signature is taken and ignored, as the standard has it: whoever lies is told nothing."""
        try:
            row = self._subscription(token)
        except StoreError:
            return _AWAY
        if row is None or row.standing == "ended":
            return Told(404 if row is None else 410)
        if wait_s := self._limits.wait_s(token, DELIVERIES):
            return self._refuse(token, "more than a feed can have to say", Told(429, wait_s=ceil(wait_s)))
        if why := _wrong(row, delivery):
            self._refuse(token, why, Told(202))
            return self._told_refused(token)
        return self._handed_on(row, delivery)

    def _handed_on(self, row: Subscription, delivery: Delivery) -> Told:
        reply = self._ask("delivered", token=row.token, said=_mentions(row, delivery))
        if reply is None:
            return _AWAY
        self._told_refused(row.token)
        status = reply.get("status")
        return Told(status if isinstance(status, int) else 503)

    def pinged(self, ping: Ping) -> Told:
        """The keeper knows whose key is good."""
        if wait_s := self._limits.wait_s(f"ping {ping.key_url}", PINGS):
            return Told(429, "Too many pings for one key file.", ceil(wait_s))
        reply = self._ask("pinged", ping=ping)
        if reply is None or not isinstance(status := reply.get("status"), int):
            return _AWAY
        return Told(status, str(reply.get("words", "")), 3_600 if status == 429 else 0)

    def look(self) -> PushLook:
        """As the state has it, without what must stay secret."""
        with read_state(self._folder) as db:
            book = PushBook(db)
            if not book.is_there():
                return PushLook(self._public_url)
            rows = tuple(row._replace(token="", secret="") for row in book.subscriptions(MOST_SHOWN))
            said, ignored = tuple(book.credits(MOST_SHOWN)), tuple(book.ignored(MOST_SHOWN))
            return PushLook(self._public_url, book.subscription_count(), rows, said, ignored)

    def _subscription(self, token: str) -> Subscription | None:
        if len(token) > LONGEST_TOKEN:
            return None
        with read_state(self._folder) as db:
            book = PushBook(db)
            return book.subscription_of(token) if book.is_there() else None

    def _refuse(self, token: str, why: str, told: Told) -> Told:
        if len(self._refused) < MOST_COUNTED or token in self._refused:
            self._refused.setdefault(token, Counter())[why] += 1
        return told

    def _told_refused(self, token: str) -> Told:
        counts = self._refused.pop(token, None)
        if counts:
            self._ask("ignored", token=token, counts=dict(counts))
        return Told(202)

    def _ask(self, what: str, **told: object) -> dict[str, object] | None:
        """None where no keeper answers."""
        try:
            return self._put(self._folder, Call("push", {"what": what, **told}))
        except (OSError, Gone):
            return None


def _wrong(row: Subscription, delivery: Delivery) -> str:
    """Why a delivery is not believed; empty where it is."""
    if not is_signed(delivery.body, delivery.signature, row.secret):
        return "a wrong signature"
    topic = linked(delivery.links, "self", row.topic)
    if topic is not None and topic != row.topic:
        return "another topic than was asked for"
    return "" if is_feed(delivery.body, delivery.content_type) else "no feed"


def _mentions(row: Subscription, delivery: Delivery) -> list[Mention]:
    """What the feed names, the first so many."""
    entries = read_feed(delivery.body, row.feed, delivery.content_type).entries[:MOST_MENTIONS]
    return [Mention(each.link, each.published_s if each.updated_s is None else each.updated_s) for each in entries]


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text[:20])
    except ValueError:
        return None
    return seconds if isfinite(seconds) else None
