"""The console's overview pages with no data, some data, and hostile data."""

import asyncio
import csv
import html
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import StreamingResponse
from tests.web.small_operator import Console, SmallDesk, signed_in
from tests.web.small_search import NOW_S, SmallSearch

from vedette.adapters.crawl_store.reader import HeldCounts
from vedette.adapters.crawl_store.request_budget import ExceededLimit
from vedette.adapters.crawl_store.status_file import FailingProcess
from vedette.adapters.event_store.reader import QueryCount, Totals
from vedette.adapters.event_store.time_series import SERIES
from vedette.learn.workload import Drift, RisingQuery
from vedette.model import Site
from vedette.web.commands.commands import SetSite
from vedette.web.console.crawl.overview import find_warnings
from vedette.web.console.crawl.queue import LiveStreams
from vedette.web.console.ports.monitoring import (
    CalibrationBin,
    CrawlStatus,
    DuePage,
    HostLine,
    RefreshStatus,
    SearchStats,
)
from vedette.web.console.ui.tables import Column, Table
from vedette.web.console.ui.time_series import SERIES_TITLES
from vedette.web.ports import IndexOverview

PAGES = ("", "queue", "refresh", "searches", "storage")
HOSTILE = "<script>alert('x')</script>\u202e" + "W" * 200


@pytest.fixture(scope="module")
def console() -> Console:
    """A signed-in console with small numbers."""
    return signed_in()


def rows_of(answer_text: str) -> list[list[str]]:
    """Parse a CSV file."""
    return list(csv.reader(io.StringIO(answer_text)))


def test_a_console_without_sites_offers_the_first_step() -> None:
    """It offers the form for the first site, and shows no empty charts."""
    console = signed_in()
    console.watch.crawl_now = CrawlStatus(is_running=True)
    page = console.client.get("/console/").text
    assert 'href="/console/sites/add"' in page
    assert "<figure" not in page


def test_every_page_renders_without_numbers() -> None:
    """A new folder has none, and neither has a restarting coordinator."""
    console = signed_in()
    console.watch.crawl_now = CrawlStatus()
    console.watch.host_rows = ()
    console.watch.refresh_now = RefreshStatus()
    console.watch.asked = SearchStats(Totals(), (), (), (), Drift(0.0, is_notable=False, is_told=False))
    for page in PAGES:
        assert console.client.get(f"/console/{page}").status_code == 200
    assert "vedette up" in console.client.get("/console/queue").text


def test_text_from_strangers_is_escaped() -> None:
    """Hosts, reasons, queries and actions come from strangers."""
    console = signed_in()
    watch = console.watch
    watch.crawl_now = watch.crawl_now._replace(in_trouble={HOSTILE: HOSTILE}, waiting_why={HOSTILE: 1}, trouble=HOSTILE)
    watch.host_rows = (HostLine(HOSTILE, 1, HOSTILE, 1e300, 0, HOSTILE),)
    query = QueryCount(HOSTILE, HOSTILE, 10**12, 1, 1, 1, -1e300)
    watch.asked = watch.asked._replace(
        top=(query,), without_result=(query,), rising=(RisingQuery(HOSTILE, 1e300, 0.0),)
    )
    due = DuePage(HOSTILE, 1e300, HOSTILE, 1e300, -1.0, float("nan"), float("inf"), -1e300)
    watch.refresh_now = RefreshStatus(
        HOSTILE, 1e300, 1e-300, 1e300, (CalibrationBin(1e300, -1.0, float("nan")),) * 10, 1e9, 9, (due,)
    )
    watch.won = [(NOW_S - 1e6, 1e300), (NOW_S - 60, float("nan")), (NOW_S, -1.0)]
    watch.series = {name: [(NOW_S - at_s, 1e300 * (-1) ** at_s) for at_s in range(5)] for name in SERIES}
    for page in PAGES:
        answer = console.client.get(f"/console/{page}")
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text


def test_problems_have_advice() -> None:
    """Each problem has a sentence and advice; if all is well, nothing is shown."""
    assert find_warnings(CrawlStatus(is_running=True), "") == []
    crawl = CrawlStatus(
        in_trouble={f"host{number}": "503" for number in range(9)},
        trouble="the disk is full",
        unindexed=10**6,
        exceeded=(ExceededLimit("domain", "example.org", 1000, 5),),
    )
    found = find_warnings(crawl, "")
    assert len(found) == 5
    for trouble in found:
        assert trouble.what.endswith(".")
        assert trouble.do.endswith(".")
    assert find_warnings(CrawlStatus(is_running=True), "the index is being built")[0].what.endswith(
        "the index is being built."
    )
    untrusted = CrawlStatus(is_running=True, in_trouble={"wiki.test": "robots.txt: no trusted connection"})
    assert "crawl.ca_file" in find_warnings(untrusted, "")[0].do


