"""Who asks, as far as it is written down: a mark that is good for one day, and whether it looks like a person.

The mark tells searches of one person from those of another without saying who they are. It is made of the address and
the browser, keyed with a salt that is thrown away at the end of the day: after that nobody, the operator included, can
find out whose it was. Whoever is known by name gets a mark of the name instead.
"""

from hashlib import blake2b
from typing import NamedTuple

from starlette.requests import Request

from vedette.learn.bot_filter import of_request
from vedette.web.auth.access import Reader
from vedette.web.auth.rate_limits import network_of

__all__ = ["Visit", "mark_of", "visit_of"]

MARK_BYTES = 8


class Visit(NamedTuple):
    """What a request says of its sender. Only the mark that is made of it, and the doubt, are ever kept.

    ``name`` is how a known reader is known, else empty; ``doubt`` is why this may be no person.
    """

    address: str = ""
    agent: str = ""
    name: str = ""
    doubt: str = ""


def visit_of(request: Request) -> Visit:
    """The sender of a request that came through the gate."""
    reader: Reader = getattr(request.state, "reader", Reader())
    agent = request.headers.get("user-agent", "")
    name = f"{reader.known_by}:{reader.name}" if reader.known_by else ""
    doubt = "asked for headers only" if request.method == "HEAD" else of_request(agent, request.headers)
    return Visit(getattr(request.state, "address", ""), agent, name, doubt)


def mark_of(visit: Visit, salt: bytes) -> str:
    """Stands for whoever visits, on the day of the salt.

    >>> mark_of(Visit("192.0.2.1", "Browser"), b"monday")
    '5e0b9204944aa4fb'
    >>> mark_of(Visit("192.0.2.1", "Browser"), b"tuesday") == mark_of(Visit("192.0.2.1", "Browser"), b"monday")
    False
    """
    parts = ("name", visit.name) if visit.name else ("network", network_of(visit.address), visit.agent)
    told = "\0".join(parts).encode("utf-8", "replace")
    return blake2b(told, key=salt, digest_size=MARK_BYTES).hexdigest()
