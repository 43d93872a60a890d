"""The console as its operator uses it: in a browser, with a real ``vedette up``, starting from the printed token."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.browser.browsing import violations
from tests.search_runs import Leaf, SmallWeb, Up, page, small_web, up
from tests.tree_runs import patiently

HOME, TWO = "http://one.test/", "http://two.test/"
PAGES = {
    HOME: page("Harbour", "the harbour of the first site", {"/a": "A", "/drafts/b": "B", f"{TWO}x": "elsewhere"}),
    f"{HOME}a": page("Alpha", "zeppelin alpha"),
    f"{HOME}drafts/b": page("Beta", "zeppelin beta"),
    f"{HOME}robots.txt": Leaf("User-agent: *\nDisallow: /secret/\n", headers=(("Content-Type", "text/plain"),)),
    TWO: page("Second", "a second site with a zeppelin gamma"),
    f"{TWO}robots.txt": Leaf("User-agent: *\nCrawl-delay: 0.1\n", headers=(("Content-Type", "text/plain"),)),
}
PLACES = (
    *("", "sites", "pages", "queue", "explain", "discover", "discovery", "watches", "push"),
    *("refresh", "budget", "searches", "ranking", "results", "storage", "actions"),
)


@pytest.fixture(scope="module")
def web() -> Iterator[SmallWeb]:
    """Two sites; the first links to the second."""
    with small_web(PAGES) as web:
        yield web


@pytest.fixture(scope="module")
def run(web: SmallWeb, chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:  # noqa: ARG001 - without a browser it is not started
    """Crawl the first site until it is searchable."""
    with up(web, tmp_path_factory.mktemp("console"), HOME) as run:
        patiently(lambda: len(run.found("zeppelin")) == 2)
        yield run


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A fresh browser context."""
    made = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield made
    made.close()


@pytest.fixture
def tab(context: BrowserContext, run: Up) -> Iterator[Page]:
    """A tab in which script errors and external requests fail the test."""
    tab = context.new_page()
    trouble: list[str] = []
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("request", lambda asked: trouble.append(asked.url) if not asked.url.startswith(run.address) else None)
    yield tab
    assert trouble == []


def token_of(folder: Path) -> str:
    """Return the token that the first start printed."""
    found = re.search(r"vt_\S+", (folder / "output.txt").read_text())
    assert found is not None
    return found[0]


@pytest.fixture(scope="module")
def token(run: Up) -> list[str]:
    """The current token; a test that replaces it updates this."""
    return [token_of(run.folder)]


def sign_in(tab: Page, run: Up, token: str) -> None:
    """Go from the printed address to the first page of the console."""
    tab.goto(f"{run.address}/console")
    tab.fill("#token", token)
    tab.click("text=Sign in >> nth=-1")
    expect(tab.locator("h1")).to_have_text("Overview")


@pytest.fixture
def console(tab: Page, run: Up, token: list[str]) -> Page:
    """A signed-in tab."""
    sign_in(tab, run, token[0])
    return tab


def undo(tab: Page) -> None:
    """Undo the last action with the button next to it."""
    tab.locator("[role=status]").get_by_role("button", name="Undo").click()
    expect(tab.locator("[role=status]").first).to_contain_text("Undone")


def test_first_login(tab: Page, run: Up, token: list[str]) -> None:
    """A wrong token gets an error with instructions; the right one redirects to the requested page."""
    tab.goto(f"{run.address}/console/sites")
    tab.fill("#token", "vt_guessed")
    tab.click("text=Sign in >> nth=-1")
    expect(tab.locator("main")).to_contain_text("not the operator's token")
    expect(tab.locator("body")).to_contain_text("vedette token new")
    tab.fill("#token", token[0])
    tab.click("text=Sign in >> nth=-1")
    expect(tab.locator("h1")).to_have_text("Sites")
    expect(tab.locator("main")).to_contain_text("one.test")
    tab.get_by_role("button", name="Sign out").first.click()
    tab.goto(f"{run.address}/console/sites")
    expect(tab.locator("h1")).to_contain_text("Sign in")


