"""A real browser for tests, where the machine has one; and what an accessibility checker says of a page in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it comes without types
from playwright.sync_api import Browser, Page, sync_playwright

__all__ = ["NO_BROWSER", "browser", "violations"]

NO_BROWSER = "no browser was found: install chromium to run what only a browser can show"
NAMES = ("chromium", "chromium-browser", "google-chrome")
# It works as root and in containers, and asks nobody but the pages under test.
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
GRAVE = frozenset({"serious", "critical"})


@contextmanager
def browser() -> Iterator[Browser | None]:
    """A browser without a window, or None where none is installed."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        yield None
        return
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=list(SWITCHES))
        try:
            yield started
        finally:
            started.close()


def violations(page: Page) -> list[str]:
    """What keeps people from using the page: serious and critical violations, each with the places where it is."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [_told(one) for one in found if one["impact"] in GRAVE]


def _told(one: dict[str, Any]) -> str:
    places = ", ".join(str(node["target"]) for node in one["nodes"][:5])
    return f"{one['id']}: {one['help']} at {places}"
