"""How the fetch budget was spent: the console page, the API and the metrics show the same numbers."""

import csv
import io
import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.web.small_operator import Console, SmallDesk, SmallOperator, SmallWatch, signed_in
from tests.web.small_search import NOW_S, made_key, served

from vedette.config import Rate, Serve
from vedette.web.console.explain.decision_text import describe_budget
from vedette.web.console.ports.monitoring import BudgetReport, CrawlStatus, DeferredLine, SpendingLine
from vedette.web.console.routes import ConsoleServices
from vedette.web.formatting import THIN

HERE = "/console/budget"
ADMIN, ADMIN_KEY = made_key("ops", "admin")
READER, READER_KEY = made_key("ann", "search")
FIRST = SpendingLine("first", 300.0, 0.75, 3.0, 6e6, 90.0, 290.0, 40.0, 200.0, 1.5)
REFRESH = SpendingLine("refresh", 100.0, 0.25, 1.0, 2e6, 30.0, 40.0, 2.0)
SITE = FIRST._replace(name="https://docs.example.org/", part=0.2)
HELD = DeferredLine("https://docs.example.org/tags/a", 270.0, 410.0)
TOLD = BudgetReport(2.0, "2/s", 410.0, NOW_S - 40_000, (FIRST, REFRESH), (SITE,), (FIRST, REFRESH), 7, (HELD,))


def get_page(report: BudgetReport, **series: float) -> tuple[Console, str]:
    """Return the page with plain spaces."""
    console = signed_in()
    console.watch.budget_now = report
    console.watch.series = {name: [(NOW_S - 60, value), (NOW_S, value)] for name, value in series.items()}
    answer = console.client.get(HERE)
    assert answer.status_code == 200
    return console, str(answer.text).replace(THIN, " ")


def test_the_page_shows_spending_price_and_gain() -> None:
    """Shows gain per fetch by purpose and site; if nothing was measured, it says so instead of zero."""
    _, page = get_page(TOLD, budget_spent_per_s=1.9, budget_per_s=2.0)
    assert "<strong>95%</strong> of the fetch budget was spent in the last day" in page
    headings = ("How the fetch budget was spent", "Budget by site", "Not worth the price</h2>")
    assert [page.index(each) for each in headings] == sorted(map(page.index, headings))
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', page, re.DOTALL)
    kinds = {name: re.sub(r"<.*?>|\s+", " ", cells) for name, cells in rows}
    assert "0.005" in kinds["first fetches"]
    assert "not measured" in kinds["refreshes"]
    assert "7 new URLs were considered in the last hour" in page
    assert f"{HELD.url}</bdi>" in page
    assert f'href="{HERE}"' in str(signed_in().client.get("/console/").text)


def test_without_a_budget_the_page_explains_how_to_set_one() -> None:
    """Without a site it links to the form; with one it shows the fetches, but no price."""
    console, page = get_page(TOLD._replace(per_s=None, price=None, held_urls=0, held=()))
    assert "No fetch budget is set" in page
    assert 'href="/console/refresh#settings"' in page
    assert "first fetches" in page
    assert "Price of a fetch" not in page
    console.watch.budget_now, console.watch.crawl_now = BudgetReport(), CrawlStatus(is_running=True)
    empty = str(console.client.get(HERE).text)
    assert 'href="/console/sites/add"' in empty
    assert "<table" not in empty


def test_every_table_is_a_file() -> None:
    """Each CSV link leads to a file with header and rows, without formulas."""
    console, page = get_page(TOLD._replace(held=(HELD._replace(url="=1+1"),)))
    files = [unescape(address) for address in re.findall(rf'class="csv" href="({HERE}[^"]*)"', page)]
    assert len(files) == 3
    for address in files:
        head, *rows = csv.reader(io.StringIO(console.client.get(address).text))
        assert rows
        assert all(len(row) == len(head) for row in rows)
        assert not any(cell.startswith("=") for row in rows for cell in row)


amounts = st.floats(0.0, 1e12)
lines = st.builds(SpendingLine, st.sampled_from(["first", "look", "https://a.test/<b>"]), *[amounts] * 8)
held_lines = st.builds(DeferredLine, st.text(max_size=30), st.floats(0.0, 1e30), st.floats(0.0, 1e30))
tolds = st.builds(
    BudgetReport,
    st.none() | st.floats(1e-6, 1e6),
    st.just("2/s"),
    st.none() | st.floats(0.0, 1e30),
    st.just(NOW_S - 9_000),
    *[st.lists(lines, max_size=3).map(tuple)] * 3,
    st.integers(0, 10**6),
    st.lists(held_lines, max_size=3).map(tuple),
)


@settings(max_examples=40, deadline=None)
@given(tolds)
def test_the_page_renders_for_any_spending(report: BudgetReport) -> None:
    """This is true for any amounts and names; names are escaped."""
    _, page = get_page(report)
    assert "<b>" not in page


@pytest.mark.parametrize(("key", "status"), [(ADMIN, 200), (READER, 403), ("", 401)])
def test_the_api_has_the_same_numbers_for_operators(key: str, status: int) -> None:
    """No one else can; unmeasured values are null, and the number of days is limited."""
    watch = SmallWatch()
    watch.budget_now = TOLD
    parts = ConsoleServices(SmallOperator(), watch, SmallDesk())
    with served(Serve(rate=Rate(0, 1.0)), lambda: (ADMIN_KEY, READER_KEY), console=parts) as (ask, _):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        answer = ask("/api/v1/budget", headers)
        assert answer.status == status
        if status == 200:
            report = answer.json
            assert report["budget_per_s"] == 2.0
            assert [(line["kind"], line["gain_per_fetch"]) for line in report["kinds"]] == [
                ("first", 0.005),
                ("refresh", None),
            ]
            assert report["sites"][0]["part"] == 0.2
            assert report["not_worth_the_price"] == {"urls": 7, "best": [HELD._asdict()]}
            assert ask("/api/v1/budget?days=32", headers).status == 400


def test_metrics_count_fetches_seconds_bytes_and_gains_of_all_time() -> None:
    """They are counters, by purpose."""
    console = signed_in()
    console.watch.budget_now = TOLD
    metrics = str(console.client.get("/metrics").text)
    assert 'vedette_budget_fetches_total{kind="first"} 300.0' in metrics
    assert 'vedette_budget_seconds_total{kind="refresh"} 30.0' in metrics
    assert 'vedette_budget_gain_total{kind="first"} 1.5' in metrics


def test_explain_shows_the_purpose_of_the_next_fetch() -> None:
    """It shows the purpose and the site's share of the budget; before any fetch, there is none."""
    report = {"kind": "first", "cost": None, "site_today": 0, "all_today": 0, "site_share": None}
    assert [fact.words for fact in describe_budget(report)] == ["a first fetch", "0 of 0 fetches today"]
    kinds = [next(describe_budget(report | {"kind": kind, "cost": 1.5})).words for kind in ("refresh", "look", "gone")]
    assert len(set(kinds)) == 3
    usual, busy = (
        list(describe_budget(report | {"cost": 3.0, "is_busy": is_busy}))[1].words for is_busy in (False, True)
    )
    assert busy == f"{usual}, in a busy hour of its site"
    assert list(describe_budget(None)) == []
