"""DNS resolver: the system's resolver in threads, so that a slow name server delays nothing but its own names."""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from queue import SimpleQueue
from threading import Lock, Thread

from vedette.model import Failure

_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


@dataclass(frozen=True, slots=True)
class Lookup:
    """Result of a DNS lookup: the addresses in the resolver's order, or why there are none."""

    host: str
    addresses: tuple[str, ...]
    failure: Failure | None = None


def resolve_host(host: str) -> Lookup:
    """Resolve a host name from a URL to its addresses by DNS; blocks as long as the system's resolver does."""
    literal = host.strip("[]")
    try:
        return Lookup(host, (str(ip_address(literal)),))
    except ValueError:
        pass
    # RFC 6761: .invalid never exists, whatever a resolver says; and a resolver would stop reading at a NUL.
    if literal.rstrip(".").lower().rpartition(".")[2] == "invalid" or "\0" in literal:
        return Lookup(host, (), Failure.NAME)
    try:
        found = socket.getaddrinfo(literal, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return Lookup(host, (), Failure.NAME if error.errno in _NO_SUCH_NAME else Failure.RESOLVER)
    except (OSError, ValueError):  # such as a label of more than 63 characters
        return Lookup(host, (), Failure.NAME)
    return Lookup(host, tuple(dict.fromkeys(str(entry[4][0]) for entry in found)))


class Resolver:
    """Runs DNS lookups in parallel; ``fd`` is readable when answers are waiting.

    The threads are daemons: a name server that never responds must not keep the program from exiting.
    """

    def __init__(self, threads: int = 16) -> None:
        self._names: SimpleQueue[str | None] = SimpleQueue()
        self._answers: SimpleQueue[Lookup] = SimpleQueue()
        self._threads = threads
        self._lock = Lock()
        self._closed = False
        self._started = 0
        self.pending = 0
        self.fd = os.eventfd(0, os.EFD_NONBLOCK)

    def submit(self, host: str) -> None:
        """Start a DNS lookup; ``take_answers`` returns its answer once."""
        self.pending += 1
        self._names.put(host)
        if self._started < min(self.pending, self._threads):
            self._started += 1
            Thread(target=self._run_worker, name=f"resolver-{self._started}", daemon=True).start()

    def take_answers(self) -> list[Lookup]:
        """Return the DNS answers since the last call."""
        found: list[Lookup] = []
        while not self._answers.empty():
            found.append(self._answers.get())
        self.pending -= len(found)
        return found

    def drain(self) -> None:
        """Reset the DNS resolver's ``fd`` after it became readable."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.fd)

    def close(self) -> None:
        """Abandon the running DNS lookups."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self.fd)
        for _ in range(self._started):
            self._names.put(None)

    def _run_worker(self) -> None:
        while (host := self._names.get()) is not None and not self._closed:
            answer = resolve_host(host)
            with self._lock:
                if not self._closed:
                    self._answers.put(answer)
                    os.eventfd_write(self.fd, 1)
