"""The refresh loop: calculated by hand, within its budget, blind to the future, and below its bound."""

from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.altered_worlds import alter_future
from tests.lab.exact_freshness import Copies, initial_copies, measure_freshness
from tests.lab.git_repositories import Repository
from tests.lab.leaks import LoggedDecision, find_first_leak

from vedette.lab.bounds.known_rates import build_bound_known, solve_frequency, solve_slope
from vedette.lab.core.experiment import Cell, Span
from vedette.lab.experiments.refresh import EXPERIMENT, build_setup
from vedette.lab.metrics.freshness import FreshnessMeter
from vedette.lab.runs.refresh.run import RefreshGame, RefreshSetup, find_sources, run_refresh
from vedette.lab.worlds.git import read_git
from vedette.lab.worlds.history import FEED, History
from vedette.lab.worlds.synthetic.history import build_synthetic_history
from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import KnownPages
from vedette.refresh.policies.fixed import Fixed
from vedette.refresh.policies.uniform import Uniform
from vedette.timeutil import DAY_S

Page = tuple[float, float, list[tuple[float, int]]]
HOUR_S = 3600.0
# These histories have no texts; the bound that needs them is put to some in test_refresh_quality.
POLICIES = tuple(name for name in EXPERIMENT.policies if name != "bound-delta-q")


def world(*pages: Page, end_s: float) -> History:
    """Return pages with birth, death, and versions as (time, digest); times in seconds from 0."""
    versions = [(number, *version) for number, (_, _, report) in enumerate(pages) for version in report]
    return History(
        name="by hand",
        begin_s=0.0,
        end_s=end_s,
        urls=tuple(f"http://a.example/{number}" for number in range(len(pages))),
        site=np.zeros(len(pages), np.int64),
        kind=np.zeros(len(pages), np.uint8),
        born_s=np.array([born_s for born_s, _, _ in pages]),
        died_s=np.array([died_s for _, died_s, _ in pages]),
        moved_to=np.full(len(pages), -1),
        version_page=np.array([page for page, _, _ in versions], np.int64),
        version_at_s=np.array([at_s for _, at_s, _ in versions]),
        digest=np.array([digest for _, _, digest in versions], np.uint64),
        words=np.ones(len(versions), np.int64),
        wave=np.zeros(len(versions), bool),
        link_start=np.zeros(len(versions) + 1, np.int64),
        link_to=np.zeros(0, np.int64),
    )


@dataclass(frozen=True, slots=True)
class Timetable(Fixed):
    """A policy for tests: page p is due ``wait_s[p]`` after its last fetch."""

    wait_s: Floats = field(default_factory=lambda: np.zeros(0))

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - shape
        """By the table."""
        due: Floats = batch.last_fetch_s + self.wait_s[batch.place]
        return due


def three_pages() -> History:
    """One page changes at 1 h, one is born at 1 h and dies at 3 h, and one never changes; there are four hours."""
    return world(
        (-10.0, inf, [(-10.0, 1), (HOUR_S, 2)]),
        (-5.0, inf, [(-5.0, 3)]),
        (HOUR_S, 3 * HOUR_S, [(HOUR_S, 4)]),
        end_s=4 * HOUR_S,
    )


def test_three_pages_by_hand() -> None:
    """The first page is outdated from 1 h until its fetch at 2 h; shares are of two or three live pages.

    Freshness: hour 1 all; hour 2 two of three; hours 3 and 4 all. (1 + 2/3 + 1 + 1) / 4. Age: only in hour 2, when the
    first page's mean age is half an hour, shared by three pages: 1/6 h over 4 h.
    """
    outcome = run_refresh(
        three_pages(),
        RefreshSetup(Timetable(wait_s=np.array([2 * HOUR_S, inf, inf]))),
        RefreshGame(0.0, 4 * HOUR_S, 24.0),
    )
    assert outcome.freshness == pytest.approx((1 + 2 / 3 + 1 + 1) / 4)
    assert outcome.age_d == pytest.approx(1 / 6 / 4 / 24)
    assert (outcome.fetches, outcome.changed) == (2, 1)


def test_the_most_overdue_page_is_fetched_first() -> None:
    """With one fetch a batch and three pages due, the one that has waited longest is taken, the older among equals."""
    taken: list[list[int]] = []
    pages = Timetable(wait_s=np.array([5400.0, 3660.0, 3660.0]))
    still = world(*((-1.0 - turn, inf, [(-1.0 - turn, turn + 1)]) for turn in (2, 1, 0)), end_s=8 * HOUR_S)
    game = RefreshGame(0.0, 8 * HOUR_S, 12.0, step_s=2 * HOUR_S)
    run_refresh(still, RefreshSetup(pages), game, lambda _, chosen: taken.append(chosen.tolist()))
    assert taken[:3] == [[1], [2], [0]]


