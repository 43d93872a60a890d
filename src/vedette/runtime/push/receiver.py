"""Push receiver in servers: check and parse WebSub deliveries and IndexNow pings before calling the coordinator.

A hub that floods or lies costs this process a little and the coordinator nothing: refused calls are counted, and
reported with the next accepted one.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from math import ceil, isfinite
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.net.ipc import ChannelClosed, Request
from vedette.adapters.push.push_store import PushStore, Subscription
from vedette.config import Rate
from vedette.discover.formats.feeds import is_feed, parse_feed
from vedette.discover.push.indexnow import Ping
from vedette.discover.push.websub import find_link
from vedette.errors import StoreError
from vedette.runtime.processes.supervisor import ask_coordinator
from vedette.runtime.push.signals import Mention
from vedette.runtime.push.subscriptions import Verification
from vedette.web.auth.rate_limits import RateLimiter
from vedette.web.auth.tokens import is_valid_signature
from vedette.web.push.ports import HubDelivery, PushReply, PushStatus

MAX_MENTIONS = 1_000
MAX_SHOWN = 200
MAX_CHALLENGE = 1_024
MAX_TOKEN = 64
# What one subscription may send; a feed with more frequent news combines several entries.
DELIVERY_RATE = Rate(30, 600.0)
PING_RATE = Rate(120, 60.0)
MAX_COUNTED = 1_000
_UNAVAILABLE = PushReply(503, "The crawler is not responding. Try again in a moment.", 30)


class FolderPushService:
    """A ``web.push.ports.PushService`` over one data folder; ``ask`` sends a request to its coordinator."""

    def __init__(
        self,
        folder: Path,
        public_url: str = "",
        clock: Callable[[], float] = time.monotonic,
        ask: Callable[[Path, Request], dict[str, object]] = ask_coordinator,
    ) -> None:
        self._folder = folder
        self._ask_coordinator = ask
        self._public_url = public_url
        self._limits = RateLimiter(clock)
        self._refused: dict[str, Counter[str]] = {}

    def verify_intent(self, token: str, query: Mapping[str, str]) -> PushReply:
        """Answer a WebSub hub's verification; echo the challenge only if the coordinator had requested it."""
        mode, challenge = query.get("hub.mode", ""), query.get("hub.challenge", "")
        if len(token) > MAX_TOKEN or not mode or len(challenge) > MAX_CHALLENGE:
            return PushReply(404)
        if wait_s := self._limits.take_token(f"ask {token}", DELIVERY_RATE):
            return PushReply(429, wait_s=ceil(wait_s))
        lease_s = _parse_seconds(query.get("hub.lease_seconds", ""))
        intent = Verification(mode[:20], query.get("hub.topic", "")[:2_048], lease_s, query.get("hub.reason", "")[:200])
        reply = self._call_push("intent", token=token, intent=intent)
        if reply is None:
            return _UNAVAILABLE
        return PushReply(404) if reply.get("why_not") or "error" in reply else PushReply(200, challenge)

    def accept_delivery(self, token: str, delivery: HubDelivery) -> PushReply:
        """Receive a WebSub delivery.

        One with a wrong signature is accepted and ignored, as the standard requires: a forger learns nothing.
        """
        try:
            row = self._find_subscription(token)
        except StoreError:
            return _UNAVAILABLE
        if row is None or row.standing == "ended":
            return PushReply(404 if row is None else 410)
        if wait_s := self._limits.take_token(token, DELIVERY_RATE):
            return self._count_refused(token, "too large for a feed", PushReply(429, wait_s=ceil(wait_s)))
        if why := _find_objection(row, delivery):
            self._count_refused(token, why, PushReply(202))
            return self._report_refused(token)
        return self._forward(row, delivery)

    def _forward(self, row: Subscription, delivery: HubDelivery) -> PushReply:
        reply = self._call_push("delivered", token=row.token, said=_read_mentions(row, delivery))
        if reply is None:
            return _UNAVAILABLE
        self._report_refused(row.token)
        status = reply.get("status")
        return PushReply(status if isinstance(status, int) else 503)

    def accept_ping(self, ping: Ping, client: str = "") -> PushReply:
        """Receive an IndexNow ping and pass it to the coordinator, which knows the valid keys."""
        if wait_s := self._limits.take_token(f"ping {ping.key_url} {client}", PING_RATE):
            return PushReply(429, "Too many pings for one key file.", ceil(wait_s))
        reply = self._call_push("pinged", ping=ping, client=client)
        if reply is None or not isinstance(status := reply.get("status"), int):
            return _UNAVAILABLE
        return PushReply(status, str(reply.get("words", "")), 3_600 if status == 429 else 0)

    def get_status(self) -> PushStatus:
        """Return the push status for the console's push page, without secrets."""
        with read_state(self._folder) as db:
            store = PushStore(db)
            if not store.has_tables():
                return PushStatus(self._public_url)
            rows = tuple(row._replace(token="", secret="") for row in store.list_subscriptions(MAX_SHOWN))
            credited, ignored = tuple(store.list_credits(MAX_SHOWN)), tuple(store.list_ignored(MAX_SHOWN))
            return PushStatus(self._public_url, store.count_subscriptions(), rows, credited, ignored)

    def _find_subscription(self, token: str) -> Subscription | None:
        if len(token) > MAX_TOKEN:
            return None
        with read_state(self._folder) as db:
            store = PushStore(db)
            return store.find_by_token(token) if store.has_tables() else None

    def _count_refused(self, token: str, why: str, reply: PushReply) -> PushReply:
        if len(self._refused) < MAX_COUNTED or token in self._refused:
            self._refused.setdefault(token, Counter())[why] += 1
        return reply

    def _report_refused(self, token: str) -> PushReply:
        counts = self._refused.pop(token, None)
        if counts:
            self._call_push("ignored", token=token, counts=dict(counts))
        return PushReply(202)

    def _call_push(self, what: str, **fields: object) -> dict[str, object] | None:
        """Send a push request to the coordinator; None if no coordinator responds."""
        try:
            return self._ask_coordinator(self._folder, Request("push", {"what": what, **fields}))
        except (OSError, ChannelClosed):
            return None


def _find_objection(row: Subscription, delivery: HubDelivery) -> str:
    """Return why a WebSub delivery is not trusted; empty if it is."""
    if not is_valid_signature(delivery.body, delivery.signature, row.secret):
        return "a wrong signature"
    topic = find_link(delivery.links, "self", row.topic)
    if topic is not None and topic != row.topic:
        return "a different topic than requested"
    return "" if is_feed(delivery.body, delivery.content_type) else "no feed"


def _read_mentions(row: Subscription, delivery: HubDelivery) -> list[Mention]:
    """Parse the URLs that a WebSub delivery's feed mentions, up to a maximum."""
    entries = parse_feed(delivery.body, row.feed, delivery.content_type).entries[:MAX_MENTIONS]
    return [Mention(each.link, each.published_s if each.updated_s is None else each.updated_s) for each in entries]


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text[:20])
    except ValueError:
        return None
    return seconds if isfinite(seconds) else None
