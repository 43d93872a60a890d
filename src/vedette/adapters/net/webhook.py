"""Webhook client: one POST to an address that was resolved and checked, and is checked again on connecting.

Redirects are not followed, and only the status of the response counts. Every outcome is a value, never an exception.
"""

from collections.abc import Callable
from io import BytesIO
from typing import NamedTuple

import pycurl

from vedette.adapters.net.dns import resolve_host
from vedette.adapters.net.http import (
    DIRECT,
    CaBundle,
    ConnectionSettings,
    Limits,
    Transfer,
    create_handle,
    find_request_error,
    pin_address,
    set_request,
)
from vedette.fetch.connect_to import Endpoint
from vedette.model import FetchRequest, Headers, NoResponse, origin_of

LIMITS = Limits(connect_timeout_s=5.0, timeout_s=15.0, body_bytes=64 << 10, head_bytes=16 << 10, slow_s=10)


class PostResult(NamedTuple):
    """Result of a webhook POST: the status of the response, or 0 and why there was none."""

    status: int
    error: str = ""

    @property
    def is_good(self) -> bool:
        """Check whether the receiver accepted the webhook message."""
        return 200 <= self.status < 300


class WebhookClient:
    """Sends webhook messages, from several threads if needed; ``may_ask`` says which addresses are allowed."""

    def __init__(
        self, may_ask: Callable[[str], bool], way: ConnectionSettings = DIRECT, limits: Limits = LIMITS
    ) -> None:
        self._may_ask = may_ask
        self._way, self._limits = way, limits
        self._roots = CaBundle(way.ca_file)

    def check_url(self, url: str) -> str:
        """Return why no webhook message may be sent to a URL, as its name resolves today; empty if it may."""
        route = self._resolve_route(url)
        return route if isinstance(route, str) else ""

    def post(self, url: str, headers: Headers, body: bytes) -> PostResult:
        """Send the body of a webhook message by POST; it takes as long as the limits allow."""
        ask = FetchRequest(url, "page", headers)
        route = self._resolve_route(url)
        if isinstance(route, str) or find_request_error(ask):
            return PostResult(0, route if isinstance(route, str) else find_request_error(ask))
        transfer = Transfer(ask, route, self._limits, 0.0)
        curl = create_handle(self._limits, self._way, self._roots)
        try:
            set_request(curl, ask)
            if not self._way.proxy:
                pin_address(curl, route, transfer.open_socket)
            return self._send(curl, transfer, body)
        finally:
            curl.close()

    def close(self) -> None:
        """Close the webhook client."""
        self._roots.close()

    def _send(self, curl: pycurl.Curl, transfer: Transfer, body: bytes) -> PostResult:
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.POSTFIELDSIZE_LARGE, len(body))
        curl.setopt(pycurl.READFUNCTION, BytesIO(body).read)
        curl.setopt(pycurl.HEADERFUNCTION, transfer.on_header_line)
        curl.setopt(pycurl.WRITEFUNCTION, lambda _data: None)  # the response body is discarded
        curl.setopt(pycurl.MAXFILESIZE_LARGE, self._limits.body_bytes)
        try:
            curl.perform()
        except pycurl.error as error:
            code, text = (*error.args, "")[:2]
            failed = transfer.build_outcome(curl, code, text, 0.0)
            assert isinstance(failed, NoResponse), "libcurl gave up"
            return PostResult(0, f"{failed.failure}: {failed.detail}"[:300])
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        return PostResult(status, "" if 200 <= status < 300 else f"it returned status {status}")

    def _resolve_route(self, url: str) -> Endpoint | str:
        """Resolve the address of a webhook message, or return why it is not allowed."""
        origin = origin_of(url)
        found = resolve_host(origin.host)
        if not found.addresses:
            return f"{origin.host}: {found.failure or 'it has no address'}"
        allowed = [address for address in found.addresses if self._may_ask(address)]
        if not allowed:
            at = "" if found.addresses[0] == origin.host.strip("[]") else f", at {found.addresses[0]},"
            return f"{origin.host}{at} is a private address, which serve.webhook_networks does not allow"
        return Endpoint(allowed[0], origin.port)
