"""A data folder with every kind of file, and its use by each process that opens these files."""

import json
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from tests.data_folders import NOW_S
from tests.runtime.indexing.test_index_builder import SITE, Web, page
from tests.runtime.monitoring.test_lab_reports import GOOD

from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import LedgerStore
from vedette.adapters.alerts.alert_store import AlertStore, NewPage
from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.adapters.crawl_store.request_budget import RequestBudget
from vedette.adapters.crawl_store.session_files import open_session, read_session_start
from vedette.adapters.crawl_store.status_file import (
    FailingProcess,
    read_failing,
    read_status,
    write_failing,
    write_status,
)
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.event_store.search_log import EventLog, get_day_salt
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.vector_store import (
    VectorInfo,
    VectorWriter,
    seal_vectors,
    write_space,
    write_vector_info,
)
from vedette.config import Config
from vedette.engine.search.needy_queries import QueryNeeds
from vedette.index.semantic.latent_space import LatentSpace
from vedette.learn.events import ClickEvent
from vedette.runtime.indexing.indexer import catch_up
from vedette.runtime.indexing.query_curves import load_needs, save_needs
from vedette.runtime.monitoring.lab_reports import FolderReports
from vedette.runtime.processes.event_recorder import EventRecorder, Sampler
from vedette.runtime.processes.notifier import Notifier
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.search.meaning import LEARNED
from vedette.runtime.search.reputation_store import load_ranking_status, save_ranking_status, save_reputation
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.rank.reputation import Reputation
from vedette.serve.slate import SearchRequest
from vedette.text import hash_word
from vedette.web.console.ports.monitoring import RankingReport

__all__ = ["PAGES", "REQUEST", "create_folder", "send_request", "use"]

PAGES = 6
REQUEST = SearchRequest("zeppelin", folded=False)
LONG_REQUEST = SearchRequest("page number zeppelin over the sea", folded=False)
LATER_S = NOW_S + 1e6
SESSION, DAY = "ab" * 32, "2027-01-15"


def create_folder(folder: Path) -> None:
    """Create a folder with pages, an index, searches, ads, alerts, vectors and reports, closed cleanly."""
    web = Web(folder)
    with web.state() as state:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=NOW_S))
    links = "".join(f'<a href="/{number}">number {number}</a>' for number in range(PAGES))
    web.all_answer({str(number): page(f"Page {number}", "zeppelin", links=links) for number in range(PAGES)})
    snapshot = web.index()
    with web.state() as state:
        state.store.add_alert(AlertRow("owls", "a", query="owls", added_s=NOW_S))
    with closing(EventStore(folder)) as store:
        store.ingest_all_logs()
    send_request(folder)
    ids = snapshot.table.indexed
    _write_learned(Generations(folder), ids.tolist())
    with closing(LedgerStore(folder)) as ledger:
        ledger.count_refused_click(date.fromisoformat(DAY), "forged")
    with closing(AlertStore(folder)) as alerts:
        alerts.add_new_pages([NewPage(7, int(ids[0]), NOW_S, "link", SITE.start, NOW_S)], [8], [9], NOW_S)
    log = EventLog(folder, "server")
    log.append(ClickEvent("00", "view", 0, 5.0, NOW_S, "ab"))
    log.close()
    get_day_salt(folder, DAY)
    open_session(folder, SESSION, "token", NOW_S)
    write_status(folder, {"known": 1})
    write_failing(folder, [FailingProcess("indexer", 3, "exit code 1")])
    (folder / "lab").mkdir()
    (folder / "lab" / "lab-refresh.json").write_text(json.dumps(GOOD))


def _write_learned(generations: Generations, ids: list[int]) -> None:
    """Write what background jobs learn from many pages and searches."""
    generation = generations.current()
    assert generation is not None
    one, print_ = np.ones(1), np.ones(1, np.int64)
    columns: dict[str, Any] = dict.fromkeys(Reputation._fields, one) | dict.fromkeys(
        ("page", "pair", "query", "host"), print_
    )
    save_reputation(generation, Reputation(**columns | {"general": 0.5, "people": 9.0}))
    save_ranking_status(generations.folder, RankingReport(clicks=12))
    save_needs(generation, QueryNeeds.empty().add_gains(np.array([5], np.uint64), one, 10))
    words = np.sort(np.array([hash_word(word) for word in LONG_REQUEST.query.split()], np.uint32))
    info = VectorInfo(LEARNED, "0" * 64, 4, "vectors-0000", len(ids), len(ids))
    write_space(generations.folder, info, LatentSpace(words, np.ones(len(words)), np.eye(len(words), 4, dtype="<f4")))
    with closing(VectorWriter(generations.folder, info)) as writer:
        for id_ in ids:
            writer.add(id_, 0, (0,), np.ones((1, 4), np.float32))
    write_vector_info(generations.folder, seal_vectors(generations.folder, info))


def send_request(folder: Path) -> None:
    """Count a request as a fetcher does."""
    with closing(RequestBudget(folder, 100)) as budget:
        assert budget.spend("www.example.org", "192.0.2.1", NOW_S) is None


def use(folder: Path) -> int:
    """Use every file like the processes that open it, and return the number of pages found."""
    clock = start_clock(LATER_S, 1.0)
    with lock_folder(folder):
        state = open_state(folder, "test", LATER_S)
        known = len(list(state.store.iter_pages()))
        state.close(clean=True)
    assert known == PAGES
    send_request(folder)
    catch_up(folder, clock)
    _run_services(folder)
    with closing(LedgerStore(folder)) as ledger:
        ledger.count_refused_click(date.fromisoformat(DAY), "forged")
    LedgerReader(folder).read_refused_clicks(date.fromisoformat(DAY))
    _read_small_files(folder)
    search = FolderSearch(folder, clock, embedding_model=LEARNED)
    search.search(LONG_REQUEST)
    return len(search.search(REQUEST).results)


def _run_services(folder: Path) -> None:
    settings = RuntimeSettings(Config(), start_clock(LATER_S, 1.0), folder, "test")
    with closing(EventRecorder(settings, Sampler(settings))) as recorder, closing(Notifier(settings)) as notifier:
        for _ in range(2):  # what can't be read is moved aside first
            recorder.step()
            notifier.step()


def _read_small_files(folder: Path) -> None:
    """Read the optional files."""
    read_status(folder)
    read_failing(folder)
    read_session_start(folder, SESSION, "token")
    open_session(folder, SESSION, "token", LATER_S)
    get_day_salt(folder, DAY)
    load_ranking_status(folder / "index")
    generation = Generations(folder).current()
    assert generation is not None
    load_needs(generation)
    for line in FolderReports(folder).list_reports():
        FolderReports(folder).load_report(line.name)
