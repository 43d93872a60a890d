"""The workload: decaying counts, bounded memory, and two tests that distinguish trends from noise."""

from collections import Counter
from math import isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.learn.query_logs import ImportedQuery, InvalidLine, parse_queries
from vedette.learn.workload import Workload, build_workload

DAY_S = 86_400.0
NOW_S = 1_800_000_000.0

names = st.text(alphabet="ab ", min_size=1, max_size=4)
searches = st.tuples(
    st.floats(NOW_S - 90 * DAY_S, NOW_S), names, st.integers(1, 50).map(float)
)  # as they are handed to learned_from


def traffic(seed: int, per_day: float, days: int, kinds: int) -> list[tuple[float, str, float]]:
    """Return searches of two words each, whose popularity follows Zipf's law and never changes."""
    rng = np.random.default_rng(seed)
    count = rng.poisson(per_day * days)
    weights = 1.0 / np.arange(1, kinds + 1)
    asked = rng.choice(kinds, count, p=weights / weights.sum()).tolist()
    ages_s = (rng.random(count) * days * DAY_S).tolist()
    return [(NOW_S - age_s, f"t{number % 37} q{number}", 1.0) for age_s, number in zip(ages_s, asked, strict=True)]


def burst(words: str, times: int, within_s: float = DAY_S / 2) -> list[tuple[float, str, float]]:
    """Return searches of one query, evenly distributed over the last while."""
    return [(NOW_S - within_s * each / times, words, 1.0) for each in range(times)]


@given(st.lists(searches, max_size=15), st.randoms(use_true_random=False))
def test_the_order_of_searches_makes_no_difference(rows: list[tuple[float, str, float]], chance: object) -> None:
    """A log that is read in another order gives the same frequencies."""
    other = sorted(rows, key=lambda _: chance.random())  # type: ignore[attr-defined]  # hypothesis hands a Random
    here, there = build_workload(rows), build_workload(other)
    for _, words, _ in rows:
        assert here.frequency(words, NOW_S) == pytest.approx(there.frequency(words, NOW_S), rel=1e-9)
    assert here.count_searches(NOW_S) == pytest.approx(there.count_searches(NOW_S), rel=1e-9)


@given(st.lists(searches, min_size=1, max_size=15), st.floats(DAY_S, 400 * DAY_S))
def test_a_half_life_halves_every_count(rows: list[tuple[float, str, float]], half_life_s: float) -> None:
    """After a half-life, everything that was not searched again counts half."""
    workload = Workload.create(half_life_s, half_life_s / 10)
    for at_s, words, times in rows:
        workload.add(words, at_s, times)
    for _, words, _ in rows:
        before, after = (workload.frequency(words, NOW_S + late_s) for late_s in (0.0, half_life_s))
        assert after == pytest.approx(before / 2, rel=1e-9)


@given(st.lists(searches, min_size=1, max_size=15), st.integers(2, 1000))
def test_more_of_everything_changes_counts_and_no_shares(rows: list[tuple[float, str, float]], factor: int) -> None:
    """If all searches are added several times, counts are higher, but shares are the same."""
    once = build_workload(rows)
    often = build_workload((at_s, words, times * factor) for at_s, words, times in rows)
    for _, words, _ in rows:
        assert often.frequency(words, NOW_S) == pytest.approx(once.frequency(words, NOW_S) * factor, rel=1e-9)
    assert sorted(often.to_arrays(NOW_S)[1]) == pytest.approx(sorted(once.to_arrays(NOW_S)[1]), rel=1e-9)


@given(st.lists(searches, max_size=15))
def test_shares_sum_to_one_and_the_top_is_sorted(rows: list[tuple[float, str, float]]) -> None:
    """Later stages get a distribution over the queries, the most frequent first."""
    workload = build_workload(rows)
    queries, shares = workload.to_arrays(NOW_S)
    assert len(queries) == len(shares) == len({words for _, words, _ in rows})
    assert shares.sum() == pytest.approx(1.0 if rows else 0.0)
    assert [asked.words for asked in workload.top_queries(NOW_S, 5)] == queries[:5]
    assert (np.diff(shares) <= 0).all()


