"""Which URLs may be asked for, given what URLs like them have brought: budgets against places without end.

No name of a trap is known here. A calendar, a maze of folders, session ids, sorted copies, mirrors and farms of hosts
have one thing in common: of many fetches few bring anything new. Each pattern of URLs keeps an account (``yields``) of
fetches made and text brought. One that pays for itself is never held back. One that does not may owe a little, and all
patterns of a host together may owe a small share of what the host has brought; new hosts of a registrable domain stand
under the same rule. What is held back is held back for now: the allowance grows as the host brings good pages.

The keeper tells what was ``found``, asks for a ``verdict``, and tells what ``went`` out and what ``came`` of it (or
that nothing did: ``dropped``). Only first fetches count, and only unseen URLs need be told.
"""

from dataclasses import dataclass
from typing import Any

from vedette.frontier.pattern_yield import FAR, STEP, Account, HostYield, PatternYield, Place, TrapBudget, typical_words
from vedette.frontier.url_patterns import coarse, is_doubtful, parameters_of, pattern_of, shape_refusal
from vedette.model import registrable_domain

__all__ = ["GO", "Brought", "Go", "Later", "Refuse", "Traps", "Verdict", "authority_of"]

# By how much a rate, or what is typical of a host, must have moved before others are settled anew.
RATE_STEP = 0.02
TYPICAL_STEP = 0.05
# Shares of the rate at which a pattern just pays: enough to vouch for what it leads to, and what the unknown counts as.
VOUCHES = 0.5
UNKNOWN = 0.4
FEWEST_WORDS = 10


@dataclass(frozen=True, slots=True)
class Go:
    """It may be asked for."""


