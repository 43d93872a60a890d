"""Messages to webhooks, made and sent: by the herald, and by whoever tests a watch."""

import secrets
import time
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.alerts.alert_store import Delivery, WatchBook
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import WatchRow
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.net.http_handles import Way
from vedette.adapters.net.webhook import Posted, Poster
from vedette.config import Config
from vedette.fetch.address_guard import is_public
from vedette.model import Headers
from vedette.runtime.alerts.publisher import AT_ONCE
from vedette.runtime.alerts.watch_messages import body_of, headers_of, secret_of
from vedette.runtime.alerts.watch_seeing import seen_by
from vedette.runtime.processes.settings import LiveSettings
from vedette.web.auth.access import Reader, allowed_sites

__all__ = ["Message", "Sender", "poster_for"]


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
