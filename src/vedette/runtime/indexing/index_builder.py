"""Building an index: pages go in and out as the state says, together with all that stands beside them.

The same for a few pages that just came, for all of them after a loss, and for a new generation beside the old one.
"""

import select
from collections.abc import Iterable, Mapping, Sequence
from math import nan
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import xxhash

from vedette.adapters.archive.replay import Old, answer_of, body_of, replay
from vedette.adapters.archive.warc_reader import read_place
from vedette.adapters.archive.warc_writer import Place
from vedette.adapters.crawl_store.change_feed import Known
from vedette.adapters.files.pdf import PdfReader, PdfText
from vedette.adapters.index_store.gain_store import GainBook
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.indexer_store import IndexBook
from vedette.adapters.index_store.page_table import PageFacts, PageTable, TableWriter
from vedette.adapters.index_store.tantivy_index import open_writer
from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import read_document
from vedette.engine.links import Links
from vedette.engine.messages import Errand, Fetched
from vedette.engine.search.hidden import NOTHING_CONCEALED, Concealed
from vedette.engine.search.indexable import Standing, left_out
from vedette.errors import StoreError
from vedette.index.fields import Entry, access_of, called, document_of, forms_of, numbers
from vedette.index.quality.watched_terms import NO_WORDS
from vedette.index.stored_text import Stored, pack, unpack
from vedette.model import Failure, Site, fingerprint
from vedette.runtime.alerts.collector import Gathering
from vedette.runtime.indexing.gain_meter import Fetch, Gauge

__all__ = ["Builder"]

MOST_NAMES = 12
READ_BYTES = 64 << 20


