"""Searcher of a data folder, for the server and ``vedette search``; it reads while coordinator and indexer write."""

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vedette.adapters.archive.replay import ImportedResponse, decode_body
from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import explain_database_errors, read_state
from vedette.adapters.crawl_store.request_budget import read_exceeded
from vedette.adapters.crawl_store.search_store import RuleRow, UserKeyRow
from vedette.adapters.crawl_store.status_file import FailingProcess, read_failing
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.index_store.generations import Generations, find_index_damage
from vedette.adapters.index_store.indexer_store import read_page_id
from vedette.adapters.index_store.page_table import PageTable
from vedette.engine.messages import ArchiveLocation
from vedette.engine.search.hidden import find_parent_domain
from vedette.engine.search.search import Searcher
from vedette.errors import StoreError
from vedette.index.fields import PUBLIC, StoredPage
from vedette.index.query.retrieval import And, Or, Range, Term, TermSet
from vedette.model import Failure, Site, fingerprint, origin_of
from vedette.policy import Ints
from vedette.runtime.commands.setting_commands import find_promotion, is_learning_on
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot, refresh_snapshot
from vedette.runtime.search.meaning import OFF, MeaningComparer
from vedette.runtime.search.reputation_store import load_ranking_status
from vedette.runtime.search.result_cache import ResultCache, normalize_request
from vedette.serve.rank.reranking import DEFAULT_PROMOTION
from vedette.serve.rank.rules import SearchRules, parse_rules
from vedette.serve.slate import SearchRequest, SearchResult, Slate, Snippet
from vedette.text import split_words
from vedette.web.console.ports.monitoring import RankingReport
from vedette.web.ports import CachedCopy, FacetCount, IndexOverview

INDEX_EVERY_S = 0.25
STATE_EVERY_S = 1.0
COUNT_EVERY_S = 3.0
BOOST_EVERY_S = 10.0
BOOSTS = {"raise": 1.0, "lower": -1.0}
MAX_COMPLETIONS = 50
MAX_ID = 1 << 40
MAX_SIMILAR = 50
MAX_OVERVIEWS = 64
MAX_SITES = 100
MAX_NEWEST = 8
MAX_BODY_BYTES = 16 << 20
# Copies are found by their index; any other page is a group of its own, found by its id.
_GROUPS = (
    "WITH asked (grp) AS (SELECT value FROM json_each(?1)), member (id) AS "
    "(SELECT id FROM content WHERE grp <> id AND grp IN asked UNION SELECT grp FROM asked) "
)
_MEMBERS = _GROUPS + (
    "SELECT content.id, url.url, page.title, page.fetched_s, url.found_s, content.language, content.private "
    "FROM content JOIN url ON url.id = content.id JOIN page ON page.id = content.id "
    "WHERE content.id IN member AND content.grp IN asked AND content.id <> ?2 "
    "AND page.status BETWEEN 200 AND 299 AND content.marks NOT LIKE '%noindex%' ORDER BY content.id LIMIT ?3"
)
_COUNTS = _GROUPS + (  # noqa: S608 - two constants of our own
    "SELECT content.grp, count(*) FROM content JOIN page ON page.id = content.id "
    "WHERE content.id IN member AND content.grp IN asked "
    "AND page.status BETWEEN 200 AND 299 AND content.marks NOT LIKE '%noindex%' "
    "AND content.private IN (SELECT value FROM json_each(?2)) GROUP BY content.grp"
)
_SHARED = "SELECT grp, members FROM copies WHERE members > 1 AND grp IN (SELECT value FROM json_each(?))"
_PLACE = (
    "SELECT file, offset, length, status, content_type, fetched_s, charset, marks, private "
    "FROM page JOIN content USING (id) WHERE id = ? AND file IS NOT NULL"
)


