"""Index builder: add and remove pages of one generation according to the state, index and page table.

The same code serves a few pages that just arrived, all of them after a loss, and a new generation beside the old one.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from math import nan
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import xxhash

from vedette.adapters.alerts.alert_store import ALERTS_FILE, AlertStore, NewPage
from vedette.adapters.archive.replay import ImportedResponse, replay, replay_document
from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.crawl_store.index_queue import PageRecord
from vedette.adapters.documents.reader import DocumentReader
from vedette.adapters.index_store.gain_store import GainStore
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.indexer_store import IndexerStore
from vedette.adapters.index_store.page_table import PageFacts, PageTable, PageTableWriter
from vedette.adapters.index_store.tantivy_index import open_writer
from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchTask
from vedette.engine.search.hidden import NO_HIDDEN_RULES, HiddenRules
from vedette.engine.search.indexable import IndexCandidate, explain_exclusion
from vedette.errors import StoreCorrupt, StoreError
from vedette.index.fields import (
    IndexEntry,
    StoredPage,
    access_label,
    build_document,
    choose_title,
    number_tokens,
    pack_page,
    tokenize_entry,
    unpack_page,
)
from vedette.index.quality.watched_queries import NO_WORDS
from vedette.index.versions import VersionKey, version_key_of
from vedette.model import Failure, Site, fingerprint
from vedette.runtime.indexing.gain_meter import FetchRef, GainMeter


class NewPageCollector:
    """Collect pages that are new and searchable for the first time, for alerts, until the indexer's next commit.

    A page that nearly repeats an earlier page, or that a known page now redirects to, is not new: a site that was
    rebuilt under other URLs triggers no alerts. Collected pages are on disk before the index is, and so before the
    coordinator drops their source. An index generation that is built in the background collects them, too: a page
    counts once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store: AlertStore | None = None
        self._fresh: dict[int, NewPage] = {}
        self._duplicates: dict[int, None] = {}
        self._moved: dict[int, None] = {}
        self._now_s = 0.0

    def add_page(self, page: PageRecord) -> None:
        """Collect a page that has become searchable as new for alerts, unless it is a duplicate."""
        if not page.how:
            return
        print_ = fingerprint(page.url)
        self._now_s = max(self._now_s, page.fetched_s)
        if page.group in {None, page.id}:
            self._fresh.setdefault(print_, NewPage(print_, page.id, page.found_s, page.how, page.via, page.fetched_s))
        else:
            self._duplicates[print_] = None

    def drop_page(self, page: PageRecord, *, could_be_found: bool) -> None:
        """Drop a page that is not searchable from the new pages; its redirect target is not new either."""
        self._fresh.pop(fingerprint(page.url), None)
        if could_be_found and (page.location or page.canonical):
            self._now_s = max(self._now_s, page.fetched_s)
            self._moved[fingerprint(page.location or page.canonical)] = None

    def commit(self) -> None:
        """Save the collected new pages to the alert store; they are durable on return."""
        if not (self._fresh or self._duplicates or self._moved):
            return
        try:
            self._save()
        except StoreCorrupt as error:
            self.close()
            sys.stderr.write(f"vedette: {error}; moved to {ALERTS_FILE.move_aside(self._folder).name}\n")
            self._save()
        self._fresh, self._duplicates, self._moved = {}, {}, {}

    def close(self) -> None:
        """Close the new page collector; uncommitted pages will be reported again."""
        if self._store is not None:
            self._store.close()
        self._store = None

    def _save(self) -> None:
        if self._store is None:
            self._store = AlertStore(self._folder)
        self._store.add_new_pages(self._fresh.values(), self._duplicates, self._moved, self._now_s)


MAX_NAMES = 12
READ_BYTES = 64 << 20


