"""Connection overrides: ``--connect-to HOST:PORT=ADDR:PORT``, with ``*`` for any host or port.

The URL, the Host header and the TLS name stay as they are; only the connection goes elsewhere. So a staging server, a
tunnel or the synthetic web can replace a site. The first matching rule applies.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from ada_url import URL, check_url

from vedette.errors import UsageError
from vedette.model import Origin

_SHAPE = re.compile(
    r"(?P<host>\[[^\]]*\]|[^:\s]+):(?P<port>\*|\d{1,5})=(?P<address>\[[^\]]*\]|[^:\s]+):(?P<to>\d{1,5})",
    re.ASCII,
)
_NOT_IN_HOST = frozenset("/?#@\\*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address literal, without brackets, and the port that a connection override leads to."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class ConnectOverride:
    """A connection override: ``host`` is a name, ``*.suffix`` or ``*``; ``port`` None is any."""

    host: str
    port: int | None
    to: Endpoint

    def matches(self, origin: Origin) -> bool:
        """Check whether this connection override applies to an origin."""
        return self.port in {None, origin.port} and self.matches_host(origin.host)

    def matches_host(self, name: str) -> bool:
        """Check whether this connection override applies to some port of a host."""
        if self.host.startswith("*."):
            return name.endswith(self.host[1:])
        return self.host in {"*", name}


def parse_override(text: str) -> ConnectOverride:
    """Parse a connection override as typed for ``--connect-to``.

    >>> parse_override("*.shop.test:80=127.0.0.9:8800")
    ConnectOverride(host='*.shop.test', port=80, to=Endpoint(address='127.0.0.9', port=8800))
    """
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f'--connect-to "{text}": use HOST:PORT=ADDR:PORT, such as example.org:443=127.0.0.1:8443 '
            "(* for any host or port), or @FILE with one per line"
        )
    port = None if match["port"] == "*" else _parse_port(match["port"], text)
    return ConnectOverride(
        _parse_host(match["host"], text),
        port,
        Endpoint(_parse_address(match["address"], text), _parse_port(match["to"], text)),
    )


def find_endpoint(origin: Origin, detours: Iterable[ConnectOverride]) -> Endpoint | None:
    """Return the endpoint of the first connection override that matches an origin, if any."""
    return next((detour.to for detour in detours if detour.matches(origin)), None)


def _parse_host(written: str, text: str) -> str:
    """Parse the host of a connection override as URLs write it, so that its spelling does not matter."""
    if written == "*":
        return written
    star = "*." if written.startswith("*.") else ""
    name = written.removeprefix(star)
    if not name.isprintable() or not _NOT_IN_HOST.isdisjoint(name) or not check_url(f"http://{name}/"):
        raise UsageError(f'--connect-to "{text}": {written} is not a host; use a name, *.name or *')
    return star + URL(f"http://{name}/").hostname


def _parse_port(digits: str, text: str) -> int:
    if not 0 < int(digits) < 65_536:
        raise UsageError(f'--connect-to "{text}": {digits} is not a port; use a number from 1 to 65535')
    return int(digits)


def _parse_address(literal: str, text: str) -> str:
    try:
        return str(ip_address(literal.strip("[]")))
    except ValueError:
        raise UsageError(
            f'--connect-to "{text}": {literal} is not an IP address; use an address such as 127.0.0.1 or [::1]'
        ) from None
