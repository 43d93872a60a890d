"""The yield of URL patterns: what the fetches of a pattern brought, and its debt for them, to detect traps.

Every fetch is a loan, and what comes back repays it. A page whose main text is as long as is typical for its host pays
for ``earns`` fetches, a thinner one for less (by the square, so that a paragraph under a full template pays next to
nothing), a copy or an error for none. A page that has little to say itself, such as a listing, is paid for by what it
leads to, a little less with each step; a copy is not, because its original leads there as well.

    own(p)   = min(1, sum of words^2 / (fetches x typical^2))
    lead(p)  = 0.9 x the best rate(t) among the patterns t to which each page of p led at least once
    rate(p)  = max(own(p), lead(p) x share of fetches that were neither copies nor missing)
    debt(p)  = max(0, fetches and requests under way - earns x rate(p) x fetches)

So a pattern with a rate above 1 / earns is never in debt however large it grows, and one below it gets a bounded number
of fetches for a bounded debt: a branching process, above or below its critical point.

What is *typical* is the mean number of words of the page on which a word of this host occurs (a mean in which long
pages weigh more), bounded above: beyond some length a page is simply rich. A host whose pages are all short is
measured by its own short pages.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

PatternKey = tuple[str, str]
"""A host and a pattern on it."""

LEAD_DISCOUNT = 0.9
UNREACHED_STEPS = 99
MAX_TARGETS = 8
MAX_FINDERS = 4


@dataclass(frozen=True, slots=True)
class TrapBudget:
    """The trap budget: how much may be spent on URL patterns not yet proved; debts are counted in fetches.

    - ``fetches_per_page``: how many fetches a typical page pays for.
    - ``free_tries``: how often a pattern is tried whatever its host owes, if it lies within ``near_steps`` of a named
      page or was found where fetches are repaid.
    - ``pattern_debt``: what a pattern may owe (``named_debt`` where a sitemap or feed named it), and ``retry_share`` of
      the host's good pages on top; ``host_debt`` and ``host_share``: the same for all patterns of a host together.
    - ``patience``: what a pattern of a host that was named may owe, as far as its fetches bring something new, until
      the host has brought ``proven_good`` typical pages of some length: its pages may all be short.
    - ``poor_hosts``: how many hosts of one registrable domain may be poor, or not yet proved by ``host_proof`` fetches,
      and ``poor_share``: how many more for each that is not.
    - ``rich_words``: a text of this length is rich anywhere; ``first_words``: what is thought typical of an unknown
      host, with the weight of one page.
    - ``max_patterns``: how many patterns a host has of its own; further ones are folded.
    """

    fetches_per_page: float = 3.0
    free_tries: float = 1.0
    near_steps: int = 2
    pattern_debt: float = 2.0
    named_debt: float = 8.0
    retry_share: float = 0.01
    host_debt: float = 4.0
    host_share: float = 0.02
    patience: float = 50.0
    proven_good: float = 3.0
    poor_hosts: float = 3.0
    poor_share: float = 0.25
    host_proof: int = 3
    rich_words: int = 300
    first_words: int = 100
    max_patterns: int = 256


UNLIMITED = TrapBudget(pattern_debt=1e9, named_debt=1e9, host_debt=1e9, poor_hosts=1e9)
"""For a site whose operator knows better."""


def compute_typical_words(squares: float, words: float, budget: TrapBudget) -> float:
    """Compute a host's typical page length in words, from the sums over pages of words squared and of words."""
    first = budget.first_words
    return (squares + first * first) / (words + first)


