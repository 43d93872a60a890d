"""Hub client process: find WebSub hubs in fetched feeds and request subscriptions from them.

It writes nothing itself. It reports hubs to the coordinator, which decides, and sends the coordinator's requests, one
hub after the other, so that neither the crawl nor a server ever waits for a hub.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

import pycurl
from msgspec import convert

from vedette.adapters.archive.replay import ImportedResponse, decode_body
from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.net.dns import resolve_host
from vedette.adapters.net.http import (
    CaBundle,
    ConnectionSettings,
    Limits,
    Transfer,
    create_handle,
    find_request_error,
    pin_address,
    set_request,
)
from vedette.adapters.net.ipc import ChannelClosed, Request
from vedette.adapters.push.push_store import FeedRow, PushStore
from vedette.discover.formats.feeds import parse_feed
from vedette.discover.push.websub import HubOffer, find_offer
from vedette.discover.urls.normalize import resolve
from vedette.errors import StoreError
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import Endpoint, find_endpoint
from vedette.model import Failure, FetchOutcome, FetchRequest, FetchResponse, Origin, origin_of
from vedette.runtime.commands.setting_commands import load_current
from vedette.runtime.processes.loop import StepLoop, print_error
from vedette.runtime.processes.settings import RuntimeSettings, build_rules
from vedette.runtime.processes.supervisor import ask_coordinator
from vedette.runtime.push.subscriptions import HubRequest

# The same rules as for fetches apply: private addresses need the operator's permission, public ones a contact, the
# socket is compared with the checked address, and time and size are limited. A redirect is followed a few times, as in
# the standard (307 and 308 only), each hop checked like the first.


TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 64 * 2**10
MAX_HOPS = 2
REDIRECTS = frozenset({307, 308})
FORM_TYPE = "application/x-www-form-urlencoded"


class HubClient:
    """HTTP client for WebSub hubs, one request after the other."""

    def __init__(self, settings: RuntimeSettings) -> None:
        crawl = settings.config.crawl
        self._settings = settings
        self._rules = build_rules(settings, [])
        self._proxy = ConnectionSettings(crawl.proxy, crawl.ca_file)
        self._roots = CaBundle(crawl.ca_file)
        connect_s = min(crawl.connect_timeout_s, TIMEOUT_S)
        self._limits = Limits(connect_s, min(crawl.timeout_s, TIMEOUT_S), MAX_ANSWER_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._roots.close()

    def post(self, url: str, form: Sequence[tuple[str, str]]) -> str:
        """Post a form to a WebSub hub; return the error, empty if the hub accepted it."""
        body = urlencode(form).encode()
        for _ in range(MAX_HOPS + 1):
            came = self._post_once(url, body)
            if isinstance(came, str):
                return came
            if not isinstance(came, FetchResponse):
                return f"{came.failure}: {came.detail}"
            if came.status not in REDIRECTS:
                return (
                    "" if 200 <= came.status < 300 else f"the hub responded with {came.status}{_format_complaint(came)}"
                )
            target = resolve(came.header("location") or "", url)
            if target is None:
                return "the hub redirects without a location"
            url = target
        return "the hub redirects too often"

    def _post_once(self, url: str, body: bytes) -> FetchOutcome | str:
        route = self._find_route(origin_of(url))
        if isinstance(route, str):
            return route
        headers = (("user-agent", self._settings.agent), ("content-type", FORM_TYPE))
        ask = FetchRequest(url, "page", headers)
        return find_request_error(ask) or self._transfer(ask, route, body)

    def _find_route(self, origin: Origin) -> Endpoint | str:
        """Find the address to connect to for a WebSub hub, or return why there is none."""
        detour = find_endpoint(origin, self._settings.detours)
        found = resolve_host(origin.host)
        addresses = (detour.address,) if detour else found.addresses
        allowed = [each for each in addresses if self._rules.can_fetch_address(each)]
        if allowed:
            return detour or Endpoint(allowed[0], origin.port)
        if not addresses:
            return str(found.failure or "name does not exist")
        if any(map(is_public, addresses)):
            return "no contact is set, and a public hub must be able to reach you: set crawl.contact"
        return "the hub has a private address, which is not allowed"

    def _transfer(self, ask: FetchRequest, route: Endpoint, body: bytes) -> FetchOutcome:
        clock = self._settings.clock
        transfer = Transfer(ask, route, self._limits, clock.now())
        curl = create_handle(self._limits, self._proxy, self._roots)
        try:
            set_request(curl, ask)
            if not self._proxy.proxy:
                pin_address(curl, route, transfer.open_socket)
            curl.setopt(pycurl.POSTFIELDS, body)
            curl.setopt(pycurl.HEADERFUNCTION, transfer.on_header_line)
            curl.setopt(pycurl.WRITEFUNCTION, _build_writer(transfer.body))
            code, text = _perform(curl)
            return transfer.build_outcome(curl, code, text, clock.now())
        finally:
            curl.close()


def _build_writer(body: bytearray) -> Callable[[bytes], int]:
    """Build the callback that collects a hub's response up to a limit; -1 ends the transfer."""

    def take(data: bytes) -> int:
        if len(body) + len(data) > MAX_ANSWER_BYTES:
            return -1
        body.extend(data)
        return len(data)

    return take


