"""The console's Refresh page: its texts, too little data, and correct numbers."""

import csv
import io
import math
import re
from html import unescape
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.console.explain_facts import facts
from tests.web.small_operator import DAY_S, Console, SmallDesk, signed_in
from tests.web.small_search import NOW_S

from vedette.engine.scheduling.forecast import HALF_LIFE_S, Forecast
from vedette.engine.scheduling.refresh_policies import POLICIES
from vedette.web.commands.commands import SetMachine
from vedette.web.console.crawl.forecast import (
    BOTTOM,
    TOP,
    build_calibration_rows,
    describe_calibration,
    render_reliability_diagram,
)
from vedette.web.console.crawl.refresh import POLICY_DESCRIPTIONS, REFRESH_SERIES
from vedette.web.console.explain.decision_text import describe_refresh
from vedette.web.console.ports.monitoring import CalibrationBin, CrawlStatus, DuePage, RefreshStatus, RuntimeSettings
from vedette.web.console.ui.binned_counts import compute_increments, load_counts, sum_by_bin
from vedette.web.console.ui.scales import format_interval, format_percent
from vedette.web.console.ui.time_series import TIME_RANGES
from vedette.web.formatting import THIN

URL = "https://docs.example.org/lag"
TOLD = {
    "policy": "expected-gain",
    "reason": "expected-gain: because",
    "rate_d": 1 / 3,
    "rate_low_d": 1 / 9,
    "rate_high_d": 1.0,
    "chance": 0.4,
    "worth": 0.7,
    "price": 0.8,
    "refetched": True,
    "changed": True,
    "gain": 0.012,
    "views": None,
    "counts": "changed main text",
}
anything = st.floats() | st.integers(-(10**30), 10**30).map(float)


def text_of(console: Console, address: str = "/console/refresh") -> str:
    """Return a page with plain spaces."""
    answer = console.client.get(address)
    assert answer.status_code == 200
    return str(answer.text).replace(THIN, " ")


def rows_of(console: Console, query: str) -> list[list[str]]:
    """Parse a CSV file of the page."""
    return list(csv.reader(io.StringIO(console.client.get(f"/console/refresh?{query}").text)))


def tenths(*shares: tuple[float, float], refreshes: float = 1000.0) -> list[CalibrationBin]:
    """Return this many refreshes for each pair of forecast and outcome."""
    return [CalibrationBin(refreshes, refreshes * message, refreshes * found) for message, found in shares]


def test_the_page_shows_freshness_forecasts_and_due_pages() -> None:
    """Shows an estimate, a verdict on forecasts, and pages with explanations."""
    page = text_of(signed_in())
    assert "<strong>83%</strong>" in page
    assert "Forecasts are accurate" in page
    assert "changes about every 3 days (between 1 and 9)" in page
    assert "fixed: looked at every hour" in page
    assert page.index("estimated to be up to date") < page.index("Are forecasts accurate?") < page.index("Due next")


def test_before_there_is_anything_it_says_what_to_wait_for() -> None:
    """This includes no site, no estimate, and no page fetched twice; there are no empty charts."""
    console = signed_in()
    watch = console.watch
    watch.refresh_now, watch.crawl_now = RefreshStatus(), CrawlStatus(is_running=True)
    assert 'href="/console/sites/add"' in text_of(console)
    watch.crawl_now = CrawlStatus(sites=1)
    assert "vedette up" in text_of(console)
    watch.refresh_now = RefreshStatus(
        "expected-gain", current=1.0, judged=1, soon=(DuePage(URL, NOW_S + 90, "a rule"),)
    )
    page = text_of(console)
    assert "No pages have been refreshed yet" in page
    assert "<figure" not in page
    watch.refresh_now = RefreshStatus("nutch", refreshes=5.0, wasted=1.0)
    assert "nutch does not predict how likely" in text_of(console)


def test_every_chart_and_table_is_a_file() -> None:
    """Each CSV link leads to a file with a header, and those of the tables have rows."""
    console = signed_in()
    hours = [NOW_S - 3600 * back for back in range(30, -1, -1)]
    names = ["refreshes", "wasted_share", "price", "checked_in_time", "current_share", "change_found"]
    names.append("change_expected")
    console.watch.series = {name: [(at_s, 0.5) for at_s in hours] for name in names}
    console.watch.won = [(at_s, 0.001) for at_s in hours]
    links = [unescape(link) for link in re.findall(r'class="csv" href="([^"]+)"', text_of(console))]
    assert len(links) == 7 + 2
    for link in links:
        found = list(csv.reader(io.StringIO(console.client.get(link).text)))
        assert len({len(row) for row in found}) == 1
        assert len(found) > 2
    assert len(rows_of(console, "csv=calibration")) == 1 + 9
    assert [row[0] for row in rows_of(console, "csv=soon&soon-sort=-worth")][1] == URL


