"""Duplicate detection in the coordinator: group near-duplicate pages as they come, and learn URL rules.

The banding index names candidates, their sketches decide. A near-duplicate joins the group of the page that it
resembles; one URL of each group is its canonical (``parse.similarity``). Every pair of copies is evidence about how a
site spells its URLs (``discover.urls.duplicate_evidence``); what was learned keeps later spellings from being fetched
at all.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.discover.urls.duplicate_evidence import (
    CopyEvidence,
    Observation,
    ReferenceUrls,
    find_domain,
    observe_check,
    observe_pair,
)
from vedette.discover.urls.duplicate_evidence import FetchedUrl as Witness
from vedette.discover.urls.duplicate_rules import CopyRules, RuleSubject
from vedette.engine.messages import Content, FetchSuccess
from vedette.engine.ports import BandIndex, ContentRow, CrawlStore, UrlFrontier
from vedette.model import origin_of
from vedette.parse.similarity.canonical import Member, choose_canonical
from vedette.parse.similarity.minhash import compute_bands, estimate_similarity

# The name under which what was learned is kept.
LESSONS_KEY = "lessons"

# Texts with fewer shingles in common than this are different pages that share some text.
MIN_SIMILARITY = 0.9
MAX_CANDIDATES = 4
# Of larger groups the one that stands for them has long been chosen.
MAX_MEMBERS = 64


class PageContent(NamedTuple):
    """A page that was just fetched, with its content, for duplicate detection; a known one had some before."""

    id: int
    url: str
    content: Content
    fetched_s: float
    is_known: bool = False


class DuplicateDetector:
    """Detect duplicate pages, keep duplicate groups and their canonicals, and learn duplicate URL rules."""

    def __init__(self, bands: BandIndex, book: CrawlStore, urls: UrlFrontier, lessons: str = "") -> None:
        self._bands = bands
        self._store = book
        self._urls = urls
        self.lessons = CopyEvidence.from_json(lessons) if lessons else CopyEvidence()
        self.copy_rules = self.lessons.build_rules()
        self.has_new_rules = False
        self._witnesses = ReferenceUrls()
        self._suspected = {find_domain(host) for host in self.lessons.hosts}

    def save(self, results: Sequence[FetchSuccess]) -> dict[int, int]:
        """Save the content of fetched pages, each in its duplicate group; return the groups by page id."""
        pages = [
            PageContent(one.task.id, one.task.url, one.content, one.ended_s, one.task.copy is not None)
            for one in results
            if one.content is not None
        ]
        if not pages:
            return {}
        known = [page.id for page in pages if page.is_known]
        before = self._store.get_contents(known) if known else {}
        # A page that is like no other is a group of its own.
        alike = self._find_duplicates([page for page in pages if page.content.baseline.sketch], before)
        groups = {page.id: alike[page.id].group if page.id in alike else page.id for page in pages}
        self._learn(pages, groups, {id_: row.id for id_, row in alike.items()})
        self._store.save_contents([(page.id, groups[page.id], page.content) for page in pages])
        joined = [group for id_, group in groups.items() if group != id_]
        self._update_canonicals(joined, _find_leavers(pages, before, groups) if before else {})
        return groups

    def _update_canonicals(self, joined: Sequence[int], left: Mapping[int, int]) -> None:
        """Choose the canonical page of duplicate groups that pages joined or left."""
        left_behind = [self._store.rename_group(id_) if group == id_ else group for id_, group in left.items()]
        for group in dict.fromkeys((*joined, *left_behind)):
            members = self._store.get_group_members(group, MAX_MEMBERS + 1)
            if len(members) == 1:
                self._store.dissolve_group(group)
            elif 1 < len(members) <= MAX_MEMBERS:
                self._choose_canonical(group, members)

    def on_redirect(self, url: str, target: str) -> None:
        """Record a redirect as evidence that one URL duplicates another."""
        self._observe(observe_pair(url, target, said=True))

    # who is like whom

    def _find_duplicates(self, pages: Sequence[PageContent], before: Mapping[int, ContentRow]) -> dict[int, ContentRow]:
        """Find the earlier page that each fetched page is a near-duplicate of, where there is one.

        A band stays with the page that had it first, whatever that page says by now: then those pages count that still
        say the same, which are the rest of its group.
        """
        if not pages:
            return {}
        ids = np.array([page.id for page in pages], np.uint32)
        mins = np.frombuffer(b"".join(page.content.baseline.sketch for page in pages), np.uint8).reshape(len(pages), -1)
        matched = self._bands.match_or_add(ids, compute_bands(mins))
        hits = np.flatnonzero(matched.any(axis=1)).tolist()
        if not hits:
            return {}
        named = {at: self._list_candidates(matched[at].tolist(), before.get(pages[at].id)) for at in hits}
        rows = dict(self._store.get_contents(list(dict.fromkeys(id_ for each in named.values() for id_ in each))))
        rows |= {page.id: ContentRow(page.id, page.id, page.content.baseline) for page in pages}
        found: dict[int, ContentRow] = {}
        for at, candidates in named.items():
            page = pages[at]
            others = [rows[id_] for id_ in dict.fromkeys(candidates) if id_ in rows and id_ != page.id]
            best = _pick_best(others, page.content.baseline.sketch)
            if best is not None:
                found[page.id] = best
                rows[page.id] = rows[page.id]._replace(group=best.group)
        return found

    def _list_candidates(self, matched: Sequence[int], before: ContentRow | None) -> list[int]:
        """List candidate duplicates: pages sharing a MinHash band, their groups, and the page's own group."""
        shared = _rank_candidates(matched)
        return [*shared, *self._store.get_renamed_groups(shared), *([before.group] if before else [])]

    def _choose_canonical(self, group: int, members: Sequence[tuple[int, str, str]]) -> None:
        present = self._store.get_canonical(group)
        named = self._urls.count_inlinks(np.array([id_ for id_, _, _ in members], np.uint32)).tolist()
        known = [
            Member(url, declared, in_links=times, found=float(id_))
            for (id_, url, declared), times in zip(members, named, strict=True)
        ]
        place, why = choose_canonical(known, next((url for id_, url, _ in members if id_ == present), ""))
        self._store.save_canonical(group, members[place][0], why, len(members))

    # what that teaches

    def _learn(self, pages: Sequence[PageContent], groups: Mapping[int, int], leaders: Mapping[int, int]) -> None:
        seen: list[Observation] = []
        urls = self._store.get_urls(leaders.values()) if leaders else {}
        for page in pages if leaders or self.copy_rules.rules else ():
            leader = urls.get(leaders.get(page.id, 0))
            if leader is not None:
                seen += observe_pair(page.url, leader)
            if self.copy_rules.rules:
                seen += self._check_rules(page, groups)
        if self._suspected:
            seen += self._collect_testimony(pages, groups)
        self._observe(seen)

    def _collect_testimony(self, pages: Sequence[PageContent], groups: Mapping[int, int]) -> tuple[Observation, ...]:
        """Collect duplicate evidence from pages of domains on which copies were seen before."""
        suspects = [page for page in pages if find_domain(origin_of(page.url).host) in self._suspected]
        if not suspects:
            return ()
        witnesses = [Witness(page.url, groups[page.id], page.fetched_s) for page in suspects]
        said, self._witnesses = self._witnesses.compare(witnesses, self.lessons)
        return said

    def _check_rules(self, page: PageContent, groups: Mapping[int, int]) -> tuple[Observation, ...]:
        """Test learned duplicate URL rules against a page that was fetched although they cover it."""
        if self.copy_rules.apply(page.url)[1] is None:
            return ()
        target, covering = self.copy_rules.find_covering(page.url)
        if not covering or target == page.url:
            return ()
        id_ = int(self._urls.find_ids([target])[0])
        row = self._store.get_contents([id_]).get(id_) if id_ else None
        return observe_check(self.copy_rules, page.url, same=row.group == groups[page.id]) if row else ()

    def _observe(self, seen: Sequence[Observation]) -> None:
        if not seen:
            return
        before, self.lessons = self.lessons, self.lessons.observe(seen)
        names = dict.fromkeys(name for observation in seen for name in _hosts_of(observation.subject))
        self._suspected.update(map(find_domain, names))
        if any(_has_belief(lessons, name) for name in names for lessons in (before, self.lessons)):
            self._adopt_rules(self.lessons.build_rules())

    def _adopt_rules(self, learned: CopyRules) -> None:
        if [rule.subject for rule in learned.rules] != [rule.subject for rule in self.copy_rules.rules]:
            self.copy_rules, self.has_new_rules = learned, True


