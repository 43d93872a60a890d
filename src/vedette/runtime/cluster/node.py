"""A node of a cluster: claim shards, run a process tree for each, renew their leases, and release them in time.

The node opens a connection to PostgreSQL for each renewal, so that forked processes inherit no connection. If renewals
fail, fetchers stop sending requests after 70% of the lease by their own clock. When the lease ends, the node stops the
process trees, so that another node finds the data folders unlocked.

If a shard's folder is not on this node, it is restored from its copy first. When a shard stops, it is copied once more
before it is released. Both happen in a separate process, because other shards' leases must be renewed in the meantime.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO
from urllib.parse import quote

from vedette.adapters.crawl_store.data_folder import explain_errors, lock_folder
from vedette.adapters.registry.database import check_clock, connect
from vedette.adapters.registry.directory import publish_gateway
from vedette.adapters.registry.registry import (
    Claim,
    claim_shard,
    find_moves,
    is_draining,
    join_cluster,
    load_cluster,
    load_shards,
    release_shard,
    remove_node,
    renew_leases,
)
from vedette.adapters.registry.resharding import list_splits, refuse_split
from vedette.errors import ClusterError, StoreBusy
from vedette.runtime.cluster.folders import check_storage, find_folders, prepare_folder
from vedette.runtime.cluster.gateway import GatewaySettings
from vedette.runtime.cluster.job import ForkedJob, run_apart
from vedette.runtime.cluster.lease import ShardSettings, SharedLease, read_clock_s
from vedette.runtime.cluster.split import split_shard
from vedette.runtime.processes.run import POLL_INTERVAL_S, Note, request_stop
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.processes.supervisor import Supervisor

BEATS_PER_LEASE = 5


@dataclass(slots=True)
class _Running:
    """A shard that this node has claimed.

    ``job`` prepares its folder. Then ``tree`` runs, with the folder locked. After that, ``job`` copies what is new.
    """

    claim: Claim
    lease: SharedLease
    job: ForkedJob | None = None
    tree: Supervisor | None = None
    lock: IO[str] | None = None
    is_stopping: bool = False
    is_splitting: bool = False
    stopped_s: float = 0.0

    @property
    def has_stopped(self) -> bool:
        """Whether a stopping tree has ended, or has had enough time to end."""
        return self.is_stopping and self.tree is not None and (not self.tree.is_alive or self.tree.is_over)


class Node:
    """A node that runs up to ``most`` shards of a cluster, each in its own folder inside ``settings.folder``."""

    def __init__(
        self, settings: RuntimeSettings, dsn: str, name: str, most: int, on_note: Note, host: str = "127.0.0.1"
    ) -> None:
        self._settings, self._dsn, self._name, self._most, self._on_note = settings, dsn, name, most, on_note
        self._host = host
        with connect(dsn) as connection:
            check_clock(connection)
            cluster = load_cluster(connection)
            find_folders(settings.folder, cluster)
        if cluster.storage:
            run_apart(lambda: check_storage(cluster), ClusterError)
        with connect(dsn) as connection:
            self.cluster = join_cluster(connection, name, most)
        self._running: dict[int, _Running] = {}
        self._gateway: tuple[Supervisor, IO[str]] | None = None
        self._trouble = self._shard_trouble = ""
        self._is_draining = False

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Run shards until the node is stopped or drained, then release them."""
        beat_s = self.cluster.lease_s / BEATS_PER_LEASE
        next_s = 0.0
        self._start_gateway()
        while not (is_over := is_stopped() or self._is_draining) or self._running:
            if is_over:
                for one in self._running.values():
                    self._begin_stop(one)
            if read_clock_s() >= next_s:
                has_claimed = self._beat(can_claim=not is_over)
                next_s = 0.0 if has_claimed else read_clock_s() + beat_s
            for one in list(self._running.values()):
                self._tend(one)
            if self._gateway is not None:
                for event in self._gateway[0].restart_dead():
                    self._on_note(f"gateway: {event}")
            time.sleep(POLL_INTERVAL_S)  # the processes do the work; this looks after them
        self._stop_gateway()
        with suppress(ClusterError), connect(self._dsn) as connection:
            remove_node(connection, self._name)

    def _beat(self, *, can_claim: bool) -> bool:
        """Renew the leases, give up lost shards, and claim a shard without an owner; return whether there was one."""
        try:
            self._renew()
            if self._trouble:
                self._on_note("PostgreSQL responds again")
            self._trouble = ""
            return can_claim and len(self._running) < self._most and self._claim()
        except ClusterError as error:
            if self._trouble != str(error):
                self._on_note(f"{error}; shards pause until it responds")
            self._trouble = str(error)
            return False

    def _renew(self) -> None:
        asked_s, claims = read_clock_s(), [one.claim for one in self._running.values()]
        with connect(self._dsn) as connection:
            owned = renew_leases(connection, self._name, claims, self.cluster.lease_s)
            moves, splits = find_moves(connection, self._name), list_splits(connection, self._name)
            self._is_draining = is_draining(connection, self._name)
        for claim in claims:
            if claim.shard in owned:
                self._running[claim.shard].lease.extend(asked_s, self.cluster.lease_s)
            one = self._running[claim.shard]
            if claim.shard in splits and one.tree is not None and not one.is_stopping:
                one.is_splitting = True
            if claim.shard not in owned or claim.shard in moves or one.is_splitting:
                self._begin_stop(one)

    def _claim(self) -> bool:
        """Claim a shard, if one is free, and start it; return whether there was one."""
        running = {one.claim.folder for one in self._running.values()}
        folders, asked_s = find_folders(self._settings.folder, self.cluster), read_clock_s()
        with connect(self._dsn) as connection:
            self.cluster = self.cluster._replace(shards=load_shards(connection))
            claim = claim_shard(
                connection,
                self._name,
                folders.keys() - running,
                self.cluster.lease_s,
                can_restore=bool(self.cluster.storage),
                running=self._running.keys(),
            )
        if claim is None:
            return False
        one = self._running[claim.shard] = _Running(claim, SharedLease())
        one.lease.extend(asked_s, self.cluster.lease_s)
        if claim.is_local:
            return self._start(one)
        one.job = ForkedJob(lambda: prepare_folder(self._settings.folder, self.cluster, claim))
        return True

    def _start(self, one: _Running) -> bool:
        """Start the tree of a shard whose folder is ready; return whether that was possible."""
        claim, cluster = one.claim, self.cluster
        folder = find_folders(self._settings.folder, cluster)[claim.folder]
        try:
            one.lock = lock_folder(folder, in_cluster=True)
        except StoreBusy:  # its last owner is still stopping
            self._give_up(one)
            return False
        if cluster.storage:
            one.lease.note_copied(read_clock_s())
        shard = ShardSettings(
            claim.shard, claim.epoch, cluster.shards, self._dsn, self._host, one.lease, cluster.storage, claim.copy
        )
        one.tree = Supervisor(replace(self._settings, folder=folder, forever=True, shard=shard, listener=None))
        self._on_note(f"runs shard {claim.shard} of {len(cluster.shards.firsts)} (epoch {claim.epoch})")
        self._shard_trouble = ""
        one.tree.start()
        return True

    def _tend(self, one: _Running) -> None:
        """Restart dead processes of a shard, stop it when its lease has ended, and take its next step."""
        if not one.is_stopping and (one.lease.has_ended() or (one.tree is not None and one.tree.is_over)):
            self._begin_stop(one)
        if one.job is not None:
            self._tend_job(one, one.job)
        elif one.tree is not None:
            for event in one.tree.restart_dead():
                self._on_note(f"shard {one.claim.shard}: {event}")
            if one.has_stopped:
                self._finish(one, one.tree)
        else:
            self._give_up(one)

    def _tend_job(self, one: _Running, job: ForkedJob) -> None:
        error = job.poll()
        if error is None and not one.lease.has_ended():
            return
        if error is None:
            job.kill()
        elif one.is_splitting:
            self._report_split(one, error)
        elif error:
            what = "cannot be taken over" if one.tree is None else "its last changes were not copied"
            self._report(f"shard {one.claim.shard}: {what}: {error}")
        one.job = None
        if one.tree is None and not one.is_stopping and not error:
            self._start(one)
        else:
            self._give_up(one)

    def _report_split(self, one: _Running, error: str) -> None:
        """Report a split; a failed one is not retried until it is requested again."""
        shard, pause_s = one.claim.shard, read_clock_s() - one.stopped_s
        self._on_note(
            f"shard {shard}: cannot be split: {error}" if error else f"shard {shard}: split in {pause_s:.1f} s"
        )
        if error:
            with suppress(ClusterError), connect(self._dsn) as connection:
                refuse_split(connection, shard)

    def _finish(self, one: _Running, tree: Supervisor) -> None:
        """Stop a tree whose time is up, and copy its last changes if this node still owns the shard."""
        tree.stop()
        if one.lease.has_ended():
            self._give_up(one)
            return
        if one.is_splitting:
            one.job = ForkedJob(lambda: split_shard(tree.settings, self.cluster, one.claim))
            return
        if not self.cluster.storage:
            self._give_up(one)
            return
        from vedette.runtime.processes.replicator import finish_copy  # only a cluster with storage needs it

        one.job = ForkedJob(lambda: finish_copy(tree.settings))

    def _begin_stop(self, one: _Running) -> None:
        """Stop the tree of a shard; the shard is released once the tree has stopped and its folder has been copied."""
        if one.is_stopping:
            return
        if one.lease.has_ended():
            self._on_note(f"shard {one.claim.shard}: its lease has ended; stopping it")
        one.is_stopping = True
        if one.tree is not None:
            one.stopped_s = read_clock_s()
            one.tree.set_stop_deadline()
            request_stop(one.tree.settings.folder)
        elif one.job is not None:
            one.job.kill()
            one.job = None

    def prepare_gateway(self) -> Path:
        """Create the data folder of the gateway if there is none; return it."""
        folder = self._settings.folder / f"gateway-{quote(self._name, safe='')}"
        with explain_errors(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def _start_gateway(self) -> None:
        """Start the process tree that serves all shards, if this node is a gateway."""
        listener = self._settings.listener
        if listener is None:
            return
        folder = self.prepare_gateway()
        lock = lock_folder(folder)
        with connect(self._dsn) as connection:
            host, port = listener.getsockname()[:2]
            publish_gateway(connection, self._name, f"{host}:{port}")
        gateway = GatewaySettings(self._dsn, self._name)
        tree = Supervisor(replace(self._settings, folder=folder, forever=True, workers=0, gateway=gateway))
        self._gateway = tree, lock
        tree.start()

    def _stop_gateway(self) -> None:
        if self._gateway is not None:
            tree, lock = self._gateway
            tree.set_stop_deadline()
            request_stop(tree.settings.folder)
            tree.stop()
            lock.close()

    def _give_up(self, one: _Running) -> None:
        if one.lock is not None:
            one.lock.close()
        del self._running[one.claim.shard]
        with suppress(ClusterError), connect(self._dsn) as connection:
            release_shard(connection, one.claim)

    def _report(self, trouble: str) -> None:
        """Report a problem with a shard once, even if the action is retried."""
        if trouble != self._shard_trouble:
            self._on_note(trouble)
        self._shard_trouble = trouble