@dataclass(frozen=True, slots=True)
class Later:
    """Not now: once the host has brought ``good_needed`` good pages in all, or others of its pattern proved better."""

    reason: str
    good_needed: float
    pattern: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Never, for the way in which it is spelled."""

    reason: str


Verdict = Go | Later | Refuse
GO = Go()


@dataclass(frozen=True, slots=True)
class Brought:
    """What came of a fetch: how many words of main text.

    A copy is a page whose text was known from another URL, or that names another URL as the one to keep.
    """

    words: int = 0
    status: int = 200
    is_copy: bool = False
    is_missing: bool = False

    @property
    def new_words(self) -> int:
        """The words that count: none of a copy, an error, a redirect or a page that says that it is not there."""
        return 0 if self.is_copy or self.is_missing or self.status != 200 else self.words

    @property
    def is_barren(self) -> bool:
        """Whether it brought nothing that others do not; pages with next to no text are alike for want of it."""
        return self.is_missing or (self.is_copy and self.words >= FEWEST_WORDS)

    @property
    def cost(self) -> float:
        """How much of a fetch is charged: a page that is gone says little about those like it."""
        return 0.25 if self.status >= 400 else 1.0


@dataclass(slots=True, eq=False)
class _Domain:
    """How many hosts of a registrable domain were tried, and how many of them are poor."""

    tried: int = 0
    poor: int = 0


class Traps:
    """The accounts of a crawl.

    >>> traps = Traps()
    >>> traps.found("https://example.org/", None)
    >>> traps.verdict("https://example.org/")
    Go()
    """

    def __init__(self, budget: TrapBudget | None = None) -> None:
        self.budget = budget or TrapBudget()
        self.hosts: dict[str, HostYield] = {}
        self._domains: dict[str, _Domain] = {}
        self._words = self._squares = 0.0

    # what is told

    def found(self, url: str, from_url: str | None, *, is_named: bool = False) -> None:
        """An unseen URL: a start where no page led to it, ``is_named`` where a sitemap or feed did."""
        name, is_start = authority_of(url), from_url is None and not is_named
        host = self.hosts.get(name) or self._new_host(name, is_seeded=is_start)
        if host is None:
            return
        host.is_seeded |= is_start
        place = name, self._kept_name(host, pattern_of(url))
        pattern = host.patterns[place[1]]
        if is_named or is_start:
            pattern.named()
        if from_url is not None and not is_named:
            self._link(pattern, place, from_url)

    def went(self, url: str) -> Account:
        """A request for it is under way; the account is for whoever tells what ``came`` of it."""
        account = self._account(url)
        if not account.host.is_tried:
            self._try_host(account.host)
        account.under_way(1)
        return account

    def dropped(self, account: Account) -> None:
        """Nothing came of a request, for reasons that say nothing about pages like it."""
        account.under_way(-1)

    def came(self, account: Account, brought: Brought) -> None:
        """The answer to a request that ``went``."""
        account.under_way(-1)
        host, words = account.host, min(brought.new_words, self.budget.rich_words)
        host.fetched += 1
        host.barren += brought.is_barren
        self._add_words(host, words)
        typical = host.typical(self.budget)
        for pattern in account.patterns:
            before = pattern.debt
            pattern.fetched += brought.cost
            pattern.barren += brought.is_barren
            pattern.squares += words * words
            self._settle(pattern, typical)
            if pattern.counts:
                host.debt += pattern.debt - before
        self._tell_finders(account.patterns[0])
        if abs(typical - host.settled_words) > TYPICAL_STEP * typical:
            self._settle_all(host)

    # what is asked

    def verdict(self, url: str) -> Verdict:
        """Whether a URL may be asked for now; nothing is changed by asking."""
        refusal = shape_refusal(url)
        if refusal:
            return Refuse(refusal)
        return self.standing(authority_of(url), pattern_of(url), url)

    def standing(self, name: str, pattern: str, url: str = "") -> Verdict:
        """The verdict on a URL of a pattern; on any of them, for whoever keeps such URLs together while they wait."""
        host = self.hosts.get(name)
        if host is None or not host.is_tried:
            closed = self._closed_domain(name, host, pattern)
            if closed or host is None:
                return closed or GO
        one = self._pattern(host, pattern)
        return GO if one is None or self._pays(one) else self._unproven(host, pattern, one, url)

    def _unproven(self, host: HostYield, pattern: str, one: PatternYield, url: str) -> Verdict:
        is_vouched = "?" not in pattern and not is_doubtful(url) and self._is_vouched(one)
        if is_vouched and host.is_seeded and one.fetched + one.out < self.budget.free_tries:
            return GO
        limit = self._limit(host, one, one.fresh_share if one.fetched else float(is_vouched))
        for name, account in ((pattern, one), (parameters_of(pattern), self._parameters(host, pattern))):
            if account and not self._pays(account) and account.debt + 1 > limit:
                return self._pattern_later(host, pattern, name, account, limit)
        credit = self._credit(host) * (1.0 if is_vouched else 0.5)
        if host.debt + 1 > credit and not (one.is_named and one.debt + 1 <= self.budget.named_debt):
            return self._host_later(host, pattern, credit)
        return GO

    def _pays(self, one: PatternYield) -> bool:
        """Whether one more fetch that brings what the earlier ones did would still be paid for."""
        return one.fetched > 0 and self.budget.earns * one.rate * (one.fetched + 1) >= one.fetched + one.out + 1

    def _limit(self, host: HostYield, one: PatternYield, fresh_share: float) -> float:
        start = self.budget.named_debt if one.is_named else self.budget.pattern_debt
        return max(start + self.budget.retry_share * host.good, self._patience(host) * fresh_share)

    def _credit(self, host: HostYield) -> float:
        credit = self.budget.host_debt + self.budget.host_share * host.good
        return max(credit, 2.0 * self._patience(host) * host.fresh_share)

    def _patience(self, host: HostYield) -> float:
        """A host that somebody named and that has brought nothing rich yet may be one whose pages are all short."""
        is_proven = host.good >= self.budget.proven_good and host.typical(self.budget) >= self.budget.first_words
        return self.budget.patience if host.is_seeded and not is_proven else 0.0

    def _is_vouched(self, one: PatternYield) -> bool:
        """Whether it is named, near to what is named, or found where at least half of the fetches are repaid."""
        if one.steps <= self.budget.near_steps or not one.finders:
            return True
        finders = (found for found in map(self._at, one.finders) if found is not None)
        return any(finder.rate * self.budget.earns >= VOUCHES for finder in finders)

    # reasons

    def _pattern_later(self, host: HostYield, pattern: str, name: str, one: PatternYield, limit: float) -> Later:
        brought = f"{one.fetched:.0f} fetches like {name} brought {one.rate:.0%} of what is typical here"
        missing = (one.debt + 1 - limit) / max(self.budget.retry_share, 1e-9)
        return Later(f"a trap by yield: {brought}; {limit:.0f} such may be owed", host.good + missing, pattern)

    def _host_later(self, host: HostYield, pattern: str, credit: float) -> Later:
        missing = (host.debt + 1 - credit) / max(self.budget.host_share, 1e-9)
        owed = f"{host.debt:.0f} fetches of this host brought too little, {credit:.0f} may"
        return Later(f"unproven: {owed}; {pattern} waits until more good pages came", host.good + missing, pattern)

    def _closed_domain(self, name: str, host: HostYield | None, pattern: str) -> Later | None:
        """Why no further host of its registrable domain is tried now, if so."""
        if host is not None and host.is_seeded:
            return None
        domain = self._domains.get(host.domain if host else registrable_domain(name))
        if domain is None or domain.poor + 1 <= self._poor_most(domain):
            return None
        tried = f"{domain.poor} of {domain.tried} hosts of {registrable_domain(name)} brought little"
        return Later(f"too many new hosts: {tried}, {self._poor_most(domain):.0f} may", 0.0, pattern)

    def _poor_most(self, domain: _Domain) -> float:
        return self.budget.poor_hosts + self.budget.poor_share * (domain.tried - domain.poor)

    # accounts

    def _new_host(self, name: str, *, is_seeded: bool) -> HostYield | None:
        """The account of a host; none for those that a domain has too many of, so that a farm costs no memory."""
        if not is_seeded and self._closed_domain(name, None, ""):
            return None
        return self._opened(name, is_seeded=is_seeded)

    def _opened(self, name: str, *, is_seeded: bool) -> HostYield:
        host = self.hosts[name] = HostYield(name, registrable_domain(name), is_seeded=is_seeded)
        return host

    def _kept_name(self, host: HostYield, pattern: str) -> str:
        """The name under which a pattern is kept, itself or coarser; it is there from now on."""
        if pattern in host.patterns:
            return pattern
        if len(host.patterns) >= self.budget.patterns_most:
            pattern = coarse(pattern)
        host.patterns.setdefault(pattern, PatternYield())
        parameters = parameters_of(pattern)
        if parameters:
            host.patterns.setdefault(parameters, PatternYield(counts=False))
        return pattern

    def _pattern(self, host: HostYield, pattern: str) -> PatternYield | None:
        return host.patterns.get(pattern) or host.patterns.get(coarse(pattern))

    def _parameters(self, host: HostYield, pattern: str) -> PatternYield | None:
        return host.patterns.get(parameters_of(pattern)) if "?" in pattern else None

    def _at(self, place: Place) -> PatternYield | None:
        host = self.hosts.get(place[0])
        return host.patterns.get(place[1]) if host else None

    def _account(self, url: str) -> Account:
        """Where a URL that goes out is booked, whether it was told before or not."""
        name = authority_of(url)
        host = self.hosts.get(name) or self._opened(name, is_seeded=False)
        return Account(host, self._with_parameters(host, self._kept_name(host, pattern_of(url))))

    def _with_parameters(self, host: HostYield, pattern: str) -> tuple[PatternYield, ...]:
        one, parameters = host.patterns[pattern], self._parameters(host, pattern)
        return (one, parameters) if parameters else (one,)

    def _link(self, pattern: PatternYield, place: Place, from_url: str) -> None:
        origin = self.hosts.get(authority_of(from_url))
        if origin is None:
            return
        name = self._kept_name(origin, pattern_of(from_url))
        if (origin.name, name) != place:
            pattern.found_by((origin.name, name), origin.patterns[name].steps if origin.name == place[0] else FAR)
            for one in self._with_parameters(origin, name):
                one.led_to(place)

    def _add_words(self, host: HostYield, words: int) -> None:
        host.words += words
        host.squares += words * words
        self._words += words
        self._squares += words * words
        host.good += min(1.0, (words / host.typical(self.budget)) ** 2)
        self._judge(host)

    def _try_host(self, host: HostYield) -> None:
        domain = self._domains.setdefault(host.domain, _Domain())
        domain.tried += 1
        domain.poor += host.is_poor

    def _judge(self, host: HostYield) -> None:
        """Whether its pages are poor beside those of the whole crawl."""
        typical = typical_words(self._squares, self._words, self.budget)
        thin = self.budget.earns * host.squares < host.fetched * typical * typical
        is_poor = thin or host.fetched < self.budget.host_proof
        if is_poor != host.is_poor:
            self._domains[host.domain].poor += is_poor - host.is_poor
            host.is_poor = is_poor

    # debts

    def _settle(self, one: PatternYield, typical: float) -> None:
        if one.fetched:
            own = min(1.0, one.squares / (one.fetched * typical * typical))
            one.settle(own, self._lead(one) if own < STEP else 0.0, self.budget.earns)

    def _settle_all(self, host: HostYield) -> None:
        host.settled_words = host.typical(self.budget)
        for one in host.patterns.values():
            self._settle(one, host.settled_words)
        host.debt = sum(one.debt for one in host.patterns.values() if one.counts)

    def _tell_finders(self, one: PatternYield) -> None:
        """Pages that lead here are worth more now, or less."""
        if abs(one.rate - one.told) <= RATE_STEP:
            return
        one.told = one.rate
        for name, pattern in one.finders:
            host = self.hosts.get(name)
            finder = host.patterns.get(pattern) if host else None
            if host and finder:
                before = finder.debt
                self._settle(finder, host.typical(self.budget))
                if finder.counts:
                    host.debt += finder.debt - before

    def _lead(self, one: PatternYield) -> float:
        """The best rate that each of its pages leads to; where nothing of it was fetched, too little to vouch."""
        leads = [
            STEP * target.rate * min(1.0, times / max(one.fetched, 1.0))
            for place, times in one.targets.items()
            if (target := self._at(place)) is not None and target.fetched
        ]
        return max(leads) if leads else UNKNOWN / self.budget.earns if one.targets else 0.0

    # what is kept

    def to_json(self, name: str) -> dict[str, Any]:
        """The account of a host as plain values."""
        return self.hosts[name].to_json()

    def from_json(self, name: str, kept: dict[str, Any]) -> None:
        """Take up the account of a host where it was left."""
        host = self.hosts[name] = HostYield.from_json(name, registrable_domain(name), kept)
        self._words += host.words
        self._squares += host.squares
        if host.is_tried:
            self._try_host(host)
        self._settle_all(host)

    def forget(self, name: str) -> None:
        """A host that is out of play until ``from_json`` brings it back; its domain no longer counts it either."""
        host = self.hosts.pop(name, None)
        if host is not None and host.is_tried:
            self._words -= host.words
            self._squares -= host.squares
            self._domains[host.domain].tried -= 1
            self._domains[host.domain].poor -= host.is_poor


def authority_of(url: str) -> str:
    """The authority of a URL: a server at another port is another host here, which does no harm."""
    return url.partition("://")[2].partition("/")[0]
