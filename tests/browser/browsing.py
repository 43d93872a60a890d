"""A real browser for tests, if one is installed, and the results of an accessibility checker in it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it comes without types
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.tree_runs import PATIENCE_S

__all__ = ["NO_BROWSER", "browser", "violations"]

NO_BROWSER = "no browser was found: install chromium to run what only a browser can show"
# The shell is the same engine without the browser around it, which takes two thirds of the CPU time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# It works as root and in containers, and asks no one but the pages under test.
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_MS = PATIENCE_S * 1000
GRAVE = frozenset({"serious", "critical"})


@contextmanager
def browser() -> Iterator[Browser | None]:
    """Start a headless browser; None if none is installed."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        yield None
        return
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=list(SWITCHES), timeout=PATIENCE_MS)
        started.new_context = _make_patient(started.new_context)  # type: ignore[method-assign]  # a browser has no default
        try:
            yield started
        finally:
            started.close()


def _make_patient(make: Callable[..., BrowserContext]) -> Callable[..., BrowserContext]:
    def new_context(**options: Any) -> BrowserContext:
        context = make(**options)
        context.set_default_timeout(PATIENCE_MS)
        return context

    return new_context


def violations(page: Page, *, with_contrast: bool = True) -> list[str]:
    """Return what keeps people from using the page: serious and critical violations, each with its places.

    Contrast takes 90% of the time and is the same at every width, so a page needs it only once.
    """
    options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": with_contrast}}}
    found: list[dict[str, Any]] = Axe().run(page, options=options).response["violations"]
    return [_describe(one) for one in found if one["impact"] in GRAVE]


def _describe(one: dict[str, Any]) -> str:
    places = ", ".join(str(node["target"]) for node in one["nodes"][:5])
    return f"{one['id']}: {one['help']} at {places}"
