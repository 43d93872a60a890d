"""Assignments by costs: an observer tries what it could be faster for, and keeps what it is faster for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.observers.desk_setup import HOST, NAME, Desk

from vedette.adapters.crawl_store.data_folder import open_for_write
from vedette.adapters.observers.registry import ObserverRegistry
from vedette.fetch.observers.assignment import HOME, MIN_STAY_S
from vedette.fetch.observers.costs import ChangeMeter, LinkMeter
from vedette.runtime.observers.assignments import MAX_TRIALS, Candidate, Request, judge_hosts
from vedette.runtime.observers.desk import LEASE_S
from vedette.web.commands.commands import AddObserver, AssignHosts, RevokeObserver

OTHER = "other.test"


def measured(base_s: float, per_byte_s: float = 1e-6) -> LinkMeter:
    """A link on which an exchange takes this long, and a bit longer for each byte."""
    meter = LinkMeter()
    for size in (1_000, 20_000, 5_000, 90_000, 40_000):
        meter = meter.add(size, base_s + per_byte_s * size)
    return meter


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk with an observer that may get any host, is heard of, and is 0.2 s away."""
    made = Desk(tmp_path)
    made.command(RevokeObserver(NAME), AddObserver(NAME, is_auto=True))
    made.report(key=made.key(2))
    made.desk.load_assignments()
    made.desk.get_facts(NAME).home = measured(0.2)
    yield made
    made.store.close()


def carry_out(desk: Desk, moved: list[Request], now_s: float) -> None:
    """Assign hosts as the coordinator does; what is recalled is let go of at once."""
    with open_for_write(desk.folder, now_s) as state:
        registry = ObserverRegistry(state.db)
        for one in moved:
            registry.assign(one["hosts"], one["observer"], now_s, one["why"], by_hand=False)
            registry.release(one["hosts"], now_s)
    desk.desk.load_assignments()


def judge(desk: Desk, now_s: float, **hosts: LinkMeter) -> list[Request]:
    """Judge the hosts of observers and these candidates, and carry it out."""
    candidates = {f"{name}.test": Candidate(meter) for name, meter in hosts.items()}
    desk.desk.held_hosts[NAME] = now_s, frozenset()
    with desk.store.open_transaction():
        desk.store.save_contact(desk.store.get_contact(NAME)._replace(heard_s=now_s))
    moved = judge_hosts(desk.desk, candidates, now_s)
    carry_out(desk, moved, now_s)
    return moved


def observe_host(desk: Desk, host: str, site_s: float) -> None:
    """Measure observations of a host that take this long at the site, and hardly ever find a change."""
    facts, changes = desk.desk.get_facts(NAME), ChangeMeter()
    facts.sites[host] = measured(site_s)
    for number in range(20):
        changes = changes.add(30_000, 1_000 * (number == 0), is_changed=number == 0)
    facts.changes[host] = changes


def test_a_slow_host_is_tried_and_kept_if_it_is_faster(desk: Desk) -> None:
    """The reason is the estimate first, then what was measured, and later judgments do not move it again."""
    now_s = desk.settings.clock.now()
    (trial,) = judge(desk, now_s, far=measured(1.5), near=measured(0.01, 0.0))
    assert (trial["hosts"], trial["observer"]) == (["far.test"], NAME)
    assert trial["why"].startswith("on trial")
    observe_host(desk, "far.test", 0.05)
    (kept,) = judge(desk, now_s + 600.0)
    assert kept["observer"] == NAME
    assert "from home when judged (eq. 41, 42)" in kept["why"]
    assert judge(desk, now_s + 10 * MIN_STAY_S) == []


def test_a_host_that_is_not_faster_goes_home_and_is_not_tried_again(desk: Desk) -> None:
    """It stays for a while first, and then the measured costs count, not the estimate."""
    now_s = desk.settings.clock.now()
    judge(desk, now_s, far=measured(1.5))
    observe_host(desk, "far.test", 3.0)
    judge(desk, now_s + 600.0)
    assert desk.desk.assigned["far.test"].observer == NAME
    (moved,) = judge(desk, now_s + MIN_STAY_S + 1.0)
    assert moved["observer"] == HOME
    assert "far.test" not in desk.desk.assigned
    assert judge(desk, now_s + 5 * MIN_STAY_S, far=measured(1.5)) == []


