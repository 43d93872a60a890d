"""The yield of URL patterns: what the fetches of a pattern brought, and its debt for them, to detect traps.

Every fetch is a loan, and its result repays it. A page whose main text is as long as is typical for its host pays for
``earns`` fetches, a thinner one for less (by the square, so that a paragraph under a full template pays almost
nothing), a copy or an error for none. A page with little text of its own, such as a listing, is paid for by the pages
it leads to, a little less with each step; a copy is not, because its original leads there as well.

    own(p)   = min(1, sum of words^2 / (fetches x typical^2))
    lead(p)  = 0.9 x the best rate(t) among the patterns t to which each page of p led at least once
    rate(p)  = max(own(p), lead(p) x share of fetches that were neither copies nor missing)
    debt(p)  = max(0, fetches and requests under way - earns x rate(p) x fetches)

So a pattern with a rate above 1 / earns is never in debt however large it grows, and one below gets a bounded number of
fetches for a bounded debt: a branching process, above or below its critical point.

Debts decide what comes first. Whether a pattern is *endless* is another question: then its URLs are never fetched,
while other held-back URLs are fetched when nothing else waits. A low yield alone does not make a pattern endless. It
takes one of these:

- *repeated text*: nearly all fetches brought text that is known from other URLs, and most of the last ones led to new
  URLs of the same kind. Copies that lead nowhere new are finite (an old release with renamed pages, the same manual at
  another address) and are fetched as long as the host has wasted less than ``waste_share`` of its fetches;
- *growth*: recently each fetch led to at least one more URL of the same kind, and these have signs of arithmetic (the
  next month, another session, the same folders again), or most fetches led to texts that differ in a few words. Every
  site grows until all of it is known, so without such signs growth shows nothing before a thousand fetches and half of
  the host's.

The *typical* length is the mean number of words of the page on which a word of this host occurs (a mean in which long
pages weigh more), bounded above: beyond some length a page is simply rich. A host whose pages are all short is measured
by its own short pages.
"""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any, NamedTuple

PatternKey = tuple[str, str]
"""A host and a pattern on it."""

LEAD_DISCOUNT = 0.9
UNREACHED_STEPS = 99
MAX_TARGETS = 8
MAX_FINDERS = 4
# Growth is measured over the last fetches: for a finite set it ends.
GROWTH_WINDOW = 32
MAX_CHILD_NAMES = 64
MIN_SIGNS = 2
ECHO_SHARE = 0.5
GROWING_SHARE = 0.5
MIN_WORDS = 10


@dataclass(frozen=True, slots=True)
class TrapBudget:
    """The trap budget: how much may be spent on unproven URL patterns; debts are counted in fetches.

    - ``fetches_per_page``: how many fetches a typical page pays for.
    - ``free_tries``: how often a pattern is tried whatever its host owes, if it is within ``near_steps`` of a named
      page or was found where fetches are repaid.
    - ``pattern_debt``: what a pattern may owe (``named_debt`` if a sitemap or feed named it), plus ``retry_share`` of
      the host's good pages; ``host_debt`` and ``host_share``: the same for all patterns of a host together.
    - ``patience``: what a pattern of a named host may owe, as long as its fetches bring something new, until the host
      has brought ``proven_good`` typical pages of some length: its pages may all be short.
    - ``poor_hosts``: how many hosts of one registrable domain may be poor, or not yet proved by ``host_proof`` fetches,
      and ``poor_share``: how many more for each that is not.
    - ``rich_words``: a text of this length is rich anywhere; ``first_words``: the assumed typical length on an unknown
      host, with the weight of one page.
    - ``repeated_share``: this share of a pattern's fetches must have brought known text to call it repeated: after
      ``parameter_tries`` fetches if URLs differ in parameters, else after ``repeated_tries``; a host that was not named
      is a mirror after ``mirror_tries``. While a host has wasted less than ``waste_share`` of its fetches, patterns
      without parameters must also be growing.
    - ``growth``: how many more URLs of the same kind each fetch leads to in an endless pattern, shown after
      ``sign_tries`` fetches with signs of arithmetic, ``similar_tries`` with texts that are nearly the same, else
      ``growth_tries`` and ``growth_share`` of the host's fetches.
    - ``max_patterns``: how many patterns a host may have; further ones are folded.
    """

    fetches_per_page: float = 3.0
    free_tries: float = 1.0
    near_steps: int = 2
    pattern_debt: float = 1.0
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
    repeated_share: float = 0.8
    parameter_tries: int = 2
    repeated_tries: int = 24
    mirror_tries: int = 8
    waste_share: float = 0.1
    growth: float = 1.0
    sign_tries: int = 2
    similar_tries: int = 20
    growth_tries: int = 1000
    growth_share: float = 0.5


