"""The pages in a real browser: keyboard, colors, widths, hostile titles, cached copies, the embedded search box."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from tests.browser.browsing import violations
from tests.tree_runs import patiently
from tests.web.public.sample_pages import NOW_S, SENTENCE, HeldPages, application, copy, result, serving

from vedette.serve.slate import PageVersion, ResultSection, Snippet
from vedette.web.ports import FacetCount, IndexOverview
from vedette.web.rendering import Branding

HOSTILE = (
    result(1, "lag <script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"),
    result(2, "lag " + "W" * 500, url="https://" + "a" * 60 + ".example.org/" + "b" * 600),
    result(3, "lag شرح مراقبة تأخر المستهلك", snippet=Snippet("هذا نص lag طويل " * 30, ((8, 11),))),
    result(4, "lag \u202eesrever", note="n" * 300, sentence="s" * 300),
    result(5, "lag", url="javascript:window.hurt=1"),
    result(6, "lag {{7*7}} &amp; \"'><svg onload=window.hurt=1>", snippet=Snippet("<b onclick=window.hurt=1>" * 40)),
)
SITES = tuple(FacetCount(f"site-{n}-{'x' * 60}.example.org", n) for n in range(100))
OTHERS = tuple(PageVersion(f"2.{n}", f"https://kafka.example.org/2.{n}/lag") for n in range(8, 0, -1))
VERSIONS = {"version": "3.0", "versions": 9, "other_versions": OTHERS}
SECTIONS = tuple(
    ResultSection(f"Part {n}", f"https://kafka.example.org/3#part-{n}", Snippet("a part about lag", ((13, 16),)))
    for n in range(3)
)
MORE: dict[int, dict[str, Any]] = {
    1: {"similar": 3},
    2: VERSIONS,
    3: {"sections": SECTIONS, "snippet": SECTIONS[0].snippet},
}
MANY = tuple(result(n, f"Lag number {n}", **MORE.get(n, {})) for n in range(1, 36))
COPY = (
    "<h1>Monitoring</h1><p><a id=out href=/x>a link</a></p><script>parent.hurt = top.hurt = 1</script>"
    "<img src=x onerror='top.hurt=1'><form action=/x><input name=a></form>"
)
WIDTHS = (390, 1280)
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


@pytest.fixture(scope="module")
def held() -> HeldPages:
    """Return the contents of the server under test."""
    return HeldPages(
        MANY,
        {1: copy(COPY)},
        {1: MANY[1:4]},
        IndexOverview(
            35,
            (FacetCount("kafka.example.org", 35),),
            (FacetCount("html", 35),),
            (FacetCount("en", 35),),
            NOW_S - 240,
            7_200.0,
        ),
        completions=("lag", "lag of a consumer", "lag <b>per</b> partition"),
    )


@pytest.fixture(scope="module")
def address(held: HeldPages) -> Iterator[str]:
    """A server with a lot of content."""
    with serving(application(held, Branding(name="Finder", contact=lambda: "ops@example.org"))) as at:
        yield at


@pytest.fixture(scope="module")
def hostile_address() -> Iterator[str]:
    """A server with hostile pages only."""
    known = IndexOverview(10**9, SITES, (FacetCount("html", 3),), (FacetCount("en", 1),), NOW_S, 1e9, 10_000, HOSTILE)
    search = HeldPages(HOSTILE, known=known, says={"total": 10**12}, likes={1: HOSTILE})
    with serving(application(search, Branding(name="A name that goes on and on and on", demo=True))) as at:
        yield at


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A fresh browser context."""
    made = chromium.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab in which script errors fail the test."""
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    yield tab
    assert errors == []


def focused(page: Page) -> str:
    """Return the text of the focused element, or the name of a field."""
    report: str = page.evaluate("document.activeElement.name || document.activeElement.textContent.trim()")
    return report


# --- searching ---


def test_a_search_from_the_first_page(page: Page, address: str) -> None:
    """The field has the focus; typing and Enter show results, with a URL that contains only the query."""
    page.goto(address)
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("lag")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=lag")
    assert page.locator(".result").count() == 10


def test_it_works_without_script(chromium: Browser, address: str) -> None:
    """Searching, filtering and paging work without scripts, and controls that need them are hidden."""
    context = chromium.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(address)
    tab.fill("#q", "lag")
    tab.click("text=Search >> nth=-1")
    tab.select_option("select[name=type]", "html")
    tab.click("text=Apply")
    assert "type=html" in tab.url
    tab.click("text=Next")
    assert "page=2" in tab.url
    assert tab.locator("button.theme").is_hidden()
    context.close()


def test_why_opens_in_place(page: Page, address: str) -> None:
    """A click shows the sentence and the table; a second click in the same place closes them."""
    page.goto(f"{address}/search?q=lag")
    why = page.locator("details.why").first
    summary = why.locator("summary")
    place = summary.bounding_box()
    summary.click()
    assert why.locator("text=" + SENTENCE).is_visible()
    assert why.locator("svg").first.is_visible()
    assert summary.bounding_box() == place
    summary.click()
    assert why.locator("table").is_hidden()


def test_a_filter_applies_at_once(page: Page, address: str) -> None:
    """Choosing an option applies it, and options not chosen are not in the URL."""
    page.goto(f"{address}/search?q=lag")
    page.select_option("select[name=time]", "week")
    page.wait_for_url("**/search?q=lag&time=week")
    assert page.locator(".apply").is_hidden()


# --- keys ---


def test_keys_lead_through_the_results(page: Page, address: str) -> None:
    """A slash moves to the field, j and k or arrows move between results, and Enter opens one."""
    page.goto(f"{address}/search?q=lag")
    seen = []
    for key in ("j", "j", "ArrowDown", "k", "ArrowUp", "k", "ArrowDown"):
        page.keyboard.press(key)
        seen.append(focused(page))
    assert seen == ["Lag number 1", "Lag number 2", "Lag number 3", "Lag number 2", "Lag number 1", "q", "Lag number 1"]
    page.keyboard.press("/")
    assert focused(page) == "q"
    page.keyboard.type("jk/")
    assert page.input_value("#q").endswith("jk/")


def test_enter_opens_the_result(page: Page, address: str) -> None:
    """A result is a normal link: Enter on it opens the page."""
    page.route("https://kafka.example.org/**", lambda route: route.abort())  # the web is left alone
    page.goto(f"{address}/search?q=lag")
    page.keyboard.press("j")
    with page.expect_event("requestfailed") as opened:
        page.keyboard.press("Enter")
    assert opened.value.url == "https://kafka.example.org/documentation/ops/1"


def test_the_first_tab_skips_to_the_content(page: Page, address: str) -> None:
    """Keyboard users can see and use a link that skips the header."""
    page.goto(f"{address}/search?q=lag")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to content"
    patiently(lambda: page.evaluate("document.activeElement.getBoundingClientRect().top >= 0"))
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_suggestions_are_a_combobox(page: Page, address: str) -> None:
    """Arrows choose and fill in, Escape restores the input, and screen readers are notified."""
    page.goto(address)
    field = page.locator("#q")
    expect(field).to_be_focused()
    page.keyboard.type("lag")
    page.wait_for_selector("[role=listbox] [role=option]")
    assert field.get_attribute("aria-expanded") == "true"
    offered = ["lag", "lag of a consumer", "lag <b>per</b> partition"]
    assert page.locator("[role=option]:not(.page)").all_text_contents() == offered
    assert page.locator("[role=option] .hit").all_text_contents() == ["Lag number 1", "Lag number 2"]
    expect(page.locator("[role=listbox] + [role=status]")).to_have_text("3 suggestions, 2 results")
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator(f"#{field.get_attribute('aria-activedescendant')}")
    assert (chosen.text_content(), chosen.get_attribute("aria-selected")) == ("lag of a consumer", "true")
    assert field.input_value() == "lag of a consumer"
    page.keyboard.press("Escape")
    assert (field.input_value(), field.get_attribute("aria-expanded")) == ("lag", "false")
    page.keyboard.type(" o")
    page.click("[role=option]")
    page.wait_for_url("**/search?q=lag+of+a+consumer")


@pytest.mark.parametrize("width", WIDTHS)
def test_results_while_typing_can_be_opened_with_keys(page: Page, address: str, width: int) -> None:
    """A result in the list leads to its page; the typed words stay in the field; it fits narrow screens."""
    page.set_viewport_size({"width": width, "height": 800})
    page.route("https://kafka.example.org/**", lambda route: route.fulfill(body="the page"))
    page.goto(address)
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("lag n")
    page.wait_for_selector("[role=option].page")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    page.keyboard.press("ArrowUp")
    assert page.locator("#q").input_value() == "lag n"
    page.keyboard.press("Enter")
    page.wait_for_url(MANY[1].url)


@pytest.mark.parametrize("width", WIDTHS)
def test_sections_and_versions_open_below_their_result(page: Page, address: str, width: int) -> None:
    """Keys open both lists; sections lead to their anchors, versions to the pages of other releases."""
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}/search?q=lag")
    for kind, count, target in (("versions", 9, OTHERS[0].url), ("sections", 2, SECTIONS[1].url)):  # 8, and all
        links = page.locator(f"details.{kind} li a")
        expect(links.first).to_be_hidden()
        page.locator(f"details.{kind} summary").focus()
        page.keyboard.press("Enter")
        expect(links.first).to_be_visible()
        assert (links.count(), links.first.get_attribute("href")) == (count, target)
    assert page.locator("p.section a").get_attribute("href") == SECTIONS[0].url
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []


# --- looks ---


def test_the_color_scheme_is_kept_and_never_flashes(page: Page, address: str) -> None:
    """The choice persists from page to page, and applies before any script runs."""
    page.goto(address)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("button.theme")
    dark = page.evaluate(paper)
    assert light != dark
    page.route("**/*.js", lambda route: route.abort())
    page.goto(f"{address}/search?q=lag")
    assert page.evaluate(paper) == dark


PATHS = ("/", "/search?q=lag", "/search?q=nothing", "/similar/1?q=lag", "/cached/1", "/bot", "/missing")


@pytest.mark.parametrize(("width", "scheme"), list(zip(WIDTHS, SCHEMES, strict=True)))
def test_every_page_fits_and_can_be_used_by_all(chromium: Browser, address: str, width: int, scheme: Scheme) -> None:
    """No page scrolls sideways or has serious violations, small and light or wide and dark, with reasons open."""
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    for path in PATHS:
        tab.goto(address + path)
        tab.evaluate("document.querySelector('details')?.setAttribute('open', '')")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, path
        assert violations(tab) == [], path
    context.close()


# --- hostile pages ---


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_pages_neither_run_nor_break_ours(chromium: Browser, hostile_address: str, width: int) -> None:
    """Nothing in a title, snippet or URL runs, and nothing overflows."""
    context = chromium.new_context(viewport={"width": width, "height": 800})
    tab = context.new_page()
    for path in (
        "/",
        "/search?q=lag",
        "/similar/1",
        "/search?q=" + "Q" * 900,
        "/search?q=%3Cscript%3Ehurt=1%3C/script%3E",
    ):
        tab.goto(hostile_address + path)
        tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        tab.wait_for_load_state("networkidle")
        assert tab.evaluate("window.hurt") is None, path
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, path
    context.close()


def test_a_copy_is_shown_without_scripts_or_requests(page: Page, address: str) -> None:
    """The frame shows the text; nothing in it runs or sends requests, and its links open no window."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(address)))
    page.goto(f"{address}/cached/1")
    frame = page.frame_locator("iframe")
    assert frame.locator("h1").text_content() == "Monitoring"
    assert frame.locator("form, script, img").count() == 0
    frame.locator("a").click()
    assert len(page.context.pages) == 1
    assert frame.locator("h1").text_content() == "Monitoring"
    assert page.evaluate("window.hurt") is None
    assert [path for path in asked if not path.startswith(("/static/", "/cached/1"))] == []


