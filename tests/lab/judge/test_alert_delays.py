"""How soon new pages are reported: quartiles that count missed ones, intervals, and a webhook receiver."""

import json
from http.client import HTTPConnection
from math import inf
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.tree_runs import PATIENCE_S

from vedette.adapters.clock import start_clock
from vedette.lab.judge.alert_delays import earliest_times, measure_delays, read_received, start_receiver

waits = st.lists(st.none() | st.floats(0.0, 1e6), min_size=1, max_size=40)


def post_message(port: int, name: str, body: bytes) -> int:
    """Return the status of the reply to a message."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("POST", f"/{name}", body)
    status = connection.getresponse().status
    connection.close()
    return status


@given(waits)
def test_quarters_are_in_order_and_the_interval_holds_the_median(found: list[float | None]) -> None:
    """For any reports, missed pages count as later than all reported ones."""
    born = {str(number): 10.0 * number for number in range(len(found))}
    report = {str(number): 10.0 * number + wait for number, wait in enumerate(found) if wait is not None}
    delays = measure_delays(born, report)
    assert (delays.births, delays.told) == (len(found), len(report))
    assert delays.quarter_s <= delays.median_s <= delays.three_quarters_s
    assert delays.low_s <= delays.median_s <= delays.high_s
    if 2 * len(report) < len(found):
        assert delays.median_s == inf


def test_without_births_nothing_is_said() -> None:
    """Without new pages there are no numbers, and the result is the same each time."""
    assert measure_delays({}, {"a": 1.0}).births == 0
    born, report = {"a": 0.0, "b": 5.0}, earliest_times([("a", 9.0), ("b", 8.0), ("a", 3.0)])
    assert measure_delays(born, report) == measure_delays(born, report)
    assert measure_delays(born, report).quarter_s == 3.0


def test_messages_are_noted_with_their_names_and_times(tmp_path: Path) -> None:
    """Each item of a message is recorded in order; anything else is refused and not recorded."""
    clock, log = start_clock(5000.0, 60.0), tmp_path / "told.log"
    item = {"url": "http://a.test/new", "first_seen_at": "2026-01-05T00:00:00Z"}
    with start_receiver(clock, log) as receiver:
        body = json.dumps({"id": "x", "items": [item]}).encode()
        assert [post_message(receiver.port, name, body) for name in ("one", "two")] == [204, 204]
        assert post_message(receiver.port, "one", b"[nonsense") == 400
    assert receiver.process.poll() is not None
    found = list(read_received(log))
    assert [(each.name, each.url) for each in found] == [("one", item["url"]), ("two", item["url"])]
    assert 5000.0 <= found[0].at_s <= found[1].at_s <= clock.now()
    assert list(read_received(tmp_path / "none.log")) == []
