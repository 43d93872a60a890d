"""The event store: each search and event is counted once, old ones are deleted, and erased data is gone."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adapters.event_store.test_search_log import no_file_larger_than

from vedette.adapters.event_store.reader import EventReader, QueryCount, Totals
from vedette.adapters.event_store.schema import EVENTS_FILE, EVENTS_NAME, HOUR_S, hour_start
from vedette.adapters.event_store.search_log import EventLog
from vedette.adapters.event_store.store import NOT_SHOWN, UNKNOWN_SEARCH, EventStore
from vedette.adapters.event_store.time_series import SERIES
from vedette.errors import StoreCorrupt, StoreError, StoreNewer
from vedette.learn.bot_filter import MAX_CLICKS_PER_HOUR, MAX_SEARCHES_PER_HOUR
from vedette.learn.events import ClickEvent, LoggedEvent, SearchEvent, ShownResult, encode_event

NOW_S = 1_800_000_000.0
DAY_S = 86_400.0
ROOT = Path(__file__).parents[3]
# Many small databases are created below, and disk sync times are not under test.
MEMORY = next((path for path in ("/dev/shm",) if Path(path).is_dir()), None)  # noqa: S108 - a disk in memory

BURST = """
import sys
from pathlib import Path
from vedette.adapters.event_store.search_log import EventLog
from vedette.learn.events import ClickEvent, SearchEvent, ShownResult

log = EventLog(Path(sys.argv[1]), "server", largest_bytes=100_000)
for number in range(4000):
    name, mark = f"{number:032x}", f"mark {number % 50}"
    log.append(SearchEvent(name, 1.8e9, "Burst", "burst", 1, mark, results=(ShownResult(1, 1, 0.5),)))
    log.append(ClickEvent(name, "click", 1, 1.8e9, 5.0, mark))
    print(number, flush=True)
"""

FORGET = """
import sys
from pathlib import Path
from vedette.adapters.event_store.store import EventStore