def test_refreshes_are_counted_by_the_hour() -> None:
    """The coordinator's sums decay, but the drawn counts do not; wasted ones are included."""
    console, forecast, hours = signed_in(), Forecast(at_s=NOW_S - 2 * DAY_S), range(48, -1, -1)
    sums, shares = [], []
    for back in hours:
        at_s = NOW_S - 3600 * back
        forecast = forecast.observe(None, np.array([True] * 4 + [False] * 6), at_s)
        sums.append((at_s, forecast.refreshes))
        shares.append((at_s, forecast.wasted_share or 0.0))
    console.watch.series = {"refreshes": sums, "wasted_share": shares}
    counts = load_counts(console.watch, TIME_RANGES[1], NOW_S, REFRESH_SERIES)
    assert counts.total == pytest.approx(24 * 10)
    assert [count for _, count in counts.all] == pytest.approx([10] * 24)
    assert [count for _, count in counts.wasted] == pytest.approx([6] * 24)


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(1.0, 1e5)), min_size=1, max_size=40))
def test_a_decaying_sum_can_be_reversed(steps: list[tuple[int, float]]) -> None:
    """The result is exact if it was sampled as often as something was added."""
    forecast, at_s, sums = Forecast(), 0.0, [(0.0, 0.0)]
    for count, wait_s in steps:
        at_s += wait_s
        forecast = forecast.observe(None, np.zeros(count, bool), at_s)
        sums.append((at_s, forecast.refreshes))
    found = [amount for _, amount in compute_increments(sums, HALF_LIFE_S)]
    assert found == pytest.approx([count for count, _ in steps], abs=1e-6)


@given(st.lists(st.tuples(anything, anything), max_size=20), anything, anything, st.sampled_from([300.0, 86_400.0]))
def test_stretches_are_few_and_finite(
    points: list[tuple[float, float]], started: float, now: float, step: float
) -> None:
    """For any input, they end now at the latest, and none starts before measuring began."""
    for at_s, _ in sum_by_bin(points, started, now, step):
        assert at_s <= now
        assert at_s - step >= started - 1e-6 * abs(now)


def test_every_measurement_is_in_exactly_one_period() -> None:
    """All measurements are in exactly one of the periods."""
    amounts = [(float(at_s), 1.0) for at_s in range(1, 3601)]
    assert sum(amount for _, amount in sum_by_bin(amounts, 0.0, 3600.0, 300.0)) == len(amounts)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (tenths((0.35, 0.36), (0.05, 0.05)), "are accurate"),
        (tenths((0.35, 0.6), refreshes=5.0), "Too early"),
        (tenths((0.35, 0.48)), "roughly right"),
        (tenths((0.35, 0.75)), "too late"),
        (tenths((0.75, 0.35)), "wasted"),
        (tenths((0.2, 0.5), (0.8, 0.5)), "The overall rate fits"),
        ([], "Too early"),
    ],
)
def test_the_page_judges_its_forecasts(report: list[CalibrationBin], words: str) -> None:
    """The verdict depends on how far they are off beyond chance, and says what follows."""
    assert words in describe_calibration(report)


def test_few_refreshes_do_not_make_good_forecasts_look_bad() -> None:
    """Correct forecasts are judged correct or too early to tell, nearly always, however few there are."""
    rng = np.random.default_rng(7)
    blamed = 0
    for _ in range(200):
        chance = rng.random(40)
        blamed += "accurate:" not in describe_calibration(build_report(chance, rng.random(40) < chance))
    assert blamed < 20


def build_report(chance: "np.ndarray[tuple[int], np.dtype[np.float64]]", changed: object) -> list[CalibrationBin]:
    """Return the coordinator's report about these refreshes."""
    forecast = Forecast().observe(chance, np.asarray(changed), 0.0)
    return list(map(CalibrationBin, forecast.count, forecast.expected, forecast.found))


@given(st.lists(st.tuples(anything, anything, anything).map(CalibrationBin._make), max_size=10))
def test_any_forecasts_can_be_drawn(report: list[CalibrationBin]) -> None:
    """Each dot is inside the drawing and on its whisker, and all numbers are finite."""
    describe_calibration(report)
    root = ET.fromstring(str(render_reliability_diagram(report)))  # noqa: S314 - our own text
    dots, whiskers = (
        list(root.iter("circle")),
        [each for each in root.iter("line") if each.attrib["class"] == "whisker"],
    )
    assert len(dots) == len(whiskers) == len(build_calibration_rows(report))
    for dot, whisker in zip(dots, whiskers, strict=True):
        assert 0 <= float(dot.attrib["cx"].rstrip("%")) <= 100
        assert TOP <= float(dot.attrib["cy"]) <= BOTTOM
        high, low = (float(whisker.attrib[end]) for end in ("y2", "y1"))
        assert high - 0.11 <= float(dot.attrib["cy"]) <= low + 0.11


