"""Weekly user-centric refreshing: the weekly web, the policies' choices, and the reported numbers."""

import numpy as np
import pytest
from tests.lab.histories import Life, small_history

from vedette.errors import UsageError
from vedette.lab.experiments.user_centric import (
    EXPERIMENT,
    FetchRatio,
    WeeklySetting,
    build_predictability_rows,
    compute_ratio,
    create_chooser,
    measure_quality,
)
from vedette.lab.quality.corpus import ShingleDistance, load_corpus
from vedette.lab.quality.query_files import build_queries
from vedette.lab.quality.scoring import InLinkScoring, build_tfidf
from vedette.lab.quality.workload import build_workload
from vedette.lab.runs.refresh.weekly import WeeklyWeb, build_weekly_web, find_busiest_span, fit_pages, score_by_links
from vedette.lab.worlds.history import History
from vedette.timeutil import WEEK_S

WEEKS = 8
QUERIES = build_queries([("tide", 3.0), ("ebb", 1.0)])
FILL = "a page with so many words that nobody asks for"


def turning(*, until: int = WEEKS) -> Life:
    """Return a page that has the word "tide" in every other week, until a given week."""
    return Life([(at_s, f"{FILL} {'tide' * (week % 2)}") for week, at_s in enumerate(changes_s(until))])


def advertising() -> Life:
    """Return a page whose words all change every week; no one searches for them."""
    letters = "abcdefghi"
    return Life(
        [
            (at_s, " ".join(f"{week}{one}" for one in letters))
            for week, at_s in zip(letters, changes_s(WEEKS), strict=True)
        ]
    )


def changes_s(until: int) -> list[float]:
    """Return the start, and a time in each week."""
    return [0.0, *((week - 0.5) * WEEK_S for week in range(1, until + 1))]


def a_history(first: Life | None = None) -> History:
    """Return a page that matters, three that change more but don't matter, some that stay, and a short-lived one."""
    lives = [first or turning(), *(advertising() for _ in range(3))]
    # The last of these answers the same query, less well: while the first is listed wrongly, it ranks too low.
    lives += [Life([(0, text)], links=(0,)) for text in ("ebb", "ebb and", "ebb and so", f"{FILL} {FILL} tide")]
    return small_history([*lives, Life([(0, "tide")], died_s=3 * WEEK_S)], end_s=WEEKS * WEEK_S)


def setting_of(weekly: WeeklyWeb) -> WeeklySetting:
    """Return its queries, scored by text."""
    corpus = load_corpus(weekly.web)
    workload = build_workload(corpus, QUERIES, build_tfidf(corpus, weekly.version[0]))
    shares = ShingleDistance(weekly.web)
    return WeeklySetting(weekly, workload, fit_pages(weekly, workload, shares), shares)


@pytest.fixture(scope="module")
def setting() -> WeeklySetting:
    """The world above."""
    return setting_of(build_weekly_web(a_history(), 0.0, WEEKS * WEEK_S))


def test_a_weekly_web_has_the_pages_that_stay_as_they_are_each_week(setting: WeeklySetting) -> None:
    """The page that dies is left out; the others have the version of each week's history."""
    weekly, history = setting.weekly, a_history()
    assert (weekly.pages, weekly.weeks) == (8, WEEKS)
    for week in range(WEEKS + 1):
        at = history.version_at(np.arange(8), week * WEEK_S)
        assert weekly.web.digest[weekly.version[week]].tolist() == history.digest[at].tolist()
        assert weekly.web.version_at(np.arange(8), week * WEEK_S).tolist() == weekly.version[week].tolist()
    assert weekly.links.tolist() == [4, *[0] * 7]


def test_links_score_as_they_would_if_asked_anew(setting: WeeklySetting) -> None:
    """The workload by links is the one that the scoring function gives."""
    anew = build_workload(load_corpus(setting.weekly.web), QUERIES, InLinkScoring(setting.weekly.links))
    assert score_by_links(setting.workload, setting.weekly.links).match_score.tolist() == anew.match_score.tolist()


def test_what_hindsight_knows(setting: WeeklySetting) -> None:
    """Only the page that people search for has changing gains and views; changes of the others don't matter."""
    gain = setting.statistics.gain.sum(axis=0)
    assert gain[0] > 0
    assert gain[1:].tolist() == [0.0] * 7
    assert (setting.statistics.share[:, 1:4] == 1).all()
    assert (setting.statistics.share[:, 0] < 0.5).all()


