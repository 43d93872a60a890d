"""The keeper process: the only writer of the state. Reports and commands come in, leases and answers go out.

Each round: read what came, decide, commit, and only then tell anybody. So what a worker was told is durable, and a
request that leaves has its lease in the state.

A worker that has died, or has said nothing for the time of a lease, has lost what it held: its URLs wait again, its
hosts rest first, and what it had archived without telling goes aside. One that only slept is ended, so that it cannot
wake up and ask.
"""

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from vedette.adapters.archive.warc_writer import drop_tail
from vedette.adapters.crawl_store.data_folder import State, database_said_plainly, open_state
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import Expected
from vedette.adapters.net.dns import Resolver
from vedette.adapters.net.ipc import Channel, Gone, listen, peer_is_ours
from vedette.engine.coordinator.coordinator import Keeper
from vedette.engine.coordinator.duplicates import LESSONS, Copies
from vedette.engine.coordinator.state import Order
from vedette.engine.messages import Noted, Orders, Recall, Report, Stop
from vedette.fetch.robots.state import RobotsState, Standing
from vedette.model import Origin
from vedette.runtime.commands.rpc import Call, Desk
from vedette.runtime.commands.setting_commands import rules_of
from vedette.runtime.processes.gain_reader import new_gains
from vedette.runtime.processes.housekeeping import Chores
from vedette.runtime.processes.settings import LiveSettings, schedule_for
from vedette.runtime.processes.throttle import Sparing

__all__ = ["Hello", "KeeperProcess", "run_keeper"]

