"""The rows behind a count: as many as the count, each once, however they are paged."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.data_folders import NOW_S, opened

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.url_list import BATCH_URLS, URL_KINDS, ListedUrl, UrlFilter, UrlList, open_url_list
from vedette.model import Refusal, Site

DOCS = Site("https://docs.example.org/guide/", scope="prefix")
HOST = Site("https://docs.example.org/")
ALL = Site("https://example.org/", scope="domain")
STATUSES = (200, 301, 404, 410, None)
REASONS = ("too slow", f"{Refusal.ROBOTS}: Disallow: /x", f"{Refusal.TRAP}: too little", "answer too large")
# Of these, 3 is an error, and 6 only speaks of a script.
OBJECTIONS = {
    1: '[["thin", "4 words"], ["script", ""]]',
    3: '[["script", ""]]',
    6: '[["missing", "script"]]',
    11: '[["script", "800 words"]]',
}
NEED_SCRIPT = [1, 11]
_CONTENT = (
    "INSERT INTO content (id, grp, body_digest, text_print, main_print, sketch, links_print, parts, charset, language, "
    "description, canonical, marks, words, spam, objections, change) "
    "VALUES (?, ?, x'', x'', x'', x'', 0, x'', '', '', '', '', '', 0, 0, ?, '')"
)
_URL = "INSERT INTO url VALUES (?, 0, ?, ?, 1, 0, ?)"
_PAGE = (
    "INSERT INTO page (id, partition, host, status, kind, fetched_s, changed_s, title, content_type, etag, "
    "last_modified, digest, payload_digest, location, body_bytes, interval_s, due_s, links) "
    "VALUES (?, 0, ?, ?, 'page', ?, 0, 'A title', '', '', '', '', '', '', 0, 0, ?, x'')"
)


def urls() -> list[tuple[int, str, int | None, str]]:
    """Return host, URL, status and reason of each: three hosts, and more URLs than one batch."""
    rows = []
    for number in range(BATCH_URLS + 300):
        host = ("docs.example.org", "www.example.org", "elsewhere.example")[number % 3]
        status = STATUSES[number % 5]
        why = REASONS[number % 4] if status is None and number % 7 else ""
        rows.append((number % 3, f"https://{host}/{'guide/' if number % 2 else ''}{number}", status, why))
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with these URLs."""
    folder = tmp_path_factory.mktemp("urls")
    with opened(folder) as state:
        hosts = ("docs.example.org", "www.example.org", "elsewhere.example")
        state.db.executemany("INSERT INTO host VALUES (?, 0, ?)", enumerate(hosts))
        for id_, (host, url, status, why) in enumerate(urls(), 1):
            state.db.execute(_URL, (id_, host, url, NOW_S))
            if status is not None:
                state.db.execute(_PAGE, (id_, host, status, NOW_S, float("inf") if status == 410 else NOW_S))
            if why:
                state.db.execute("INSERT INTO note VALUES (?, ?, ?)", (id_, why, NOW_S))
        for id_, objections in OBJECTIONS.items():
            state.db.execute(_CONTENT, (id_, id_, objections))
    return folder


@pytest.fixture
def listing(folder: Path) -> Iterator[UrlList]:
    """Return the list of its URLs."""
    with open_url_list(folder) as listing:
        yield listing


def walked(listing: UrlList, which: UrlFilter, most: int) -> list[ListedUrl]:
    """Return all rows, page by page."""
    rows: list[ListedUrl] = []
    after: int | None = 0
    while after is not None:
        page = listing.read_page(which, after, most)
        assert len(page.rows) <= most
        rows += page.rows
        assert page.after is None or page.after > after
        after = page.after
    return rows


def test_each_url_is_of_one_kind_and_listed_once(folder: Path, listing: UrlList) -> None:
    """Together, the kinds contain all known URLs, in the order of discovery."""
    kinds = {kind: walked(listing, UrlFilter(kind=kind), 97) for kind in URL_KINDS}
    everything, scripted = kinds.pop("all"), kinds.pop("script")
    assert [row.url for row in everything] == [url for _, url, _, _ in urls()]
    assert sorted(row.id for rows in kinds.values() for row in rows) == [row.id for row in everything]
    assert [row.id for row in scripted] == NEED_SCRIPT, "these are among those that were kept"
    with open_state_reader(folder) as view:
        assert view.count_content().need_script == len(NEED_SCRIPT)
    assert {row.status for row in kinds["errors"]} == {404, 410}
    assert {row.why for row in kinds["failed"]} == {"too slow", "answer too large"}


def test_a_reason_narrows_them_down_to_its_count(listing: UrlList) -> None:
    """A status, a whole reason or the beginning of a refusal works; an unknown reason has no rows."""
    counts = Counter(str(status or "") or why.partition(":")[0] for _, _, status, why in urls())
    for kind, why in (("errors", "404"), ("failed", "too slow"), ("refused", str(Refusal.ROBOTS))):
        assert len(walked(listing, UrlFilter(kind=kind, why=why), 50)) == counts[why]  # type: ignore[arg-type]  # of KINDS
    for wrong in ("40", "404 OR 1", "' OR ''='", "%"):
        assert walked(listing, UrlFilter(kind="errors", why=wrong), 50) == []


@pytest.mark.parametrize("site", [DOCS, HOST, ALL])
def test_a_site_has_as_many_rows_as_its_counts_say(folder: Path, listing: UrlList, site: Site) -> None:
    """This is true for a folder, a host and a domain."""
    with open_state_reader(folder) as view:
        count = view.count_sites([site])[site.start]
    assert count.pages > 0
    assert len(walked(listing, UrlFilter(site), 500)) == count.known
    assert len(walked(listing, UrlFilter(site, "kept"), 500)) == count.pages


def test_a_part_of_the_url_is_taken_as_it_is_written(listing: UrlList) -> None:
    """Special characters have no meaning here."""
    assert {row.url for row in walked(listing, UrlFilter(part="/guide/77"), 50)} == {
        url for _, url, _, _ in urls() if "/guide/77" in url
    }
    assert walked(listing, UrlFilter(part="%"), 50) == []


def test_without_patience_each_look_still_goes_on(listing: UrlList) -> None:
    """Each request scans at least one batch, so that repeated requests reach the end."""
    page = listing.read_page(UrlFilter(kind="errors", why="999"), 0, 50, patience_s=-1.0)
    assert (page.rows, page.after, page.scanned) == ((), BATCH_URLS, BATCH_URLS)
    assert listing.read_page(UrlFilter(), 10**14, 50).rows == ()


def test_what_is_never_due_has_no_next_time(listing: UrlList) -> None:
    """A page shows nothing instead of forever."""
    assert {row.due_s for row in walked(listing, UrlFilter(kind="errors", why="410"), 500)} == {None}
