"""The console's Discover page: hosts that no site covers."""

from tests.web.console.explain_facts import Desk
from tests.web.small_operator import signed_in
from tests.web.small_search import NOW_S

from vedette.web.commands.commands import Dismiss
from vedette.web.console.ports.sites import UnlistedHost


def test_hosts_that_pages_link_to_are_offered_and_can_be_dismissed() -> None:
    """Adding a host leads to a form that contains it; dismissing it is a command."""
    desk = Desk()
    desk.hosts = [UnlistedHost("other.example", 7, 2, NOW_S - 60, "https://docs.example.org/links")]
    console = signed_in(desk)
    shown = console.client.get("/console/discover").text
    assert "They are only crawled if you add them" in shown
    assert "/console/sites/add?site=other.example" in shown
    console.post("/console/discover/dismiss", host="other.example")
    assert console.operator.orders == [Dismiss("other.example")]
