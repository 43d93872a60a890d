"""Discovery over recordings: what policies see, what bounds find, and that none knows the future."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.altered_worlds import alter_frontpages
from tests.lab.leaks import LoggedDecision, find_first_leak
from tests.lab.small_frontpages import BEGIN_S, HOUR_S, Row, front, fronts

from vedette.discover.policies.random import Random
from vedette.discover.policies.round_robin import RoundRobin
from vedette.discover.polling.sources import RECENT_POLLS, PollHistory, PollResults, Sources
from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Span
from vedette.lab.core.registry import load_policies
from vedette.lab.experiments import discovery as pooled
from vedette.lab.experiments import discovery_by_price as by_price
from vedette.lab.experiments import discovery_per_host as by_host
from vedette.lab.runs.discovery.cycles import CYCLE_METRICS
from vedette.lab.runs.discovery.frontpage_run import DiscoveryPolicy, Outcome, create_chooser, run_discovery
from vedette.lab.worlds.frontpages import Frontpages, save_frontpages
from vedette.policy import Ints, Picks


def run(world: Frontpages, policy: DiscoveryPolicy | str, k: int, seed: int = 1) -> Outcome:
    """Return a run over all snapshots."""
    span = range(world.snapshots)
    return run_discovery(world, create_chooser(policy, world, k, seed, span), k, span)


def count_found(outcome: Outcome) -> int:
    """Return the number of targets found."""
    return int(np.count_nonzero(outcome.found_at >= 0))


class Told:
    """Poll the given sources, and keep the results."""

    def __init__(self, *sources: Sequence[int]) -> None:
        self._sources = sources
        self.heard: list[PollResults] = []

    def choose(self, snapshot: int) -> Ints:
        """As given."""
        return np.array(self._sources[snapshot], np.int64)

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """Keep it."""
        del snapshot
        self.heard.append(brought)


def test_two_sources_share_the_credit_and_the_union_counts_once() -> None:
    """Both sources of two hosts show target 0, the second also 1: yields 1 and 2, two finds, one by the first poll.

    At the next snapshot, both show the same, which is known by then: yields 0 and 0.
    """
    world = front([(0, 0, 0, 2), (1, 0, 0, 2), (1, 1, 0, 2)], snapshots=2, hosts=[0, 1])
    report = Told([0, 1], [1, 0])
    outcome = run_discovery(world, report, 2, range(2))
    assert [each.yields.tolist() for each in report.heard] == [[1, 2], [0, 0]]
    assert outcome.finds.tolist() == [[1, 1], [0, 0]]
    assert outcome.polls.tolist() == [[1, 1], [1, 1]]
    assert outcome.found_at.tolist() == [0, 0]


def test_a_failed_look_costs_and_finds_nothing() -> None:
    """The target is always there, but the first scrape failed, so the second poll finds it."""
    world = front([(0, 0, 0, 2)], snapshots=2, hosts=[0], failed=[(0, 0)])
    outcome = run_discovery(world, Told([0], [0]), 1, range(2))
    assert (outcome.found_at.tolist(), outcome.failed, int(outcome.polls.sum())) == ([1], 1, 2)


def brought(place: int, targets: Sequence[int], new: Sequence[bool], *, ok: bool = True) -> PollResults:
    """Return the result of one poll."""
    shown = np.array(targets, np.int64)
    return PollResults(np.array([place]), np.array([ok]), np.array([0, len(shown)]), shown, np.array(new, bool))


def test_the_book_says_what_is_known_of_each_source() -> None:
    """One source has polls with two new links, with none, and two failures; the other was never polled."""
    book = PollHistory(np.array([4, 7]))
    book.record(brought(1, [90, 30, 60], [True, False, True]), 100.0)
    book.record(brought(1, [30], [False]), 200.0)
    book.record(brought(1, [], [], ok=False), 300.0)
    report = book.record(brought(1, [], [], ok=False), 400.0)
    assert (report.place.tolist(), report.host.tolist(), report.failures.tolist()) == ([1], [7], [2])
    known = book.list_options()
    assert known.last_poll_s.tolist() == [-math.inf, 400.0]
    assert (known.polls.tolist(), known.found.tolist(), known.links.tolist()) == ([0, 2], [0, 2], [0, 1])
    assert known.poll_s[1, :2].tolist() == [200.0, 100.0]
    assert np.isnan(known.poll_s[1, 2:]).all()
    assert known.yields[1, :3].tolist() == [0, 2, 0]


def test_the_book_numbers_targets_by_when_they_were_first_brought() -> None:
    """Targets are numbered when they are found; the recording's numbers would reveal how many are not."""
    book = PollHistory(np.array([0]))
    first = book.record(brought(0, [90, 30], [True, True]), 1.0)
    then = book.record(brought(0, [55, 90], [True, False]), 2.0)
    assert (first.shown.tolist(), then.shown.tolist(), then.shown_new.tolist()) == ([0, 1], [2, 0], [True, False])


