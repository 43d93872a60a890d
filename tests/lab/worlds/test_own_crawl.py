"""Your own crawl as a world: when pages existed and changed, according to its archive."""

from collections.abc import Iterable
from math import inf
from pathlib import Path

import pytest
from tests.data_folders import DAY_S, NOW_S, SITE, URLS, Fetches, opened

from vedette.adapters.crawl_store.store import SiteRow
from vedette.errors import UsageError
from vedette.lab.worlds.history import History
from vedette.lab.worlds.own_crawl import load_crawl_history

PAGE, OTHER = URLS[0], URLS[1]
Fetched = tuple[str, bytes, float, int]  # a URL, its content, the day, and the status


def crawled(folder: Path, *fetches: Fetched) -> History:
    """Return the history of a folder whose crawl made these fetches."""
    with opened(folder) as state, Fetches(state) as crawl:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=NOW_S))
        for url, body, day, status in fetches:
            known = state.urls.find_ids([url]).tolist()
            if known[0] > 0:
                state.urls.requeue(known, priority=1)
            crawl.page(url, body, NOW_S + day * DAY_S, status)
    return load_crawl_history(folder)


def days(times_s: Iterable[float]) -> list[float]:
    """Return times as days after the crawl began."""
    return [(each - NOW_S) / DAY_S for each in times_s]


def text(words: str) -> bytes:
    """Return a page with this text."""
    return f"<title>t</title><p>{words} and so on for a sentence of some length.</p>".encode()


def test_a_version_begins_when_it_was_noticed(tmp_path: Path) -> None:
    """Fetched on days 0, 1 and 3, with a change found by the last: versions of days 0 and 3.

    One fetch is one version.
    """
    history = crawled(
        tmp_path / "data",
        (PAGE, text("one"), 0, 200),
        (OTHER, text("other"), 0.5, 200),
        (PAGE, text("one"), 1, 200),
        (PAGE, text("two"), 3, 200),
    )
    assert history.urls == (PAGE, OTHER)
    assert history.version_page.tolist() == [0, 0, 1]
    assert days(history.version_at_s) == [0, 3, 0.5]


def test_the_world_ends_with_the_last_answer(tmp_path: Path) -> None:
    """A page fetched unchanged on day 9 was observed for nine days."""
    history = crawled(tmp_path / "data", (PAGE, text("one"), 0, 200), (PAGE, text("one"), 9, 200))
    assert days([history.begin_s, history.end_s]) == [0, 9]
    assert len(history.version_page) == 1


def test_a_page_dies_when_it_is_found_gone(tmp_path: Path) -> None:
    """A 404 on day 2 ends a page, a 503 doesn't; a URL that was never fetched successfully is not a page."""
    history = crawled(
        tmp_path / "data",
        (PAGE, text("one"), 0, 200),
        (OTHER, text("other"), 0, 200),
        (PAGE, b"gone", 2, 404),
        (OTHER, b"busy", 2, 503),
        (URLS[4], b"never", 2, 404),
    )
    assert dict(zip(history.urls, days(history.died_s), strict=True)) == {PAGE: 2, OTHER: inf}


def test_a_crawl_without_pages_is_refused(tmp_path: Path) -> None:
    """The error says what to do."""
    with pytest.raises(UsageError, match="crawl a site first"):
        crawled(tmp_path / "data")
