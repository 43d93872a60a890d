"""Detect crawler traps: hold URLs back by budgets, given what URLs of the same pattern have brought.

No name of a trap is known here. A calendar, a maze of folders, session ids, sorted copies, mirrors and farms of hosts
have one thing in common: of many fetches few bring anything new. Each pattern of URLs keeps an account
(``pattern_yield``) of fetches made and text brought. One that pays for itself is never held back. One that does not may
owe a little, and all patterns of a host together may owe a small share of what the host has brought; new hosts of a
registrable domain are under the same rule. What is held back is held back for now: the allowance grows as the host
brings good pages.

The coordinator adds unseen URLs (``add_url``), asks for a verdict (``judge_url``), and reports requests and what came
of them (``on_request``, ``on_result``, ``on_dropped``). Only first fetches count.
"""

from dataclasses import dataclass
from typing import Any

from vedette.frontier.pattern_yield import (
    LEAD_DISCOUNT,
    UNREACHED_STEPS,
    FetchAccount,
    HostYield,
    PatternKey,
    PatternYield,
    TrapBudget,
    compute_typical_words,
)
from vedette.frontier.url_patterns import check_shape, coarsen, is_suspicious, to_parameter_pattern, url_to_pattern
from vedette.model import registrable_domain

# By how much a rate, or what is typical of a host, must have moved before others are settled anew.
RATE_STEP = 0.02
TYPICAL_STEP = 0.05
# Shares of the rate at which a pattern just pays: enough to vouch for what it leads to, and what the unknown counts as.
VOUCH_SHARE = 0.5
UNKNOWN_SHARE = 0.4
MIN_WORDS = 10


@dataclass(frozen=True, slots=True)
class Permit:
    """A trap verdict: the URL may be fetched."""


@dataclass(frozen=True, slots=True)
class Deferral:
    """A trap verdict: the URL must wait until its host brought ``good_needed`` good pages, or its pattern improved."""

    reason: str
    good_needed: float
    pattern: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """A trap verdict: the URL is never fetched, for the way in which it is spelled."""

    reason: str


Verdict = Permit | Deferral | Refuse
PERMIT = Permit()


@dataclass(frozen=True, slots=True)
class FetchYield:
    """What a fetch brought, for the trap detector: how many words of main text.

    A copy is a page whose text was known from another URL, or that names another URL as the one to keep.
    """

    words: int = 0
    status: int = 200
    is_copy: bool = False
    is_missing: bool = False

    @property
    def new_words(self) -> int:
        """The words that count for the trap detector: none of a copy, an error, a redirect or a soft 404."""
        return 0 if self.is_copy or self.is_missing or self.status != 200 else self.words

    @property
    def is_wasted(self) -> bool:
        """Whether the fetch brought nothing new; pages with next to no text do not count as copies."""
        return self.is_missing or (self.is_copy and self.words >= MIN_WORDS)

    @property
    def cost(self) -> float:
        """The part of a fetch that is charged to its pattern: a page that is gone says little about similar ones."""
        return 0.25 if self.status >= 400 else 1.0


@dataclass(slots=True, eq=False)
class _Domain:
    """How many hosts of a registrable domain were tried, and how many are poor, against farms of hosts."""

    tried: int = 0
    poor: int = 0


