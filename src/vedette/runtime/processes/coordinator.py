"""Coordinator process: only writer of the crawl state. Reports and commands come in, leases and responses go out.

Each round: receive messages, decide, commit, and only then send. So everything sent to a fetcher is durable, and every
request on the wire has its lease in the state.

A fetcher that died, or sent nothing for the time of a lease, loses its tasks: its URLs are requeued, its hosts wait out
their delay first, and what it archived without reporting is moved aside. One that only slept is killed, so that it
cannot wake up and send requests.
"""

import json
import os
import select
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from vedette.adapters.archive.warc_writer import truncate_tail
from vedette.adapters.crawl_store.data_folder import State, explain_database_errors, open_state
from vedette.adapters.crawl_store.status_file import SOCKET, write_status
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import ImpactEstimates
from vedette.adapters.net.dns import Resolver
from vedette.adapters.net.ipc import Channel, ChannelClosed, Hello, Request, is_same_user, listen
from vedette.adapters.net.renderer import explain_missing_browser
from vedette.adapters.push.push_store import PushStore, create_push_tables
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.engine.coordinator.duplicates import LESSONS_KEY, DuplicateDetector
from vedette.engine.coordinator.shard import WHOLE_WEB, PartitionShard
from vedette.engine.coordinator.state import Assignment
from vedette.engine.messages import Ack, FetchReport, PartRequest, Recall, Stop, WorkBatch
from vedette.engine.ports import HostRow
from vedette.engine.scheduling.rendering_model import OBSTACLE_KEY
from vedette.fetch.robots.state import RobotsState, RobotsStatus
from vedette.model import PARTITIONS, Origin
from vedette.runtime.commands.rpc import RequestHandler
from vedette.runtime.commands.setting_commands import load_rules
from vedette.runtime.processes.gain_reader import read_new_gains
from vedette.runtime.processes.housekeeping import Housekeeper
from vedette.runtime.processes.loop import print_error
from vedette.runtime.processes.settings import RuntimeSettings, build_schedule
from vedette.runtime.processes.throttle import Throttle
from vedette.runtime.push.coordinator import PushHandler
from vedette.runtime.push.indexnow import PingHandler
from vedette.runtime.push.promises import PromiseScheduler
from vedette.runtime.push.signals import SignalHandler
from vedette.runtime.push.subscriptions import SubscriptionManager

MAX_SLEEP_S = 0.05
CHORES_EVERY_S = 1.0
SAVE_LESSONS_EVERY_S = 10.0
TASKS_PER_WORKER = 8000
STOP_TIMEOUT_S = 2.0
KILL_TIMEOUT_S = 0.5
MAX_REST_S = 86_400.0
STATUS_EVERY_S = 1.0


@dataclass(slots=True)
class _Peer:
    """A connection to the coordinator process: a fetcher after its hello, else a client with requests."""

    channel: Channel
    worker: int | None = None
    pid: int = 0
    last_seen_s: float = 0.0
    last_report: int = 0
    last_ack: int = 0
    open_tasks: int = 0
    responses: list[object] = field(default_factory=list)