EventStore(Path(sys.argv[1])).erase(sys.argv[2])
"""


def slate(
    number: int, words: str = "red fox", *, at_s: float = NOW_S, visitor: str = "mark", total: int = 2, page: int = 1
) -> SearchEvent:
    """Return a search with two results, pages 1 and 2."""
    shown = tuple(ShownResult(id_, id_, 1 / id_, features=(("body", 0.5),)) for id_ in (1, 2))[:total]
    return SearchEvent(f"{number:032x}", at_s, words.title(), words, total, visitor, page=page, results=shown)


def click(number: int, page: int = 1, *, at_s: float = NOW_S + 5, visitor: str = "mark") -> ClickEvent:
    """Return a click on a result of that search."""
    return ClickEvent(f"{number:032x}", "click", page, at_s, 5.0, visitor)


def view(number: int) -> ClickEvent:
    """Return a view of that search."""
    return ClickEvent(f"{number:032x}", "view", 0, NOW_S + 1, 1.0, "mark")


def log_all(folder: Path, *records: LoggedEvent) -> None:
    """Log these records as a server that then exits."""
    with closing(EventLog(folder, "server")) as log:
        for record in records:
            log.append(record)


@contextmanager
def book_of(folder: Path, *records: LoggedEvent) -> Iterator[EventStore]:
    """Return a store with these records."""
    log_all(folder, *records)
    with closing(EventStore(folder)) as book:
        book.ingest_logs()
        yield book


def bytes_below(folder: Path) -> bytes:
    """Return the content of all files, read by another process so that database locks are kept."""
    found = subprocess.run(
        ["find", str(folder), "-type", "f", "-exec", "cat", "{}", ";"], check=True, capture_output=True
    )
    return found.stdout


def test_a_folder_without_record_answers_empty(tmp_path: Path) -> None:
    """No one has searched yet, and reading creates nothing."""
    view_ = EventReader(tmp_path)
    found: list[list[Any]] = [
        *(
            view_.list_top_queries(0.0, 5),
            view_.list_empty_queries(0.0, 5),
            view_.list_imported(),
            view_.list_clicks("x"),
        ),
        *(list(view_.iter_counts(0.0)), list(view_.iter_searches(0.0)), view_.read_series("pages", 0.0, 10)),
    ]
    assert not any(found)
    assert view_.read_latest() == {}
    assert view_.read_totals(0.0) == Totals()
    assert view_.find_search("x") is None
    assert list(tmp_path.iterdir()) == []


def test_searches_and_clicks_are_counted(tmp_path: Path) -> None:
    """They are counted by words and hour, with visitors, empty searches and clicks, and the query as last typed."""
    records = (
        slate(1, at_s=NOW_S),
        slate(2, at_s=NOW_S + 1, visitor="other")._replace(query="RED FOX"),
        slate(3, at_s=NOW_S - HOUR_S),
        slate(4, "blue", total=0),
        slate(5, page=2),
        slate(6, "bot")._replace(filter_reason="says it is a program"),
        *(click(1, 1), click(1, 2), click(2, 1), view(1), click(6)),
    )
    with book_of(tmp_path, *records):
        found = EventReader(tmp_path)
        assert found.list_top_queries(NOW_S, 1) == [QueryCount("red fox", "RED FOX", 2, 2, 0, 3, NOW_S + 1)]
        assert [count.searches for count in found.list_top_queries(0.0, 9)] == [3, 1]
        assert found.list_empty_queries(0.0, 9) == [QueryCount("blue", "Blue", 1, 1, 1, 0, NOW_S)]
        hour_s = hour_start(NOW_S)
        assert list(found.iter_counts(NOW_S)) == [(hour_s, "blue", 1), (hour_s, "red fox", 2)]
        assert len(list(found.iter_counts(0.0))) == 3
        assert found.read_totals(0.0) == Totals(4, 1, 1, 3, {"says it is a program": 2}, opened=2)
        assert found.find_search(records[0][0]) == records[0]
        assert list(found.iter_searches(0.0)) == [each for each in records if isinstance(each, SearchEvent)]
        assert found.list_clicks(records[0][0]) == [view(1), click(1, 1), click(1, 2)]


def test_what_nobody_was_shown_is_not_counted(tmp_path: Path) -> None:
    """A click on an unknown search or an unlisted page is stored with its reason."""
    with book_of(tmp_path, slate(1), click(1, 99), click(2)):
        totals = EventReader(tmp_path).read_totals(0.0)
        assert (totals.clicks, totals.filtered) == (0, {NOT_SHOWN: 1, UNKNOWN_SEARCH: 1})
        assert [event.filter_reason for event in EventReader(tmp_path).list_clicks(click(1).slate)] == [NOT_SHOWN]


def test_an_event_may_come_before_its_slate(tmp_path: Path) -> None:
    """With two servers and two files, the order of reading makes no difference."""
    with book_of(tmp_path, click(1), view(1)) as book:
        assert EventReader(tmp_path).read_totals(0.0).clicks == 0
        log_all(tmp_path, slate(1))
        book.ingest_logs()
        assert EventReader(tmp_path).read_totals(0.0) == Totals(1, 0, 1, 1, {}, opened=1)


def test_a_damaged_search_costs_its_clicks_alone(tmp_path: Path) -> None:
    """If bits of a recorded search have flipped, its clicks are not trusted, and everything else is counted."""
    with book_of(tmp_path, slate(1), slate(2)) as book:
        book._query("UPDATE slate SET line = x'78010203' WHERE id = (SELECT min(id) FROM slate)")
        log_all(tmp_path, click(1), click(2))
        book.ingest_logs()
    reader = EventReader(tmp_path)
    assert len(list(reader.iter_searches(0.0))) == 1
    assert reader.read_totals(0.0).filtered == {NOT_SHOWN: 1}


def test_who_does_more_than_a_person_is_doubted_from_then_on(tmp_path: Path) -> None:
    """Beyond the hourly limit, a visitor's searches and clicks are not counted; the next hour starts over."""
    searches = [slate(number) for number in range(MAX_SEARCHES_PER_HOUR + 5)]
    clicks = [click(number, visitor="clicker") for number in range(MAX_SEARCHES_PER_HOUR)]
    clicks += [click(number, 2, visitor="clicker") for number in range(5)]
    with book_of(tmp_path, *searches, *clicks, slate(10**6, at_s=NOW_S + HOUR_S)):
        totals = EventReader(tmp_path).read_totals(0.0)
        assert totals.searches == MAX_SEARCHES_PER_HOUR + 1
        assert totals.clicks == MAX_CLICKS_PER_HOUR
        assert sorted(totals.filtered.values()) == [5, 5]


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b'["e","00","click",' + b"9" * 30 + b',5.0,1.5,"ab",""]\n',
        b'["e","00","click",7,1e300,1.5,"ab",""]\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b"x" * 3_000_000 + b"\n",
    ],
)
def test_garbage_is_skipped_and_counted(tmp_path: Path, line: bytes) -> None:
    """Whatever a file contains, the lines after it are read."""
    log_all(tmp_path, slate(1))
    (path,) = (tmp_path / "log").iterdir()
    with path.open("ab") as file:
        file.write(line + encode_event(slate(2)))
    with closing(EventStore(tmp_path)) as book:
        folded = [book.ingest_logs() for _ in range(5)]
    assert sum(each.slates for each in folded) == 2
    assert sum(each.garbage for each in folded) > 0
    assert EventReader(tmp_path).read_totals(0.0).searches == 2