@given(rate=anything, low=st.none() | anything, high=st.none() | anything, share=st.none() | anything)
def test_any_rate_and_share_has_a_text(rate: float, low: float | None, high: float | None, share: float) -> None:
    """The text is short, and all numbers are finite."""
    for words in (format_interval(rate, low, high), format_percent(share)):
        assert len(words) < 120
        assert "nan" not in words
        assert "inf" not in words


@given(st.floats(0.5, 3000.0))
def test_the_interval_of_a_rate_has_the_unit_of_its_mean(days: float) -> None:
    """The shorter time comes first."""
    words = format_interval(1 / days, 1 / (2 * days), 2 / days).replace(THIN, "").replace("about every", "")
    shortest, longest = (float(word.strip("()")) for word in words.partition("between ")[2].split(" and "))
    assert math.isclose(longest, 4 * shortest, rel_tol=0.25)


def test_explain_shows_when_a_page_is_refetched() -> None:
    """Shows how often it changes, whether it has, the worth of a fetch, when it is due, and the last gain."""
    desk = SmallDesk()
    desk.told = {name: value for name, value in facts(URL, refresh=TOLD).items() if name != "url"}
    page = text_of(signed_in(desk), f"/console/explain?url={URL}")
    for words in (
        "about every 3 days (between 1 and 9)",
        "40% by now",
        "0.7 now; fetched when it reaches the price, 0.8",
        "in 2 h",
        "found a change; it gained 0.012 in search quality",
        "changed main text",
    ):
        assert words in page


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"refetched": False, "changed": None}, "was the first"),
        ({"changed": False}, "found nothing new"),
        ({"gain": None}, "not measured yet"),
        ({"worth": 0.9}, "above the price"),
        ({"price": None}, "no price yet"),
    ],
)
def test_unknown_values_are_shown_as_unknown(changed: dict[str, object], words: str) -> None:
    """Nothing is invented for a page that was fetched once, or whose gain is not measured."""
    assert any(words in fact.words for fact in describe_refresh({**TOLD, **changed}))


def test_a_page_of_a_fixed_rule_has_no_such_facts() -> None:
    """A policy that provides few facts leaves out the rest."""
    assert list(describe_refresh(None)) == []
    silent = {**TOLD, "rate_d": None, "chance": None, "worth": None, "counts": None}
    assert [fact.name for fact in describe_refresh(silent)] == ["Last fetch"]


def test_policy_and_budget_are_set_on_the_page() -> None:
    """The form shows current values and explains each policy; only changes are sent, and can be reverted."""
    console = signed_in()
    page = text_of(console)
    assert all(f'value="{name}"' in page for name in POLICIES)
    assert 'value="expected-gain" checked' in page
    assert "to the configuration file" not in page
    answer = console.post("/console/refresh/set", policy="nutch", budget="0")
    assert answer.status_code == 303
    assert console.operator.orders[-1] == SetMachine({"refresh.policy": "nutch"})
    console.watch.machine_now = RuntimeSettings("nutch", "0", ("refresh.policy",))
    assert "Reset refresh.policy to the configuration file" in text_of(console)
    console.post("/console/refresh/set", configured="policy")
    assert console.operator.orders[-1] == SetMachine({"refresh.policy": None})


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"policy": "expected-gain", "budget": "a lot"}, "budget"),
        ({"policy": "<script>", "budget": "0"}, "policy"),
        ({"policy": "expected-gain", "budget": "0"}, None),
        ({}, None),
    ],
)
def test_wrong_settings_are_reported_next_to_their_field(form: dict[str, str], field: str | None) -> None:
    """No command is sent, the input stays, and the error is next to its field."""
    console = signed_in()
    before = list(console.operator.orders)
    answer = console.post("/console/refresh/set", **form)
    assert answer.status_code == 422
    assert console.operator.orders == before
    assert (f'id="{field}-wrong"' if field else "Nothing to save") in answer.text
    assert "<script>" not in answer.text.replace("<script src", "")
    assert 'value="a lot"' in answer.text or field != "budget"


def test_every_policy_that_may_run_has_its_sentence() -> None:
    """The console has the same policies as the configuration."""
    assert {*POLICY_DESCRIPTIONS} == {*POLICIES}
