"""Sponsored results as users and the operator see them: in a browser, over a real ``vedette up``."""

import re
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import APIResponse, Browser, BrowserContext, Page, expect
from tests.browser.browsing import violations
from tests.search_runs import SmallWeb, Up, page, small_web, up
from tests.tree_runs import patiently

from vedette.adapters.ads.campaign_store import AdRow, AdTarget
from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.net.ipc import Request
from vedette.runtime.processes.supervisor import ask_coordinator
from vedette.serve.ads.click_validity import ClickRejection
from vedette.serve.ads.ledger import AdImpression
from vedette.web.commands.ads_commands import AdCommand, ReviewAd, SaveAd
from vedette.web.commands.commands import command_to_json

HOME = "http://one.test/"
PERSON = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"
# A public address that is never contacted: the browser uses the synthetic web as its proxy.
SHOP = "http://93.184.216.34/"
PAGES = {
    HOME: page("Harbour", "a zeppelin over the harbour", {"/a": "A"}),
    f"{HOME}a": page("Alpha", "zeppelin"),
    f"{SHOP.removesuffix('/')}{SHOP}fly": page("Shop", "flights"),
}
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
WIDTHS = (390, 1280)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module")
def web() -> Iterator[SmallWeb]:
    """A searchable site."""
    with small_web(PAGES) as web:
        yield web