def _hosts_of(subject: RuleSubject) -> tuple[str, ...]:
    """Return the hosts that a piece of duplicate evidence concerns.

    What is a copy of what is settled by the evidence for either.
    """
    return (subject.host, subject.what.partition("://")[2]) if subject.kind == "origin" else (subject.host,)


def _has_belief(lessons: CopyEvidence, name: str) -> bool:
    return any(tally.accepted for tally in lessons.hosts.get(name, {}).values())


def _find_leavers(
    pages: Sequence[PageContent], before: Mapping[int, ContentRow], groups: Mapping[int, int]
) -> dict[int, int]:
    """Find the pages whose text no longer matches their duplicate group, and those groups."""
    sketches = {page.id: page.content.baseline.sketch for page in pages}
    return {
        id_: row.group
        for id_, row in before.items()
        if row.group != groups[id_] or (row.group == id_ and _compare_sketches(row, sketches[id_]) < MIN_SIMILARITY)
    }


def _rank_candidates(row: Sequence[int]) -> list[int]:
    """Rank the candidate duplicates of a page by how many MinHash bands they share."""
    counts: dict[int, int] = {}
    for id_ in row:
        if id_:
            counts[id_] = counts.get(id_, 0) + 1
    return sorted(counts, key=lambda id_: (-counts[id_], id_))[:MAX_CANDIDATES]


def _pick_best(rows: Sequence[ContentRow], sketch: bytes) -> ContentRow | None:
    """Pick the most similar candidate duplicate, if it is similar enough."""
    best = max(rows, key=lambda row: (_compare_sketches(row, sketch), -row.id), default=None)
    return best if best is not None and _compare_sketches(best, sketch) >= MIN_SIMILARITY else None


def _compare_sketches(row: ContentRow, sketch: bytes) -> float:
    return estimate_similarity(row.baseline.sketch, sketch) if len(row.baseline.sketch) == len(sketch) else 0.0
