"""The frontier's guarantees, one by one; ``properties/test_frontier_properties`` compares all of them with a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.frontier.back_queues import FAIR_TURN, Frontier

PLACE, ELSEWHERE = "192.0.2.1", "192.0.2.2"


def opened(*hosts: str, address: str = PLACE, ready_s: float = 0.0) -> Frontier[str]:
    """Return a frontier with these hosts at one address."""
    frontier = Frontier[str]()
    for host in hosts:
        frontier.open_host(host, address, ready_s)
    return frontier


def take_item(frontier: Frontier[str], now_s: float) -> str | None:
    """Return the taken item, without its host."""
    taken = frontier.take(now_s)
    return taken.item if taken else None


def test_an_empty_frontier_has_nothing_and_waits_for_nothing() -> None:
    """Without a host, or with empty hosts, there is nothing to take and no time to wait for."""
    frontier = opened("a")
    assert (frontier.take(1e9), frontier.peek_next_s(), len(frontier)) == (None, None, 0)


def test_the_best_comes_first_and_equals_come_in_their_order() -> None:
    """Within a host, the highest worth comes first, and equal ones in their order."""
    frontier = opened("a")
    for item, worth in (("second", 1.0), ("third", 1.0), ("first", 2.0), ("last", -1.0)):
        frontier.add("a", item, worth)
    order: list[str | None] = []
    while frontier:
        order.append(take_item(frontier, 0.0))
        frontier.complete("a", 0.0, 0.0)
    assert order == ["first", "second", "third", "last"]


def test_a_host_is_asked_for_one_thing_at_a_time() -> None:
    """While an item is in flight, nothing else of its host is taken, however long it takes."""
    frontier = opened("a")
    frontier.add("a", "one", 1.0)
    frontier.add("a", "two", 1.0)
    assert take_item(frontier, 0.0) == "one"
    assert (frontier.take(1e9), frontier.peek_next_s(), frontier.busy) == (None, None, 1)


def test_hosts_at_one_address_take_turns() -> None:
    """A request in flight blocks other hosts at its address, and they are served in order of their times."""
    frontier = opened("a", "b", "c")
    for host in ("b", "c", "a"):
        frontier.add(host, host, 1.0)
    assert take_item(frontier, 0.0) == "b"
    assert frontier.take(5.0) is None
    frontier.complete("b", 5.0, 6.0)
    assert (take_item(frontier, 5.9), frontier.peek_next_s()) == (None, 6.0)
    assert take_item(frontier, 6.0) == "c"


def test_other_addresses_go_on() -> None:
    """A busy or waiting address doesn't delay hosts elsewhere."""
    frontier = opened("a", "b")
    frontier.open_host("far", ELSEWHERE, 0.0)
    for host in ("a", "b", "far"):
        frontier.add(host, host, 1.0)
    assert take_item(frontier, 0.0) == "a"
    assert take_item(frontier, 0.0) == "far"


def test_a_host_that_joins_the_line_late_is_served_late() -> None:
    """However short its own delay, a host doesn't overtake one that already waits for the address."""
    frontier = opened("quick", "patient")
    for number in range(9):
        frontier.add("quick", f"quick {number}", 1.0)
    frontier.add("patient", "patient", 1.0)
    assert (take_item(frontier, 0.0), frontier.take(0.0)) == ("quick 0", None)
    frontier.complete("quick", 0.0, 1.0)
    assert take_item(frontier, 1.0) == "patient"


def test_a_dropped_thing_costs_its_host_no_time() -> None:
    """Nothing was requested, so the next item may be taken immediately, and the dropped one never returns."""
    frontier = opened("a")
    frontier.add("a", "unwanted", 2.0)
    frontier.add("a", "wanted", 1.0)
    unwanted = frontier.take(0.0)
    assert unwanted is not None
    frontier.drop(unwanted)
    assert take_item(frontier, 0.0) == "wanted"
    frontier.complete("a", 0.0, 0.0)
    assert (frontier.take(1e9), len(frontier), frontier.peek_next_s()) == (None, 0, None)


def test_a_rest_that_is_told_later_counts() -> None:
    """A later time applies to a host that is scheduled, in line or busy; an earlier one is ignored."""
    frontier = opened("a", "b")
    frontier.add("a", "timed", 1.0)
    frontier.delay("a", 10.0)
    frontier.delay("a", 5.0)
    assert (frontier.take(9.9), take_item(frontier, 10.0)) == (None, "timed")
    frontier.add("a", "next", 1.0)
    frontier.delay("a", 30.0)
    frontier.complete("a", 12.0, 12.0)
    assert (frontier.take(29.9), take_item(frontier, 30.0)) == (None, "next")
    frontier.add("b", "in line", 1.0)
    assert frontier.take(31.0) is None
    frontier.delay("b", 50.0)
    frontier.complete("a", 99.0, 32.0)
    assert (frontier.take(49.9), take_item(frontier, 50.0)) == (None, "in line")


def test_a_host_that_rests_longer_lets_the_line_go_on() -> None:
    """A delayed host in line does not make those behind it wait."""
    frontier = opened("first", "resting", "patient")
    for host in ("first", "resting", "patient"):
        frontier.add(host, host, 1.0)
    assert (take_item(frontier, 0.0), frontier.take(1.0)) == ("first", None)
    frontier.delay("resting", 100.0)
    frontier.complete("first", 99.0, 2.0)
    assert take_item(frontier, 2.0) == "patient"