def test_held_back_urls_are_counted_and_can_be_fetched() -> None:
    """Overview counts held-back URLs and likely real pages; the button overrules the judgment for that site."""
    start = "https://docs.example.org/"
    console = signed_in(SmallDesk(Site(start)))
    console.watch.crawl_now = console.watch.crawl_now._replace(held=(HeldCounts(start, 294, 254),))
    page = console.client.get("/console/").text
    assert "294, 254 probably real pages" in page
    assert "/console/sites/fetch-held" in page
    assert "Suggestions" in page  # they are fetched without a click
    console.watch.crawl_now = console.watch.crawl_now._replace(has_budget=True)
    assert "Needs attention" in console.client.get("/console/").text
    console.post("/console/sites/fetch-held", start=start)
    order = console.operator.orders[-1]
    assert isinstance(order, SetSite)
    assert order.changes == {"overrule": ("trap",)}


def test_every_number_over_time_has_a_title_and_a_file(console: Console) -> None:
    """Every series can be downloaded for the chosen time range; unknown names are rejected."""
    assert set(SERIES_TITLES) == set(SERIES)
    console.watch.series = {name: [(NOW_S - 7200, 1.0), (NOW_S - 60, 2.5)] for name in SERIES}
    for name in SERIES:
        assert len(rows_of(console.client.get(f"/console/series.csv?name={name}&over=day").text)) == 3
        assert len(rows_of(console.client.get(f"/console/series.csv?name={name}&over=hour").text)) == 2
    for wrong in ("name=../etc", "name=price&other=../etc"):
        assert console.client.get(f"/console/series.csv?{wrong}").status_code == 404


def test_metrics_have_the_latest_of_each_number(console: Console) -> None:
    """Each has a name and a description; numbers never measured are missing."""
    console.watch.series = {"coverage": [(NOW_S, 0.75)], "nobody's": [(NOW_S, 1.0)], "current_share": [(NOW_S, 0.5)]}
    text = console.client.get("/metrics").text
    assert "vedette_coverage 0.75" in text
    assert "vedette_current_share 0.5" in text
    assert "vedette_empty_share" not in text
    assert "nobody" not in text


def test_estimated_quality_is_the_first_number(console: Console) -> None:
    """It comes before the number of pages, names its basis, and never claims to be complete if it is not."""
    assert "search quality" not in console.client.get("/console/").text
    numbers = {"quality": 0.99971, "views_current_share": 0.92, "change_loss": 0.0317}
    console.watch.series = {name: [(NOW_S, value)] for name, value in numbers.items()}
    text = html.unescape(console.client.get("/console/").text)
    headline = re.search(r'<p class="big">(.*?)</p>', text, re.DOTALL)
    assert headline is not None
    assert "99.9%</strong> estimated search quality" in headline[1]
    assert "92% of views go to pages" in text
    assert "loses 3%" in text
    assert "Searchable pages" in text
    assert "vedette_quality 0.99971" in console.client.get("/metrics").text


def test_a_keeper_without_time_is_not_taken_for_none(console: Console) -> None:
    """A running crawl shows no start command, and unknown numbers are not shown as zero."""
    for busy, words in ((True, "these are the last known numbers"), (False, "vedette up")):
        console.watch.crawl_now = CrawlStatus(is_busy=busy, known=9, waiting=3)
        console.watch.host_rows = ()
        for page in ("/console/", "/console/queue"):
            text = html.unescape(console.client.get(page).text)
            assert words in text
            assert ('"vedette up"' in text or "<code>vedette up</code>" in text) is not busy
            assert "No hosts are waiting" not in text


def test_old_numbers_carry_their_age(console: Console) -> None:
    """A busy crawler's last numbers are shown with their age."""
    console.watch.crawl_now = CrawlStatus(is_running=True, is_busy=True, age_s=12.4, sites=1)
    for page in ("/console/", "/console/queue"):
        text = html.unescape(console.client.get(page).text).replace("\N{NARROW NO-BREAK SPACE}", " ")
        assert "The numbers are 12 s old" in text


def test_metrics_include_the_numbers_of_the_charts(console: Console) -> None:
    """The reason is a label; stored and searchable pages have different names."""
    console.watch.series = {"pages": [(NOW_S, 7.0)]}
    console.watch.crawl_now = CrawlStatus(
        is_running=True,
        waiting_why={"resting": 2},
        statuses={"200": 5, "404": 44},
        failures={"too slow": 3},
        refusals={"disallowed by robots.txt": 6},
        failing=(FailingProcess("indexer", 7, "no space"),),
        exceeded=(ExceededLimit("domain", "example.org", 1000, 5),),
    )
    text = console.client.get("/metrics").text
    for line in (
        "vedette_pages_kept 7.0",
        'vedette_hosts_waiting{why="resting"} 2.0',
        'vedette_answers{status="404"} 44.0',
        'vedette_fetches_failed{why="too slow"} 3.0',
        'vedette_process_failures{role="indexer"} 7.0',
        'vedette_requests_over_limit{name="example.org"} 5.0',
        'vedette_urls_refused{why="disallowed by robots.txt"} 6.0',
        'vedette_searches_left_out{why="its user agent names a program"} 3.0',
        'vedette_forecast_refreshes{chance="10-20"} 20.0',
        'vedette_forecast_found{chance="10-20"} 0.1',
    ):
        assert line in text.splitlines()