def test_user_centric_fetches_what_matters_and_the_others_what_changes(setting: WeeklySetting) -> None:
    """With one fetch a week, it gets the full gain; by staleness, the page is never chosen."""
    assert measure_quality(setting, "user-centric", 1) == 1.0
    assert measure_quality(setting, "sbr", 1, tau=0.5) < 1.0
    assert measure_quality(setting, "uniform", 1) < 1.0
    assert measure_quality(setting, "bound-delta-q", 1) == 1.0


@pytest.mark.parametrize("policy", EXPERIMENT.policies)
def test_everything_is_current_where_the_budget_reaches_for_all(setting: WeeklySetting, policy: str) -> None:
    """With as many fetches as pages, no policy misses anything."""
    assert measure_quality(setting, policy, setting.weekly.pages) == 1.0


@pytest.mark.parametrize("policy", [name for name in EXPERIMENT.policies if name.startswith("online-")])
def test_online_nothing_is_known_of_weeks_to_come(policy: str) -> None:
    """Two webs that diverge in week 5 are refreshed in the same way until then."""
    until = 5

    def taken(first: Life | None) -> list[list[int]]:
        setting = setting_of(build_weekly_web(a_history(first), 0.0, WEEKS * WEEK_S))
        chooser, version = create_chooser(setting, policy, 2), setting.weekly.version
        copies, fetched, chosen = version[0].copy(), np.zeros(8, np.int64), []
        for week in range(1, until + 1):
            pages = chooser.choose(week, copies, fetched)
            chooser.observe(week, pages, copies[pages], version[week, pages])
            copies[pages], fetched[pages] = version[week, pages], week
            chosen.append(pages.tolist())
        return chosen

    assert taken(None) == taken(turning(until=until))


def test_a_ratio_is_read_between_budgets_and_bounded_by_them() -> None:
    """The smallest budget that reaches a quality counts.

    Beyond the smallest and largest budget, their ratio is used.
    """
    budgets, qualities = np.array([1.0, 4.0, 16.0, 64.0]), np.array([0.5, 0.7, 0.9, 0.9])
    assert compute_ratio(budgets, qualities, 16.0, 0.8) == FetchRatio(2.0, is_bound=False)
    assert compute_ratio(budgets, qualities, 64.0, 0.9) == FetchRatio(4.0, is_bound=False)
    assert compute_ratio(budgets, qualities, 8.0, 0.1) == FetchRatio(8.0, is_bound=True)
    assert compute_ratio(budgets, qualities, 8.0, 0.99) == FetchRatio(0.5, is_bound=True)


def test_gains_that_repeat_are_foreseen() -> None:
    """Halves in the same order agree perfectly; pages with gains in only one half are reported separately."""
    row, *bins = build_predictability_rows(np.array([[1.0, 2.0, 4.0, 0.0, 0.0], [2.0, 4.0, 8.0, 0.0, 0.0]]))
    assert row["spearman"] == pytest.approx(1.0)
    assert row["apart"] == pytest.approx(2.0)
    assert (row["one_half"], row["foreseen"], len(bins)) == (0.0, 3.0, 3)
    alone, *_ = build_predictability_rows(np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 3.0]]))
    assert alone["one_half"] == pytest.approx(2 / 3)


def test_without_pages_that_stay_there_is_nothing_to_refresh() -> None:
    """If all pages die within the span, there is an error."""
    with pytest.raises(UsageError, match="no page existed"):
        build_weekly_web(small_history([Life([(0, "tide")], died_s=WEEK_S)]), 0.0, 4 * WEEK_S)


def test_the_busiest_weeks_are_those_with_most_changes() -> None:
    """In a long history, the 48 chosen weeks contain the changes; a short history is used completely."""
    late = [Life([(0, "ebb"), *((week * WEEK_S, f"ebb {week}") for week in range(70, 80))])]
    begin_s, end_s = find_busiest_span(small_history(late, end_s=200 * WEEK_S))
    assert begin_s < 70 * WEEK_S
    assert (end_s - begin_s, end_s > 79 * WEEK_S) == (48 * WEEK_S, True)
    assert find_busiest_span(small_history(late, end_s=20 * WEEK_S)) == (0.0, 20 * WEEK_S)