def _perform(curl: pycurl.Curl) -> tuple[int | None, str]:
    try:
        curl.perform()
    except pycurl.error as error:
        return int(error.args[0]), str(error.args[-1])
    return None, ""


def _format_complaint(answer: FetchResponse) -> str:
    """Format the first words of a hub's error response."""
    words = " ".join(answer.body[:500].decode("utf-8", "replace").split())[:100]
    printable = "".join(sign for sign in words if sign.isprintable())
    return f": {printable}" if printable and not printable.startswith("<") else ""


CHECK_EVERY_S = 1.0
FEEDS_AT_ONCE = 50
READ_BYTES = 10 << 20
MAX_SEEN = 200_000


class HubSubscriber:
    """Find hub offers in feeds and send WebSub subscription requests, round after round."""

    def __init__(
        self, settings: RuntimeSettings, ask: Callable[[Path, Request], dict[str, object]] = ask_coordinator
    ) -> None:
        self._settings, self._folder, self._ask = settings, settings.folder, ask
        self._cursor = 0
        self._seen: dict[int, str] = {}
        self._has_warned = False

    def run_once(self) -> None:
        """Run one round: read feeds, report offers to the coordinator, and send its hub requests.

        A coordinator that does not respond is retried in the next round.
        """
        try:
            self._find_hubs()
            self._call_hubs()
        except (OSError, ChannelClosed, StoreError):
            return

    def _find_hubs(self) -> None:
        feeds = self._read_next_feeds()
        offers = [(feed.url, *offer) for feed in feeds if (offer := self._find_offer(feed)) is not None]
        if offers:
            self._ask(self._folder, Request("push", {"what": "offers", "offers": offers}))
            self._warn_no_public_url(len(offers))
        self._seen |= {feed.id: feed.digest for feed in feeds}
        if len(self._seen) > MAX_SEEN:
            self._seen.clear()

    def _read_next_feeds(self) -> list[FeedRow]:
        """Read the next few archived feeds that are new or have changed."""
        with read_state(self._folder) as db:
            book = PushStore(db)
            feeds = book.list_feeds(self._cursor, FEEDS_AT_ONCE) if book.has_tables() else []
        self._cursor = feeds[-1].id if len(feeds) == FEEDS_AT_ONCE else 0
        return [feed for feed in feeds if self._seen.get(feed.id) != feed.digest]

    def _find_offer(self, feed: FeedRow) -> HubOffer | None:
        """Find the hub that an archived feed offers; an unreadable one offers nothing."""
        if feed.place is None:
            return None
        try:
            found = read_answer(self._folder / "warc", feed.place)
        except StoreError:
            return None
        body = decode_body(ImportedResponse(feed.url, 0.0, found.status, found.headers, found.payload, ""), READ_BYTES)
        if isinstance(body, Failure):
            return None
        links = [value for name, value in found.headers if name == "link"]
        return find_offer(feed.url, parse_feed(body, feed.url, feed.content_type), links)

    def _warn_no_public_url(self, hubs: int) -> None:
        if not self._settings.config.serve.public_url and not self._has_warned:
            self._has_warned = True
            feeds = "1 feed has a hub" if hubs == 1 else f"{hubs} feeds have a hub"
            print_error(f"{feeds} that cannot reach this server: set serve.public_url to subscribe")

    def _call_hubs(self) -> None:
        if not self._settings.config.serve.public_url:
            return
        reply = self._ask(self._folder, Request("push", {"what": "errands"}))
        errands = convert(reply.get("errands", []), list[HubRequest])
        if not errands:
            return
        with HubClient(load_current(self._settings)) as caller:
            for errand in errands:
                trouble = caller.post(errand.hub, errand.form)
                told = {"what": "came", "token": errand.token, "trouble": trouble}
                self._ask(self._folder, Request("push", told))


def run_push(settings: RuntimeSettings) -> int:
    """Run the hub client process until SIGTERM."""
    loop = StepLoop(CHECK_EVERY_S)  # hubs are in no hurry, and the coordinator is busy
    loop.run(HubSubscriber(settings).run_once)
    return 0
