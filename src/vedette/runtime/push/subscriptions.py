"""WebSub subscriptions in the coordinator: wanted, requested, verified, renewed.

The hub client, another process, takes the requests from here and calls the hubs; so the coordinator never waits. A hub
is trusted only for what it was asked to do: it verifies a recently requested subscription, at a callback URL that only
it knows, and signs its messages with its own secret. Times are wall time.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from vedette.adapters.push.push_store import PushStore, Subscription
from vedette.engine.coordinator.coordinator import Coordinator

Mode = Literal["subscribe", "unsubscribe"]

MAX_SUBSCRIPTIONS = 10_000
MAX_REQUESTS = 4
LEASE_S = 10 * 86_400.0
MIN_LEASE_S, MAX_LEASE_S = 300.0, 30 * 86_400.0
# Renewed when this share of the lease is over, so that a hub outage loses nothing.
RENEW_AT = 0.8
FIRST_RETRY_S, MAX_RETRY_S = 600.0, 86_400.0
MAX_REASON_CHARS = 200


class HubRequest(NamedTuple):
    """A request to a WebSub hub, as a form."""

    token: str
    hub: str
    form: tuple[tuple[str, str], ...]


class Verification(NamedTuple):
    """A WebSub hub's verification of intent: what it was asked, and the challenge to echo."""

    mode: str
    topic: str
    lease_s: float | None = None
    reason: str = ""


@dataclass(slots=True)
class SubscriptionManager:
    """Manage all WebSub subscriptions; ``public_url`` is where hubs reach this server, empty if they cannot."""

    store: PushStore
    coordinator: Coordinator
    public_url: str = ""
    create_token: Callable[[int], str] = secrets.token_urlsafe

    def add_offer(self, feed: str, hub: str, topic: str, wall_s: float) -> bool:
        """Add a WebSub subscription for a feed that names a hub; return whether it is new."""
        normalized = self.coordinator.normalize_url(feed)
        if normalized is None:
            return False
        topic = topic if self.coordinator.normalize_url(topic) is not None else feed
        row = self.store.find_by_topic(topic)
        if row is not None and row.hub == hub and row.standing != "ended":
            return False
        if row is None and self.store.count_subscriptions() >= MAX_SUBSCRIPTIONS:
            return False
        row = Subscription(topic, hub, normalized, self.create_token(24), self.create_token(32), next_wall_s=wall_s)
        self.store.save_subscription(row)
        return True

    def take_requests(self, wall_s: float) -> list[HubRequest]:
        """Return the requests to send to WebSub hubs now.

        They are recorded as tried, since the process that sends them may die.
        """
        if not self.public_url:
            return []
        due = self.store.list_due_subscriptions(wall_s, MAX_REQUESTS)
        return [self._build_request(self._update_standing(row, wall_s), wall_s) for row in due]

    def on_answer(self, token: str, trouble: str) -> None:
        """Record a WebSub hub's response to a request; if accepted, it will call back to verify."""
        row = self.store.find_by_token(token)
        if row is None:
            return
        if trouble:
            row = row._replace(asked=False, why=trouble[:MAX_REASON_CHARS])
        elif row.standing == "wanted":
            row = row._replace(standing="asked")
        self.store.save_subscription(row)

    def verify(self, token: str, intent: Verification, wall_s: float) -> str:
        """Return why a WebSub hub's verification is refused; empty if it was requested, then the lease begins."""
        row = self.store.find_by_token(token)
        if row is None:
            return "there is no subscription at this URL"
        if intent.topic != row.topic:
            return "a topic that was not requested"
        if intent.mode == "denied":
            self._deny(row, intent.reason, wall_s)
            return ""
        if intent.mode == "unsubscribe" and row.standing == "ended":
            return ""
        if intent.mode != "subscribe" or not row.asked or row.standing == "ended":
            return "a verification that was not requested"
        lease_s = min(max(intent.lease_s or LEASE_S, MIN_LEASE_S), MAX_LEASE_S)
        row = row._replace(standing="active", asked=False, tries=0, why="", lease_wall_s=wall_s + lease_s)
        self.store.save_subscription(row._replace(next_wall_s=wall_s + RENEW_AT * lease_s))
        return ""

    def _update_standing(self, row: Subscription, wall_s: float) -> Subscription:
        """Update a WebSub subscription when it is due: end it if its feed left all sites, renew an expired lease."""
        if self.coordinator.normalize_url(row.feed) is None:
            return row._replace(standing="ended")
        if row.asked:
            row = row._replace(why="the hub accepted the request but did not verify it")
        return row._replace(standing="wanted") if row.lease_wall_s <= wall_s else row

    def _build_request(self, row: Subscription, wall_s: float) -> HubRequest:
        mode: Mode = "unsubscribe" if row.standing == "ended" else "subscribe"
        retry_s = min(FIRST_RETRY_S * 2.0 ** min(row.tries, 20), MAX_RETRY_S)
        next_s = inf if mode == "unsubscribe" else wall_s + retry_s
        self.store.save_subscription(row._replace(asked=True, tries=row.tries + 1, next_wall_s=next_s))
        form = (
            ("hub.mode", mode),
            ("hub.topic", row.topic),
            ("hub.callback", f"{self.public_url.rstrip('/')}/push/{row.token}"),
            *((("hub.secret", row.secret), ("hub.lease_seconds", f"{LEASE_S:.0f}")) if mode == "subscribe" else ()),
        )
        return HubRequest(row.token, row.hub, form)

    def _deny(self, row: Subscription, reason: str, wall_s: float) -> None:
        why = f"the hub denied it: {reason[:MAX_REASON_CHARS]}" if reason else "the hub denied it"
        later_s = wall_s + MAX_RETRY_S
        self.store.save_subscription(row._replace(standing="denied", asked=False, why=why, next_wall_s=later_s))
