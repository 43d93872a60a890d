"""The coordinator's start after the clock was set back, even if it is killed right afterwards."""

from dataclasses import replace
from pathlib import Path

from vedette.adapters.clock import Clock, real_clock
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.config import Config
from vedette.engine.ports import HostRow
from vedette.fetch.robots.state import UNKNOWN, RobotsResponse, apply_event
from vedette.model import Origin
from vedette.runtime.processes.coordinator import CoordinatorProcess, build_process
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.timeutil import HOUR_S

HOST = "www.example.org"
ORIGIN = Origin("http", HOST, 80)


def start(folder: Path, clock: Clock) -> CoordinatorProcess:
    """Start a coordinator on a folder as far as restoring its state."""
    settings = RuntimeSettings(Config(), clock, folder, "test", forever=True)
    process = build_process(settings, open_state(folder, "test", clock.wall_now()))
    process._restore()
    return process


def test_a_clock_that_was_set_back_by_less_than_the_crawl_was_down_is_noticed(tmp_path: Path) -> None:
    """Time seems to have advanced, but the time since boot reveals the step, and it does not delay hosts."""
    clock = real_clock()
    assert read_robots_left_s(tmp_path / "same", clock.describe_boot(), clock) > 22 * HOUR_S
    back = replace(clock, ahead_s=clock.ahead_s - 2 * HOUR_S)
    assert read_robots_left_s(tmp_path / "back", clock.describe_boot(), back) <= 0
    other = f"another-boot {clock.describe_boot().partition(' ')[2]}"
    assert read_robots_left_s(tmp_path / "restarted", other, clock) <= 0


def read_robots_left_s(folder: Path, boot: str, clock: Clock) -> float:
    """Return how long a robots.txt is valid after a start; by the clock, it was read an hour before."""
    with lock_folder(folder):
        state = open_state(folder, "test", clock.now())
        answer = RobotsResponse(clock.now() - HOUR_S, 200, b"User-agent: *\n", 0, ())
        state.store.save_robots(ORIGIN, apply_event(UNKNOWN, answer, "vedette"))
        state.store.set_value("clock_s", repr(clock.now() - HOUR_S / 2))
        state.store.set_value("boot", boot)
        state.close(clean=True)
        process = start(folder, clock)
        robots = process.state.store.get_robots(ORIGIN)
        process.state.db.close()
        process._listener.close()
    assert robots is not None
    return robots.until_s - clock.now()


def test_a_kill_after_a_clock_step_does_not_undo_what_was_adjusted(tmp_path: Path) -> None:
    """The clock is set back six hours.

    Robots.txt expires, and hosts wait for the remaining time, at every later start.
    """
    clock, folder = real_clock(), tmp_path / "data"
    with lock_folder(folder):
        now_s = clock.now()
        state = open_state(folder, "test", now_s)
        ahead_s = now_s + 6 * HOUR_S
        state.urls.intern_hosts([HOST])
        state.store.save_hosts([HostRow(HOST, ahead_s + 60.0, 0, "")])
        answer = RobotsResponse(ahead_s - HOUR_S, 200, b"User-agent: *\nDisallow: /private/\n", 0, ())
        state.store.save_robots(ORIGIN, apply_event(UNKNOWN, answer, "vedette"))
        state.store.set_value("clock_s", repr(ahead_s))
        state.close(clean=True)
        for _ in range(2):
            process = start(folder, clock)
            left_s = process.coordinator.hosts[HOST].ready_s - clock.now()
            assert 0 < left_s <= 60.0
            robots = process.state.store.get_robots(ORIGIN)
            assert robots is not None
            assert robots.until_s <= clock.now()
            process.state.db.close()  # as a kill would
            process._listener.close()
