"""Unlisted hosts: links are counted, dismissed hosts are not suggested again, and the table stays bounded."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.crawl_store import unlisted_host_store as stranger_book
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.adapters.crawl_store.store import CrawlStore, create_tables
from vedette.adapters.crawl_store.unlisted_host_store import build_host_filter
from vedette.engine.ports import UnlistedLink
from vedette.model import Site, partition_of

HOSTS = st.sampled_from([f"h{number}.test" for number in range(8)])
PAGES = st.integers(0, 20).map(lambda number: f"https://p{number}.test/{number}")
LINKS = st.lists(st.builds(UnlistedLink, HOSTS, PAGES, st.floats(0.0, 4e9)), max_size=60)


def open_store() -> tuple[sqlite3.Connection, CrawlStore]:
    """An empty store in memory."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(db)
    return db, CrawlStore(db)


@pytest.fixture
def book() -> Iterator[CrawlStore]:
    """An empty store."""
    db, book = open_store()
    with closing(db):
        yield book


def link(host: str, page: str = "https://a.test/", at_s: float = 1.0) -> UnlistedLink:
    """A page that links to a host."""
    return UnlistedLink(host, page, at_s)


@given(st.lists(LINKS, max_size=4))
def test_links_are_counted_by_host(batches: list[list[UnlistedLink]]) -> None:
    """However they are batched, pages, times and order are those of all links together."""
    db, book = open_store()
    with closing(db):
        for batch in batches:
            book.add_unlisted_links(batch)
        rows = book.list_unlisted_hosts(100)
    everything = [one for batch in batches for one in batch]
    counts = Counter(one.host for one in everything)
    assert {row.host: row.pages for row in rows} == counts
    assert [row.pages for row in rows] == sorted(counts.values(), reverse=True)
    for row in rows:
        own = [one for one in everything if one.host == row.host]
        assert (row.first_s, row.last_s, row.example) == (own[0].at_s, max(one.at_s for one in own), own[0].page)
        assert 1 <= row.domains <= len({one.page for one in own})


def test_every_row_has_its_partition(book: CrawlStore) -> None:
    """A cluster can divide these rows like all other rows of a host."""
    book.add_unlisted_links([link("www.x.test")])
    assert book._db.execute("SELECT partition FROM stranger").fetchall() == [(partition_of("www.x.test"),)]


def test_the_most_linked_are_offered_up_to_a_number(book: CrawlStore) -> None:
    """Excluded hosts don't displace others."""
    book.add_unlisted_links([link(f"h{number}.test") for number in range(5) for _ in range(number + 1)])
    rows = book.list_unlisted_hosts(2, lambda host: host == "h3.test")
    assert [row.host for row in rows] == ["h4.test", "h2.test"]
    assert book.list_unlisted_hosts(0) == []


def test_what_is_dismissed_is_not_offered_again(book: CrawlStore) -> None:
    """This is true immediately, after more pages link to it, and if it was dismissed before any did."""
    book.add_unlisted_links([link("x.test")])
    assert book.dismiss_unlisted_host("x.test")
    assert not book.dismiss_unlisted_host("x.test")
    assert book.dismiss_unlisted_host("y.test")
    book.add_unlisted_links([link("x.test"), link("y.test")])
    assert book.list_unlisted_hosts(10) == []


def test_a_dismissal_can_be_taken_back(book: CrawlStore) -> None:
    """Then all linking pages count, including those in the meantime."""
    book.dismiss_unlisted_host("x.test")
    book.add_unlisted_links([link("x.test", at_s=5.0), link("x.test", "https://b.test/", 6.0)])
    assert book.offer_unlisted_host("x.test")
    assert not book.offer_unlisted_host("x.test")
    (row,) = book.list_unlisted_hosts(10)
    assert (row.pages, row.first_s, row.last_s, row.example) == (2, 5.0, 6.0, "https://a.test/")


def test_what_is_dropped_is_forgotten(book: CrawlStore) -> None:
    """It starts from zero when it is linked again."""
    book.add_unlisted_links([link("x.test"), link("x.test"), link("y.test")])
    book.delete_unlisted_hosts(["x.test", "nobody.test"])
    book.add_unlisted_links([link("x.test")])
    assert {row.host: row.pages for row in book.list_unlisted_hosts(10)} == {"x.test": 1, "y.test": 1}


def test_the_table_is_bounded(book: CrawlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is full, the least linked hosts are dropped, but not dismissed ones."""
    monkeypatch.setattr(stranger_book, "MAX_ROWS", 100)
    book.add_unlisted_links([link("famous.test") for _ in range(3)])
    book.dismiss_unlisted_host("dismissed.test")
    for number in range(1000):
        book.add_unlisted_links([link(f"h{number}.test", at_s=float(number))])
        (count,) = book._db.execute("SELECT count(*) FROM stranger").fetchone()
        assert count <= 100
    rows = {row.host for row in book.list_unlisted_hosts(1000)}
    assert {"famous.test", "h999.test"} <= rows
    assert not book.dismiss_unlisted_host("dismissed.test")


def test_sites_and_blocked_domains_are_left_out() -> None:
    """Hosts of any site, even of a part of it, and blocked domains are left out; other rules exclude nothing."""
    sites = [Site("https://a.test/docs/", scope="prefix"), Site("https://d.test/", scope="domain")]
    rules = [RuleRow("block", "", "b.test", 0.0), RuleRow("lower", "", "l.test", 0.0)]
    hosts = ["a.test", "www.a.test", "www.d.test", "b.test", "x.y.b.test", "bb.test", "l.test"]
    known = build_host_filter(sites, rules)
    assert [host for host in hosts if not known(host)] == ["www.a.test", "bb.test", "l.test"]
