"""The observer: a small process near the sites that sends home's requests politely, and only sends changes back.

It does not import the index, the parser or numpy, and needs less than 60 MB. Everything that must survive ``kill -9``
is in its folder: errands, unreported observations and last copies within a limit (``spool.db``), and the requests of
the day (``requests.db``). An errand is marked before its request is sent.

While home cannot be reached, the observer continues with its errands, and with home's plan, until its lease ends or its
spool is full. Then it waits.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from pathlib import Path
from urllib.parse import urlsplit

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.request_budget import RequestBudget
from vedette.adapters.net.dns import Resolver
from vedette.adapters.net.http import ConnectionSettings, HttpClient, Limits
from vedette.adapters.observers.document_root import DocumentRoot
from vedette.adapters.observers.home_client import HomeClient, HomeReply
from vedette.adapters.observers.spool import Spool
from vedette.adapters.observers.wire import decode, encode, is_signed, sign
from vedette.engine.observers.messages import (
    BATCH_BYTES,
    MAX_OBSERVATIONS,
    Errand,
    HostOrder,
    Orders,
    Report,
    RequestLimits,
)
from vedette.engine.observers.observer import OFFLINE_AFTER_S, Observer, build_observation
from vedette.errors import UsageError
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import ConnectOverride, Endpoint, find_endpoint
from vedette.fetch.observers.delta import pack_body
from vedette.fetch.request import build_user_agent
from vedette.model import Failure, FetchOutcome, FetchRequest, FetchResponse, NoResponse, origin_of
from vedette.runtime.observers.keys import ObserverKey
from vedette.runtime.processes.loop import print_error
from vedette.version import __version__

MAX_SLEEP_S = 0.1
# With observations to report, an exchange follows after a moment, otherwise after a while.
REPORT_WALL_S, POLL_WALL_S = 0.5, 2.0
RETRY_WALL_S, MAX_RETRY_WALL_S = 2.0, 60.0
REFUSED = frozenset({400, 403, 404, 409, 413, 501})
MAX_HELD = 2_000
WATCH_WALL_S = 5.0
MAX_CHANGED = 1_000
ADDRESS_TTL_S = 1_800.0
NAME_RETRY_S = 600.0
CAUTIOUS_REST_S = 60.0
# Recent requests in flight at once, as in a fetcher.
CONCURRENCY = 32


@dataclass(frozen=True, slots=True)
class ObserverOptions:
    """How an observer runs: the address of home, its key and folder, and the limits of its machine."""

    home: str
    key: ObserverKey
    folder: Path
    clock: Clock
    spool_bytes: int
    copy_bytes: int
    allow_private: bool = False
    detours: tuple[ConnectOverride, ...] = ()
    ca_file: str = ""
    roots: tuple[DocumentRoot, ...] = ()


class ObserverProcess:
    """The observer process: errands from home, requests to sites, and the exchange of reports for orders."""

    def __init__(self, options: ObserverOptions) -> None:
        self.options, self._clock = options, options.clock
        options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._spool = Spool(options.folder)
        self._home = HomeClient(options.home, options.key.name, build_user_agent(__version__, ""), options.ca_file)
        self._resolver = Resolver(threads=4)
        self._observer: Observer | None = None
        self._client: HttpClient | None = None
        self._budget: RequestBudget | None = None
        self._resolved_s: dict[str, float] = {}
        self._asked: set[str] = set()
        self._errands: dict[int, Errand] = {}
        self._numbers: set[int] = set()
        self._sent: Report | None = None
        self._sent_boot_s = self._heard_s = self._lease_boot_s = 0.0
        self._next_wall_s, self._retry_s = 0.0, RETRY_WALL_S
        self._last: tuple[float, int] = (0.0, 0)
        self._trouble = ""
        self._changed: dict[str, None] = {}
        self._watched_s = 0.0
        self.is_stopping = False
        self._load_spool()

    # the loop

    def run(self) -> None:
        """Run the observer until it is stopped."""
        while not self.is_stopping:
            self.step()

    def step(self) -> None:
        """Do what is due, then wait a moment for responses."""
        reply = self._home.take()
        if reply is not None:
            self._on_reply(reply)
        self._watch_roots()
        if not self._home.is_busy and self._clock.wall_now() >= self._next_wall_s:
            self._send_report()
        if self._observer is None or self._client is None:
            time.sleep(MAX_SLEEP_S)  # nothing to do before home was heard of
            return
        self._resolve_hosts(self._observer)
        self._follow_plans(self._observer)
        self._send_requests(self._observer, self._client)
        for outcome in self._client.wait(self._get_sleep_s(self._observer)):
            self._on_outcome(self._observer, outcome)

    def close(self) -> None:
        """Close the spool and all sockets."""
        if self._client is not None:
            self._client.close()
        if self._budget is not None:
            self._budget.close()
        self._resolver.close()
        self._spool.close()

    def _watch_roots(self) -> None:
        """Look for changed files at the source, so that home fetches them soon; forget those that home has received."""
        wall_s = self._clock.wall_now()
        if self.options.roots and wall_s - self._watched_s >= WATCH_WALL_S:
            self._watched_s = wall_s
            for root in self.options.roots:
                self._changed.update(dict.fromkeys(root.find_changed()))

    # requests to sites

    def _follow_plans(self, observer: Observer) -> None:
        now_s, offline_s = self._clock.now(), OFFLINE_AFTER_S * self._clock.speed
        due = observer.take_due_plans(now_s, self._heard_s, offline_s)
        if due:
            self._spool.add_errands([(held.errand, held.until_s) for held in due])
        for held in due:
            self._errands[held.errand.number] = held.errand
            observer.add_errand(held.errand, held.until_s)

    def _send_requests(self, observer: Observer, client: HttpClient) -> None:
        is_full = self._spool.unreported_bytes >= self.options.spool_bytes
        if is_full or time.clock_gettime(time.CLOCK_BOOTTIME) >= self._lease_boot_s:
            return
        while client.in_flight < CONCURRENCY and (errand := observer.take_errand(self._clock.now())) is not None:
            route = self._find_route(observer, errand)
            now_s = self._clock.now()
            exceeded = self._budget.spend(errand.host, route.address, now_s) if self._budget is not None else None
            if exceeded is not None:
                observer.take_back(errand.host, exceeded.find_retry_s(now_s), str(exceeded), now_s)
                continue
            self._spool.mark_sent(errand.number)
            client.submit(FetchRequest(errand.url, errand.purpose, errand.headers, errand.secret_headers), route)

    def _find_route(self, observer: Observer, errand: Errand) -> Endpoint:
        origin = origin_of(errand.url)
        address = observer.hosts[errand.host].address
        assert address is not None
        return find_endpoint(origin, self.options.detours) or Endpoint(address, origin.port)

    def _on_outcome(self, observer: Observer, outcome: FetchOutcome) -> None:
        """Store the outcome of a request; the response is compared with the copy that home has."""
        host = origin_of(outcome.url).host
        errand = observer.on_outcome(host, outcome)
        packed = body = None
        if isinstance(outcome, FetchResponse):
            body = outcome.body if outcome.status == 200 and errand.purpose != "robots" else None
            copy = self._spool.find_copy(errand.url, errand.digest) if errand.has_copy else None
            packed = pack_body(outcome.body, copy, errand.digest if body is not None else "")
        self._spool.save_observation(
            build_observation(errand, outcome, packed), body, self._clock.now(), self.options.copy_bytes
        )
        del self._errands[errand.number]
        self._numbers.add(errand.number)
        if observer.hosts[host].failure_streak.count:
            self._spool.set_value(f"ready {host}", repr(observer.hosts[host].ready_s))

    def _get_sleep_s(self, observer: Observer) -> float:
        ready_s = observer.next_s()
        if ready_s is None:
            return MAX_SLEEP_S
        return min(max(self._clock.to_wall_s(ready_s - self._clock.now()), 0.005), MAX_SLEEP_S)

    # addresses

    def _resolve_hosts(self, observer: Observer) -> None:
        now_s = self._clock.now()
        for lookup in self._resolver.take_answers():
            self._asked.discard(lookup.host)
            self._set_address(observer, lookup.host, lookup.addresses, str(lookup.failure or ""))
        for name, at_s in list(self._resolved_s.items()):
            if now_s - at_s > ADDRESS_TTL_S * self._clock.speed and name in observer.hosts:
                del self._resolved_s[name]
                observer.forget_address(name)
        for name in observer.list_unresolved(now_s):
            if name in self._asked:
                continue
            detour = next((rule.to for rule in self.options.detours if rule.matches_host(name)), None)
            if detour is not None:
                self._set_address(observer, name, (detour.address,), "")
            else:
                self._asked.add(name)
                self._resolver.submit(name)

    def _set_address(self, observer: Observer, name: str, addresses: Sequence[str], failure: str) -> None:
        """Set the address of a host, if it may be requested from here."""
        if name not in observer.hosts:
            return
        now_s = self._clock.now()
        allowed = [address for address in addresses if self._may_fetch(observer, address)]
        if allowed:
            observer.set_address(name, allowed[0])
            self._resolved_s[name] = now_s
            return
        why = failure or f"the observer may not fetch from its address {', '.join(addresses[:3])}"
        observer.refuse_host(name, now_s + NAME_RETRY_S, why, now_s)

    def _may_fetch(self, observer: Observer, address: str) -> bool:
        return observer.limits.allow_public if is_public(address) else self.options.allow_private

    # home

    def _send_report(self) -> None:
        now_s, observer = self._clock.now(), self._observer
        found = self._spool.load_observations(MAX_OBSERVATIONS, BATCH_BYTES)
        observations = tuple(one._replace(at_s=now_s - one.at_s) for one in found)
        sequence = max(int(self._spool.get_value("sequence") or 0) + 1, int(time.time() * 1000))
        self._spool.set_value("sequence", str(sequence))
        room = 0 if self._spool.unreported_bytes >= self.options.spool_bytes else MAX_HELD - len(self._errands)
        self._sent = Report(
            sequence,
            max(room, 0),
            _is_confidential(self.options.home),
            observations,
            tuple(errand.number for errand in observer.returned) if observer else (),
            tuple(observer.paces.values()) if observer else (),
            tuple(self._errands),
            tuple(islice(self._changed, MAX_CHANGED)),
            *self._last,
        )
        self._sent_boot_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        data = encode(self._sent)
        key = self.options.key
        self._home.submit(data, sign(key.secret, "report", key.name, data))

    def _on_reply(self, reply: HomeReply) -> None:
        report, self._sent = self._sent, None
        assert report is not None
        key = self.options.key
        is_good = reply.status == 200 and is_signed(key.secret, "orders", key.name, reply.body, reply.signature)
        if not is_good:
            what = "refuses reports" if reply.status in REFUSED else "does not answer"
            words = reply.words if reply.status != 200 else "its response is not signed with this observer's key"
            self._on_silence(words or f"status {reply.status}", what)
            return
        orders = decode(Orders, reply.body)
        if orders.sequence != report.sequence:
            self._on_silence("its response belongs to an earlier report")
            return
        if self._trouble:
            print_error("home is responding again")
        self._trouble, self._retry_s = "", RETRY_WALL_S
        self._heard_s = self._clock.now()
        self._last = reply.took_s, reply.total_bytes
        self._apply_orders(orders, report)
        pause_s = REPORT_WALL_S if self._numbers or orders.errands else POLL_WALL_S
        self._next_wall_s = self._clock.wall_now() + pause_s

    def _on_silence(self, why: str, what: str = "does not answer") -> None:
        """Try again later; in the meantime, the observer continues."""
        if why != self._trouble:
            print_error(f"home {what} ({why.rstrip('.')}); going on without it")
        self._trouble = why
        self._next_wall_s = self._clock.wall_now() + self._retry_s
        self._retry_s = min(2 * self._retry_s, MAX_RETRY_WALL_S)

    def _apply_orders(self, orders: Orders, report: Report) -> None:
        now_s = self._clock.now()
        observer = self._start(orders.limits)
        self._spool.delete_observations(orders.taken)
        self._numbers.difference_update(orders.taken)
        returned = set(report.returned)
        observer.returned = [errand for errand in observer.returned if errand.number not in returned]
        self._spool.delete_errands(report.returned)
        for number in returned:
            self._errands.pop(number, None)
        for pace in report.paces:
            if observer.paces.get(pace.name) == pace:
                del observer.paces[pace.name]
        for url in report.changed:
            self._changed.pop(url, None)
        for host in orders.hosts:
            observer.add_host(host, now_s)
        if orders.hosts:
            self._save_hosts(observer)
        new = [one for one in orders.errands if one.number not in self._errands and one.number not in self._numbers]
        self._spool.add_errands([(errand, now_s + errand.valid_s) for errand in new])
        for errand in new:
            self._errands[errand.number] = errand
            observer.plans.pop(errand.number, None)
            observer.add_errand(errand, now_s + errand.valid_s)
        observer.recall(orders.recalled)
        if orders.recalled:
            self._spool.delete_plans(orders.recalled)
        if orders.plans is not None:
            observer.set_plans(orders.plans, now_s)
            self._spool.save_plans(tuple(held.errand for held in observer.plans.values()), now_s)
        self._set_lease(observer, self._sent_boot_s + orders.lease_s / self._clock.speed)

    def _set_lease(self, observer: Observer, until_boot_s: float) -> None:
        """Set until when hosts may be requested: on the clock that also runs while the machine sleeps."""
        self._lease_boot_s = until_boot_s
        observer.lease_until_s = inf
        self._spool.set_value("lease", f"{_read_boot_id()} {until_boot_s!r}")

    def _start(self, limits: RequestLimits) -> Observer:
        """Start requesting with the limits in home's orders, or apply changed limits."""
        if self._observer is not None and self._observer.limits == limits:
            return self._observer
        self._spool.set_value("limits", encode(limits).hex())
        if self._observer is None:
            self._observer = Observer(limits)
        self._observer.limits = limits
        if self._client is None or not self._client.in_flight:
            self._open_client(limits)
        return self._observer

    def _open_client(self, limits: RequestLimits) -> None:
        if self._client is not None:
            self._client.close()
        if self._budget is not None:
            self._budget.close()
        sizes = Limits(limits.connect_timeout_s, limits.timeout_s, limits.body_bytes)
        self._client = HttpClient(self._clock, sizes, ConnectionSettings(ca_file=self.options.ca_file))
        self._budget = RequestBudget(self.options.folder, limits.daily_limit)

    # the spool

    def _save_hosts(self, observer: Observer) -> None:
        orders = tuple(host.order for host in observer.hosts.values())
        self._spool.set_value("hosts", encode(orders).hex())

    def _load_spool(self) -> None:
        """Continue where the last run ended, even if it was killed.

        Hosts pause first, because they may just have been requested.
        """
        limits = self._spool.get_value("limits")
        self._numbers = {one.number for one in self._spool.load_observations(1 << 30, 1 << 62)}
        if not limits:
            return
        now_s = self._clock.now()
        observer = self._start(decode(RequestLimits, bytes.fromhex(limits)))
        self._open_client(observer.limits)
        errands = self._spool.load_errands()
        interrupted = {errand.host for errand, _, is_sent in errands if is_sent}
        hosts = self._spool.get_value("hosts")
        for order in decode(tuple[HostOrder, ...], bytes.fromhex(hosts)) if hosts else ():
            rest_s = max(
                order.delay_s, order.crawl_delay_s or 0.0, CAUTIOUS_REST_S if order.name in interrupted else 0.0
            )
            ready_s = float(self._spool.get_value(f"ready {order.name}") or 0.0)
            observer.add_host(order._replace(wait_s=max(rest_s, min(ready_s - now_s, 86_400.0))), now_s)
        for errand, until_s, is_sent in errands:
            self._errands[errand.number] = errand
            if is_sent:
                self._report_interrupted(errand, now_s)
            else:
                observer.add_errand(errand, until_s)
        done = self._errands.keys() | self._numbers
        observer.set_plans([one for one in self._spool.load_plans(now_s) if one.number not in done], now_s)
        self._heard_s = now_s  # home has a moment to answer first
        boot, _, until_boot_s = self._spool.get_value("lease").partition(" ")
        if boot == _read_boot_id() and until_boot_s:
            self._set_lease(observer, float(until_boot_s))

    def _report_interrupted(self, errand: Errand, now_s: float) -> None:
        """Report a request that was interrupted by a kill as a failure, so that home decides."""
        lost = NoResponse(errand.url, errand.purpose, Failure.RESET, "the observer was interrupted", now_s, now_s)
        self._spool.save_observation(build_observation(errand, lost, None), None, now_s, self.options.copy_bytes)
        del self._errands[errand.number]
        self._numbers.add(errand.number)


def _is_confidential(home: str) -> bool:
    """Check whether only this process can read home's replies: over https, or on the same machine."""
    parts = urlsplit(home)
    return parts.scheme == "https" or parts.hostname in {"127.0.0.1", "::1", "localhost"}


def _read_boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def check_home(home: str) -> str:
    """Check the URL of home as typed."""
    parts = urlsplit(home)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(
            f"--home {home}: use the address of the search page at home, such as https://search.example.org/"
        )
    return home
