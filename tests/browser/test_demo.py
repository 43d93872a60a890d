"""The demo as someone sees it who just typed ``vedette demo``: in a browser, from the printed address on."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page
from tests.browser.browsing import violations
from tests.tree_runs import kill_all, patiently, remains

BIRTH_S = 300.0
ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+/")


class Demo:
    """A running demo, and what it printed."""

    def __init__(self, process: subprocess.Popen[bytes], told: Path) -> None:
        self.process = process
        self._told = told
        patiently(lambda: ADDRESS.search(self.told()), 60.0)
        found = ADDRESS.search(self.told())
        assert found is not None
        self.address = found[0].rstrip("/")

    def told(self) -> str:
        """What it printed so far."""
        return self._told.read_text()


@pytest.fixture(scope="module")
def demo(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:  # noqa: ARG001 - without a browser it is not started
    """``vedette demo`` on a free port; it would end by itself, should no one end it."""
    told = tmp_path_factory.mktemp("demo") / "told.txt"
    command = [sys.executable, "-m", "vedette", "demo", "--port", "0", "--for", "5min", "--quiet"]
    with told.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=told.parent, start_new_session=True)
    try:
        yield Demo(process, told)
    finally:
        kill_all(process)


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A reader without a past."""
    made = chromium.new_context(viewport={"width": 1280, "height": 800})
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, demo: Demo) -> Iterator[Page]:
    """A tab at the first page that leaves the web alone; errors of scripts and requests elsewhere fail the test."""
    tab = context.new_page()
    trouble: list[str] = []
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    own = (f"{demo.address}/", "http://docs.localhost:")
    tab.route(lambda url: not url.startswith(own), lambda route: route.abort())
    tab.goto(demo.address)
    yield tab
    assert trouble == []


def births(page: Page) -> Locator:
    """The pages that the first page names, looked at again until there is one."""

    def is_there() -> bool:
        page.reload()
        return page.locator(".born li a").count() > 0

    patiently(is_there, BIRTH_S)
    return page.locator(".born li a")


def test_a_page_born_since_the_start_is_found(page: Page) -> None:
    """The first page names a birth; its link leads to results, the page is among them, and its copy can be read."""
    link = births(page).first
    title = link.inner_text()
    link.click()
    page.wait_for_url("**/search?q=*")
    results = page.locator(".result").filter(has=page.get_by_text(title, exact=True))
    assert results.count() >= 1, title
    results.first.locator("text=Cached").click()
    page.wait_for_url("**/cached/*")
    assert page.locator("h1").inner_text() == title
    assert len(page.frame_locator("iframe").locator("body").inner_text().split()) > 20
    assert violations(page) == []


def test_searching_by_hand(page: Page, demo: Demo) -> None:
    """Input is completed from existing titles; results are filtered by site, and one is opened.

    Of a made-up site that is its copy.
    """
    typed = page.locator("#q")

    def is_completed() -> bool:
        """Suggestions are worked out in the background, so they come a while after the first pages."""
        page.goto(f"{demo.address}/search?type=html")
        titles = page.locator("a.title").all_inner_texts()
        word = max(re.findall(r"\w+", " ".join(titles)), key=len, default="")
        page.goto(demo.address)
        with page.expect_response("**/api/v1/suggest*") as told:
            typed.press_sequentially(word[:4] or "a")
        return bool(told.value.json()["suggestions"])

    patiently(is_completed, BIRTH_S)
    page.wait_for_selector("[role=listbox] [role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=*")
    assert page.locator(".result").count() >= 1
    hosts = page.locator(".result .crumbs bdi:first-child")
    site = hosts.first.inner_text().partition(":")[0]
    page.select_option("select[name=site]", site)
    page.wait_for_url("**site=*")
    assert {host.partition(":")[0] for host in hosts.all_inner_texts()} == {site}
    page.locator("a.title").first.click()
    page.wait_for_url("**/cached/*" if site.endswith(".test") else f"http://{site}:*/**")


def test_a_page_of_the_real_site_opens(context: BrowserContext, demo: Demo) -> None:
    """Results from the documentation are served under a name that a browser resolves by itself."""
    page = context.new_page()

    def is_found() -> bool:
        page.goto(f"{demo.address}/search?q=configuration+site:docs.localhost")
        return page.locator("a.title").count() > 0

    patiently(is_found, BIRTH_S)
    page.locator("a.title").first.click()
    page.wait_for_url("http://docs.localhost:*/**")
    assert page.locator("main").inner_text()


def test_paging(page: Page, demo: Demo) -> None:
    """Further results are other ones, and the way back leads back."""
    page.goto(f"{demo.address}/search?type=html")
    patiently(lambda: page.reload() is not None and page.locator("nav.paging").count() == 1, BIRTH_S)

    def titles() -> list[str]:
        found: list[str] = page.eval_on_selector_all("a.title", "all => all.map(one => one.href)")
        return found

    def are_others() -> bool:
        first = titles()
        page.click("text=Next")
        page.wait_for_url("**page=2*")
        second = titles()
        page.click("text=Previous")
        page.wait_for_url(lambda url: "page=2" not in url)
        return len(first) == 10 and bool(second) and not set(first) & set(second)

    patiently(are_others, BIRTH_S)  # pages that come meanwhile may push some from the first page to the next


def test_results_can_be_used_by_all(page: Page, demo: Demo) -> None:
    """With reasons open, at a small screen and in the dark, there is no serious violation and nothing is too wide."""
    births(page)
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    for path in ("/", "/search?type=html"):
        page.goto(demo.address + path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert violations(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_it_ends_when_it_is_told_to(demo: Demo) -> None:
    """Ctrl-C ends all of it within its time, with a summary and a clean record of politeness."""
    os.killpg(demo.process.pid, signal.SIGINT)
    assert demo.process.wait(300) == 0
    assert remains([demo.process.pid]) == []
    assert "none too soon, none disallowed" in demo.told()
