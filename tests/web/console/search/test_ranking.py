"""The console's Ranking page: its texts, intervals, and an active guard."""

import math

import pytest
from tests.web.small_operator import Console, signed_in
from tests.web.small_search import NOW_S, SmallSearch

from vedette.learn.clicks.off_policy import (
    LEARNED_ONLY,
    NOT_ENOUGH_DATA,
    RELEVANCE_ONLY,
    WITH_TRIALS,
    Estimate,
    OrderEstimate,
)
from vedette.learn.clicks.rollback_guard import Arm, RollbackGuard
from vedette.web.commands.commands import SetMachine
from vedette.web.console.ports.monitoring import ExploredPage, RankingReport, RuntimeSettings
from vedette.web.console.search.ranking import describe_verdict
from vedette.web.formatting import THIN

GOOD = ExploredPage("https://docs.example.org/new", NOW_S - 7200, 40, 12, 9.0, 21.0, 0.41)
BAD = ExploredPage("https://docs.example.org/poor", NOW_S - 7200, 30, 1, 0.0, 18.0, 0.05)
TOLD = RankingReport(
    NOW_S - 60,
    is_learned=True,
    searches=900,
    clicks=700,
    results=9000,
    tried=450,
    trying=300,
    general=0.15,
    examined=(1.0, 0.6, 0.4),
    taken_off=(("same visitor", 12.4), ("same address", 3.0)),
    learned=Arm(400, 600, 0.64, 0.03),
    plain=Arm(50, 70, 0.60, 0.09),
    difference=0.04,
    difference_give_or_take=0.095,
    is_enough=True,
    promoted=(GOOD, BAD),
)


def page(monkeypatch: pytest.MonkeyPatch, report: RankingReport | None, query: str = "") -> str:
    """Return the page for this status."""
    monkeypatch.setattr(SmallSearch, "ranking", lambda _: report, raising=False)
    answer = signed_in().client.get(f"/console/ranking{query}")
    assert answer.status_code == 200
    return str(answer.text).replace(THIN, " ")


def test_trials_results_and_groups_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows what was tried, the results, both groups with intervals, and what the caps removed."""
    text = page(monkeypatch, TOLD)
    for words in (
        "5%",
        "0.64 (0.61 to 0.67)",
        "0.60 (0.51 to 0.69)",
        GOOD.url,
        "not liked",
        "12 from the same visitor",
    ):
        assert words in text
    assert "No significant difference so far" in text


def order(name: str, readers: int, low: float, high: float, message: str = "") -> OrderEstimate:
    """Return an order whose estimates are all the same."""
    found = Estimate((low + high) / 2, low, high, float(readers), message)
    return OrderEstimate(name, readers, 5000, found, found, found)


@pytest.mark.parametrize(
    ("plain", "untried", "words"),
    [
        ((0.3, 0.4), (0.7, 0.8), ("fewer searches would have succeeded", "more searches would have succeeded")),
        ((0.45, 0.55), (0.48, 0.58), ("No significant difference from relevance alone",)),
    ],
)
def test_estimates_of_other_orders_are_shown(
    monkeypatch: pytest.MonkeyPatch, plain: tuple[float, float], untried: tuple[float, float], words: tuple[str, ...]
) -> None:
    """Each has an interval, and nothing is claimed unless intervals are disjoint."""
    orders = (
        order(RELEVANCE_ONLY, 500, *plain),
        order(LEARNED_ONLY, 510, *untried),
        order(WITH_TRIALS, 3990, 0.5, 0.6),
    )
    text = page(monkeypatch, TOLD._replace(orders=orders))
    for message in (*words, "55% (50% to 60%)", f"({round(100 * plain[0])}% to {round(100 * plain[1])}%)"):
        assert message in text


def test_orders_with_few_visitors_have_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is neither a number nor a verdict, only the number of visitors."""
    orders = (order(RELEVANCE_ONLY, 42, 0.1, 0.9, NOT_ENOUGH_DATA), order(WITH_TRIALS, 390, 0.5, 0.6))
    text = page(monkeypatch, TOLD._replace(orders=orders))
    assert text.count(NOT_ENOUGH_DATA) == 3
    assert "a ranking needs 100 visitors, and the most so far is 42" in text
    assert "What if everyone" not in page(monkeypatch, TOLD)