def test_the_book_remembers_the_latest_looks() -> None:
    """After more polls than it stores, the newest is first and the oldest are gone; sums continue."""
    book = PollHistory(np.array([0]))
    for look in range(RECENT_POLLS + 5):
        book.record(brought(0, [look], [True]), float(look))
    known = book.list_options()
    assert known.poll_s[0].tolist() == [float(look) for look in range(RECENT_POLLS + 4, 4, -1)]
    assert known.found.tolist() == [RECENT_POLLS + 5]


def test_handed_out_batches_stay_as_they_are() -> None:
    """Later results do not change what a policy saw before."""
    book = PollHistory(np.array([0]))
    before = book.list_options()
    book.record(brought(0, [1], [True]), 5.0)
    assert (before.last_poll_s.tolist(), before.polls.tolist()) == ([-math.inf], [0])


def test_round_robin_looks_at_each_in_turn() -> None:
    """With five sources and two polls per step: 0 1, 2 3, 4 0, 1 2."""
    world = front([(0, 0, 0, 4)], snapshots=4, hosts=[0] * 5)
    assert [each.tolist() for each in run(world, RoundRobin(), 2).chosen] == [[0, 1], [2, 3], [4, 0], [1, 2]]


def test_random_looks_at_all_equally_often() -> None:
    """Of six sources, two per step for 900 steps: about 300 each (five standard deviations of 14 are allowed)."""
    world = front([(0, 0, 0, 1)], snapshots=900, hosts=[0] * 6)
    counts = np.bincount(np.concatenate(run(world, Random(), 2).chosen))
    assert np.all(np.abs(counts - 300) < 5 * 14)


@given(world=fronts(snapshots=8, fails=False))
def test_whoever_looks_at_everything_finds_everything(world: Frontpages) -> None:
    """If every source is polled and no scrape fails, coverage is 1, immediately except for the bound."""
    for policy in (Random(), RoundRobin(), "bound-myopic"):
        assert run(world, policy, world.sources).found_at.tolist() == world.compute_visibility().first.tolist()
    assert count_found(run(world, "bound-greedy", world.sources)) == world.targets


@given(world=fronts(snapshots=1, sources=6), k=st.integers(1, 4))
def test_in_one_step_the_bounds_keep_what_greedy_promises(world: Frontpages, k: int) -> None:
    """With one poll, they find as much as possible.

    With k, at least 1 - 1/e of what the best k find (maximum cover).
    """
    sets = [set(world.links(source, 0).tolist()) for source in range(world.sources)]
    best = max(len(set().union(*each)) for each in itertools.combinations(sets, k))
    finds = {bound: count_found(run(world, bound, k)) for bound in ("bound-greedy", "bound-myopic")}
    assert finds["bound-greedy"] == finds["bound-myopic"] <= best
    assert finds["bound-greedy"] >= (best if k == 1 else (1 - 1 / math.e) * best)


@given(world=fronts(snapshots=8), k=st.integers(1, 3))
def test_bounds_keep_to_the_budget(world: Frontpages, k: int) -> None:
    """They make at most k polls per snapshot; the published loop makes k + 1.

    The hourly oracle spends all of them. The greedy bound stops when it has found everything within reach, so it wastes
    no poll.
    """
    patient = run(world, "bound-greedy", k)
    assert max(len(each) for each in patient.chosen) <= k
    assert (int(patient.polls.sum()) <= count_found(patient), patient.failed) == (True, 0)
    assert {len(each) for each in run(world, "bound-myopic", k).chosen} == {k}


def patient_world() -> Frontpages:
    """Source 0 shows two targets for two hours and a third one in the second hour; source 1 shows one in the first."""
    return front([(0, 0, 0, 2), (0, 1, 0, 2), (0, 2, 1, 2), (1, 3, 0, 1)], snapshots=2, hosts=[0, 0])


def test_the_greedy_bound_looks_ahead_and_the_hourly_one_does_not() -> None:
    """Hour by hour, source 0 is best twice: 2 + 1.

    Knowing the second hour, the bound takes source 1 first and finds all four.
    """
    assert count_found(run(patient_world(), "bound-myopic", 1)) == 3
    patient = run(patient_world(), "bound-greedy", 1)
    assert [each.tolist() for each in patient.chosen] == [[1], [0]]
    assert count_found(patient) == 4


def test_an_unknown_bound_is_refused() -> None:
    """The error names the existing bounds."""
    with pytest.raises(UsageError, match="bound-myopic"):
        run(patient_world(), "bound-magic", 1)


