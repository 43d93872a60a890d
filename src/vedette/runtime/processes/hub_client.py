"""The process that calls hubs: it looks through the feeds that were fetched for hubs, and asks those to push.

It writes nothing itself. What it found goes to the keeper, which decides; what the keeper wants asked, it asks, one hub
after the other, so that neither the crawl nor a server ever waits for a hub.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, cast
from urllib.parse import urlencode

import pycurl

from vedette.adapters.archive.replay import Old, body_of
from vedette.adapters.archive.warc_reader import read_place
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.net.dns import look_up
from vedette.adapters.net.http import Limits, Roots, Transfer, Way, aim, fresh_handle, pin, unsendable
from vedette.adapters.net.ipc import Gone
from vedette.adapters.push.push_store import FeedRow, PushBook
from vedette.discover.formats.feeds import read_feed
from vedette.discover.push.websub import Offer, offered
from vedette.discover.urls.normalize import resolve
from vedette.errors import StoreError
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import Route, detour_for
from vedette.model import Answer, Ask, Failure, Origin, Outcome, origin_of
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.settings import LiveSettings, rules_for
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.runtime.push.subscriptions import HubErrand

__all__ = ["Caller", "HubCaller", "run_push"]

# The same rules as for fetches hold: private addresses need the operator's leave, public ones a contact, the socket is
# compared with what was checked, and time and size are bounded. A redirect is followed a few times, as the standard has
# it (307 and 308 only), each hop checked like the first.


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


EVERY_S = 1.0
FEEDS_AT_ONCE = 50
READ_BYTES = 10 << 20
MOST_SEEN = 200_000
NICENESS = 5


class Caller:
    """One round after the other; each tells the keeper of some feeds, and asks some hubs."""

    def __init__(self, settings: LiveSettings, ask: Callable[[Path, Call], dict[str, object]] = ask_keeper) -> None:
        self._settings, self._folder, self._ask = settings, settings.folder, ask
        self._cursor = 0
        self._seen: dict[int, str] = {}
        self._is_told = False

    def round(self) -> None:
        """Look, tell, ask. A keeper that is away is told the next time."""
        try:
            self._look_at_feeds()
            self._call_hubs()
        except (OSError, Gone, StoreError):
            return

    def _look_at_feeds(self) -> None:
        feeds = self._next_feeds()
        offers = [(feed.url, *offer) for feed in feeds if (offer := self._offer(feed)) is not None]
        if offers:
            self._ask(self._folder, Call("push", {"what": "offers", "offers": offers}))
            self._say_what_is_missing(len(offers))
        self._seen |= {feed.id: feed.digest for feed in feeds}
        if len(self._seen) > MOST_SEEN:
            self._seen.clear()

    def _next_feeds(self) -> list[FeedRow]:
        """Those of the next few that are new, or say something else than before."""
        with read_state(self._folder) as db:
            book = PushBook(db)
            feeds = book.feeds_after(self._cursor, FEEDS_AT_ONCE) if book.is_there() else []
        self._cursor = feeds[-1].id if len(feeds) == FEEDS_AT_ONCE else 0
        return [feed for feed in feeds if self._seen.get(feed.id) != feed.digest]

    def _offer(self, feed: FeedRow) -> Offer | None:
        """What the archived feed offers; one that cannot be read offers nothing."""
        if feed.place is None:
            return None
        try:
            found = read_place(self._folder / "warc", feed.place)
        except StoreError:
            return None
        body = body_of(Old(feed.url, 0.0, found.status, found.headers, found.payload, ""), READ_BYTES)
        if isinstance(body, Failure):
            return None
        links = [value for name, value in found.headers if name == "link"]
        return offered(feed.url, read_feed(body, feed.url, feed.content_type), links)

    def _say_what_is_missing(self, hubs: int) -> None:
        if not self._settings.config.serve.public_url and not self._is_told:
            self._is_told = True
            feeds = "1 feed names a hub" if hubs == 1 else f"{hubs} feeds name a hub"
            sys.stderr.write(f"vedette: {feeds}, which cannot reach this server: set serve.public_url to subscribe\n")
            sys.stderr.flush()

    def _call_hubs(self) -> None:
        if not self._settings.config.serve.public_url:
            return
        reply = self._ask(self._folder, Call("push", {"what": "errands"}))
        errands = cast("list[HubErrand]", reply.get("errands", []))
        if not errands:
            return
        with HubCaller(self._settings) as caller:
            for errand in errands:
                trouble = caller.post(errand.hub, errand.form)
                told = {"what": "came", "token": errand.token, "trouble": trouble}
                self._ask(self._folder, Call("push", told))


def run_push(settings: LiveSettings) -> int:
    """The life of the process; it ends when it is told to."""
    os.nice(NICENESS)
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    _until(lambda: bool(ending), Caller(settings))
    return 0


def _until(is_over: Callable[[], bool], caller: Caller) -> None:
    while not is_over():
        caller.round()
        time.sleep(EVERY_S)  # hubs are in no hurry, and the keeper has other things to do