@given(
    st.lists(st.tuples(st.floats(), names, st.floats()), max_size=20),
    st.floats(allow_nan=False),
)
def test_no_time_and_no_number_breaks_it(rows: list[tuple[float, str, float]], now_s: float) -> None:
    """Extreme times and NaN leave counts that are finite and not negative."""
    workload = build_workload(rows)
    report = [workload.frequency(words, now_s) for _, words, _ in rows]
    report += [workload.count_searches(now_s), workload.max_missed(now_s), workload.measure_drift(now_s).distance]
    report += [asked.share for asked in workload.top_terms(now_s, 9)] + workload.to_arrays(now_s)[1].tolist()
    report += [each.recent_per_day for each in workload.find_rising(now_s, 9)]
    assert all(isfinite(number) and number >= 0.0 for number in report)


def test_time_does_not_run_back() -> None:
    """For a time before the latest search, results are as of that search, and no count grows."""
    workload = build_workload([(NOW_S, "tide", 3.0)])
    assert workload.frequency("tide", 0.0) == pytest.approx(3.0)


@pytest.mark.parametrize("room", [10, 100])
def test_room_is_bounded_and_so_is_the_error(room: int) -> None:
    """With too little capacity, the frequent queries stay, and no count is off by more than the stated bound."""
    rows = traffic(1, 400.0, 20, 3000)
    true = build_workload(rows)
    small = build_workload(rows, most=room)
    missed = small.max_missed(NOW_S)
    assert len(small) < 2 * room
    assert 0.0 < missed <= true.count_searches(NOW_S) * 2 / room  # as there are two terms to a search
    for words in {words for _, words, _ in rows}:
        short = true.frequency(words, NOW_S) - small.frequency(words, NOW_S)
        assert -1e-6 <= short <= missed + 1e-6
    assert small.top_queries(NOW_S, 3)[0].words == true.top_queries(NOW_S, 1)[0].words


def test_terms_are_counted_once_a_search() -> None:
    """A term's share is that of the searches that contain it, even if one of them repeats it."""
    workload = build_workload([(NOW_S, "tide tide table", 1.0), (NOW_S, "tide", 1.0), (NOW_S, "lamp", 2.0)])
    assert {asked.words: asked.share for asked in workload.top_terms(NOW_S, 9)} == {
        "tide": 0.5,
        "table": 0.25,
        "lamp": 0.5,
    }
    assert workload.term_frequency("tide", NOW_S) == pytest.approx(2.0)


def test_a_pasted_text_takes_no_more_room_than_a_query() -> None:
    """Only the beginning of an endless query counts, and a bounded number of its terms."""
    workload = build_workload([(NOW_S, " ".join(f"w{number}" for number in range(10_000)), 1.0)])
    assert max(len(words) for words in workload.to_arrays(NOW_S)[0]) < 1000
    assert len(workload.top_terms(NOW_S, 10_000)) < 100


SEEDS = range(20)


@pytest.mark.parametrize(("per_day", "days", "kinds"), [(40.0, 30, 200), (100.0, 14, 20_000), (300.0, 4, 500)])
def test_noise_raises_no_alarm(per_day: float, days: int, kinds: int) -> None:
    """If nothing changes, at most one run in twenty lists a rising query, and none reports a drift."""
    rising = drifting = 0
    for seed in SEEDS:
        workload = build_workload(traffic(seed, per_day, days, kinds))
        rising += bool(workload.find_rising(NOW_S, 5, least=0.0))
        drifting += workload.measure_drift(NOW_S).is_notable
    assert rising <= len(SEEDS) / 20
    assert drifting == 0


def test_a_burst_is_found() -> None:
    """A query that twenty people search today, and no one before, rises; so does one searched ten times as often."""
    rows = [*traffic(3, 150.0, 30, 1000), *burst("storm warning", 20), *burst("t5 q5", 60, DAY_S)]
    rising = {each.words: each for each in build_workload(rows).find_rising(NOW_S, 9)}
    assert rising.keys() == {"storm warning", "t5 q5"}
    usual = Counter(words for _, words, _ in traffic(3, 150.0, 30, 1000))["t5 q5"] / 30
    assert rising["t5 q5"].usual_per_day == pytest.approx(usual, rel=0.6)
    assert all(each.recent_per_day > 2 * each.usual_per_day for each in rising.values())
    assert "searches a day, usually" in rising["storm warning"].sentence


def test_one_search_of_something_new_is_no_news() -> None:
    """A new query with one or two searches does not rise, not even on a quiet site; nor does anything on day one."""
    rows = [*traffic(4, 20.0, 30, 50), *burst("storm", 2)]
    assert build_workload(rows).find_rising(NOW_S, 9, least=0.0) == []
    assert build_workload(burst("storm", 500)).find_rising(NOW_S, 9) == []


