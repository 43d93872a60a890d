"""Learning from an event store on disk: what searches then use, the status, and turning it off."""

from contextlib import closing
from math import nan
from pathlib import Path

import numpy as np
import pytest
from tests.learn.sample_events import DAY_S, made_record

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.adapters.event_store.search_log import EventLog
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageFacts, PageTableWriter
from vedette.engine.search.scoring import hash_query
from vedette.errors import ConfigError
from vedette.learn.clicks.off_policy import RELEVANCE_ONLY, WITH_TRIALS, assign_group
from vedette.learn.clicks.rollback_guard import RollbackGuard
from vedette.learn.events import ClickEvent, LoggedEvent, SearchEvent
from vedette.runtime.commands.setting_commands import (
    OVERRIDES_KEY,
    execute_setting_command,
    find_promotion,
    is_learning_on,
)
from vedette.runtime.search.click_learning import IndexedPages, LearningJob, learn
from vedette.runtime.search.reputation_store import (
    REPUTATION_FILE,
    ReputationFile,
    describe_ranking,
    load_ranking_status,
    save_ranking_status,
)
from vedette.serve.rank.reranking import POLICY, UNPROVEN
from vedette.web.commands.commands import SetMachine
from vedette.web.console.ports.monitoring import RankingReport

PAGES = {page: 0.03 * page for page in range(1, 11)}
FACTS = PageFacts(3, 0, 120, -5, nan, 10.0, 20.0, 2, 0.0, "public", "en", "html")
NOW_S = 4 * DAY_S


@pytest.fixture
def generation(tmp_path: Path) -> Path:
    """The serving generation of an index with some pages."""
    generations = Generations(tmp_path)
    path = generations.begin()
    with closing(PageTableWriter(path)) as writer:
        for id_ in PAGES:
            writer.put(id_, FACTS, b"", (np.zeros(0, np.uint32), (0, 0, 0, 0, 0)), None)
    generations.activate(path)
    return path


def record(folder: Path, slates: list[SearchEvent], events: list[ClickEvent]) -> None:
    """Record searches, as servers and the recorder would."""
    log = EventLog(folder, "server-1")
    records: list[LoggedEvent] = [*slates, *events]
    for each in records:
        log.append(each)
    log.close()
    with closing(EventStore(folder)) as book:
        book.ingest_all_logs()


def tried(slates: list[SearchEvent], page: int) -> list[SearchEvent]:
    """Return the same searches, with one page on trial."""
    return [
        slate._replace(
            results=tuple(s._replace(reason=UNPROVEN if s.page == page else "") for s in slate.results), policy=POLICY
        )
        for slate in slates
    ]


def test_clicks_become_a_file_that_searches_read(tmp_path: Path, generation: Path) -> None:
    """Pages have quality per query and overall; new ones are worth a view."""
    record(tmp_path, *made_record(PAGES, 600))
    report = learn(tmp_path, generation, generation.parent, IndexedPages(generation), NOW_S)
    file = ReputationFile(generation)
    assert file.refresh()
    assert not file.refresh()
    assert file.reputation is not None
    found = file.reputation.look_up(np.array([10, 1, 999]), np.array([3, 3, 3]), hash_query("Red KITES"))
    assert found.mean[0] > found.mean[2] > found.mean[1]
    assert found.looks[2] == 0.0
    assert found.views_per_day > 0
    assert file.reputation.teaching[0, 0] > 0
    assert report.is_learned
    assert load_ranking_status(generation.parent) == report


def test_few_clicks_leave_relevance(tmp_path: Path, generation: Path) -> None:
    """There is no file then, an older one is deleted, and the reason is reported."""
    (generation / REPUTATION_FILE).touch()
    record(tmp_path, *made_record(PAGES, 20))
    report = learn(tmp_path, generation, generation.parent, IndexedPages(generation), NOW_S)
    assert not (generation / REPUTATION_FILE).exists()
    assert "too few" in describe_ranking(report, NOW_S)


def test_no_record_is_no_trouble(tmp_path: Path, generation: Path) -> None:
    """Before anyone has searched, nothing is learned."""
    assert learn(tmp_path, generation, generation.parent, IndexedPages(generation), NOW_S)._replace(
        at_s=0.0
    ) == RankingReport(
        difference_give_or_take=float("inf"),
        learned=RankingReport().learned._replace(half_width=float("inf")),
        plain=RankingReport().plain._replace(half_width=float("inf")),
    )


def test_results_of_trials_are_shown(tmp_path: Path, generation: Path) -> None:
    """They include how often each was shown and opened, and the share of all results shown."""
    slates, events = made_record(PAGES, 400)
    record(tmp_path, tried(slates, 10), events)
    report = learn(tmp_path, generation, generation.parent, IndexedPages(generation), NOW_S)
    (page,) = report.promoted
    assert page.shown == report.tried == report.trying == 400
    assert page.clicks == sum(event.page == 10 for event in events)
    assert page.expected > report.general


def test_harm_restores_the_safe_order(tmp_path: Path, generation: Path) -> None:
    """If users quickly return from clicks on the learned order, the file is deleted, and the status says so."""
    slates, events = made_record(PAGES, 1200)
    half = [slate._replace(policy=POLICY) for slate in slates[::2]] + slates[1::2]
    spoilt = {slate.id for slate in half[:600]}
    quick = [event._replace(at_s=event.at_s + 1.0) if event.slate in spoilt else event for event in events]
    back = [
        slate._replace(id=f"{number:032x}", at_s=slate.at_s + 4.0, total=0, results=())
        for number, slate in enumerate(half[:600])
    ]
    record(tmp_path, half + back, quick)
    report = learn(tmp_path, generation, generation.parent, IndexedPages(generation), NOW_S)
    assert report.difference < 0
    assert not (generation / REPUTATION_FILE).exists()
    assert "guard" in describe_ranking(report, NOW_S)
    assert learn(tmp_path, generation, generation.parent, IndexedPages(generation), NOW_S + DAY_S).guard == report.guard


