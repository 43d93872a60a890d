"""Fixtures shared by all browser tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.browser.browsing import NO_BROWSER, browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Share one browser between all tests of a file."""
    with browser() as started:
        if started is None:
            pytest.skip(NO_BROWSER)
        yield started
