"""Import URL lists and WARC archives into a data folder that no other process is using.

URLs that belong to no site of the folder are skipped. An imported URL is queued for fetching, even if it had failed. A
response from a WARC file becomes a page as if it had been fetched then: it is parsed, its links are followed, our own
record is archived, and its URL counts as fetched; unless the stored page is newer. The good parts of a damaged file are
imported, the rest is reported.

Commits are made regularly, so an interrupted import can simply be started again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from pathlib import Path

from vedette.adapters.archive.replay import ImportedResponse, ReplayResult, replay, replay_document
from vedette.adapters.archive.warc_reader import Damage, ImportedAnswer, scan_warc
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.documents.reader import DocumentReader
from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.engine.coordinator.duplicates import LESSONS_KEY, DuplicateDetector
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.links import LinkResolver
from vedette.engine.messages import ArchiveLocation, FetchSuccess, FetchTask, StoredCopy
from vedette.engine.ports import PageRow, UrlState
from vedette.engine.scheduling.schedule import Schedule
from vedette.engine.scheduling.url_selection import build_copy
from vedette.errors import SiteError
from vedette.model import Failure, origin_of
from vedette.runtime.commands.recheck import requeue_urls

ARCHIVE_SERIES = "imported"
DEPTH = 1
BATCH = 200
BATCH_BYTES = 16 << 20
MAX_NAMED = 100
# No worker has this number, so these leases are never mistaken for a worker's.
NO_WORKER = -1


@dataclass(slots=True)
class ImportSummary:
    """Summary of an import; ``skipped`` counts records by reason, ``damage`` describes damaged ones."""

    pages: int = 0
    urls: int = 0
    revived: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    damage: list[str] = field(default_factory=list)
    damage_count: int = 0

    def add_damage(self, words: str) -> None:
        """Record a damaged part of an imported file; only the first few are kept in words."""
        self.damage_count += 1
        if len(self.damage) < MAX_NAMED:
            self.damage.append(words)


class Importer:
    """Importer of URL lists and WARC archives into an open state."""

    def __init__(self, state: State, software: str, now_s: float, limit_bytes: int) -> None:
        self._state = state
        self._now_s = now_s
        self._limit_bytes = limit_bytes
        sites = tuple(row.site for row in state.store.list_sites())
        if not sites:
            raise SiteError(f'{state.folder} has no sites: add one first with "vedette sites add SITE"')
        self._schedule = Schedule(recrawl=True)
        self._links = LinkResolver(SiteIndex(sites))
        copies = DuplicateDetector(state.bands, state.store, state.urls, state.store.get_value(LESSONS_KEY) or "")
        self._coordinator = Coordinator(
            CrawlRules(sites=sites), state.urls, state.store, self._schedule, copies, workers=1
        )
        self._writer = WarcWriter(state.folder / "warc", ARCHIVE_SERIES, software, sync=True)
        self._documents: DocumentReader[int] = DocumentReader()
        self._fetched: dict[str, set[int]] = {}
        self.summary = ImportSummary()

    # URLs

    def import_urls(self, lines: Iterable[str]) -> None:
        """Import URLs from lines of text, one a line; blank lines and lines that start with # are skipped."""
        texts = (line.strip() for line in lines)
        wanted = (text for text in texts if text and not text.startswith("#"))
        while batch := list(islice(wanted, BATCH)):
            accepted = [url for text in batch if (url := self._normalize(text)) is not None]
            self.summary.urls += self._coordinator.add_urls(accepted, DEPTH, self._now_s)
            self._revive_failed(accepted)
            self._state.commit()

    def _revive_failed(self, urls: Sequence[str]) -> None:
        """Requeue those of the imported URLs that had failed."""
        ids = self._state.urls.find_ids(urls).tolist()
        failed = [id_ for id_ in dict.fromkeys(ids) if self._state.urls.find_state(id_) is UrlState.FAILED]
        self._state.store.delete_failures(failed)
        requeue_urls(self._state, failed)
        self.summary.revived += len(failed)

    def _normalize(self, text: str) -> str | None:
        """Normalize an imported URL by the rules of its site; None, and counted as skipped, without a site."""
        url = resolve(text, None)
        normalized = self._coordinator.normalize_url(url) if url is not None else None
        if normalized is None:
            self.summary.skipped["not an http(s) URL" if url is None else "outside every site"] += 1
        return normalized

    # archives

    def import_warc(self, path: Path) -> None:
        """Import the responses in a WARC file as fetched pages."""
        answers = (answer for answer in map(self._parse_answer, scan_warc(path)) if answer is not None)
        for batch in _split_batches(answers):
            self._save_pages(_select_latest(batch))
            self._state.commit()

    def close(self) -> None:
        """Finish the import: mark the imported URLs as fetched, and close the archive."""
        for host, ids in self._fetched.items():
            self._finish_urls(host, ids)
            self._state.commit()
        self._documents.close()
        self._writer.close()

    def _parse_answer(self, found: ImportedAnswer | Damage) -> ImportedResponse | None:
        """Parse an imported WARC response, with its URL normalized; None if it is damaged or skipped."""
        if isinstance(found, Damage):
            self.summary.add_damage(f"{found.file} at {found.offset}: {found.why}")
            return None
        why = self._find_skip_reason(found)
        if why:
            self.summary.skipped[why] += 1
            return None
        url = self._normalize(found.url)
        if url is not None and url == origin_of(url).robots_url:
            self.summary.skipped["robots.txt"] += 1
            return None
        source = f"{found.file}#{found.offset}"
        return (
            ImportedResponse(url, found.fetched_s, found.status, found.headers, found.payload, source) if url else None
        )

    def _find_skip_reason(self, record: ImportedAnswer) -> str:
        if record.truncated:
            return "truncated in the archive"
        if record.fetched_s > self._now_s:
            return "dated in the future"
        if record.method not in {"", "GET"}:
            return f"response to {record.method}, not a page"
        if record.status == 304 or not 200 <= record.status < 500 or record.status == 429:
            return f"status {record.status}"
        return ""

    def _save_pages(self, answers: Sequence[ImportedResponse]) -> None:
        urls = [old.url for old in answers]
        self.summary.urls += self._coordinator.add_urls(urls, DEPTH, self._now_s)
        ids: list[int] = self._state.urls.find_ids(urls).tolist()
        earlier = self._state.store.get_pages(ids)
        hosts = self._state.urls.intern_hosts([origin_of(url).host for url in urls])
        results = [
            (host, result)
            for host, id_, old in zip(hosts, ids, answers, strict=True)
            if (result := self._replay_answer(old, id_, earlier.get(id_))) is not None
        ]
        self._state.store.acknowledge_archive(self._writer.flush(), self._now_s)
        self._state.store.save_pages(list(self._schedule.build_rows(results, earlier)))
        self._coordinator.copies.save([result for _, result in results])
        for _, result in results:
            self._add_links(result)

    def _replay_answer(self, old: ImportedResponse, id_: int, earlier: PageRow | None) -> FetchSuccess | None:
        if earlier is not None and earlier.fetched_s >= old.fetched_s:
            self.summary.skipped["not newer than the stored page"] += 1
            return None
        host = origin_of(old.url).host
        errand = FetchTask(id_, host, old.url, "page", depth=DEPTH, copy=self._load_copy(earlier))
        found = replay(old, errand, self._links, self._limit_bytes)
        if isinstance(found, Failure):
            self.summary.add_damage(f"{old.source}: {found}")
            return None
        assert isinstance(found, ReplayResult)
        result = found.result
        if result.kind == "document":
            result = replay_document(result, old, self._links, self._limit_bytes, self._documents)
        stood = self._writer.append_packed([found.record], old.fetched_s)
        self._fetched.setdefault(host, set()).add(id_)
        self.summary.pages += 1
        return result._replace(place=ArchiveLocation(stood.file, stood.offset, stood.length))

    def _load_copy(self, row: PageRow | None) -> StoredCopy | None:
        """Load the stored copy of a page, to detect whether an imported response is a change."""
        return build_copy(row, self._state.store.get_contents([row.id]).get(row.id)) if row else None

    def _add_links(self, result: FetchSuccess) -> None:
        """Add the links of an imported page to the known URLs, as after a fetch."""
        target = self._coordinator.normalize_url(result.location) if result.location else None
        self.summary.urls += self._coordinator.add_urls([target] if target else [], result.task.depth, result.ended_s)
        self.summary.urls += self._coordinator.add_urls(result.sources, 0, result.ended_s, front=0)
        self.summary.urls += self._coordinator.add_urls(result.links, result.task.depth + 1, result.ended_s)

    # skip fetching the imported URLs of a host

    def _finish_urls(self, host: str, ids: set[int]) -> None:
        """Mark a host's imported URLs as fetched: lease all of its waiting URLs, and release the others."""
        urls = self._state.urls
        (number,) = urls.intern_hosts([host])
        urls.requeue(
            sorted(id_ for id_ in ids if urls.find_state(id_) in {UrlState.REFUSED, UrlState.FAILED}), priority=1
        )
        held = [one.id for one in urls.lease([number] * urls.count_waiting(number), NO_WORKER, inf)]
        urls.acknowledge([id_ for id_ in held if id_ in ids], UrlState.FETCHED, NO_WORKER)
        urls.release_leases([id_ for id_ in held if id_ not in ids], NO_WORKER)


def _split_batches(answers: Iterable[ImportedResponse]) -> Iterator[list[ImportedResponse]]:
    """Split imported responses into batches, large enough for cheap commits and small enough for memory."""
    batch: list[ImportedResponse] = []
    size = 0
    for old in answers:
        batch.append(old)
        size += len(old.payload)
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _select_latest(answers: Iterable[ImportedResponse]) -> list[ImportedResponse]:
    """Select the latest imported response of each URL, in the order in which URLs first appear."""
    latest: dict[str, ImportedResponse] = {}
    for old in answers:
        before = latest.get(old.url)
        if before is None or before.fetched_s < old.fetched_s:
            latest[old.url] = old
    return list(latest.values())
