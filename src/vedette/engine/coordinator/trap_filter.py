"""What is not worth a first fetch: places without end, and other spellings of known pages.

A URL that is *held* may come to be asked for later, when its host has brought more or pages like it have proved better;
until then it counts as refused, for a reason that can be read. An operator who knows a site better overrules either
judgement by name.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from vedette.discover.urls.duplicate_rules import Learned
from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.state import KeptHost, Tally
from vedette.engine.ports import Book, Urls
from vedette.frontier.pattern_yield import Account
from vedette.frontier.traps import GO, Brought, Later, Refuse, Traps, authority_of
from vedette.model import Refusal, Site

__all__ = ["RELEASED", "Held", "HeldBack", "Spared", "Thrift"]

# So many of what was held back are tried before the next verdict; more where not one request will come of it.
RELEASED = 8
COVERED = 256
SCHEMES = ("https", "http")
# What is fetched to check the rules about copies waits apart from what they cover.
CHECK = "check"


class Held(NamedTuple):
    """Not now; ``place`` is what it waits for, together with others like it."""

    why: str
    place: str


class Spared(NamedTuple):
    """Never; in its place another URL is asked for, where there is one."""

    refusal: Refusal
    why: str
    instead: str | None = None


class Thrift:
    """The accounts of traps, and the spellings that were learned."""

    def __init__(self, learned: Callable[[], Learned]) -> None:
        self.traps = Traps()
        self.changed: dict[str, None] = {}
        self._learned = learned
        self._out: dict[int, Account] = {}

    def found(self, url: str, source: str | None, *, is_named: bool) -> None:
        """An unseen URL was found on a page, or named by a sitemap or feed, or (without source) by the operator."""
        self.traps.found(url, source, is_named=is_named)

    def judged(self, url: str, site: Site) -> Held | Spared | None:
        """Why a URL that was never fetched is not to be fetched now; None where it may."""
        rule = None
        if "copy" not in site.overrule:
            target, rule = self._learned().apply(url)
            if rule is not None and target != url:
                return Spared(Refusal.COPY, f"{Refusal.COPY}: {rule}", target)
        if "trap" in site.overrule:
            return None
        verdict = self.traps.verdict(url)
        if isinstance(verdict, Later):
            place = f"{authority_of(url)} {verdict.pattern}"
            return Held(f"{Refusal.TRAP}: {verdict.reason}", place if rule is None else f"{place} {CHECK}")
        return Spared(Refusal.TRAP, f"{Refusal.TRAP}: {verdict.reason}") if isinstance(verdict, Refuse) else None

    def is_closed(self, authorities: Iterable[str]) -> bool:
        """Whether these are hosts that were never tried, of a domain that has too many poor ones already."""
        hosts = {name: self.traps.hosts.get(name) for name in authorities}
        tried = any(host is not None and host.is_tried for host in hosts.values())
        return not tried and any(isinstance(self.traps.standing(name, "/"), Later) for name in hosts)

    def releasable(self, place: str) -> int:
        """How many of those that wait there may be judged anew: they proved better, or are but other spellings."""
        name, pattern, *check = place.split(" ")
        if not check and self._is_covered(name, pattern):
            return COVERED
        return RELEASED if self.traps.standing(name, pattern) is GO else 0

    def _is_covered(self, name: str, pattern: str) -> bool:
        """Whether rules about copies lead from URLs of a pattern, which is spelled like one of them, to others."""
        learned = self._learned()
        return bool(learned.rules) and any(learned.covering(f"{scheme}://{name}{pattern}")[1] for scheme in SCHEMES)

    def went(self, id_: int, url: str) -> None:
        """A first request is under way."""
        self._out[id_] = self.traps.went(url)

    def came(self, id_: int, brought: Brought) -> None:
        """What a first request brought; later ones do not count."""
        account = self._out.pop(id_, None)
        if account is not None:
            self.traps.came(account, brought)
            self.changed[account.host.name] = None

    def dropped(self, ids: Iterable[int]) -> None:
        """Nothing came of these requests."""
        for id_ in ids:
            account = self._out.pop(id_, None)
            if account is not None:
                self.traps.dropped(account)


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
