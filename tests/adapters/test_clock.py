"""World time: independent processes with the same clock value agree."""

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.clock import Clock, parse_clock, real_clock, start_clock
from vedette.errors import UsageError

TIMES = st.floats(min_value=0.0, max_value=4e9)
SPEEDS = st.floats(min_value=1e-3, max_value=1e6)

ECHO = """
import sys
from vedette.adapters.clock import parse_clock
clock = parse_clock(sys.argv[1])
for line in sys.stdin:
    print(repr(clock.now()), flush=True)
"""


def test_two_processes_agree_at_high_speed() -> None:
    """The other's reading is always between the two readings taken around it."""
    clock = start_clock(1e9, 1000.0)
    command = [sys.executable, "-c", ECHO, str(clock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        for _ in range(200):
            before_s = clock.now()
            other.stdin.write("?\n")
            other.stdin.flush()
            theirs_s = float(other.stdout.readline())
            assert before_s <= theirs_s <= clock.now()


def test_three_numbers_suffice_to_agree_within_a_tenth_of_a_millisecond() -> None:
    """Separately created clocks differ only by how closely both system clocks can be read together."""
    first, second = Clock(5.0, 7.0, 2.0), Clock(5.0, 7.0, 2.0)
    assert first.to_world_s(100.0) == second.to_world_s(100.0)
    assert abs(first.ahead_s - second.ahead_s) < 1e-4


def test_real_clock_is_unix_time() -> None:
    """World and wall time are the system's time."""
    clock = real_clock()
    before_s = time.time()
    now_s = clock.now()
    assert now_s == pytest.approx(before_s, abs=5.0)
    assert clock.to_world_s(now_s) == now_s


def test_a_started_clock_opens_the_world_now() -> None:
    """World time begins at the world's start and only moves forward."""
    clock = start_clock(1e9, 60.0)
    first_s, second_s = clock.now(), clock.now()
    assert 1e9 <= first_s <= second_s


@given(TIMES, TIMES, SPEEDS, TIMES)
def test_text_of_a_clock_gives_the_same_clock(wall_s: float, world_s: float, speed: float, ahead_s: float) -> None:
    """No digit is lost when it is sent to another process."""
    clock = Clock(wall_s, world_s, speed, ahead_s)
    assert parse_clock(str(clock)) == clock


@given(TIMES, SPEEDS, st.floats(min_value=0.0, max_value=1e6))
def test_delays_and_times_follow_the_same_speed(start_s: float, speed: float, delay_s: float) -> None:
    """Waiting the wall delay of some world seconds lets that many of them pass."""
    clock = Clock(0.0, start_s, speed, 0.0)
    assert clock.to_world_s(clock.to_wall_s(delay_s)) - start_s == pytest.approx(delay_s, rel=1e-9, abs=1e-5)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_time_runs_forward_or_is_refused(speed: float) -> None:
    """An invalid speed is a usage error."""
    with pytest.raises(UsageError, match="speed"):
        Clock(0.0, 0.0, speed)


@pytest.mark.parametrize("text", ["", "1,2,3", "1,2,3,4,5", "a,b,c,d", "1,2,0,4"])
def test_text_that_is_no_clock_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(UsageError):
        parse_clock(text)