class CoordinatorProcess:
    """The coordinator process: crawl state, decisions and connections."""

    def __init__(
        self,
        settings: RuntimeSettings,
        state: State,
        coordinator: Coordinator,
        handler: RequestHandler,
        housekeeper: Housekeeper,
        impact: ImpactEstimates,
        resolver: Resolver,
    ) -> None:
        self.settings, self.clock, self.state = settings, settings.clock, state
        self.coordinator, self.handler = coordinator, handler
        self._housekeeper, self._impact, self._resolver = housekeeper, impact, resolver
        self._generations = Generations(settings.folder)
        self._peers: dict[int, _Peer] = {}
        self._chores_s = 0.0
        self._stopping_s: float | None = None
        self._last_status: dict[str, object] = {}
        self._status_throttle, self._ending_throttle = Throttle(min_interval_s=STATUS_EVERY_S), Throttle()
        self._lessons = coordinator.copies.lessons
        self._lessons_saved_s = settings.clock.wall_now()
        self._write_status()  # before the socket, so that there are numbers as soon as it is seen to run
        self._listener = listen(settings.folder / SOCKET)
        self._poll = select.epoll()
        self._poll.register(self._listener.fileno(), select.EPOLLIN)
        self._poll.register(self._resolver.fd, select.EPOLLIN)

    def run(self) -> str:
        """Run the coordinator process until nothing is left or it is stopped; return how it ended."""
        self._restore()
        while True:
            self._receive(MAX_SLEEP_S)
            self._run_chores()
            orders, lookups = self._assign_work()
            self.state.commit()
            self._write_status()
            self._send_all(orders, lookups)
            ending = self._check_ending()
            if ending is not None:
                return ending

    def close(self) -> None:
        """Close the connections and the crawl state of the coordinator process."""
        for peer in self._peers.values():
            peer.channel.close()
        self._listener.close()
        (self.settings.folder / SOCKET).unlink(missing_ok=True)
        self._resolver.close()
        self._poll.close()
        self.coordinator.save(self.clock.now())
        self._begin_transaction()
        self._save_lessons()
        self._housekeeper.close()
        self.state.close(clean=True)

    def _restore(self) -> None:
        now_s, book = self.clock.now(), self.state.store
        boot = book.get_value("boot")
        step_s = self.clock.measure_step_s(boot) if boot else 0.0
        behind_s = max(float(book.get_value("clock_s") or 0.0) - now_s, step_s or 0.0, 0.0)
        if behind_s >= 1.0:
            print_error(f"the clock is {behind_s:.0f} s behind the last run: hosts keep the delays that were left then")
        hosts = [row._replace(ready_s=row.ready_s - behind_s) for row in book.load_hosts()]
        for row in hosts:
            self.coordinator.host_table.restore_host(row, min(row.ready_s, now_s + MAX_REST_S))
        robots = book.load_robots()
        if behind_s or step_s is None:
            robots = _shift_robots(robots, now_s, behind_s)
            self._save_shifted(hosts, robots)
        for name, account in book.load_yields().items():
            self.coordinator.trap_filter.traps.from_json(name, json.loads(account))
        names = self.state.urls.host_names_with_work()
        self.coordinator.start(names, robots, now_s, held=book.count_held(), clean=self.state.clean)
        self.handler.after_command(now_s)
        self.coordinator.add_starts(now_s)

    def _save_shifted(self, hosts: list[HostRow], robots: dict[Origin, RobotsState]) -> None:
        """Save what was adjusted to a clock that was set back, together with its time: a kill must not undo half."""
        self._begin_transaction()
        self.state.store.save_hosts(hosts)
        for origin, state in robots.items():
            self.state.store.save_robots(origin, state)
        self._save_clock()
        self.state.commit()

    def _save_clock(self) -> None:
        """Save what time it is, and by which the next start notices that the clock was set back."""
        self.state.store.set_value("clock_s", repr(self.clock.now()))
        self.state.store.set_value("boot", self.clock.describe_boot())

    def _begin_transaction(self) -> None:
        """Begin the transaction in which everything up to the next commit becomes durable together."""
        if not self.state.db.in_transaction:
            self.state.db.execute("BEGIN IMMEDIATE")

    # what comes in

    def _receive(self, timeout_s: float) -> None:
        for fd, _ in self._poll.poll(timeout_s):
            if fd == self._listener.fileno():
                self._accept_peer()
            elif fd == self._resolver.fd:
                self._resolver.drain()
            elif fd in self._peers:
                self._read_peer(fd, self._peers[fd])
        for lookup in self._resolver.take_answers():
            self.coordinator.host_table.on_dns(lookup.host, lookup.addresses, lookup.failure, self.clock.now())

    def _accept_peer(self) -> None:
        sock, _ = self._listener.accept()
        if not is_same_user(sock):
            sock.close()
            return
        channel = Channel(sock)
        self._peers[channel.fd] = _Peer(channel, last_seen_s=self.clock.wall_now())
        self._poll.register(channel.fd, select.EPOLLIN)

    def _read_peer(self, fd: int, peer: _Peer) -> None:
        peer.last_seen_s = self.clock.wall_now()
        try:
            for message in peer.channel.receive():
                self._handle_message(peer, message)
        except ChannelClosed:
            self._disconnect(fd, peer)

    def _disconnect(self, fd: int, peer: _Peer) -> None:
        self._poll.unregister(fd)
        del self._peers[fd]
        peer.channel.close()
        if peer.worker is not None:
            self._begin_transaction()
            self.coordinator.on_fetcher_lost(peer.worker, self.clock.now())
            truncate_tail(self.settings.folder / "warc", self.state.store.load_archive_lengths(), f"w{peer.worker}")

    def _handle_message(self, peer: _Peer, message: object) -> None:
        if isinstance(message, FetchReport):
            if peer.worker is None:
                raise ChannelClosed("a report came from a process that is no fetcher")
            self._begin_transaction()
            self.coordinator.apply_report(peer.worker, message)
            self.handler.after_report(peer.worker, message)
            self.state.store.acknowledge_archive(dict(message.archived), self.clock.now())
            peer.last_report = message.serial
            peer.open_tasks -= len(message.results) + len(message.returned)
        elif isinstance(message, Hello):
            peer.worker, peer.pid = message.worker, message.pid
            rules, copy_rules = self.coordinator.rules, self.coordinator.copies.copy_rules
            batch = WorkBatch(sites=rules.sites, copy_rules=copy_rules, agent=rules.agent)
            _send(peer, batch if self._stopping_s is None else Stop())
        elif isinstance(message, PartRequest):
            self.coordinator.parts.request(message)
        elif isinstance(message, Request):
            peer.responses.append(self._handle_request(message))

    def _handle_request(self, call: Request) -> dict[str, object]:
        """Answer a client's request in the coordinator process; status numbers are those last written."""
        if call.verb != "status":
            return self.handler.handle(call, self.clock.now())
        return self._last_status or self.handler.handle(call, self.clock.now())

    def _write_status(self) -> None:
        """Write the status file if it is time; a full disk must not end the crawl.

        Otherwise counting all known URLs ten times a second would take all the time.
        """
        started_s = self.clock.wall_now()
        if started_s < self._status_throttle.next_s:
            return
        self._last_status = self.handler.handle(Request("status"), self.clock.now())
        with suppress(OSError):
            write_status(self.settings.folder, self._last_status)
        self._status_throttle.record_run(started_s, self.clock.wall_now())

    # what goes out, after the commit

    def _assign_work(self) -> tuple[list[Assignment], list[str]]:
        """Assign work to the connected fetchers, and list the hosts that need a DNS lookup."""
        if self._stopping_s is not None or self._housekeeper.get_pause_reason():
            return [], []
        room = {
            peer.worker: TASKS_PER_WORKER - peer.open_tasks for peer in self._list_workers() if peer.worker is not None
        }
        return self.coordinator.assign_work(self.clock.now(), self.clock.wall_now() + self.settings.lease_wall_s, room)

    def _send_all(self, orders: list[Assignment], lookups: list[str]) -> None:
        for peer in self._peers.values():
            self._send_pending(peer)
        self.handler.sites_changed = self.coordinator.copies.has_new_rules = False
        for host in lookups:
            self._resolver.submit(host)
        workers = {peer.worker: peer for peer in self._list_workers()}
        replies, self.coordinator.parts.replies = self.coordinator.parts.replies, []
        for worker, reply in replies:
            if worker in workers:
                _send(workers[worker], reply)
        for order in orders:
            peer = workers[order.worker]
            peer.open_tasks += len(order.batch.tasks)
            _send(peer, order.batch)

    def _send_pending(self, peer: _Peer) -> None:
        if peer.last_ack < peer.last_report:
            peer.last_ack = peer.last_report
            _send(peer, Ack(peer.last_ack))
        if peer.worker is not None and self.handler.sites_changed:
            _send(peer, WorkBatch(sites=self.coordinator.rules.sites, agent=self.coordinator.rules.agent))
            _send(peer, Recall(self.handler.recalled_hosts))
        if peer.worker is not None and self.coordinator.copies.has_new_rules:
            _send(peer, WorkBatch(copy_rules=self.coordinator.copies.copy_rules))
        for reply in peer.responses:
            _send(peer, reply)
        peer.responses.clear()
        with suppress(ChannelClosed):
            peer.channel.flush()

    # periodic work

    def _run_chores(self) -> None:
        wall_s = self.clock.wall_now()
        if wall_s - self._chores_s < CHORES_EVERY_S:
            return
        self._chores_s = wall_s
        self._begin_transaction()
        self._save_clock()
        gains = read_new_gains(self.state.store, self.settings.folder)
        self.coordinator.on_gains(gains.refetches, self.clock.now(), gains.first_fetches, gains.per_view)
        self.coordinator.wake_due_pages(self.clock.now())
        self._impact.refresh()
        self.handler.push.step(self.clock.now())
        self._drop_silent_workers(wall_s)
        if wall_s - self._lessons_saved_s >= SAVE_LESSONS_EVERY_S:
            self._lessons_saved_s = wall_s
            self._save_lessons()
        taken = self._generations.min_indexed_seq()
        if taken:
            self.state.store.delete_indexed(taken)
        self._housekeeper.step(self.clock.now(), wall_s)
        self.handler.trouble = self._housekeeper.get_warning()

    def _save_lessons(self) -> None:
        """Save what the coordinator learned about traps and duplicates; a crash loses the last moments."""
        thrift, lessons = self.coordinator.trap_filter, self.coordinator.copies.lessons
        if thrift.changed_hosts:
            accounts = {name: json.dumps(thrift.traps.to_json(name)) for name in thrift.changed_hosts}
            self.state.store.save_yields(accounts)
            thrift.changed_hosts.clear()
        if lessons is not self._lessons:
            self._lessons = lessons
            self.state.store.set_value(LESSONS_KEY, lessons.to_json())

    def _drop_silent_workers(self, wall_s: float) -> None:
        """Drop fetchers that have been silent for the time of a lease; every message renews it."""
        for fd, peer in list(self._peers.items()):
            if peer.worker is not None and wall_s - peer.last_seen_s > self.settings.lease_wall_s:
                print_error(
                    f"fetcher {peer.worker} has not responded for {wall_s - peer.last_seen_s:.0f} s; killing it"
                )
                _kill_sibling(peer.pid)
                self._disconnect(fd, peer)

    def _check_ending(self) -> str | None:
        if self.handler.stop_requested and self._stopping_s is None:
            self._stopping_s = self.clock.wall_now()
            for peer in self._list_workers():
                _send(peer, Stop())
        if self._stopping_s is not None:
            return self._finish_stop(self.clock.wall_now() - self._stopping_s)
        started_s = self.clock.wall_now()
        if self.settings.forever or started_s < self._ending_throttle.next_s:
            return None
        ending = self.coordinator.get_ending(self.clock.now(), self.settings.patience_s)
        self._ending_throttle.record_run(started_s, self.clock.wall_now())
        if ending is not None:
            self.handler.ending = ending
            self.handler.stop_requested = True
        return None

    def _finish_stop(self, waited_s: float) -> str | None:
        """Wait for fetchers to report and exit; kill one that does not, so that its archive can be repaired."""
        workers = self._list_workers()
        if workers and waited_s > STOP_TIMEOUT_S:
            for peer in workers:
                _kill_sibling(peer.pid)
        return "stopped" if not workers or waited_s > STOP_TIMEOUT_S + KILL_TIMEOUT_S else None

    def _list_workers(self) -> list[_Peer]:
        return [peer for peer in self._peers.values() if peer.worker is not None]


