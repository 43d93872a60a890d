"""The errand desk of the observer hub: the tasks that wait for each observer, its errands, and the exchange itself.

Whatever arrives is checked in this order: its signature, whether it can be decoded and is new, and then each
observation, by the errand and epoch that it names. Contents are not trusted: bodies are checked where they are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore, DueUrl
from vedette.adapters.observers.hub_store import ContactRow, ErrandRow, ObserverStore
from vedette.adapters.observers.registry import ObservedHostRow, ObserverRegistry, ObserverRow
from vedette.adapters.observers.wire import decode, derive_key, encode, is_signed, sign
from vedette.engine.messages import FetchTask, HostSettings, HostUpdate
from vedette.engine.observers.messages import (
    PROTOCOL,
    Errand,
    HostOrder,
    Observation,
    Orders,
    Report,
    RequestLimits,
    check_report,
)
from vedette.fetch.credentials import Secrets, select_headers
from vedette.fetch.observers.costs import ChangeMeter, LinkMeter
from vedette.fetch.request import build_conditional_headers, build_headers
from vedette.fetch.robots.state import UNKNOWN, RobotsState, UrlAllowed, check_url
from vedette.model import Site, origin_of
from vedette.runtime.observers.facts import ObserverFacts, parse_facts
from vedette.runtime.processes.settings import RuntimeSettings

# How long an observer may continue without home; unreleased hosts pause for as long before another one gets them.
LEASE_S = 6 * 3600.0
LEASE_MARGIN_S = 60.0
MAX_ERRANDS = 2_000
# Plans for times when home is unreachable: known pages that become due within the lease.
PLAN_EVERY_S = 60.0
MAX_PLANS = 2_000
NOT_ALLOWED_S = 3_600.0
FOREVER_S = 10 * 365 * 86_400.0
REFETCH_AT_ONCE = 500


class Exchange(NamedTuple):
    """The result of an exchange: observed errands, tasks to give back, host updates, and the reply to the observer."""

    reply: dict[str, object]
    answered: tuple[ErrandRow, ...] = ()
    returned: tuple[FetchTask, ...] = ()
    host_updates: tuple[HostUpdate, ...] = ()


@dataclass(slots=True)
class _Recall:
    """A host that its observer should release, and the first report with which it knows this."""

    sequence: int = 0
    is_confirmed: bool = False


@dataclass(slots=True)
class ErrandDesk:
    """The tasks of observers' hosts, and which observer has them as errands."""

    settings: RuntimeSettings
    store: ObserverStore
    agent: str = ""
    secrets: Mapping[Site, Secrets] = field(default_factory=dict)
    tasks: dict[str, FetchTask] = field(default_factory=dict)
    hosts: dict[str, HostSettings] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    assigned: dict[str, ObservedHostRow] = field(default_factory=dict)
    observers: dict[str, ObserverRow] = field(default_factory=dict)
    facts: dict[str, ObserverFacts] = field(default_factory=dict)
    held_hosts: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    _paced: set[str] = field(default_factory=set)
    _recalls: dict[str, _Recall] = field(default_factory=dict)
    _changed: list[str] = field(default_factory=list)
    _requests: list[dict[str, Any]] = field(default_factory=list)
    _planned_s: dict[str, float] = field(default_factory=dict)
    _began_s: float = 0.0

    def __post_init__(self) -> None:
        self._began_s = self.settings.clock.now()
        self.load_assignments()

    def load_assignments(self) -> None:
        """Load the observers, and which host is assigned to which."""
        with read_state(self.settings.folder) as db:
            registry = ObserverRegistry(db)
            self.assigned = {row.host: row for row in registry.list_hosts()}
            self.observers = {row.name: row for row in registry.list_observers() if row.revoked_s is None}

    # tasks

    def take_tasks(self, hosts: Sequence[HostSettings], tasks: Sequence[FetchTask]) -> list[FetchTask]:
        """Take tasks from the coordinator; return those for hosts without an observer."""
        self._paced.update(host.name for host in hosts if self._is_paced_otherwise(host))
        self.hosts.update((host.name, self._keep_delay(host)) for host in hosts)
        if any(task.host not in self.assigned for task in tasks):
            self.load_assignments()
        taken = [task._replace(render="never") for task in tasks if task.host in self.assigned]
        self.tasks.update((task.url, task) for task in taken)
        with self.store.open_transaction():
            for host in dict.fromkeys(task.host for task in taken):
                self.store.free_stale(host, self.assigned[host].epoch)
            self.store.add_errands([(task.url, task.host) for task in taken])
        return [task for task in tasks if task.host not in self.assigned]

    def _is_paced_otherwise(self, host: HostSettings) -> bool:
        """Check whether other delays apply to a host than when its last errands were given."""
        known = self.hosts.get(host.name)
        return known is not None and known._replace(ready_s=0.0, failure_streak=0) != host._replace(
            ready_s=0.0, failure_streak=0
        )

    def _keep_delay(self, host: HostSettings) -> HostSettings:
        """Keep a delay that was started here; a restarted hub may have checked a page before it was killed."""
        known = self.hosts.get(host.name)
        return host._replace(ready_s=max(host.ready_s, known.ready_s if known else self._began_s + get_gap_s(host)))

    def rest(self, name: str, ready_s: float) -> HostUpdate:
        """Let a host rest at least until a time; return that for the coordinator."""
        host = self.hosts[name]
        host = self.hosts[name] = host._replace(ready_s=max(host.ready_s, ready_s))
        return HostUpdate(name, host.ready_s, host.failure_streak, "")

    def list_neighbors(self, host: str, observer: str) -> frozenset[str]:
        """List a host and the others that its observer requests at the same address."""
        addresses = self.get_facts(observer).addresses
        address = addresses.get(host)
        return frozenset(
            (host, *(one for one, its in addresses.items() if its == address and self._owns(one, observer)))
        )

    def recall(self, names: Sequence[str]) -> list[FetchTask]:
        """Give back the tasks of hosts that no observer has."""
        wanted = frozenset(names)
        mine = [task.url for task in self.tasks.values() if task.host in wanted]
        waiting = [row.url for row in self.store.find_errands(mine) if not row.observer and row.outcome is None]
        return [self.tasks.pop(url) for url in waiting]

    # the exchange

    def exchange(self, name: str, signature: str, body: bytes) -> Exchange:
        """Exchange a signed report from an observer for signed orders."""
        with read_state(self.settings.folder) as db:
            registry, secret = ObserverRegistry(db), CrawlStore(db).read_secret()
            row = registry.find_observer(name)
            key = derive_key(secret, name, row.generation) if row else b""
            if row is None or not is_signed(key, "report", name, body, signature):
                return _refuse(403, "The observer is unknown or revoked, or its key is wrong.")
            try:
                report = check_report(decode(Report, body))
            except ValueError as error:
                return _refuse(400, f"The report cannot be read: {error}")
            if report.protocol != PROTOCOL:
                return _refuse(400, f"Home speaks version {PROTOCOL}: install the same version of vedette here.")
            contact = self.store.get_contact(name)
            if report.sequence <= contact.sequence:
                return _refuse(409, f"Report {report.sequence} is not new; the last was {contact.sequence}.")
            self.assigned = {each.host: each for each in registry.list_hosts()}
            with self.store.open_transaction():
                return self._exchange(row, key, report, contact, CrawlStore(db))

    def _exchange(
        self, row: ObserverRow, key: bytes, report: Report, contact: ContactRow, book: CrawlStore
    ) -> Exchange:
        now_s, name = self.settings.clock.now(), row.name
        facts = self.get_facts(name, contact)
        if report.last_s > 0:
            facts.home = facts.home.add(report.last_bytes, report.last_s)
        answered = [one for seen in report.observations if (one := self._take_observation(seen, name, facts, now_s))]
        returned = self._take_returned(report.returned, name)
        known = frozenset(report.held) | {seen.number for seen in report.observations}
        out = self.store.list_out(name)
        self._note_held(name, report, out, now_s)
        lost = [
            one for one in out if one.number not in known and one.url in self.tasks and self._is_for(one.host, name)
        ]
        errands, refused = self._choose_errands(row, report, lost, book, now_s)
        # Changed delays apply to errands given earlier, too: they are repeated while the observer has some.
        held = self.held_hosts[name][1]
        self._paced = {host for host in self._paced if not self._owns(host, name) or host in held}
        paced = sorted(host for host in self._paced if self._owns(host, name))
        names = dict.fromkeys((*(errand.host for errand in errands), *paced))
        recalled = self._list_recalled(name, [one for one in out if one.number in known], report.sequence)
        facts.held = len(report.held) + len(errands)
        orders = Orders(
            report.sequence,
            LEASE_S,
            self._build_limits(),
            taken=tuple(seen.number for seen in report.observations),
            errands=tuple(errands),
            plans=self._build_plans(name, book, now_s),
            hosts=tuple(self._build_host(host, now_s) for host in names if host in self.hosts),
            recalled=recalled,
        )
        lease_until_s = now_s + LEASE_S
        self.store.save_contact(ContactRow(name, report.sequence, now_s, lease_until_s, facts.to_json()))
        self._changed += [url for url in report.changed if self._owns(origin_of(url).host, name)]
        data = encode(orders)
        reply: dict[str, object] = {"status": 200, "body": data, "signature": sign(key, "orders", name, data)}
        return Exchange(
            reply, tuple(answered), (*returned, *refused), self._convert_paces(report, name, now_s, refused)
        )

    def _take_observation(self, seen: Observation, name: str, facts: ObserverFacts, now_s: float) -> ErrandRow | None:
        """Save an observation of an errand that this observer has, under the epoch of its host's assignment."""
        row = self.store.find_errand(seen.number)
        if row is None or (row.observer, row.epoch, row.url) != (name, seen.epoch, seen.url):
            facts.refused += 1  # reported under an earlier assignment, or never ordered
            return None
        if row.outcome is not None:
            return None
        ended_s = min(now_s - max(seen.at_s, 0.0), now_s)
        seen = seen._replace(at_s=ended_s, took_s=min(max(seen.took_s, 0.0), now_s))
        self.store.save_outcome(seen, name, now_s)
        return row._replace(outcome=seen)

    def _take_returned(self, numbers: Sequence[int], name: str) -> list[FetchTask]:
        rows = [row for number in numbers if (row := self.store.find_errand(number)) and row.observer == name]
        self.store.give([row.number for row in rows], "", 0)
        return [self.tasks.pop(row.url) for row in rows if row.url in self.tasks]

    def _owns(self, host: str, name: str) -> bool:
        row = self.assigned.get(host)
        return row is not None and row.observer == name

    def _is_for(self, host: str, name: str) -> bool:
        row = self.assigned.get(host)
        return row is not None and row.observer == name and row.next is None and host not in self.paused

    def _choose_errands(
        self, row: ObserverRow, report: Report, lost: Sequence[ErrandRow], book: CrawlStore, now_s: float
    ) -> tuple[list[Errand], list[FetchTask]]:
        """Choose errands for an observer: those that it lost or has as a plan, then waiting tasks."""
        room = min(max(report.room, 0), MAX_ERRANDS)
        waiting = list(lost[:room])
        for host in self.hosts:
            if self._is_for(host, row.name) and len(waiting) < room:
                found = self.store.list_waiting(host, room - len(waiting))
                waiting += [one for one in found if one.url in self.tasks]
        refused: list[FetchTask] = []
        errands: list[Errand] = []
        pages = book.get_pages([self.tasks[one.url].id for one in waiting])
        for one in waiting:
            task = self.tasks[one.url]
            secrets = self.find_secrets(task.url)
            if secrets and not (report.is_confidential and secrets[0] in row.secret_sites):
                refused.append(self.tasks.pop(one.url))
                continue
            page = pages.get(task.id)
            has_copy = page is not None and page.place is not None
            epoch = self.assigned[one.host].epoch
            errands.append(
                self._build_errand(one, task, epoch, secrets[1] if secrets else (), now_s, has_copy=has_copy)
            )
        given: dict[int, list[int]] = {}
        for errand in errands:
            given.setdefault(errand.epoch, []).append(errand.number)
        for epoch, numbers in given.items():
            self.store.give(numbers, row.name, epoch)
        return errands, refused

    def find_secrets(self, url: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
        """Find the private site of a URL, and the headers with its credentials."""
        found = ((site.start, select_headers(secrets, site, url)) for site, secrets in self.secrets.items())
        return next(((start, headers) for start, headers in found if headers), None)

    def _build_errand(
        self,
        row: ErrandRow,
        task: FetchTask,
        epoch: int,
        secrets: tuple[tuple[str, str], ...],
        now_s: float,
        *,
        has_copy: bool,
    ) -> Errand:
        headers = build_headers(task.purpose, self.agent, task.part_of.accept if task.part_of else "")
        headers += build_conditional_headers(*task.validators)
        cookies = (("cookie", task.cookies),) if task.cookies else ()
        return Errand(
            *(row.number, epoch, row.host, row.url, task.purpose, headers),
            worth=task.worth,
            valid_s=min(task.valid_until_s - now_s, FOREVER_S),
            digest=task.copy.digest if task.copy else "",
            has_copy=has_copy,
            secret_headers=secrets + cookies,
        )

    def _build_host(self, name: str, now_s: float) -> HostOrder:
        host, epoch = self.hosts[name], self.assigned[name].epoch
        wait_s = max(host.ready_s - now_s, 0.0)
        return HostOrder(name, epoch, host.delay_s, host.crawl_delay_s, wait_s, host.failure_streak, host.bytes_per_s)

    def _build_limits(self) -> RequestLimits:
        crawl = self.settings.config.crawl
        return RequestLimits(
            *(self.agent, bool(crawl.contact), crawl.address_delay_s, crawl.latency_factor, crawl.daily_limit),
            body_bytes=crawl.max_page_bytes,
            connect_timeout_s=crawl.connect_timeout_s,
            timeout_s=crawl.timeout_s,
        )

    def _build_plans(self, name: str, book: CrawlStore, now_s: float) -> tuple[Errand, ...] | None:
        """Build the plan of an observer for times when home is unreachable: pages that become due.

        Planned errands have numbers, so that observations without home answer the tasks that follow here.
        """
        if now_s - self._planned_s.get(name, -inf) < PLAN_EVERY_S * self.settings.clock.speed:
            return None
        self._planned_s[name] = now_s
        hosts = [host for host in self.assigned if host in self.hosts and self._is_for(host, name)]
        due = [
            one
            for one in book.list_due_soon(hosts, now_s, now_s + LEASE_S, MAX_PLANS)
            if one.url not in self.tasks and not self.find_secrets(one.url)
        ]
        self.store.add_errands([(one.url, origin_of(one.url).host) for one in due])
        rows = {row.url: row for row in self.store.find_errands([one.url for one in due])}
        robots = {origin: book.get_robots(origin) or UNKNOWN for origin in {origin_of(one.url) for one in due}}
        plans = []
        for one in due:
            row, state = rows[one.url], robots[origin_of(one.url)]
            if row.outcome is None and row.observer in {"", name} and _is_allowed(state, one.url, now_s):
                plans.append(self._build_plan(row, one, state.until_s - now_s, now_s))
                self.store.give([row.number], name, plans[-1].epoch)
        return tuple(plans)

    def _build_plan(self, row: ErrandRow, one: DueUrl, valid_s: float, now_s: float) -> Errand:
        headers = build_headers("page", self.agent) + build_conditional_headers(one.page.etag, one.page.last_modified)
        return Errand(
            *(row.number, self.assigned[row.host].epoch, row.host, row.url, "page", headers, 0.0, valid_s),
            digest=one.page.digest,
            has_copy=one.page.place is not None,
            after_s=max(one.page.due_s - now_s, 1.0),
        )

    def _list_recalled(self, name: str, held: Sequence[ErrandRow], sequence: int) -> tuple[str, ...]:
        """List the hosts that an observer should release, or that are not assigned to it."""
        ending = [host for host, row in self.assigned.items() if row.observer == name and row.next is not None]
        for host in ending:
            self._recalls.setdefault(host, _Recall(sequence))
        foreign = [row.host for row in held if (one := self.assigned.get(row.host)) is None or one.epoch != row.epoch]
        return tuple(dict.fromkeys((*ending, *foreign)))

    def _note_held(self, name: str, report: Report, out: Sequence[ErrandRow], now_s: float) -> None:
        """Note the hosts that an observer has errands for; a recalled one without errands has been released."""
        numbers = frozenset(report.held)
        held = frozenset(row.host for row in out if row.number in numbers)
        self.held_hosts[name] = now_s, held
        for host, recall in self._recalls.items():
            row = self.assigned.get(host)
            if row is not None and row.observer == name and report.sequence > recall.sequence and host not in held:
                recall.is_confirmed = True

    def _convert_paces(
        self, report: Report, name: str, now_s: float, refused: Sequence[FetchTask]
    ) -> tuple[HostUpdate, ...]:
        """Convert an observer's delays of its hosts to host updates; those of other hosts are ignored."""
        updates = []
        for pace in report.paces:
            row = self.assigned.get(pace.name)
            if row is not None and (row.observer, row.epoch) == (name, pace.epoch) and pace.name in self.hosts:
                ready_s = now_s + min(max(pace.wait_s, 0.0), 86_400.0)
                streak = max(pace.failure_streak, 0)
                updates.append(HostUpdate(pace.name, ready_s, streak, pace.trouble[:200]))
                known = self.hosts[pace.name]
                self.hosts[pace.name] = known._replace(ready_s=max(known.ready_s, ready_s), failure_streak=streak)
        why = f"its observer {name} may not have its credentials"
        hosts = dict.fromkeys(task.host for task in refused)
        return (*updates, *(HostUpdate(host, now_s + NOT_ALLOWED_S, 0, why) for host in hosts))

    # measurements

    def get_facts(self, name: str, contact: ContactRow | None = None) -> ObserverFacts:
        """Return what was measured about an observer."""
        if name not in self.facts:
            self.facts[name] = parse_facts((contact or self.store.get_contact(name)).facts)
        return self.facts[name]

    def measure(self, row: ErrandRow, sent_bytes: int, *, is_refetch: bool) -> float:
        """Measure an observation: its link, and changes of known pages; return its seconds at the site and to home."""
        assert row.outcome is not None
        seen, facts = row.outcome, self.get_facts(row.observer)
        took_s = seen.took_s / self.settings.clock.speed
        facts.add_answer(row.host, seen.status)
        if not seen.failure:
            self._note_address(row, facts, seen.address)
            facts.sites[row.host] = facts.sites.get(row.host, LinkMeter()).add(seen.size, took_s)
        if not seen.failure and is_refetch:
            changes, is_changed = facts.changes.get(row.host, ChangeMeter()), seen.form != "same"
            facts.changes[row.host] = changes.add(seen.size, sent_bytes, is_changed=is_changed)
        return facts.estimate_look_s(took_s, sent_bytes)

    def _note_address(self, row: ErrandRow, facts: ObserverFacts, address: str) -> None:
        """Note the address of a host: all hosts there need the same observer, which enforces the delay."""
        if facts.addresses.get(row.host) == address:
            return
        facts.addresses[row.host] = address
        others = [
            host
            for name, known in self.facts.items()
            for host, its in known.addresses.items()
            if name != row.observer and its == address and (one := self.assigned.get(host)) and one.observer == name
        ]
        self._requests.append(
            {"what": "colocate", "host": row.host, "observer": row.observer, "address": address, "others": others}
        )

    def measure_direct(self, name: str, host: str, size_bytes: int, took_s: float) -> None:
        """Measure a fetch from home of a page on an observer's host."""
        facts = self.get_facts(name)
        facts.direct[host] = facts.direct.get(host, LinkMeter()).add(size_bytes, took_s / self.settings.clock.speed)

    def count_check(self, name: str, url: str, *, is_same: bool) -> None:
        """Count a page that home checked itself; an observer that lies is revoked."""
        facts = self.get_facts(name)
        facts.checks += 1
        facts.mismatches += not is_same
        if facts.is_lying:
            self._drop(name, f"{facts.mismatches} of {facts.checks} checked pages differ, most recently {url}")

    def count_refused(self, name: str, why: str) -> None:
        """Count an invalid observation; a second one is not considered an accident."""
        facts = self.get_facts(name)
        facts.refused += 1
        facts.mismatches += 1
        if facts.is_lying:
            self._drop(name, f"it sent an impossible observation: {why}")

    def _drop(self, name: str, why: str) -> None:
        self._requests.append({"what": "drop", "name": name, "why": why[:300]})
        self.facts.pop(name, None)
        with self.store.open_transaction():
            row = self.store.get_contact(name)
            self.store.save_contact(row._replace(facts=ObserverFacts().to_json()))
        self._refetch(name)

    def _refetch(self, name: str) -> None:
        """Ask the coordinator to fetch everything again that an observer reported."""
        with self.store.open_transaction():
            while urls := self.store.take_observed(name, REFETCH_AT_ONCE):
                self._requests.append({"what": "refetch", "urls": urls})

    # assignments

    def release_hosts(self, now_s: float) -> tuple[list[str], list[FetchTask]]:
        """List the hosts that their observers have released, or whose lease has ended; their tasks are given back."""
        contacts = {row.observer: self.store.get_contact(row.observer) for row in self.assigned.values()}
        released = [
            host
            for host, row in self.assigned.items()
            if row.next is not None
            and host not in self.paused  # home may be requesting it for a check
            and (
                (host in self._recalls and self._recalls[host].is_confirmed)
                or contacts[row.observer].lease_until_s + LEASE_MARGIN_S < now_s
            )
        ]
        gone = [task.host for task in self.tasks.values() if task.host not in self.assigned]
        names = frozenset((*released, *gone))
        returned = [task for task in self.tasks.values() if task.host in names]
        for task in returned:
            del self.tasks[task.url]
        for host in released:
            self._recalls.pop(host, None)
        with self.store.open_transaction():
            mine = [task.url for task in returned]
            self.store.give([row.number for row in self.store.find_errands(mine)], "", 0)
        return released, returned

    def take_requests(self) -> list[dict[str, Any]]:
        """Take what the coordinator should do: drop observers, fetch pages again."""
        requests, self._requests = self._requests, []
        if self._changed:
            requests.append({"what": "changed", "urls": self._changed})
            self._changed = []
        return requests


def get_gap_s(host: HostSettings) -> float:
    """Return the shortest time between two requests to a host."""
    return max(host.delay_s, host.crawl_delay_s or 0.0)


def _is_allowed(state: RobotsState, url: str, now_s: float) -> bool:
    return isinstance(check_url(state, url, now_s), UrlAllowed)


def _refuse(status: int, words: str) -> Exchange:
    return Exchange({"status": status, "body": b"", "words": f"{words}\n"})
