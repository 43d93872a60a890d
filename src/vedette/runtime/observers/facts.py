"""Home's measurements of an observer: its link to home, its links to sites, changes found, and checks.

Stored as JSON with the observer's last contact, so that the console shows what decisions are based on.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from vedette.fetch.observers.costs import (
    WINDOW,
    ChangeMeter,
    Link,
    LinkMeter,
    Task,
    compute_direct_s,
    compute_remote_s,
)

# What an errand sends to the observer besides the URL: number, digest, headers, and its share of a signed message.
ERRAND_BYTES = 400.0
MAX_MISMATCHES = 2
MISMATCH_SHARE = 0.2
CHECK_SHARE = 0.02
# What is assumed of a host that an observer has not observed yet: the share of changes, and what is left of each.
ASSUMED_CHANGES, ASSUMED_COMPRESSION = 0.25, 0.1
# A host that refuses this part of an observer's requests, of a few, is not for it.
MIN_ANSWERS, REFUSED_SHARE = 5.0, 0.2
REFUSALS = frozenset({401, 403, 407, 429, 451})


class ObservationCosts(NamedTuple):
    """The seconds of an observation of a host's average page from home (eq. 41), and through its observer (eq. 42)."""

    direct_s: float
    remote_s: float


@dataclass(slots=True)
class ObserverFacts:
    """Measurements of one observer.

    ``addresses`` are those of its hosts; ``refusals`` say how many of its requests to each were refused or failed.

    ``checks`` are pages that home fetched itself as well, ``mismatches`` those that had another text; ``refused`` are
    observations that could not be what they claimed.
    """

    home: LinkMeter = field(default_factory=LinkMeter)
    sites: dict[str, LinkMeter] = field(default_factory=dict)
    direct: dict[str, LinkMeter] = field(default_factory=dict)
    changes: dict[str, ChangeMeter] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, tuple[float, float]] = field(default_factory=dict)
    held: int = 0
    checks: int = 0
    mismatches: int = 0
    refused: int = 0

    def find_costs(self, host: str) -> ObservationCosts | None:
        """Find what an observation of a host costs both ways; None until there are enough measurements."""
        changes, site, direct = self.changes.get(host), self.sites.get(host), self.direct.get(host)
        home = self.home.fit()
        near, far = site.fit() if site else None, direct.fit() if direct else None
        if changes is None or home is None or near is None or far is None:
            return None
        # An errand comes with the reply to a report, and the observer stays, so neither adds latency.
        remote_s = compute_remote_s(1.0, home, near, changes.to_task(ERRAND_BYTES)) - home.latency_s
        return ObservationCosts(compute_direct_s(1.0, far, changes.mean_bytes), remote_s)

    def estimate_best(self, size_bytes: float) -> float | None:
        """Estimate what an observation costs at best, on a site next to the observer; None before its link is known.

        >>> home = LinkMeter()
        >>> for size in (1_000, 9_000, 5_000, 7_000, 3_000):
        ...     home = home.add(size, 0.2 + 1e-6 * size)
        >>> round(ObserverFacts(home=home).estimate_best(50_000), 4)
        0.0267
        """
        home = self.home.fit()
        if home is None:
            return None
        task = Task(size_bytes, ASSUMED_CHANGES, ASSUMED_COMPRESSION, ERRAND_BYTES / max(size_bytes, 1.0))
        return compute_remote_s(1.0, home, Link(0.0, 0.0), task) - home.latency_s

    def add_answer(self, host: str, status: int) -> None:
        """Count whether a host answered the observer (status 0: it did not), or refused to."""
        count, refused = self.refusals.get(host, (0.0, 0.0))
        is_refused = status in REFUSALS or not 100 <= status < 500
        kept = 1.0 - 1.0 / WINDOW if count >= WINDOW else 1.0
        self.refusals[host] = count * kept + 1.0, refused * kept + is_refused

    def is_refused(self, host: str) -> bool:
        """Check whether a host refuses the observer, such as one that serves some countries only."""
        count, refused = self.refusals.get(host, (0.0, 0.0))
        return count >= MIN_ANSWERS and refused > REFUSED_SHARE * count

    def estimate_look_s(self, took_s: float, sent_bytes: int) -> float:
        """Estimate the seconds that an observation took: at the site, and for sending it home."""
        link = self.home.fit()
        return took_s + (link.per_byte_s * sent_bytes if link else 0.0)

    @property
    def is_lying(self) -> bool:
        """Whether home's own checks contradict the observer too often for changes to explain it."""
        return self.mismatches >= MAX_MISMATCHES and self.mismatches > MISMATCH_SHARE * self.checks

    def to_json(self) -> str:
        """Serialize the facts about an observer."""
        return msgspec.json.encode(self).decode()


def parse_facts(text: str) -> ObserverFacts:
    """Parse stored facts about an observer; return empty ones if they are of another version.

    >>> facts = ObserverFacts(home=LinkMeter().add(1000, 0.5), checks=3)
    >>> parse_facts(facts.to_json()) == facts, parse_facts("[").checks
    (True, 0)
    """
    try:
        return msgspec.json.decode(text, type=ObserverFacts)
    except msgspec.MsgspecError:
        return ObserverFacts()
