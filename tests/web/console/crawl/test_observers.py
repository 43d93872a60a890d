"""The console's Observers page: who observes which host and why, with what was measured so far."""

from typing import NamedTuple

from tests.web.small_operator import signed_in
from tests.web.small_search import NOW_S

from vedette.web.observers.ports import ObservedHostView, ObserverReply, ObserverView


class SmallObservers(NamedTuple):
    """Observers and hosts of the test."""

    observers: tuple[ObserverView, ...] = ()
    hosts: tuple[ObservedHostView, ...] = ()
    kept: tuple[str, ...] = ()

    def exchange(self, name: str, signature: str, body: bytes) -> ObserverReply:  # noqa: ARG002 - no one reports
        """Refuse."""
        return ObserverReply(403)

    def has_any(self) -> bool:
        """Whether there are any."""
        return bool(self.observers)

    def list_observers(self) -> tuple[ObserverView, ...]:
        """Return the test's observers."""
        return self.observers

    def list_hosts(self) -> tuple[ObservedHostView, ...]:
        """Return the test's hosts."""
        return self.hosts

    def list_kept(self) -> tuple[str, ...]:
        """Return the hosts that stay at home."""
        return self.kept


def test_without_observers_the_page_says_how_to_add_one() -> None:
    """There are no tables, and no link in the navigation elsewhere."""
    console = signed_in(observers=SmallObservers())
    shown = console.client.get("/console/observers").text
    assert "No observers" in shown
    assert "vedette observers add" in shown
    assert "<table" not in shown
    assert "/console/observers" not in console.client.get("/console/").text


def test_observers_and_hosts_are_shown_before_and_after_anything_was_measured() -> None:
    """What was not measured is a dash; names and reasons are text, whatever is in them."""
    observers = (
        ObserverView("tokyo", NOW_S - 90, NOW_S - 9, NOW_S, 3, latency_s=0.12, per_byte_s=1e-6, checks=9, is_auto=True),
        ObserverView("lima", NOW_S - 90, None, 0.0, 0),
        ObserverView("oslo", NOW_S - 90, NOW_S - 80, 0.0, 0, revoked_s=NOW_S - 70, trouble="<b>lied</b>"),
    )
    hosts = (
        ObservedHostView(
            *("a.test", "tokyo", NOW_S - 60, "on trial <i>", False, None), 7, 0.5, 0.1, 900.0, 3e4, 0.9, remote_s=0.25
        ),
        ObservedHostView("b.test", "tokyo", NOW_S - 60, "by hand", by_hand=True, next=""),
    )
    console = signed_in(observers=SmallObservers(observers, hosts, ("c.test",)))
    shown = console.client.get("/console/observers").text
    assert "2 observers" in shown
    assert "2 hosts" in shown
    for words in (
        "120 ms",
        "0.250 s",
        "0.900 s",
        "50%",
        "then home",
        "c.test",
        "revoked",
        "&lt;b&gt;lied",
        "trial &lt;i",
    ):
        assert words in shown
    assert "a.test,tokyo" in console.client.get("/console/observers?hosts.csv=1").text or "CSV" in shown
    assert "/console/observers" in console.client.get("/console/").text


def test_observers_and_their_hosts_are_shown() -> None:
    """Measurements have units, hostile names are escaped, and revoked observers have a reason."""
    tokyo = ObserverView("tokyo", 0.0, 1_000.0, 9_000.0, 12, latency_s=0.123, per_byte_s=1e-6, checks=9)
    lima = ObserverView("<lima>", 0.0, None, 0.0, 0, revoked_s=5.0, trouble="manually")
    host = ObservedHostView(
        "www.example.jp", "tokyo", 0.0, "assigned manually", by_hand=True, next="", sent_per_look=723.0
    )
    page = signed_in(observers=SmallObservers((tokyo, lima), (host,))).client.get("/console/observers").text
    page = page.replace("\u00a0", " ").replace("\u202f", " ")
    assert "<strong>1 observer</strong> observes 1 host" in page
    assert "1 MB/s" in page
    assert "723 B" in page
    assert "123 ms" in page
    assert "revoked: manually" in page
    assert "&lt;lima&gt;" in page
    assert "then home" in page