def test_halves_of_characters_are_no_obstacle(tmp_path: Path) -> None:
    """Queries may contain text that no database accepts."""
    with book_of(tmp_path, slate(1, "half \ud800")._replace(visitor="\udfff")):
        (found,) = EventReader(tmp_path).list_top_queries(0.0, 5)
        assert found.words == "half ?"


def test_a_half_line_waits_for_its_rest_and_ends_with_its_writer(tmp_path: Path) -> None:
    """While the file is open the rest may come; afterwards the file is deleted with its partial line."""
    log = EventLog(tmp_path, "server")
    log.append(slate(1))
    (path,) = (tmp_path / "log").iterdir()
    line = encode_event(slate(2))
    with closing(EventStore(tmp_path)) as book:
        for part in (line[:50], line[50:], encode_event(slate(3))[:50]):
            with path.open("ab") as file:
                file.write(part)
            book.ingest_logs()
        assert EventReader(tmp_path).read_totals(0.0).searches == 2
        assert path.exists()
        log.close()
        assert book.ingest_logs().garbage == 1
        assert not path.exists()
        assert book.ingest_logs() == (0, 0, 0, 0, 0)
    assert EventReader(tmp_path).read_totals(0.0).searches == 2


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("slate"), st.integers(0, 3), st.integers(0, 1)),
        st.tuples(st.just("click"), st.integers(0, 3), st.integers(0, 1)),
        st.tuples(st.just("view"), st.integers(0, 3), st.integers(0, 1)),
        st.tuples(st.just("fold"), st.sampled_from((1, 300, 100_000)), st.just(0)),
        st.tuples(st.sampled_from(("restart", "restart book")), st.just(0), st.integers(0, 1)),
    ),
    max_size=25,
)


@given(STEPS)
def test_each_is_counted_once(steps: list[tuple[str, int, int]]) -> None:
    """Whatever two servers log, in any order, however often they and the recorder restart."""
    made: dict[str, Callable[[int], LoggedEvent]] = {
        "slate": lambda number: slate(number, f"words {number % 2}"),
        "click": click,
        "view": view,
    }
    report: dict[tuple[str, int], None] = {}
    with TemporaryDirectory(dir=MEMORY) as name, ExitStack() as closing_:
        folder = Path(name)
        logs, book = [EventLog(folder, f"server-{which}") for which in (0, 1)], EventStore(folder)
        for step, number, which in steps:
            if step == "fold":
                book.ingest_logs(number)
            elif step == "restart":
                logs[which].close()
                logs[which] = EventLog(folder, f"server-{which}")
            elif step == "restart book":
                book.close()
                book = EventStore(folder)
            else:
                logs[which].append(made[step](number))
                report[step, number] = None
        closing_.callback(book.close)
        for log in logs:
            log.close()
        while book.ingest_logs().left_bytes:
            pass
        totals, counts = EventReader(folder).read_totals(0.0), EventReader(folder).list_top_queries(0.0, 9)
        assert list((folder / "log").iterdir()) == [] if report else True
    slates = {number for step, number in report if step == "slate"}
    assert totals.searches == sum(count.searches for count in counts) == len(slates)
    assert totals.views == len({number for step, number in report if step == "view"} & slates)
    assert totals.clicks == len({number for step, number in report if step == "click"} & slates)
    assert totals.clicks == sum(count.clicks for count in counts)
    assert all(count.visitors == 1 for count in counts)