def test_an_active_guard_is_shown_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows why and until when; afterwards nothing is shown about it."""
    guard = RollbackGuard(NOW_S + 86_400, 0.0, "quality per click fell from 0.60 to 0.40")
    assert "turned off learned ranking: quality per click fell from 0.60 to 0.40" in page(
        monkeypatch, TOLD._replace(guard=guard)
    )
    assert "turned off learned ranking" not in page(monkeypatch, TOLD._replace(guard=guard._replace(until_s=NOW_S - 1)))


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (None, "No one has clicked a result yet"),
        (RankingReport(searches=9, clicks=4), "not enough to learn from"),
        (TOLD._replace(promoted=()), "No pages are on trial yet"),
    ],
)
def test_each_missing_part_has_a_text(
    monkeypatch: pytest.MonkeyPatch, report: RankingReport | None, words: str
) -> None:
    """Each state has its own text."""
    assert words in page(monkeypatch, report)


def test_the_page_exists_without_learned_ranking() -> None:
    """The page exists wherever the console does."""
    assert signed_in().client.get("/console/ranking").status_code == 200


def test_learning_is_switched_here() -> None:
    """It can be off, on or as configured; each is a command, and the page shows the status."""
    console = signed_in()
    assert "Turn learning off" in console.client.get("/console/ranking").text
    console.post("/console/ranking/set", learn="off")
    assert console.operator.orders[-1] == SetMachine({"serve.learn": "false"})
    console.watch.machine_now = RuntimeSettings("expected-gain", "0", ("serve.learn",), learn=False)
    text = console.client.get("/console/ranking").text
    assert "Learning from clicks was turned off on this page" in text
    console.post("/console/ranking/set", learn="on")
    assert console.operator.orders[-1] == SetMachine({"serve.learn": "true"})
    console.post("/console/ranking/set", learn="configured")
    assert console.operator.orders[-1] == SetMachine({"serve.learn": None})


def test_the_promotion_rule_can_be_chosen() -> None:
    """The active rule is selected; choosing another one is a command, and so is a reset."""
    console = signed_in()
    settings = RuntimeSettings("expected-gain", "0", ("serve.promotion",), promotion="relaxed-selective")
    console.watch.machine_now = settings
    assert 'value="relaxed-selective" checked' in console.client.get("/console/ranking").text
    console.post("/console/ranking/set", promotion="selective")
    assert console.operator.orders[-1] == SetMachine({"serve.promotion": "selective"})
    console.post("/console/ranking/set", promotion="configured")
    assert console.operator.orders[-1] == SetMachine({"serve.promotion": None})


def test_an_unknown_rule_is_an_error() -> None:
    """The page shows an error."""
    console = signed_in()
    before = len(console.operator.orders)
    answer = console.post("/console/ranking/set", learn="perhaps")
    assert (answer.status_code, len(console.operator.orders)) == (422, before)
    assert "Choose whether ranking should learn from clicks" in answer.text


def test_the_page_requires_a_session() -> None:
    """Without a session, it redirects to the sign-in page."""
    assert Console().client.get("/console/ranking").status_code in {303, 401, 403}


def test_verdicts_are_no_surer_than_the_numbers() -> None:
    """Better, worse, or unknown, based on the interval of the difference."""
    assert "worth more" in describe_verdict(TOLD._replace(difference=0.2))
    assert "worth less" in describe_verdict(TOLD._replace(difference=-0.2))
    assert "Too early" in describe_verdict(TOLD._replace(is_enough=False))
    assert "Too early" in describe_verdict(TOLD._replace(difference_give_or_take=math.inf))


def test_tried_pages_can_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CSV file is sorted and filtered as requested."""
    text = page(monkeypatch, TOLD, "?csv=promoted&promoted-filter=poor")
    assert BAD.url in text
    assert GOOD.url not in text