def test_a_page_found_gone_is_let_go() -> None:
    """A dead page costs a single fetch, which counts as a change."""
    dead = world((-1.0, 1800.0, [(-1.0, 1)]), end_s=DAY_S)
    outcome = run_refresh(dead, RefreshSetup(Uniform()), RefreshGame(0.0, DAY_S, 100.0))
    assert (outcome.fetches, outcome.changed) == (1, 1)


def test_sources_have_a_policy_of_their_own() -> None:
    """Home pages and feeds are sources; a plan can assign them a separate policy."""
    history = world((-2.0, inf, [(-2.0, 1)]), (-1.0, inf, [(-1.0, 2)]), end_s=DAY_S)
    history = History(
        **{name: getattr(history, name) for name in History.__slots__}
        | {"urls": ("http://a.example/x", "http://a.example/feed"), "kind": np.array([0, FEED], np.uint8)}
    )
    assert find_sources(history).tolist() == [False, True]
    never, always = Timetable(wait_s=np.full(2, inf)), Timetable(wait_s=np.zeros(2))
    taken: list[int] = []
    run_refresh(
        history,
        RefreshSetup(never, sources=always),
        RefreshGame(0.0, DAY_S, 24.0),
        lambda _, some: taken.extend(some.tolist()),
    )
    assert set(taken) == {1}


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Generate histories of a few pages over two days with few texts, so that some revert to earlier ones."""
    births = sorted(draw(st.lists(st.floats(-1e4, 1e5), min_size=1, max_size=6)))
    pages: list[Page] = []
    for born_s in births:
        gaps = draw(st.lists(st.floats(1.0, 4e4), max_size=6))
        times = np.cumsum([born_s, *gaps]).tolist()
        digests = [draw(st.integers(1, 3)) for _ in times]
        died_s = draw(st.sampled_from([inf, times[-1] + 5e3]))
        pages.append((born_s, died_s, list(zip(times, digests, strict=True))))
    return world(*pages, end_s=2 * DAY_S)


@settings(max_examples=15)
@given(histories(), st.floats(0.5, 500.0), st.sampled_from([0.5, 1.0, 7.0]), st.sampled_from(POLICIES))
def test_the_budget_is_never_exceeded(history: History, budget: float, step_h: float, policy: str) -> None:
    """No more is ever fetched than the budget allows, and never more than a day's worth at once."""
    game = RefreshGame(0.0, history.end_s, budget, step_h * HOUR_S)
    spent: list[tuple[float, int]] = []
    run_refresh(
        history, build_setup(policy, history, game), game, lambda now_s, pages: spent.append((now_s, len(pages)))
    )
    assert all(count <= budget + 1e-6 for _, count in spent)
    so_far = np.cumsum([count for _, count in spent])
    assert all(so_far <= np.array([now_s for now_s, _ in spent]) / DAY_S * budget + 1e-6)


@settings(max_examples=30)
@given(histories(), st.floats(1.0, 60.0))
def test_freshness_is_that_of_the_metric(history: History, budget: float) -> None:
    """The running sum equals the metric computed afterwards, even if pages revert to earlier content."""
    game = RefreshGame(0.0, history.end_s, budget)
    taken: list[tuple[float, list[int]]] = []
    outcome = run_refresh(
        history, RefreshSetup(Uniform()), game, lambda now_s, pages: taken.append((now_s, pages.tolist()))
    )
    fetched = Copies(
        np.array([page for _, pages in taken for page in pages], np.int64),
        np.array([now_s for now_s, pages in taken for _ in pages]),
    )
    report = measure_freshness(history, initial_copies(history, 0.0, game.end_s), fetched, 0.0, game.end_s)
    if np.isfinite(outcome.freshness):
        assert outcome.freshness == pytest.approx(report.freshness, abs=1e-9)
        assert outcome.age_d == pytest.approx(report.age_days, abs=1e-9)
    assert outcome.fetches == report.fetches


def test_no_page_no_freshness() -> None:
    """Without live pages, freshness is undefined."""
    history = world((-2.0, -1.0, [(-2.0, 1)]), end_s=DAY_S)
    assert np.isnan(FreshnessMeter(history, 0.0, DAY_S).result().freshness)


@dataclass(frozen=True, slots=True)
class Cheat(Fixed):
    """A policy that knows the history, and fetches each page a day before it changes."""

    history: History = field(default_factory=three_pages)

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - shape
        """A day ahead."""
        following = self.history.version_at(batch.place, now) + 1
        there = np.minimum(following, len(self.history.version_page) - 1)
        same = (following > 0) & (self.history.version_page[there] == batch.place)
        return np.where(same, self.history.version_at_s[there] - DAY_S, inf)


def git_history(folder: Path) -> History:
    """Return five days of a repository in which one of thirty pages is rewritten each hour."""
    pages = {f"p{number}.html".encode(): b"<p>first words of a page</p>" for number in range(30)}
    states = []
    for hour in range(120):
        pages[f"p{hour * 7 % 30}.html".encode()] = f"<p>words of hour {hour}</p>".encode()
        states.append((HOUR_S * hour, dict(pages)))
    return read_git(Repository(folder / "site.git").branch("main", *((int(at_s) + 1, state) for at_s, state in states)))


