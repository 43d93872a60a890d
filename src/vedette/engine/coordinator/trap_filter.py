"""What is not worth a first fetch: places without end, and other spellings of known pages.

A URL that is *held* may come to be asked for later, when its host has brought more or pages like it have proved better;
until then it counts as refused, for a reason that can be read. An operator who knows a site better overrules either
judgement by name.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from vedette.discover.urls.duplicate_rules import CopyRules
from vedette.frontier.pattern_yield import FetchAccount
from vedette.frontier.traps import PERMIT, Deferral, FetchYield, Refuse, TrapDetector, get_authority
from vedette.model import Refusal, Site

# So many of what was held back are tried before the next verdict; more where not one request will come of it.
RELEASE_BATCH = 8
COVERED_BATCH = 256
# What was held back waits in the last front queue.
LAST_FRONT = 7
SCHEMES = ("https", "http")
# What is fetched to check the rules about copies waits apart from what they cover.
CHECK_SUFFIX = "check"


class Hold(NamedTuple):
    """Not now; ``place`` is what it waits for, together with others like it."""

    why: str
    place: str


class Spared(NamedTuple):
    """Never; in its place another URL is asked for, where there is one."""

    refusal: Refusal
    why: str
    substitute: str | None = None


class LearnedRules(Protocol):
    """Where the rules about copies are, as far as they were learned."""

    copy_rules: CopyRules


class TrapFilter:
    """The accounts of traps, and the spellings that were learned."""

    def __init__(self, copies: LearnedRules) -> None:
        self.traps = TrapDetector()
        self.changed_hosts: dict[str, None] = {}
        self._copies = copies
        self._out: dict[int, FetchAccount] = {}

    def judge(self, url: str, site: Site) -> Hold | Spared | None:
        """Why a URL that was never fetched is not to be fetched now; None where it may."""
        rule = None
        if "copy" not in site.overrule:
            target, rule = self._copies.copy_rules.apply(url)
            if rule is not None and target != url:
                return Spared(Refusal.COPY, f"{Refusal.COPY}: {rule}", target)
        if "trap" in site.overrule:
            return None
        verdict = self.traps.judge_url(url)
        if isinstance(verdict, Deferral):
            place = f"{get_authority(url)} {verdict.pattern}"
            return Hold(f"{Refusal.TRAP}: {verdict.reason}", place if rule is None else f"{place} {CHECK_SUFFIX}")
        return Spared(Refusal.TRAP, f"{Refusal.TRAP}: {verdict.reason}") if isinstance(verdict, Refuse) else None

    def is_saturated(self, authorities: Iterable[str]) -> bool:
        """Whether these are hosts that were never tried, of a domain that has too many poor ones already."""
        hosts = {name: self.traps.hosts.get(name) for name in authorities}
        tried = any(host is not None and host.is_tried for host in hosts.values())
        return not tried and any(isinstance(self.traps.judge_pattern(name, "/"), Deferral) for name in hosts)

    def count_releasable(self, place: str) -> int:
        """How many of those that wait there may be judged anew: they proved better, or are but other spellings."""
        name, pattern, *check = place.split(" ")
        if not check and self._is_covered(name, pattern):
            return COVERED_BATCH
        return RELEASE_BATCH if self.traps.judge_pattern(name, pattern) is PERMIT else 0

    def _is_covered(self, name: str, pattern: str) -> bool:
        """Whether rules about copies lead from URLs of a pattern, which is spelled like one of them, to others."""
        learned = self._copies.copy_rules
        return bool(learned.rules) and any(
            learned.find_covering(f"{scheme}://{name}{pattern}")[1] for scheme in SCHEMES
        )

    def on_request(self, id_: int, url: str) -> None:
        """A first request is under way."""
        self._out[id_] = self.traps.on_request(url)

    def on_result(self, id_: int, brought: FetchYield) -> None:
        """What a first request brought; later ones do not count."""
        account = self._out.pop(id_, None)
        if account is not None:
            self.traps.on_result(account, brought)
            self.changed_hosts[account.host.name] = None

    def on_dropped(self, ids: Iterable[int]) -> None:
        """Nothing came of these requests."""
        for id_ in ids:
            account = self._out.pop(id_, None)
            if account is not None:
                self.traps.on_dropped(account)