def _add_named_sites(settings: RuntimeSettings, state: State) -> None:
    """Add the sites of the command line to the state; only the options given change a known site."""
    known = {row.site.start: row for row in state.store.list_sites()}
    for site in settings.sites:
        row = known.get(site.start) or SiteRow(site, paused=False, added_s=settings.clock.now())
        typed = replace(row.site, scope=site.scope, include=site.include, exclude=site.exclude)
        state.store.save_site(replace(row, site=typed, paused=False))


def _shift_robots(robots: dict[Origin, RobotsState], now_s: float, behind_s: float) -> dict[Origin, RobotsState]:
    """Expire robots.txt copies after the clock was set back, or may have been; keep delays as long."""
    waits = {origin for origin, state in robots.items() if state.status is RobotsStatus.WAITING}
    return {
        origin: replace(state, until_s=state.until_s - behind_s if origin in waits else min(state.until_s, now_s))
        for origin, state in robots.items()
    }


def _send(peer: _Peer, message: object) -> None:
    """Send a message from the coordinator to a peer; a closed peer is noticed when its last message is read."""
    with suppress(ChannelClosed):
        peer.channel.send(message)


def _kill_sibling(pid: int) -> None:
    """Kill another child of the same supervisor, and no other process, whatever pid was sent."""
    with suppress(OSError, IndexError, ValueError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        if int(stat.rpartition(")")[2].split()[1]) == os.getppid() and pid != os.getpid():
            os.kill(pid, signal.SIGKILL)


def build_handler(settings: RuntimeSettings, state: State, coordinator: Coordinator) -> RequestHandler:
    """Build the handler of requests to the coordinator, with all that push needs."""
    create_push_tables(state.db)
    store, promises = PushStore(state.db), PromiseScheduler(state, coordinator)
    signals = SignalHandler(store, state, coordinator)
    subscriptions = SubscriptionManager(store, coordinator, settings.config.serve.public_url)
    pings = PingHandler(store, state, coordinator, signals)
    push = PushHandler(settings, state, coordinator, store, signals, subscriptions, pings, promises)
    return RequestHandler(settings, state, coordinator, push)


def _build_shard(settings: RuntimeSettings, state: State) -> PartitionShard | None:
    """Build the shard of a cluster; one machine has none, and imports nothing for it."""
    if settings.shard is None:
        return None
    from vedette.runtime.cluster.coordinator import build_shard

    return build_shard(settings.shard, state, settings.clock.speed)


def build_process(settings: RuntimeSettings, state: State, resolver: Resolver | None = None) -> CoordinatorProcess:
    """Build the coordinator process over an open state."""
    _add_named_sites(settings, state)
    rules, schedule = load_rules(settings, state), build_schedule(settings)
    copies = DuplicateDetector(state.bands, state.store, state.urls, state.store.get_value(LESSONS_KEY) or "")
    impact = ImpactEstimates(settings.folder / "index")
    part = _build_shard(settings, state)
    shard = WHOLE_WEB if part is None else part
    coordinator = Coordinator(rules, state.urls, state.store, schedule, copies, settings.workers, impact, shard)
    handler = build_handler(settings, state, coordinator)
    if settings.has_observers:
        from vedette.runtime.observers.coordinator import ObserverReservations

        observers = ObserverReservations(state, coordinator, settings.workers)
        handler.add_verb("observers", observers.handle)
        handler.after_command, handler.after_report = observers.apply, observers.measure
    if part is not None:
        from vedette.runtime.cluster.coordinator import ExchangeHandler

        handler.add_verb("exchange", ExchangeHandler(state, coordinator, part, settings.clock).handle)
    software = settings.agent.partition(" ")[0]
    housekeeper = Housekeeper(state, settings.config.store, software, settings.workers)
    return CoordinatorProcess(settings, state, coordinator, handler, housekeeper, impact, resolver or Resolver())


def _note_browser(process: CoordinatorProcess) -> list[str]:
    """Record why no page can be rendered here; return the sites that need rendering, in words."""
    missing = explain_missing_browser(process.settings.config.crawl.browser)
    process.state.store.set_value(OBSTACLE_KEY, missing)
    sites = process.coordinator.rules.sites if missing else ()
    return [f"{site.start} has render=always: {missing}" for site in sites if site.render == "always"]


def run_coordinator(settings: RuntimeSettings) -> int:
    """Run a coordinator process from start to end (entry point of the child)."""
    part = settings.shard
    partitions = range(PARTITIONS) if part is None else part.shards.partitions(part.number)
    is_streamed = part is not None and bool(part.storage)
    wall_s = settings.clock.wall_now()
    state = open_state(settings.folder, socket.gethostname(), wall_s, partitions, is_streamed=is_streamed)
    process = build_process(settings, state)
    for words in (*state.notices, *_note_browser(process)):
        print_error(words)
    with explain_database_errors(settings.folder):
        process.run()
    told = process.handler.handle(Request("status"), settings.clock.now())
    process.close()
    write_status(settings.folder, told)
    return 0
