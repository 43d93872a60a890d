"""How copies are learned: pairs of URLs that were found to be the same page, or not, speak for or against rules.

A pair speaks of a rule only when its URLs differ in exactly that respect (``pair_evidence``); where parameters differ,
a few of them together may be shown to make no difference, but only one alone to make one. Most pairs come from a
group of near copies: a new URL and the leader of its group. They only ever agree; those that disagree come from
``copy_witnesses`` and from the checks of rules that are in force.

*Believed* is a rule when at least ``FEWEST_PAIRS`` distinct pairs agree, on at least ``FEWEST_PATHS`` distinct paths,
and the share of those that disagree is below ``MOST_CONTRARY``. A rule for a whole host also needs that no folder
speaks against it, and one for whole queries that no parameter does. A rule *falls* when so many disagreeing pairs
would come by chance in less than one of twenty cases if their share were really ``MOST_CONTRARY`` (one-sided binomial
test); then it starts from nothing, but what disagreed is remembered. Counts are halved when they pass
``LONGEST_MEMORY``, so that a site that changes its ways is noticed.

Who may say that a host is another's mirror? Between hosts of one registrable domain, equal pages are enough, and https
is preferred to http. Between strangers only the host that would no longer be fetched may say so, by redirect or
canonical link (``said``): else whoever copies a site could take its place.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import comb
from typing import NamedTuple

import xxhash

from vedette.discover.urls.duplicate_rules import (
    EVERYWHERE,
    INDEX_FILES,
    Learned,
    Parts,
    Rule,
    Subject,
    folder_of,
    parted,
)
from vedette.model import registrable_domain

__all__ = ["Fetched", "Lessons", "Observation", "Tally", "Witnesses", "check_evidence", "domain_of", "pair_evidence"]

FEWEST_PAIRS = 5
FEWEST_PATHS = 3
MOST_CONTRARY = 0.02
CHANCE = 0.05
LONGEST_MEMORY = 64
MOST_TALLIES = 256
LONGEST_NAME = 64
MOST_DIFFERING = 4
_RECENT = 16


class Observation(NamedTuple):
    """A pair that speaks for or against a rule; ``path`` and ``pair`` are hashes that tell it from others.

    Where the rule is about the whole query, the names of the parameters stand in for the path.
    """

    subject: Subject
    path: int
    pair: int
    agrees: bool


def pair_evidence(url: str, leader: str, *, same: bool = True, said: bool = False) -> tuple[Observation, ...]:
    """What a pair speaks of; nothing where it differs in more than one respect.

    ``said`` is for a ``url`` that itself led to the leader, by redirect or as its canonical.

    >>> [seen.subject[2:] for seen in pair_evidence("http://a.example/x/?b=1&c=2", "http://a.example/x/?c=2")]
    [('*', 'b'), ('/x/', 'b')]
    """
    one, other = parted(url), parted(leader)
    if one is None or other is None or one == other:
        return ()
    subjects = _difference(one, other, same=same, said=said)
    return tuple(_observations(subjects, url, leader, same=same))


def check_evidence(learned: Learned, url: str, *, same: bool) -> tuple[Observation, ...]:
    """What the fetch of a covered URL says of all rules that cover it: whether it is the page that they lead to."""
    target, covering = learned.covering(url)
    parts = parted(url)
    if parts is None:
        return ()
    folder = folder_of(parts.path)
    subjects = dict.fromkeys(
        subject for rule in covering for subject in (rule.subject, _in_folder(rule.subject, folder))
    )
    return tuple(_observations(subjects, url, target, same=same))


def _observations(subjects: Iterable[Subject], url: str, leader: str, *, same: bool) -> Iterator[Observation]:
    path = _print(url.partition("?")[0].partition("://")[2].partition("/")[2])
    # A rule about all queries needs queries of several makes, not several pages with one make of query.
    make = _print("&".join(sorted(piece.partition("=")[0] for piece in url.partition("?")[2].split("&"))))
    pair = _print(url) ^ _print(leader)
    return (Observation(subject, make if subject.kind == "query" else path, pair, same) for subject in subjects)


def _in_folder(subject: Subject, folder: str) -> Subject:
    return subject._replace(where=folder) if subject.kind in {"parameter", "query"} else subject


def _print(text: str) -> int:
    return xxhash.xxh32_intdigest(text.encode("utf-8", "replace"))


def _difference(one: Parts, other: Parts, *, same: bool, said: bool) -> tuple[Subject, ...]:
    """The one respect in which two URLs differ."""
    if one[:2] != other[:2]:
        return _origin_difference(one, other, trusted=said or not same) if one[2:] == other[2:] else ()
    if one.path != other.path:
        return _path_difference(one, other) if one.query == other.query else ()
    return _query_difference(one, other, same=same)


def _origin_difference(one: Parts, other: Parts, *, trusted: bool) -> tuple[Subject, ...]:
    kin = domain_of(one.host) == domain_of(other.host)
    downgrade = one.scheme == "https" and other.scheme == "http"
    if not kin and (downgrade or not trusted):
        return ()
    source, target = (other, one) if downgrade else (one, other)
    return (Subject("origin", source.host, source.scheme, f"{target.scheme}://{target.host}"),)


@lru_cache(maxsize=4096)
def domain_of(host: str) -> str:
    """The registrable domain of a host that may have a port."""
    name, colon, port = host.rpartition(":")
    return registrable_domain(name if colon and port.isdigit() else host)


def _path_difference(one: Parts, other: Parts) -> tuple[Subject, ...]:
    short, long = sorted((one.path, other.path), key=len)
    added = long.removeprefix(short)
    if short.endswith("/") and added in INDEX_FILES:
        return (Subject("index", one.host, EVERYWHERE, added),)
    if added == "/":
        return (Subject("slash", one.host, EVERYWHERE, "drop" if one.path == long else "add"),)
    return ()


def _query_difference(one: Parts, other: Parts, *, same: bool) -> tuple[Subject, ...]:
    ones, others = _parameters(one), _parameters(other)
    differing = [name for name in ones | others if ones.get(name) != others.get(name)]
    folder = folder_of(one.path)
    if (
        len(folder) > LONGEST_NAME
        or not 0 < len(differing) <= MOST_DIFFERING
        or max(map(len, differing)) > LONGEST_NAME
    ):
        return ()
    # That all of them together make no difference speaks for each; that they make one, for none in particular.
    names = differing if same or len(differing) == 1 else []
    subjects = [Subject("parameter", one.host, where, name) for name in names for where in (EVERYWHERE, folder)]
    if not (ones and others):
        subjects += [Subject("query", one.host, where, "") for where in (EVERYWHERE, folder)]
    return tuple(subjects)


def _parameters(parts: Parts) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for piece in (parts.query or "").split("&"):
        if piece:
            found.setdefault(piece.partition("=")[0], []).append(piece)
    return found


@dataclass(frozen=True, slots=True)
class Tally:
    """The pairs that spoke of a rule: how many agreed and disagreed, some paths, and the latest pairs."""

    agreed: int = 0
    contrary: int = 0
    paths: tuple[int, ...] = ()
    recent: tuple[int, ...] = ()
    believed: bool = False

    @property
    def pairs(self) -> int:
        """All that spoke."""
        return self.agreed + self.contrary

    @property
    def disputed(self) -> bool:
        """Whether too many disagree for a rule to be believed anew."""
        return self.contrary > 0 and self.contrary >= MOST_CONTRARY * self.pairs

    def after(self, seen: Observation) -> "Tally":
        """The tally after one more pair; a pair that spoke lately and says the same is not heard again."""
        mark = seen.pair << 1 | seen.agrees
        if mark in self.recent:
            return self
        agreed, contrary = self.agreed, self.contrary
        if self.pairs >= LONGEST_MEMORY:
            agreed, contrary = agreed // 2, contrary // 2
        heard = replace(
            self,
            agreed=agreed + seen.agrees,
            contrary=contrary + (not seen.agrees),
            paths=tuple(dict.fromkeys((*self.paths, seen.path)))[:FEWEST_PATHS] if seen.agrees else self.paths,
            recent=(*self.recent, mark)[-_RECENT:],
        )
        return _fallen(heard) if self.believed else _risen(heard)


def _risen(tally: Tally) -> Tally:
    enough = tally.agreed >= FEWEST_PAIRS and len(tally.paths) >= FEWEST_PATHS
    return replace(tally, believed=enough and not tally.disputed)


def _fallen(tally: Tally) -> Tally:
    return replace(tally, agreed=0, paths=(), believed=False) if _refuted(tally) else tally


def _refuted(tally: Tally) -> bool:
    """P(at least so many contrary among so many pairs) < CHANCE, were their share MOST_CONTRARY."""
    pairs, share = tally.pairs, MOST_CONTRARY
    fewer = sum(comb(pairs, k) * share**k * (1 - share) ** (pairs - k) for k in range(tally.contrary))
    return tally.contrary > 0 and 1.0 - fewer < CHANCE


_Tallies = Mapping[Subject, Tally]


@dataclass(frozen=True, slots=True)
class Lessons:
    """Everything that was learned of copies, by host: at most ``MOST_TALLIES`` tallies each."""

    hosts: Mapping[str, _Tallies] = field(default_factory=dict)

    def observe(self, seen: Iterable[Observation]) -> "Lessons":
        """The state after these pairs; this one stays as it was."""
        hosts, touched = dict(self.hosts), dict[str, dict[Subject, Tally]]()
        for observation in seen:
            subject = _oriented(observation.subject, hosts)
            if subject.host not in touched:
                touched[subject.host] = hosts[subject.host] = dict(hosts.get(subject.host, {}))
            tallies = touched[subject.host]
            tallies[subject] = tallies.get(subject, Tally()).after(observation)
            if len(tallies) > MOST_TALLIES:
                del tallies[_weakest(tallies)]
        return Lessons(hosts)

    def learned(self) -> Learned:
        """The rules that are believed now, in a fixed order; of two that contradict each other the stronger."""
        believed = [
            Rule(subject, tally.agreed, tally.pairs)
            for tallies in self.hosts.values()
            for subject, tally in tallies.items()
            if tally.believed and not _vetoed(subject, tallies)
        ]
        believed.sort(key=lambda rule: (rule.subject.where != EVERYWHERE, -rule.agreed, rule.subject))
        return Learned(tuple(sorted(_consistent(believed), key=lambda rule: rule.subject)))

    def to_json(self) -> str:
        """As text, one list per tally."""
        rows = [
            [*subject, tally.agreed, tally.contrary, tally.paths, tally.recent, tally.believed]
            for tallies in self.hosts.values()
            for subject, tally in tallies.items()
        ]
        return json.dumps(rows)

    @classmethod
    def from_json(cls, text: str) -> "Lessons":
        """What ``to_json`` wrote."""
        hosts: dict[str, dict[Subject, Tally]] = {}
        for kind, host, where, what, agreed, contrary, paths, recent, believed in json.loads(text):
            tally = Tally(agreed, contrary, tuple(paths), tuple(recent), believed)
            hosts.setdefault(host, {})[Subject(kind, host, where, what)] = tally
        return cls(hosts)


def _weakest(tallies: _Tallies) -> Subject:
    """Which to forget where there are too many: of those with the least evidence the oldest."""
    return min(tallies, key=lambda subject: (tallies[subject].believed, tallies[subject].pairs))


def _oriented(subject: Subject, hosts: Mapping[str, _Tallies]) -> Subject:
    """The subject, or its opposite where that has more evidence: that two are copies speaks for both directions."""
    opposite = _opposite(subject)
    if opposite is None:
        return subject
    ours = hosts.get(subject.host, {}).get(subject, Tally())
    theirs = hosts.get(opposite.host, {}).get(opposite, Tally())
    return opposite if theirs.agreed > ours.agreed else subject


def _opposite(subject: Subject) -> Subject | None:
    if subject.kind == "slash":
        return subject._replace(what="add" if subject.what == "drop" else "drop")
    scheme, _, host = subject.what.partition("://")
    if subject.kind != "origin" or scheme != subject.where or domain_of(host) != domain_of(subject.host):
        return None
    return Subject("origin", host, scheme, f"{scheme}://{subject.host}")


def _vetoed(subject: Subject, tallies: _Tallies) -> bool:
    """Whether a folder contradicts a rule for the whole host, or a parameter one for all queries."""
    if subject.kind not in {"parameter", "query"}:
        return False
    disputed = [it for it, tally in tallies.items() if tally.disputed]
    if subject.kind == "query" and any(it.kind == "parameter" for it in disputed):
        return True
    return subject.where == EVERYWHERE and any((it.kind, it.what) == (subject.kind, subject.what) for it in disputed)


def _consistent(rules: Iterable[Rule]) -> list[Rule]:
    """The rules without those that repeat or contradict an earlier one or close a circle of hosts."""
    kept: dict[tuple[str, ...], Rule] = {}
    leads: dict[str, str] = {}
    for rule in rules:
        kind, host, where, what = rule.subject
        slot = (kind, host, where) if kind in {"origin", "slash"} else rule.subject
        if slot in kept or rule.subject._replace(where=EVERYWHERE) in kept:
            continue
        if kind == "origin" and _end(what, leads) == f"{where}://{host}":
            continue
        kept[slot] = rule
        if kind == "origin":
            leads[f"{where}://{host}"] = what
    return list(kept.values())


def _end(origin: str, leads: Mapping[str, str]) -> str:
    while origin in leads:
        origin = leads[origin]
    return origin


# Groups of copies only ever show what is the same. So for a domain on which copies were seen at all, a few fetched
# URLs are remembered, and each new one is compared with those of its *slot*: the path without index file, last slash
# and query. URLs of one slot are spellings of one address; where two differ in exactly one respect, they speak for or
# against the rule about it. Slots are chosen by hash, the ``MOST_SLOTS`` smallest of a domain. Of an address that is
# chosen all spellings are, so partners meet, and which addresses are asked about is left to chance rather than to the
# order of the crawl. Two fetches that lie more than ``NEAR_S`` apart may differ because the page changed, and say
# nothing then.


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
