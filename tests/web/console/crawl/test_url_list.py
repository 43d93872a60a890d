"""From a count in the console to the rows behind it."""

import csv
import html
import io
import re

import pytest
from tests.web.small_operator import Console, SmallDesk, signed_in
from tests.web.small_search import NOW_S

from vedette.adapters.crawl_store.url_list import ListedUrl, UrlFilter
from vedette.model import Site
from vedette.web.commands.commands import RetryFailed
from vedette.web.console.ports.monitoring import CrawlStatus

START = "https://docs.example.org/"
EVIL = 'https://docs.example.org/"><script>alert(1)</script>'


def row(id_: int, url: str = "", status: int | None = 200, why: str = "") -> ListedUrl:
    """Return a URL with this number."""
    fetched_s = NOW_S - 60 if status else None
    return ListedUrl(
        id_, url or f"{START}{id_}", status, "A title", fetched_s, NOW_S + 600, why, NOW_S if why else None
    )


@pytest.fixture
def desk() -> SmallDesk:
    """A site with more URLs than one page shows, one of them hostile."""
    desk = SmallDesk(Site(START))
    desk.listed = [row(1, EVIL, None, "=cmd|' /C calc'!A0"), *(row(id_) for id_ in range(2, 121))]
    return desk


@pytest.fixture
def console(desk: SmallDesk) -> Console:
    """A console with a signed-in operator."""
    return signed_in(desk)


def links(page: str) -> list[str]:
    """Return the links from a page to other lists."""
    return [html.unescape(each) for each in re.findall(r'href="(/console/pages[^"]*)"', page)]


def test_counts_of_sites_lead_to_their_rows(console: Console, desk: SmallDesk) -> None:
    """The number of pages leads to the pages, and the number of known URLs to all URLs."""
    kept, known = links(console.client.get("/console/sites").text)
    assert all(console.client.get(each).status_code == 200 for each in (kept, known))
    assert desk.asked == [UrlFilter(Site(START), "kept"), UrlFilter(Site(START))]


def test_counts_of_errors_lead_to_their_rows(console: Console, desk: SmallDesk) -> None:
    """Each count leads to the URLs with its reason."""
    refused, failed = "disallowed by robots.txt", "too slow"
    console.watch.crawl_now = CrawlStatus(statuses={"200": 9, "404": 44}, failures={failed: 2}, refusals={refused: 3})
    for each in links(console.client.get("/console/queue").text):
        assert console.client.get(each).status_code == 200
    assert desk.asked == [
        UrlFilter(None, "errors", "404"),
        UrlFilter(None, "failed", failed),
        UrlFilter(None, "refused", refused),
    ]


def test_pages_follow_one_another_to_the_end(console: Console) -> None:
    """Every row is shown once, with a link to everything known about it."""
    seen: list[str] = []
    address = "/console/pages"
    while address:
        text = console.client.get(address).text
        seen += re.findall(r'href="/console/explain\?url=([^"]+)"', text)
        more = re.search(r'href="([^"]+)" rel="next"', text)
        address = html.unescape(more[1]) if more else ""
    assert len(seen) == len(set(seen)) == 120


def test_urls_from_strangers_are_escaped(console: Console) -> None:
    """They are escaped in the page and in the file."""
    assert "<script>alert" not in console.client.get("/console/pages").text
    rows = list(csv.reader(io.StringIO(console.client.get("/console/pages?csv=1").text)))
    assert len(rows) == 121
    assert rows[1][5].startswith("'=")


@pytest.mark.parametrize(
    "query",
    ["what=bogus", "after=-1", "after=x", f"after={'9' * 40}", "why=404", "part=%00", f"part={'x' * 9000}", "csv=2"],
)
def test_an_odd_address_is_answered(console: Console, query: str) -> None:
    """Invalid parameters are ignored."""
    assert console.client.get(f"/console/pages?{query}").status_code == 200


def test_a_removed_site_is_reported(console: Console) -> None:
    """It may have been removed since."""
    assert console.client.get("/console/pages?site=https://gone.example/").status_code == 404


def test_an_empty_list_has_a_text() -> None:
    """This is the state before the first page."""
    assert "No matching URLs" in signed_in().client.get("/console/pages").text


def test_failed_urls_can_be_retried_with_one_click(console: Console) -> None:
    """The button acts on the list that is shown: its site and its reason."""
    page = console.client.get(f"/console/pages?what=failed&why=too+slow&site={START}").text
    assert 'action="/console/pages/retry"' in page
    assert 'action="/console/pages/retry"' not in console.client.get("/console/pages").text
    assert console.post("/console/pages/retry", site=START, why="too slow").status_code == 303
    assert console.operator.orders[-1] == RetryFailed(START, "too slow")
