"""What a real browser reports about results: that they were seen, and which of them were opened, in any way."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.browsing import violations
from tests.tree_runs import patiently
from tests.web.small_search import PAGES, HeldLog, SmallSearch, recording_to, served

from vedette.config import Rate, Serve

PERSON = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"
# Titles lead back to the server itself, since the test asks no one else.
LEADING = "127.0.0.1"


class Run:
    """A results page in a browser, and the log behind it."""

    def __init__(self, page: Page, log: HeldLog, address: str) -> None:
        self.page, self.log, self.address = page, log, address

    def search(self) -> None:
        """Open the results."""
        self.page.goto(f"{self.address}/search?q=lag")

    def wait_for_events(self, many: int) -> list[tuple[str, int]]:
        """Wait for this many events and return them."""
        patiently(lambda: len(self.log.events) >= many)
        return [(event.kind, event.page) for event in self.log.events]


@pytest.fixture
def run(chromium: Browser) -> Iterator[Run]:
    """A server that records, and a visitor."""
    log, search = HeldLog(), SmallSearch()
    with served(Serve(rate=Rate(0, 1.0)), search=search, recording=recording_to(log)) as (_, port):
        address = f"http://{LEADING}:{port}"
        search.pages = [page._replace(url=f"{address}/bot") for page in PAGES[:1]]
        context = chromium.new_context(user_agent=PERSON)
        yield Run(context.new_page(), log, address)
        context.close()


def test_views_and_all_ways_of_opening_are_reported(run: Run) -> None:
    """Keyboard, middle button and plain click are reported, and links work as usual. A right click opens nothing."""
    run.search()
    assert run.wait_for_events(1) == [("view", 0)]
    run.page.locator("a.title").click(button="right")
    run.page.keyboard.press("Escape")
    run.page.locator("a.title").click(button="middle")
    assert run.wait_for_events(2)[1:] == [("click", 1)]
    run.page.locator("a.title").focus()
    run.page.keyboard.press("Enter")
    run.page.wait_for_url("**/bot")
    assert run.wait_for_events(3)[2:] == [("click", 1)]
    run.search()
    run.page.locator("a.title").click()
    run.page.wait_for_url("**/bot")
    assert run.wait_for_events(5)[3:] == [("view", 0), ("click", 1)]
    assert {event.slate for event in run.log.events} == {slate.id for slate in run.log.slates}
    assert {event.filter_reason for event in run.log.events} <= {"", "too quick"}  # a script is quicker than any person
    assert len({event.visitor for event in run.log.events} | {slate.visitor for slate in run.log.slates}) == 1


def test_other_links_are_no_clicks(run: Run) -> None:
    """The cached copy, the reasons and leaving the page are not reported."""
    run.search()
    run.page.get_by_text("Why this result").click()
    run.page.get_by_role("link", name="Cached").click()
    run.page.wait_for_url("**/cached/1")
    run.page.goto(f"{run.address}/privacy")
    assert violations(run.page) == []
    assert run.wait_for_events(1) == [("view", 0)]
