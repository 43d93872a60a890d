"""Sending a message to a webhook: one POST to an address that was looked up, checked and is checked again on opening.

Redirects are not followed, and of the answer only the status counts. Whatever happens is a value, never an exception.
"""

from collections.abc import Callable
from io import BytesIO
from typing import NamedTuple

import pycurl

from vedette.adapters.net.dns import look_up
from vedette.adapters.net.http import Limits, Roots, Transfer, Way, aim, fresh_handle, pin, unsendable
from vedette.fetch.connect_to import Route
from vedette.model import Ask, Headers, NoAnswer, origin_of

__all__ = ["Posted", "Poster"]

LIMITS = Limits(connect_timeout_s=5.0, timeout_s=15.0, body_bytes=64 << 10, head_bytes=16 << 10, slow_s=10)


class Posted(NamedTuple):
    """What a POST came to: the status of the answer, 0 where there was none, and then why."""

    status: int
    error: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the receiver took it."""
        return 200 <= self.status < 300


class Poster:
    """Sends messages; it may be used by several threads. ``may_ask`` says which addresses may be asked at all."""

    def __init__(self, may_ask: Callable[[str], bool], way: Way = Way(), limits: Limits = LIMITS) -> None:  # noqa: B008 - a frozen value
        self._may_ask = may_ask
        self._way, self._limits = way, limits
        self._roots = Roots(way.ca_file)

    def refusal(self, url: str) -> str:
        """Why nothing may be sent there, as far as names say today; empty where it may."""
        route = self._route(url)
        return route if isinstance(route, str) else ""

    def post(self, url: str, headers: Headers, body: bytes) -> Posted:
        """Send a body; it takes as long as the limits let it."""
        ask = Ask(url, "page", headers)
        route = self._route(url)
        if isinstance(route, str) or unsendable(ask):
            return Posted(0, route if isinstance(route, str) else unsendable(ask))
        transfer = Transfer(ask, route, self._limits, 0.0)
        curl = fresh_handle(self._limits, self._way, self._roots)
        try:
            aim(curl, ask)
            if not self._way.proxy:
                pin(curl, route, transfer.open_socket)
            return self._sent(curl, transfer, body)
        finally:
            curl.close()

    def close(self) -> None:
        """Let go."""
        self._roots.close()

    def _sent(self, curl: pycurl.Curl, transfer: Transfer, body: bytes) -> Posted:
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.POSTFIELDSIZE_LARGE, len(body))
        curl.setopt(pycurl.READFUNCTION, BytesIO(body).read)
        curl.setopt(pycurl.HEADERFUNCTION, transfer.take_head)
        curl.setopt(pycurl.WRITEFUNCTION, lambda _data: None)  # what a receiver says is not kept
        curl.setopt(pycurl.MAXFILESIZE_LARGE, self._limits.body_bytes)
        try:
            curl.perform()
        except pycurl.error as error:
            code, text = (*error.args, "")[:2]
            failed = transfer.outcome(curl, code, text, 0.0)
            assert isinstance(failed, NoAnswer), "libcurl gave up"
            return Posted(0, f"{failed.failure}: {failed.detail}"[:300])
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        return Posted(status, "" if 200 <= status < 300 else f"it answered with status {status}")

    def _route(self, url: str) -> Route | str:
        """Where the message goes, or why it does not."""
        origin = origin_of(url)
        found = look_up(origin.host)
        if not found.addresses:
            return f"{origin.host}: {found.failure or 'it has no address'}"
        allowed = [address for address in found.addresses if self._may_ask(address)]
        if not allowed:
            at = "" if found.addresses[0] == origin.host.strip("[]") else f", at {found.addresses[0]},"
            return f"{origin.host}{at} is a private address, which serve.webhook_networks does not allow"
        return Route(allowed[0], origin.port)