@dataclass(frozen=True, slots=True)
class FetchYield:
    """Result of a fetch for the trap detector: how many words of main text.

    A copy is a page whose text was known from another URL, or that names another URL as canonical. ``is_free`` means
    that the fetch says nothing about similar pages and makes no debt: an image, a redirect, an error, a twin by scheme,
    www, slash, version or language. ``is_similar`` pages have nearly the text of another one, and make no debt either.
    """

    words: int = 0
    status: int = 200
    is_copy: bool = False
    is_missing: bool = False
    is_free: bool = False
    is_similar: bool = False

    @property
    def new_words(self) -> int:
        """The words that count for the trap detector: none of a copy, an error, a redirect or a soft 404."""
        is_new = self.cost and not (self.is_copy or self.is_missing)
        return self.words if is_new else 0

    @property
    def is_wasted(self) -> bool:
        """Whether the fetch brought nothing new; pages with almost no text do not count as copies."""
        return bool(self.cost) and (self.is_missing or (self.is_copy and self.words >= MIN_WORDS))

    @property
    def cost(self) -> float:
        """The part of a fetch that is charged to its pattern."""
        if self.is_copy or self.is_missing:
            return 0.0 if self.is_free else 1.0
        return 0.0 if self.is_free or self.is_similar or self.status >= 400 else 1.0


def compute_typical_words(squares: float, words: float, budget: TrapBudget) -> float:
    """Compute a host's typical page length in words, from the sums over pages of words squared and of words."""
    first = budget.first_words
    return (squares + first * first) / (words + first)


@dataclass(slots=True, eq=False)
class PatternYield:
    """The yield account of one URL pattern; ``rate`` and ``earned`` are as of the last settlement.

    ``is_counted`` is False if other patterns already carry its debts. ``steps`` is how many patterns are between it and
    a named one (a start URL, or listed in a sitemap). ``wasted`` are fetches of copies and of missing pages.
    ``announced_rate`` is the rate that the patterns leading here know.

    ``tries`` counts all fetches, charged or not, ``pages`` those that brought a page, ``similar`` those whose text was
    nearly that of another page. ``born`` are the URLs of this kind first found on pages of this kind, over the last
    ``window`` fetches, and ``parents`` these pages; ``signs`` those of them that seem computed, ``echoes`` folders
    within folders of the same names, ``child_names`` the first folders within folders.
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
    tries: int = 0
    pages: int = 0
    similar: int = 0
    born: float = 0.0
    window: float = 0.0
    signs: int = 0
    echoes: float = 0.0
    child_names: set[str] = field(default_factory=set)
    parents: float = 0.0
    last_parent: str = ""

    @property
    def growth(self) -> float:
        """How many more URLs of its kind each of the last fetches of a URL pattern led to."""
        return self.born / self.window if self.window else 0.0

    @property
    def is_growing(self) -> bool:
        """Whether most of the last fetches led to new URLs; one page that names all others is no growth."""
        return self.parents >= GROWING_SHARE * self.window

    @property
    def is_computed(self) -> bool:
        """Whether the URLs found on pages of its kind seem computed: the next month, or nested folders."""
        return self.signs >= MIN_SIGNS or self.echoes >= max(MIN_SIGNS, ECHO_SHARE * self.born)

    @property
    def mean_words(self) -> float:
        """How many new words a charged fetch of a URL pattern brought, with long pages weighing more."""
        return sqrt(self.squares / self.fetched) if self.fetched else 0.0

    @property
    def debt(self) -> float:
        """The debt of a URL pattern: fetches, made or in flight, that its yield has not paid for."""
        owed = self.fetched + self.in_flight - self.earned
        return max(0.0, owed)

    @property
    def fresh_share(self) -> float:
        """The share of a URL pattern's fetches that brought something new; 0 before the first."""
        return max(0.0, 1.0 - self.wasted / self.fetched) if self.fetched else 0.0

    def add_try(self, *, is_page: bool, is_similar: bool) -> None:
        """Count a fetch of a URL pattern, and whether it brought a page that says something about others."""
        self.tries += 1
        self.pages += is_page
        self.similar += is_similar
        if self.window >= GROWTH_WINDOW:
            self.window, self.born, self.echoes = self.window / 2, self.born / 2, self.echoes / 2
            self.parents /= 2
        self.window += 1

    def add_birth(self, name: str, from_url: str, *, is_computed: bool) -> None:
        """Count a URL first found on a page of its own kind; ``name`` is what it adds to that page's folder.

        A folder within a folder echoes if an outer one also has a folder of that name.
        """
        self.born += 1
        self.signs += is_computed
        self.parents += from_url != self.last_parent
        self.last_parent = from_url
        if name:
            outer = from_url.split("/")[3:-1]
            above = (from_url.removesuffix("/".join((*outer[depth:], ""))) for depth in range(len(outer)))
            self.echoes += any(f"{folder}{name}" in self.child_names for folder in above)
            if len(self.child_names) < MAX_CHILD_NAMES:
                self.child_names.add(f"{from_url}{name}")

    def is_repeated(self, budget: TrapBudget, tries: int) -> bool:
        """Check whether nearly all fetches of a URL pattern, and at least this many, brought known text."""
        return self.pages >= tries and self.wasted >= budget.repeated_share * self.pages

    def explain_endless(
        self, budget: TrapBudget, patience: float, *, is_parameter: bool, is_spared: bool = False
    ) -> str:
        """Explain the evidence that a URL pattern is endless; empty if there is none.

        ``patience`` is the number of fetches after which growth alone counts. ``is_spared`` means that the host has
        wasted little so far: then repeated text alone does not count.
        """
        is_strict = is_parameter or not is_spared
        tries = budget.parameter_tries if is_parameter else budget.repeated_tries
        if self.is_repeated(budget, tries) and (is_strict or self.is_growing):
            return f"{self.wasted} of {self.pages} pages repeated text that is known from other URLs"
        if self.growth < budget.growth:
            return ""
        leads = f"each of {self.tries} fetches led to {self.growth:.1f} more"
        is_repeated = self.is_repeated(budget, 2 * budget.sign_tries)
        if is_repeated and is_strict and self.wasted >= budget.repeated_share * self.tries:
            return f"{leads}, with text that is known from other URLs"
        if self.tries >= budget.sign_tries and self.is_computed:
            return f"{leads}, from month to month" if self.signs else f"{leads}, the same folders within each other"
        is_similar = self.tries >= budget.similar_tries and self.similar >= budget.repeated_share * self.tries
        if is_similar and self.is_growing:
            return f"{leads}, with nearly the same text"
        return f"{leads}, without an end" if self.tries >= patience else ""

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
        growth = [round(self.born, 1), round(self.window, 1), self.signs, round(self.echoes, 1), round(self.parents, 1)]
        seen = [self.tries, self.pages, self.similar, *growth]
        return [*sums, targets, [list(place) for place in self.finders], seen]

    @classmethod
    def from_json(cls, data: list[Any], *, counts: bool) -> "PatternYield":
        """Decode the yield of a URL pattern that ``to_json`` wrote."""
        fetched, barren, squares, steps, rate, targets, finders, *later = data
        seen = later[0] if later else (round(fetched), round(fetched), 0, 0.0, float(fetched), 0, 0.0)
        tries, pages, similar, born, window, signs, echoes, *parents = seen
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
            tries=tries,
            pages=pages,
            similar=similar,
            born=born,
            window=window,
            signs=signs,
            echoes=echoes,
            parents=parents[0] if parents else born,
        )