class Builder:
    """The one writer of a generation; ``earlier`` is the one that it will replace.

    What fetches bring is written to ``gains``, where somebody wants to know.
    """

    def __init__(
        self, folder: Path, generation: Path, earlier: PageTable | None = None, gains: GainBook | None = None
    ) -> None:
        self.generations = Generations(folder)
        self._lock = self.generations.hold(generation)
        self._archive = folder / "warc"
        self.generation = generation
        self._writer = open_writer(generation / "tantivy")
        self.table = TableWriter(generation)
        self.book = IndexBook(generation)
        self.gauge = Gauge(self.table, gains)
        self._gathering = Gathering(folder)
        self.pending = self.taken = 0
        self._earlier = earlier
        self._ruled: list[Site] = []
        self._concealed = NOTHING_CONCEALED
        self.concealed_anew = False
        self._sites = SiteIndex(())
        self._links = Links(self._sites)
        self._documents: PdfReader[int] = PdfReader()

    def ruled(self, sites: Sequence[Site], concealed: Concealed = NOTHING_CONCEALED) -> None:
        """The operator's sites: what they overrule, and how their links are read; and what is not to be shown."""
        self.concealed_anew |= concealed != self._concealed
        self._concealed = concealed
        if self._ruled == list(sites):
            return
        self._ruled = list(sites)
        self._sites = SiteIndex(sites)
        self._links = Links(self._sites)

    def take(self, known: Mapping[int, Known], texts: Mapping[int, bytes], ids: Iterable[int], now_s: float) -> None:
        """Bring these pages up to date. Texts are those that fetches brought."""
        every = list(dict.fromkeys(ids))
        self.gauge.remember([id_ for id_ in every if id_ in texts])
        for id_ in every:
            page = known.get(id_)
            why = "nothing is kept of it" if page is None else self._left_out(page, now_s)
            if page is None or why:
                self._drop(id_, page)
            elif self.table.is_indexed(id_) and id_ not in texts:
                self.table.update(id_, self._facts(page, self._date_s(id_)))
            else:
                self._put(page, texts.get(id_) or b"")
            self.pending += 1
            self.taken += 1

    def rename(self, most: int) -> int:
        """Index anew some pages that others call something new; how many."""
        ids = self.book.renamed(most)
        for id_ in ids:
            stored = self.table.stored(id_) if self.table.is_indexed(id_) else None
            if stored is not None:
                row = self.table.rows[id_]
                private = self.table.name(int(row["access"]))
                date_s = float(row["born_s"]) if stored.published_s is None else stored.published_s
                entry = self._entry(id_, stored, int(row["print"]), date_s, private)
                forms = forms_of(entry)
                words = numbers(forms)
                self.gauge.named(int(row["print"]), Fetch(id_, float(row["fetched_s"])), words)
                self.table.put_words(id_, words)
                self._writer.put(document_of(entry, forms))
                self.pending += 1
        return len(ids)

    def commit(self, seq: int) -> None:
        """What was taken can be found, and survives; news up to this number need not be told again."""
        self._gathering.commit()
        self.table.flush()
        self._writer.commit()
        self.book.set_progress("seq", seq)
        self.book.commit()
        self.gauge.commit()
        self.generations.keep_seq(self.generation, seq)
        self.pending = 0

    def close(self) -> None:
        """Let go; what was not committed will be told again."""
        self._documents.close()
        self._writer.close()
        self.table.close()
        self.book.close()
        self.gauge.close()
        self._gathering.close()
        self._lock.close()

    def _left_out(self, page: Known, now_s: float) -> str:
        site = self._sites.site_of(page.url)
        named = resolve(page.canonical, page.url) if page.canonical else None
        elsewhere = bool(named) and named != page.url and self._can_stand_for(page, str(named))
        standing = Standing(
            page.status,
            page.kind,
            page.group is not None,
            page.objections,
            page.marks,
            named=elsewhere,
            concealed=self._concealed.why(page.url),
        )
        return left_out(standing, site.overrule if site else (), now_s)

    def _can_stand_for(self, page: Known, url: str) -> bool:
        """Whether there is another page at a URL that everybody finds who may find this one."""
        other = self.book.page_at(fingerprint(url))
        if other in {0, page.id} or not self.table.is_indexed(other):
            return False
        return self.table.name(int(self.table.rows[other]["access"])) in {access_of(""), access_of(page.private)}

    def _drop(self, id_: int, page: Known | None) -> None:
        fetch = Fetch(id_, page.fetched_s) if page is not None else None
        if page is not None:
            self._gathering.dropped(page, could_be_found=self.table.is_indexed(id_))
        if self.table.is_indexed(id_):
            if fetch is not None and fetch.fetched_s > self.table.rows[id_]["fetched_s"]:
                self.gauge.fetched(fetch, self.gauge.words_of(id_), NO_WORDS, "gone")
            self._writer.remove(id_)
            self.book.forget(int(self.table.rows[id_]["print"]))
            self.table.drop(id_)
        if page is not None and (page.location or page.canonical):
            target = fingerprint(page.location or page.canonical)
            self.book.lead(fingerprint(page.url), target)
            if fetch is not None:
                self.gauge.names(fetch, [target])

    def _put(self, page: Known, blob: bytes) -> None:
        stored = unpack(blob or self.table.blob(page.id) or self._reread(page))
        print_ = fingerprint(page.url)
        if stored is None:
            self._drop(page.id, page)
            return
        again = self.table.is_indexed(page.id)
        stored = self._titled(stored, page, again=again)
        if self._is_exact_copy(page, stored):
            self._drop(page.id, page)
            return
        date_s = nan if stored.published_s is None else stored.published_s
        entry = self._entry(
            page.id, stored, print_, page.found_s if stored.published_s is None else date_s, page.private
        )
        forms = forms_of(entry)
        links = [(fingerprint(url), text) for url, text in page.links]
        prints = np.fromiter((target for target, _ in links), np.int64, len(links))
        words, fetch = numbers(forms), Fetch(page.id, page.fetched_s) if blob else None
        if fetch is not None:
            self.gauge.fetched(fetch, self.gauge.words_of(page.id), words, "again" if again else "first")
        self.table.put(page.id, self._facts(page, date_s, stored), pack(stored), words, prints)
        self._writer.put(document_of(entry, forms))
        self.book.know(print_, page.id)
        self.book.lead_nowhere(print_)
        if blob:
            self._gathering.put(page)
        if not page.private:
            named = self.book.name(((target, text) for target, text in links if target != print_), again=again)
            if fetch is not None:
                self.gauge.names(fetch, named)

    def _is_exact_copy(self, page: Known, stored: Stored) -> bool:
        """Whether the page that stands for its group says the same, word for word, and can be found."""
        site = self._sites.site_of(page.url)
        if page.stands in {0, page.id} or not self.table.is_indexed(page.stands) or (site and "copy" in site.overrule):
            return False
        other = self.table.stored(page.stands)
        public = self.table.name(int(self.table.rows[page.stands]["access"])) == access_of(page.private)
        return other is not None and public and (other.title, other.body) == (stored.title, stored.body)

    def _titled(self, stored: Stored, page: Known, *, again: bool) -> Stored:
        """By the name that tells it from other pages of its host."""
        print_ = xxhash.xxh64_intdigest(stored.title.encode("utf-8", "replace")) >> 1
        bearers = self.book.pages_titled(page.host, print_, count=not again)
        title = called(stored.title, stored.headings, bearers)
        return stored if title == stored.title else stored._replace(title=title)

    def _entry(self, id_: int, stored: Stored, print_: int, date_s: float, private: str) -> Entry:
        names = tuple(text for text, _ in self.book.names_of(print_, MOST_NAMES))
        return Entry(
            id_,
            stored.url,
            stored.title,
            stored.headings,
            stored.body,
            names,
            stored.kind,
            stored.language,
            date_s,
            "" if private == access_of("") else private,
        )

    def _facts(self, page: Known, date_s: float, stored: Stored | None = None) -> PageFacts:
        row = self.table.rows[page.id] if stored is None else None
        language = self.table.name(int(row["language"])) if row is not None else ""
        kind = self.table.name(int(row["kind"])) if row is not None else ""
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
            access_of(page.private),
            stored.language if stored else language,
            stored.kind if stored else kind,
        )

    def _date_s(self, id_: int) -> float:
        return float(self.table.rows[id_]["date_s"])

    def _reread(self, page: Known) -> bytes:
        """The text of a page out of the archive, or out of an earlier generation, where nothing else has it."""
        return self._out_of_archive(page) or (self._earlier.blob(page.id) if self._earlier else b"")

    def _out_of_archive(self, page: Known) -> bytes:
        if page.place is None:
            return b""
        try:
            found = read_place(self._archive, Place(*page.place))
        except StoreError:
            return b""
        old = Old(page.url, page.fetched_s, found.status, found.headers, found.payload, "")
        replayed = replay(old, Errand(page.id, "", page.url, "page"), self._links, READ_BYTES)
        if isinstance(replayed, Failure):
            return b""
        result = replayed.result
        if result.kind == "document":
            result = self._read_document(result, old)
        return result.content.stored if result.content else b""

    def _read_document(self, result: Fetched, old: Old) -> Fetched:
        """A document is read elsewhere; here it is waited for."""
        body = body_of(old, READ_BYTES)
        if isinstance(body, Failure):
            return result
        self._documents.submit(result.errand.id, body)
        while not (done := self._documents.finished()):
            select.select([self._documents.fd], [], [], 1.0)
        found = done[0][1]
        text, trouble = (found.text, "") if isinstance(found, PdfText) else ("", str(found.reason))
        answer = answer_of(old, body)
        return read_document(result, answer, self._links, title=found.title, text=text, trouble=trouble)
