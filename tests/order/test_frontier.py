"""The frontier's promises, one by one; ``properties/test_frontier_properties`` holds all of them against a model."""

from math import inf

import pytest

from vedette.order.frontier import Frontier, Taken

PLACE, ELSEWHERE = "192.0.2.1", "192.0.2.2"


def opened(*hosts: str, address: str = PLACE, ready_s: float = 0.0) -> Frontier[str]:
    """A frontier with these hosts at one address."""
    frontier = Frontier[str]()
    for host in hosts:
        frontier.open(host, address, ready_s)
    return frontier


def taken_from(frontier: Frontier[str], now_s: float) -> str | None:
    """What is taken, without its host."""
    taken = frontier.take(now_s)
    return taken.item if taken else None


def test_an_empty_frontier_has_nothing_and_waits_for_nothing() -> None:
    """With no host, or a host without things, there is neither something to take nor a time to wait for."""
    frontier = opened("a")
    assert (frontier.take(1e9), frontier.next_s(), len(frontier)) == (None, None, 0)


def test_the_best_comes_first_and_equals_come_in_their_order() -> None:
    """Within a host worth decides; among equals, whoever was added first."""
    frontier = opened("a")
    for item, worth in (("second", 1.0), ("third", 1.0), ("first", 2.0), ("last", -1.0)):
        frontier.add("a", item, worth)
    order: list[str | None] = []
    while frontier:
        order.append(taken_from(frontier, 0.0))
        frontier.done("a", 0.0, 0.0)
    assert order == ["first", "second", "third", "last"]


def test_a_host_is_asked_for_one_thing_at_a_time() -> None:
    """While a thing is out, nothing else of the host is taken, however long it takes."""
    frontier = opened("a")
    frontier.add("a", "one", 1.0)
    frontier.add("a", "two", 1.0)
    assert taken_from(frontier, 0.0) == "one"
    assert (frontier.take(1e9), frontier.next_s(), frontier.busy) == (None, None, 1)


def test_hosts_at_one_address_take_turns() -> None:
    """What is out for one host blocks the others at its address, and they are served in the order of their times."""
    frontier = opened("a", "b", "c")
    for host in ("b", "c", "a"):
        frontier.add(host, host, 1.0)
    assert taken_from(frontier, 0.0) == "b"
    assert frontier.take(5.0) is None
    frontier.done("b", 5.0, 6.0)
    assert (taken_from(frontier, 5.9), frontier.next_s()) == (None, 6.0)
    assert taken_from(frontier, 6.0) == "c"


def test_other_addresses_go_on() -> None:
    """A busy or resting address costs hosts elsewhere nothing."""
    frontier = opened("a", "b")
    frontier.open("far", ELSEWHERE, 0.0)
    for host in ("a", "b", "far"):
        frontier.add(host, host, 1.0)
    assert taken_from(frontier, 0.0) == "a"
    assert taken_from(frontier, 0.0) == "far"


def test_a_host_that_joins_the_line_late_is_served_late() -> None:
    """However short its own rest, a host does not overtake one that already waits for the address."""
    frontier = opened("quick", "patient")
    for number in range(9):
        frontier.add("quick", f"quick {number}", 1.0)
    frontier.add("patient", "patient", 1.0)
    assert (taken_from(frontier, 0.0), frontier.take(0.0)) == ("quick 0", None)
    frontier.done("quick", 0.0, 1.0)
    assert taken_from(frontier, 1.0) == "patient"


def test_a_thing_put_back_waits_and_its_host_goes_on() -> None:
    """What may not be asked for yet returns at its time; the rest of the queue is not kept waiting by it."""
    frontier = opened("a")
    frontier.add("a", "later", 2.0)
    frontier.add("a", "now", 1.0)
    later = frontier.take(0.0)
    assert later == Taken("a", "later")
    frontier.put_back(later, 2.0, ready_s=60.0)
    assert (len(frontier), frontier.waiting("a"), frontier.busy) == (2, 2, 0)
    assert taken_from(frontier, 0.0) == "now"
    frontier.done("a", 1.0, 1.0)
    assert (taken_from(frontier, 59.9), frontier.next_s()) == (None, 60.0)
    assert taken_from(frontier, 60.0) == "later"


def test_a_thing_that_comes_back_obeys_its_host() -> None:
    """Its own time is a lower bound: the host's rest still counts."""
    frontier = opened("a")
    frontier.add("a", "early", 2.0)
    frontier.add("a", "other", 1.0)
    early = frontier.take(0.0)
    assert early is not None
    frontier.put_back(early, 2.0, ready_s=1.0)
    assert taken_from(frontier, 0.0) == "other"
    frontier.done("a", 30.0, 0.0)
    assert taken_from(frontier, 29.0) is None
    assert taken_from(frontier, 30.0) == "early"