def test_a_site_is_previewed_added_and_removed(console: Page, run: Up, web: SmallWeb) -> None:
    """A typo is reported next to the field and kept; the preview shows robots.txt; then the site is crawled."""
    console.goto(f"{run.address}/console/sites/add")
    console.fill("[name=site]", "two test")
    console.click("button:has-text('Preview')")
    expect(console.locator("[name=site]")).to_have_value("two test")
    expect(console.locator(".wrong").first).to_be_visible()
    console.fill("[name=site]", TWO)
    console.click("button:has-text('Preview')")
    expect(console.locator("main")).to_contain_text("robots.txt")
    assert [visit.url for visit in web.visits if "two.test" in visit.url] == [f"{TWO}robots.txt"]
    console.locator("summary", has_text="More").click()
    console.fill("[name=delay]", "soon")
    console.click("text=Add this site")
    expect(console.locator("[name=delay]")).to_have_value("soon")
    expect(console.locator("#delay-wrong")).to_be_visible()
    console.fill("[name=delay]", "")
    console.click("text=Add this site")
    expect(console.locator("[role=status]").first).to_contain_text(f"dded {TWO}")
    patiently(lambda: TWO in run.found("gamma"))
    undo(console)
    patiently(lambda: run.found("gamma") == [])


def test_a_site_is_paused_and_resumed(console: Page, run: Up) -> None:
    """The table shows the state, and the coordinator applies it."""
    console.goto(f"{run.address}/console/sites")
    row = console.locator("tr", has_text="one.test")
    row.get_by_role("button", name="Pause").click()
    expect(console.locator("tr", has_text="one.test")).to_contain_text("paused")
    assert "paused" in run.vedette("sites", "list")
    console.locator("tr", has_text="one.test").get_by_role("button", name="Resume").click()
    expect(console.locator("tr", has_text="one.test")).not_to_contain_text("paused")


def test_a_url_is_explained_and_fetched_now(console: Page, run: Up, web: SmallWeb) -> None:
    """One sentence says why it is or isn't fetched, and a button fetches it again."""
    console.goto(f"{run.address}/console/explain")
    console.fill("[name=url]", f"{HOME}secret/x")
    console.click("text=Explain >> nth=-1")
    expect(console.locator("main")).to_contain_text("disallow")
    console.fill("[name=url]", f"{HOME}a")
    console.click("text=Explain >> nth=-1")
    expect(console.locator("main")).to_contain_text("fetched")
    expect(console.locator("main")).to_contain_text("Next due")
    before = len(web.visited(f"{HOME}a"))
    console.get_by_role("button", name="Fetch now").click()
    patiently(lambda: len(web.visited(f"{HOME}a")) > before)
    expect(console.locator("[role=status]").first).to_be_visible()


def test_robots_txt_is_fetched_again_and_applies_at_once(console: Page, run: Up, web: SmallWeb) -> None:
    """The button reads the file; pages that it disallows leave the results, and return when it allows them again."""
    robots, before = f"{HOME}robots.txt", web.pages[f"{HOME}robots.txt"]
    closed = Leaf("User-agent: *\nDisallow: /secret/\nDisallow: /drafts/\n", headers=before.headers)
    for file, found in ((closed, [f"{HOME}a"]), (before, [f"{HOME}a", f"{HOME}drafts/b"])):
        web.pages[robots], reads = file, len(web.visited(robots))
        console.goto(f"{run.address}/console/explain?url={HOME}drafts/b")
        console.get_by_role("button", name="Fetch robots.txt again").click()
        expect(console.locator("[role=status]").first).to_be_visible()
        patiently(lambda reads=reads: len(web.visited(robots)) > reads)  # type: ignore[misc]  # the default binds it
        patiently(lambda found=found: sorted(run.found("zeppelin")) == found)  # type: ignore[misc]  # the default binds it
        console.reload()
        expect(console.locator("main")).to_contain_text("disallow" if file is closed else "Next due")


def test_a_page_is_hidden_and_shown_again(console: Page, run: Up) -> None:
    """It is hidden by URL or by prefix, and not found until that is undone."""
    for typed, left in ((f"{HOME}a", [f"{HOME}drafts/b"]), (f"{HOME}drafts/*", [f"{HOME}a"])):
        console.goto(f"{run.address}/console/results")
        console.fill("[name=url]", typed)
        console.get_by_role("button", name="Hide", exact=True).click()
        patiently(lambda left=left: run.found("zeppelin") == left)  # type: ignore[misc]  # the default binds it
        undo(console)
        patiently(lambda: len(run.found("zeppelin")) == 2)