def test_estimates_of_orders_use_the_current_version(tmp_path: Path, generation: Path) -> None:
    """Only searches of the current version count; an older version made other random choices.

    The estimate is stored.
    """
    slates, events = made_record(PAGES, 1500)
    by_lot = [
        slate._replace(
            policy="linear/1" if assign_group(slate.visitor) == RELEVANCE_ONLY else POLICY, at_s=slate.at_s + 2 * DAY_S
        )
        for slate in slates
    ]
    before, others = made_record(PAGES, 300, seed=9, policy="prospect/1")
    record(tmp_path, before + by_lot, others + events)
    report = learn(tmp_path, generation, generation.parent, IndexedPages(generation), NOW_S)
    assert [each.name for each in report.orders] == [RELEVANCE_ONLY, WITH_TRIALS]
    assert 1490 <= report.orders[0].of_readers <= 1500
    truth = 1 - np.prod([1 - 0.8**place * np.mean(list(PAGES.values())) for place in range(10)])
    assert all(each.snips.low - 0.05 <= truth <= each.snips.high + 0.05 for each in report.orders)
    assert load_ranking_status(generation.parent) == report


def test_groups_are_compared_over_the_same_hours(tmp_path: Path, generation: Path) -> None:
    """Searches while no one got the learned order are not part of the comparison."""
    slates, events = made_record(PAGES, 300)
    mixed = [slate._replace(policy=POLICY if number % 2 else "linear/1") for number, slate in enumerate(slates)]
    later, others = made_record(PAGES, 300, seed=9)
    apart = [slate._replace(at_s=slate.at_s + DAY_S) for slate in later]
    record(tmp_path, mixed + apart, events + others)
    report = learn(tmp_path, generation, generation.parent, IndexedPages(generation), NOW_S)
    assert report.learned.clicks + report.plain.clicks == sum(event.kind == "click" for event in events)


def test_switched_off_is_off(tmp_path: Path, generation: Path) -> None:
    """Learned data is no longer used, which is reported; the guard is reset with its evidence."""
    (generation / REPUTATION_FILE).touch()
    save_ranking_status(generation.parent, RankingReport(guard=RollbackGuard(9.0, 0.0, "so")))
    learning = LearningJob(tmp_path, start_clock(NOW_S, 1.0), configured=False)
    learning.step(generation, 100.0)
    learning.close()
    assert not (generation / REPUTATION_FILE).exists()
    report = load_ranking_status(generation.parent)
    assert report is not None
    assert "turned off" in describe_ranking(report, 5.0)
    assert not report.guard.is_active(5.0)
    assert report.guard.since_s >= NOW_S


def test_an_order_switches_it_off_and_on_while_it_runs(tmp_path: Path, generation: Path) -> None:
    """The operator's choice overrides the configuration within seconds; after the undo, the file applies again."""
    folder = tmp_path / "data"
    (generation / REPUTATION_FILE).touch()
    with lock_folder(folder):
        state = open_state(folder, "here", NOW_S)
        learning = LearningJob(folder, start_clock(NOW_S, 1.0), configured=True)
        try:
            learning.step(generation, 100.0)
            assert (generation / REPUTATION_FILE).exists()
            execute_setting_command(SetMachine({"serve.learn": "false"}), state, 0.0)
            state.commit()
            assert not is_learning_on(state.store, configured=True)
            learning.step(generation, 110.0)
            assert not (generation / REPUTATION_FILE).exists()
            execute_setting_command(SetMachine({"serve.learn": None}), state, 0.0)
            assert is_learning_on(state.store, configured=True)
        finally:
            learning.close()
            state.close(clean=True)


def test_a_command_changes_the_promotion_rule_at_runtime(tmp_path: Path) -> None:
    """A running search applies it when it next reads the state; for an unknown value, the configured one is used."""
    folder = tmp_path / "data"
    with lock_folder(folder):
        state = open_state(folder, "here", NOW_S)
        try:
            assert find_promotion(state.store, "prospect") == "prospect"
            execute_setting_command(SetMachine({"serve.promotion": "selective"}), state, 0.0)
            assert find_promotion(state.store, "prospect") == "selective"
            with pytest.raises(ConfigError, match="relaxed-selective"):
                execute_setting_command(SetMachine({"serve.promotion": "uniform"}), state, 0.0)
            state.store.set_value(OVERRIDES_KEY, '{"serve.promotion": "of tomorrow"}')
            assert find_promotion(state.store, "relaxed-selective") == "relaxed-selective"
        finally:
            state.close(clean=True)


@pytest.mark.parametrize("damage", [b"", b"PK no archive", b"\0" * 500])
def test_a_damaged_file_is_as_none(generation: Path, damage: bytes) -> None:
    """Searches are ranked by relevance."""
    (generation / REPUTATION_FILE).write_bytes(damage)
    (generation.parent / "ranking.json").write_bytes(damage)
    file = ReputationFile(generation)
    file.refresh()
    assert file.reputation is None
    assert load_ranking_status(generation.parent) is None
