"""Simulated visitors with a real server on loopback: their actions arrive there, and errors do not stop them."""

import os
import signal
import subprocess
import sys
import threading
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.tree_runs import patiently, remains
from tests.web.public.sample_pages import HeldPages, result

from vedette.adapters.clock import real_clock
from vedette.cli.demo.command import parse_visitors
from vedette.config import Rate, Serve
from vedette.lab.visitors.habits import Habits
from vedette.lab.visitors.population import VisitorPopulation
from vedette.lab.visitors.traffic import MAX_SEARCHES_PER_S, Tally, run_visitors, start_visitors
from vedette.lab.worlds.synthetic.topics import TOPICS
from vedette.learn.events import ClickEvent, LoggedEvent, SearchEvent
from vedette.web.app import create_app
from vedette.web.public.slates import SearchRecorder
from vedette.web.rendering import Branding
from vedette.web.server import bind, create_server

WAIT_S = 30.0
BRISK = Habits(title_s=0.05, page_s=0.05, typing_s=0.05, max_attraction=1.0)
FAST_PER_S = 50.0  # far more than is let in, so that no one waits for people to come
TITLES = [f"The {thing} of {topic.label}" for topic in TOPICS for thing in topic.things]


class Log(list[LoggedEvent]):
    """A server's log as a list, because only this process reads it."""


@contextmanager
def searchable(log: Log, serve: Serve) -> Iterator[int]:
    """Run the real application over pages on the synthetic web's topics, and yield its port."""
    held = HeldPages(tuple(result(number + 1, title) for number, title in enumerate(TITLES)))
    recording = SearchRecorder(log, b"secret", lambda _day: b"salt", held.now_s)
    listening = bind("127.0.0.1:0")
    server = create_server(create_app(held, serve, Branding(), recording=recording))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        assert not thread.is_alive()


def slates(log: Log) -> dict[str, SearchEvent]:
    """Return the searches of a log."""
    return {record.id: record for record in log if isinstance(record, SearchEvent)}


def events(log: Log, kind: str) -> list[ClickEvent]:
    """Return the events of this kind in a log."""
    return [record for record in log if isinstance(record, ClickEvent) and record.kind == kind]


def ended(further: Iterator[int]) -> bool:
    """Check whether it was called once for each number."""
    return next(further, None) is None


def test_searches_and_events_arrive() -> None:
    """The server logs as many searches, views and clicks as the visitors counted, each for a slate that it showed."""
    log = Log()
    with searchable(log, Serve()) as port:
        tally = run_visitors(
            VisitorPopulation(1, BRISK), port, real_clock(), FAST_PER_S, lambda: len(events(log, "click")) >= 3
        )
    shown = slates(log)
    assert (tally.searches, tally.views, tally.clicks) == (
        len(shown),
        len(events(log, "view")),
        len(events(log, "click")),
    )
    assert tally.refused == 0
    assert all(event.slate in shown for event in (*events(log, "view"), *events(log, "click")))
    for click in events(log, "click"):
        assert click.page in [each.page for each in shown[click.slate].results]
    assert len({record.visitor for record in shown.values()}) > 1


def test_whoever_is_refused_goes_home_and_others_come() -> None:
    """If two people may search twice each, there are further visits, which are refused."""
    log, further = Log(), iter(range(300))
    habits = Habits(people=2, robots=0.0)
    with searchable(log, Serve(rate=Rate(2, 3600.0))) as port:
        tally = run_visitors(
            VisitorPopulation(1, habits), port, real_clock(), FAST_PER_S, lambda: len(log) >= 4 and ended(further)
        )
    assert tally.refused > 0
    assert tally.searches + tally.views + tally.clicks == len(log) == 4


def test_a_server_that_is_away_is_shrugged_off() -> None:
    """If no server is listening, every search fails, and nothing breaks."""
    with bind("127.0.0.1:0") as listening:
        port = listening.getsockname()[1]
    further = iter(range(5))
    tally = run_visitors(VisitorPopulation(1), port, real_clock(), FAST_PER_S, lambda: ended(further), enough_pages=0)
    assert tally.searches == 0
    assert tally.refused > 0


def test_nobody_comes_before_there_is_something_to_find() -> None:
    """A server with too few pages only gets requests for its number of pages."""
    log, further = Log(), iter(range(1))
    with searchable(log, Serve()) as port:
        tally = run_visitors(
            VisitorPopulation(1), port, real_clock(), FAST_PER_S, lambda: ended(further), len(TITLES) + 1
        )
    assert tally == Tally()
    assert log == []


def test_a_process_of_its_own_says_what_it_did() -> None:
    """A child process searches until it is stopped, even by Ctrl-C, and then reports its numbers."""
    log = Log()
    with searchable(log, Serve()) as port, start_visitors(port, real_clock(), FAST_PER_S, seed=2) as visitors:
        patiently(lambda: len(slates(log)) >= 2, WAIT_S)
        visitors.process.send_signal(signal.SIGINT)
        seen = len(slates(log))
        patiently(lambda: len(slates(log)) > seen, WAIT_S)
        tally = visitors.stop()
    assert tally is not None
    assert len(slates(log)) - tally.searches in (0, 1)  # one more where it was stopped before the answer came
    assert remains([visitors.process.pid]) == []


@pytest.mark.parametrize("text", ["-1", "6", "nan", "inf", "many", ""])
def test_how_many_searches_a_demo_may_have(text: str) -> None:
    """None, some, or as many as allowed; anything else is refused, with advice."""
    assert [parse_visitors(number) for number in ("0", "0.5", f"{MAX_SEARCHES_PER_S:g}")] == [
        0.0,
        0.5,
        MAX_SEARCHES_PER_S,
    ]
    with pytest.raises(ArgumentTypeError, match="use 0 to 5"):
        parse_visitors(text)


def test_it_goes_home_at_once_when_nobody_answers() -> None:
    """A server that accepts connections without responding does not keep visitors from reporting."""
    with bind("127.0.0.1:0") as silent, start_visitors(silent.getsockname()[1], real_clock(), FAST_PER_S) as visitors:
        silent.accept()[0].close()
        assert visitors.stop() == Tally()


STARTING = """\
import sys, time
from vedette.adapters.clock import real_clock
from vedette.lab.visitors.traffic import start_visitors
print(start_visitors(1, real_clock(), 1.0).process.pid, flush=True)
time.sleep(60)
"""


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """If its parent is killed, nothing is left."""
    parent = subprocess.Popen([sys.executable, "-c", STARTING], stdout=subprocess.PIPE, cwd=tmp_path)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    patiently(lambda: remains([child]) == [], WAIT_S)