class FolderSearch:
    """A ``web.ports.SearchService`` over one data folder: search, suggestions, overview and cached copies."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        demo: bool = False,
        learn: bool = True,
        promotion: str = DEFAULT_PROMOTION,
        embedding_model: str = OFF,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._started_s = clock.now()
        self._demo = demo
        self._learn, self._is_learning = learn, learn
        self._configured_promotion = self._promotion = promotion
        self._generations = Generations(folder)
        self._meaning = None if embedding_model == OFF else MeaningComparer(self._generations.folder, embedding_model)
        self._snapshot: LiveIndexSnapshot | None = None
        self._searcher: Searcher | None = None
        self._results = ResultCache()
        self._version = -1
        self._damaged: Path | None = None
        self._db: sqlite3.Connection | None = None
        self._index_checked_s = self._state_checked_s = float("-inf")
        self._sites: tuple[Site, ...] = ()
        self._rules = SearchRules()
        self._overviews: dict[tuple[str, ...], tuple[float, IndexOverview]] = {}
        self._keys: list[UserKeyRow] = []
        self._boosted_domains: dict[str, float] = {}
        self._host_boosts: dict[int, float] = {}
        self._boosts_loaded_s = float("-inf")

    # the port

    def search(self, request: SearchRequest) -> Slate:
        """Search the data folder's index and return results, each with its number of duplicates."""
        snapshot = self._refresh()
        if snapshot is None or self._searcher is None:
            return Slate(request, 0)
        audience = request.audience._replace(promotion=self._promotion)
        request = request._replace(audience=audience)
        equal, now_s = normalize_request(request, is_learned=self._searcher.is_learned), self._clock.now()
        slate = self._results.find(equal, now_s)
        if slate is None:
            try:
                slate = self._searcher.search(request, now_s)
            except BaseException:  # the library of the index panics, which is no Exception
                if not self._drop_damaged(snapshot):
                    raise
                return Slate(request, 0)
            self._results.add(equal, slate, now_s)
        return self._add_copy_counts(slate._replace(request=request), snapshot)

    def suggest(self, typed: str, most: int, site: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Suggest completions of a query that is being typed."""
        snapshot = self._refresh()
        if snapshot is None:
            return ()
        if site:
            return self._complete_titles(snapshot, typed, most, site, allowed)
        return snapshot.lexicon.suggestions.complete(typed, most, snapshot.lexicon.spelling)

    def get_overview(self, allowed: tuple[str, ...]) -> IndexOverview:
        """Return an overview of the index that a user may see; counted every few seconds per kind of user."""
        snapshot, now_s = self._refresh(), time.monotonic()
        counted_s, kept = self._overviews.get(allowed, (float("-inf"), IndexOverview()))
        if snapshot is None or now_s - counted_s < COUNT_EVERY_S:
            return kept
        if len(self._overviews) >= MAX_OVERVIEWS:
            self._overviews.clear()
        since_s = self._started_s if self._demo else None
        hosts = dict(self._query("SELECT id, name FROM host"))
        overview = build_overview(snapshot, hosts, self._sites, allowed, self._clock.now(), since_s)
        self._overviews[allowed] = now_s, overview
        return overview

    def find_copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """Find the cached copy of a page in the archive, if it is searchable and its owner and site allow copies.

        The state is authoritative, since it names the copy; the index may be slightly behind.
        """
        snapshot = self._refresh()
        stored = snapshot.table.read_stored(id_) if snapshot and self._may_see(snapshot, id_, allowed) else None
        row = self._query(_PLACE, id_) if stored else []
        if stored is None or not row:
            return None
        file, offset, length, status, content_type, fetched_s, charset, marks, private = row[0]
        if "noarchive" in marks.split(", ") or private not in {"", *allowed}:
            return None
        try:
            found = read_answer(self._folder / "warc", ArchiveLocation(file, offset, length))
        except StoreError:
            return None
        answer = ImportedResponse(stored.url, fetched_s, status, found.headers, found.payload, "")
        body = decode_body(answer, MAX_BODY_BYTES)
        if isinstance(body, Failure):
            return None
        text = stored.body if stored.kind != "html" else ""
        return CachedCopy(stored.url, stored.title, fetched_s, content_type, body, charset, text)

    def find_page(self, url: str, allowed: tuple[str, ...]) -> int | None:
        """Find a searchable page by its URL; the URL is compared too, since two may share a fingerprint."""
        snapshot = self._refresh()
        id_ = read_page_id(snapshot.generation, fingerprint(url)) if snapshot else 0
        if snapshot is None or not self._may_see(snapshot, id_, allowed):
            return None
        stored = snapshot.table.read_stored(id_)
        return id_ if stored is not None and stored.url == url else None

    def find_similar(self, id_: int, allowed: tuple[str, ...]) -> tuple[SearchResult, ...]:
        """Find the pages in a page's duplicate group, including those left out of the index."""
        snapshot = self._refresh()
        if snapshot is None or not self._may_see(snapshot, id_, allowed):
            return ()
        group = int(snapshot.table.rows[id_]["group"])
        rows = self._query(_MEMBERS, json.dumps([group]), id_, MAX_SIMILAR)
        return tuple(
            SearchResult(
                page, url, title, Snippet(), origin_of(url).host, "html", language, fetched_s, found_s, None, 0.0
            )
            for page, url, title, fetched_s, found_s, language, private in rows
            if not private or private in allowed
        )

    def list_sites(self) -> tuple[Site, ...]:
        """List all sites, for search."""
        self._refresh()
        return self._sites

    def list_keys(self) -> list[UserKeyRow]:
        """List the current user keys; a key is checked before anything is searched."""
        self._refresh()
        return self._keys

    def get_incomplete_reason(self) -> str:
        """Return why search is incomplete: no index yet, or one without all pages; empty if neither."""
        snapshot = self._refresh()
        if snapshot is None and self._damaged is not None:
            return "the index is damaged: it is rebuilt while vedette up runs"
        if snapshot is None:
            return "there is no index yet: it is built as soon as pages are fetched"
        if self._generations.get_repair_reason(snapshot.generation):
            return "the index was damaged and is being rebuilt: results are incomplete"
        return "" if self._generations.is_complete(snapshot.generation) else "the index is being built"

    def list_failing(self) -> tuple[FailingProcess, ...]:
        """List the processes of the running tree that keep failing, as the supervisor wrote them down."""
        return read_failing(self._folder)

    def count_exceeded(self) -> int:
        """Count the addresses and domains that reached the daily limit of requests."""
        return len(read_exceeded(self._folder))

    def ranking(self) -> RankingReport | None:
        """The ranking status of learning from clicks, as last saved beside the index."""
        return load_ranking_status(self._generations.folder)

    def now_s(self) -> float:
        """Return the current world time, for search."""
        return self._clock.now()

    # reading

    def _refresh(self) -> LiveIndexSnapshot | None:
        """Return the current index snapshot for searches, refreshed several times a second."""
        wall_s = time.monotonic()
        if wall_s - self._index_checked_s >= INDEX_EVERY_S:
            self._index_checked_s = wall_s
            self._refresh_index()
        if wall_s - self._state_checked_s >= STATE_EVERY_S:
            self._state_checked_s = wall_s
            self._refresh_state()
        return self._snapshot

    def _drop_damaged(self, snapshot: LiveIndexSnapshot) -> bool:
        """Let go of an index snapshot and report it to the indexer if its files are damaged; return whether they are.

        Searches find nothing, and say why, until there is another generation.
        """
        damage = find_index_damage(snapshot.generation / "tantivy")
        if damage:
            self._damaged = snapshot.generation
            self._snapshot = self._searcher = None
            self._results.clear()
            self._generations.report_damage(snapshot.generation, f"tantivy/{damage}")
        return bool(damage)

    def _refresh_index(self) -> None:
        if self._damaged is not None and self._generations.current() == self._damaged:
            return
        try:
            found = refresh_snapshot(self._generations, self._snapshot, self._meaning)
        except StoreError:
            if self._snapshot is None or not self._drop_damaged(self._snapshot):
                raise
            return
        if found is None:
            return
        if found is not self._snapshot:
            self._snapshot, self._searcher = found, None
        if found.version != self._version:
            self._version = found.version
            self._results.clear()
        if self._snapshot.reputation_file.refresh() or self._searcher is None:
            self._searcher = self._build_searcher(self._snapshot)

    def _refresh_state(self) -> None:
        if not (self._folder / "state.db").exists():
            return
        try:
            with read_state(self._folder) as db:
                store = CrawlStore(db)
                self._sites = tuple(row.site for row in store.list_sites())
                self._keys = store.list_user_keys()
                rows = store.list_search_rules()
                rules = build_rules(rows)._replace(favoured=self._load_boosts(rows, db))
                is_learning = is_learning_on(store, configured=self._learn)
                self._promotion = find_promotion(store, self._configured_promotion)
        except StoreError:  # it is just being created; the current one stays
            return
        if (rules, is_learning) != (self._rules, self._is_learning) and self._snapshot is not None:
            self._rules, self._is_learning = rules, is_learning
            self._searcher = self._build_searcher(self._snapshot)

    def _build_searcher(self, snapshot: LiveIndexSnapshot) -> Searcher:
        """Build the searcher with the operator's search rules, and with learned reputations if enabled."""
        self._results.clear()
        return Searcher(snapshot, self._rules, snapshot.reputation_file.reputation if self._is_learning else None)

    def _load_boosts(self, rows: Sequence[RuleRow], db: sqlite3.Connection) -> Mapping[int, float]:
        """Load the ranking boosts of hosts that the operator raised or lowered, by number; done periodically."""
        said = {row.value: BOOSTS[row.kind] for row in rows if row.kind in BOOSTS}
        wall_s = time.monotonic()
        if said != self._boosted_domains or (said and wall_s - self._boosts_loaded_s >= BOOST_EVERY_S):
            self._boosted_domains, self._boosts_loaded_s = said, wall_s
            hosts = db.execute("SELECT id, name FROM host").fetchall() if said else []
            self._host_boosts = {
                id_: said[near] for id_, name in hosts if (near := find_parent_domain(name, said)) is not None
            }
        return self._host_boosts

    def _query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Run an SQL query on the current crawl state, for search."""
        if self._db is None:
            path = (self._folder / "state.db").resolve().as_uri()
            self._db = sqlite3.connect(f"{path}?mode=ro", uri=True, isolation_level=None)
        with explain_database_errors(self._folder):
            return self._db.execute(sql, values).fetchall()

    # what is shown

    def _add_copy_counts(self, slate: Slate, snapshot: LiveIndexSnapshot) -> Slate:
        """Add to each search result how many other pages of its duplicate group the user may see."""
        if not slate.results or not slate.request.folded:
            return slate
        groups = snapshot.table.get_rows(np.array([result.id for result in slate.results], np.int64))["group"].tolist()
        shared = dict(self._query(_SHARED, json.dumps(groups)))
        if shared and any(site.secrets for site in self._sites):
            visible = json.dumps(["", *slate.request.allowed])
            shared = dict(self._query(_COUNTS, json.dumps(list(shared)), visible))
        others = [max(shared.get(group, 1) - 1, 0) for group in groups]
        results = [
            result if result.similar == similar else result._replace(similar=similar)
            for result, similar in zip(slate.results, others, strict=True)
        ]
        return slate._replace(results=tuple(results))

    def _complete_titles(
        self, snapshot: LiveIndexSnapshot, typed: str, most: int, site: str, allowed: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Complete a typed query with titles of a site's pages that have all words, the last possibly incomplete."""
        *whole, last = split_words(typed)[:8] or [""]
        if not last:
            return ()
        ends = dict.fromkeys([last, *snapshot.complete_word(last, MAX_COMPLETIONS)])
        node = And(
            (
                TermSet("site", (site.lower().rstrip("/"),)),
                TermSet("access", (PUBLIC, *allowed)),
                *(Term("title", word) for word in whole),
                Or(tuple(Term("title", word) for word in ends)),
            )
        )
        found = snapshot.get_stored(snapshot.finder.find(node, most).ids)
        return tuple(dict.fromkeys(stored.title for stored in found if stored is not None))

    def _may_see(self, snapshot: LiveIndexSnapshot, id_: int, allowed: tuple[str, ...]) -> bool:
        if not 0 <= id_ < MAX_ID or not snapshot.has(id_):
            return False
        return snapshot.get_access(np.array([id_]))[0] in {PUBLIC, *allowed}


def build_rules(rows: Sequence[RuleRow]) -> SearchRules:
    """Build the search rules of single queries from the operator's stored rules, as ranking takes them."""
    kinds = {kind: [(row.query, row.value) for row in rows if row.kind == kind] for kind in ("synonym", "pin", "hide")}
    return parse_rules(kinds["synonym"], kinds["pin"], kinds["hide"])


def build_overview(
    snapshot: LiveIndexSnapshot,
    hosts: Mapping[int, str],
    sites: Sequence[Site],
    allowed: tuple[str, ...],
    now_s: float,
    since_s: float | None,
) -> IndexOverview:
    """Build the index overview that a user may see; with ``since_s`` also the newest pages dated after it."""
    table = snapshot.table
    ids = _select_visible(table, allowed)
    if not len(ids):
        return IndexOverview(waiting=sum(not site.secrets for site in sites))
    fetched_s = table.rows["fetched_s"][ids]
    of_hosts = _count_values(table.rows["host"][ids])
    names = [FacetCount(hosts.get(host, ""), pages) for host, pages in of_hosts]
    present = {count.value for count in names}
    return IndexOverview(
        pages=len(ids),
        sites=tuple(names[:MAX_SITES]),
        kinds=_count_names(table, table.rows["kind"][ids]),
        languages=_count_names(table, table.rows["language"][ids]),
        newest_s=float(fetched_s.max()),
        median_age_s=max(now_s - float(np.median(fetched_s)), 0.0),
        waiting=sum(origin_of(site.start).host not in present for site in sites if not site.secrets),
        newest_pages=_list_newest(snapshot, ids, since_s) if since_s is not None else (),
    )


def _select_visible(table: PageTable, allowed: tuple[str, ...]) -> Ints:
    ids = table.indexed
    access = table.rows["access"][ids]
    numbers = [number for number in np.unique(access).tolist() if table.get_name(number) in {PUBLIC, *allowed}]
    return ids[np.isin(access, numbers)]


def _count_values(values: Ints) -> list[tuple[int, int]]:
    """Count values for the index overview, most frequent first."""
    found, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return list(zip(found[order].tolist(), counts[order].tolist(), strict=True))


def _count_names(table: PageTable, numbers: Ints) -> tuple[FacetCount, ...]:
    return tuple(
        FacetCount(name, pages) for number, pages in _count_values(numbers) if (name := table.get_name(number))
    )


def _list_newest(snapshot: LiveIndexSnapshot, ids: Ints, since_s: float) -> tuple[SearchResult, ...]:
    rows = snapshot.table.rows[ids]
    young = np.flatnonzero(rows["date_s"] >= since_s)
    latest = ids[young[np.argsort(-rows["date_s"][young], kind="stable")][: 2 * MAX_NEWEST]]
    # A row is written before the index commits: listed pages must be searchable for anyone who follows the link.
    findable = [id_ for id_ in latest.tolist() if len(snapshot.finder.find(Range("id", id_, id_), 1).ids)][:MAX_NEWEST]
    pairs = zip(findable, snapshot.get_stored(np.array(findable, np.int64)), strict=True)
    return tuple(_build_new_result(id_, stored, snapshot.table) for id_, stored in pairs if stored is not None)


def _build_new_result(id_: int, stored: StoredPage, table: PageTable) -> SearchResult:
    fetched_s, date_s = float(table.rows[id_]["fetched_s"]), float(table.rows[id_]["date_s"])
    about = (origin_of(stored.url).host, stored.kind, stored.language, fetched_s, date_s, stored.published_s)
    return SearchResult(id_, stored.url, stored.title, Snippet(), *about, 0.0)
