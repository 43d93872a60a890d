"""Webhook messages of alerts: built, signed and sent, by the notifier and by a test from the console."""

import hmac
import json
import secrets
import time
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.alerts.alert_store import AlertItem, AlertStore, Delivery
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.net.http import ConnectionSettings
from vedette.adapters.net.webhook import PostResult, WebhookClient
from vedette.config import Config
from vedette.fetch.address_guard import is_public
from vedette.model import Headers
from vedette.runtime.alerts.publisher import BATCH_SIZE, filter_visible
from vedette.runtime.commands.setting_commands import apply_to_settings
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.auth.access import Identity, allowed_sites
from vedette.web.public.new_page_ports import item_to_json

# The signature is HMAC-SHA256 over the time, a full stop and the body, so that neither can be replaced. The secret is
# derived from the folder's own and the id of the alert: it is not stored, and a recreated alert has another.


SECRET_PREFIX = "whsec_"  # noqa: S105 - no secret, but the prefix of one


def derive_secret(folder_secret: bytes, watch: AlertRow) -> str:
    """Derive the secret of an alert's webhook, by which its receiver verifies messages."""
    return SECRET_PREFIX + hmac.digest(folder_secret, f"webhook {watch.alert_id}".encode(), "sha256").hex()


def read_signing_secret(settings: RuntimeSettings, store: CrawlStore) -> bytes:
    """Read the secret from which the keys of alerts derive: the folder's, or that of all shards of a cluster."""
    if settings.shard is None:
        return store.read_secret()
    from vedette.runtime.cluster.alert_claims import load_signing_secret  # one machine imports nothing of a cluster

    return load_signing_secret(settings.shard.dsn)


def sign_body(secret: str, wall_s: int, body: bytes) -> str:
    """Sign the body of a webhook message; return the value of the signature header.

    >>> sign_body("whsec_00", 1700000000, b"{}")[:24]
    't=1700000000,v1=c791ae52'
    """
    digest = hmac.digest(secret.encode(), b"%d." % wall_s + body, "sha256")
    return f"t={wall_s},v1={digest.hex()}"


def build_body(delivery: Delivery, watch: AlertRow, items: Sequence[AlertItem]) -> bytes:
    """Build the JSON body of an alert's webhook message; a test has no items."""
    message = {
        "id": delivery.id,
        "watch": watch.name,
        "test": delivery.last == 0,
        "items": [item_to_json(item) for item in items],
    }
    return json.dumps(message).encode()


def build_headers(delivery: Delivery, secret: str, agent: str, wall_s: float, body: bytes) -> Headers:
    """Build the HTTP headers of an alert's webhook message."""
    return (
        ("content-type", "application/json"),
        ("user-agent", agent),
        ("x-vedette-delivery", delivery.id),
        ("x-vedette-signature", sign_body(secret, int(wall_s), body)),
    )


class Message(NamedTuple):
    """A webhook message to send: headers and body."""

    headers: Headers
    body: bytes


def build_poster(config: Config, *, demo: bool = False) -> WebhookClient:
    """Build a webhook client for public addresses, and private ones if the operator allows it or in a demo."""
    networks = tuple(ip_network(each) for each in config.serve.webhook_networks)

    def may_ask(address: str) -> bool:
        return demo or is_public(address) or any(ip_address(address) in network for network in networks)

    return WebhookClient(may_ask, ConnectionSettings(config.crawl.proxy, config.crawl.ca_file))


class WebhookSender:
    """Build webhook messages from the alert store and the crawl state, and send them."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._folder: Path = settings.folder
        self._settings = settings
        self._poster = build_poster(settings.config, demo=settings.demo)

    def build_message(self, delivery: Delivery, watch: AlertRow, store: AlertStore) -> Message:
        """Build the webhook message of a delivery, without the pages that the user may no longer see."""
        with read_state(self._folder) as db:
            state = CrawlStore(db)
            secret = derive_secret(read_signing_secret(self._settings, state), watch)
            agent = apply_to_settings(self._settings, state).agent
            reader = Identity(watch.reader, ("search", "private"), auth_method="key" if watch.reader else "")
            allowed = allowed_sites(reader, [row.site for row in state.list_sites()])
        items = (
            filter_visible(self._folder, store.load_delivery_items(delivery, BATCH_SIZE), allowed)
            if delivery.last
            else []
        )
        body = build_body(delivery, watch, items)
        return Message(build_headers(delivery, secret, agent, time.time(), body), body)

    def send(self, watch: AlertRow, message: Message) -> PostResult:
        """Send a webhook message of an alert; takes seconds at most."""
        return self._poster.post(watch.webhook, message.headers, message.body)

    def send_test(self, watch: AlertRow) -> PostResult:
        """Send a test webhook message of an alert now, and record the attempt like any other."""
        store = AlertStore(self._folder)
        try:
            delivery = store.add_test(f"{watch.alert_id}-test-{secrets.token_hex(4)}", watch.alert_id, time.time())
            posted = self.send(watch, self.build_message(delivery, watch, store))
            store.record_attempt(delivery.id, posted.status, posted.error, time.time(), None)
        finally:
            store.close()
        return posted

    def find_refusal(self, url: str) -> str:
        """Return why no webhook message may be sent to a URL; empty if it may."""
        return self._poster.check_url(url)
