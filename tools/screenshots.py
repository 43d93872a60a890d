"""Take the README's pictures of the search results and of the console, from a real `vedette demo` in a real browser."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.browsing import NO_BROWSER, browser

IMAGES = Path(__file__).parents[1] / "docs" / "images"
QUERY = "crawl delay"
SIZE: ViewportSize = {"width": 1280, "height": 760}
CRAWLED_AFTER_MS = 180_000
ATTEMPTS = 100


@contextmanager
def run_demo() -> Iterator[dict[str, str]]:
    """Run a demo on a free port; yield the lines of its opening by their first word."""
    command = [sys.executable, "-m", "vedette", "demo", "--port", "0", "--for", "600s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        opening: dict[str, str] = {}
        for line in demo.stdout:
            name, _, rest = line.strip().partition(" ")
            opening[name] = rest.strip()
            if name == "Token":
                break
        try:
            yield opening
        finally:
            demo.terminate()


def take(page: Page, opening: dict[str, str]) -> None:
    """Take both pictures in light mode after three minutes of crawling."""
    page.goto(opening["Console"])
    page.fill("input[name=token]", opening["Token"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/**")
    page.wait_for_timeout(CRAWLED_AFTER_MS)
    for _ in range(ATTEMPTS):  # a busy crawler shows its last known numbers
        page.reload()
        if not page.get_by_text("last known numbers").count():
            break
    page.screenshot(path=IMAGES / "console.png")
    for _ in range(3):  # the first searches load the index
        page.goto(f"{opening['Search']}search?q={QUERY}")
    page.screenshot(path=IMAGES / "results.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    with run_demo() as opening, browser() as chromium:
        if chromium is None:
            sys.exit(NO_BROWSER)
        take(chromium.new_page(viewport=SIZE), opening)