def test_a_dropped_thing_costs_its_host_no_time() -> None:
    """Nothing was asked, so the next thing may be taken at once, and the dropped one never returns."""
    frontier = opened("a")
    frontier.add("a", "unwanted", 2.0)
    frontier.add("a", "wanted", 1.0)
    unwanted = frontier.take(0.0)
    assert unwanted is not None
    frontier.drop(unwanted)
    assert taken_from(frontier, 0.0) == "wanted"
    frontier.done("a", 0.0, 0.0)
    assert (frontier.take(1e9), len(frontier), frontier.next_s()) == (None, 0, None)


def test_a_held_host_waits_for_its_release() -> None:
    """Neither time nor new things of finite worth free a held host; release does, from its time on."""
    frontier = opened("a")
    frontier.add("a", "one", 1.0)
    frontier.take(0.0)
    frontier.add("a", "two", 1.0)
    frontier.done("a", 1.0, 1.0, hold=True)
    frontier.add("a", "three", 1e300)
    assert (frontier.take(1e9), frontier.next_s()) == (None, None)
    frontier.release("a", 50.0)
    assert (taken_from(frontier, 49.0), frontier.next_s()) == (None, 50.0)
    assert taken_from(frontier, 50.0) == "three"


def test_a_release_never_shortens_a_rest() -> None:
    """A host that was told to rest until a time rests until then, even if it is released earlier."""
    frontier = opened("a")
    frontier.add("a", "one", 1.0)
    frontier.take(0.0)
    frontier.add("a", "two", 1.0)
    frontier.done("a", 100.0, 0.0, hold=True)
    frontier.release("a", 5.0)
    assert (frontier.take(99.0), frontier.next_s()) == (None, 100.0)


@pytest.mark.parametrize("standing", ["idle", "timed", "in line", "busy"])
def test_release_means_nothing_to_a_host_that_is_not_held(standing: str) -> None:
    """Only a held host is released; any other keeps its time."""
    frontier = opened("first", "a")
    if standing == "in line":
        frontier.add("first", "x", 1.0)
        frontier.take(0.0)
    if standing != "idle":
        frontier.add("a", "thing", 1.0)
    if standing in {"in line", "busy"}:
        frontier.take(0.0)
    before = frontier.standings(), frontier.next_s()
    assert standing in before[0]
    frontier.release("a", 1000.0)
    frontier.release("unheard of", 1000.0)
    assert (frontier.standings(), frontier.next_s()) == before


def test_an_urgent_thing_passes_a_hold() -> None:
    """Infinite worth gets through, politely, before the hold and after it; the rest stays held."""
    frontier = opened("a")
    frontier.add("a", "first", 1.0)
    frontier.take(0.0)
    frontier.add("a", "page", 1.0)
    frontier.add("a", "urgent", inf)
    frontier.done("a", 3.0, 0.0, hold=True)
    assert (frontier.take(2.9), taken_from(frontier, 3.0)) == (None, "urgent")
    frontier.done("a", 6.0, 0.0, hold=True)
    assert frontier.take(1e9) is None
    frontier.add("a", "urgent too", inf)
    assert taken_from(frontier, 6.0) == "urgent too"
    frontier.done("a", 9.0, 0.0)
    assert taken_from(frontier, 9.0) == "page"


def test_a_release_for_later_reaches_a_host_that_stands_in_line() -> None:
    """Held, with something urgent, in line for its address: its longer rest counts, and others do not wait for it."""
    frontier = opened("a", "b", "c")
    frontier.add("a", "asked", 1.0)
    frontier.take(0.0)
    frontier.add("a", "urgent", inf)
    frontier.done("a", 1.0, 0.0, hold=True)
    frontier.add("b", "b", 1.0)
    frontier.take(0.0)
    assert frontier.take(2.0) is None
    frontier.add("c", "c", 1.0)
    frontier.release("a", 10.0)
    frontier.done("b", 99.0, 3.0)
    assert (taken_from(frontier, 3.0), frontier.take(9.0)) == ("c", None)
    frontier.done("c", 99.0, 9.0)
    assert (frontier.take(9.9), taken_from(frontier, 10.0)) == (None, "urgent")


def test_misuse_is_told_at_once() -> None:
    """Ending what was not begun, or opening a host twice, would lose things silently; it is refused."""
    frontier = opened("a")
    with pytest.raises(AssertionError, match="nothing out"):
        frontier.done("a", 0.0, 0.0)
    with pytest.raises(AssertionError, match="open already"):
        frontier.open("a", ELSEWHERE, 0.0)
