"""The answer box in a browser: loaded after the results, plain text, and accessible in both colors."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.browsing import violations
from tests.web.public.sample_pages import HeldPages, result, serving

from vedette.config import Serve
from vedette.serve.slate import Passage, ResultSection, Snippet
from vedette.web.app import create_app
from vedette.web.public.answers import FAILED, WrittenReply
from vedette.web.rendering import Branding

TEXT = (
    "High tide in the harbor is at noon, and low tide about six hours later [1]. "
    "<b>Both</b> move by fifty minutes a day [2] <script>alert(1)</script> [8]."
)


class FixedWriter:
    """Writes the same answer each time, or fails if the query says so."""

    def write(self, question: str, passages: list[Passage]) -> WrittenReply:
        """Write the answer, or fail."""
        assert passages
        return WrittenReply(error="it failed") if "fail" in question else WrittenReply(TEXT)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server with results and an answer box."""
    section = ResultSection("High water", "https://kafka.example.org/documentation/ops/1#high", Snippet("At noon."))
    found = (result(1, "Tides of the harbor", sections=(section,)), result(2, "Low tide by the day, from dawn to dusk"))
    with serving(create_app(HeldPages(results=found), Serve(), Branding(), answers=FixedWriter())) as address:
        yield address


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_answer_is_plain_text_with_links_to_its_sources(
    chromium: Browser, address: str, width: int, scheme: str
) -> None:
    """It appears above the results without markup of its own, fits the window, and axe finds nothing."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    tab = context.new_page()
    trouble: list[str] = []
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.goto(f"{address}/search?q=harbor+tide")
    expect(tab.locator(".answer-sources li")).to_have_count(2)
    expect(tab.locator("#answer")).to_contain_text("<b>Both</b> move")
    assert tab.locator("#answer b, #answer script").count() == 0
    assert tab.locator(".answer-sources a").first.get_attribute("href") == (
        "https://kafka.example.org/documentation/ops/1#high"
    )
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(tab) == []
    tab.goto(f"{address}/search?q=tide+fail")
    expect(tab.locator("#answer")).to_have_text(FAILED)
    assert trouble == []
    context.close()


def test_without_script_the_answer_is_a_page(chromium: Browser, address: str) -> None:
    """The box is a link to a page with the same answer."""
    context = chromium.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"{address}/search?q=harbor+tide")
    tab.click("text=Answer from these pages")
    expect(tab.locator("main")).to_contain_text("High tide in the harbor is at noon")
    context.close()
