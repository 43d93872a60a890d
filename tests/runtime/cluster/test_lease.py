"""The shared lease: all processes of a tree see when it ends, and stop sending requests before."""

import multiprocessing

import pytest

from vedette.runtime.cluster import lease
from vedette.runtime.cluster.lease import SharedLease


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time since boot, which tests can change."""
    now = [1000.0]
    monkeypatch.setattr(lease, "read_clock_s", lambda: now[0])
    return now


def test_requests_stop_before_the_lease_ends(clock: list[float]) -> None:
    """No request is sent after 70% of the lease since a renewal was sent; it can still be renewed then."""
    held = SharedLease()
    assert not held.may_request()
    held.extend(asked_s=995.0, lease_s=10.0)
    seen = []
    for clock[0] in (1000.0, 1001.9, 1002.1, 1004.9, 1005.1):
        seen.append((held.may_request(), held.has_ended()))
    assert seen == [(True, False), (True, False), (False, False), (False, False), (False, True)]
    held.extend(asked_s=1004.0, lease_s=10.0)
    assert held.may_request()


def test_a_forked_process_sees_a_renewal() -> None:
    """A process forked before a renewal sees it, as fetchers do."""
    held = SharedLease()
    context = multiprocessing.get_context("fork")
    renewed, answers = context.Event(), context.Queue()

    def ask() -> None:
        answers.put(held.may_request())
        renewed.wait()
        answers.put(held.may_request())

    process = context.Process(target=ask)
    process.start()
    assert answers.get() is False
    held.extend(lease.read_clock_s(), 600.0)
    renewed.set()
    assert answers.get() is True
    process.join()
