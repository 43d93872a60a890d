"""Import and export: a folder is split into shards and merged again, and nothing is lost."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.archive.warc_record import Exchange
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.adapters.crawl_store.data_folder import open_for_write, read_state
from vedette.adapters.crawl_store.store import CrawlStore, SiteRow
from vedette.adapters.exchange.link_store import LinkStore, create_exchange_tables
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.registry import claim_shard, create_cluster, list_sites
from vedette.cli.main import main
from vedette.engine.coordinator.shard import ForeignLinks
from vedette.errors import ClusterError, StoreBusy, UsageError
from vedette.model import Site
from vedette.runtime.cluster.transfer import export_folder, import_folder
from vedette.runtime.commands.importer import Importer

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)
HOSTS = [f"http://h{number}.test" for number in range(12)]
LIMIT_BYTES = 1_000_000


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    with run_postgres() as server:
        yield server


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    """A database with a cluster of three shards that has never run."""
    dsn = postgres.create_database()
    create_cluster(dsn, 3, 600.0)
    return dsn


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A single-machine folder with twelve hosts: two pages each, and a waiting URL."""
    base = tmp_path_factory.mktemp("one")
    (base / "in").mkdir()
    writer = WarcWriter(base / "in", "w0", "test")
    for host in HOSTS:
        for path in ("/", "/a"):
            body = f'<title>{host}{path}</title><a href="/waits">w</a>'.encode()
            request = f"GET {path} HTTP/1.1\r\n\r\n".encode()
            response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
            writer.append(Exchange(f"{host}{path}", 1000.0, request, response, body, "127.0.0.1"))
    writer.close()
    with open_for_write(base / "data", time.time()) as state:
        for host in HOSTS:
            state.store.save_site(SiteRow(Site(f"{host}/"), paused=False, added_s=0.0))
        importer = Importer(state, "test", time.time(), LIMIT_BYTES)
        for file in (base / "in").iterdir():
            importer.import_warc(file)
        importer.close()
        state.store.add_note(1, "a note", 5.0)
    return base / "data"


def describe(folder: Path) -> dict[str, tuple[object, ...]]:
    """Describe each URL in a folder: its last state, its page, whether that is archived, and its note."""
    sql = (
        "SELECT url.url, host.name, page.status, page.title, note.why, "
        "(SELECT fate FROM fate WHERE url_id = url.id ORDER BY id DESC LIMIT 1) "
        "FROM url JOIN host ON host.id = url.host "
        "LEFT JOIN page ON page.id = url.id AND page.host = url.host LEFT JOIN note ON note.url_id = url.id"
    )
    with read_state(folder) as db:
        found = {row[0]: row[1:] for row in db.execute(sql)}
        places = {url: page.place for url, page in CrawlStore(db).iter_pages()}
    for url, place in places.items():
        assert place is not None
        assert url.encode() in read_answer(folder / "warc", place).payload
    return found


def test_a_folder_becomes_shards_and_one_folder_again(
    dsn: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each URL is in one shard with everything known about it; links in transit are in the export."""
    before = describe(folder)
    assert len(before) == 36
    copied = import_folder(dsn, folder, tmp_path / "nodes")
    assert copied == (36, 24)
    shards = sorted((tmp_path / "nodes").glob("shard-*"))
    parts = [describe(shard) for shard in shards]
    assert {url: facts for part in parts for url, facts in part.items()} == before
    assert sum(map(len, parts)) == 36
    assert sum(map(bool, parts)) > 1
    with connect(dsn) as connection:
        assert len(list_sites(connection)) == 12
    with pytest.raises(ClusterError, match="has already run"):
        import_folder(dsn, folder, tmp_path / "nodes")
    with closing(sqlite3.connect(shards[0] / "state.db", isolation_level=None)) as db:
        create_exchange_tables(db)
        LinkStore(db, 1).put_links({1: [ForeignLinks((f"{HOSTS[0]}/late",), 1)]})
    options = ["--postgres", dsn, "--data", str(tmp_path / "nodes")]
    assert main(["cluster", "export", str(tmp_path / "again"), *options]) == 0
    assert capsys.readouterr().out == f"Copied 37 URLs and 24 pages into {tmp_path / 'again'}\n"
    after = describe(tmp_path / "again")
    assert after.keys() == {*before, f"{HOSTS[0]}/late"}
    assert {url: after[url] for url in before} == before
    with open_for_write(tmp_path / "again", time.time()) as state:
        assert state.urls.find_ids([f"{HOSTS[0]}/late"]).tolist() == [37]


def test_folders_in_use_are_neither_imported_nor_exported(dsn: str, folder: Path, tmp_path: Path) -> None:
    """A folder in use, a cluster with a node, and an existing target are refused before anything is created."""
    with open_for_write(folder, time.time()), pytest.raises(StoreBusy):
        import_folder(dsn, folder, tmp_path / "nodes")
    with connect(dsn) as connection:
        claim_shard(connection, "a", (), 600.0)
    with pytest.raises(ClusterError, match="a still run shards: stop all nodes first"):
        import_folder(dsn, folder, tmp_path / "nodes")
    with pytest.raises(ClusterError, match="stop all nodes first"):
        export_folder(dsn, tmp_path / "nodes", tmp_path / "again", "test", LIMIT_BYTES)
    with pytest.raises(UsageError, match="already exists"):
        export_folder(dsn, tmp_path / "nodes", tmp_path, "test", LIMIT_BYTES)
    assert list(tmp_path.iterdir()) == []