@pytest.fixture(scope="module")
def run(web: SmallWeb, chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:  # noqa: ARG001 - without a browser it is not started
    """Crawl the site, and submit an ad that waits for approval."""
    with up(web, tmp_path_factory.mktemp("sponsored"), HOME, serve="sponsored = true") as run:
        patiently(lambda: bool(run.found("zeppelin")))
        run.vedette("sponsor", "advertiser", "ann")
        run.vedette("sponsor", "campaign", "spring", "--advertiser", "ann", "--budget", "1.00")
        words = ("--title", "Fly today", "--text", "Over the harbour", "--bid", "0.40", "--broad", "zeppelin")
        run.vedette("sponsor", "add", "spring", *words, "--url", f"{SHOP}fly")
        yield run


@pytest.fixture
def person(chromium: Browser, run: Up, web: SmallWeb) -> Iterator[Page]:
    """A visitor; the shop is a page of the test, and any other external request is an error."""
    context: BrowserContext = chromium.new_context(
        user_agent=PERSON,
        viewport={"width": 1280, "height": 900},
        proxy={"server": f"http://127.0.0.1:{web.port}", "bypass": "127.0.0.1"},
    )
    trouble: list[str] = []
    tab = context.new_page()
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("dialog", lambda dialog: trouble.append(dialog.message))
    ours = (run.address, SHOP)
    tab.on("request", lambda asked: None if asked.url.startswith(ours) else trouble.append(asked.url))
    yield tab
    context.close()
    assert trouble == []


@pytest.fixture(scope="module")
def console(chromium: Browser, run: Up) -> Iterator[Page]:
    """A tab with the operator signed in."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.goto(f"{run.address}/console")
    token = re.search(r"vt_\S+", (run.folder / "output.txt").read_text())
    assert token is not None
    tab.fill("#token", token[0])
    tab.click("text=Sign in >> nth=-1")
    expect(tab.locator("h1")).to_have_text("Overview")
    yield tab
    context.close()


def ordered(run: Up, order: AdCommand) -> None:
    """Bypass validation, as a bug of ours would."""
    reply = ask_coordinator(run.folder / "data", Request("order", {"order": command_to_json(order), "who": "a test"}))
    assert "done" in reply, reply


def showings(run: Up) -> list[AdImpression]:
    """Return the impressions, latest first."""
    return LedgerReader(run.folder / "data").read_latest(100)


def check_page(tab: Page, name: str, folder: Path) -> None:
    """Check that at both widths nothing overflows and there are no serious violations."""
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 900})
        tab.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
        assert violations(tab, with_contrast=width == WIDTHS[0]) == [], (name, width)


def advertised(tab: Page, run: Up, title: str) -> None:
    """Search until the servers show an ad; they reload the market every second."""

    def is_shown() -> bool:
        tab.goto(f"{run.address}/search?q=zeppelin")
        return title in (tab.locator(".sponsored").inner_text() if tab.locator(".sponsored").count() else "")

    patiently(is_shown)


def test_from_approval_to_a_charged_click(run: Up, person: Page, console: Page) -> None:
    """It only appears after approval, in its own box; a click arrives and is charged, and a second one is free."""
    person.goto(f"{run.address}/search?q=zeppelin")
    expect(person.locator(".sponsored")).to_have_count(0)
    console.goto(f"{run.address}/console/sponsored")
    expect(console.locator("main")).to_contain_text("1 ad waiting for approval")
    console.get_by_role("button", name="Approve").click()
    expect(console.locator("[role=status]").first).to_contain_text("Approved the ad 1")
    advertised(person, run, "Fly today")
    expect(person.locator(".sponsored h2")).to_have_text("Sponsored")
    assert person.locator(".results .sponsored, .sponsored .results").count() == 0
    check_page(person, "results", run.folder)
    address = person.locator(".sponsored a").get_attribute("href")
    time.sleep(0.6)  # no one reads faster
    person.locator(".sponsored a").click()
    person.wait_for_url(f"{SHOP}fly")
    assert (showings(run)[0].closed, showings(run)[0].price) == ("charged", Decimal("0.05"))
    person.goto(f"{run.address}{address}")
    assert person.url == f"{SHOP}fly"
    data = LedgerReader(run.folder / "data")
    assert data.read_balances(showings(run)[0].day)["spring"].charged == Decimal("0.05")
    assert [one.reason for one in data.read_refused_clicks(showings(run)[0].day)] == [ClickRejection.DUPLICATE.value]


def test_an_ad_is_made_in_the_console_and_edited_by_its_advertiser(run: Up, console: Page) -> None:
    """It uses forms, in light and dark mode, then an advertiser's key that only covers its own ads."""
    console.goto(f"{run.address}/console/sponsored")
    console.click("text=New advertiser")
    console.fill("#name", "bob")
    console.click("main button:has-text('Save')")
    console.fill("#name", "bobs")
    console.fill("#budget", "2.00")
    console.click("main button:has-text('Save')")
    expect(console.locator("[role=status]").first).to_contain_text('Added the campaign "bobs"')
    console.goto(f"{run.address}/console/sponsored/ad?campaign=bobs")
    for name, value in {"title": "Sail", "text": "Tomorrow", "bid": "0.20", "url": "http://10.0.0.1/"}.items():
        console.fill(f"#{name}", value)
    console.fill("#exact", "sailing boat")
    console.click("main button:has-text('Submit')")
    expect(console.locator("#url-wrong")).to_contain_text("private address")
    for scheme in SCHEMES:
        console.emulate_media(color_scheme=scheme)
        check_page(console, f"form-{scheme}", run.folder)
    console.fill("#url", f"{SHOP}fly")
    console.click("main button:has-text('Submit')")
    expect(console.locator("[role=status]").first).to_contain_text('Submitted the ad 2, "Sail"')
    for scheme in SCHEMES:
        console.emulate_media(color_scheme=scheme)
        check_page(console, f"charts-{scheme}", run.folder)
    ordered(run, ReviewAd(2, "approved"))
    key = re.search(r"vk_\S+", run.vedette("keys", "create", "bobkey"))
    assert key is not None
    run.vedette("sponsor", "advertiser", "bob", "--key", "bobkey")

    def sent(order: dict[str, object]) -> APIResponse:
        headers = {"authorization": f"Bearer {key[0]}"}
        return console.context.request.post(f"{run.address}/api/v1/sponsored/orders", headers=headers, data=order)

    assert sent({"order": "edit_ad", "ad": 2, "bid": "0.30"}).json()["ad"] == 2
    assert not sent({"order": "revoke_ad", "ad": 1}).ok
    console.reload()
    expect(console.locator("main")).to_contain_text("1 ad waiting for approval")
    assert sent({"order": "revoke_ad", "ad": 2}).ok


def test_hostile_input_is_refused_with_reasons(run: Up, person: Page, console: Page) -> None:
    """Forged tokens lead nowhere, script in an ad is text, and no one is led to a private address."""
    ordered(run, ReviewAd(1, "revoked"))
    bad = AdRow(0, "spring", HOSTILE, HOSTILE, f"{SHOP}fly", (AdTarget("broad", "zeppelin"),), (), "0.40")
    ordered(run, SaveAd(bad))
    ordered(run, ReviewAd(3, "approved"))
    advertised(person, run, HOSTILE)
    check_page(person, "hostile", run.folder)
    forged = str(person.locator(".sponsored a").get_attribute("href"))[:-1] + "~"
    ordered(run, SaveAd(bad._replace(id=3, url=f"{run.address}/console")))
    ordered(run, ReviewAd(3, "approved"))
    time.sleep(1.2)  # servers look at the market every second
    person.locator(".sponsored a").click()
    expect(person.locator("main")).to_contain_text("127.0.0.1 is a private address")
    assert (showings(run)[0].closed, showings(run)[0].said) == ("refused", ClickRejection.OFF_TARGET)
    person.goto(f"{run.address}{forged}")
    expect(person.locator("main")).to_contain_text(ClickRejection.FORGED.value)
    console.goto(f"{run.address}/console/sponsored")
    expect(console.locator("main")).to_contain_text(HOSTILE)
    expect(console.locator("main")).to_contain_text(ClickRejection.FORGED.value)
    check_page(console, "console", run.folder)
