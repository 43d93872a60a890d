"""Detect crawler traps: hold URLs back by what URLs of the same pattern brought and where they lead.

No trap is known by name. Calendars, mazes of folders, session ids, sorted copies, mirrors and farms of hosts have one
thing in common: few of many fetches bring anything new, and there is no end to them. Each URL pattern has an account
(``pattern_yield``) of fetches made, text brought and URLs found.

A pattern that pays for itself is never held back. One that does not may owe a little, and all patterns of a host
together may owe a small share of what the host has brought; beyond that it waits until its host has nothing else to
fetch (``is_idle``). Then it is tried, a few URLs first and more as they return, until it was fetched completely or is
shown to be endless. New hosts of a registrable domain follow the same rule.

The coordinator adds unseen URLs (``add_url``), requests a verdict (``judge_url``), and reports requests and their
results (``on_request``, ``on_result``, ``on_dropped``). Only first fetches count.
"""

from dataclasses import dataclass
from math import inf
from typing import Any

from vedette.frontier.pattern_yield import (
    LEAD_DISCOUNT,
    UNREACHED_STEPS,
    FetchAccount,
    FetchYield,
    HostYield,
    PatternKey,
    PatternYield,
    TrapBudget,
    compute_typical_words,
)
from vedette.frontier.url_patterns import (
    check_shape,
    coarsen,
    extract_child,
    is_calendar_step,
    is_suspicious,
    pattern_to_family,
    to_parameter_pattern,
    url_to_family,
    url_to_pattern,
)
from vedette.model import registrable_domain

# How much a rate, or a host's typical length, must have moved before others are settled again.
RATE_STEP = 0.02
TYPICAL_STEP = 0.05
# Fractions of the break-even rate: enough to vouch for linked patterns, and the value of an unknown one.
VOUCH_SHARE = 0.5
UNKNOWN_SHARE = 0.4
# How many URLs of a pattern are tried at once when its host has nothing else to fetch.
MAX_TRIALS = 8
# For how many parameters their results on all hosts are remembered, and from how many fetches on they count.
MAX_PARAMETERS = 4096
COMMON_TRIES = 4
COMMON_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Permit:
    """A trap verdict: the URL may be fetched."""


@dataclass(frozen=True, slots=True)
class Deferral:
    """A trap verdict: the URL must wait until its host has nothing else to fetch or brought ``good_needed`` good pages.

    If its pattern ``is_endless`` it waits until similar pages prove better.
    """

    reason: str
    good_needed: float
    pattern: str
    is_endless: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """A trap verdict: the URL is never fetched, because of its spelling."""

    reason: str


Verdict = Permit | Deferral | Refuse
PERMIT = Permit()


