"""Who speaks against a rule: pairs of URLs that differ in one respect and turned out to be different pages.

Groups of copies only ever show what is the same. So for a domain on which copies were seen at all, a few fetched URLs
are remembered, and each new one is compared with those of its *slot*: the path without index file, last slash and
query. URLs of one slot are spellings of one address; where two differ in exactly one respect, they speak for or against
the rule about it.

Slots are chosen by hash, the ``MOST_SLOTS`` smallest of a domain. Of an address that is chosen all spellings are, so
partners meet, and which addresses are asked about is left to chance rather than to the order of the crawl. Two
fetches that lie more than ``NEAR_S`` apart may differ because the page changed, and say nothing then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import xxhash

from vedette.discover.urls.duplicate_evidence import Lessons, Observation, domain_of, pair_evidence
from vedette.discover.urls.duplicate_rules import INDEX_FILES, Parts, parted

__all__ = ["Fetched", "Witnesses"]

MOST_SLOTS = 32
MOST_IN_SLOT = 4
LONGEST_WITNESS = 512
NEAR_S = 86_400.0


class Fetched(NamedTuple):
    """A URL that brought a page; ``content`` names its group of copies."""

    url: str
    content: int
    fetched_s: float


_Slots = Mapping[int, tuple[Fetched, ...]]


@dataclass(frozen=True, slots=True)
class Witnesses:
    """The remembered URLs, by registrable domain and slot."""

    domains: Mapping[str, _Slots] = field(default_factory=dict)

    def meet(self, fetched: Iterable[Fetched], lessons: Lessons) -> tuple[tuple[Observation, ...], "Witnesses"]:
        """What these fetches say together with the remembered ones; domains without lessons are left out."""
        suspected = frozenset(domain_of(host) for host in lessons.hosts)
        domains, touched = dict(self.domains), dict[str, dict[int, tuple[Fetched, ...]]]()
        seen: list[Observation] = []
        for one in fetched:
            parts = parted(one.url)
            domain = domain_of(parts.host) if parts else ""
            if parts is None or domain not in suspected or len(one.url) > LONGEST_WITNESS:
                continue
            if domain not in touched:
                touched[domain] = domains[domain] = dict(domains.get(domain, {}))
            seen += _met(touched[domain], _slot(parts), one)
        return tuple(seen), Witnesses(domains)


def _slot(parts: Parts) -> int:
    folder, _, name = parts.path.rpartition("/")
    path = folder if name in INDEX_FILES else parts.path
    return xxhash.xxh64_intdigest(path.rstrip("/").encode("utf-8", "replace"))


def _met(slots: dict[int, tuple[Fetched, ...]], slot: int, one: Fetched) -> list[Observation]:
    known = slots.get(slot, ())
    seen = [said for other in known for said in _said(one, other)]
    others = tuple(other for other in known if other.url != one.url)
    slots[slot] = (*others[: MOST_IN_SLOT - 1], one)
    if len(slots) > MOST_SLOTS:
        del slots[max(slots)]
    return seen


def _said(one: Fetched, other: Fetched) -> tuple[Observation, ...]:
    same = one.content == other.content
    if not same and abs(one.fetched_s - other.fetched_s) > NEAR_S:
        return ()
    return pair_evidence(one.url, other.url, same=same)