@pytest.mark.parametrize("kind", ["made", "git"])
def test_who_looks_ahead_is_caught(kind: str, tmp_path: Path) -> None:
    """Another future changes a cheat's earlier decisions, but none of an honest policy."""

    def played(history: History, policy: str) -> list[LoggedDecision]:
        log: list[LoggedDecision] = []
        game = RefreshGame(history.begin_s, history.begin_s + 3 * DAY_S, 2000.0, step_s=4 * HOUR_S)
        cheats = policy == "cheat"
        plan = RefreshSetup(Cheat(history=history)) if cheats else build_setup(policy, history, game)
        run_refresh(history, plan, game, lambda now_s, pages: log.append(LoggedDecision(now_s, pages.tolist())))
        return log

    history = build_synthetic_history("tiny", 1) if kind == "made" else git_history(tmp_path)
    at_s = history.begin_s + 2.5 * DAY_S
    assert find_first_leak(lambda one: played(one, "cheat"), history, alter_future, at_s, [1]) is not None
    for policy in ("default", "nutch", "fixed", "uniform", "random"):
        assert find_first_leak(lambda one, name=policy: played(one, name), history, alter_future, at_s, [1]) is None  # type: ignore[misc]


def test_slopes_are_even() -> None:
    """Frequencies spend the budget, and more for one page and less for another gains nothing."""
    rates = rng_for(1, "test/rates").lognormal(0.0, 1.5, 50)
    slope = solve_slope(rates, np.ones(50), 10.0)
    best = solve_frequency(rates, slope)
    assert best.sum() == pytest.approx(10.0, rel=1e-3)

    def fresh(per_s: Floats) -> float:
        some = per_s > 0
        return float((per_s[some] / rates[some] * -np.expm1(-rates[some] / per_s[some])).sum())

    for turn in range(200):
        rng = rng_for(turn, "test/moves")
        giver, taker = rng.choice(50, 2, replace=False)
        part = min(best[giver], 0.05)
        moved = best.copy()
        moved[giver], moved[taker] = moved[giver] - part, moved[taker] + part
        assert fresh(moved) <= fresh(best) + 1e-4


def test_who_knows_the_rates_is_fresher() -> None:
    """On average over seeds, the bound is fresher than round robin, which is fresher than random fetches."""
    fresh = dict.fromkeys(("bound-known", "uniform", "random"), 0.0)
    history = build_synthetic_history("tiny", 1)
    for seed in (1, 2):
        game = RefreshGame(history.begin_s, history.begin_s + 60 * DAY_S, 60.0, step_s=6 * HOUR_S, seed=seed)
        for name in fresh:
            fresh[name] += run_refresh(history, build_setup(name, history, game), game).freshness
    assert fresh["bound-known"] > fresh["uniform"] > fresh["random"]


def test_a_page_without_changes_gets_nothing() -> None:
    """The bound never fetches pages that never change, even if no page changes."""
    still = world((-1.0, inf, [(-1.0, 1)]), end_s=DAY_S)
    outcome = run_refresh(
        still, RefreshSetup(build_bound_known(still, 0.0, DAY_S, 10.0)), RefreshGame(0.0, DAY_S, 10.0)
    )
    assert (outcome.fetches, outcome.freshness) == (0, 1.0)


def test_the_experiment_gives_its_metrics() -> None:
    """A cell gives twenty parts with every metric that needs no texts, and the same cell gives the same rows."""
    cell = Cell("refresh", "made:tiny", "random", 20.0, seed=5, span=Span("", "2026-01-25"))
    rows = EXPERIMENT.run(cell)
    of_texts_or_waves = {name for name in EXPERIMENT.metrics if name.startswith(("quality", "queries"))}
    of_texts_or_waves |= {"freshness_calm", "age_calm"}
    assert [set(row) for row in rows] == [{"part"} | set(EXPERIMENT.metrics) - of_texts_or_waves] * 20
    assert [row["part"] for row in rows] == list(range(20))
    assert repr(EXPERIMENT.run(cell)) == repr(rows)
    assert 0 < sum(row["fetches_a_day"] for row in rows) <= 20.0 * 20 * 1.1


def test_parts_of_the_time_make_the_whole() -> None:
    """Freshness and age of a run are the means over its parts, and fetches and changes are the sums."""
    history = build_synthetic_history("tiny", seed=1)
    begin_s, end_s = history.begin_s, history.begin_s + 24 * DAY_S
    whole, parts = (
        run_refresh(history, RefreshSetup(Uniform()), RefreshGame(begin_s, end_s, 30.0, warm_up=0.2, parts=parts))
        for parts in (1, 5)
    )
    assert len(parts.parts) == 5
    assert parts[:4] == pytest.approx(whole[:4], rel=1e-9)
    assert sum(part.fetches for part in parts.parts) == whole.fetches
    assert len({part.freshness for part in parts.parts}) == 5