def test_kill_9_in_a_burst_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Everything that append returned for is merged, at most one more of each, and nothing twice."""
    acknowledged = -1
    with closing(EventStore(tmp_path)) as book:
        for _ in range(2):
            command = [sys.executable, "-c", BURST, str(tmp_path)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
                assert writer.stdout is not None
                for _, report in zip(range(5), writer.stdout, strict=False):
                    book.ingest_logs(20_000)
                    acknowledged = max(acknowledged, int(report))
                writer.send_signal(signal.SIGKILL)
                acknowledged = max([acknowledged, *map(int, writer.stdout)])
            while book.ingest_logs().left_bytes:
                pass
        numbers = sorted(int(each.id, 16) for each in EventReader(tmp_path).iter_searches(0.0))
        (events,) = book._db.execute("SELECT count(*) FROM event").fetchone()
    assert numbers == list(range(len(numbers)))
    assert acknowledged + 1 <= events <= len(numbers) <= acknowledged + 2
    assert EventReader(tmp_path).read_totals(0.0).clicks == events
    assert list((tmp_path / "log").iterdir()) == []


def test_a_full_disk_costs_nothing_but_time(tmp_path: Path) -> None:
    """A merge without disk space is undone and reported; with space again, everything is counted once."""
    log_all(tmp_path, *(slate(number, visitor=f"mark {number % 9}") for number in range(500)))
    with closing(EventStore(tmp_path)) as book:
        with no_file_larger_than(150_000), pytest.raises(StoreError, match="Free up disk space"):
            book.ingest_logs()
        assert EventReader(tmp_path).read_totals(0.0).searches == 0
        assert book.ingest_logs().slates == 500
        assert EventReader(tmp_path).read_totals(0.0).searches == 500


def test_old_slates_go_and_common_queries_stay(tmp_path: Path) -> None:
    """Of searches older than the limit, only queries of several people in the same hour are still counted."""
    old_s = NOW_S - 40 * DAY_S
    records = [slate(number, "common", at_s=old_s, visitor=f"mark {number}") for number in range(3)]
    records += [slate(10 + number, "rare", at_s=old_s, visitor="one") for number in range(3)]
    records += [slate(20, "rare", at_s=NOW_S - 20 * DAY_S)]
    with book_of(tmp_path, *records, click(1, at_s=old_s), click(20)) as book:
        assert book.prune(NOW_S, keep_days=30) > 0
        found = EventReader(tmp_path)
        assert [each.id for each in found.iter_searches(0.0)] == [records[-1].id]
        assert found.list_clicks(records[1].id) == []
        assert [(count.words, count.searches) for count in found.list_top_queries(0.0, 9)] == [
            ("common", 3),
            ("rare", 1),
        ]
        assert found.read_totals(0.0).searches == len(records)
        book.prune(NOW_S + 400 * DAY_S, keep_days=30)
        book.prune(NOW_S + 400 * DAY_S, keep_days=30)
        assert [count.words for count in found.list_top_queries(0.0, 9)] == ["common"]
        ((day_s, _, searches),) = found.iter_counts(0.0)
        assert (day_s % DAY_S, searches) == (0, 3)


def test_with_no_days_nothing_is_kept(tmp_path: Path) -> None:
    """Nothing is left in tables or files, except for the numbers of the crawl."""
    with book_of(tmp_path, slate(1, "quietly"), click(1)) as book:
        book.add_points(NOW_S, {"pages": 5.0})
        book.prune(NOW_S, keep_days=0)
        found = EventReader(tmp_path)
        assert found.read_totals(0.0) == Totals()
        assert found.list_top_queries(0.0, 9) == []
        assert found.read_latest() == {"pages": 5.0}
        assert b"uietly" not in bytes_below(tmp_path)


def test_logs_of_living_servers_do_not_keep_what_is_folded(tmp_path: Path) -> None:
    """A server keeps its file open for months; its lines are blanked once they are merged."""
    with closing(EventLog(tmp_path, "server")) as log, closing(EventStore(tmp_path)) as book:
        log.append(slate(1, "early"))
        book.ingest_logs()
        book.prune(NOW_S, keep_days=30)
        log.append(slate(2, "later"))
        (path,) = (tmp_path / "log").iterdir()
        assert b"early" not in path.read_bytes()
        assert b"later" in path.read_bytes()
        assert book.ingest_logs().slates == 1
        assert EventReader(tmp_path).read_totals(0.0).searches == 2


def test_what_is_forgotten_is_nowhere(tmp_path: Path) -> None:
    """No byte of the query is left in any file, while recorder and server keep running; the rest stays."""
    secret, rng = "zebra embarrassment" * 3, Random(5)  # noqa: S311 - nothing depends on it being guessed
    times = 0
    with closing(EventLog(tmp_path, "server")) as log, closing(EventStore(tmp_path)) as recorder:
        for number in range(1500):
            # Uneven sizes and an uneven order, so that the database moves its rows about.
            words = secret if number % 7 == 0 else f"plain {rng.randrange(200)} {'y' * rng.randrange(60)}"
            times += words != secret
            at_s, visitor = NOW_S - rng.random() * 30 * DAY_S, f"mark {rng.randrange(50)}"
            log.append(slate(number, words, visitor=visitor, at_s=at_s))
            log.append(click(number, visitor=visitor, at_s=at_s))
            if number == 700:
                recorder.ingest_logs()
        recorder.import_queries([(secret, NOW_S, 3)])
        assert b"zebra" in bytes_below(tmp_path)
        subprocess.run([sys.executable, "-c", FORGET, str(tmp_path), secret], check=True, cwd=ROOT)
        left = bytes_below(tmp_path).lower()
        assert b"zebra" not in left
        assert b"embarrassment" not in left
        assert b"plain" in left
        log.append(slate(10_000, "after"))
        recorder.ingest_logs()
        found = EventReader(tmp_path)
        assert {each.words for each in found.iter_searches(0.0)} >= {"after"}
        assert secret not in {each.words for each in found.iter_searches(0.0)}
        assert found.list_imported() == []
        assert sum(count.searches for count in found.list_top_queries(0.0, 9999)) == times + 1


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_forgetting_a_visitor_is_as_if_they_had_never_come(visits: list[tuple[int, int, int]]) -> None:
    """Query counts are those of the other visitors."""

    def counts(rows: list[tuple[int, int, int]], *, forget: bool) -> list[QueryCount]:
        with TemporaryDirectory(dir=MEMORY) as name:
            records: list[LoggedEvent] = []
            for number, (words, hours, who) in enumerate(rows):
                at_s = NOW_S - hours * HOUR_S
                records.append(slate(number, f"words {words}", at_s=at_s, visitor=f"mark {who}"))
                records.append(click(number, at_s=at_s, visitor=f"mark {who}"))
            with book_of(Path(name), *records) as book:
                if forget:
                    book.erase(visitor="mark 0")
            return EventReader(Path(name)).list_top_queries(0.0, 99)

    assert counts(visits, forget=True) == counts([row for row in visits if row[2]], forget=False)


def test_everything_or_what_is_old_can_be_forgotten(tmp_path: Path) -> None:
    """Everything before a moment is deleted with its counts, or everything, including damaged copies."""
    with book_of(tmp_path, slate(1, "older", at_s=NOW_S - DAY_S), slate(2, "newer"), click(2)) as book:
        book.erase(before_s=NOW_S - HOUR_S)
        assert [count.words for count in EventReader(tmp_path).list_top_queries(0.0, 9)] == ["newer"]
        assert b"older" not in bytes_below(tmp_path)
        (tmp_path / "record-damaged-1.db").write_bytes(b"newer")
        assert book.erase(everything=True) > 0
        assert EventReader(tmp_path).read_totals(0.0) == Totals()
        assert b"newer" not in bytes_below(tmp_path)


def test_imported_queries_are_kept_apart(tmp_path: Path) -> None:
    """Importing a file twice changes nothing; imports are not searches, and are deleted on request."""
    rows = [("fox", NOW_S, 2), ("fox", NOW_S, 3), ("hen", NOW_S, 1)]
    with closing(EventStore(tmp_path)) as book:
        assert [book.import_queries(rows) for _ in range(2)] == [2, 2]
        assert EventReader(tmp_path).list_imported() == [("fox", NOW_S, 5), ("hen", NOW_S, 1)]
        assert EventReader(tmp_path).read_totals(0.0) == Totals()
        assert book.delete_imported() == 2
        assert EventReader(tmp_path).list_imported() == []


def test_numbers_over_time_are_thinned_with_age(tmp_path: Path) -> None:
    """The last day is complete; older series have fewer points, however often they are pruned."""
    with closing(EventStore(tmp_path)) as book:
        step_s = 300
        for back in range(40 * 24 * 12):
            if back < 600 or back % 7 == 0:
                book._db.execute("INSERT INTO series VALUES ('pages', ?, ?)", (NOW_S - back * step_s, back))
        for now_s in (NOW_S - DAY_S, NOW_S, NOW_S):
            book.prune(now_s, keep_days=30)
        times = [at_s for at_s, _ in EventReader(tmp_path).read_series("pages", 0.0, 10**6)]
    ages = [(NOW_S - at_s) / DAY_S for at_s in times]
    assert sum(age <= 1 for age in ages) == 24 * 12 + 1
    month = [at_s for at_s, age in zip(times, ages, strict=True) if 1.1 < age < 30]
    assert len({at_s // 600 for at_s in month}) == len(month)
    older = [at_s for at_s, age in zip(times, ages, strict=True) if age > 30.5]
    assert len({at_s // 21_600 for at_s in older}) == len(older) > 30


def test_a_chart_gets_as_many_points_as_it_asked_for(tmp_path: Path) -> None:
    """They are evenly spread over time, however unevenly they were recorded, and include the newest."""
    dense = [NOW_S + number for number in range(1000)]
    sparse = [NOW_S - 1000 * number for number in range(1, 11)]
    with closing(EventStore(tmp_path)) as book:
        for at_s in dense + sparse:
            book.add_points(at_s, {"known": at_s - NOW_S, "waiting": 1.0})
        points = EventReader(tmp_path).read_series("known", 0.0, 11)
        assert len(points) <= 11
        assert points[-1] == (dense[-1], dense[-1] - NOW_S)
        assert len([at_s for at_s, _ in points if at_s < NOW_S]) >= 8
        assert len(EventReader(tmp_path).read_series("known", NOW_S, 5)) == 5
        assert len(EventReader(tmp_path).read_series("known", NOW_S, 1)) == 1
        assert EventReader(tmp_path).read_latest() == {"known": dense[-1] - NOW_S, "waiting": 1.0}
    assert {"known", "waiting", "coverage", "searches_per_h"} <= SERIES.keys()


def test_a_newer_file_is_refused_untouched(tmp_path: Path) -> None:
    """Neither a writer nor a reader accepts an unknown format."""
    EventStore(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / EVENTS_NAME)) as db:
        db.execute("PRAGMA user_version = 99")
    before = (tmp_path / EVENTS_NAME).read_bytes()
    with pytest.raises(StoreNewer, match="newer"):
        EventStore(tmp_path)
    with pytest.raises(StoreNewer):
        EventReader(tmp_path).list_top_queries(0.0, 1)
    assert (tmp_path / EVENTS_NAME).read_bytes() == before


def test_a_damaged_file_is_named_and_moved_aside(tmp_path: Path) -> None:
    """The message says what to do; a new file starts with what the logs still have."""
    log_all(tmp_path, slate(1))
    for number in (1, 2):
        (tmp_path / EVENTS_NAME).write_bytes(b"this is no database" * 500)
        with pytest.raises(StoreCorrupt, match="delete it"):
            EventStore(tmp_path)
        assert EVENTS_FILE.move_aside(tmp_path).name == f"record-damaged-{number}.db"
    with closing(EventStore(tmp_path)) as book:
        assert book.ingest_logs().slates == 1