# --- the box on other people's pages ---


@pytest.fixture
def elsewhere(address: str) -> Iterator[str]:
    """A page on another origin with a strict policy and the search box from examples/."""
    policy = f"default-src 'none'; script-src {address}; connect-src {address}; form-action {address}"
    words = 'data-site="kafka.example.org/documentation" data-label="Find"'
    example = (Path(__file__).parents[2] / "examples" / "search_box.html").read_text(encoding="utf-8")
    text = example.replace("http://127.0.0.1:8080", address).replace('data-label="Search"', words)

    async def home(_asked: Request) -> Response:
        return HTMLResponse(text, headers={"content-security-policy": policy})

    with serving(Starlette(routes=[Route("/", home)])) as at:
        yield at.replace("127.0.0.1", "localhost")


def test_the_box_works_on_a_foreign_page(page: Page, address: str, elsewhere: str, held: HeldPages) -> None:
    """It shows suggestions and results, adds no names to the page, fits, and only leads to results of that site."""
    page.goto(elsewhere)
    page.wait_for_selector("input[type=search]")
    assert page.evaluate("typeof offerSuggestions") == "undefined"
    page.locator("input[type=search]").press_sequentially("lag")
    page.wait_for_selector("[role=option].page")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/search?**")
    assert page.locator("#q").input_value() == "lag of a consumer"
    assert held.wishes[-1].site == "kafka.example.org/documentation"
