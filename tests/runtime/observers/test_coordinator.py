"""Observers in the coordinator: which hosts may go to an observer by their costs, and which stay together."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.runtime.push.push_setup import Bench

from vedette.adapters.observers.registry import ObserverRow
from vedette.engine.messages import FetchReport, FetchSuccess, FetchTask
from vedette.errors import UsageError
from vedette.model import Site
from vedette.runtime.observers.coordinator import ObserverReservations

SITES = (
    *(Site(f"https://{name}.example/") for name in ("a", "b", "c", "d", "shared")),
    Site("https://secret.example/", secrets="env:SECRET"),
    Site("https://inside.example/", allow_private=True),
)
ADDRESSES = {"secret.example": "192.0.2.9", "shared.example": "192.0.2.9"}
HUB = 1


class Scene:
    """A coordinator with measured hosts, each at its own address unless said otherwise, and two observers."""

    def __init__(self) -> None:
        self.bench = Bench(sites=SITES)
        self.observers = ObserverReservations(self.bench.state, self.bench.drive.keeper, HUB)
        self.registry = self.observers._registry
        for name in ("lima", "tokyo"):
            self.registry.save_observer(ObserverRow(name, 1, is_auto=name == "tokyo"))
        self.observers.apply(0.0)
        for number, site in enumerate(SITES):
            host = site.start.split("/")[2]
            self.bench.drive.keeper.host_table.get(host).address = ADDRESSES.get(host, f"192.0.2.{100 + number}")
            self.measure(host)

    def measure(self, host: str, worker: int = 0) -> None:
        """Five fetches by a fetcher."""
        task = FetchTask(1, host, f"https://{host}/", "page")
        results = [
            FetchSuccess(task, 200, 0.0, 1.0, (), body_bytes=1_000 * n, connection_s=1.0 + n) for n in range(1, 6)
        ]
        self.observers.measure(worker, FetchReport(1, tuple(results), (), ()))

    def ask(self, what: str, **more: object) -> Mapping[str, Any]:
        """Ask as the hub does."""
        return self.observers.handle(5.0, what, **more)

    def candidates(self) -> list[str]:
        """The hosts that an observer may get."""
        return sorted(self.ask("candidates")["hosts"])

    def places(self) -> dict[str, str]:
        """Who observes what."""
        return {row.host: row.observer for row in self.registry.list_hosts()}


def test_private_hosts_and_those_of_operators_are_no_candidates() -> None:
    """Nor is a host that shares an address with one of them, or one that no one fetched from home."""
    scene = Scene()
    assert scene.candidates() == ["a.example", "b.example", "c.example", "d.example"]
    scene.registry.assign(["a.example"], "lima", 1.0, "by hand", by_hand=True)
    scene.registry.assign(["b.example"], "", 1.0, "by hand", by_hand=True)
    assert scene.candidates() == ["c.example", "d.example"]
    scene.bench.drive.keeper.host_table.get("d.example").address = "192.0.2.101"  # that of b.example
    assert scene.candidates() == ["c.example"]
    scene.bench.drive.keeper.host_table.get("e.example").address = "192.0.2.99"
    scene.measure("e.example", worker=HUB)
    assert scene.candidates() == ["c.example"]


def test_a_host_that_went_home_by_its_costs_is_a_candidate_since_then() -> None:
    """It may be tried by another observer, but not at once."""
    scene = Scene()
    scene.ask("assign", hosts=["a.example"], observer="tokyo", why="on trial")
    assert scene.candidates() == ["b.example", "c.example", "d.example"]
    scene.ask("assign", hosts=["a.example"], observer="", why="slower")
    scene.ask("released", hosts=["a.example"])
    assert scene.places() == {}
    found = scene.registry.find_host("a.example")
    assert found is not None
    assert (found.observer, found.why) == ("", "slower")
    assert scene.ask("candidates")["hosts"]["a.example"][1] == 5.0


def test_hosts_at_one_address_are_assigned_together() -> None:
    """Two processes must not request the same address."""
    scene = Scene()
    scene.bench.drive.keeper.host_table.get("b.example").address = "192.0.2.100"  # that of a.example
    scene.ask("assign", hosts=["a.example"], observer="tokyo", why="on trial")
    assert scene.places() == {"a.example": "tokyo", "b.example": "tokyo"}


@pytest.mark.parametrize("other", ["secret.example", "b.example"])
def test_a_host_that_turns_out_to_share_an_address_goes_home(other: str) -> None:
    """If the other one must stay where it is; unless an operator assigned the host itself."""
    scene = Scene()
    scene.registry.assign(["b.example"], "", 1.0, "by hand", by_hand=True)
    address = scene.bench.drive.keeper.host_table.get(other).address
    told: dict[str, object] = {"host": "a.example", "observer": "tokyo", "address": address, "others": []}
    scene.ask("assign", hosts=["a.example"], observer="tokyo", why="on trial")
    scene.ask("colocate", **told)
    row = scene.registry.find_host("a.example")
    assert row is not None
    assert row.next == ""
    assert other in row.why
    scene.registry.assign(["a.example"], "tokyo", 1.0, "by hand", by_hand=True)
    scene.ask("colocate", **told)
    assert scene.places()[other] == "tokyo"


def test_an_unknown_request_is_refused() -> None:
    """The hub of a newer version may ask for what this one does not know."""
    with pytest.raises(UsageError, match="restart"):
        Scene().ask("dance")