def test_nothing_moves_for_less_than_a_fifth(desk: Desk) -> None:
    """Measurements that drift around the same cost on both sides change nothing."""
    now_s = desk.settings.clock.now()
    judge(desk, now_s, far=measured(1.5))
    observe_host(desk, "far.test", 1.45)
    judge(desk, now_s + 600.0)
    for number, site_s in enumerate((1.3, 1.7, 1.4, 1.75)):
        observe_host(desk, "far.test", site_s)
        assert judge(desk, now_s + (number + 2) * MIN_STAY_S) == []


def test_what_an_operator_assigned_stays(desk: Desk) -> None:
    """A host that is much slower through its observer stays there, if that was chosen by hand."""
    desk.command(AssignHosts((HOST,), NAME))
    desk.desk.load_assignments()
    observe_host(desk, HOST, 9.0)
    desk.desk.get_facts(NAME).direct[HOST] = measured(0.01)
    assert judge(desk, desk.settings.clock.now() + 10 * MIN_STAY_S) == []


def test_only_observers_that_may_have_any_host_try_some(desk: Desk) -> None:
    """Others, and those that were not heard of lately, get what they are assigned by hand."""
    desk.command(AddObserver("kyoto"))
    desk.desk.load_assignments()
    desk.desk.get_facts("kyoto").home = measured(0.001)
    now_s = desk.settings.clock.now()
    desk.desk.held_hosts["kyoto"] = now_s, frozenset()
    (moved,) = judge(desk, now_s, far=measured(1.5))
    assert moved["observer"] == NAME
    desk.desk.held_hosts[NAME] = 0.0, frozenset()
    assert judge_hosts(desk.desk, {OTHER: Candidate(measured(1.5))}, now_s) == []


def test_few_hosts_are_on_trial_at_once(desk: Desk) -> None:
    """Further ones follow when the first are measured."""
    now_s = desk.settings.clock.now()
    hosts = {f"far{number}": measured(1.5 + number) for number in range(2 * MAX_TRIALS)}
    first = judge(desk, now_s, **hosts)
    assert len(first) == MAX_TRIALS
    for one in first:
        observe_host(desk, one["hosts"][0], 0.05)
    judge(desk, now_s + 600.0)
    left = {name: meter for name, meter in hosts.items() if f"{name}.test" not in desk.desk.assigned}
    assert len(judge(desk, now_s + 1_200.0, **left)) == MAX_TRIALS


def test_hosts_at_one_address_stay_together(desk: Desk) -> None:
    """Both go home if they are faster from there together, though one of them is not."""
    now_s = desk.settings.clock.now()
    carry_out(desk, [{"hosts": ["a.test", "b.test"], "observer": NAME, "why": "shares an address"}], now_s)
    facts = desk.desk.get_facts(NAME)
    for host, site_s in (("a.test", 0.05), ("b.test", 9.0)):
        facts.addresses[host] = "192.0.2.7"
        facts.direct[host] = measured(1.5)
        observe_host(desk, host, site_s)
    (moved,) = judge(desk, now_s + 2 * MIN_STAY_S)
    assert (sorted(moved["hosts"]), moved["observer"]) == (["a.test", "b.test"], HOME)


def test_a_host_that_refuses_the_observer_goes_home(desk: Desk) -> None:
    """Some sites serve some countries only; it is not tried again there."""
    now_s = desk.settings.clock.now()
    judge(desk, now_s, far=measured(1.5))
    for status in (200, 403, 403, 0, 403, 503):
        desk.desk.get_facts(NAME).add_answer("far.test", status)
    (moved,) = judge(desk, now_s + 600.0)
    assert moved["observer"] == HOME
    assert judge(desk, now_s + 2 * MIN_STAY_S, far=measured(1.5)) == []


def test_an_observer_that_is_gone_loses_what_it_was_not_given_by_hand(desk: Desk) -> None:
    """Its lease has ended by then."""
    now_s = desk.settings.clock.now()
    judge(desk, now_s, far=measured(1.5))
    desk.command(AssignHosts((OTHER,), NAME))
    desk.desk.load_assignments()
    moved = judge_hosts(desk.desk, {}, now_s + LEASE_S + 60.0)
    assert [(one["hosts"], one["observer"]) for one in moved] == [(["far.test"], HOME)]