def test_a_busy_day_makes_nothing_rise() -> None:
    """If all queries are searched three times as often, none is a trend."""
    workload = build_workload([*traffic(5, 150.0, 30, 300), *traffic(7, 300.0, 1, 300)])
    assert workload.find_rising(NOW_S, 9) == []
    assert not workload.measure_drift(NOW_S).is_notable


def test_a_shift_is_loud_and_names_who_moved() -> None:
    """If a third of all searches change to something else, the drift is notable, and the queries are listed."""
    old = [row for row in traffic(6, 100.0, 30, 300) if row[0] < NOW_S - DAY_S or not row[1].startswith("t0 ")]
    drift = build_workload([*old, *burst("storm warning", 50, DAY_S)]).measure_drift(NOW_S)
    assert drift.is_notable
    assert {"storm", "warning"} <= {mover.term for mover in drift.movers[:3]}
    assert drift.movers[0].recent_share > drift.movers[0].usual_share
    assert 'more "' in drift.sentence


def test_drift_is_between_the_same_and_nothing_in_common() -> None:
    """Completely different searches have the maximum distance; with too few searches, there is no verdict."""
    before = [(NOW_S - 30 * DAY_S, f"old{number % 10}", 50.0) for number in range(20)]
    after = [(NOW_S, f"new{number % 10}", 50.0) for number in range(20)]
    assert 0.9 < build_workload([*before, *after]).measure_drift(NOW_S).distance <= 1.0
    assert not build_workload(before[:1]).measure_drift(NOW_S).is_told
    assert "Too few" in build_workload([]).measure_drift(NOW_S).sentence


def lines_of(*lines: str) -> list[ImportedQuery | InvalidLine]:
    """Parse a small file."""
    return list(parse_queries(lines, NOW_S))


def test_query_files_may_say_more_or_less() -> None:
    """A query alone, with a count, with a date, or as JSON is read in the form in which queries are counted."""
    day_s = 1_769_817_600.0  # 2026-01-31 at midnight
    assert lines_of(
        "\ufeffLow  Tide\n", "# ours", "  ", "Café\t12\r\n", "ebb\t3\t2026-01-31", "flow\t\t2026-01-31"
    ) == [
        ImportedQuery(NOW_S, "low tide", 1),
        ImportedQuery(NOW_S, "cafe", 12),
        ImportedQuery(day_s, "ebb", 3),
        ImportedQuery(day_s, "flow", 1),
    ]
    assert lines_of('{"query": "C++", "count": 2, "at": "2026-01-31T00:00:00Z"}', '{"query": "x", "at": 5}') == [
        ImportedQuery(day_s, "cplusplus", 2),
        ImportedQuery(5.0, "x", 1),
    ]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "?!",
            "a\t0",
            "a\t-1",
            "a\t2.5",
            "a\tmany",
            "a\tinf",
            "a\t1\tyesterday",
            "a\t1\t9999-12-31",
            "a\t1\t1969-01-01",
        ),
        *("a\t1\t2026-01-31\tb", '{"query": 5}', '{"count": 5}', "{}", "{", '{"query": "a", "count": true}'),
        *('{"query": "a", "count": []}', '{"query": "a", "at": {}}', '{"query": "a", "count": 1' + "0" * 400 + "}"),
        *('{"query":' + "[" * 5000, "a" * 100_000, '{"query": "a", "at": NaN}', '{"query": "a", "count": 1e999}'),
    ],
    ids=lambda line: line[:30],
)
def test_a_wrong_line_is_named_and_the_others_are_read(line: str) -> None:
    """An unusable line is reported with its number and a short reason."""
    first, wrong, last = lines_of("tide", line, "lamp")
    assert isinstance(wrong, InvalidLine)
    assert wrong.number == 2
    assert 0 < len(wrong.why) < 120
    assert isinstance(first, ImportedQuery)
    assert isinstance(last, ImportedQuery)


@given(st.lists(st.text() | st.text(alphabet='{}[]":,\tquerycountat0123456789-#'), max_size=5))
def test_no_line_breaks_the_reading(lines: list[str]) -> None:
    """Any line becomes a query or a reason."""
    for line in parse_queries(lines, NOW_S):
        assert isinstance(line, InvalidLine) or (line.words and 0.0 <= line.at_s <= NOW_S and line.times >= 1)