def test_reasons_that_servers_wrote_are_bounded_in_metrics(console: Console) -> None:
    """Many and long reasons are combined, and none breaks the format."""
    strange = {f'a "reason"\n{number}': 1 for number in range(5000)} | {"x" * 10_000: 9}
    console.watch.crawl_now = CrawlStatus(is_running=True, failures=strange)
    lines = [
        line for line in console.client.get("/metrics").text.splitlines() if line.startswith("vedette_fetches_fai")
    ]
    assert len(lines) < 50
    assert all(len(line) < 200 for line in lines)
    assert sum(float(line.rpartition(" ")[2]) for line in lines) == 5009


def test_the_search_is_asked_in_the_thread_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its database connection belongs to that thread."""
    loops = []

    def overview(_search: SmallSearch, _allowed: tuple[str, ...]) -> IndexOverview:
        loops.append(asyncio.get_running_loop())
        return IndexOverview(7)

    console = signed_in()
    monkeypatch.setattr(SmallSearch, "get_overview", overview)
    assert console.client.get("/console/").status_code == 200
    assert len(loops) == 1


def test_disabled_recording_is_explained() -> None:
    """It names the setting."""
    console = signed_in()
    assert "serve.keep_slates_days" not in console.client.get("/console/searches").text
    console.watch.is_kept = False
    assert "serve.keep_slates_days" in console.client.get("/console/searches").text


def test_tables_of_the_page_sort_and_filter_each_for_itself(console: Console) -> None:
    """Two tables on a page are independent, and each can be downloaded."""
    page = console.client.get("/console/searches?top-filter=nothing&empty-sort=query")
    assert "0 of 1 query" in page.text
    top = rows_of(console.client.get("/console/searches?csv=top").text)
    empty = rows_of(console.client.get("/console/searches?csv=empty").text)
    assert (top[1][0], empty[1][0]) == ("Lag", "lga")


def test_live_numbers_are_sent_as_events(console: Console) -> None:
    """The first event is sent immediately, with all numbers of the page."""
    places = console.client.get("/console/queue").text

    async def first() -> str:
        request = build_request("")
        request.scope["method"] = "GET"
        request.state.is_in = lambda: True
        answer = await LiveStreams(console.watch).stream(request)
        assert isinstance(answer, StreamingResponse)
        assert answer.media_type == "text/event-stream"
        return str(await anext(aiter(answer.body_iterator)))

    report = asyncio.run(first())
    assert report.startswith("data: ")
    assert report.endswith("\n\n")
    for name in json.loads(report.removeprefix("data: ")):
        assert f'data-live="{name}"' in places


NUMBERS: Table[tuple[str, float | None]] = Table(
    (Column("name", "Name", lambda row: row[0]), Column("size", "Size", lambda row: row[1], is_number=True)),
    default_sort="-size",
    page_size=3,
)
some_rows = st.lists(st.tuples(st.text(max_size=5), st.none() | st.floats()), max_size=12)


def build_request(query: str) -> Request:
    """Return a request for the table's page."""
    return Request(
        {"type": "http", "path": "/console/x", "query_string": query.encode("utf-8", "replace"), "headers": []}
    )


@given(rows=some_rows, sort=st.sampled_from(["name", "-name", "size", "-size", "none", ""]), page=st.text(max_size=4))
def test_a_table_shows_each_row_once(rows: list[tuple[str, float | None]], sort: str, page: str) -> None:
    """Over all pages and in any order; an invalid page number is not an error."""
    NUMBERS.paginate(build_request(f"page={page}"), rows)
    shown: list[tuple[str, float | None]] = []
    for number in range(1, 6):
        seen = NUMBERS.paginate(build_request(f"sort={sort}&page={number}"), rows)
        if seen.first == 3 * (number - 1):
            shown += seen.rows
    assert sorted(map(repr, shown)) == sorted(map(repr, rows))


def test_a_click_on_a_head_sorts_and_a_second_turns_it_round() -> None:
    """Numbers start with the largest, words with the first; other parameters stay, except the page."""
    seen = NUMBERS.paginate(build_request("filter=a&page=2&done=4"), [("a", float(n)) for n in range(9)])
    assert [head.address for head in seen.heads] == [
        "/console/x?filter=a&sort=name",
        "/console/x?filter=a&sort=size",
    ]
    turned = NUMBERS.paginate(build_request("sort=name"), [("a", 1.0)])
    assert turned.heads[0].address.endswith("sort=-name")
    assert turned.heads[1].address.endswith("sort=-size")


@given(text=st.text(max_size=8))
def test_no_cell_of_a_file_is_a_formula(text: str) -> None:
    """A spreadsheet would run it."""
    answer = NUMBERS.csv_response(build_request(""), [(text, -1.5)], "numbers")
    cell = bytes(answer.body).decode().split("\r\n", 1)[1].lstrip('"')
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_a_reader_in_the_console_keeps_nothing_of_the_search(console: Console) -> None:
    """The session cookie is not sent to the search pages."""
    assert console.client.get("/").status_code == 200
    assert "Sign out" not in console.client.get("/").text
