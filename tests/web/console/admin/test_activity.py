"""The console's Actions page."""

from tests.web.console.explain_facts import DOCS
from tests.web.small_operator import signed_in


def test_the_log_offers_to_undo_and_pages_back() -> None:
    """Undone actions are marked, and earlier ones are on the next page."""
    console = signed_in()
    for _ in range(60):
        console.post("/console/sites/pause", site=DOCS.start, paused="yes")
    first = console.client.get("/console/actions").text
    assert first.count('action="/console/undo"') == 50
    assert "before=" in first
    console.post("/console/undo", action="60", back="/console/actions")
    assert "undone" in console.client.get("/console/actions").text
    assert len(console.client.get("/console/actions?csv=1").text.splitlines()) == 62
