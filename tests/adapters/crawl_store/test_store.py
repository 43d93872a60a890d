"""The crawl store: saved values are loaded again, the latest one wins, and invalid rows are reported as damage."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data_folders import HOST, NOW_S, ORIGIN, ROBOTS, SITE

from vedette.adapters.crawl_store.store import CrawlStore, SiteRow, create_tables
from vedette.adapters.url_store.rows import create_url_tables
from vedette.engine.messages import ArchiveLocation
from vedette.engine.ports import HostRow, PageRow
from vedette.errors import StoreCorrupt
from vedette.fetch.robots.state import UNKNOWN
from vedette.model import Site, partition_of

ROW = PageRow(
    *(7, 0, 200, "page", NOW_S, NOW_S, "Grüße", "text/html", '"e"', "", "d", "sha1:D", "", 10),
    place=ArchiveLocation("vedette-w0-00000.warc.gz", 300, 400),
    interval_s=60.0,
    due_s=NOW_S + 60,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=30)
LINKS = TEXTS.filter(lambda text: text and "\t" not in text)
ROWS = st.builds(
    PageRow,
    id=st.integers(1, 2**32),
    host=st.just(0),
    status=st.integers(100, 999),
    kind=st.sampled_from(["page", "feed", "sitemap", "other"]),
    fetched_s=st.floats(0, 4e9),
    changed_s=st.floats(0, 4e9),
    title=TEXTS,
    content_type=TEXTS,
    etag=TEXTS,
    last_modified=TEXTS,
    digest=TEXTS,
    payload_digest=TEXTS,
    location=TEXTS,
    body_bytes=st.integers(0, 2**40),
    place=st.none() | st.builds(ArchiveLocation, TEXTS, st.integers(0, 2**40), st.integers(0, 2**40)),
    interval_s=st.floats(0, 4e9),
    due_s=st.floats(0, 4e9) | st.just(inf),
)


def new_book() -> tuple[sqlite3.Connection, CrawlStore]:
    """A store that is empty except for one host."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    create_url_tables(db)
    create_tables(db)
    db.execute("INSERT INTO host VALUES (0, ?, ?)", (partition_of(HOST), HOST))
    return db, CrawlStore(db)


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """A state with one host."""
    connection, _ = new_book()
    yield connection
    connection.close()


@pytest.fixture
def book(db: sqlite3.Connection) -> CrawlStore:
    """Its store."""
    return CrawlStore(db)


@given(rows=st.lists(ROWS, max_size=5), links=st.lists(LINKS, max_size=5))
def test_pages_are_found_as_they_were_kept(rows: list[PageRow], links: list[str]) -> None:
    """The latest row of each URL is loaded with every field and its links."""
    connection, book = new_book()
    with closing(connection):
        for row in rows:
            book.save_pages([(row, (links, ()))])
        latest = {row.id: row for row in rows}
        assert book.get_pages(list(latest)) == latest
        for id_, row in latest.items():
            assert book.get_page(id_) == row
            assert book.get_links(id_) == tuple(links)


def test_a_page_that_comes_after_all_is_no_longer_noted_as_failed(book: CrawlStore) -> None:
    """A note stays until something is fetched, and a later note replaces it."""
    book.add_note(7, "too slow", NOW_S)
    book.add_note(7, "status 500", NOW_S + 1)
    assert book.get_note(7) == ("status 500", NOW_S + 1)
    book.save_pages([(ROW, ((), ()))])
    assert book.get_note(7) is None
    assert book.get_note(8) is None


def test_pages_fall_due_once_the_most_overdue_first(book: CrawlStore) -> None:
    """A due page is returned once, until it is fetched; pages due later or never are not returned."""
    for id_, due_s in ((1, 30.0), (2, 10.0), (3, 20.0), (4, 99.0), (5, inf)):
        book.save_pages([(ROW._replace(id=id_, due_s=due_s), ((), ()))])
    assert [(one.id, one.host) for one in book.get_due(30.0, most=2)] == [(2, HOST), (3, HOST)]
    assert [one.id for one in book.get_due(30.0, most=2)] == [1]
    assert list(book.get_due(30.0, most=2)) == []
    book.save_pages([(ROW._replace(id=2, due_s=29.0), ((), ()))])
    assert [one.id for one in book.get_due(30.0, most=2)] == [2]


def test_sites_keep_their_order_and_settings(book: CrawlStore) -> None:
    """A site that is set again keeps its position and time of addition; a dropped one is gone."""
    other = Site("https://other.test/")
    book.save_site(SiteRow(SITE, paused=False, added_s=1.0))
    book.save_site(SiteRow(other, paused=False, added_s=2.0))
    changed = replace(SITE, delay_s=9.0, include=("/a", "/b"))
    book.save_site(SiteRow(changed, paused=True, added_s=3.0))
    assert book.list_sites() == [SiteRow(changed, paused=True, added_s=1.0), SiteRow(other, paused=False, added_s=2.0)]
    book.delete_site(SITE.start)
    assert [row.site for row in book.list_sites()] == [other]


def test_the_latest_word_on_hosts_and_robots_counts(book: CrawlStore) -> None:
    """Delays and robots.txt copies replace earlier ones."""
    book.save_hosts([HostRow(HOST, 5.0, 1, "status 503")])
    book.save_hosts([HostRow(HOST, 9.0, 0, "")])
    book.save_robots(ORIGIN, UNKNOWN)
    book.save_robots(ORIGIN, ROBOTS)
    assert book.load_hosts() == [HostRow(HOST, 9.0, 0, "")]
    assert book.load_robots() == {ORIGIN: ROBOTS}


def test_archive_lengths_grow_and_the_youngest_time_stays(book: CrawlStore, db: sqlite3.Connection) -> None:
    """The last length counts; the newest time of a file is the newest ever acknowledged."""
    book.acknowledge_archive({"a": 10, "b": 5}, 100.0)
    book.acknowledge_archive({"a": 20}, 90.0)
    assert book.load_archive_lengths() == {"a": 20, "b": 5}
    assert db.execute("SELECT file, newest_s FROM archive ORDER BY file").fetchall() == [("a", 100.0), ("b", 100.0)]


@pytest.mark.parametrize("state", ["{", "[]", "{}", "7", '{"standing": "read", "last_good": null}'])
def test_a_robots_state_that_cannot_be_read(book: CrawlStore, db: sqlite3.Connection, state: str) -> None:
    """A stored robots.txt is validated when it is read."""
    book.save_robots(ORIGIN, ROBOTS)
    db.execute("UPDATE robots SET state = ?", (state,))
    with pytest.raises(StoreCorrupt, match="restore"):
        book.load_robots()


@pytest.mark.parametrize("settings", ["{", "[]", '{"colour": "red"}'])
def test_a_site_that_cannot_be_read(book: CrawlStore, db: sqlite3.Connection, settings: str) -> None:
    """The settings of a site are validated as well, and the error names the site."""
    book.save_site(SiteRow(SITE, paused=False, added_s=1.0))
    db.execute("UPDATE site SET settings = ?", (settings,))
    with pytest.raises(StoreCorrupt, match=SITE.start):
        book.list_sites()


@pytest.mark.parametrize("blob", [b"", b"\x00", b"x\x9c"])
def test_links_that_cannot_be_unpacked(book: CrawlStore, db: sqlite3.Connection, blob: bytes) -> None:
    """The links of a page are validated as well."""
    book.save_pages([(ROW, (("https://a.test/",), ()))])
    db.execute("UPDATE page SET links = ?", (blob,))
    with pytest.raises(StoreCorrupt):
        book.get_links(ROW.id)
