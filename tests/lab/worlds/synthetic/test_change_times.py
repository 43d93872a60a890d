"""Births and changes of the synthetic web.

Closed forms agree with counting, and processes have their stated distributions.
"""

from itertools import pairwise
from statistics import fmean, pvariance

import numpy as np
import pytest
from tests.lab.synthetic_pages import edit_times

from vedette.lab.worlds.synthetic.change_times import (
    RHYTHMS,
    START_S,
    BirthSchedule,
    ChangeLaw,
    ChangeProcess,
    edit_state,
    last_event,
)
from vedette.lab.worlds.synthetic.hashing import mix
from vedette.timeutil import DAY_S, HOUR_S, WEEK_S


def births(rhythm: str = "press") -> BirthSchedule:
    """Return a site with fifty initial pages and about twenty births a day."""
    return BirthSchedule(mix(5), 50, 400 * DAY_S, 1.5, 20 / DAY_S, RHYTHMS[rhythm])


@pytest.mark.parametrize("rhythm", RHYTHMS)
def test_the_number_born_is_the_count_of_births(rhythm: str) -> None:
    """``born`` always equals the number of pages whose birth is not later."""
    site = births(rhythm)
    moments = [site.birth_s(number) for number in range(1000)]
    for now_s in (
        *moments[::37],
        *(moment - 1 for moment in moments[::41]),
        START_S,
        START_S - 1,
        START_S + 3.7 * DAY_S,
    ):
        assert site.count_born(now_s) == sum(moment <= now_s for moment in moments)


def test_births_follow_the_number() -> None:
    """A page with a larger number is never born earlier, and the initial pages are born before the world opens."""
    site = births()
    moments = [site.birth_s(number) for number in range(400)]
    assert all(early <= late for early, late in pairwise(moments))
    assert moments[49] < START_S <= moments[50]


def test_births_keep_the_working_week() -> None:
    """With office hours, a weekday has several times as many births as a Sunday, and noon more than midnight."""
    moments = [births("office").birth_s(number) - START_S for number in range(50, 4000)]
    by_day = np.bincount([int(moment % WEEK_S // DAY_S) for moment in moments], minlength=7)
    by_hour = np.bincount([int(moment % DAY_S // HOUR_S) for moment in moments], minlength=24)
    assert by_day[1] > 3 * by_day[6]
    assert by_hour[10] > 3 * by_hour[2]


def test_births_come_in_no_even_beat() -> None:
    """Gaps between births vary like those of a Poisson process, whose standard deviation equals their mean."""
    moments = [births().rhythm.clock_at(births().birth_s(number) - START_S) for number in range(50, 2050)]
    gaps = [late - early for early, late in pairwise(moments)]
    assert 0.8 < pvariance(gaps) ** 0.5 / fmean(gaps) < 1.2


@pytest.mark.parametrize("law", ["poisson", "working"])
def test_scattered_changes_count_like_poisson(law: ChangeLaw) -> None:
    """Over whole weeks, the number of changes of many pages has mean and variance near rate times duration."""
    rate_per_s, duration_s = 0.7 / DAY_S, 4 * WEEK_S
    expected = rate_per_s * duration_s
    processes = [ChangeProcess(law, mix(page), rate_per_s) for page in range(2000)]
    counts = [sum(1 for _ in edit_times(process, START_S, START_S + duration_s)) for process in processes]
    assert fmean(counts) == pytest.approx(expected, rel=0.03)
    assert pvariance(counts) == pytest.approx(expected, rel=0.12)


def test_changes_by_the_working_week_spare_sunday() -> None:
    """A process of the working week changes far more on Tuesdays than on Sundays."""
    moments = [
        moment - START_S
        for page in range(200)
        for moment in edit_times(ChangeProcess("working", mix(page), 1 / DAY_S), START_S, START_S + 4 * WEEK_S)
    ]
    by_day = np.bincount([int(moment % WEEK_S // DAY_S) for moment in moments], minlength=7)
    assert by_day[1] > 3 * by_day[6]


@pytest.mark.parametrize("law", ["poisson", "working", "periodic"])
def test_what_is_shown_changes_exactly_at_the_changes(law: ChangeLaw) -> None:
    """Between two listed changes, the page shows the same edits; at each change, exactly one group differs."""
    process, birth_s = ChangeProcess(law, mix(99), 2 / DAY_S), START_S - 3 * DAY_S
    moments = list(edit_times(process, birth_s, START_S + 20 * DAY_S))
    assert len(moments) > 20
    states = [edit_state(process, birth_s, moment + 0.01) for moment in moments]
    later = [edit_state(process, birth_s, moment - 0.01) for moment in moments[1:]]
    assert [state.shown for state in states[:-1]] == [state.shown for state in later]
    assert [state.last_s for state in states] == pytest.approx(moments)
    for before, after in pairwise(states):
        assert sum(old != new for old, new in zip(before.shown, after.shown, strict=True)) == 1


def test_a_newborn_shows_no_edit() -> None:
    """A page has no edits at birth, even if its process had events before."""
    for law in ("never", "poisson", "working", "periodic"):
        state = edit_state(ChangeProcess(law, mix(3), 5 / DAY_S), START_S + 100, START_S + 100)
        assert (state.last_s, set(state.shown)) == (START_S + 100, {0})


def test_a_periodic_page_changes_every_period() -> None:
    """A daily page changes once a day, always in the same hour."""
    moments = list(edit_times(ChangeProcess("periodic", mix(8), 1 / DAY_S), START_S, START_S + 30 * DAY_S))
    assert len(moments) == 30
    assert [late - early for early, late in pairwise(moments)] == pytest.approx([DAY_S] * 29)


def test_the_latest_event_is_the_last_of_the_list() -> None:
    """``last_event`` is the last of all listed events."""
    process = ChangeProcess("poisson", mix(21), 1 / DAY_S)
    for days in range(1, 60):
        now_s = START_S + days * DAY_S
        *_, last_s = edit_times(process, START_S - 40 * DAY_S, now_s)
        assert last_event(process, now_s)[0] == pytest.approx(last_s)
