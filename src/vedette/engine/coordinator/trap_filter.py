"""Trap filter of the coordinator: hold back first fetches of crawler traps and of duplicate URL spellings.

A URL that is *held* may be fetched later, when its host has brought more or pages like it have proved better; until
then it counts as refused, for a reason that can be read. An operator who knows a site better overrules either judgment
by name.
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
    """Verdict of the trap filter: hold a URL back for now; ``place`` is the pattern that it waits for."""

    why: str
    place: str


class Spared(NamedTuple):
    """Verdict of the trap filter: never fetch this URL; fetch another in its place, where there is one."""

    refusal: Refusal
    why: str
    substitute: str | None = None


class LearnedRules(Protocol):
    """Port to the learned duplicate URL rules, for the trap filter."""

    copy_rules: CopyRules


class TrapFilter:
    """Decide which unseen URLs are traps or duplicate spellings, by trap accounts and duplicate rules."""

    def __init__(self, copies: LearnedRules) -> None:
        self.traps = TrapDetector()
        self.changed_hosts: dict[str, None] = {}
        self._copies = copies
        self._out: dict[int, FetchAccount] = {}

    def judge(self, url: str, site: Site) -> Hold | Spared | None:
        """Return why an unseen URL should not be fetched now, as a trap or duplicate; None where it may."""
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
        """Check whether untried hosts belong to a domain that already has too many poor ones (host trap)."""
        hosts = {name: self.traps.hosts.get(name) for name in authorities}
        tried = any(host is not None and host.is_tried for host in hosts.values())
        return not tried and any(isinstance(self.traps.judge_pattern(name, "/"), Deferral) for name in hosts)

    def count_releasable(self, place: str) -> int:
        """Count how many held-back URLs of a pattern may be judged again.

        They proved better, or are only other spellings.
        """
        name, pattern, *check = place.split(" ")
        if not check and self._is_covered(name, pattern):
            return COVERED_BATCH
        return RELEASE_BATCH if self.traps.judge_pattern(name, pattern) is PERMIT else 0

    def _is_covered(self, name: str, pattern: str) -> bool:
        """Check whether duplicate rules map URLs of a held-back pattern to other URLs."""
        learned = self._copies.copy_rules
        return bool(learned.rules) and any(
            learned.find_covering(f"{scheme}://{name}{pattern}")[1] for scheme in SCHEMES
        )

    def on_request(self, id_: int, url: str) -> None:
        """Record in the trap accounts that a first fetch was started."""
        self._out[id_] = self.traps.on_request(url)

    def on_result(self, id_: int, brought: FetchYield) -> None:
        """Record what a first fetch yielded in the trap accounts; later fetches do not count."""
        account = self._out.pop(id_, None)
        if account is not None:
            self.traps.on_result(account, brought)
            self.changed_hosts[account.host.name] = None

    def on_dropped(self, ids: Iterable[int]) -> None:
        """Record in the trap accounts that first fetches were dropped without a result."""
        for id_ in ids:
            account = self._out.pop(id_, None)
            if account is not None:
                self.traps.on_dropped(account)
