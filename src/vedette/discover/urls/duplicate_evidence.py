"""Learn which URLs are duplicates: pairs of URLs with the same page, or not, are evidence for copy rules.

A pair is evidence for a rule only if its URLs differ in exactly that respect (``observe_pair``); if parameters differ,
several together may be shown to make no difference, but only one alone to make one. Most pairs come from a group of
near copies: a new URL and the leader of its group. They always agree; disagreeing pairs come from ``ReferenceUrls`` and
from checks of active rules.

A rule is *accepted* if at least ``MIN_PAIRS`` distinct pairs agree, on at least ``MIN_PATHS`` distinct paths, and the
share that disagrees is below ``MAX_DISAGREEMENT``. That a host serves the same pages over http and https is expected:
``MIN_SCHEME_PAIRS`` are enough. A rule for a whole host also needs that no folder contradicts it, and one for whole
queries that no parameter does. A rule *falls* when this many disagreeing pairs would occur by chance in less than one
of twenty cases if their share were really ``MAX_DISAGREEMENT`` (one-sided binomial test); then it starts from nothing,
but the disagreements are remembered. Counts are halved above ``MAX_PAIRS``, so that changes of a site are noticed.

What makes a host a mirror of another? Between hosts of one registrable domain, equal pages are enough, and https is
preferred to http. Otherwise only the host that would no longer be fetched can declare it, by redirect or canonical link
(``is_declared``): otherwise anyone who copies a site could take its place.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import comb
from typing import NamedTuple

import xxhash

from vedette.discover.urls.duplicate_rules import (
    ENDINGS,
    EVERYWHERE,
    INDEX_FILES,
    CopyRule,
    CopyRules,
    RuleSubject,
    UrlParts,
    extract_folder,
    merge_slashes,
    split_url,
)
from vedette.model import registrable_domain

MIN_PAIRS = 5
MIN_PATHS = 3
MIN_SCHEME_PAIRS = 2
MAX_DISAGREEMENT = 0.02
SIGNIFICANCE = 0.05
MAX_PAIRS = 64
MAX_TALLIES = 256
MAX_NAME_LENGTH = 64
MAX_DIFFERING = 4
_RECENT_PAIRS = 16


class Observation(NamedTuple):
    """A pair of URLs as evidence for or against a copy rule; ``path`` and ``pair`` are hashes that identify it.

    If the rule is about the whole query, the names of the parameters replace the path.
    """

    subject: RuleSubject
    path: int
    pair: int
    agrees: bool


def observe_pair(url: str, leader: str, *, same: bool = True, is_declared: bool = False) -> tuple[Observation, ...]:
    """Return the evidence that a pair of URLs gives for copy rules; none if they differ in more than one respect.

    ``is_declared`` is for a ``url`` that itself led to the leader, by redirect or as its canonical.

    >>> [seen.subject[2:] for seen in observe_pair("http://a.example/x/?b=1&c=2", "http://a.example/x/?c=2")]
    [('*', 'b'), ('/x/', 'b')]
    """
    one, other = split_url(url), split_url(leader)
    if one is None or other is None or one == other:
        return ()
    subjects = _find_difference(one, other, same=same, is_declared=is_declared)
    return tuple(_build_observations(subjects, url, leader, same=same))


def observe_check(learned: CopyRules, url: str, *, same: bool) -> tuple[Observation, ...]:
    """Return the evidence that the fetch of a covered URL gives for all copy rules that cover it.

    It agrees if the URL is the page they lead to.
    """
    target, covering = learned.find_covering(url)
    parts = split_url(url)
    if parts is None:
        return ()
    folder = extract_folder(parts.path)
    subjects = dict.fromkeys(
        subject for rule in covering for subject in (rule.subject, _narrow_to_folder(rule.subject, folder))
    )
    return tuple(_build_observations(subjects, url, target, same=same))


def _build_observations(subjects: Iterable[RuleSubject], url: str, leader: str, *, same: bool) -> Iterator[Observation]:
    path = _hash(url.partition("?")[0].partition("://")[2].partition("/")[2])
    # A rule about all queries needs different kinds of queries, not several pages with one kind of query.
    make = _hash("&".join(sorted(piece.partition("=")[0] for piece in url.partition("?")[2].split("&"))))
    pair = _hash(url) ^ _hash(leader)
    return (Observation(subject, make if subject.kind == "query" else path, pair, same) for subject in subjects)


def _narrow_to_folder(subject: RuleSubject, folder: str) -> RuleSubject:
    return subject._replace(where=folder) if subject.kind in {"parameter", "query"} else subject


def _hash(text: str) -> int:
    return xxhash.xxh32_intdigest(text.encode("utf-8", "replace"))


def _find_difference(one: UrlParts, other: UrlParts, *, same: bool, is_declared: bool) -> tuple[RuleSubject, ...]:
    """Find the one respect in which two URLs differ, as the subject of a copy rule."""
    if one[:2] != other[:2]:
        return _diff_origins(one, other, trusted=is_declared or not same) if one[2:] == other[2:] else ()
    if one.path != other.path:
        return _diff_paths(one, other, is_declared=is_declared) if one.query == other.query else ()
    return _diff_queries(one, other, same=same)


def _diff_origins(one: UrlParts, other: UrlParts, *, trusted: bool) -> tuple[RuleSubject, ...]:
    kin = find_domain(one.host) == find_domain(other.host)
    downgrade = one.scheme == "https" and other.scheme == "http"
    if not kin and (downgrade or not trusted):
        return ()
    source, target = (other, one) if downgrade else (one, other)
    return (RuleSubject("origin", source.host, source.scheme, f"{target.scheme}://{target.host}"),)


@lru_cache(maxsize=4096)
def find_domain(host: str) -> str:
    """Return the registrable domain of a host that may have a port, for evidence on duplicate hosts."""
    name, colon, port = host.rpartition(":")
    return registrable_domain(name if colon and port.isdigit() else host)


def _diff_paths(one: UrlParts, other: UrlParts, *, is_declared: bool) -> tuple[RuleSubject, ...]:
    if merge_slashes(one.path) == merge_slashes(other.path):
        return (RuleSubject("slashes", one.host, EVERYWHERE, ""),)
    short, long = sorted((one.path, other.path), key=len)
    added = long.removeprefix(short)
    if short.endswith("/") and added in INDEX_FILES:
        return (RuleSubject("index", one.host, EVERYWHERE, added),)
    if added in ENDINGS and not short.endswith("/"):
        return (RuleSubject("ending", one.host, EVERYWHERE, added),)
    # Servers redirect a folder to its slash, and have pages without an ending beside it, which no slash leads to.
    if added == "/" and not is_declared:
        return (RuleSubject("slash", one.host, EVERYWHERE, "drop" if one.path == long else "add"),)
    return ()


def _diff_queries(one: UrlParts, other: UrlParts, *, same: bool) -> tuple[RuleSubject, ...]:
    ones, others = _group_parameters(one), _group_parameters(other)
    differing = [name for name in ones | others if ones.get(name) != others.get(name)]
    folder = extract_folder(one.path)
    if len(folder) > MAX_NAME_LENGTH or not 0 < len(differing) <= MAX_DIFFERING:
        return ()
    # A path in place of a query is evidence only for its folder; it is a value, not the name of a parameter.
    if any(_is_value(piece) for name in differing for piece in (*ones.get(name, ()), *others.get(name, ()))):
        return () if ones.keys() & others.keys() else (RuleSubject("query", one.host, folder, ""),)
    if max(map(len, differing)) > MAX_NAME_LENGTH:
        return ()
    # If all of them together make no difference, neither does each; if they make one, none in particular is known to.
    names = differing if same or len(differing) == 1 else []
    subjects = [RuleSubject("parameter", one.host, where, name) for name in names for where in (EVERYWHERE, folder)]
    if not (ones and others):
        subjects += [RuleSubject("query", one.host, where, "") for where in (EVERYWHERE, folder)]
    return tuple(subjects)


def _is_value(piece: str) -> bool:
    """Check whether a piece of a query is a path or file in place of a parameter, as in ``index.html?org/a/B.html``."""
    return "=" not in piece and ("/" in piece or "." in piece)


def _group_parameters(parts: UrlParts) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for piece in (parts.query or "").split("&"):
        if piece:
            found.setdefault(piece.partition("=")[0], []).append(piece)
    return found


@dataclass(frozen=True, slots=True)
class Tally:
    """The evidence on a copy rule: how many pairs agreed and disagreed, some paths, and the latest pairs."""

    agreed: int = 0
    disagreed: int = 0
    paths: tuple[int, ...] = ()
    recent: tuple[int, ...] = ()
    accepted: bool = False

    @property
    def pairs(self) -> int:
        """The number of URL pairs that are evidence on the copy rule."""
        return self.agreed + self.disagreed

    @property
    def disputed(self) -> bool:
        """Whether too many URL pairs disagree for the copy rule to be accepted again."""
        return self.disagreed > 0 and self.disagreed >= MAX_DISAGREEMENT * self.pairs

    def add(self, seen: Observation) -> "Tally":
        """Return the tally after one more URL pair; a recent pair that says the same is not counted again."""
        mark = seen.pair << 1 | seen.agrees
        if mark in self.recent:
            return self
        agreed, contrary = self.agreed, self.disagreed
        if self.pairs >= MAX_PAIRS:
            agreed, contrary = agreed // 2, contrary // 2
        updated = replace(
            self,
            agreed=agreed + seen.agrees,
            disagreed=contrary + (not seen.agrees),
            paths=tuple(dict.fromkeys((*self.paths, seen.path)))[:MIN_PATHS] if seen.agrees else self.paths,
            recent=(*self.recent, mark)[-_RECENT_PAIRS:],
        )
        return _drop_if_refuted(updated) if self.accepted else _accept_if_proven(updated, seen.subject)


def _accept_if_proven(tally: Tally, subject: RuleSubject) -> Tally:
    is_scheme = subject.kind == "origin" and subject.what == f"https://{subject.host}"
    pairs, paths = (MIN_SCHEME_PAIRS, MIN_SCHEME_PAIRS) if is_scheme else (MIN_PAIRS, MIN_PATHS)
    enough = tally.agreed >= pairs and len(tally.paths) >= paths
    return replace(tally, accepted=enough and not tally.disputed)


def _drop_if_refuted(tally: Tally) -> Tally:
    return replace(tally, agreed=0, paths=(), accepted=False) if _is_refuted(tally) else tally


def _is_refuted(tally: Tally) -> bool:
    """Test whether the evidence refutes a copy rule: P(at least this many disagree) < CHANCE at MAX_DISAGREEMENT."""
    pairs, share = tally.pairs, MAX_DISAGREEMENT
    fewer = sum(comb(pairs, k) * share**k * (1 - share) ** (pairs - k) for k in range(tally.disagreed))
    return tally.disagreed > 0 and 1.0 - fewer < SIGNIFICANCE


_Tallies = Mapping[RuleSubject, Tally]


@dataclass(frozen=True, slots=True)
class CopyEvidence:
    """All evidence on duplicate URLs, by host: at most ``MAX_TALLIES`` tallies each."""

    hosts: Mapping[str, _Tallies] = field(default_factory=dict)

    def observe(self, seen: Iterable[Observation]) -> "CopyEvidence":
        """Return the evidence on duplicate URLs after these pairs; this one is not changed."""
        hosts, touched = dict(self.hosts), dict[str, dict[RuleSubject, Tally]]()
        for observation in seen:
            subject = _orient(observation.subject, hosts)
            if subject.host not in touched:
                touched[subject.host] = hosts[subject.host] = dict(hosts.get(subject.host, {}))
            tallies = touched[subject.host]
            tallies[subject] = tallies.get(subject, Tally()).add(observation)
            if len(tallies) > MAX_TALLIES:
                del tallies[_find_weakest(tallies)]
        return CopyEvidence(hosts)

    def build_rules(self) -> CopyRules:
        """Build the copy rules that the evidence supports, in a fixed order; of two that conflict the stronger."""
        believed = [
            CopyRule(subject, tally.agreed, tally.pairs)
            for tallies in self.hosts.values()
            for subject, tally in tallies.items()
            if tally.accepted and not _is_vetoed(subject, tallies)
        ]
        believed.sort(key=lambda rule: (rule.subject.where != EVERYWHERE, -rule.agreed, rule.subject))
        return CopyRules(tuple(sorted(_drop_conflicts(believed), key=lambda rule: rule.subject)))

    def to_json(self) -> str:
        """Encode the evidence on duplicate URLs as JSON text, one list per tally."""
        rows = [
            [*subject, tally.agreed, tally.disagreed, tally.paths, tally.recent, tally.accepted]
            for tallies in self.hosts.values()
            for subject, tally in tallies.items()
        ]
        return json.dumps(rows)

    @classmethod
    def from_json(cls, text: str) -> "CopyEvidence":
        """Decode the evidence on duplicate URLs that ``to_json`` wrote."""
        hosts: dict[str, dict[RuleSubject, Tally]] = {}
        for kind, host, where, what, agreed, contrary, paths, recent, believed in json.loads(text):
            tally = Tally(agreed, contrary, tuple(paths), tuple(recent), believed)
            hosts.setdefault(host, {})[RuleSubject(kind, host, where, what)] = tally
        return cls(hosts)


def _find_weakest(tallies: _Tallies) -> RuleSubject:
    """Find the tally to drop if a host has too many: of those with the least evidence the oldest."""
    return min(tallies, key=lambda subject: (tallies[subject].accepted, tallies[subject].pairs))


def _orient(subject: RuleSubject, hosts: Mapping[str, _Tallies]) -> RuleSubject:
    """Return the subject of a copy rule, or its reverse if that has more evidence.

    That two URLs are copies is evidence for both directions.
    """
    opposite = _reverse(subject)
    if opposite is None:
        return subject
    ours = hosts.get(subject.host, {}).get(subject, Tally())
    theirs = hosts.get(opposite.host, {}).get(opposite, Tally())
    return opposite if theirs.agreed > ours.agreed else subject


def _reverse(subject: RuleSubject) -> RuleSubject | None:
    if subject.kind == "slash":
        return subject._replace(what="add" if subject.what == "drop" else "drop")
    scheme, _, host = subject.what.partition("://")
    if subject.kind != "origin" or scheme != subject.where or find_domain(host) != find_domain(subject.host):
        return None
    return RuleSubject("origin", host, scheme, f"{scheme}://{subject.host}")


def _is_vetoed(subject: RuleSubject, tallies: _Tallies) -> bool:
    """Check whether evidence from a folder vetoes a copy rule for the host, or a parameter one for all queries."""
    if subject.kind not in {"parameter", "query"}:
        return False
    disputed = [it for it, tally in tallies.items() if tally.disputed]
    if subject.kind == "query" and any(it.kind == "parameter" for it in disputed):
        return True
    return subject.where == EVERYWHERE and any((it.kind, it.what) == (subject.kind, subject.what) for it in disputed)


def _drop_conflicts(rules: Iterable[CopyRule]) -> list[CopyRule]:
    """Drop copy rules that repeat or contradict an earlier one, or close a circle of hosts."""
    accepted: dict[tuple[str, ...], CopyRule] = {}
    leads: dict[str, str] = {}
    for rule in rules:
        kind, host, where, what = rule.subject
        slot = (kind, host, where) if kind in {"origin", "slash"} else rule.subject
        if slot in accepted or rule.subject._replace(where=EVERYWHERE) in accepted:
            continue
        if kind == "origin" and _follow_origin(what, leads) == f"{where}://{host}":
            continue
        accepted[slot] = rule
        if kind == "origin":
            leads[f"{where}://{host}"] = what
    return list(accepted.values())


def _follow_origin(origin: str, leads: Mapping[str, str]) -> str:
    while origin in leads:
        origin = leads[origin]
    return origin


# Groups of copies only show what is the same. So for a domain on which copies were seen at all, a few fetched URLs
# are remembered, and each new one is compared with those of its *slot*: the path without index file, trailing slash,
# ending and query. URLs of one slot are spellings of one address; if two differ in exactly one respect, they are
# evidence for or against the rule about it. Slots are chosen by hash, the ``MAX_SLOTS`` smallest of a domain. All
# spellings of a chosen address are remembered, so partners meet, and the selection is random rather than by the order
# of the crawl. Two fetches more than ``MAX_GAP_S`` apart may differ because the page changed, and are no evidence.


MAX_SLOTS = 32
MAX_PER_SLOT = 4
MAX_URL_LENGTH = 512
MAX_GAP_S = 86_400.0


class FetchedUrl(NamedTuple):
    """A URL that yielded a page, to compare with its duplicates; ``content_group`` names its group of copies."""

    url: str
    content_group: int
    fetched_s: float


_Slots = Mapping[int, tuple[FetchedUrl, ...]]


@dataclass(frozen=True, slots=True)
class ReferenceUrls:
    """Fetched URLs that are remembered to compare new ones with, by registrable domain and slot."""

    domains: Mapping[str, _Slots] = field(default_factory=dict)

    def compare(
        self, fetched: Iterable[FetchedUrl], lessons: CopyEvidence
    ) -> tuple[tuple[Observation, ...], "ReferenceUrls"]:
        """Compare fetched URLs with the remembered ones for evidence on copy rules; also return those to remember.

        Domains without evidence are left out.
        """
        suspected = frozenset(find_domain(host) for host in lessons.hosts)
        domains, touched = dict(self.domains), dict[str, dict[int, tuple[FetchedUrl, ...]]]()
        seen: list[Observation] = []
        for one in fetched:
            parts = split_url(one.url)
            domain = find_domain(parts.host) if parts else ""
            if parts is None or domain not in suspected or len(one.url) > MAX_URL_LENGTH:
                continue
            if domain not in touched:
                touched[domain] = domains[domain] = dict(domains.get(domain, {}))
            seen += _compare_slot(touched[domain], _hash_slot(parts), one)
        return tuple(seen), ReferenceUrls(domains)


def _hash_slot(parts: UrlParts) -> int:
    folder, _, name = parts.path.rpartition("/")
    path = folder if name in INDEX_FILES else parts.path
    path = path.rstrip("/")
    ending = next((each for each in ENDINGS if path.endswith(each)), "")
    return xxhash.xxh64_intdigest(path.removesuffix(ending).encode("utf-8", "replace"))


def _compare_slot(slots: dict[int, tuple[FetchedUrl, ...]], slot: int, one: FetchedUrl) -> list[Observation]:
    fetched = slots.get(slot, ())
    seen = [observation for other in fetched for observation in _observe_fetches(one, other)]
    others = tuple(other for other in fetched if other.url != one.url)
    slots[slot] = (*others[: MAX_PER_SLOT - 1], one)
    if len(slots) > MAX_SLOTS:
        del slots[max(slots)]
    return seen


def _observe_fetches(one: FetchedUrl, other: FetchedUrl) -> tuple[Observation, ...]:
    same = one.content_group == other.content_group
    if not same and abs(one.fetched_s - other.fetched_s) > MAX_GAP_S:
        return ()
    return observe_pair(one.url, other.url, same=same)