@dataclass(slots=True, eq=False)
class PatternYield:
    """The yield account of one URL pattern; ``rate`` and ``earned`` are as of the last settlement.

    ``is_counted`` is false where its debts are held by other patterns, too. ``steps`` is how many patterns lie between
    it and a named one, that being a start of the crawl or in a sitemap. ``wasted`` are fetches of copies and of pages
    that say that they are not there. ``announced_rate`` is the rate that the patterns know that led here.
    """

    fetched: float = 0.0
    in_flight: int = 0
    wasted: int = 0
    squares: float = 0.0
    targets: dict[PatternKey, int] = field(default_factory=dict)
    finders: list[PatternKey] = field(default_factory=list)
    is_named: bool = False
    steps: int = UNREACHED_STEPS
    rate: float = 0.0
    earned: float = 0.0
    announced_rate: float = 0.0
    is_counted: bool = True

    @property
    def debt(self) -> float:
        """The debt of a URL pattern: fetches, made or in flight, that its yield has not paid for."""
        owed = self.fetched + self.in_flight - self.earned
        return max(0.0, owed)

    @property
    def fresh_share(self) -> float:
        """The share of a URL pattern's fetches that brought something new; 0 before the first."""
        return max(0.0, 1.0 - self.wasted / self.fetched) if self.fetched else 0.0

    def mark_named(self) -> None:
        """Mark a URL pattern as named by the operator, a sitemap or a feed."""
        self.is_named, self.steps = True, 0

    def add_finder(self, finder: PatternKey, steps: int) -> None:
        """Record that a URL of this pattern was found on a page of another, with its steps from a named one."""
        self.steps = min(self.steps, steps + 1)
        if finder not in self.finders and len(self.finders) < MAX_FINDERS:
            self.finders.append(finder)

    def add_target(self, target: PatternKey) -> None:
        """Record that a page of this URL pattern linked to an unseen URL of another."""
        if target in self.targets or len(self.targets) < MAX_TARGETS:
            self.targets[target] = self.targets.get(target, 0) + 1

    def settle(self, own: float, lead: float, earns: float) -> None:
        """Settle the account of a URL pattern: update its rate and what it earned."""
        self.rate = max(own, lead * self.fresh_share)
        self.earned = earns * self.rate * self.fetched

    def to_json(self) -> list[Any]:
        """Encode the yield of a URL pattern as a short JSON list, without requests in flight."""
        targets = [[*place, times] for place, times in self.targets.items()]
        sums = [self.fetched, self.wasted, round(self.squares), self.steps, round(self.rate, 4)]
        return [*sums, targets, [list(place) for place in self.finders]]

    @classmethod
    def from_json(cls, kept: list[Any], *, counts: bool) -> "PatternYield":
        """Decode the yield of a URL pattern that ``to_json`` wrote."""
        fetched, barren, squares, steps, rate, targets, finders = kept
        return cls(
            fetched=fetched,
            wasted=barren,
            squares=float(squares),
            targets={(host, pattern): times for host, pattern, times in targets},
            finders=[(host, pattern) for host, pattern in finders],
            is_named=steps == 0,
            steps=steps,
            rate=rate,
            announced_rate=rate,
            is_counted=counts,
        )


@dataclass(slots=True, eq=False)
class HostYield:
    """The yield account of one host: its URL patterns, and the sums that give its typical page length.

    ``good`` is how many typical pages its fetches amount to, ``wasted`` how many were copies or missing. ``is_seeded``
    where the operator named it. ``settled_words`` is what was typical when all its patterns were last settled.
    """

    name: str
    domain: str
    patterns: dict[str, PatternYield] = field(default_factory=dict)
    fetched: int = 0
    wasted: int = 0
    in_flight: int = 0
    good: float = 0.0
    words: float = 0.0
    squares: float = 0.0
    debt: float = 0.0
    is_seeded: bool = False
    is_poor: bool = True
    settled_words: float = 0.0

    @property
    def is_tried(self) -> bool:
        """Whether any URL of this host was ever requested."""
        return bool(self.fetched or self.in_flight)

    @property
    def fresh_share(self) -> float:
        """The share of a host's fetches that brought something new; 1 before the first."""
        return 1.0 - self.wasted / max(self.fetched, 1)

    def compute_typical(self, budget: TrapBudget) -> float:
        """Compute how many words a typical page of this host has."""
        return compute_typical_words(self.squares, self.words, budget)

    def to_json(self) -> dict[str, Any]:
        """Encode the yield of a host as JSON values, with all that a restart must not forget."""
        sums = [self.fetched, self.wasted, round(self.good, 3), round(self.words), round(self.squares)]
        return {
            "sums": sums,
            "is_seeded": self.is_seeded,
            "is_poor": self.is_poor,
            "patterns": {name: one.to_json() for name, one in self.patterns.items()},
        }

    @classmethod
    def from_json(cls, name: str, domain: str, kept: dict[str, Any]) -> "HostYield":
        """Decode the yield of a host that ``to_json`` wrote."""
        fetched, barren, good, words, squares = kept["sums"]
        patterns = {
            pattern: PatternYield.from_json(one, counts=pattern[0] == "/") for pattern, one in kept["patterns"].items()
        }
        return cls(
            name,
            domain,
            patterns,
            fetched,
            barren,
            good=good,
            words=float(words),
            squares=float(squares),
            is_seeded=kept["is_seeded"],
            is_poor=kept["is_poor"],
        )


class FetchAccount(NamedTuple):
    """The accounts that a fetch is charged to: the URL's pattern, and that of all URLs with the same parameters."""

    host: HostYield
    patterns: tuple[PatternYield, ...]

    def add_in_flight(self, change: int) -> None:
        """Change the number of requests in flight on the accounts of a fetch."""
        host = self.host
        host.in_flight = max(0, host.in_flight + change)
        for pattern in self.patterns:
            before = pattern.debt
            pattern.in_flight = max(0, pattern.in_flight + change)
            if pattern.is_counted:
                host.debt += pattern.debt - before
