"""URLs and archives of others, taken into a data folder that nobody else uses meanwhile.

What belongs to no site of the folder is left out. A URL that is imported waits to be fetched. An answer from a WARC
file becomes a page as if it had been fetched then: it is read, its links are followed, a record of our own is
archived, and its URL counts as fetched; unless what is at hand is younger. What is good of a damaged file is taken,
the rest is named.

All is committed every so often, so an import that was interrupted can simply be begun anew.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from pathlib import Path

from vedette.adapters.archive.replay import Old, Replayed, replay
from vedette.adapters.archive.warc_reader import Damage, Record, scan
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.adapters.crawl_store.data_folder import State
from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.coordinator import Keeper
from vedette.engine.coordinator.duplicates import LESSONS, Copies
from vedette.engine.coordinator.state import Rules
from vedette.engine.links import Links
from vedette.engine.messages import Copy, Errand, Fetched, Place
from vedette.engine.ports import Fate, PageRow
from vedette.engine.scheduling.schedule import Schedule
from vedette.engine.scheduling.url_selection import copy_of
from vedette.errors import SiteError
from vedette.model import Failure, origin_of

__all__ = ["Imported", "Importer"]

SERIES = "imported"
DEPTH = 1
BATCH = 200
BATCH_BYTES = 16 << 20
MOST_NAMED = 100
# No worker has this number, so these leases are never taken for those of one.
NOBODY = -1


@dataclass(slots=True)
class Imported:
    """What came of an import; ``passed_over`` counts by reason, ``damage`` is in words."""

    pages: int = 0
    urls: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)
    damage: list[str] = field(default_factory=list)
    damaged: int = 0

    def name(self, words: str) -> None:
        """Something could not be used; not everything is remembered when there is no end of it."""
        self.damaged += 1
        if len(self.damage) < MOST_NAMED:
            self.damage.append(words)


class Importer:
    """Takes things into an open state."""

    def __init__(self, state: State, software: str, now_s: float, limit_bytes: int) -> None:
        self._state = state
        self._now_s = now_s
        self._limit_bytes = limit_bytes
        sites = tuple(row.site for row in state.book.sites())
        if not sites:
            raise SiteError(f'{state.folder} has no sites to which anything could belong: "vedette sites add" first')
        self._schedule = Schedule(recrawl=True)
        self._links = Links(SiteIndex(sites))
        copies = Copies(state.bands, state.book, state.urls, state.book.life(LESSONS) or "")
        self._keeper = Keeper(Rules(sites=sites), state.urls, state.book, self._schedule, copies, workers=1)
        self._writer = WarcWriter(state.folder / "warc", SERIES, software, sync=True)
        self._fetched: dict[str, set[int]] = {}
        self.told = Imported()

    # URLs

    def take_urls(self, lines: Iterable[str]) -> None:
        """One URL a line; blank lines and lines with # at their beginning are comments."""
        texts = (line.strip() for line in lines)
        wanted = (text for text in texts if text and not text.startswith("#"))
        while batch := list(islice(wanted, BATCH)):
            taken = [url for text in batch if (url := self._sited(text)) is not None]
            self.told.urls += self._keeper.found(taken, DEPTH, self._now_s)
            self._state.commit()

    def _sited(self, text: str) -> str | None:
        """The URL in the spelling of its site."""
        url = resolve(text, None)
        taken = self._keeper.sited(url) if url is not None else None
        if taken is None:
            self.told.passed_over["not an http(s) URL" if url is None else "outside every site"] += 1
        return taken

    # archives

    def take_warc(self, path: Path) -> None:
        """The answers in a file."""
        answers = (answer for answer in map(self._answer, scan(path)) if answer is not None)
        for batch in _batches(answers):
            self._keep(_latest(batch))
            self._state.commit()

    def close(self) -> None:
        """Whatever was taken counts as fetched, and nothing is left half done."""
        for host, ids in self._fetched.items():
            self._end(host, ids)
            self._state.commit()
        self._writer.close()

    def _answer(self, found: Record | Damage) -> Old | None:
        """An answer that a page can be made of, in the spelling of its site."""
        if isinstance(found, Damage):
            self.told.name(f"{found.file} at {found.offset}: {found.why}")
            return None
        why = self._unfit(found)
        if why:
            self.told.passed_over[why] += 1
            return None
        url = self._sited(found.url)
        if url is not None and url == origin_of(url).robots_url:
            self.told.passed_over["robots.txt"] += 1
            return None
        source = f"{found.file}#{found.offset}"
        return Old(url, found.fetched_s, found.status, found.headers, found.payload, source) if url else None

    def _unfit(self, record: Record) -> str:
        if record.truncated:
            return "cut short when it was archived"
        if record.fetched_s > self._now_s:
            return "dated in the future"
        if record.status == 304 or not 200 <= record.status < 500 or record.status == 429:
            return f"status {record.status}"
        return ""

    def _keep(self, answers: Sequence[Old]) -> None:
        urls = [old.url for old in answers]
        self.told.urls += self._keeper.found(urls, DEPTH, self._now_s)
        ids: list[int] = self._state.urls.find(urls).tolist()
        earlier = self._state.book.copies(ids)
        hosts = self._state.urls.host_ids([origin_of(url).host for url in urls])
        results = [
            (host, result)
            for host, id_, old in zip(hosts, ids, answers, strict=True)
            if (result := self._result(old, id_, earlier.get(id_))) is not None
        ]
        self._state.book.acknowledge_archive(self._writer.flush(), self._now_s)
        self._state.book.keep_pages(list(self._schedule.rows(results, earlier)))
        self._keeper.copies.keep([result for _, result in results])
        for _, result in results:
            self._follow(result)

    def _result(self, old: Old, id_: int, earlier: PageRow | None) -> Fetched | None:
        if earlier is not None and earlier.fetched_s >= old.fetched_s:
            self.told.passed_over["not younger than what is at hand"] += 1
            return None
        host = origin_of(old.url).host
        errand = Errand(id_, host, old.url, "page", depth=DEPTH, copy=self._copy(earlier))
        found = replay(old, errand, self._links, self._limit_bytes)
        if isinstance(found, Failure):
            self.told.name(f"{old.source}: {found}")
            return None
        assert isinstance(found, Replayed)
        stood = self._writer.append_packed([found.record], old.fetched_s)
        self._fetched.setdefault(host, set()).add(id_)
        self.told.pages += 1
        return found.result._replace(place=Place(stood.file, stood.offset, stood.length))

    def _copy(self, row: PageRow | None) -> Copy | None:
        """By which it is seen whether an answer is a change."""
        return copy_of(row, self._state.book.contents([row.id]).get(row.id)) if row else None

    def _follow(self, result: Fetched) -> None:
        """Links become known, as after a fetch."""
        target = self._keeper.sited(result.location) if result.location else None
        self.told.urls += self._keeper.found([target] if target else [], result.errand.depth, result.ended_s)
        self.told.urls += self._keeper.found(result.sources, 0, result.ended_s, front=0)
        self.told.urls += self._keeper.found(result.links, result.errand.depth + 1, result.ended_s)

    # the imported URLs of a host need not be fetched

    def _end(self, host: str, ids: set[int]) -> None:
        """Take all that waits of a host in hand, let the imported URLs end, and put the rest back."""
        urls = self._state.urls
        (number,) = urls.host_ids([host])
        urls.again(sorted(id_ for id_ in ids if urls.standing(id_) in {Fate.REFUSED, Fate.FAILED}), priority=1)
        held = [one.id for one in urls.lease([number] * urls.waiting(number), NOBODY, inf)]
        urls.acknowledge([id_ for id_ in held if id_ in ids], Fate.FETCHED, NOBODY)
        urls.put_back([id_ for id_ in held if id_ not in ids], NOBODY)


def _batches(answers: Iterable[Old]) -> Iterator[list[Old]]:
    """So many that commits cost little, so few that large answers do not fill the memory."""
    batch: list[Old] = []
    size = 0
    for old in answers:
        batch.append(old)
        size += len(old.payload)
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _latest(answers: Iterable[Old]) -> list[Old]:
    """Of each URL the youngest answer, in the order in which URLs came first."""
    latest: dict[str, Old] = {}
    for old in answers:
        before = latest.get(old.url)
        if before is None or before.fetched_s < old.fetched_s:
            latest[old.url] = old
    return list(latest.values())