class IndexBuilder:
    """The only writer of an index generation; ``earlier`` is the generation it will replace.

    Search gains of fetches are written to ``gains``, if given.
    """

    def __init__(
        self, folder: Path, generation: Path, earlier: PageTable | None = None, gains: GainStore | None = None
    ) -> None:
        self.generations = Generations(folder)
        self._archive = folder / "warc"
        self.generation = generation
        with ExitStack() as parts:  # closes what is open already where a damaged file ends it
            parts.callback(self.generations.lock(generation).close)
            self._writer = open_writer(generation / "tantivy")
            parts.callback(self._writer.close)
            self.table = PageTableWriter(generation)
            parts.callback(self.table.close)
            self.store = IndexerStore(generation)
            parts.callback(self.store.close)
            self.gain_meter = GainMeter(self.table, gains)
            parts.callback(self.gain_meter.close)
            self._new_pages = NewPageCollector(folder)
            parts.callback(self._new_pages.close)
            self.store.get_progress("seq")  # a damaged store is noticed here, and not later
            self._parts = parts.pop_all()
        self.pending = self.processed = 0
        self._earlier = earlier
        self._site_list: list[Site] = []
        self._hidden = NO_HIDDEN_RULES
        self.hidden_changed = False
        self._sites = SiteIndex(())
        self._links = LinkResolver(self._sites)
        self._documents: DocumentReader[int] = DocumentReader()
        self._parts.callback(self._documents.close)

    def set_rules(self, sites: Sequence[Site], concealed: HiddenRules = NO_HIDDEN_RULES) -> None:
        """Set the operator's sites (overruled judgments, link rules) and hidden pages for indexing."""
        self.hidden_changed |= concealed != self._hidden
        self._hidden = concealed
        if self._site_list == list(sites):
            return
        self._site_list = list(sites)
        self._sites = SiteIndex(sites)
        self._links = LinkResolver(self._sites)

    def update_pages(
        self, known: Mapping[int, PageRecord], texts: Mapping[int, bytes], ids: Iterable[int], now_s: float
    ) -> None:
        """Index these pages as the state has them now; ``texts`` are those that fetches just brought."""
        every = list(dict.fromkeys(ids))
        self.gain_meter.prefetch_words([id_ for id_ in every if id_ in texts])
        for id_ in every:
            page = known.get(id_)
            why = "nothing is kept of it" if page is None else self._find_exclusion(page, now_s)
            if page is None or why:
                self._remove_page(id_, page)
            elif self.table.is_indexed(id_) and id_ not in texts:
                self.table.update(id_, self._build_facts(page, self._get_date_s(id_), self.table.get_version(id_)))
            else:
                self._index_page(page, texts.get(id_) or b"")
            self.pending += 1
            self.processed += 1

    def reindex_renamed(self, most: int) -> int:
        """Reindex some pages with new anchor texts; return how many."""
        ids = self.store.pop_renamed(most)
        for id_ in ids:
            stored = self.table.read_stored(id_) if self.table.is_indexed(id_) else None
            if stored is not None:
                row = self.table.rows[id_]
                private = self.table.get_name(int(row["access"]))
                date_s = float(row["born_s"]) if stored.published_s is None else stored.published_s
                entry = self._build_entry(id_, stored, int(row["print"]), date_s, private)
                forms = tokenize_entry(entry)
                words = number_tokens(forms)
                self.gain_meter.on_renamed(int(row["print"]), FetchRef(id_, float(row["fetched_s"])), words)
                self.table.put_words(id_, words)
                self._writer.put(build_document(entry, forms))
                self.pending += 1
        return len(ids)

    def commit(self, seq: int) -> None:
        """Commit the index: pages become searchable and durable; the queue up to this number is done."""
        self._new_pages.commit()
        self.table.flush()
        self._writer.commit()
        self.store.set_progress("seq", seq)
        self.store.commit()
        self.gain_meter.commit()
        self.generations.save_seq(self.generation, seq)
        self.pending = 0

    def close(self) -> None:
        """Close the index builder; uncommitted pages are indexed again."""
        self._parts.close()

    def abandon(self) -> None:
        """Close the index builder of a damaged generation, whatever its files make of it."""
        with suppress(BaseException):  # the library of the index panics, which is no Exception
            self._parts.close()

    def _find_exclusion(self, page: PageRecord, now_s: float) -> str:
        site = self._sites.find_site(page.url)
        named = resolve(page.canonical, page.url) if page.canonical else None
        elsewhere = page.is_replaced or (bool(named) and named != page.url and self._has_substitute(page, str(named)))
        standing = IndexCandidate(
            page.status,
            page.kind,
            page.group is not None,
            page.objections,
            page.marks,
            has_other_canonical=elsewhere,
            hidden_reason=self._hidden.get_reason(page.url),
            words=page.words,
        )
        return explain_exclusion(standing, site.overrule if site else (), now_s)

    def _has_substitute(self, page: PageRecord, url: str) -> bool:
        """Check whether the canonical URL of a page is indexed and visible to everyone who may see this one."""
        other = self.store.find_page(fingerprint(url))
        if other in {0, page.id} or not self.table.is_indexed(other):
            return False
        return self.table.get_name(int(self.table.rows[other]["access"])) in {
            access_label(""),
            access_label(page.private),
        }

    def _remove_page(self, id_: int, page: PageRecord | None) -> None:
        fetch = FetchRef(id_, page.fetched_s) if page is not None else None
        if page is not None:
            self._new_pages.drop_page(page, could_be_found=self.table.is_indexed(id_))
        if self.table.is_indexed(id_):
            if fetch is not None and fetch.fetched_s > self.table.rows[id_]["fetched_s"]:
                self.gain_meter.on_fetch(fetch, self.gain_meter.get_words(id_), NO_WORDS, "gone")
            self._writer.remove(id_)
            self.store.remove_page(int(self.table.rows[id_]["print"]))
            self.table.remove(id_)
        if page is not None and (page.location or page.canonical):
            target = fingerprint(page.location or page.canonical)
            self.store.add_alias(fingerprint(page.url), target)
            if fetch is not None:
                self.gain_meter.on_new_names(fetch, [target])

    def _index_page(self, page: PageRecord, blob: bytes) -> None:
        kept = b"" if blob else self.table.read_blob(page.id)
        stored = unpack_page(blob or kept or self._load_text(page))
        print_ = fingerprint(page.url)
        if stored is None:
            self._remove_page(page.id, page)
            return
        again = self.table.is_indexed(page.id)
        # By the title that the page has itself; the stored one may differ by now.
        version = self.table.get_version(page.id) if kept else version_key_of(page.url, stored.title)
        titled = self._set_title(stored, page, again=again)
        packed = blob if blob and titled is stored else pack_page(titled)
        stored = titled
        if self._is_exact_copy(page, stored):
            self._remove_page(page.id, page)
            return
        date_s = nan if stored.published_s is None else stored.published_s
        entry = self._build_entry(
            page.id, stored, print_, page.found_s if stored.published_s is None else date_s, page.private
        )
        forms = tokenize_entry(entry)
        links = [(fingerprint(url), text) for url, text in page.links]
        prints = np.fromiter((target for target, _ in links), np.int64, len(links))
        words, fetch = number_tokens(forms), FetchRef(page.id, page.fetched_s) if blob else None
        if fetch is not None:
            self.gain_meter.on_fetch(fetch, self.gain_meter.get_words(page.id), words, "again" if again else "first")
        self.table.put(page.id, self._build_facts(page, date_s, version, stored), packed, words, prints)
        self._writer.put(build_document(entry, forms))
        self.store.add_page(print_, page.id)
        self.store.remove_alias(print_)
        if blob:
            self._new_pages.add_page(page)
        if not page.private:
            named = self.store.add_anchors(((target, text) for target, text in links if target != print_), again=again)
            if fetch is not None:
                self.gain_meter.on_new_names(fetch, named)

    def _is_exact_copy(self, page: PageRecord, stored: StoredPage) -> bool:
        """Check whether the indexed canonical page of the duplicate group has the same title and text."""
        site = self._sites.find_site(page.url)
        if (
            page.canonical_page in {0, page.id}
            or not self.table.is_indexed(page.canonical_page)
            or (site and "copy" in site.overrule)
        ):
            return False
        other = self.table.read_stored(page.canonical_page)
        public = self.table.get_name(int(self.table.rows[page.canonical_page]["access"])) == access_label(page.private)
        return other is not None and public and (other.title, other.body) == (stored.title, stored.body)

    def _set_title(self, stored: StoredPage, page: PageRecord, *, again: bool) -> StoredPage:
        """Set the title of an indexed page to the name that distinguishes it from other pages of its host."""
        print_ = xxhash.xxh64_intdigest(stored.title.encode("utf-8", "replace")) >> 1
        bearers = self.store.count_title(page.host, print_, count=not again)
        title = choose_title(stored.title, stored.headings, bearers)
        return stored if title == stored.title else stored._replace(title=title)

    def _build_entry(self, id_: int, stored: StoredPage, print_: int, date_s: float, private: str) -> IndexEntry:
        names = tuple(text for text, _ in self.store.top_anchors(print_, MAX_NAMES))
        return IndexEntry(
            id_,
            stored.url,
            stored.title,
            stored.headings,
            stored.body,
            names,
            stored.kind,
            stored.language,
            date_s,
            "" if private == access_label("") else private,
        )

    def _build_facts(
        self, page: PageRecord, date_s: float, version: VersionKey, stored: StoredPage | None = None
    ) -> PageFacts:
        row = self.table.rows[page.id] if stored is None else None
        language = self.table.get_name(int(row["language"])) if row is not None else ""
        kind = self.table.get_name(int(row["kind"])) if row is not None else ""
        return PageFacts(
            page.host,
            page.group or page.id,
            page.words,
            fingerprint(page.url),
            date_s,
            page.found_s,
            page.fetched_s,
            len([part for part in urlsplit(page.url).path.split("/") if part]),
            page.spam,
            access_label(page.private),
            stored.language if stored else language,
            stored.kind if stored else kind,
            is_canonical=page.canonical_page == page.id,
            version=version,
        )

    def _get_date_s(self, id_: int) -> float:
        return float(self.table.rows[id_]["date_s"])

    def _load_text(self, page: PageRecord) -> bytes:
        """Load the text of a page to index from the archive, or from an earlier generation."""
        return self._read_archived_text(page) or (self._earlier.read_blob(page.id) if self._earlier else b"")

    def _read_archived_text(self, page: PageRecord) -> bytes:
        if page.place is None:
            return b""
        try:
            found = read_answer(self._archive, page.place)
        except StoreError:
            return b""
        old = ImportedResponse(page.url, page.fetched_s, found.status, found.headers, found.payload, "")
        replayed = replay(old, FetchTask(page.id, "", page.url, "page"), self._links, READ_BYTES)
        if isinstance(replayed, Failure):
            return b""
        result = replayed.result
        if result.kind == "document":
            result = replay_document(result, old, self._links, READ_BYTES, self._documents)
        return result.content.stored if result.content else b""