def test_what_is_cleared_is_given_back_best_first() -> None:
    """All waiting items are returned, those in flight stay, and the host can be filled again."""
    frontier = opened("a")
    for item, worth in (("out", 9.0), ("second", 1.0), ("first", 2.0)):
        frontier.add("a", item, worth)
    assert take_item(frontier, 0.0) == "out"
    assert (frontier.clear("a"), len(frontier), frontier.busy) == (["first", "second"], 0, 1)
    frontier.complete("a", 3.0, 3.0)
    assert frontier.take(5.0) is None
    frontier.add("a", "later", 1.0)
    assert take_item(frontier, 5.0) == "later"


def test_a_host_that_was_cleared_in_line_leaves_it() -> None:
    """Those behind it are served, and it is served when it has something again."""
    frontier = opened("first", "cleared", "patient")
    for host in ("first", "cleared", "patient"):
        frontier.add(host, host, 1.0)
    assert (take_item(frontier, 0.0), frontier.take(0.0)) == ("first", None)
    assert frontier.clear("cleared") == ["cleared"]
    frontier.complete("first", 99.0, 1.0)
    assert take_item(frontier, 1.0) == "patient"
    frontier.add("cleared", "again", 1.0)
    frontier.complete("patient", 99.0, 2.0)
    assert take_item(frontier, 2.0) == "again"


def test_a_host_takes_its_rest_along_when_it_moves() -> None:
    """At its new address a host obeys the delays of both, whichever ends later."""
    frontier = opened("a")
    frontier.open_host("there", ELSEWHERE, 0.0)
    frontier.add("there", "there", 1.0)
    frontier.add("a", "here", 1.0)
    assert {take_item(frontier, 0.0), take_item(frontier, 0.0)} == {"here", "there"}
    frontier.complete("a", 20.0, 1.0)
    frontier.move("a", ELSEWHERE, 5.0)
    frontier.add("a", "moved", 1.0)
    assert frontier.take(25.0) is None, "somebody is being asked there"
    frontier.complete("there", 99.0, 30.0)
    assert (frontier.take(29.9), take_item(frontier, 30.0)) == (None, "moved")


def test_a_host_that_moved_away_is_not_served_by_its_old_line() -> None:
    """Its place in the old line is void; otherwise two requests to the new address could be in flight."""
    frontier = opened("first", "a", "behind")
    frontier.open_host("there", ELSEWHERE, 0.0)
    for host in ("first", "a", "behind"):
        frontier.add(host, host, 1.0)
    assert (take_item(frontier, 0.0), frontier.take(0.0)) == ("first", None)
    frontier.clear("a")
    frontier.move("a", ELSEWHERE, 0.0)
    frontier.add("there", "there", 1.0)
    assert take_item(frontier, 0.0) == "there"
    frontier.add("a", "moved", 1.0)
    frontier.complete("first", 99.0, 1.0)
    assert (take_item(frontier, 1.0), frontier.take(1.0)) == ("behind", None)
    frontier.complete("there", 99.0, 2.0)
    assert take_item(frontier, 2.0) == "moved"


def test_where_hosts_outnumber_connections_the_best_that_waits_goes_first() -> None:
    """Of the ready hosts, the one with the best item goes first, even a late one; every fourth turn is the oldest's."""
    frontier = Frontier[str]()
    for number, worth in enumerate((1.0, 5.0, 3.0, 2.0, 4.0)):
        frontier.open_host(f"h{number}", f"192.0.2.{number}", 0.0)
        frontier.add(f"h{number}", f"worth {worth:.0f}", worth)
    assert take_item(frontier, 0.0) == "worth 5"
    frontier.add("h3", "asked for", 9.0)
    assert frontier.peek_next_s() == float("-inf"), "others are ready, whoever has a connection may come at once"
    assert [take_item(frontier, 0.0) for _ in range(4)] == ["asked for", "worth 4", "worth 1", "worth 3"]


@given(st.lists(st.sampled_from([0.0, 1.0, 1.0, 7.0, 1e9]), min_size=1, max_size=12), st.integers(1, 3))
def test_no_ready_host_starves(worths: list[float], addresses: int) -> None:
    """However much the others are worth, and however often they are refilled, each host gets its turn in four rounds.

    There is one connection and no delay, so all hosts are always ready, or only wait for their address.
    """
    frontier = Frontier[int]()
    for host, worth in enumerate(worths):
        frontier.open_host(str(host), f"192.0.2.{host % addresses}", 0.0)
        frontier.add(str(host), host, worth)
    last = dict.fromkeys(range(len(worths)), 0)
    most = FAIR_TURN * (len(worths) + 1)
    for turn in range(1, 5 * most):
        taken = frontier.take(0.0)
        assert taken is not None
        last[taken.item] = turn
        frontier.add(taken.host, taken.item, worths[taken.item])
        frontier.complete(taken.host, 0.0, 0.0)
        assert turn - min(last.values()) <= most


def test_misuse_is_told_at_once() -> None:
    """Completing an item that wasn't taken, or opening a host twice, raises an error, because items would be lost."""
    frontier = opened("a")
    with pytest.raises(AssertionError, match="nothing out"):
        frontier.complete("a", 0.0, 0.0)
    with pytest.raises(AssertionError, match="open already"):
        frontier.open_host("a", ELSEWHERE, 0.0)
    frontier.add("a", "thing", 1.0)
    with pytest.raises(AssertionError, match="things waiting"):
        frontier.move("a", ELSEWHERE, 0.0)
    frontier.take(0.0)
    with pytest.raises(AssertionError, match="something out"):
        frontier.move("a", ELSEWHERE, 0.0)
