"""The URL store behaves like a dictionary and lists, through crashes, rollbacks and restarts."""

import copy
import sqlite3
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vedette.adapters.url_store.queues import FRONTS
from vedette.adapters.url_store.rows import create_url_tables
from vedette.adapters.url_store.store import UrlStore
from vedette.engine.ports import LinkBatch, UrlState
from vedette.policy import rng_for

HOSTS = ("a.test", "b.test", "c.test")
WORKERS = (1, 2)
LEASE_S = 10.0

links = st.lists(st.tuples(st.integers(0, 60), st.integers(0, FRONTS - 1)), max_size=25)
workers = st.sampled_from(WORKERS)


@dataclass
class Model:
    """The same store in the simplest way: URLs in the order of arrival, and a list for each front queue."""

    urls: list[str] = field(default_factory=list)
    fronts: dict[int, tuple[str, int]] = field(default_factory=dict)
    queues: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    leases: dict[int, tuple[int, float]] = field(default_factory=dict)
    fates: dict[int, UrlState] = field(default_factory=dict)

    def add(self, url: str, host: str, front: int) -> int | None:
        """Return the new id, if there is one."""
        if url in self.urls:
            return None
        self.urls.append(url)
        self.fronts[len(self.urls)] = (host, front)
        self.queues.setdefault((host, front), []).append(len(self.urls))
        return len(self.urls)

    def let_wait(self, ids: list[int]) -> None:
        """End leases without a fetch."""
        for id_ in sorted(ids):
            del self.leases[id_]
            self.queues[self.fronts[id_]].append(id_)

    def waiting(self, host: str) -> list[tuple[int, list[int]]]:
        """Return the non-empty queues of a host, best first."""
        return sorted((front, ids) for (name, front), ids in self.queues.items() if name == host and ids)

    def in_order_of_ids(self) -> "Model":
        """Return the result of a scan of the rows."""
        for ids in self.queues.values():
            ids.sort()
        return self


class KnownUrls(RuleBasedStateMachine):
    """Apply the same operations to store and model."""

    @initialize()
    def start(self) -> None:
        """Start with a new folder."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.connection = sqlite3.connect(self.path / "state.db", isolation_level=None)
        create_url_tables(self.connection)
        self.now_s, self.draws = 0.0, 0
        self.model, self.committed = Model(), Model()
        self.store = UrlStore(self.connection, epoch=1)
        self.ids = dict(zip(HOSTS, self.store.intern_hosts(HOSTS), strict=True))
        self.connection.commit()

    @rule(links=links)
    def tell(self, links: list[tuple[int, int]]) -> None:
        """Add links, known and unknown, with duplicates."""
        rows = [(f"https://{HOSTS[number % 3]}/{number}", HOSTS[number % 3], front) for number, front in links]
        expected = [id_ for row in rows if (id_ := self.model.add(*row)) is not None]
        hosts = [self.ids[host] for _, host, _ in rows]
        report = LinkBatch([url for url, _, _ in rows], hosts, [0] * len(rows), [front for _, _, front in rows])
        assert self.store.add(report, self.now_s).tolist() == expected

    @rule(hosts=st.lists(st.sampled_from(HOSTS), max_size=12), worker=workers, drawn=st.booleans())
    def lease(self, hosts: list[str], worker: int, *, drawn: bool) -> None:
        """Lease the first URL of one of each host's queues: of the best one, unless it is drawn at random."""
        self.draws += 1
        rng = rng_for(self.draws, "test") if drawn else None
        leased = iter(self.store.lease([self.ids[host] for host in hosts], worker, self.now_s + LEASE_S, rng))
        for host in hosts:
            queues = self.model.waiting(host)
            if queues:
                one = next(leased)
                front = self.model.fronts[one.id][1]
                assert drawn or front == queues[0][0]
                assert one.url == self.model.urls[one.id - 1]
                assert one.id == dict(queues)[front].pop(0)
                self.model.leases[one.id] = (worker, self.now_s + LEASE_S)
        assert next(leased, None) is None

    @rule(ids=st.sets(st.integers(1, 61)), fate=st.sampled_from(UrlState), worker=workers)
    def acknowledge(self, ids: set[int], fate: UrlState, worker: int) -> None:
        """Acknowledge any ids: only leases of this worker count."""
        mine = self._leased_to(worker, ids)
        assert self.store.acknowledge(sorted(ids), fate, worker).tolist() == mine
        for id_ in mine:
            del self.model.leases[id_]
            self.model.fates[id_] = fate

    @rule(ids=st.sets(st.integers(1, 61)), worker=workers)
    def put_back(self, ids: set[int], worker: int) -> None:
        """Return any ids: only leases of this worker are returned."""
        mine = self._leased_to(worker, ids)
        assert self.store.release_leases(sorted(ids), worker).tolist() == mine
        self.model.let_wait(mine)

    @rule(seconds=st.sampled_from([1.0, 6.0, LEASE_S]))
    def time_passes(self, seconds: float) -> None:
        """Let leases expire at their time."""
        self.now_s += seconds
        over = sorted(id_ for id_, (_, until_s) in self.model.leases.items() if until_s <= self.now_s)
        assert self.store.requeue_expired(self.now_s).tolist() == over
        self.model.let_wait(over)

    @rule()
    def commit(self) -> None:
        """Save everything up to here."""
        self.connection.commit()
        self.committed = copy.deepcopy(self.model)

    @rule(roll_back=st.booleans())
    def crash(self, *, roll_back: bool) -> None:
        """Drop memory and everything that was not committed."""
        if roll_back:
            self.connection.rollback()
        else:
            self.connection.close()
            self.connection = sqlite3.connect(self.path / "state.db", isolation_level=None)
        self.store = UrlStore(self.connection, epoch=1, image=self.path / "urls")
        if not self._saved_now():
            self.committed.in_order_of_ids()
        self.model = copy.deepcopy(self.committed)

    @precondition(lambda self: not self.connection.in_transaction)
    @rule()
    def save(self) -> None:
        """Prepare a clean end."""
        self.store.save_snapshot(self.path / "urls")
        self.saved_turn = self._turn()

    @invariant()
    def numbers_agree(self) -> None:
        """Check that every URL is in one place, and that both agree on it."""
        counts = self.store.get_counts()
        assert counts.known == len(self.model.urls) == counts.waiting + counts.leased + len(self.model.fates)
        assert counts.leased == len(self.model.leases)
        fates = list(self.model.fates.values())
        assert (counts.fetched, counts.refused, counts.failed) == tuple(fates.count(fate) for fate in UrlState)

    @invariant()
    def hosts_agree(self) -> None:
        """Check that each host has as many waiting URLs as in the model, and that idle hosts are not listed."""
        waiting = {host: sum(len(ids) for _, ids in self.model.waiting(host)) for host in HOSTS}
        assert {host: self.store.count_waiting(id_) for host, id_ in self.ids.items()} == waiting
        assert self.store.hosts_with_work().tolist() == [self.ids[host] for host in HOSTS if waiting[host]]

    def teardown(self) -> None:
        """Delete the folder."""
        self.connection.close()
        self.folder.cleanup()

    saved_turn = -1

    def _turn(self) -> int:
        return int(self.connection.execute("SELECT turn FROM turn").fetchone()[0])

    def _saved_now(self) -> bool:
        return self._turn() == self.saved_turn

    def _leased_to(self, worker: int, ids: set[int]) -> list[int]:
        return sorted(id_ for id_, (owner, _) in self.model.leases.items() if owner == worker and id_ in ids)


KnownUrls.TestCase.settings = settings(stateful_step_count=40)
TestKnownUrls = KnownUrls.TestCase
