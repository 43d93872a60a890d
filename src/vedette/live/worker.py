"""One worker: carries out what the ring decides, and tells it what came of it.

The loop never waits for a host. It sleeps until an answer comes, a name is resolved, or the earliest host may be asked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from vedette.edges.clock import Clock
from vedette.edges.dns import Resolver
from vedette.edges.http import Client
from vedette.ring.crawl import idle, next_s, step, stuck
from vedette.ring.events import Begin, Came, Command, Event, Named, Resolve, Send, Tick
from vedette.ring.state import Crawl
from vedette.ring.store import Store

__all__ = ["Ending", "Worker"]

COMMIT_EVERY_S = 0.5
LONGEST_SLEEP_S = 0.1

Ending = Literal["done", "stopped", "stuck"]


@dataclass(slots=True)
class Worker:
    """A crawl and the outside things that it needs. ``look`` is called several times a second while it runs.

    ``linger`` keeps it running when nothing is left to ask for; ``patience_s`` is how long (world time) it waits for
    hosts in trouble when nothing else is left.
    """

    crawl: Crawl
    clock: Clock
    client: Client
    resolver: Resolver
    store: Store
    concurrency: int = 256
    patience_s: float = 300.0
    linger: bool = False
    look: Callable[[Crawl], None] = lambda _: None
    stopping: bool = field(default=False, init=False)
    _committed_s: float = field(default=0.0, init=False)

    def run(self) -> Ending:
        """Until nothing is left, ``stop`` is called, or only hosts in trouble are left."""
        self.client.watch(self.resolver.fd, self.resolver.drain)
        self._tell(Begin(self.store.known()))
        while True:
            self._tell(Tick(self.concurrency - self.client.in_flight))
            ending = self._ending()
            self._settle(now=ending is not None)
            if ending is not None:
                return ending
            for event in self._wait():
                self._tell(event)

    def stop(self) -> None:
        """End soon; what is on its way is abandoned and stays to be fetched."""
        self.stopping = True

    def close(self) -> None:
        """Let go of sockets and store; what was kept is committed."""
        self.client.close()
        self.resolver.close()
        self.store.close()

    def _ending(self) -> Ending | None:
        if self.stopping:
            return "stopped"
        if self.linger or self.resolver.pending:
            return None
        if idle(self.crawl):
            return "done"
        return "stuck" if stuck(self.crawl, self.clock.now(), self.patience_s) else None

    def _tell(self, event: Event) -> None:
        for command in step(self.crawl, event, self.clock.now()):
            self._carry_out(command)

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, Send):
            self.client.submit(command.ask, command.route)
        elif isinstance(command, Resolve):
            self.resolver.ask(command.host)
        else:
            self.store.keep((command,))

    def _wait(self) -> Iterator[Event]:
        ready_s = next_s(self.crawl)
        pause_s = LONGEST_SLEEP_S
        if ready_s is not None and self.client.in_flight < self.concurrency:
            pause_s = min(max(self.clock.wall_delay(ready_s - self.clock.now()), 0.0), LONGEST_SLEEP_S)
        for outcome in self.client.wait(pause_s):
            yield Came(outcome)
        for lookup in self.resolver.answers():
            yield Named(lookup.host, lookup.addresses, lookup.failure)

    def _settle(self, *, now: bool) -> None:
        """Commit and let somebody look, often enough for people and seldom enough for the disk."""
        wall_s = self.clock.wall()
        if now or wall_s - self._committed_s >= COMMIT_EVERY_S:
            self._committed_s = wall_s
            self.store.commit()
        self.look(self.crawl)
