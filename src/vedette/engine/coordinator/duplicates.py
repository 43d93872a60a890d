"""Which pages say the same as others: found as they come, folded into groups, and learned from.

The banding index names candidates, their sketches decide. A page that is alike joins the group of the page that it is
like; one URL of each group stands for it (``parse.canonical``). Every pair of copies is a lesson about how a site
spells its URLs (``discover.copy_lessons``); what was learned keeps later spellings from being fetched at all.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.discover.urls.duplicate_evidence import Fetched as Witness
from vedette.discover.urls.duplicate_evidence import (
    Lessons,
    Observation,
    Witnesses,
    check_evidence,
    domain_of,
    pair_evidence,
)
from vedette.discover.urls.duplicate_rules import Learned, Subject
from vedette.engine.messages import Content, Fetched
from vedette.engine.ports import Bands, Book, ContentRow, Urls
from vedette.model import origin_of
from vedette.parse.similarity.canonical import Member, choose
from vedette.parse.similarity.minhash import bands_of, similarity

__all__ = ["ALIKE", "LESSONS", "Came", "Copies"]

# The name under which what was learned is kept.
LESSONS = "lessons"

# Texts with fewer shingles in common than this are different pages that share some text.
ALIKE = 0.9
MOST_CANDIDATES = 4
# Of larger groups the one that stands for them has long been chosen.
MOST_MEMBERS = 64


class Came(NamedTuple):
    """A page that was just fetched, with its content; a known one had some before."""

    id: int
    url: str
    content: Content
    fetched_s: float
    is_known: bool = False


class Copies:
    """All groups of a crawl, over the book in which they are kept, and what was learned from them."""

    def __init__(self, bands: Bands, book: Book, urls: Urls, lessons: str = "") -> None:
        self._bands = bands
        self._book = book
        self._urls = urls
        self.lessons = Lessons.from_json(lessons) if lessons else Lessons()
        self.learned = self.lessons.learned()
        self.has_news = False
        self._witnesses = Witnesses()
        self._suspected = {domain_of(host) for host in self.lessons.hosts}

    def keep(self, results: Sequence[Fetched]) -> dict[int, int]:
        """Write down what pages say, each in its group; the groups by id."""
        pages = [
            Came(one.errand.id, one.errand.url, one.content, one.ended_s, one.errand.copy is not None)
            for one in results
            if one.content is not None
        ]
        if not pages:
            return {}
        known = [page.id for page in pages if page.is_known]
        before = self._book.contents(known) if known else {}
        groups = self._grouped(pages, before)
        self._book.keep_contents([(page.id, groups[page.id], page.content) for page in pages])
        joined = [group for id_, group in groups.items() if group != id_]
        self._settle(joined, _leavers(pages, before, groups))
        return groups

    def _grouped(self, pages: Sequence[Came], before: Mapping[int, ContentRow]) -> dict[int, int]:
        """The group of each page by its id; a page that is like no other is a group of its own."""
        groups = {page.id: page.id for page in pages}
        alike = self._alike([page for page in pages if page.content.kept.sketch], before)
        groups.update({id_: row.group for id_, row in alike.items()})
        self._learn(pages, groups, {id_: row.id for id_, row in alike.items()})
        return groups

    def _settle(self, joined: Sequence[int], left: Mapping[int, int]) -> None:
        """Choose who stands for groups that pages joined, and for those that pages left."""
        left_behind = [self._book.succeed(id_) if group == id_ else group for id_, group in left.items()]
        for group in dict.fromkeys((*joined, *left_behind)):
            members = self._book.members(group, MOST_MEMBERS + 1)
            if len(members) == 1:
                self._book.dissolve(group)
            elif 1 < len(members) <= MOST_MEMBERS:
                self._stand_for(group, members)

    def moved(self, url: str, target: str) -> None:
        """A redirect said that one URL is another."""
        self._observe(pair_evidence(url, target, said=True))

    # who is like whom

    def _alike(self, pages: Sequence[Came], before: Mapping[int, ContentRow]) -> dict[int, ContentRow]:
        """The page that each is like, where there is one; it came before, perhaps in the same batch.

        A band stays with the page that had it first, whatever that page says by now: then those count that say the
        same still, which are the rest of its group.
        """
        if not pages:
            return {}
        ids = np.array([page.id for page in pages], np.uint32)
        mins = np.frombuffer(b"".join(page.content.kept.sketch for page in pages), np.uint8).reshape(len(pages), -1)
        matched = self._bands.match_or_add(ids, bands_of(mins))
        hits = np.flatnonzero(matched.any(axis=1)).tolist()
        if not hits:
            return {}
        named = {at: self._candidates(matched[at].tolist(), before.get(pages[at].id)) for at in hits}
        rows = dict(self._book.contents(list(dict.fromkeys(id_ for each in named.values() for id_ in each))))
        rows |= {page.id: ContentRow(page.id, page.id, page.content.kept) for page in pages}
        found: dict[int, ContentRow] = {}
        for at, candidates in named.items():
            page = pages[at]
            others = [rows[id_] for id_ in dict.fromkeys(candidates) if id_ in rows and id_ != page.id]
            best = _best(others, page.content.kept.sketch)
            if best is not None:
                found[page.id] = best
                rows[page.id] = rows[page.id]._replace(group=best.group)
        return found

    def _candidates(self, matched: Sequence[int], before: ContentRow | None) -> list[int]:
        """Who may say the same: who shares a band, who inherited the group of one who did, and its own group so far."""
        shared = _most_named(matched)
        return [*shared, *self._book.heirs(shared), *([before.group] if before else [])]

    def _stand_for(self, group: int, members: Sequence[tuple[int, str, str]]) -> None:
        present = self._book.canonical_of(group)
        named = self._urls.times_named(np.array([id_ for id_, _, _ in members], np.uint32)).tolist()
        known = [
            Member(url, declared, in_links=times, found=float(id_))
            for (id_, url, declared), times in zip(members, named, strict=True)
        ]
        place, why = choose(known, next((url for id_, url, _ in members if id_ == present), ""))
        self._book.keep_canonical(group, members[place][0], why, len(members))

    # what that teaches

    def _learn(self, pages: Sequence[Came], groups: Mapping[int, int], leaders: Mapping[int, int]) -> None:
        seen: list[Observation] = []
        urls = self._book.urls_by_id(leaders.values()) if leaders else {}
        for page in pages if leaders or self.learned.rules else ():
            leader = urls.get(leaders.get(page.id, 0))
            if leader is not None:
                seen += pair_evidence(page.url, leader)
            seen += self._checked(page, groups)
        if self._suspected:
            seen += self._testified(pages, groups)
        self._observe(seen)

    def _testified(self, pages: Sequence[Came], groups: Mapping[int, int]) -> tuple[Observation, ...]:
        """What pages of domains on which copies were seen say together with some that came before."""
        suspects = [page for page in pages if domain_of(origin_of(page.url).host) in self._suspected]
        if not suspects:
            return ()
        witnesses = [Witness(page.url, groups[page.id], page.fetched_s) for page in suspects]
        said, self._witnesses = self._witnesses.meet(witnesses, self.lessons)
        return said

    def _checked(self, page: Came, groups: Mapping[int, int]) -> tuple[Observation, ...]:
        """What a page that was fetched although rules cover it says of them."""
        if self.learned.apply(page.url)[1] is None:
            return ()
        target, covering = self.learned.covering(page.url)
        if not covering or target == page.url:
            return ()
        id_ = int(self._urls.find([target])[0])
        row = self._book.contents([id_]).get(id_) if id_ else None
        return check_evidence(self.learned, page.url, same=row.group == groups[page.id]) if row else ()

    def _observe(self, seen: Sequence[Observation]) -> None:
        if not seen:
            return
        before, self.lessons = self.lessons, self.lessons.observe(seen)
        names = dict.fromkeys(name for observation in seen for name in _hosts_of(observation.subject))
        self._suspected.update(map(domain_of, names))
        if any(_believes(lessons, name) for name in names for lessons in (before, self.lessons)):
            self._take_up(self.lessons.learned())

    def _take_up(self, learned: Learned) -> None:
        if [rule.subject for rule in learned.rules] != [rule.subject for rule in self.learned.rules]:
            self.learned, self.has_news = learned, True


def _hosts_of(subject: Subject) -> tuple[str, ...]:
    """The hosts of which a lesson may speak: what is a copy of what is settled by the evidence for either."""
    return (subject.host, subject.what.partition("://")[2]) if subject.kind == "origin" else (subject.host,)


def _believes(lessons: Lessons, name: str) -> bool:
    return any(tally.believed for tally in lessons.hosts.get(name, {}).values())


def _leavers(pages: Sequence[Came], before: Mapping[int, ContentRow], groups: Mapping[int, int]) -> dict[int, int]:
    """The pages that no longer say what their group says, and those groups."""
    sketches = {page.id: page.content.kept.sketch for page in pages}
    return {
        id_: row.group
        for id_, row in before.items()
        if row.group != groups[id_] or (row.group == id_ and _likeness(row, sketches[id_]) < ALIKE)
    }


def _most_named(row: Sequence[int]) -> list[int]:
    """The candidates of a page, those with most bands in common first."""
    counts: dict[int, int] = {}
    for id_ in row:
        if id_:
            counts[id_] = counts.get(id_, 0) + 1
    return sorted(counts, key=lambda id_: (-counts[id_], id_))[:MOST_CANDIDATES]


def _best(rows: Sequence[ContentRow], sketch: bytes) -> ContentRow | None:
    """The one that is most alike, if it is alike enough."""
    best = max(rows, key=lambda row: (_likeness(row, sketch), -row.id), default=None)
    return best if best is not None and _likeness(best, sketch) >= ALIKE else None


def _likeness(row: ContentRow, sketch: bytes) -> float:
    return similarity(row.kept.sketch, sketch) if len(row.kept.sketch) == len(sketch) else 0.0
