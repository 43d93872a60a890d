"""What a webhook is sent: a message as JSON, under an id that stays the same at every try, and signed.

The signature is HMAC-SHA256 over the time, a full stop and the body, so that neither can be another's. The secret is
made of the folder's own and the mark of the watch: it is kept nowhere, and a watch made anew has another.
"""

import hmac
import json
from collections.abc import Sequence

from vedette.adapters.alerts.alert_store import Delivery, Item
from vedette.adapters.crawl_store.new_page_store import WatchRow
from vedette.model import Headers
from vedette.web.public.new_page_ports import item_as_json

__all__ = ["body_of", "headers_of", "secret_of", "signature_of"]

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
