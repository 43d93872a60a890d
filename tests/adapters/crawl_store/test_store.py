"""The keeper's book: what was told is found again, the latest word counts, and broken rows are named as damage."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data_folders import HOST, NOW_S, ORIGIN, ROBOTS, SITE

from vedette.adapters.crawl_store.store import SiteRow, StateBook, create_book
from vedette.adapters.url_store.rows import create
from vedette.engine.messages import Place
from vedette.engine.ports import HostRow, PageRow
from vedette.errors import StoreCorrupt
from vedette.fetch.robots.state import UNKNOWN
from vedette.model import Site, partition_of

ROW = PageRow(
    *(7, 0, 200, "page", NOW_S, NOW_S, "Grüße", "text/html", '"e"', "", "d", "sha1:D", "", 10),
    place=Place("vedette-w0-00000.warc.gz", 300, 400),
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
    place=st.none() | st.builds(Place, TEXTS, st.integers(0, 2**40), st.integers(0, 2**40)),
    interval_s=st.floats(0, 4e9),
    due_s=st.floats(0, 4e9) | st.just(inf),
)


def new_book() -> tuple[sqlite3.Connection, StateBook]:
    """A book that is empty but for one host."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    create(db)
    create_book(db)
    db.execute("INSERT INTO host VALUES (0, ?, ?)", (partition_of(HOST), HOST))
    return db, StateBook(db)


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """A state with one host."""
    connection, _ = new_book()
    yield connection
    connection.close()


@pytest.fixture
def book(db: sqlite3.Connection) -> StateBook:
    """Its book."""
    return StateBook(db)


@given(rows=st.lists(ROWS, max_size=5), links=st.lists(LINKS, max_size=5))
def test_pages_are_found_as_they_were_kept(rows: list[PageRow], links: list[str]) -> None:
    """Of each URL the latest row, in every field, with its links."""
    connection, book = new_book()
    with closing(connection):
        for row in rows:
            book.keep_pages([(row, (links, ()))])
        latest = {row.id: row for row in rows}
        assert book.copies(list(latest)) == latest
        for id_, row in latest.items():
            assert book.page_of(id_) == row
            assert book.links_of(id_) == tuple(links)


def test_a_page_that_comes_after_all_is_no_longer_noted_as_failed(book: StateBook) -> None:
    """A note stands until something is fetched, and a later note takes its place."""
    book.note(7, "too slow", NOW_S)
    book.note(7, "status 500", NOW_S + 1)
    assert book.note_of(7) == ("status 500", NOW_S + 1)
    book.keep_pages([(ROW, ((), ()))])
    assert book.note_of(7) is None
    assert book.note_of(8) is None


def test_pages_fall_due_once_the_most_overdue_first(book: StateBook) -> None:
    """What is named as due is not named again until it was fetched; what is due later or never is not named."""
    for id_, due_s in ((1, 30.0), (2, 10.0), (3, 20.0), (4, 99.0), (5, inf)):
        book.keep_pages([(ROW._replace(id=id_, due_s=due_s), ((), ()))])
    assert [(one.id, one.host) for one in book.due(30.0, most=2)] == [(2, HOST), (3, HOST)]
    assert [one.id for one in book.due(30.0, most=2)] == [1]
    assert list(book.due(30.0, most=2)) == []
    book.keep_pages([(ROW._replace(id=2, due_s=29.0), ((), ()))])
    assert [one.id for one in book.due(30.0, most=2)] == [2]


def test_sites_keep_their_order_and_settings(book: StateBook) -> None:
    """A site that is set anew keeps its place and the time at which it was added; one that is dropped is gone."""
    other = Site("https://other.test/")
    book.keep_site(SiteRow(SITE, paused=False, added_s=1.0))
    book.keep_site(SiteRow(other, paused=False, added_s=2.0))
    changed = replace(SITE, delay_s=9.0, include=("/a", "/b"))
    book.keep_site(SiteRow(changed, paused=True, added_s=3.0))
    assert book.sites() == [SiteRow(changed, paused=True, added_s=1.0), SiteRow(other, paused=False, added_s=2.0)]
    book.drop_site(SITE.start)
    assert [row.site for row in book.sites()] == [other]


def test_the_latest_word_on_hosts_and_robots_counts(book: StateBook) -> None:
    """Pauses and robots.txt copies replace what was known before."""
    book.keep_hosts([HostRow(HOST, 5.0, 1, "status 503")])
    book.keep_hosts([HostRow(HOST, 9.0, 0, "")])
    book.keep_robots(ORIGIN, UNKNOWN)
    book.keep_robots(ORIGIN, ROBOTS)
    assert book.hosts() == [HostRow(HOST, 9.0, 0, "")]
    assert book.robots() == {ORIGIN: ROBOTS}


def test_archive_lengths_grow_and_the_youngest_time_stays(book: StateBook, db: sqlite3.Connection) -> None:
    """The last length counts; the newest record of a file is the newest that was ever told, whatever came after."""
    book.acknowledge_archive({"a": 10, "b": 5}, 100.0)
    book.acknowledge_archive({"a": 20}, 90.0)
    assert book.archives() == {"a": 20, "b": 5}
    assert db.execute("SELECT file, newest_s FROM archive ORDER BY file").fetchall() == [("a", 100.0), ("b", 100.0)]


@pytest.mark.parametrize("state", ["{", "[]", "{}", "7", '{"standing": "read", "last_good": null}'])
def test_a_robots_state_that_cannot_be_read(book: StateBook, db: sqlite3.Connection, state: str) -> None:
    """What is stored of a robots.txt is checked when it is read."""
    book.keep_robots(ORIGIN, ROBOTS)
    db.execute("UPDATE robots SET state = ?", (state,))
    with pytest.raises(StoreCorrupt, match="restore"):
        book.robots()


@pytest.mark.parametrize("settings", ["{", "[]", '{"colour": "red"}'])
def test_a_site_that_cannot_be_read(book: StateBook, db: sqlite3.Connection, settings: str) -> None:
    """So are the settings of a site, which is named."""
    book.keep_site(SiteRow(SITE, paused=False, added_s=1.0))
    db.execute("UPDATE site SET settings = ?", (settings,))
    with pytest.raises(StoreCorrupt, match=SITE.start):
        book.sites()


@pytest.mark.parametrize("blob", [b"", b"\x00", b"x\x9c"])
def test_links_that_cannot_be_unpacked(book: StateBook, db: sqlite3.Connection, blob: bytes) -> None:
    """And the links of a page."""
    book.keep_pages([(ROW, (("https://a.test/",), ()))])
    db.execute("UPDATE page SET links = ?", (blob,))
    with pytest.raises(StoreCorrupt):
        book.links_of(ROW.id)
