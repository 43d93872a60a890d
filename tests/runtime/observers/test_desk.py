"""The errand desk: reports must be signed, observers only get what they may have, and each errand once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.observers.desk_setup import HOST, NAME, OLD, Desk, observe, stored

from vedette.adapters.observers.wire import encode, sign
from vedette.engine.messages import HostSettings
from vedette.engine.observers.messages import HostPace, Report
from vedette.fetch.credentials import Secrets
from vedette.model import Site
from vedette.web.commands.commands import AddObserver, AssignHosts, RevokeObserver


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk with one observer and one host."""
    made = Desk(tmp_path)
    yield made
    made.store.close()


def test_an_errand_is_given_once_and_its_outcome_taken_once(desk: Desk) -> None:
    """A task is given out once, and its observation is saved once, no matter how often it is reported."""
    desk.take_tasks("/a", "/b")
    first, second = desk.errands()
    assert not desk.errands(held=(first.number, second.number))
    seen = observe(first)
    answered = desk.report(seen, held=(second.number,)).answered
    assert [row.url for row in answered] == [first.url]
    again = desk.report(seen, held=(second.number,))
    assert not again.answered
    assert desk.orders(again).taken == (first.number,)


def test_errands_whose_orders_were_lost_are_sent_again(desk: Desk) -> None:
    """If an observer never got its orders, its next report lists none of the errands, and it gets them again."""
    desk.take_tasks("/a", "/b")
    before = desk.errands()
    assert desk.errands() == before


def test_a_hub_that_was_killed_knows_what_is_out(desk: Desk) -> None:
    """After a restart, the coordinator leases the same URLs again; errands stay out, and outcomes are used."""
    desk.take_tasks("/a", "/b")
    first, second = desk.errands()
    desk.report(observe(first), held=(second.number,))
    desk.desk.tasks.clear()  # what a process forgets
    desk.take_tasks("/a", "/b")
    assert not desk.errands(held=(second.number,))
    assert [row.url for row in desk.store.list_answered()] == [first.url]


def test_replayed_and_forged_reports_are_refused(desk: Desk) -> None:
    """A report that is repeated, changed, signed with another key, or from a revoked observer gets no orders."""
    data = encode(Report(10, 100, True))
    good = sign(desk.key(), "report", NAME, data)
    assert desk.desk.exchange(NAME, good, data).reply["status"] == 200
    assert desk.desk.exchange(NAME, good, data).reply["status"] == 409
    earlier = encode(Report(9, 100, True))
    assert desk.desk.exchange(NAME, sign(desk.key(), "report", NAME, earlier), earlier).reply["status"] == 409
    later = encode(Report(11, 100, True))
    for key in (b"", b"another", desk.key(generation=2)):
        assert desk.desk.exchange(NAME, sign(key, "report", NAME, later), later).reply["status"] == 403
    assert desk.desk.exchange(NAME, sign(desk.key(), "orders", NAME, later), later).reply["status"] == 403
    assert desk.desk.exchange("kyoto", sign(desk.key(), "report", "kyoto", later), later).reply["status"] == 403
    assert desk.desk.exchange(NAME, good, later).reply["status"] == 403
    desk.command(RevokeObserver(NAME))
    assert desk.desk.exchange(NAME, sign(desk.key(), "report", NAME, later), later).reply["status"] == 403


def test_the_key_of_a_revoked_observer_stays_invalid_when_its_name_is_used_again(desk: Desk) -> None:
    """A new enrollment under the same name has another key."""
    old = desk.key()
    desk.command(RevokeObserver(NAME), AddObserver(NAME))
    assert desk.report(key=old).reply["status"] == 403
    assert desk.report(key=desk.key(generation=2)).reply["status"] == 200


def test_reports_that_are_no_reports_are_refused(desk: Desk) -> None:
    """Signed bytes that are not a report, or have impossible numbers, change nothing."""
    bad = [
        b"",
        b"\xc1",
        b"\x93\x01\x02\x03",
        encode(Report(5, -1, True)),
        encode(Report(5, 1, True, last_s=float("inf"))),
    ]
    bad.append(encode(Report(5, 1, True, held=(1 << 63,))))
    for data in bad:
        assert desk.desk.exchange(NAME, sign(desk.key(), "report", NAME, data), data).reply["status"] == 400
    other = encode(Report(5, 1, True, protocol=99))
    reply = desk.desk.exchange(NAME, sign(desk.key(), "report", NAME, other), other).reply
    assert reply["status"] == 400
    assert "version" in str(reply["words"])


