"""The keeper process: the only writer of the state. Reports and commands come in, leases and answers go out.

Each round: read what came, decide, commit, and only then tell anybody. So what a worker was told is durable, and a
request that leaves has its lease in the state.
"""

import json
import select
import socket
from dataclasses import dataclass, field

from vedette.edges.book import SiteRow
from vedette.edges.dns import Resolver
from vedette.edges.post import Channel, Gone, listen, peer_is_ours
from vedette.edges.state import State, open_state
from vedette.live.commands import Call, Desk
from vedette.live.settings import LiveSettings, rules_for, schedule_for
from vedette.ring.keep import Keeper
from vedette.ring.orders import Noted, Orders, Report, Stop

__all__ = ["Hello", "KeeperProcess", "run_keeper"]

LONGEST_SLEEP_S = 0.05
CHORES_EVERY_S = 1.0
LEASE_WALL_S = 300.0
ERRANDS_PER_WORKER = 4000
STOP_PATIENCE_S = 3.0
SOCKET = "keeper.sock"
LAST_WORDS = "last.json"


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker says which one it is."""

    worker: int


@dataclass(slots=True)
class _Peer:
    """A connection: a worker once it has said hello, else somebody with questions."""

    channel: Channel
    worker: int | None = None
    reported: int = 0
    noted: int = 0
    errands: int = 0
    replies: list[object] = field(default_factory=list)


class KeeperProcess:
    """State, decisions and connections of the keeper."""

    def __init__(self, settings: LiveSettings, state: State) -> None:
        self.settings = settings
        self.clock = settings.clock
        self.state = state
        for site in settings.sites:
            state.book.keep_site(SiteRow(site, paused=False, added_s=settings.clock.now()))
        rules = rules_for(settings, state.book.sites())
        self.keeper = Keeper(rules, state.urls, state.book, schedule_for(settings), settings.workers)
        self.desk = Desk(settings, state, self.keeper)
        self._resolver = Resolver()
        self._listener = listen(settings.folder / SOCKET)
        self._poll = select.epoll()
        self._poll.register(self._listener.fileno(), select.EPOLLIN)
        self._poll.register(self._resolver.fd, select.EPOLLIN)
        self._peers: dict[int, _Peer] = {}
        self._chores_s = 0.0
        self._stopping_s: float | None = None

    def run(self) -> str:
        """Until nothing is left to do, or somebody says stop; how it ended."""
        self._begin()
        while True:
            self._listen(LONGEST_SLEEP_S)
            self._chores()
            self.state.commit()
            self._tell()
            ending = self._ending()
            if ending is not None:
                return ending

    def close(self) -> None:
        """Let go of connections and state."""
        for peer in self._peers.values():
            peer.channel.close()
        self._listener.close()
        self._resolver.close()
        self._poll.close()
        self.state.close(clean=True)

    def _begin(self) -> None:
        now_s = self.clock.now()
        for row in self.state.book.hosts():
            self.keeper.recall_host(row.name, row.ready_s, row.strain, row.trouble)
        self.keeper.begin(self.state.urls.names_with_work(), self.state.book.robots(), now_s, clean=self.state.clean)
        for site in self.keeper.rules.sites:
            self.keeper.found([site.start], 0, now_s, front=0)

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
        self._peers[channel.fd] = _Peer(channel)
        self._poll.register(channel.fd, select.EPOLLIN)

    def _hear(self, fd: int, peer: _Peer) -> None:
        try:
            peer.channel.flush()
            for message in peer.channel.receive():
                self._message(peer, message)
        except Gone:
            self._leave(fd, peer)

    def _leave(self, fd: int, peer: _Peer) -> None:
        self._poll.unregister(fd)
        del self._peers[fd]
        peer.channel.close()
        if peer.worker is not None:
            self.keeper.lost(peer.worker, self.clock.now())

    def _message(self, peer: _Peer, message: object) -> None:
        if isinstance(message, Report):
            assert peer.worker is not None
            self.keeper.taken_in(peer.worker, message)
            self.state.book.acknowledge_archive(message.archived)
            peer.reported = message.serial
            peer.errands -= len(message.results) + len(message.returned)
        elif isinstance(message, Hello):
            peer.worker = message.worker
            peer.channel.send(Orders(sites=self.keeper.rules.sites))
        elif isinstance(message, Call):
            peer.replies.append(self.desk.answer(message, self.clock.now()))

    # what goes out, after the commit

    def _tell(self) -> None:
        for fd, peer in list(self._peers.items()):
            try:
                self._tell_peer(peer)
            except Gone:
                self._leave(fd, peer)
        if self._stopping_s is None:
            self._hand_out()

    def _tell_peer(self, peer: _Peer) -> None:
        if peer.noted < peer.reported:
            peer.noted = peer.reported
            peer.channel.send(Noted(peer.noted))
        if peer.worker is not None and self.desk.sites_changed:
            peer.channel.send(Orders(sites=self.keeper.rules.sites))
        for reply in peer.replies:
            peer.channel.send(reply)
        peer.replies.clear()
        peer.channel.flush()

    def _hand_out(self) -> None:
        workers = {peer.worker: peer for peer in self._peers.values() if peer.worker is not None}
        room = {worker: ERRANDS_PER_WORKER - peer.errands for worker, peer in workers.items()}
        orders, lookups = self.keeper.hand_out(self.clock.now(), self.clock.wall() + LEASE_WALL_S, room)
        self.desk.sites_changed = False
        self.state.commit()
        for host in lookups:
            self._resolver.ask(host)
        for order in orders:
            peer = workers[order.worker]
            peer.errands += len(order.orders.errands)
            peer.channel.send(order.orders)

    # what happens by itself

    def _chores(self) -> None:
        wall_s = self.clock.wall()
        if wall_s - self._chores_s < CHORES_EVERY_S:
            return
        self._chores_s = wall_s
        self.keeper.renewed(self.clock.now())
        self.state.urls.expired(wall_s)

    def _ending(self) -> str | None:
        if self.desk.stop_asked and self._stopping_s is None:
            self._stopping_s = self.clock.wall()
            for peer in self._peers.values():
                if peer.worker is not None:
                    peer.channel.send(Stop())
        if self._stopping_s is not None:
            busy = any(peer.worker is not None for peer in self._peers.values())
            return None if busy and self.clock.wall() - self._stopping_s < STOP_PATIENCE_S else "stopped"
        if self.settings.forever:
            return None
        ending = self.keeper.ending(self.clock.now(), self.settings.patience_s)
        if ending is not None:
            self.desk.ending = ending
            self.desk.stop_asked = True
        return None


def run_keeper(settings: LiveSettings) -> int:
    """The life of a keeper process."""
    state = open_state(settings.folder, socket.gethostname(), settings.clock.wall())
    process = KeeperProcess(settings, state)
    process.run()
    told = process.desk.answer(Call("status"), settings.clock.now())
    process.close()
    (settings.folder / LAST_WORDS).write_text(json.dumps(told), encoding="utf-8")
    return 0