LONGEST_SLEEP_S = 0.05
CHORES_EVERY_S = 1.0
LEARNED_EVERY_S = 10.0
ERRANDS_PER_WORKER = 8000
STOP_PATIENCE_S = 2.0
LAST_PATIENCE_S = 0.5
LONGEST_REST_S = 86_400.0
SOCKET = "keeper.sock"
LAST_WORDS = "last.json"


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker says which one it is, and which process."""

    worker: int
    pid: int = 0


@dataclass(slots=True)
class _Peer:
    """A connection: a worker once it has said hello, else somebody with questions."""

    channel: Channel
    worker: int | None = None
    pid: int = 0
    heard_s: float = 0.0
    reported: int = 0
    noted: int = 0
    errands: int = 0
    replies: list[object] = field(default_factory=list)


class KeeperProcess:
    """State, decisions and connections of the keeper."""

    def __init__(self, settings: LiveSettings, state: State, resolver: Resolver | None = None) -> None:
        self.settings = settings
        self.clock = settings.clock
        self.state = state
        _name_sites(settings, state)
        rules = rules_of(settings, state)
        copies = Copies(state.bands, state.book, state.urls, state.book.life(LESSONS) or "")
        self._expected = Expected(settings.folder / "index")
        schedule = schedule_for(settings)
        self.keeper = Keeper(rules, state.urls, state.book, schedule, copies, settings.workers, self._expected)
        self.desk = Desk(settings, state, self.keeper)
        self._housekeeping = Chores(state, settings.config.store, settings.agent.partition(" ")[0], settings.workers)
        self._generations = Generations(settings.folder)
        self._resolver = resolver or Resolver()
        self._listener = listen(settings.folder / SOCKET)
        self._poll = select.epoll()
        self._poll.register(self._listener.fileno(), select.EPOLLIN)
        self._poll.register(self._resolver.fd, select.EPOLLIN)
        self._peers: dict[int, _Peer] = {}
        self._chores_s = 0.0
        self._stopping_s: float | None = None
        self._numbers: dict[str, object] = {}
        self._counting, self._judging = Sparing(), Sparing()
        self._lessons = copies.lessons
        self._learned_s = settings.clock.wall()

    def run(self) -> str:
        """Until nothing is left to do, or somebody says stop; how it ended."""
        self._begin()
        while True:
            self._listen(LONGEST_SLEEP_S)
            self._chores()
            orders, lookups = self._decide()
            self.state.commit()
            self._tell(orders, lookups)
            ending = self._ending()
            if ending is not None:
                return ending

    def close(self) -> None:
        """Let go of connections and state."""
        for peer in self._peers.values():
            peer.channel.close()
        self._listener.close()
        (self.settings.folder / SOCKET).unlink(missing_ok=True)
        self._resolver.close()
        self._poll.close()
        self.keeper.refreshing.looking.keep(self.clock.now())
        self.keeper.spending.keep(self.clock.now())
        self._write()
        self._keep_lessons()
        self._housekeeping.close()
        self.state.close(clean=True)

    def _begin(self) -> None:
        now_s, book = self.clock.now(), self.state.book
        behind_s = max(float(book.life("clock_s") or 0.0) - now_s, 0.0)
        if behind_s >= 1.0:
            _say(f"the clock is {behind_s:.0f} s behind the last run: hosts rest as long as was left then")
        for row in book.hosts():
            ready_s = min(row.ready_s - behind_s, now_s + LONGEST_REST_S)
            self.keeper.recall_host(row.name, ready_s, row.strain, row.trouble)
        robots = _set_back(book.robots(), now_s, behind_s)
        for name, account in book.yields().items():
            self.keeper.thrift.traps.from_json(name, json.loads(account))
        names = self.state.urls.names_with_work()
        self.keeper.begin(names, robots, now_s, held=book.held(), clean=self.state.clean)
        for site in self.keeper.rules.sites:
            self.keeper.found([site.start], 0, now_s, front=0)

    def _write(self) -> None:
        """Whatever is written from here to the commit becomes durable together."""
        if not self.state.db.in_transaction:
            self.state.db.execute("BEGIN IMMEDIATE")

    # what comes in

    def _listen(self, timeout_s: float) -> None:
        for fd, _ in self._poll.poll(timeout_s):
            if fd == self._listener.fileno():
                self._accept()
            elif fd == self._resolver.fd:
                self._resolver.drain()
            elif fd in self._peers:
                self._hear(fd, self._peers[fd])
        for lookup in self._resolver.answers():
            self.keeper.named(lookup.host, lookup.addresses, lookup.failure, self.clock.now())

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        if not peer_is_ours(sock):
            sock.close()
            return
        channel = Channel(sock)
        self._peers[channel.fd] = _Peer(channel, heard_s=self.clock.wall())
        self._poll.register(channel.fd, select.EPOLLIN)

    def _hear(self, fd: int, peer: _Peer) -> None:
        peer.heard_s = self.clock.wall()
        try:
            for message in peer.channel.receive():
                self._message(peer, message)
        except Gone:
            self._leave(fd, peer)

    def _leave(self, fd: int, peer: _Peer) -> None:
        self._poll.unregister(fd)
        del self._peers[fd]
        peer.channel.close()
        if peer.worker is not None:
            self._write()
            self.keeper.lost(peer.worker, self.clock.now())
            drop_tail(self.settings.folder / "warc", self.state.book.archives(), f"w{peer.worker}")

    def _message(self, peer: _Peer, message: object) -> None:
        if isinstance(message, Report):
            assert peer.worker is not None
            self._write()
            self.keeper.taken_in(peer.worker, message)
            self.state.book.acknowledge_archive(dict(message.archived), self.clock.now())
            peer.reported = message.serial
            peer.errands -= len(message.results) + len(message.returned)
        elif isinstance(message, Hello):
            peer.worker, peer.pid = message.worker, message.pid
            rules = Orders(sites=self.keeper.rules.sites, learned=self.keeper.copies.learned)
            _send(peer, rules if self._stopping_s is None else Stop())
        elif isinstance(message, Call):
            peer.replies.append(self._answer(message))

    def _answer(self, call: Call) -> dict[str, object]:
        """Numbers may be a little old: counting all known URLs ten times a second would be all that is done."""
        if call.verb != "status":
            return self.desk.answer(call, self.clock.now())
        started_s = self.clock.wall()
        if started_s >= self._counting.next_s:
            self._numbers = self.desk.answer(call, self.clock.now())
            self._counting.did(started_s, self.clock.wall())
        return self._numbers

    # what goes out, after the commit

    def _decide(self) -> tuple[list[Order], list[str]]:
        """What workers are to ask for next, and which hosts are to be looked up."""
        if self._stopping_s is not None or self._housekeeping.paused():
            return [], []
        room = {peer.worker: ERRANDS_PER_WORKER - peer.errands for peer in self._workers() if peer.worker is not None}
        return self.keeper.hand_out(self.clock.now(), self.clock.wall() + self.settings.lease_wall_s, room)

    def _tell(self, orders: list[Order], lookups: list[str]) -> None:
        for peer in self._peers.values():
            self._tell_peer(peer)
        self.desk.sites_changed = self.keeper.copies.has_news = False
        for host in lookups:
            self._resolver.ask(host)
        workers = {peer.worker: peer for peer in self._workers()}
        for order in orders:
            peer = workers[order.worker]
            peer.errands += len(order.orders.errands)
            _send(peer, order.orders)

    def _tell_peer(self, peer: _Peer) -> None:
        if peer.noted < peer.reported:
            peer.noted = peer.reported
            _send(peer, Noted(peer.noted))
        if peer.worker is not None and self.desk.sites_changed:
            _send(peer, Orders(sites=self.keeper.rules.sites))
            _send(peer, Recall(self.desk.recalled))
        if peer.worker is not None and self.keeper.copies.has_news:
            _send(peer, Orders(learned=self.keeper.copies.learned))
        for reply in peer.replies:
            _send(peer, reply)
        peer.replies.clear()
        with suppress(Gone):
            peer.channel.flush()

    # what happens by itself

    def _chores(self) -> None:
        wall_s = self.clock.wall()
        if wall_s - self._chores_s < CHORES_EVERY_S:
            return
        self._chores_s = wall_s
        self._write()
        self.state.book.set_life("clock_s", repr(self.clock.now()))
        gains = new_gains(self.state.book, self.settings.folder)
        self.keeper.gained(gains.again, self.clock.now(), gains.first)
        self.keeper.renewed(self.clock.now())
        self._expected.refresh()
        self.desk.push.step(self.clock.now())
        self._dismiss_silent(wall_s)
        if wall_s - self._learned_s >= LEARNED_EVERY_S:
            self._learned_s = wall_s
            self._keep_lessons()
        taken = self._generations.taken()
        if taken:
            self.state.book.index_has(taken)
        self._housekeeping.step(self.clock.now(), wall_s)
        self.desk.trouble = self._housekeeping.trouble()

    def _keep_lessons(self) -> None:
        """What was learned of traps and copies; a crash costs what was learned in the last moments."""
        thrift, lessons = self.keeper.thrift, self.keeper.copies.lessons
        if thrift.changed:
            accounts = {name: json.dumps(thrift.traps.to_json(name)) for name in thrift.changed}
            self.state.book.keep_yields(accounts)
            thrift.changed.clear()
        if lessons is not self._lessons:
            self._lessons = lessons
            self.state.book.set_life(LESSONS, lessons.to_json())

    def _dismiss_silent(self, wall_s: float) -> None:
        """A lease ends by time: every word of its worker renews it, and none came."""
        for fd, peer in list(self._peers.items()):
            if peer.worker is not None and wall_s - peer.heard_s > self.settings.lease_wall_s:
                _say(f"worker {peer.worker} has said nothing for {wall_s - peer.heard_s:.0f} s and is ended")
                _end_sibling(peer.pid)
                self._leave(fd, peer)

    def _ending(self) -> str | None:
        if self.desk.stop_asked and self._stopping_s is None:
            self._stopping_s = self.clock.wall()
            for peer in self._workers():
                _send(peer, Stop())
        if self._stopping_s is not None:
            return self._stopped(self.clock.wall() - self._stopping_s)
        started_s = self.clock.wall()
        if self.settings.forever or started_s < self._judging.next_s:
            return None
        ending = self.keeper.ending(self.clock.now(), self.settings.patience_s)
        self._judging.did(started_s, self.clock.wall())
        if ending is not None:
            self.desk.ending = ending
            self.desk.stop_asked = True
        return None

    def _stopped(self, waited_s: float) -> str | None:
        """Workers report what they have and end; one that does not is ended, so that its archive can be put right."""
        workers = self._workers()
        if workers and waited_s > STOP_PATIENCE_S:
            for peer in workers:
                _end_sibling(peer.pid)
        return "stopped" if not workers or waited_s > STOP_PATIENCE_S + LAST_PATIENCE_S else None

    def _workers(self) -> list[_Peer]:
        return [peer for peer in self._peers.values() if peer.worker is not None]


def _name_sites(settings: LiveSettings, state: State) -> None:
    """The sites of the command line join the state; of one that is there already only what was typed changes."""
    known = {row.site.start: row for row in state.book.sites()}
    for site in settings.sites:
        row = known.get(site.start) or SiteRow(site, paused=False, added_s=settings.clock.now())
        typed = replace(row.site, scope=site.scope, include=site.include, exclude=site.exclude)
        state.book.keep_site(replace(row, site=typed, paused=False))


def _set_back(robots: dict[Origin, RobotsState], now_s: float, behind_s: float) -> dict[Origin, RobotsState]:
    """After the clock was put back nobody knows how old a copy is, so it is asked for again; a wait stays as long."""
    if not behind_s:
        return robots
    waits = {origin for origin, state in robots.items() if state.standing is Standing.WAITING}
    return {
        origin: replace(state, until_s=state.until_s - behind_s if origin in waits else min(state.until_s, now_s))
        for origin, state in robots.items()
    }


def _send(peer: _Peer, message: object) -> None:
    """That the other side is gone is found when the rest of what it said has been read."""
    with suppress(Gone):
        peer.channel.send(message)


def _end_sibling(pid: int) -> None:
    """End another child of the same supervisor, and nobody else, whatever number was said."""
    with suppress(OSError, IndexError, ValueError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        if int(stat.rpartition(")")[2].split()[1]) == os.getppid() and pid != os.getpid():
            os.kill(pid, signal.SIGKILL)


def _say(words: str) -> None:
    sys.stderr.write(f"vedette: {words}\n")
    sys.stderr.flush()


def run_keeper(settings: LiveSettings) -> int:
    """The life of a keeper process."""
    state = open_state(settings.folder, socket.gethostname(), settings.clock.wall())
    process = KeeperProcess(settings, state)
    sys.stderr.writelines(f"vedette: {words}\n" for words in state.told)
    with database_said_plainly(settings.folder):
        process.run()
    told = process.desk.answer(Call("status"), settings.clock.now())
    process.close()
    (settings.folder / LAST_WORDS).write_text(json.dumps(told), encoding="utf-8")
    return 0