def test_outcomes_under_an_earlier_epoch_are_ignored(desk: Desk) -> None:
    """After a host was assigned to another observer, reports by the former one do not count."""
    desk.take_tasks("/a")
    (errand,) = desk.errands()
    desk.command(AddObserver("kyoto"), AssignHosts((HOST,), "kyoto"))
    orders = desk.orders(desk.report(held=(errand.number,)))
    assert orders.recalled == (HOST,)
    assert not orders.errands
    released, _ = desk.desk.release_hosts(0.0)
    assert released == []  # it still has an errand
    seen = observe(errand)
    for lie in (seen._replace(epoch=errand.epoch + 1), seen._replace(number=errand.number + 1)):
        assert not desk.report(lie, held=(errand.number,)).answered
    assert not desk.report(seen._replace(url=f"http://{HOST}/other"), held=(errand.number,)).answered


def test_a_host_goes_on_only_when_its_observer_let_go(desk: Desk) -> None:
    """The next observer gets a host once the current one has returned everything, or after its lease."""
    desk.take_tasks("/a")
    (errand,) = desk.errands()
    desk.command(AssignHosts((HOST,), ""))
    desk.report(held=(errand.number,))
    desk.report(returned=(errand.number,))
    released, _ = desk.desk.release_hosts(0.0)
    assert released == [HOST]


def test_delays_of_hosts_of_others_are_none_of_its_business(desk: Desk) -> None:
    """An observer can only slow down its own hosts, and never speed one up."""
    desk.take_tasks("/a")
    (errand,) = desk.errands()
    paces = (
        HostPace(HOST, errand.epoch, 30.0, 1, "status 503"),
        HostPace(HOST, errand.epoch + 1, 1e6, 1, "stale"),
        HostPace("other.test", errand.epoch, 1e6, 1, "not mine"),
    )
    updates = desk.report(paces=paces, held=(errand.number,)).host_updates
    assert [(update.name, update.trouble) for update in updates] == [(HOST, "status 503")]


def test_secrets_go_only_to_observers_named_for_them(tmp_path: Path) -> None:
    """Credentials are only sent to the named observer, and only over a confidential connection."""
    made = Desk(tmp_path, secret_site=True)
    try:
        made.desk.secrets = {Site(f"http://{HOST}/", secrets="env:FAR"): Secrets((("cookie", "k=v"),))}
        (task,) = made.take_tasks("/a")
        refused = made.report(is_confidential=False)
        assert refused.returned == (task,)
        assert not made.orders(refused).errands
        assert "credentials" in refused.host_updates[0].trouble
        made.take_tasks("/a")
        (errand,) = made.errands()
        assert errand.secret_headers == (("cookie", "k=v"),)
        assert "k=v" not in str(errand.headers)
    finally:
        made.store.close()


def test_what_home_has_is_named_by_its_digest(desk: Desk) -> None:
    """An errand for a known page contains the digest of home's copy, so that an unchanged page need not be sent."""
    desk.take_tasks("/a", copy=stored(OLD))
    (errand,) = desk.errands()
    seen = observe(errand)
    assert (seen.form, seen.data) == ("same", b"")


def test_an_observer_that_lies_is_dropped_and_its_pages_fetched_again(desk: Desk) -> None:
    """Two failed checks are enough; one is not, because pages change."""
    desk.take_tasks("/a")
    (errand,) = desk.errands()
    desk.report(observe(errand))
    desk.desk.count_check(NAME, errand.url, is_same=False)
    assert not desk.desk.take_requests()
    desk.desk.count_check(NAME, errand.url, is_same=False)
    drop, refetch = desk.desk.take_requests()
    assert (drop["what"], drop["name"]) == ("drop", NAME)
    assert refetch == {"what": "refetch", "urls": [errand.url]}


def test_a_changed_delay_applies_to_errands_given_earlier(desk: Desk) -> None:
    """A crawl-delay that robots.txt has since then reaches the observer with its next report, until nothing is left."""
    desk.take_tasks("/a")
    (errand,) = desk.errands()
    desk.desk.take_tasks([HostSettings(HOST, "observed", 1.0, 90.0, 0.0, 0)], [])
    for _ in range(2):  # the first answer may be lost
        (host,) = desk.orders(desk.report(held=(errand.number,))).hosts
        assert host.crawl_delay_s == 90.0
    assert not desk.orders(desk.report(observe(errand))).hosts