@dataclass(slots=True, eq=False)
class _Domain:
    """How many hosts of a registrable domain were tried, and how many are poor, against farms of hosts.

    ``born`` are hosts first found on poor hosts of the same domain.
    """

    tried: int = 0
    poor: int = 0
    born: int = 0


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
        self._common: dict[str, tuple[int, int]] = {}

    # input

    def add_url(self, url: str, from_url: str | None, *, is_named: bool = False) -> None:
        """Add an unseen URL to the trap detector: a start if no page linked to it, ``is_named`` if a sitemap did."""
        name, is_start = get_authority(url), from_url is None and not is_named
        host = self.hosts.get(name) or self._admit_host(name, from_url, is_seeded=is_start)
        if host is None:
            return
        host.is_seeded |= is_start
        place = name, self._register_pattern(host, url)
        pattern = host.patterns[place[1]]
        if is_named or is_start:
            pattern.mark_named()
        if from_url is not None and not is_named:
            self._add_link(pattern, place, from_url)
            if get_authority(from_url) == name:
                self._add_birth(host, url, from_url)

    def on_request(self, url: str) -> FetchAccount:
        """Charge a request in flight to its URL pattern, added before or not; return the account for ``on_result``."""
        name = get_authority(url)
        host = self.hosts.get(name) or self._create_host(name, is_seeded=False)
        pattern = self._register_pattern(host, url)
        patterns, family = self._collect_patterns(host, pattern), url_to_family(url)
        if family and (family in host.patterns or len(host.patterns) < self.budget.max_patterns):
            shared = host.patterns.setdefault(family, PatternYield(is_counted=False))
            patterns += () if shared in patterns else (shared,)
        account = FetchAccount(host, patterns, to_parameter_pattern(pattern))
        if not host.is_tried:
            self._count_host(host)
        account.add_in_flight(1)
        return account

    def on_dropped(self, account: FetchAccount) -> None:
        """Cancel a request that ended for reasons that say nothing about its URL pattern."""
        account.add_in_flight(-1)

    def on_result(self, account: FetchAccount, brought: FetchYield) -> None:
        """Record what a request started with ``on_request`` brought to its URL pattern."""
        account.add_in_flight(-1)
        host, words = account.host, min(brought.new_words, self.budget.rich_words)
        host.fetched += 1
        host.wasted += brought.is_wasted
        self._add_words(host, words)
        typical = host.compute_typical(self.budget)
        for pattern in account.patterns:
            before = pattern.debt
            pattern.add_try(is_page=not brought.is_free and brought.status < 400, is_similar=brought.is_similar)
            pattern.fetched += brought.cost
            pattern.wasted += brought.is_wasted
            pattern.squares += words * words
            self._settle(pattern, typical)
            if pattern.is_counted:
                host.debt += pattern.debt - before
        self._count_parameters(account.parameters, brought)
        self._settle_finders(account.patterns[0])
        if abs(typical - host.settled_words) > TYPICAL_STEP * typical:
            self._settle_all(host)

    # verdicts

    def judge_url(self, url: str, *, is_idle: bool = False) -> Verdict:
        """Judge whether a URL may be fetched now or is held back as a trap; changes nothing.

        ``is_idle`` means that its host has nothing else to fetch: then only an endless pattern is held back.
        """
        refusal = check_shape(url)
        if refusal:
            return Refuse(refusal)
        return self.judge_pattern(get_authority(url), url_to_pattern(url), url, is_idle=is_idle)

    def judge_pattern(self, name: str, pattern: str, url: str = "", *, is_idle: bool = False) -> Verdict:
        """Judge whether a URL of this pattern, or any of them, may be fetched or is held back as a trap."""
        host = self.hosts.get(name)
        if host is None or not host.is_tried:
            closed = self._check_domain(name, host, pattern, is_idle=is_idle)
            if closed or host is None:
                return closed or PERMIT
        one = self._find_pattern(host, pattern)
        if one is None or self._is_paying(one):
            return PERMIT
        endless = self._explain_endless(host, pattern, one)
        if endless:
            return Deferral(f"endless: {endless}", inf, pattern, is_endless=True)
        return PERMIT if is_idle else self._judge_unproven(host, pattern, one, url)

    def list_trials(self, name: str, pattern: str) -> list[tuple[str, int]]:
        """List how many URLs of a pattern may be tried at once, by each of the accounts they are charged to.

        One at first, and more as they return, so that a trap is detected before it has cost much.
        """
        host = self.hosts.get(name)
        accounts = self._list_accounts(host, pattern) if host else []
        return [(f"{name} {key}", max(1, min(MAX_TRIALS, one.tries))) for key, one in accounts] or [(name, 1)]

    # endless patterns

    def _explain_endless(self, host: HostYield, pattern: str, one: PatternYield) -> str:
        """Explain the evidence that the URLs of a pattern are endless; empty if there is none."""
        if host.is_mirror(self.budget):
            return f"{host.wasted} of {host.fetched} fetches repeated text that is known from other hosts; {host.name}"
        for key, account in self._list_accounts(host, pattern):
            if account is one or not (self._is_paying(account) or ("?" in key and self._is_known_better(one))):
                why = self._explain_account(host, key, account)
                if why:
                    return f"{why}; {key}"
        if not one.tries or not one.finders:
            return ""
        finders = [(key, self._find_place(key)) for key in one.finders]
        if all(found and name == host.name and not self._is_paying(found) for (name, _), found in finders):
            leads = [self._explain_account(host, key, found) for (_, key), found in finders if found]
            return f"found on endless pages only: {leads[0]}; {finders[0][0][1]}" if all(leads) else ""
        return ""

    def _explain_account(self, host: HostYield, key: str, account: PatternYield) -> str:
        budget, is_parameter = self.budget, "?" in key and not key.endswith("?*")
        tries, wasted = self._common.get(key, (0, 0))
        is_common = tries >= COMMON_TRIES and wasted >= COMMON_SHARE * tries
        if is_common and (account.is_repeated(budget, 1) or not account.tries):
            return f"{wasted} of {tries} fetches of URLs like this repeated known text, on this host and others"
        patience = budget.growth_tries + budget.growth_share * host.fetched
        return account.explain_endless(budget, patience, is_parameter=is_parameter, is_spared=host.is_spared(budget))

    def _is_known_better(self, one: PatternYield) -> bool:
        """Check whether a pattern has brought new text itself, whatever others with its parameters did."""
        return (
            one.tries >= self.budget.parameter_tries and 2 * one.wasted < one.tries and one.growth < self.budget.growth
        )

    def _list_accounts(self, host: HostYield, pattern: str) -> list[tuple[str, PatternYield]]:
        """List the accounts of a pattern with their names: its own, and those that it shares with others."""
        keys = (pattern, coarsen(pattern), to_parameter_pattern(pattern), pattern_to_family(pattern))
        named = [(key, host.patterns.get(key)) for key in dict.fromkeys(keys) if key]
        found = [(key, one) for key, one in named if one is not None]
        return found[:1] + [(key, one) for key, one in found[1:] if not one.is_counted]

    def _add_birth(self, host: HostYield, url: str, from_url: str) -> None:
        """Count a URL first found on a page of its own kind: of its pattern, parameters or family."""
        pattern, origin, family = url_to_pattern(url), url_to_pattern(from_url), url_to_family(url)
        parameters = to_parameter_pattern(pattern)
        kinds = [pattern] if pattern == origin else []
        kinds += [parameters] if parameters and parameters == to_parameter_pattern(origin) else []
        kinds += [family] if family and family == url_to_family(from_url) else []
        if not kinds:
            return
        name, is_computed = extract_child(url, from_url), is_calendar_step(url, from_url)
        for kind in kinds:
            one = host.patterns.get(kind) or host.patterns.get(coarsen(kind))
            if one is not None:
                one.add_birth(name, from_url, is_computed=is_computed)

    def _count_parameters(self, parameters: str, brought: FetchYield) -> None:
        """Count the results of URLs with these parameters on all hosts."""
        is_known = not brought.is_free and (brought.is_wasted or bool(brought.cost))
        if is_known and parameters and (parameters in self._common or len(self._common) < MAX_PARAMETERS):
            tries, wasted = self._common.get(parameters, (0, 0))
            self._common[parameters] = tries + 1, wasted + brought.is_wasted

    def _judge_unproven(self, host: HostYield, pattern: str, one: PatternYield, url: str) -> Verdict:
        is_vouched = "?" not in pattern and not is_suspicious(url) and self._is_vouched(one)
        if is_vouched and host.is_seeded and one.fetched + one.in_flight < self.budget.free_tries:
            return PERMIT
        parameters = self._find_parameters(host, pattern)
        if parameters and parameters.in_flight >= max(1, parameters.pages - parameters.wasted):
            return Deferral("unproven: others with these parameters are under way", host.good, pattern)
        if parameters and parameters.is_repeated(self.budget, 1):
            return Deferral("unproven: others with these parameters repeated known text", host.good, pattern)
        limit = self._compute_limit(host, one, one.fresh_share if one.fetched else float(is_vouched))
        for name, account in ((pattern, one), (to_parameter_pattern(pattern), parameters)):
            if account and not self._is_paying(account) and account.debt + 1 > limit:
                return self._defer_pattern(host, pattern, name, account, limit)
        credit = self._compute_credit(host) * (1.0 if is_vouched else 0.5)
        if host.debt + 1 > credit and not (one.is_named and one.debt + 1 <= self.budget.named_debt):
            return self._defer_host(host, pattern, credit)
        return PERMIT

    def _is_paying(self, one: PatternYield) -> bool:
        """Check whether one more fetch of a URL pattern, like the earlier ones, would still be paid for.

        Short texts of pages that seem computed never pay, though all texts of their host may be short.
        """
        return (
            one.fetched > 0
            and not (one.is_computed and one.mean_words < self.budget.first_words)
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
        brought = f"{one.fetched:.0f} fetches like {name} brought {one.rate:.0%} of the typical yield here"
        missing = (one.debt + 1 - limit) / max(self.budget.retry_share, 1e-9)
        why = f"a trap by yield: {brought}; at most {limit:.0f} poor fetches are allowed"
        return Deferral(why, host.good + missing, pattern)

    def _defer_host(self, host: HostYield, pattern: str, credit: float) -> Deferral:
        missing = (host.debt + 1 - credit) / max(self.budget.host_share, 1e-9)
        owed = f"{host.debt:.0f} fetches of this host brought too little, at most {credit:.0f} may"
        return Deferral(f"unproven: {owed}; {pattern} waits for more good pages", host.good + missing, pattern)

    def _check_domain(
        self, name: str, host: HostYield | None, pattern: str, *, is_idle: bool = False
    ) -> Deferral | None:
        """Check whether no further host of this registrable domain is tried now, against farms of hosts."""
        if host is not None and host.is_seeded:
            return None
        domain = self._domains.get(host.domain if host else registrable_domain(name))
        if domain is None or domain.poor + 1 <= self._compute_poor_limit(domain):
            return None
        if is_idle and domain.born < domain.tried:
            return None
        tried = f"{domain.poor} of {domain.tried} hosts of {registrable_domain(name)} brought little"
        return Deferral(f"too many new hosts: {tried}, {self._compute_poor_limit(domain):.0f} may", 0.0, pattern)

    def _compute_poor_limit(self, domain: _Domain) -> float:
        return self.budget.poor_hosts + self.budget.poor_share * (domain.tried - domain.poor)

    # accounts

    def _admit_host(self, name: str, from_url: str | None, *, is_seeded: bool) -> HostYield | None:
        """Open the trap account of a host; None if its domain has too many, so that a farm costs no memory."""
        domain = self._domains.get(registrable_domain(name))
        origin = self.hosts.get(get_authority(from_url)) if from_url and domain else None
        if domain and origin and origin.is_poor and origin.domain == registrable_domain(name):
            domain.born += 1
        if not is_seeded and self._check_domain(name, None, ""):
            return None
        return self._create_host(name, is_seeded=is_seeded)

    def _create_host(self, name: str, *, is_seeded: bool) -> HostYield:
        host = self.hosts[name] = HostYield(name, registrable_domain(name), is_seeded=is_seeded)
        return host

    def _register_pattern(self, host: HostYield, url: str) -> str:
        """Register the URL pattern of a URL; return the name under which it is counted, itself or a coarser one."""
        pattern = url_to_pattern(url)
        if pattern in host.patterns:
            return pattern
        is_full = len(host.patterns) >= self.budget.max_patterns
        if is_full:
            pattern = coarsen(pattern)
        host.patterns.setdefault(pattern, PatternYield())
        for shared in (to_parameter_pattern(pattern), "" if is_full else pattern_to_family(pattern)):
            if shared:
                host.patterns.setdefault(shared, PatternYield(is_counted=False))
        return pattern

    def _find_pattern(self, host: HostYield, pattern: str) -> PatternYield | None:
        return host.patterns.get(pattern) or host.patterns.get(coarsen(pattern))

    def _find_parameters(self, host: HostYield, pattern: str) -> PatternYield | None:
        return host.patterns.get(to_parameter_pattern(pattern)) if "?" in pattern else None

    def _find_place(self, place: PatternKey) -> PatternYield | None:
        host = self.hosts.get(place[0])
        return host.patterns.get(place[1]) if host else None

    def _collect_patterns(self, host: HostYield, pattern: str) -> tuple[PatternYield, ...]:
        return tuple(one for _, one in self._list_accounts(host, pattern))

    def _add_link(self, pattern: PatternYield, place: PatternKey, from_url: str) -> None:
        origin = self.hosts.get(get_authority(from_url))
        if origin is None:
            return
        name = self._register_pattern(origin, from_url)
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
        """Update whether a host is poor: its pages bring little compared with the whole crawl."""
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

        If nothing of it was fetched, that is too little to vouch for it.
        """
        leads = [
            LEAD_DISCOUNT * target.rate * min(1.0, times / max(one.fetched, 1.0))
            for place, times in one.targets.items()
            if (target := self._find_place(place)) is not None and target.fetched
        ]
        return max(leads) if leads else UNKNOWN_SHARE / self.budget.fetches_per_page if one.targets else 0.0

    # persistence

    def to_json(self, name: str) -> dict[str, Any]:
        """Encode the trap account of a host as JSON values."""
        return self.hosts[name].to_json()

    def from_json(self, name: str, data: dict[str, Any]) -> None:
        """Restore the trap account of a host from JSON values."""
        host = self.hosts[name] = HostYield.from_json(name, registrable_domain(name), data)
        self._words += host.words
        self._squares += host.squares
        if host.is_tried:
            self._count_host(host)
        self._settle_all(host)

    def forget(self, name: str) -> None:
        """Drop the trap account of a host until ``from_json`` restores it; its domain no longer counts it."""
        host = self.hosts.pop(name, None)
        if host is not None and host.is_tried:
            self._words -= host.words
            self._squares -= host.squares
            self._domains[host.domain].tried -= 1
            self._domains[host.domain].poor -= host.is_poor


def get_authority(url: str) -> str:
    """Return the authority of a URL, by which the trap detector distinguishes hosts, port included."""
    return url.partition("://")[2].partition("/")[0]
