"""Trap filter of the coordinator: hold back first fetches of crawler traps and of duplicate URL spellings.

A URL that is *held* is fetched later: when its host has yielded more, when similar pages have proved better, or, as a
*trial*, when its host has nothing else to fetch. Until then it counts as refused, with a visible reason. Only URLs
shown to be endless stay held. The operator can override either judgment by URL.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from vedette.discover.urls.duplicate_rules import CopyRule, CopyRules
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import CrawlCounts, HostState
from vedette.engine.coordinator.url_states import LAST_FRONT
from vedette.engine.ports import CrawlStore, UrlFrontier
from vedette.frontier.pattern_yield import FetchAccount, FetchYield
from vedette.frontier.traps import PERMIT, Deferral, Refuse, TrapDetector, get_authority
from vedette.model import Refusal, Site

# How many held-back URLs are tried before the next verdict; more if none of them will cost a request.
RELEASE_BATCH = 8
COVERED_BATCH = 256
MAX_TRIALS = 32
SCHEMES = ("https", "http")
# URLs fetched to check duplicate rules wait separately from those that the rules cover.
CHECK_SUFFIX = "check"


class Hold(NamedTuple):
    """Verdict of the trap filter: hold a URL back for now; ``place`` is the pattern it waits for."""

    why: str
    place: str


class Spared(NamedTuple):
    """Verdict of the trap filter: never fetch this URL; fetch the replacement instead, if there is one."""

    refusal: Refusal
    why: str
    substitute: str | None = None


class LearnedRules(Protocol):
    """Port to the learned duplicate URL rules, for the trap filter."""

    copy_rules: CopyRules

    def find_fetched_bare(self, url: str) -> CopyRule | None:
        """Find the rule by which an unseen URL is a page that was fetched without its ending."""
        ...


class TrapFilter:
    """Decide which unseen URLs are traps or duplicate spellings, by trap accounts and duplicate rules."""

    def __init__(self, copies: LearnedRules) -> None:
        self.traps = TrapDetector()
        self.changed_hosts: dict[str, None] = {}
        self.learned = copies
        self._out: dict[int, FetchAccount] = {}

    def trust_starts(self, sites: Sequence[Site]) -> None:
        """Register start URLs as trusted: the operator named them, even if a crash lost that."""
        for site in sites:
            self.traps.add_url(site.start, None, is_named=False)

    def judge(self, url: str, site: Site, *, is_trial: bool = False) -> Hold | Spared | None:
        """Return why an unseen URL should not be fetched now, as a trap or duplicate; None if it may.

        ``is_trial`` means that nothing else waits.
        """
        rule, learned = None, self.learned.copy_rules
        if learned.rules and "copy" not in site.overrule:
            target, rule = learned.apply(url)
            if rule is not None and target != url:
                return Spared(Refusal.COPY, f"{Refusal.COPY}: {rule}", target)
            ending_rule = self.learned.find_fetched_bare(url)
            if ending_rule is not None:
                return Spared(Refusal.COPY, f"{Refusal.COPY}: {ending_rule}")
        if "trap" in site.overrule:
            return None
        verdict = self.traps.judge_url(url, is_idle=is_trial)
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

    def plan_trials(self, held: Mapping[str, int]) -> dict[str, int]:
        """Plan trials of held-back URLs for a host with nothing else to fetch: how many of each pattern.

        Patterns tried least come first; patterns shown to be endless are not tried.
        """
        planned: dict[str, int] = {}
        used: Counter[str] = Counter()
        limits = {place: self.traps.list_trials(*place.split(" ")[:2]) for place in held}
        for place in sorted(held, key=lambda place: min(limit for _, limit in limits[place])):
            name, pattern, *_ = place.split(" ")
            room = min(limit - used[account] for account, limit in limits[place])
            count = min(held[place], room, MAX_TRIALS - used.total())
            if count > 0 and self.traps.judge_pattern(name, pattern, is_idle=True) is PERMIT:
                planned[place] = count
                used.update(dict.fromkeys([account for account, _ in limits[place]], count))
        return planned

    def _is_covered(self, name: str, pattern: str) -> bool:
        """Check whether duplicate rules map URLs of a held-back pattern to other URLs."""
        learned = self.learned.copy_rules
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


class HeldBack:
    """Release URLs that the trap filter held back: those that may be worth a fetch by now, and trials.

    ``has_news`` means that results arrived since quiet hosts were last checked.
    """

    def __init__(
        self, trap_filter: TrapFilter, hosts: HostTable, urls: UrlFrontier, store: CrawlStore, tally: CrawlCounts
    ) -> None:
        self._trap_filter = trap_filter
        self._hosts = hosts
        self._urls = urls
        self._store = store
        self._tally = tally
        self.has_news = True

    def release(self, host: HostState, *, can_try: bool) -> None:
        """Requeue held-back URLs of a host that may now be worth a fetch, else some as trials."""
        if not host.held_back:
            return
        overruled = any("trap" in site.overrule for site in self._hosts.sites.find_by_host(host.name))
        for place in list(host.held_back):
            most = RELEASE_BATCH if overruled else self._trap_filter.count_releasable(place)
            if most:
                self._requeue(host, place, most)
        self.try_some(host, can_try=can_try)

    def try_some(self, host: HostState, *, can_try: bool) -> None:
        """Requeue some held-back URLs of a host with nothing else to fetch as trials, unless there is a budget."""
        waits, rules = self._hosts.has_waiting(host) and not host.is_blocked, self._hosts.rules
        if host.in_flight or not host.held_back or waits or not can_try or rules.budget_per_s or rules.only_requested:
            return
        for place, count in self._trap_filter.plan_trials(host.held_back).items():
            host.trials.update(dict.fromkeys(self._requeue(host, place, count)))

    def try_quiet_hosts(self, *, can_try: bool) -> None:
        """Try held-back URLs of quiet hosts, once no host has anything else to fetch but hosts in trouble."""
        if not self.has_news or any(host.busy or not host.trouble for host in self._hosts.list_unfinished()):
            return
        self.has_news = False
        for host in self._hosts.by_name.values():
            if host.held_back:
                self.try_some(host, can_try=can_try)
                self._hosts.enqueue(host)

    def _requeue(self, host: HostState, place: str, most: int) -> list[int]:
        ids = list(self._store.release_urls(host.id, place, most))
        host.held_back[place] -= len(ids)
        self._tally.refusals[Refusal.TRAP] -= len(ids)
        if host.held_back[place] <= 0 or not ids:
            del host.held_back[place]
        self._urls.requeue(ids, priority=LAST_FRONT)
        host.paused_until_s, host.is_blocked = 0.0, False
        return ids