class TrapDetector:
    """The trap detector: the accounts of all URL patterns and hosts of a crawl.

    >>> traps = TrapDetector()
    >>> traps.add_url("https://example.org/", None)
    >>> traps.judge_url("https://example.org/")
    Permit()
    """

    def __init__(self, budget: TrapBudget | None = None) -> None:
        self.budget = budget or TrapBudget()
        self.hosts: dict[str, HostYield] = {}
        self._domains: dict[str, _Domain] = {}
        self._words = self._squares = 0.0

    # what is told

    def add_url(self, url: str, from_url: str | None, *, is_named: bool = False) -> None:
        """Add an unseen URL to the trap detector: a start if no page linked to it, ``is_named`` if a sitemap did."""
        name, is_start = get_authority(url), from_url is None and not is_named
        host = self.hosts.get(name) or self._admit_host(name, is_seeded=is_start)
        if host is None:
            return
        host.is_seeded |= is_start
        place = name, self._register_pattern(host, url_to_pattern(url))
        pattern = host.patterns[place[1]]
        if is_named or is_start:
            pattern.mark_named()
        if from_url is not None and not is_named:
            self._add_link(pattern, place, from_url)

    def on_request(self, url: str) -> FetchAccount:
        """Charge a request under way to its URL pattern; return the account for ``on_result``."""
        account = self._open_account(url)
        if not account.host.is_tried:
            self._count_host(account.host)
        account.add_in_flight(1)
        return account

    def on_dropped(self, account: FetchAccount) -> None:
        """Cancel a request that ended for reasons that say nothing about its URL pattern."""
        account.add_in_flight(-1)

    def on_result(self, account: FetchAccount, brought: FetchYield) -> None:
        """Record what a request announced by ``on_request`` brought to its URL pattern."""
        account.add_in_flight(-1)
        host, words = account.host, min(brought.new_words, self.budget.rich_words)
        host.fetched += 1
        host.wasted += brought.is_wasted
        self._add_words(host, words)
        typical = host.compute_typical(self.budget)
        for pattern in account.patterns:
            before = pattern.debt
            pattern.fetched += brought.cost
            pattern.wasted += brought.is_wasted
            pattern.squares += words * words
            self._settle(pattern, typical)
            if pattern.is_counted:
                host.debt += pattern.debt - before
        self._settle_finders(account.patterns[0])
        if abs(typical - host.settled_words) > TYPICAL_STEP * typical:
            self._settle_all(host)

    # what is asked

    def judge_url(self, url: str) -> Verdict:
        """Judge whether a URL may be fetched now or is held back as a trap; changes nothing."""
        refusal = check_shape(url)
        if refusal:
            return Refuse(refusal)
        return self.judge_pattern(get_authority(url), url_to_pattern(url), url)

    def judge_pattern(self, name: str, pattern: str, url: str = "") -> Verdict:
        """Judge whether a URL of this pattern, or any of them, may be fetched or is held back as a trap."""
        host = self.hosts.get(name)
        if host is None or not host.is_tried:
            closed = self._check_domain(name, host, pattern)
            if closed or host is None:
                return closed or PERMIT
        one = self._find_pattern(host, pattern)
        return PERMIT if one is None or self._is_paying(one) else self._judge_unproven(host, pattern, one, url)

    def _judge_unproven(self, host: HostYield, pattern: str, one: PatternYield, url: str) -> Verdict:
        is_vouched = "?" not in pattern and not is_suspicious(url) and self._is_vouched(one)
        if is_vouched and host.is_seeded and one.fetched + one.in_flight < self.budget.free_tries:
            return PERMIT
        limit = self._compute_limit(host, one, one.fresh_share if one.fetched else float(is_vouched))
        for name, account in ((pattern, one), (to_parameter_pattern(pattern), self._find_parameters(host, pattern))):
            if account and not self._is_paying(account) and account.debt + 1 > limit:
                return self._defer_pattern(host, pattern, name, account, limit)
        credit = self._compute_credit(host) * (1.0 if is_vouched else 0.5)
        if host.debt + 1 > credit and not (one.is_named and one.debt + 1 <= self.budget.named_debt):
            return self._defer_host(host, pattern, credit)
        return PERMIT

    def _is_paying(self, one: PatternYield) -> bool:
        """Check whether one more fetch of a URL pattern, like the earlier ones, would still be paid for."""
        return (
            one.fetched > 0
            and self.budget.fetches_per_page * one.rate * (one.fetched + 1) >= one.fetched + one.in_flight + 1
        )

    def _compute_limit(self, host: HostYield, one: PatternYield, fresh_share: float) -> float:
        start = self.budget.named_debt if one.is_named else self.budget.pattern_debt
        return max(start + self.budget.retry_share * host.good, self._compute_patience(host) * fresh_share)

    def _compute_credit(self, host: HostYield) -> float:
        credit = self.budget.host_debt + self.budget.host_share * host.good
        return max(credit, 2.0 * self._compute_patience(host) * host.fresh_share)

    def _compute_patience(self, host: HostYield) -> float:
        """Compute the trap patience with a named host without rich pages: its pages may all be short."""
        is_proven = (
            host.good >= self.budget.proven_good and host.compute_typical(self.budget) >= self.budget.first_words
        )
        return self.budget.patience if host.is_seeded and not is_proven else 0.0

    def _is_vouched(self, one: PatternYield) -> bool:
        """Check whether a URL pattern is named, near a named one, or found where half of the fetches are repaid."""
        if one.steps <= self.budget.near_steps or not one.finders:
            return True
        finders = (found for found in map(self._find_place, one.finders) if found is not None)
        return any(finder.rate * self.budget.fetches_per_page >= VOUCH_SHARE for finder in finders)

    # reasons

    def _defer_pattern(self, host: HostYield, pattern: str, name: str, one: PatternYield, limit: float) -> Deferral:
        brought = f"{one.fetched:.0f} fetches like {name} brought {one.rate:.0%} of what is typical here"
        missing = (one.debt + 1 - limit) / max(self.budget.retry_share, 1e-9)
        return Deferral(f"a trap by yield: {brought}; {limit:.0f} such may be owed", host.good + missing, pattern)

    def _defer_host(self, host: HostYield, pattern: str, credit: float) -> Deferral:
        missing = (host.debt + 1 - credit) / max(self.budget.host_share, 1e-9)
        owed = f"{host.debt:.0f} fetches of this host brought too little, {credit:.0f} may"
        return Deferral(f"unproven: {owed}; {pattern} waits until more good pages came", host.good + missing, pattern)

    def _check_domain(self, name: str, host: HostYield | None, pattern: str) -> Deferral | None:
        """Check whether no further host of this registrable domain is tried now, against farms of hosts."""
        if host is not None and host.is_seeded:
            return None
        domain = self._domains.get(host.domain if host else registrable_domain(name))
        if domain is None or domain.poor + 1 <= self._compute_poor_limit(domain):
            return None
        tried = f"{domain.poor} of {domain.tried} hosts of {registrable_domain(name)} brought little"
        return Deferral(f"too many new hosts: {tried}, {self._compute_poor_limit(domain):.0f} may", 0.0, pattern)

    def _compute_poor_limit(self, domain: _Domain) -> float:
        return self.budget.poor_hosts + self.budget.poor_share * (domain.tried - domain.poor)

    # accounts

    def _admit_host(self, name: str, *, is_seeded: bool) -> HostYield | None:
        """Open the trap account of a host; None if its domain has too many, so that a farm costs no memory."""
        if not is_seeded and self._check_domain(name, None, ""):
            return None
        return self._create_host(name, is_seeded=is_seeded)

    def _create_host(self, name: str, *, is_seeded: bool) -> HostYield:
        host = self.hosts[name] = HostYield(name, registrable_domain(name), is_seeded=is_seeded)
        return host

    def _register_pattern(self, host: HostYield, pattern: str) -> str:
        """Register a URL pattern of a host; return the name under which it is kept, itself or coarser."""
        if pattern in host.patterns:
            return pattern
        if len(host.patterns) >= self.budget.max_patterns:
            pattern = coarsen(pattern)
        host.patterns.setdefault(pattern, PatternYield())
        parameters = to_parameter_pattern(pattern)
        if parameters:
            host.patterns.setdefault(parameters, PatternYield(is_counted=False))
        return pattern

    def _find_pattern(self, host: HostYield, pattern: str) -> PatternYield | None:
        return host.patterns.get(pattern) or host.patterns.get(coarsen(pattern))

    def _find_parameters(self, host: HostYield, pattern: str) -> PatternYield | None:
        return host.patterns.get(to_parameter_pattern(pattern)) if "?" in pattern else None

    def _find_place(self, place: PatternKey) -> PatternYield | None:
        host = self.hosts.get(place[0])
        return host.patterns.get(place[1]) if host else None

    def _open_account(self, url: str) -> FetchAccount:
        """Open the accounts that the fetch of a URL is charged to, whether the URL was added before or not."""
        name = get_authority(url)
        host = self.hosts.get(name) or self._create_host(name, is_seeded=False)
        return FetchAccount(host, self._collect_patterns(host, self._register_pattern(host, url_to_pattern(url))))

    def _collect_patterns(self, host: HostYield, pattern: str) -> tuple[PatternYield, ...]:
        one, parameters = host.patterns[pattern], self._find_parameters(host, pattern)
        return (one, parameters) if parameters else (one,)

    def _add_link(self, pattern: PatternYield, place: PatternKey, from_url: str) -> None:
        origin = self.hosts.get(get_authority(from_url))
        if origin is None:
            return
        name = self._register_pattern(origin, url_to_pattern(from_url))
        if (origin.name, name) != place:
            pattern.add_finder(
                (origin.name, name), origin.patterns[name].steps if origin.name == place[0] else UNREACHED_STEPS
            )
            for one in self._collect_patterns(origin, name):
                one.add_target(place)

    def _add_words(self, host: HostYield, words: int) -> None:
        host.words += words
        host.squares += words * words
        self._words += words
        self._squares += words * words
        host.good += min(1.0, (words / host.compute_typical(self.budget)) ** 2)
        self._update_poor(host)

    def _count_host(self, host: HostYield) -> None:
        domain = self._domains.setdefault(host.domain, _Domain())
        domain.tried += 1
        domain.poor += host.is_poor

    def _update_poor(self, host: HostYield) -> None:
        """Update whether a host is poor: its pages bring little beside those of the whole crawl."""
        typical = compute_typical_words(self._squares, self._words, self.budget)
        thin = self.budget.fetches_per_page * host.squares < host.fetched * typical * typical
        is_poor = thin or host.fetched < self.budget.host_proof
        if is_poor != host.is_poor:
            self._domains[host.domain].poor += is_poor - host.is_poor
            host.is_poor = is_poor

    # debts

    def _settle(self, one: PatternYield, typical: float) -> None:
        if one.fetched:
            own = min(1.0, one.squares / (one.fetched * typical * typical))
            one.settle(own, self._compute_lead(one) if own < LEAD_DISCOUNT else 0.0, self.budget.fetches_per_page)

    def _settle_all(self, host: HostYield) -> None:
        host.settled_words = host.compute_typical(self.budget)
        for one in host.patterns.values():
            self._settle(one, host.settled_words)
        host.debt = sum(one.debt for one in host.patterns.values() if one.is_counted)

    def _settle_finders(self, one: PatternYield) -> None:
        """Settle the URL patterns whose pages link to this one, after its rate changed."""
        if abs(one.rate - one.announced_rate) <= RATE_STEP:
            return
        one.announced_rate = one.rate
        for name, pattern in one.finders:
            host = self.hosts.get(name)
            finder = host.patterns.get(pattern) if host else None
            if host and finder:
                before = finder.debt
                self._settle(finder, host.compute_typical(self.budget))
                if finder.is_counted:
                    host.debt += finder.debt - before

    def _compute_lead(self, one: PatternYield) -> float:
        """Compute the best rate of the URL patterns that each page of this one links to.

        Where nothing of it was fetched, that is too little to vouch for it.
        """
        leads = [
            LEAD_DISCOUNT * target.rate * min(1.0, times / max(one.fetched, 1.0))
            for place, times in one.targets.items()
            if (target := self._find_place(place)) is not None and target.fetched
        ]
        return max(leads) if leads else UNKNOWN_SHARE / self.budget.fetches_per_page if one.targets else 0.0

    # what is kept

    def to_json(self, name: str) -> dict[str, Any]:
        """Encode the trap account of a host as JSON values."""
        return self.hosts[name].to_json()

    def from_json(self, name: str, kept: dict[str, Any]) -> None:
        """Restore the trap account of a host from JSON values."""
        host = self.hosts[name] = HostYield.from_json(name, registrable_domain(name), kept)
        self._words += host.words
        self._squares += host.squares
        if host.is_tried:
            self._count_host(host)
        self._settle_all(host)

    def forget(self, name: str) -> None:
        """Forget the trap account of a host until ``from_json`` restores it; its domain no longer counts it."""
        host = self.hosts.pop(name, None)
        if host is not None and host.is_tried:
            self._words -= host.words
            self._squares -= host.squares
            self._domains[host.domain].tried -= 1
            self._domains[host.domain].poor -= host.is_poor


def get_authority(url: str) -> str:
    """Return the authority of a URL, by which the trap detector tells hosts apart, port included."""
    return url.partition("://")[2].partition("/")[0]
