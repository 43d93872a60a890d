"""Home's measurements of an observer: its link to home, its links to sites, changes found, and checks.

Stored as JSON with the observer's last contact, so that the console shows what decisions are based on.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from vedette.fetch.observers.costs import ChangeMeter, LinkMeter, compute_direct_s, compute_remote_s

# What an errand sends to the observer besides the URL: number, digest, headers, and its share of a signed message.
ERRAND_BYTES = 400.0
MAX_MISMATCHES = 2
MISMATCH_SHARE = 0.2
CHECK_SHARE = 0.02


class ObservationCosts(NamedTuple):
    """The seconds of an observation of a host's average page from home (eq. 41), and through its observer (eq. 42)."""

    direct_s: float
    remote_s: float


@dataclass(slots=True)
class ObserverFacts:
    """Measurements of one observer.

    ``home`` is its link to home, ``sites`` are its links to hosts, and ``direct`` those from home to these hosts.
    ``addresses`` are the addresses of its hosts. ``checks`` counts pages that home fetched as well, ``mismatches``
    those with another text, and ``refused`` invalid observations.
    """

    home: LinkMeter = field(default_factory=LinkMeter)
    sites: dict[str, LinkMeter] = field(default_factory=dict)
    direct: dict[str, LinkMeter] = field(default_factory=dict)
    changes: dict[str, ChangeMeter] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    held: int = 0
    checks: int = 0
    mismatches: int = 0
    refused: int = 0

    def find_costs(self, host: str) -> ObservationCosts | None:
        """Find what an observation of a host costs both ways; None until there are enough measurements."""
        changes, site, direct = self.changes.get(host), self.sites.get(host), self.direct.get(host)
        home = self.home.fit()
        near, far = site.fit() if site else None, direct.fit() if direct else None
        if changes is None or home is None or near is None or far is None or not changes.mean_bytes:
            return None
        # An errand comes with the reply to a report, and the observer stays, so neither adds latency.
        remote_s = compute_remote_s(1.0, home, near, changes.to_task(ERRAND_BYTES)) - home.latency_s
        return ObservationCosts(compute_direct_s(1.0, far, changes.mean_bytes), remote_s)

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