def test_a_domain_is_blocked_and_unblocked(console: Page, run: Up) -> None:
    """None of its pages is found until the block is undone; the log has both actions."""
    console.goto(f"{run.address}/console/results")
    for typed in ("nonsense domain", "one.test"):
        console.fill("[name=domain]", typed)
        console.locator("form", has_text="Block").get_by_role("button", name="Add").click()
        if typed != "one.test":
            expect(console.locator("[name=domain]")).to_have_value(typed)
            expect(console.locator("#domain-wrong")).to_be_visible()
    patiently(lambda: run.found("zeppelin") == [])
    undo(console)
    patiently(lambda: len(run.found("zeppelin")) == 2)
    console.goto(f"{run.address}/console/actions")
    expect(console.locator("main")).to_contain_text("one.test")
    expect(console.locator("main")).to_contain_text("ndone")


def test_a_count_leads_to_its_rows(console: Page, run: Up) -> None:
    """Links lead from the pages of a site to the details of one page, and to the URLs that were not fetched."""
    console.goto(f"{run.address}/console/sites")
    console.locator("tr", has_text="one.test").locator("td.n a").first.click()
    expect(console.locator("h1")).to_have_text("Pages")
    expect(console.locator("tbody tr")).to_have_count(3)
    console.get_by_role("link", name="Excluded").click()
    expect(console.locator("main")).to_contain_text("no sitemap in this usual place")
    console.get_by_role("link", name="Stored pages").click()
    console.get_by_role("link", name=f"{HOME}a").click()
    expect(console.locator("main")).to_contain_text("Next due")


def test_the_console_refuses_secrets_for_a_site(console: Page, run: Up) -> None:
    """The error is next to the field, the input stays, and nothing is saved."""
    console.goto(f"{run.address}/console/sites/edit?site={HOME}")
    console.fill("[name=secrets]", "file:/etc/hostname")
    console.get_by_role("button", name="Save").click()
    expect(console.locator("#secrets-wrong")).to_contain_text("serve.console_secrets")
    expect(console.locator("[name=secrets]")).to_have_value("file:/etc/hostname")
    assert "hostname" not in run.vedette("sites", "list", "--json")


def test_the_refresh_page_works_from_the_first_pages_on(console: Page, run: Up) -> None:
    """The page shows estimated freshness, and which pages are due next, with links to their explanations."""
    console.goto(f"{run.address}/console/refresh")
    expect(console.locator(".big")).to_contain_text("estimated to be up to date")
    console.get_by_role("link", name=f"{HOME}a").click()
    expect(console.locator("main")).to_contain_text("Worth of a fetch")


def test_unlisted_hosts_are_offered_and_never_crawled(console: Page, run: Up) -> None:
    """A host that a page links to is listed until it is dismissed."""
    console.goto(f"{run.address}/console/discover")
    expect(console.locator("main")).to_contain_text("two.test")
    console.get_by_role("button", name="Dismiss").click()
    expect(console.locator("table")).to_have_count(0)
    undo(console)
    expect(console.locator("main")).to_contain_text("two.test")


def test_every_page_is_usable(console: Page, run: Up) -> None:
    """On small and large screens nothing overflows, and there are no serious violations."""
    for place in PLACES:
        console.goto(f"{run.address}/console/{place}")
        for width in (1280, 390):
            console.set_viewport_size({"width": width, "height": 800})
            assert console.evaluate("document.documentElement.scrollWidth") <= width, (place, width)
            assert violations(console, with_contrast=width == 1280) == [], (place, width)


def test_a_lost_token_is_replaced(console: Page, run: Up, token: list[str]) -> None:
    """The new token works, the old one does not, and all sessions end."""
    old, token[0] = token[0], run.vedette("token", "new").split()[0]
    console.goto(f"{run.address}/console/sites")
    expect(console.locator("h1")).to_contain_text("Sign in")
    console.fill("#token", old)
    console.click("text=Sign in >> nth=-1")
    expect(console.locator("main")).to_contain_text("not the operator's token")
    sign_in(console, run, token[0])
