"""HTTP, by libcurl's multi interface over epoll: one thread, hundreds of hosts, no waiting for any of them.

Redirects are not followed, cookies not kept, proxies of the environment not used: what a request does was decided
before it came here. Each request is pinned to an address that was resolved, checked and scheduled beforehand; a
connection that would go anywhere else is not opened.
"""

import select
import time
from collections.abc import Callable

import pycurl

from vedette.adapters.clock import Clock
from vedette.adapters.net.http_handles import Limits, Roots, Way, aim, fresh_handle, pin, unsendable
from vedette.adapters.net.http_transfer import Transfer
from vedette.fetch.connect_to import Route
from vedette.model import Ask, Failure, Outcome

__all__ = ["Client", "Limits", "Way"]

_DIRECT = Way()


class Client:
    """Submit asks, wait, and collect outcomes. Every ask has exactly one outcome."""

    def __init__(self, clock: Clock, limits: Limits, way: Way = _DIRECT) -> None:
        self._clock = clock
        self._limits = limits
        self._way = way
        self._roots = Roots(way.ca_file)
        self._multi = pycurl.CurlMulti()
        self._poll = select.epoll()
        self._timer_s: float | None = None
        self._idle: list[pycurl.Curl] = []
        self._transfers: dict[pycurl.Curl, Transfer] = {}
        self._refused: list[Outcome] = []
        self._watched: dict[int, Callable[[], object]] = {}
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    @property
    def in_flight(self) -> int:
        """How many asks have no outcome yet."""
        return len(self._transfers) + len(self._refused)

    def watch(self, fd: int, on_ready: Callable[[], object]) -> None:
        """Wake up when this descriptor can be read, too."""
        self._watched[fd] = on_ready
        self._poll.register(fd, select.EPOLLIN)

    def submit(self, ask: Ask, route: Route) -> None:
        """Send a request to a pinned address; one that cannot be written down comes back from the next ``wait``."""
        transfer = Transfer(ask, route, self._limits, self._clock.now())
        if why := unsendable(ask):
            self._refused.append(transfer.failed(Failure.PROTOCOL, why, transfer.started_s))
            return
        curl = self._idle.pop() if self._idle else fresh_handle(self._limits, self._way, self._roots)
        aim(curl, ask)
        if not self._way.proxy:
            pin(curl, route, transfer.open_socket)
        self._receive(curl, transfer)
        self._transfers[curl] = transfer
        self._multi.add_handle(curl)

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Let things happen for at most this long (wall time); whatever came to an end meanwhile."""
        if self._refused:
            timeout_s = 0.0
        until_timer_s = timeout_s if self._timer_s is None else max(self._timer_s - time.monotonic(), 0.0)
        for fd, events in self._poll.poll(min(timeout_s, until_timer_s)):
            if fd in self._watched:
                self._watched[fd]()
            else:
                self._multi.socket_action(fd, _to_curl(events))
        if self._timer_s is not None and self._timer_s <= time.monotonic():
            self._timer_s = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._collect()

    def close(self) -> None:
        """Abandon what is on its way; the sockets are closed."""
        for curl in [*self._transfers, *self._idle]:
            if curl in self._transfers:
                self._multi.remove_handle(curl)
            curl.close()
        self._transfers.clear()
        self._refused.clear()
        self._idle.clear()
        self._multi.close()
        self._poll.close()
        self._roots.close()

    def _receive(self, curl: pycurl.Curl, transfer: Transfer) -> None:
        robots = transfer.ask.purpose == "robots"
        curl.setopt(pycurl.HEADERFUNCTION, transfer.take_head)
        curl.setopt(pycurl.WRITEFUNCTION, transfer.take_beginning if robots else transfer.body.extend)
        curl.setopt(pycurl.MAXFILESIZE_LARGE, 0 if robots else self._limits.body_bytes)

    def _on_socket(self, what: int, fd: int, *_: object) -> None:
        if what == pycurl.POLL_REMOVE:
            # The descriptor may be closed already; epoll forgets it by itself then.
            _quietly(self._poll.unregister, fd)
            return
        events = _to_epoll(what)
        if not _quietly(self._poll.modify, fd, events):
            self._poll.register(fd, events)

    def _on_timer(self, timeout_ms: int) -> None:
        self._timer_s = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000

    def _collect(self) -> list[Outcome]:
        outcomes, self._refused = self._refused, []
        more = 1
        while more:
            more, good, bad = self._multi.info_read(256)
            outcomes += [self._finish(curl, None, "") for curl in good]
            outcomes += [self._finish(curl, code, text) for curl, code, text in bad]
        return outcomes

    def _finish(self, curl: pycurl.Curl, code: int | None, text: str) -> Outcome:
        self._multi.remove_handle(curl)
        transfer = self._transfers.pop(curl)
        outcome = transfer.outcome(curl, code, text, self._clock.now())
        # The idle handle still refers to both, until its next request.
        transfer.head.clear()
        transfer.body.clear()
        self._idle.append(curl)
        return outcome


def _to_curl(events: int) -> int:
    return (
        (pycurl.CSELECT_IN if events & (select.EPOLLIN | select.EPOLLHUP) else 0)
        | (pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0)
        | (pycurl.CSELECT_ERR if events & select.EPOLLERR else 0)
    )


def _to_epoll(what: int) -> int:
    return (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)


def _quietly(call: Callable[..., object], *arguments: int) -> bool:
    try:
        call(*arguments)
    except OSError:
        return False
    return True
