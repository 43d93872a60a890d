"""Costs of remote observation: the paper's equations agree with each other, and links can be fitted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.fetch.observers.assignment import HostCosts, assign_hosts, choose_place, find_best_assignment, sum_cost_s
from vedette.fetch.observers.costs import (
    Link,
    LinkMeter,
    Task,
    compute_direct_s,
    compute_relative_time,
    compute_remote_s,
    find_break_even,
)

speeds = st.floats(1e-9, 1e-5)
shares = st.floats(0.0, 1.0)


@given(speeds, speeds, speeds, st.floats(1e3, 1e7), shares, shares, st.integers(1, 1000))
def test_without_latencies_eq_43_decides_as_41_and_42(
    direct: float, home: float, site: float, size: float, gamma: float, eta: float, count: int
) -> None:
    """The relative time (43) is t2 / t1, so it is below 1 exactly if remote observation is faster."""
    home_site, home_observer, observer_site = Link(0.0, direct), Link(0.0, home), Link(0.0, site)
    task = Task(size, gamma, eta, 0.1)
    ratio = compute_relative_time(count, home_site, home_observer, observer_site, task)
    t1 = compute_direct_s(count, home_site, size)
    t2 = compute_remote_s(count, home_observer, observer_site, task)
    assert ratio == pytest.approx(t2 / t1)


@given(st.floats(0.0, 0.5), speeds, st.floats(0.0, 0.5), speeds, st.floats(1e3, 1e6), shares)
def test_both_ways_take_equally_long_at_the_break_even(
    near_s: float, near: float, far_s: float, far: float, size: float, gamma: float
) -> None:
    """At the number of observations where remote observation starts to pay off, t1 and t2 are equal."""
    home_site, observer_site, task = Link(far_s, far), Link(near_s, near), Task(size, gamma, 0.2, 0.5)
    count = find_break_even(home_site, home_site, observer_site, task)
    if count < 1e9:
        remote_s = compute_remote_s(count, home_site, observer_site, task)
        assert remote_s == pytest.approx(compute_direct_s(count, home_site, size), rel=1e-6)


@given(st.lists(st.tuples(st.floats(1e2, 1e6), st.floats(0.0, 30.0)), max_size=60))
def test_a_fitted_link_is_never_negative(seen: list[tuple[float, float]]) -> None:
    """For any measurements, latency, seconds per byte and estimates are not negative."""
    meter = LinkMeter()
    for size, took_s in seen:
        meter = meter.add(size, took_s)
    link = meter.fit()
    assert link is None or (link.latency_s >= 0 and link.per_byte_s >= 0)
    assert meter.estimate_s(1000) >= 0


def test_noise_does_not_make_a_host_flap() -> None:
    """A host only moves for a clear saving, and not again for hours, even if the measurements are reversed."""
    host = HostCosts("a.test", {"": 1.0, "tokyo": 0.5}, place="", since_s=0.0)
    moved = choose_place(host, 1e6)
    assert moved == "tokyo"
    for home_s in (0.45, 0.55, 0.41):
        noisy = HostCosts("a.test", {"": home_s, "tokyo": 0.5}, place="tokyo", since_s=0.0)
        assert choose_place(noisy, 1e6) == "tokyo"
    turned = HostCosts("a.test", {"": 0.1, "tokyo": 0.5}, place="tokyo", since_s=1e6 - 60)
    assert choose_place(turned, 1e6) == "tokyo"
    assert choose_place(turned._replace(since_s=0.0), 1e6) == ""


@given(
    st.lists(st.tuples(st.floats(0.1, 5.0), st.floats(0.01, 5.0), st.floats(0.01, 5.0)), min_size=1, max_size=5),
    st.floats(0.0, 5.0),
)
def test_greedy_assignment_respects_room_and_never_beats_the_best(
    seconds: list[tuple[float, float, float]], room: float
) -> None:
    """No observer gets more than it has room for; trying everything is never worse than the greedy rule."""
    hosts = [HostCosts(f"h{n}", {"": home, "x": x, "y": y}) for n, (home, x, y) in enumerate(seconds)]
    places = assign_hosts(hosts, {"x": room, "y": room}, 1e6)
    for name in ("x", "y"):
        assert sum(host.seconds[name] for host in hosts if places[host.name] == name) <= room + 1e-9
    best = find_best_assignment(hosts, {"x": room, "y": room})
    assert sum_cost_s(hosts, best) <= sum_cost_s(hosts, places) + 1e-9
