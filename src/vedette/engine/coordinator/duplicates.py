"""Duplicate detection in the coordinator: group near-duplicate pages as they arrive, and learn URL rules.

The banding index proposes candidates, and their sketches decide. A near-duplicate joins the group of the page it
resembles; one URL of each group is the canonical (``parse.similarity``). Every pair of copies is evidence about how a
site spells its URLs (``discover.urls.duplicate_evidence``); learned rules prevent other spellings from being fetched.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from vedette.discover.urls.duplicate_evidence import (
    CopyEvidence,
    Observation,
    ReferenceUrls,
    find_domain,
    observe_check,
    observe_pair,
)
from vedette.discover.urls.duplicate_evidence import FetchedUrl as Witness
from vedette.discover.urls.duplicate_rules import CopyRule, CopyRules, RuleSubject, is_check
from vedette.engine.messages import Content, FetchSuccess
from vedette.engine.ports import BandIndex, ContentRow, CrawlStore, UrlFrontier
from vedette.model import origin_of
from vedette.parse.similarity.canonical import Member, choose_canonical
from vedette.parse.similarity.identity import are_distinct, are_editions, unpack_identity
from vedette.parse.similarity.minhash import compute_bands, estimate_similarity

# The key under which learned rules are stored.
LESSONS_KEY = "lessons"

# Texts with fewer common shingles are different pages that share some text.
MIN_SIMILARITY = 0.9
MAX_CANDIDATES = 4
# Larger groups chose their canonical long ago.
MAX_MEMBERS = 64
# How many fingerprints of whole texts are held in memory, about 10 MB.
MAX_PRINTS = 65_536


class Membership(NamedTuple):
    """The duplicate group that a fetched page joined, and the URL whose text it repeats, empty if it is new.

    ``is_similar`` means that an earlier page has nearly the same text, even if readers could tell the two apart;
    ``is_identical`` that a URL with another query has the same bytes, ``has_other_bytes`` that the page it repeats has
    others; ``stands`` that the page is now the canonical of
    its group.
    """

    group: int
    repeats: str = ""
    is_similar: bool = False
    is_identical: bool = False
    stands: bool = True
    has_other_bytes: bool = False


class PageContent(NamedTuple):
    """A page that was just fetched, with its content, for duplicate detection."""

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
        self._same_text: dict[bytes, int] = {}
        self._suspected = {find_domain(host) for host in self.lessons.hosts}

    def save(self, results: Sequence[FetchSuccess]) -> dict[int, Membership]:
        """Save the content of fetched pages, each in its duplicate group; return what it joined, by page id."""
        pages = [
            PageContent(one.task.id, one.task.url, one.content, one.ended_s, one.task.copy is not None)
            for one in results
            if one.content is not None
        ]
        if not pages:
            return {}
        known = [page.id for page in pages if page.is_known]
        before = self._store.get_contents(known) if known else {}
        # A page unlike any other is a group of its own.
        alike, similar = self._find_duplicates([page for page in pages if page.content.baseline.sketch], before)
        groups = {page.id: alike[page.id].group if page.id in alike else page.id for page in pages}
        same = {page.id: self._find_same_bytes(page) for page in pages}
        originals = same | {id_: row.id for id_, row in alike.items()}
        urls = self._store.get_urls(originals.values()) if originals else {}
        leaders = {id_: urls[other] for id_, other in originals.items() if other != id_ and other in urls}
        self._learn(pages, same | {id_: row.group for id_, row in alike.items()}, leaders)
        self._store.save_contents([(page.id, groups[page.id], page.content) for page in pages])
        joined = [group for id_, group in groups.items() if group != id_]
        self._update_canonicals(joined, _find_leavers(pages, before, groups) if before else {})
        return {
            page.id: Membership(
                groups[page.id],
                leaders.get(page.id, ""),
                page.id in similar,
                "?" in page.url and same[page.id] != page.id,
                self._stands(page.id, groups[page.id]),
                page.id in alike and alike[page.id].baseline.body_digest != page.content.baseline.body_digest,
            )
            for page in pages
        }

    def on_gone(self, ids: Sequence[int]) -> None:
        """Choose a new canonical for the duplicate groups of pages that are gone or have moved."""
        groups = [row.group for row in self._store.get_contents(ids).values()] if ids else []
        self._update_canonicals(groups, {})

    def delete_pages(self, ids: Sequence[int]) -> None:
        """Delete everything stored about pages, and choose a new canonical for their duplicate groups."""
        if ids:
            left = {id_: row.group for id_, row in self._store.get_contents(ids).items()}
            self._store.delete_url_data(ids, pages=True)
            self._update_canonicals((), left)

    def _stands(self, id_: int, group: int) -> bool:
        """Check whether a page is the canonical of its duplicate group, after the canonical was chosen again."""
        return self._store.get_canonical(group) in ({0, id_} if group == id_ else {id_})

    def _update_canonicals(self, joined: Sequence[int], left: Mapping[int, int]) -> None:
        """Choose the canonical page of duplicate groups that pages joined or left."""
        left_behind = [self._store.rename_group(id_) if group == id_ else group for id_, group in left.items()]
        for group in dict.fromkeys((*joined, *left_behind)):
            members = self._store.get_group_members(group, MAX_MEMBERS + 1)
            if len(members) == 1:
                self._store.dissolve_group(group)
            elif 1 < len(members) <= MAX_MEMBERS:
                self._choose_canonical(group, members)

    def measure_likeness(self, url: str, content: Content) -> float | None:
        """Measure how much of a page's text another URL has; None if that URL's text is unknown."""
        id_ = int(self._urls.find_ids([url])[0])
        row = self._store.get_contents([id_]).get(id_) if id_ else None
        return _compare_sketches(row, content.baseline.sketch) if row else None

    def find_fetched_bare(self, url: str) -> CopyRule | None:
        """Find the rule by which an unseen URL is a page that was fetched without its ending."""
        bare = None if is_check(url) else self.copy_rules.find_bare(url)
        if bare is None:
            return None
        id_ = int(self._urls.find_ids([bare[0]])[0])
        page = self._store.get_pages([id_]).get(id_) if id_ else None
        return bare[1] if page is not None and page.status < 300 else None

    def list_skipped(self, gone: Sequence[str]) -> list[int]:
        """List the URLs that were skipped as other spellings of pages that are gone or have moved."""
        ended = [each for url in gone for each in self.copy_rules.list_ended(url)]
        ids = [id_ for id_ in self._urls.find_ids(ended).tolist() if id_] if ended else []
        seen = self._store.get_pages(ids) if ids else {}
        return [id_ for id_ in ids if id_ not in seen]

    def on_redirect(self, url: str, target: str) -> None:
        """Record a redirect as evidence that one URL duplicates another."""
        self._observe(observe_pair(url, target, is_declared=True))

    # who is like whom

    def _find_duplicates(
        self, pages: Sequence[PageContent], before: Mapping[int, ContentRow]
    ) -> tuple[dict[int, ContentRow], frozenset[int]]:
        """Find the earlier page that each fetched page is a copy of, and the pages of nearly the same text as another.

        A band stays with the page that had it first, even if that page has changed since. Then the rest of its group
        counts: the pages that still have that text.
        """
        if not pages:
            return {}, frozenset()
        ids = np.array([page.id for page in pages], np.uint32)
        mins = np.frombuffer(b"".join(page.content.baseline.sketch for page in pages), np.uint8).reshape(len(pages), -1)
        matched = self._bands.match_or_add(ids, compute_bands(mins))
        hits = np.flatnonzero(matched.any(axis=1)).tolist()
        repeated = {at: self._find_same_text(page) for at, page in enumerate(pages)}
        if not hits:
            return {}, frozenset()
        named = {
            at: [repeated[at], *self._list_candidates(matched[at].tolist(), before.get(pages[at].id))] for at in hits
        }
        rows = dict(self._store.get_contents(list(dict.fromkeys(id_ for each in named.values() for id_ in each))))
        rows |= {page.id: _build_row(page) for page in pages}
        urls = self._store.get_urls(rows)
        found: dict[int, ContentRow] = {}
        similar: list[int] = []
        for at, candidates in named.items():
            page = pages[at]
            others = _list_similar([rows[id_] for id_ in dict.fromkeys(candidates) if id_ in rows], rows[page.id])
            if not others:
                continue
            similar.append(page.id)
            best = next((row for row in others if not _tell_apart(rows[page.id], row, urls)), None)
            if best is not None:
                found[page.id] = best
                rows[page.id] = rows[page.id]._replace(group=best.group)
        return found, frozenset(similar)

    def _find_same_text(self, page: PageContent) -> int:
        """Find the first recent page with the same words, title, headings and numbers; its own id if there is none.

        Pages that differ in numbers share their bands, which stay with the first of them.
        """
        return self._find_print(
            xxhash.xxh3_128_digest(page.content.identity + page.content.baseline.main_print), page.id
        )

    def _find_same_bytes(self, page: PageContent) -> int:
        """Find the first recent page with the same bytes at the same path, whatever its query.

        A page without text has no other evidence.
        """
        path = page.url.partition("?")[0].partition("://")[2]
        return self._find_print(xxhash.xxh3_128_digest(page.content.baseline.body_digest + path.encode()), page.id)

    def _find_print(self, print_: bytes, id_: int) -> int:
        if len(self._same_text) >= MAX_PRINTS and print_ not in self._same_text:
            del self._same_text[next(iter(self._same_text))]
        return self._same_text.setdefault(print_, id_)

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

    def _learn(self, pages: Sequence[PageContent], groups: Mapping[int, int], leaders: Mapping[int, str]) -> None:
        seen: list[Observation] = []
        for page in pages if leaders or self.copy_rules.rules else ():
            leader = leaders.get(page.id)
            if leader:
                seen += observe_pair(page.url, leader)
            if self.copy_rules.rules:
                seen += self._check_rules(page, groups)
                seen += self._check_ending(page, groups)
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
        is_same = self._is_same_page(page, target, groups)
        return () if is_same is None else observe_check(self.copy_rules, page.url, same=is_same)

    def _check_ending(self, page: PageContent, groups: Mapping[int, int]) -> tuple[Observation, ...]:
        """Test a learned rule about endings against a page that was fetched with and without one."""
        bare = self.copy_rules.find_bare(page.url)
        is_same = self._is_same_page(page, bare[0], groups) if bare else None
        return observe_pair(page.url, bare[0], same=is_same) if bare and is_same is not None else ()

    def _is_same_page(self, page: PageContent, url: str, groups: Mapping[int, int]) -> bool | None:
        """Check whether a URL has the content of a fetched page; None if its content is unknown."""
        id_ = int(self._urls.find_ids([url])[0])
        row = self._store.get_contents([id_]).get(id_) if id_ else None
        if row is None:
            return None
        return row.group == groups[page.id] or row.baseline.body_digest == page.content.baseline.body_digest

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

    Evidence for either host settles which of two URLs is the copy.
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


def _build_row(page: PageContent) -> ContentRow:
    return ContentRow(page.id, page.id, page.content.baseline, page.content.identity)


def _list_similar(rows: Sequence[ContentRow], page: ContentRow) -> list[ContentRow]:
    """List the candidate duplicates whose text is nearly the same, the most similar first."""
    scored = [(_compare_sketches(row, page.baseline.sketch), row) for row in rows if row.id != page.id]
    similar = [(-score, row.id, row) for score, row in scored if score >= MIN_SIMILARITY]
    return [row for _, _, row in sorted(similar, key=lambda one: one[:2])]


def _tell_apart(one: ContentRow, other: ContentRow, urls: Mapping[int, str]) -> bool:
    """Check whether readers could tell two pages of nearly the same text apart; False if that was never stored."""
    ours, theirs = unpack_identity(one.identity), unpack_identity(other.identity)
    if ours is None or theirs is None:
        return False
    return are_distinct(ours, theirs, are_editions=are_editions(urls.get(one.id, ""), urls.get(other.id, "")))


def _compare_sketches(row: ContentRow, sketch: bytes) -> float:
    return estimate_similarity(row.baseline.sketch, sketch) if len(row.baseline.sketch) == len(sketch) else 0.0
