"""Asking hubs: a form is posted to an address that was looked up and checked first, and to no other.

The same rules as for fetches hold: private addresses need the operator's leave, public ones a contact, the socket is
compared with what was checked, and time and size are bounded. A redirect is followed a few times, as the standard has
it (307 and 308 only), each hop checked like the first.
"""

from collections.abc import Callable, Sequence
from typing import Self
from urllib.parse import urlencode

import pycurl

from vedette.adapters.net.dns import look_up
from vedette.adapters.net.http_handles import Limits, Roots, Way, aim, fresh_handle, pin, unsendable
from vedette.adapters.net.http_transfer import Transfer
from vedette.discover.urls.normalize import resolve
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import Route, detour_for
from vedette.model import Answer, Ask, Origin, Outcome, origin_of
from vedette.runtime.processes.settings import LiveSettings, rules_for

__all__ = ["HubCaller"]

LONGEST_S = 10.0
LONGEST_ANSWER = 64 * 2**10
MOST_HOPS = 2
REDIRECTS = frozenset({307, 308})
FORM = "application/x-www-form-urlencoded"


class HubCaller:
    """Calls one hub after the other."""

    def __init__(self, settings: LiveSettings) -> None:
        crawl = settings.config.crawl
        self._settings = settings
        self._rules = rules_for(settings, [])
        self._way = Way(crawl.proxy, crawl.ca_file)
        self._roots = Roots(crawl.ca_file)
        connect_s = min(crawl.connect_timeout_s, LONGEST_S)
        self._limits = Limits(connect_s, min(crawl.timeout_s, LONGEST_S), LONGEST_ANSWER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._roots.close()

    def post(self, url: str, form: Sequence[tuple[str, str]]) -> str:
        """Send a form; what went wrong, empty where the hub took it."""
        body = urlencode(form).encode()
        for _ in range(MOST_HOPS + 1):
            came = self._posted(url, body)
            if isinstance(came, str):
                return came
            if not isinstance(came, Answer):
                return f"{came.failure}: {came.detail}"
            if came.status not in REDIRECTS:
                return "" if 200 <= came.status < 300 else f"the hub answered {came.status}{_said(came)}"
            target = resolve(came.header("location") or "", url)
            if target is None:
                return "the hub leads elsewhere, and does not say where"
            url = target
        return "the hub leads from one address to the next"

    def _posted(self, url: str, body: bytes) -> Outcome | str:
        route = self._route(origin_of(url))
        if isinstance(route, str):
            return route
        headers = (("user-agent", self._settings.agent), ("content-type", FORM))
        ask = Ask(url, "page", headers)
        return unsendable(ask) or self._sent(ask, route, body)

    def _route(self, origin: Origin) -> Route | str:
        """Where to connect, or why nowhere."""
        detour = detour_for(origin, self._settings.detours)
        found = look_up(origin.host)
        addresses = (detour.address,) if detour else found.addresses
        allowed = [each for each in addresses if self._rules.may_ask(each)]
        if allowed:
            return detour or Route(allowed[0], origin.port)
        if not addresses:
            return str(found.failure or "name does not exist")
        if any(map(is_public, addresses)):
            return "no contact is set, and a public hub must be able to reach you: set crawl.contact"
        return "the hub lies at a private address, which is not allowed"

    def _sent(self, ask: Ask, route: Route, body: bytes) -> Outcome:
        clock = self._settings.clock
        transfer = Transfer(ask, route, self._limits, clock.now())
        curl = fresh_handle(self._limits, self._way, self._roots)
        try:
            aim(curl, ask)
            if not self._way.proxy:
                pin(curl, route, transfer.open_socket)
            curl.setopt(pycurl.POSTFIELDS, body)
            curl.setopt(pycurl.HEADERFUNCTION, transfer.take_head)
            curl.setopt(pycurl.WRITEFUNCTION, _bounded(transfer.body))
            code, text = _performed(curl)
            return transfer.outcome(curl, code, text, clock.now())
        finally:
            curl.close()


def _bounded(body: bytearray) -> Callable[[bytes], int]:
    """Takes what comes, up to the limit; -1 ends the transfer."""

    def take(data: bytes) -> int:
        if len(body) + len(data) > LONGEST_ANSWER:
            return -1
        body.extend(data)
        return len(data)

    return take


def _performed(curl: pycurl.Curl) -> tuple[int | None, str]:
    try:
        curl.perform()
    except pycurl.error as error:
        return int(error.args[0]), str(error.args[-1])
    return None, ""


def _said(answer: Answer) -> str:
    """The first words of a hub's complaint."""
    words = " ".join(answer.body[:500].decode("utf-8", "replace").split())[:100]
    printable = "".join(sign for sign in words if sign.isprintable())
    return f": {printable}" if printable and not printable.startswith("<") else ""
