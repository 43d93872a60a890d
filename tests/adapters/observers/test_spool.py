"""The spool of an observer: it survives a kill, and copies stay within their limit."""

from pathlib import Path

from vedette.adapters.observers.spool import Spool
from vedette.engine.observers.messages import Errand, Observation

URL = "http://far.test/{}"


def errand(number: int) -> Errand:
    """Return an errand."""
    return Errand(number, 1, "far.test", URL.format(number), "page", (), 0.0, 100.0)


def outcome(number: int, size: int = 100) -> Observation:
    """Return an outcome."""
    return Observation(
        number, 1, URL.format(number), 5.0, 0.1, status=200, data=bytes(size), size=size, digest=str(number)
    )


def test_a_killed_observer_knows_what_it_had_sent(tmp_path: Path) -> None:
    """Even if the file was not closed, errands, their marks and observations are still there."""
    spool = Spool(tmp_path)
    spool.add_errands([(errand(1), 50.0), (errand(2), 60.0), (errand(3), 70.0)])
    spool.mark_sent(1)
    spool.mark_sent(2)
    spool.save_observation(outcome(2), b"body", 1.0, 1_000)
    again = Spool(tmp_path)
    assert again.load_errands() == [(errand(1), 50.0, True), (errand(3), 70.0, False)]
    assert again.load_observations(10, 1_000) == [outcome(2)]
    assert again.find_copy(URL.format(2), "2") == b"body"
    assert again.unreported_bytes == spool.unreported_bytes > 0
    spool.close()
    again.close()


def test_copies_stay_within_their_limit(tmp_path: Path) -> None:
    """The least recently used copies are dropped, but never unreported observations."""
    spool = Spool(tmp_path)
    for number in range(20):
        spool.save_observation(outcome(number), bytes(100), float(number), 500)
    kept = [number for number in range(20) if spool.find_copy(URL.format(number), str(number)) is not None]
    assert kept == [15, 16, 17, 18, 19]
    assert len(spool.load_observations(100, 1 << 20)) == 20
    spool.delete_observations(range(20))
    assert spool.unreported_bytes == 0
    spool.close()


def test_a_report_has_at_least_one_observation(tmp_path: Path) -> None:
    """An observation larger than a batch is reported alone, so that it blocks nothing."""
    spool = Spool(tmp_path)
    for number in (1, 2):
        spool.save_observation(outcome(number, size=5_000), None, 1.0, 0)
    assert [one.number for one in spool.load_observations(10, 1_000)] == [1]
    spool.close()


def test_a_plan_survives_without_what_was_begun_or_recalled(tmp_path: Path) -> None:
    """Times are those of the plan, as seen later; a new plan replaces all of it."""
    spool = Spool(tmp_path)
    spool.save_plans([errand(number)._replace(after_s=60.0) for number in (1, 2)], 1_000.0)
    spool.save_plans([errand(number)._replace(after_s=60.0) for number in (2, 3, 4)], 1_000.0)
    spool.add_errands([(errand(3), 50.0)])
    again = Spool(tmp_path)
    assert again.load_plans(1_010.0) == [errand(number)._replace(after_s=50.0, valid_s=90.0) for number in (2, 4)]
    again.delete_plans([errand(2).host])
    assert again.load_plans(1_010.0) == []
    spool.close()
    again.close()