@dataclass(slots=True, eq=False)
class HostYield:
    """The yield account of one host: its URL patterns, and the sums that give its typical page length.

    ``good`` is the number of typical pages its fetches amount to, ``wasted`` how many were copies or missing.
    ``is_seeded`` if the operator named it. ``settled_words`` is the typical length when all its patterns were last
    settled.
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

    def is_spared(self, budget: TrapBudget) -> bool:
        """Check whether a host has wasted little so far, so that finite copies on it may be fetched."""
        return self.wasted < budget.waste_share * self.fetched

    @property
    def fresh_share(self) -> float:
        """The share of a host's fetches that brought something new; 1 before the first."""
        return 1.0 - self.wasted / max(self.fetched, 1)

    def is_mirror(self, budget: TrapBudget) -> bool:
        """Check whether nearly everything a host brought was known before; never for a host that the operator named."""
        repeated = self.wasted >= budget.repeated_share * self.fetched
        return not self.is_seeded and self.fetched >= budget.mirror_tries and repeated

    def compute_typical(self, budget: TrapBudget) -> float:
        """Compute how many words a typical page of this host has."""
        return compute_typical_words(self.squares, self.words, budget)

    def to_json(self) -> dict[str, Any]:
        """Encode the yield of a host as JSON values, with everything a restart needs."""
        sums = [self.fetched, self.wasted, round(self.good, 3), round(self.words), round(self.squares)]
        return {
            "sums": sums,
            "is_seeded": self.is_seeded,
            "is_poor": self.is_poor,
            "patterns": {name: one.to_json() for name, one in self.patterns.items()},
        }

    @classmethod
    def from_json(cls, name: str, domain: str, data: dict[str, Any]) -> "HostYield":
        """Decode the yield of a host that ``to_json`` wrote."""
        fetched, barren, good, words, squares = data["sums"]
        patterns = {
            pattern: PatternYield.from_json(one, counts=pattern[0] == "/") for pattern, one in data["patterns"].items()
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
            is_seeded=data["is_seeded"],
            is_poor=data["is_poor"],
        )


class FetchAccount(NamedTuple):
    """The accounts that a fetch is charged to: its pattern, all URLs with the same parameters, and its family."""

    host: HostYield
    patterns: tuple[PatternYield, ...]
    parameters: str = ""

    def add_in_flight(self, change: int) -> None:
        """Change the number of requests in flight on the accounts of a fetch."""
        host = self.host
        host.in_flight = max(0, host.in_flight + change)
        for pattern in self.patterns:
            before = pattern.debt
            pattern.in_flight = max(0, pattern.in_flight + change)
            if pattern.is_counted:
                host.debt += pattern.debt - before
