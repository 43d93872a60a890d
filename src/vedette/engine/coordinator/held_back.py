"""What was held back as a likely trap, and when it waits again."""

from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.state import KeptHost, Tally
from vedette.engine.coordinator.trap_filter import RELEASED, Thrift
from vedette.engine.ports import Book, Urls
from vedette.model import Refusal

__all__ = ["HeldBack"]

LAST_FRONT = 7


class HeldBack:
    """The URLs of hosts that are held back, place by place; ``thrift`` judges which places have proved better."""

    def __init__(self, hosts: Hosts, urls: Urls, book: Book, thrift: Thrift, tally: Tally) -> None:
        self._hosts = hosts
        self._urls = urls
        self._book = book
        self._thrift = thrift
        self._tally = tally

    def release(self, host: KeptHost) -> None:
        """What was held back and may be worth a fetch by now, or in the operator's eyes, waits again."""
        if not host.held:
            return
        overruled = any("trap" in site.overrule for site in self._hosts.sites.of_host(host.name))
        for place in list(host.held):
            most = RELEASED if overruled else self._thrift.releasable(place)
            if not most:
                continue
            ids = self._book.release(host.id, place, most)
            host.held[place] -= len(ids)
            self._tally.refusals[Refusal.TRAP] -= len(ids)
            if host.held[place] <= 0 or not ids:
                del host.held[place]
            self._urls.again(ids, priority=LAST_FRONT)
            host.paused_s = 0.0
