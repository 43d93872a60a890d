"""Messages to webhooks, made and sent: by the herald, and by whoever tests a watch."""

import hmac
import json
import secrets
import time
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.alerts.alert_store import Delivery, Item, WatchBook
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import WatchRow
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.net.http import Way
from vedette.adapters.net.webhook import Posted, Poster
from vedette.config import Config
from vedette.fetch.address_guard import is_public
from vedette.model import Headers
from vedette.runtime.alerts.publisher import AT_ONCE
from vedette.runtime.alerts.visibility import seen_by
from vedette.runtime.processes.settings import LiveSettings
from vedette.web.auth.access import Reader, allowed_sites
from vedette.web.public.new_page_ports import item_as_json

__all__ = ["Message", "Sender", "body_of", "headers_of", "poster_for", "secret_of", "signature_of"]

# The signature is HMAC-SHA256 over the time, a full stop and the body, so that neither can be another's. The secret is
# made of the folder's own and the mark of the watch: it is kept nowhere, and a watch made anew has another.


PREFIX = "whsec_"


def secret_of(folder_secret: bytes, watch: WatchRow) -> str:
    """By what a receiver knows that a message is from here."""
    return PREFIX + hmac.digest(folder_secret, f"webhook {watch.mark}".encode(), "sha256").hex()


def signature_of(secret: str, wall_s: int, body: bytes) -> str:
    """The value of the header.

    >>> signature_of("whsec_00", 1700000000, b"{}")[:24]
    't=1700000000,v1=c791ae52'
    """
    digest = hmac.digest(secret.encode(), b"%d." % wall_s + body, "sha256")
    return f"t={wall_s},v1={digest.hex()}"


def body_of(delivery: Delivery, watch: WatchRow, items: Sequence[Item]) -> bytes:
    """The message; a test has no items."""
    told = {
        "id": delivery.id,
        "watch": watch.name,
        "test": delivery.last == 0,
        "items": [item_as_json(item) for item in items],
    }
    return json.dumps(told).encode()


def headers_of(delivery: Delivery, secret: str, agent: str, wall_s: float, body: bytes) -> Headers:
    """What is sent with a body."""
    return (
        ("content-type", "application/json"),
        ("user-agent", agent),
        ("x-vedette-delivery", delivery.id),
        ("x-vedette-signature", signature_of(secret, int(wall_s), body)),
    )


class Message(NamedTuple):
    """What is sent: headers and body."""

    headers: Headers
    body: bytes


def poster_for(config: Config, *, demo: bool = False) -> Poster:
    """Sends to public addresses; to private ones where the operator allows it, or everything is on this machine."""
    networks = tuple(ip_network(each) for each in config.serve.webhook_networks)

    def may_ask(address: str) -> bool:
        return demo or is_public(address) or any(ip_address(address) in network for network in networks)

    return Poster(may_ask, Way(config.crawl.proxy, config.crawl.ca_file))


class Sender:
    """Makes messages out of the book and the state, and sends them."""

    def __init__(self, settings: LiveSettings) -> None:
        self._folder: Path = settings.folder
        self._agent = settings.agent
        self._poster = poster_for(settings.config, demo=settings.demo)

    def message(self, delivery: Delivery, watch: WatchRow, book: WatchBook) -> Message:
        """What is said now: what the reader may not see any more is left out."""
        with read_state(self._folder) as db:
            state = StateBook(db)
            secret = secret_of(state.secret(), watch)
            reader = Reader(watch.reader, ("search", "private"), known_by="key" if watch.reader else "")
            allowed = allowed_sites(reader, [row.site for row in state.sites()])
        items = seen_by(self._folder, book.matched(delivery, AT_ONCE), allowed) if delivery.last else []
        body = body_of(delivery, watch, items)
        return Message(headers_of(delivery, secret, self._agent, time.time(), body), body)

    def send(self, watch: WatchRow, message: Message) -> Posted:
        """Send it; takes seconds at most."""
        return self._poster.post(watch.webhook, message.headers, message.body)

    def test(self, watch: WatchRow) -> Posted:
        """Send a message without items now; what came of it is noted as of any other."""
        book = WatchBook(self._folder)
        try:
            delivery = book.add_test(f"{watch.mark}-test-{secrets.token_hex(4)}", watch.mark, time.time())
            posted = self.send(watch, self.message(delivery, watch, book))
            book.tried(delivery.id, posted.status, posted.error, time.time(), None)
        finally:
            book.close()
        return posted

    def refusal(self, url: str) -> str:
        """Why nothing may be sent to a URL; empty where it may."""
        return self._poster.refusal(url)
