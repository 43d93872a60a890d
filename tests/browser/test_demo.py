"""The demo as a new user sees it: in a browser, starting from the printed address."""

import http.client
import json
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
from tests.tree_runs import PATIENCE_S, kill_all, patiently, remains

# Of the small webs, one in which a page appears soon after its first midnight: until then, dates without a time are
# earlier than the start. Two hours take a second.
WORLD = ("--world", "made:tiny", "--seed", "7", "--speed", "7200", "--visitors", "0.5")
BIRTH_S = 1500.0
ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+/")


class Demo:
    """A running demo and its output."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log
        patiently(lambda: ADDRESS.search(self.output()))
        found = ADDRESS.search(self.output())
        assert found is not None
        self.address = found[0].rstrip("/")

    def output(self) -> str:
        """Return its output so far."""
        return self._log.read_text()

    def get(self, path: str) -> str:
        """Get a page without a browser, which takes a tenth of the CPU time."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=PATIENCE_S)
        connection.request("GET", path)
        body = connection.getresponse().read().decode()
        connection.close()
        return body


@pytest.fixture(scope="module")
def demo(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:  # noqa: ARG001 - without a browser it is not started
    """Run ``vedette demo`` on a free port, with a time limit in case it is not stopped."""
    log = tmp_path_factory.mktemp("demo") / "output.txt"
    command = [sys.executable, "-m", "vedette", "demo", "--port", "0", "--for", "90min", "--quiet", *WORLD]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=log.parent, start_new_session=True)
    try:
        yield Demo(process, log)
    finally:
        kill_all(process)


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A fresh browser context."""
    made = chromium.new_context(viewport={"width": 1280, "height": 800})
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, demo: Demo) -> Iterator[Page]:
    """A tab on the home page in which script errors and external requests fail the test."""
    tab = context.new_page()
    trouble: list[str] = []
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    own = (f"{demo.address}/", "http://docs.localhost:")
    tab.route(lambda url: not url.startswith(own), lambda route: route.abort())
    tab.goto(demo.address)
    yield tab
    assert trouble == []


def test_searching_by_hand(page: Page, demo: Demo) -> None:
    """Input is completed from titles, and results can be filtered by site and opened.

    On a synthetic site, a result opens its cached copy.
    """
    beginning = site = ""
    hosts = page.locator(".result .crumbs bdi:first-child")

    def is_completed() -> bool:
        """Type the beginning of a title; suggestions are computed in the background, after the first pages."""
        nonlocal beginning
        found = json.loads(demo.get("/api/v1/search?q=&type=html")).get("results", ())
        beginning = max(re.findall(r"\w+", " ".join(each["title"] for each in found)), key=len, default="a")[:4]
        page.fill("#q", "")
        with page.expect_response("**/api/v1/instant?*"):
            page.locator("#q").press_sequentially(beginning)
        return page.locator("[role=listbox] [role=option]:not(.page)").count() > 0

    def has_filter() -> bool:
        """Reload until the filter has the site of the first result; sites are counted every few seconds."""
        nonlocal site
        page.reload()
        site = hosts.first.inner_text().partition(":")[0]
        options: list[str] = page.eval_on_selector_all("select[name=site] option", "all => all.map(one => one.value)")
        return site in options

    patiently(is_completed, BIRTH_S)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=*")
    assert page.locator(".result").count() >= 1
    patiently(has_filter)
    page.select_option("select[name=site]", site)
    page.wait_for_url("**site=*")
    assert {host.partition(":")[0] for host in hosts.all_inner_texts()} == {site}
    page.locator("a.title").first.click()
    page.wait_for_url("**/cached/*" if site.endswith(".test") else f"http://{site}:*/**")


def test_a_page_of_the_real_site_opens(context: BrowserContext, demo: Demo) -> None:
    """Results from the documentation have a host name that browsers resolve themselves."""
    page, path = context.new_page(), "/search?q=configuration+site:docs.localhost"
    patiently(lambda: 'class="title"' in demo.get(path), BIRTH_S)
    page.goto(f"{demo.address}{path}")
    page.locator("a.title").first.click()
    page.wait_for_url("http://docs.localhost:*/**")
    assert page.locator("main").inner_text()


def test_paging(page: Page, demo: Demo) -> None:
    """The next page has other results, and the back link works."""
    patiently(lambda: 'class="paging"' in demo.get("/search?type=html"), BIRTH_S)
    page.goto(f"{demo.address}/search?type=html")

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


def births(page: Page, demo: Demo) -> Locator:
    """Return the new pages listed on the home page, once there is one."""
    patiently(lambda: 'class="born"' in demo.get("/"), BIRTH_S)
    page.reload()
    return page.locator(".born li a")


def test_a_page_published_since_the_start_is_found(page: Page, demo: Demo) -> None:
    """The home page links to results for a new page, which is among them, and its cached copy can be read."""
    link = births(page, demo).first
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


def test_results_can_be_used_by_all(page: Page, demo: Demo) -> None:
    """With reasons open, on a small screen in dark mode, there are no serious violations and no overflow."""
    births(page, demo)
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    for path in ("/", "/search?type=html"):
        page.goto(demo.address + path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert violations(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_ctrl_c_ends_the_demo(demo: Demo) -> None:
    """Ctrl-C stops everything, with a summary and no politeness violations.

    A day of the world takes 12 seconds here, so on a busy machine, a robots.txt may be older than that.
    """
    os.killpg(demo.process.pid, signal.SIGINT)
    assert demo.process.wait(PATIENCE_S) == 0
    assert remains([demo.process.pid]) == []
    *_, verdict = demo.output().partition("According to the servers' log:")
    assert verdict
    assert [line for line in verdict.splitlines()[1:] if not line.startswith("stale robots")] == []
