"""The console's page on discovery: how soon new pages are found, by which sources, and wasted polls."""

import csv
import io
import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st
from tests.web.small_operator import Console, signed_in
from tests.web.small_search import NOW_S

from vedette.config.policy_names import DISCOVERY_POLICIES
from vedette.web.commands.commands import SetMachine
from vedette.web.console.crawl.discovery import compute_delays, compute_medians, count_by_delay, summarize_delays
from vedette.web.console.ports.monitoring import CrawlStatus, DiscoveryReport, FoundPage, RuntimeSettings, SourceLine
from vedette.web.formatting import THIN

HERE = "/console/discovery"
times = st.floats(0.0, 4e9)
found_pages = st.lists(st.builds(FoundPage, times, st.none() | times), max_size=30)


def text_of(console: Console, address: str = HERE) -> str:
    """Return a page with plain spaces."""
    answer = console.client.get(address)
    assert answer.status_code == 200
    return str(answer.text).replace(THIN, " ")


def test_the_page_begins_with_the_middle_delay_and_ends_with_the_sources() -> None:
    """Three publication dates are known and one is not, as shown; each source has a rate, polls and a reason."""
    page = text_of(signed_in())
    assert "<strong>5 min</strong>" in page
    assert "3 of 4 new pages state their publication time; 1 has no date." in page
    assert "(6 to 24)" in page
    assert "accrual: because" in page
    assert page.index("from publication to discovery") < page.index("Discovery delay") < page.index('id="sources"')
    assert f'href="{HERE}"' in text_of(signed_in(), "/console/")


def test_before_there_is_anything_it_says_what_to_wait_for() -> None:
    """This includes no site, no source, and no page with a date; there are no empty charts."""
    console = signed_in()
    watch = console.watch
    watch.discovery_now, watch.crawl_now = DiscoveryReport(), CrawlStatus(is_running=True)
    assert 'href="/console/sites/add"' in text_of(console)
    watch.crawl_now = CrawlStatus(sites=1)
    page = text_of(console)
    assert "vedette up" in page
    assert "No sources yet" in page
    assert "<figure" not in page
    watch.discovery_now = DiscoveryReport((FoundPage(NOW_S - 60),))
    assert "The discovery delay is unknown" in text_of(console)


def test_the_policy_is_set_on_the_page() -> None:
    """Every live policy is offered, the current one is selected, and changes can be reverted."""
    console = signed_in()
    console.watch.machine_now = RuntimeSettings(discovery="accrual")
    page = text_of(console)
    assert all(f'value="{name}"' in page for name in DISCOVERY_POLICIES)
    assert (
        page.index('value="round-robin"') < page.index("<summary>Research</summary>") < page.index('value="research:')
    )
    assert 'value="accrual" checked' in page
    assert console.post("/console/discovery/set", policy="research:pham").status_code == 303
    assert console.operator.orders[-1] == SetMachine({"crawl.discovery_policy": "research:pham"})
    console.watch.machine_now = RuntimeSettings(chosen=("crawl.discovery_policy",), discovery="research:pham")
    assert "<details open>" in text_of(console)
    console.post("/console/discovery/set", configured="policy")
    assert console.operator.orders[-1] == SetMachine({"crawl.discovery_policy": None})
    ordered = list(console.operator.orders)
    for policy, problem in (("of tomorrow", 'id="policy-wrong"'), ("research:pham", "Nothing to save")):
        answer = console.post("/console/discovery/set", policy=policy)
        assert (answer.status_code, problem in answer.text) == (422, True)
    assert console.operator.orders == ordered


def test_every_chart_and_table_is_a_file() -> None:
    """Each CSV link leads to a file with header and rows."""
    console = signed_in()
    hours = [NOW_S - 3600 * back for back in range(30, -1, -1)]
    console.watch.series = {"looks": [(at_s, 9.0) for at_s in hours]}
    console.watch.series["looks_wasted_share"] = [(at_s, 0.5) for at_s in hours]
    links = [unescape(link) for link in re.findall(r'class="csv" href="([^"]+)"', text_of(console))]
    names = [re.search(r"csv=(\w+)|name=(\w+)", link) for link in links]
    assert [name and (name[1] or name[2]) for name in names] == [*("delays", "looks", "births", "sources")]
    for link in links:
        found = list(csv.reader(io.StringIO(console.client.get(link).text)))
        assert len({len(row) for row in found}) == 1
        assert len(found) > 1


def test_sources_can_be_sorted_and_are_escaped() -> None:
    """Sorted by wasted polls, the quiet source comes first; markup in a URL is escaped."""
    console = signed_in()
    first = console.client.get(f"{HERE}?csv=sources&sources-sort=-wasted").text.splitlines()[1]
    assert first.startswith("https://docs.example.org/,")
    nasty = SourceLine("https://x.test/<script>alert(1)</script>", 1e300, 0.0, 1e308, 0.0, 1, 1, 0, 1e300, "<b>")
    console.watch.discovery_now = DiscoveryReport((), (nasty,), 1.0, 1.0, 0.0)
    page = text_of(console)
    assert "<script>alert" not in page
    assert "<b>" not in page


@given(found_pages)
def test_every_page_is_counted_once(pages: list[FoundPage]) -> None:
    """Pages are counted by delay or as unknown, and the quartiles enclose the median."""
    assert sum(count for _, count in count_by_delay(pages)) == len(pages)
    spread = summarize_delays(pages)
    assert spread.known + spread.by_day + spread.undated == len(pages)
    if spread.median_s is not None:
        assert (spread.low_s or 0.0) <= spread.median_s <= (spread.high_s or 0.0)


@given(found_pages)
def test_medians_over_time_lie_among_the_delays(pages: list[FoundPage]) -> None:
    """They are in order, within the time range, and between the shortest and longest delay."""
    points, delays = compute_medians(pages, 0.0, 4e9, 86_400.0), compute_delays(pages)
    assert [at_s for at_s, _ in points] == sorted(at_s for at_s, _ in points)
    assert all(delays[0] <= delay <= delays[-1] for _, delay in points)
