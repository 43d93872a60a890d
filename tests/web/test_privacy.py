"""The privacy page is accurate for this server and any visitor."""

import re

import pytest
from selectolax.lexbor import LexborHTMLParser
from tests.web.public.sample_pages import first
from tests.web.small_search import Ask, HeldLog, recording_to, served

from vedette.config import Rate, Serve

BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
OPEN = Serve(rate=Rate(0, 1.0))


def visible_text(ask: Ask, path: str = "/privacy") -> str:
    """Return the visible text of a page."""
    return " ".join(first(LexborHTMLParser(ask(path, BROWSER).body.decode()), "main").text().split())


def test_the_mark_that_is_shown_is_the_one_that_is_kept() -> None:
    """So visitors can have everything under it deleted, with the command shown there."""
    log = HeldLog()
    with served(OPEN, recording=recording_to(log)) as (ask, _):
        ask("/search?q=lag", BROWSER)
        report = visible_text(ask)
        answer = ask("/privacy", BROWSER)
    assert re.findall("vedette forget --visitor ([0-9a-f]+)", report) == [log.slates[0].visitor]
    assert answer.headers["cache-control"].startswith("private")
    assert "127.0.0.1" not in report


@pytest.mark.parametrize(("days", "words"), [(30, "deleted after 30 days"), (1, "deleted after 1 day.")])
def test_the_page_shows_the_retention_period(days: int, words: str) -> None:
    """In days, as configured."""
    with served(OPEN, recording=recording_to(HeldLog(), keep_days=days)) as (ask, _):
        assert words in visible_text(ask).replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_the_page_says_if_nothing_is_stored() -> None:
    """No hash is computed, and nothing else is claimed."""
    with served(OPEN) as (ask, _):
        report = visible_text(ask)
    assert "This search engine does not record searches" in report
    assert "vedette forget" not in report
    assert "visitor hash" not in report


def test_every_page_links_to_it_and_no_key_is_needed() -> None:
    """Visitors can read it before they sign in."""
    with served(Serve(access="token", rate=Rate(0, 1.0))) as (ask, _):
        assert b'href="/privacy"' in ask("/signin").body
        assert ask("/privacy").status == 200