@dataclass(frozen=True, slots=True)
class Cheat:
    """Poll the source that will show most one step later; no policy may have access to the world like this."""

    world: Frontpages
    name: str = "cheat"

    def start(self, config: None) -> tuple[()]:
        """Learn nothing."""
        del config
        return ()

    def observe(self, state: tuple[()], batch: Sources, now: float) -> tuple[()]:
        """Nothing is learned."""
        del batch, now
        return state

    def choose(self, state: tuple[()], options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """The k that show most at the next snapshot."""
        del state, rng
        following = min(round((now - BEGIN_S) / HOUR_S) + 1, self.world.snapshots - 1)
        counts = [len(self.world.links(source, following)) for source in options.place.tolist()]
        rows = np.argsort(-np.array(counts), kind="stable")[:k]
        return Picks(rows, np.ones(len(rows)))

    def reason(self, state: tuple[()], batch: Sources, row: int, now: float) -> str:
        """None available."""
        del state, batch, row, now
        return "cheat: it knows"


def busy_world() -> Frontpages:
    """Return twenty hours in which eight sources show their own targets, some of them more and for longer."""
    rows: list[Row] = []
    for hour, source in itertools.product(range(20), range(8)):
        for _ in range((hour * 3 + source * 5) % 4):
            rows.append((source, len(rows), hour, min(hour + 1 + source % 3, 20)))
    return front(rows, snapshots=20, hosts=[place % 2 for place in range(8)])


def leak_of(policy: DiscoveryPolicy | type[Cheat]) -> int | None:
    """Return the first decision before hour 10 that another future changes."""

    def decisions(world: Frontpages) -> list[LoggedDecision]:
        at_work = policy(world) if isinstance(policy, type) else policy
        return [LoggedDecision(at, chosen.tolist()) for at, chosen in enumerate(run(world, at_work, 2).chosen)]

    return find_first_leak(decisions, busy_world(), lambda world, at, seed: alter_frontpages(world, int(at), seed), 10)


@pytest.mark.parametrize("name", load_policies("discover"))
def test_no_policy_knows_the_future(name: str) -> None:
    """The same past with different futures gives the same decisions up to then, for every policy."""
    assert leak_of(load_policies("discover")[name]) is None


def test_a_policy_that_looks_one_step_ahead_is_caught() -> None:
    """It decides differently in the hour before the future changes."""
    assert leak_of(Cheat) == 9


def a_file(world: Frontpages, folder: Path) -> str:
    """Return the name of a world that is written to a file."""
    save_frontpages(world, folder / "front.npz")
    return f"frontpages:{folder / 'front.npz'}"


def steady_world(sources: int = 12) -> Frontpages:
    """Return seventy hours; source s shows a new target every hour, for an hour.

    Host 1 has one source, host 0 the others.
    """
    rows = [(source, hour * sources + source, hour, hour + 1) for hour in range(70) for source in range(sources)]
    return front(rows, snapshots=70, hosts=[*[0] * (sources - 1), 1])


def test_a_cell_in_numbers(tmp_path: Path) -> None:
    """Three of twelve sources per step find 3 of 12 targets, immediately or never; a seventh of the hours is warm-up.

    Of 70 hours, the first ten are warm-up, so 60 * 12 = 720 are new, and 180 of them are found. The bound finds as
    many. Each poll finds one: overhead 1. Missed targets count with their hour of life: the 90th percentile is 1 h, and
    0 h for those found.
    """
    row, *_ = pooled.EXPERIMENT.run(Cell("discovery", a_file(steady_world(), tmp_path), "round-robin", 3.0, 1))
    assert {name: row[name] for name in ("coverage", "overhead", "overhead_mean", "regret", "regret_steady")} == {
        "coverage": 0.25,
        "overhead": 1.0,
        "overhead_mean": 1.0,
        "regret": 0.0,
        "regret_steady": 0.0,
    }
    assert (row["htd_p90"], row["htd_p90_found"]) == (1.0, 0.0)
    assert (row["fetches"], row["found"], row["new"], row["failed"]) == (210, 210, 720, 0.0)


def test_a_cell_can_be_a_part_of_a_world(tmp_path: Path) -> None:
    """The second day alone has 24 hours of three polls, and all policies start without history."""
    cell = Cell("discovery", a_file(steady_world(), tmp_path), "random", 3.0, 1, Span("1", "2"))
    row, day = pooled.EXPERIMENT.run(cell)
    assert (row["fetches"], row["found"]) == (72, 72)
    assert day == {"day": 1.0, "regret_so_far": 0.0}


def test_the_regret_curve_is_of_all_that_was_found_so_far(tmp_path: Path) -> None:
    """On day one, only source 0 has news, one target per hour, and on day two, only source 1.

    The bound polls the right one. Round-robin finds every second target on both days, so half of them are missing at
    the end of each.
    """
    rows = [(hour // 24, hour, hour, hour + 1) for hour in range(48)]
    cell = Cell("discovery", a_file(front(rows, snapshots=48, hosts=[0, 0]), tmp_path), "round-robin", 1.0, 1)
    curve = [row for row in pooled.EXPERIMENT.run(cell) if "day" in row]
    assert curve == [{"day": 1.0, "regret_so_far": 0.5}, {"day": 2.0, "regret_so_far": 0.5}]


def test_experiments_promise_what_their_rows_have(tmp_path: Path) -> None:
    """Every number of a row except the host is announced; bounds and policies can be run."""
    world = a_file(steady_world(13), tmp_path)
    for experiment in (pooled.EXPERIMENT, by_host.EXPERIMENT):
        for policy in experiment.policies:
            row, *days = experiment.run(Cell(experiment.name, world, policy, 2.0, 1))
            assert {*row} - {"host"} == {*experiment.metrics} - {*CYCLE_METRICS, "regret_so_far"}
            assert [{*day} - {"host"} for day in days] == [{"day", "regret_so_far"}] * 2


def test_hosts_with_enough_sources_are_run_alone(tmp_path: Path) -> None:
    """Of two hosts with twelve sources and one, the first has a row; without any, the error says what to do."""
    world = a_file(steady_world(13), tmp_path)
    row, *_ = by_host.EXPERIMENT.run(Cell("discovery-per-host", world, "bound-myopic", 4.0, 1))
    assert (row["host"], row["sources"], row["coverage"]) == (0.0, 12.0, 4 / 12)
    (tmp_path / "small").mkdir()
    with pytest.raises(UsageError, match="drop --per-host"):
        by_host.EXPERIMENT.run(
            Cell("discovery-per-host", a_file(patient_world(), tmp_path / "small"), "random", 1.0, 1)
        )


@pytest.mark.parametrize("budget", [0.0, 2.5, -1.0])
def test_a_budget_is_a_whole_number_of_looks(tmp_path: Path, budget: float) -> None:
    """A fractional number of polls is refused."""
    with pytest.raises(UsageError, match="whole number of polls"):
        pooled.EXPERIMENT.run(Cell("discovery", a_file(patient_world(), tmp_path), "random", budget, 1))


def test_a_cell_comes_out_the_same_again(tmp_path: Path) -> None:
    """The same world, policy, budget and seed give the same numbers; another seed draws otherwise."""
    world = a_file(busy_world(), tmp_path)
    rows = [pooled.EXPERIMENT.run(Cell("discovery", world, "random", 2.0, seed)) for seed in (1, 1, 2)]
    assert rows[0] == rows[1] != rows[2]


def busy_days(days: int) -> Frontpages:
    """Return three sources of one host; each shows two links per hour by day, for two hours each, and none at night."""
    hours = [24 * day + hour for day in range(days) for hour in range(8, 20)]
    births = list(itertools.product(range(3), hours, range(2)))
    rows = [(source, number, hour, hour + 2) for number, (source, hour, _) in enumerate(births)]
    return front(rows, 24 * days, [0] * 3)


def test_a_price_spends_its_budget_where_links_come() -> None:
    """With one poll per hour on average, days get more than nights, and spending is close to the budget."""
    world = busy_days(21)
    looks = by_price.PricedPoller(load_policies("discover")["accrual"], world, 1.0, 1)
    chosen = np.array([len(each) for each in run_discovery(world, looks, looks.k, range(world.snapshots)).chosen])
    by_hour = chosen[24 * 10 :].reshape(-1, 24).mean(axis=0)
    assert by_hour.mean() == pytest.approx(1.0, rel=0.25)
    assert by_hour[9:20].mean() > 1.5 * by_hour[[0, 1, 2, 3, 4, 5]].mean()


def test_a_run_by_price_tells_what_it_promises(tmp_path: Path) -> None:
    """It reports all numbers except regret, which would need a bound with as many polls."""
    path = tmp_path / "days.npz"
    save_frontpages(busy_days(2), path)
    (row,) = by_price.EXPERIMENT.run(Cell("discovery-by-price", f"frontpages:{path}", "default", 1.5, 1))
    assert {*row} == {*by_price.EXPERIMENT.metrics}


def test_a_price_is_asked_only_of_who_knows_one() -> None:
    """Thompson sampling has no price, so it is refused."""
    with pytest.raises(UsageError, match="does not take a price"):
        by_price.EXPERIMENT.run(Cell("discovery-by-price", "frontpages:none.npz", "thompson", 1.0, 1))
